import CachePolicy
import Glibc
import HTTPModel
import HTTPTransport

extension AccessLog {
    /// Writes records as lines of an access log, into one buffer that is used again.
    ///
    /// Requests repeat the texts of those before them: a text that is long or may contain a secret is escaped and
    /// masked once, then kept. It is escaped first, so that nothing is a secret in a line that was none in the text.
    struct Lines {
        /// The lines that are not written yet.
        var bytes: [UInt8] = []
        private let format: AccessLogFormat
        private let mask: URLMask
        let version: (policy: Int, format: Int)
        /// Texts as they are written, without their quotation marks.
        private var written: [String: [UInt8]] = [:]
        /// The time of the last line, in seconds since 1970, as it is written.
        private var (second, secondText): (Int64?, [UInt8]) = (nil, [])

        /// The most texts that are kept, and the length of the longest.
        private static let (mostKept, longestKept) = (512, 1024)
        private static let months = [
            "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
        ]

        /// - Parameter version: of the policy that `mask` is from, and of the format.
        init(_ format: AccessLogFormat, _ mask: URLMask, _ version: (policy: Int, format: Int)) {
            (self.format, self.mask, self.version) = (format, mask, version)
        }

        mutating func add(_ record: AccessRecord) {
            switch format {
            case .json: addJSON(record)
            case .combined: addCombined(record)
            }
        }

        // MARK: JSON

        /// An object of JSON (RFC 8259). Unknown members are left out; `docs/operators/monitoring.md` lists them all.
        private mutating func addJSON(_ record: AccessRecord) {
            // RFC 3339, in UTC, with milliseconds.
            bytes.append("{\"time\":\"")
            add(second: record.time.second)
            bytes.append(".")
            add(thousandths: record.time.millisecond)
            bytes.append("Z\"")
            add(",\"client\":\"", record.client)
            add(",\"method\":\"", record.method)
            add(",\"url\":\"", record.url)
            add(",\"range\":\"", record.range)
            add(",\"status\":", record.status.map { Int64($0) })
            add(",\"bytes\":", record.bytes)
            add(",\"cache_bytes\":", record.cacheBytes)
            add(",\"origin_bytes\":", record.originBytes)
            if let first = record.firstByteMicroseconds {
                bytes.append(",\"first_byte_ms\":")
                add(microseconds: first)
            }
            bytes.append(",\"ms\":")
            add(microseconds: record.microseconds)
            bytes.append(record.isComplete ? ",\"complete\":true" : ",\"complete\":false")
            add(",\"player\":\"", record.userAgent)
            add(",\"referer\":\"", record.referrer)
            if let status = record.cacheStatus {
                bytes.append(",\"cache_status\":\"")
                add(status)
                bytes.append("\"")
            }
            bytes.append("}\n")
        }

        private mutating func add(_ name: StaticString, _ text: String?) {
            guard let text else { return }
            bytes.append(name)
            add(text)
            bytes.append("\"")
        }

        private mutating func add(_ name: StaticString, _ number: Int64?) {
            guard let number else { return }
            bytes.append(name)
            bytes.append(decimal: number)
        }

        // MARK: Combined

        /// The combined format of Apache httpd, followed by what a cache knows besides:
        ///
        ///     CLIENT - - [TIME] "METHOD URL VERSION" STATUS BYTES "REFERER" "PLAYER" "CACHE-STATUS"
        ///         CACHE ORIGIN FIRST ALL
        ///
        /// `CACHE` and `ORIGIN` are bytes, `FIRST` and `ALL` milliseconds to the first byte and to the end. What is
        /// unknown is `-`. The status is 499, as nginx writes it, if the client disconnected before it had an answer.
        /// Source: https://httpd.apache.org/docs/2.4/logs.html#combined
        private mutating func addCombined(_ record: AccessRecord) {
            bytes.append(contentsOf: Self.host(of: record.client).utf8)
            bytes.append(" - - [")
            add(second: record.time.second)
            bytes.append("] \"")
            add(record.method)
            bytes.append(" ")
            add(record.url)
            bytes.append(record.version == .http10 ? " HTTP/1.0\" " : " HTTP/1.1\" ")
            bytes.append(decimal: Int64(record.status ?? 499))
            bytes.append(" ")
            if record.bytes > 0 { bytes.append(decimal: record.bytes) } else { bytes.append("-") }
            bytes.append(" \"")
            add(record.referrer ?? "-")
            bytes.append("\" \"")
            add(record.userAgent ?? "-")
            bytes.append("\" \"")
            if let status = record.cacheStatus { add(status) } else { bytes.append("-") }
            bytes.append("\" ")
            bytes.append(decimal: record.cacheBytes)
            bytes.append(" ")
            bytes.append(decimal: record.originBytes)
            bytes.append(" ")
            if let first = record.firstByteMicroseconds { add(microseconds: first) } else { bytes.append("-") }
            bytes.append(" ")
            add(microseconds: record.microseconds)
            bytes.append("\n")
        }

        /// The address without its port, and without the brackets of IPv6.
        private static func host(of client: String) -> Substring {
            client.hasPrefix("[") ? client.dropFirst().prefix { $0 != "]" } : client.prefix { $0 != ":" }
        }

        // MARK: Texts

        private mutating func add(_ text: String) {
            var text = text
            let isPlain = text.withUTF8 { $0.allSatisfy(Self.isPlain) }
            guard !isPlain else { return text.withUTF8 { bytes.append(contentsOf: $0) } }
            // Other strings may be equal, though their bytes are not: U+037E is a semicolon to Unicode.
            let isASCII = text.withUTF8 { $0.allSatisfy { $0 < 0x80 } }
            if isASCII, let known = written[text] { return bytes.append(contentsOf: known) }
            let new = mask.masked(escaped(text))
            bytes.append(contentsOf: new)
            guard isASCII, text.utf8.count <= Self.longestKept else { return }
            if written.count >= Self.mostKept { written.removeAll(keepingCapacity: true) }
            written[text] = new
        }

        private mutating func add(_ status: CacheStatus) {
            // Without these, it has no text from outside.
            status.key == nil && status.detail == nil ? status.write(to: &bytes) : add(status.fieldValue)
        }

        /// Whether a byte is written as it is, and begins neither a secret's name nor the part of a URL where one may
        /// be.
        private static func isPlain(_ byte: UInt8) -> Bool {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "#"), UInt8(ascii: "%"), UInt8(ascii: "&"), UInt8(ascii: "/"),
                UInt8(ascii: ";"), UInt8(ascii: "?"), ASCII.backslash:
                false
            default: ASCII.space <= byte && byte < 0x7F
            }
        }

        /// Escapes quotation marks, backslashes and `isEscapedInLines`: in JSON as its grammar has it, otherwise as
        /// Apache does: `\"`, `\\`, `\x1b`.
        private func escaped(_ text: String) -> [UInt8] {
            var bytes: [UInt8] = []
            for scalar in text.unicodeScalars {
                switch scalar {
                case "\"", "\\":
                    bytes.append(ASCII.backslash)
                    bytes.append(contentsOf: UTF8.encode(scalar)!)
                case _ where scalar.isEscapedInLines && format == .json:
                    bytes.append(contentsOf: scalar.escapedAsJSON.utf8)
                case _ where scalar.isEscapedInLines:
                    for byte in String(scalar).utf8 {
                        bytes.append(contentsOf: ("\\x" + (byte < 16 ? "0" : "") + String(byte, radix: 16)).utf8)
                    }
                default: bytes.append(contentsOf: String(scalar).utf8)
                }
            }
            return bytes
        }

        // MARK: Times

        /// Adds a second of this machine's clock, in UTC: `2026-11-23T16:41:45`, or `23/Nov/2026:16:41:45 +0000` as in
        /// the logs of web servers.
        private mutating func add(second: Int64) {
            if second != self.second { (self.second, secondText) = (second, text(ofSecond: second)) }
            bytes.append(contentsOf: secondText)
        }

        private func text(ofSecond second: Int64) -> [UInt8] {
            var (time, parts) = (time_t(second), tm())
            gmtime_r(&time, &parts)
            let month = Int(parts.tm_mon), name = Self.months.indices.contains(month) ? Self.months[month] : "Jan"
            let form = format == .json ? "%Y-%m-%dT%H:%M:%S" : "%d/\(name)/%Y:%H:%M:%S +0000"
            return [UInt8](unsafeUninitializedCapacity: 64) { buffer, count in
                count = buffer.withMemoryRebound(to: CChar.self) { strftime($0.baseAddress!, $0.count, form, &parts) }
            }
        }

        /// Adds milliseconds as a decimal fraction: `12.5`, `3.0`.
        private mutating func add(microseconds: UInt64) {
            bytes.append(decimal: microseconds / 1000)
            bytes.append(".")
            add(thousandths: Int64(microseconds % 1000)) // no trap: below 1000
            let end = bytes.count
            while bytes.last == UInt8(ascii: "0"), bytes.count > end - 2 { bytes.removeLast() }
        }

        /// Adds three digits.
        private mutating func add(thousandths: Int64) {
            for unit in [100, 10, 1] as [Int64] {
                bytes.append(UInt8(ascii: "0") + UInt8(thousandths / unit % 10)) // no trap: a digit
            }
        }
    }
}

extension Int64 {
    /// Of a time in milliseconds, the second, and the rest.
    fileprivate var second: Int64 { self >= 0 ? self / 1000 : (self &- 999) / 1000 }
    fileprivate var millisecond: Int64 { self &- second &* 1000 }
}
