import Glibc
import HTTPModel

extension AccessRecord {
    /// One line of JSON (RFC 8259), with its line end. Unknown members are left out; `docs/guide/http-api.md` lists
    /// them all.
    package var jsonLine: [UInt8] {
        var line = JSONLine()
        line.add("time", timeText)
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
        line.add("referer", referrer)
        line.add("cache_status", cacheStatus)
        return line.end()
    }

    /// RFC 3339, in UTC, with milliseconds.
    private var timeText: String {
        let parts = CalendarTime(time)
        return "\(parts.date)T\(parts.clock).\(CalendarTime.padded(parts.milliseconds, 3))Z"
    }
}

extension AccessRecord {
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

        /// Appends a character; those that a terminal would obey, or that end lines or turn the following text around,
        /// are escaped.
        private mutating func append(_ scalar: Unicode.Scalar) {
            switch scalar {
            case "\"", "\\":
                bytes.append(contentsOf: [UInt8(ascii: "\\"), UInt8(scalar.value)]) // no trap: one of the two above
            case _ where scalar.isEscapedInLines: bytes.append(contentsOf: scalar.escapedAsJSON.utf8)
            default:
                bytes.append(contentsOf: String(scalar).utf8)
            }
        }
    }
}
