import Foundation
import Synchronization

/// A blocking HTTP/1.1 client over one connection to 127.0.0.1 that trusts nothing and repairs nothing: what the server
/// sent is what the test sees. Each read fails after `Duration.patience`.
///
/// One thread uses it at a time; for several requests at once take several clients, or `Background`.
package final class RawClient: Sendable {
    package struct ResponseHead: Sendable, Equatable {
        /// As sent: `"HTTP/1.1"`.
        package let version: String
        package let status: Int
        package let reason: String
        package let headers: HeaderList
    }

    package struct Response: Sendable, Equatable {
        package let head: ResponseHead
        package let body: [UInt8]

        package var status: Int { head.status }
        package var reason: String { head.reason }
        package var headers: HeaderList { head.headers }
        /// The body as UTF-8, for playlists and error messages.
        package var text: String { String(decoding: body, as: UTF8.self) }
    }

    package enum ResponseError: Error, Equatable {
        /// The connection ended after `received` body bytes. `expected` is the Content-Length; `nil`: chunked, or up to
        /// the connection's end, which was a reset.
        case truncated(received: Int64, expected: Int64?)
        /// The connection ended, or was reset, before a complete head.
        case closedBeforeHead
        /// Not HTTP; the string says what.
        case malformed(String)
        /// Nothing came, or nothing could be sent, for `Duration.patience`.
        case timedOut
    }

    private struct State: Sendable {
        var decoder = ResponseDecoder()
        var head: ResponseHead?
        var partialBody: [UInt8] = []
        var bodyCount: Int64 = 0
        var isClosed = false
        var wasReset = false
    }

    private let socket: Socket
    private let port: Int
    private let state = Mutex(State())

    /// Connects.
    /// - Parameter receiveBuffer: in bytes; `nil` leaves the system's default. A small one makes a slow client.
    package init(port: Int, receiveBuffer: Int? = nil) throws {
        self.port = port
        socket = try Socket.connected(port: port, receiveBuffer: receiveBuffer)
        try socket.setTimeouts(.patience)
    }

    deinit {
        close()
    }

    // MARK: - Whole exchanges

    /// Connects, makes one request, and disconnects.
    package static func get(
        port: Int, path: String, range: String? = nil, headers: [(String, String)] = [], method: String = "GET"
    ) throws -> Response {
        try RawClient(port: port).get(path, range: range, headers: headers + [("Connection", "close")], method: method)
    }

    /// Makes a request and reads the whole response.
    /// - Parameters:
    ///   - path: the request target, in any form.
    ///   - range: the value of `Range`, such as `"bytes=0-9"`.
    ///   - headers: further fields; a `Host` among them takes the place of the usual one.
    ///   - version: `"1.1"` or `"1.0"`.
    /// - Throws: `ResponseError`.
    package func get(
        _ path: String, range: String? = nil, headers: [(String, String)] = [], method: String = "GET",
        version: String = "1.1"
    ) throws -> Response {
        try send(request(path, range: range, headers: headers, method: method, version: version))
        return try readResponse(method: method)
    }

    /// Sends raw requests in one go and reads the response to each. `request(_:)` composes them.
    package func pipeline(_ requests: [String]) throws -> [Response] {
        try send(requests.joined())
        return try requests.map { try readResponse(method: String($0.prefix { $0 != " " })) }
    }

    // MARK: - Step by step

    /// Composes a request without a body; the parameters are those of `get`.
    package func request(
        _ path: String, range: String? = nil, headers: [(String, String)] = [], method: String = "GET",
        version: String = "1.1"
    ) -> String {
        var fields = HeaderList()
        fields.append("Host", "127.0.0.1:\(port)")
        if let range { fields.append("Range", range) }
        fields.replace(with: headers)
        return "\(method) \(path) HTTP/\(version)\r\n" + fields.fields.map { "\($0.name): \($0.value)\r\n" }.joined()
            + "\r\n"
    }

    /// Sends `text` as it is.
    package func send(_ text: String) throws {
        try mappingTimeout { try socket.send(text) }
    }

    /// Sends `bytes` as they are.
    package func send(_ bytes: [UInt8]) throws {
        try mappingTimeout { try bytes.withUnsafeBytes { try socket.send($0) } }
    }

    /// Sends what the sockets take now of `bytes`.
    /// - Returns: how many of them that were; 0 where the server has to read first.
    package func sendWhatFits(_ bytes: ArraySlice<UInt8>) throws -> Int {
        let count = bytes.withUnsafeBytes {
            Glibc.send(socket.descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
        }
        if count < 0 && errno != EAGAIN { throw SystemError("send") }
        return max(0, count)
    }

    /// Reads one whole response, interim ones (1xx) skipped.
    package func readResponse(method: String = "GET") throws -> Response {
        let head = try readHead(method: method)
        while true {
            let piece = try readBody(upTo: 1 << 20)
            if piece.isEmpty { return Response(head: head, body: partialBody) }
            state.withLock { $0.partialBody += piece }
        }
    }

    /// Reads up to the end of the next head, which may be an interim one (1xx).
    package func readInterimHead() throws -> ResponseHead {
        while true {
            if let head = try state.withLock({ try $0.decoder.nextHead(method: "GET") }) { return head }
            if try !receive() { throw ResponseError.closedBeforeHead }
        }
    }

    /// Reads up to the end of a final response's head. The body is then read by `readBody`.
    /// - Parameter method: of the request; the response to HEAD has no body.
    package func readHead(method: String = "GET") throws -> ResponseHead {
        while true {
            if let head = try state.withLock({ try $0.decoder.nextHead(method: method) }) {
                if head.status < 200, head.status != 101 { continue }
                state.withLock {
                    $0.head = head
                    $0.partialBody = []
                    $0.bodyCount = 0
                }
                return head
            }
            if try !receive() { throw ResponseError.closedBeforeHead }
        }
    }

    /// Waits for body bytes and returns what is there, at least one byte and at most `n`. Empty at the end of the body.
    /// - Throws: `ResponseError.truncated` when the connection ended before the body did.
    package func readBody(upTo n: Int) throws -> [UInt8] {
        while true {
            switch try state.withLock({ try $0.decoder.nextBody(upTo: n) }) {
            case .end: return []
            case .bytes(let bytes):
                state.withLock { $0.bodyCount += Int64(bytes.count) }
                return bytes
            case .starved:
                if try receive() { continue }
                return try state.withLock { state in
                    // A body that ends with its connection is complete only where that ends in good order.
                    if state.decoder.mayEndHere && !state.wasReset { return [] }
                    let length =
                        state.head?.headers["Transfer-Encoding"] == nil ? state.head?.headers["Content-Length"] : nil
                    throw ResponseError.truncated(received: state.bodyCount, expected: length.flatMap { Int64($0) })
                }
            }
        }
    }

    /// Reads exactly `n` body bytes.
    /// - Throws: `ResponseError.truncated` when the body, or the connection, ended before.
    package func readBody(exactly n: Int) throws -> [UInt8] {
        var body: [UInt8] = []
        while body.count < n {
            let piece = try readBody(upTo: n - body.count)
            if piece.isEmpty { throw ResponseError.truncated(received: Int64(body.count), expected: Int64(n)) }
            body += piece
        }
        return body
    }

    /// What `readResponse` or `get` has read of the body: after `truncated`, what came before the cut.
    package var partialBody: [UInt8] { state.withLock { $0.partialBody } }

    /// Whether all that was sent is in the other end's socket: its kernel has acknowledged it.
    package var hasArrived: Bool { allHasArrived(socket.descriptor) }

    /// Whether no byte has come that is still to be read.
    package var hasNothing: Bool {
        var entry = pollfd(fd: socket.descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&entry, 1, 0) == 0
    }

    /// Everything from here to the end of the connection, undecoded. A reset counts as an end.
    package func readUntilClosed() throws -> [UInt8] {
        while try receive() {}
        return state.withLock { $0.decoder.takeAll() }
    }

    /// Whether the server ends the connection `within` that time. Bytes that come first are kept for later reads.
    package func isClosedByPeer(within patience: Duration = .patience) throws -> Bool {
        let end = ContinuousClock.now + patience
        while true {
            var entries = [pollfd(fd: socket.descriptor, events: Int16(POLLIN), revents: 0)]
            if try !pollEvents(&entries, within: end - .now) { return false }
            if try !receive() { return true }
        }
    }

    // MARK: - The connection

    /// Sets the receive buffer of the open connection. That limits what is still to be announced; for a small window
    /// from the start give it to `init`.
    package func setReceiveBuffer(_ bytes: Int) throws {
        try socket.set(SOL_SOCKET, SO_RCVBUF, Int32(bytes))
    }

    /// Disconnects. Not while another thread reads.
    package func close() {
        let wasClosed = state.withLock { state in
            defer { state.isClosed = true }
            return state.isClosed
        }
        if !wasClosed { socket.close() }
    }

    /// Disconnects with a reset, as a player does that was killed in the middle.
    package func reset() {
        socket.resetOnClose()
        close()
    }

    /// Takes in what has come. False at the end of the stream.
    private func receive() throws -> Bool {
        let bytes: [UInt8]
        do {
            bytes = try mappingTimeout { try socket.receive(atMost: 256 * 1024) }
        } catch let error as SystemError where error.code == ECONNRESET {
            state.withLock { $0.wasReset = true }
            return false
        }
        state.withLock { $0.decoder.append(bytes) }
        return !bytes.isEmpty
    }

    private func mappingTimeout<T>(_ body: () throws -> T) throws -> T {
        do {
            return try body()
        } catch let error as SystemError where error.code == EAGAIN {
            throw ResponseError.timedOut
        }
    }
}

extension RawClient.ResponseHead {
    /// Parses a head without its last empty line.
    init(_ text: String) throws {
        let lines = text.components(separatedBy: "\r\n")
        let parts = lines[0].split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false).map(String.init)
        guard parts.count >= 2, parts[0].hasPrefix("HTTP/1."), parts[1].count == 3, let status = Int(parts[1]) else {
            throw RawClient.ResponseError.malformed("status line \(lines[0])")
        }
        guard let headers = HeaderList(lines: Array(lines.dropFirst())) else {
            throw RawClient.ResponseError.malformed("header \(text)")
        }
        self.init(version: parts[0], status: status, reason: parts.count > 2 ? parts[2] : "", headers: headers)
    }
}

extension Range<Int64> {
    /// This half-open range as the value of a `Range` field, where it is inclusive: `bytes=0-9`. Not for empty ranges.
    package var rangeField: String { "bytes=\(lowerBound)-\(upperBound - 1)" }
}
