import Foundation

/// The received part of a response stream, taken apart: heads, then pieces of bodies. Pure; `RawClient` feeds it.
package struct ResponseDecoder: Sendable {
    package enum Framing: Sendable, Equatable {
        /// So many body bytes are still to come.
        case length(rest: Int64)
        /// Inside a chunk that lacks so many bytes.
        case chunk(rest: Int64)
        /// Before the size line of a chunk.
        case chunkSize
        /// Before the end of line that ends a chunk.
        case chunkEnd
        /// After the last chunk, before the empty line that ends the trailer.
        case trailer
        /// The body goes on until the connection ends.
        case untilClose
        /// The body is over.
        case done
    }

    package enum Step: Equatable {
        case bytes([UInt8])
        case end
        /// No further without more bytes, or the end of the stream.
        case starved
    }

    private var buffer = ByteQueue()
    package private(set) var framing = Framing.done

    package init() {}

    package mutating func append(_ bytes: [UInt8]) { buffer.append(bytes) }

    /// What is left over, without taking it.
    var unread: [UInt8] { buffer.all }

    /// Takes all that is left over.
    mutating func takeAll() -> [UInt8] { buffer.take(buffer.count) }

    /// Takes the next head, interim ones included, or `nil` when it is not there in full.
    /// - Parameter method: the request's; the response to HEAD has no body, whatever its fields say.
    package mutating func nextHead(method: String) throws -> RawClient.ResponseHead? {
        guard let end = buffer.firstIndex(of: Array("\r\n\r\n".utf8)) else { return nil }
        let text = String(decoding: buffer.take(end), as: UTF8.self)
        _ = buffer.take(4)
        let head = try RawClient.ResponseHead(text)
        framing = try Self.framing(of: head, method: method)
        return head
    }

    /// Takes at most `limit` bytes of the body.
    package mutating func nextBody(upTo limit: Int) throws -> Step {
        while true {
            switch framing {
            case .done: return .end
            case .untilClose: return takeBody(upTo: limit)
            case .length(let rest): return takeBody(upTo: limit, rest) { $0 == 0 ? .done : .length(rest: $0) }
            case .chunk(let rest): return takeBody(upTo: limit, rest) { $0 == 0 ? .chunkEnd : .chunk(rest: $0) }
            case .chunkSize, .chunkEnd, .trailer:
                guard let line = nextLine() else { return .starved }
                framing = try framing(after: line)
            }
        }
    }

    /// The stream has ended: whether the body may end there.
    package var mayEndHere: Bool { framing == .untilClose || framing == .done }

    private mutating func takeBody(upTo limit: Int) -> Step {
        buffer.isEmpty ? .starved : .bytes(buffer.take(min(limit, buffer.count)))
    }

    private mutating func takeBody(upTo limit: Int, _ rest: Int64, then next: (Int64) -> Framing) -> Step {
        let step = takeBody(upTo: Int(min(Int64(limit), rest)))
        if case .bytes(let bytes) = step { framing = next(rest - Int64(bytes.count)) }
        return step
    }

    private mutating func nextLine() -> String? {
        guard let end = buffer.firstIndex(of: Array("\r\n".utf8)) else { return nil }
        let line = String(decoding: buffer.take(end), as: UTF8.self)
        _ = buffer.take(2)
        return line
    }

    /// RFC 9112 §7.1.
    private func framing(after line: String) throws -> Framing {
        switch framing {
        case .chunkEnd:
            guard line.isEmpty else {
                throw RawClient.ResponseError.malformed("chunk not followed by an end of line: \(line)")
            }
            return .chunkSize
        case .trailer:
            return line.isEmpty ? .done : .trailer
        default:
            let digits = line.split(separator: ";", omittingEmptySubsequences: false)[0].trimmingCharacters(
                in: .whitespaces)
            guard let size = Int64(digits, radix: 16), size >= 0 else {
                throw RawClient.ResponseError.malformed("chunk size \(line)")
            }
            return size == 0 ? .trailer : .chunk(rest: size)
        }
    }

    /// RFC 9112 §6.3.
    private static func framing(of head: RawClient.ResponseHead, method: String) throws -> Framing {
        if method == "HEAD" || head.status < 200 || head.status == 204 || head.status == 304 { return .done }
        if head.headers.hasToken("chunked", in: "Transfer-Encoding") { return .chunkSize }
        guard let text = head.headers["Content-Length"] else { return .untilClose }
        guard let length = Int64(text), length >= 0 else {
            throw RawClient.ResponseError.malformed("Content-Length \(text)")
        }
        return length == 0 ? .done : .length(rest: length)
    }
}

/// Bytes that are appended at the end and taken from the front.
struct ByteQueue: Sendable {
    private var bytes: [UInt8] = []
    private var start = 0

    var count: Int { bytes.count - start }
    var isEmpty: Bool { count == 0 }
    var all: [UInt8] { Array(bytes[start...]) }

    mutating func append(_ new: [UInt8]) {
        if start == bytes.count {
            bytes = new
            start = 0
        } else {
            bytes.append(contentsOf: new)
        }
    }

    mutating func take(_ n: Int) -> [UInt8] {
        let taken = Array(bytes[start..<start + n])
        start += n
        // Moved to the front when most of it is gone, so that the cost of each byte stays constant.
        if start > bytes.count / 2 {
            bytes.removeFirst(start)
            start = 0
        }
        return taken
    }

    /// How many bytes stand before the first occurrence of `pattern`.
    func firstIndex(of pattern: [UInt8]) -> Int? {
        guard pattern.count <= count else { return nil }
        return (start...bytes.count - pattern.count).first { bytes[$0..<$0 + pattern.count].elementsEqual(pattern) }.map
        { $0 - start }
    }
}
