import Glibc
import HTTPModel

/// The outcome of one request: a line of the access log.
package struct AccessRecord: Sendable, Equatable {
    /// When the request's header was complete, in seconds since 1970.
    package var time: Double
    /// Address and port.
    package var client: String
    package var method: String
    /// The URL of the requested resource, or the request target if there is none.
    package var url: String
    package var range: String?
    /// Nil if the client disconnected before it had an answer.
    package var status: Int?
    /// Bytes of the body that were given to the connection; of these, the bytes that were already stored, and
    /// those that arrived from the origin meanwhile.
    package var bytes, cacheBytes, originBytes: Int64
    /// From the complete header of the request to the first byte of the body, and to the end.
    package var firstByteMilliseconds: Double?
    package var milliseconds: Double
    /// Whether the whole answer was sent.
    package var isComplete: Bool
    package var userAgent: String?
    package var cacheStatus: String?
}

/// Receives a record of each answered request. Called on loops: it must not block.
package protocol AccessRecorder: Sendable {
    /// Whether records are needed; if not, none are made.
    var isOn: Bool { get }
    func record(_ record: AccessRecord)
}

extension AccessRecord {
    /// One line of JSON (RFC 8259), with its line end. Unknown members are left out; `docs/guide/http-api.md` lists
    /// them all.
    package var line: [UInt8] {
        var line = JSONLine()
        line.add("time", Self.text(time))
        line.add("client", client)
        line.add("method", method)
        line.add("url", url)
        line.add("range", range)
        line.add("status", number: status)
        line.add("bytes", number: bytes)
        line.add("cache_bytes", number: cacheBytes)
        line.add("origin_bytes", number: originBytes)
        line.add("first_byte_ms", number: firstByteMilliseconds)
        line.add("ms", number: milliseconds)
        line.add("complete", number: isComplete)
        line.add("player", userAgent)
        line.add("cache_status", cacheStatus)
        return line.end()
    }

    /// RFC 3339, in UTC, with milliseconds.
    private static func text(_ time: Double) -> String {
        var (seconds, parts) = (time_t(saturating: time), tm())
        gmtime_r(&seconds, &parts)
        func padded(_ number: some BinaryInteger, _ width: Int) -> String {
            let digits = String(number)
            return String(repeating: "0", count: max(0, width - digits.count)) + digits
        }
        // no trap: years of this machine's clock
        let date = [padded(parts.tm_year + 1900, 4), padded(parts.tm_mon + 1, 2), padded(parts.tm_mday, 2)].joined(
            separator: "-")
        let clock = [parts.tm_hour, parts.tm_min, parts.tm_sec].map { padded($0, 2) }.joined(separator: ":")
        return "\(date)T\(clock).\(padded(Int(saturating: (time - time.rounded(.down)) * 1000), 3))Z"
    }
}

/// A JSON object on one line, written member by member.
private struct JSONLine {
    private var bytes: [UInt8] = []

    mutating func add(_ name: StaticString, _ text: String?) {
        guard let text else { return }
        begin(name)
        bytes.append(UInt8(ascii: "\""))
        for scalar in text.unicodeScalars { append(scalar) }
        bytes.append(UInt8(ascii: "\""))
    }

    mutating func add(_ name: StaticString, number: (some CustomStringConvertible)?) {
        guard let number else { return }
        begin(name)
        bytes.append(contentsOf: number.description.utf8)
    }

    mutating func end() -> [UInt8] { bytes + Array("}\n".utf8) }

    private mutating func begin(_ name: StaticString) {
        bytes.append(contentsOf: (bytes.isEmpty ? "{" : ",").utf8)
        bytes.append(contentsOf: "\"\(name)\":".utf8)
    }

    /// Appends a character; control characters that a terminal would obey (C0, DEL and C1) are escaped.
    private mutating func append(_ scalar: Unicode.Scalar) {
        switch scalar {
        case "\"", "\\":
            bytes.append(contentsOf: [UInt8(ascii: "\\"), UInt8(scalar.value)]) // no trap: one of the two above
        case _ where scalar.value < 0x20 || 0x7F..<0xA0 ~= scalar.value:
            let digits = String(scalar.value, radix: 16)
            bytes.append(contentsOf: ("\\u" + String(repeating: "0", count: 4 - digits.count) + digits).utf8)
        default:
            bytes.append(contentsOf: String(scalar).utf8)
        }
    }
}
