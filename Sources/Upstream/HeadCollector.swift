import HTTPModel

extension Hop {
    /// Assembles a response's head from curl's lines. Pure.
    ///
    /// Interim responses (1xx) before the final head, and trailers after it, count towards the limits, too.
    /// There are limits because most of the head is kept as long as the resource is open, each field is read several
    /// times, and curl keeps every line of a transfer, trailers included.
    struct HeadCollector {
        enum Outcome: Equatable {
            /// Nothing to do yet, or nothing any more.
            case more
            /// An interim response that concerns more than the connection.
            case interim(status: Int, fields: HeaderFields)
            case complete(status: Int, fields: HeaderFields)
            case malformed(String)
        }

        /// The total size of all heads and trailers of one hop. Media servers send 300 to 3,000 bytes; their longest
        /// field is a Content-Security-Policy.
        static let byteLimit = 32 * 1024
        /// Field lines of all heads and trailers of one hop.
        static let fieldLimit = 256

        private static let usualFields = 16

        private var status = 0
        private var fields = HeaderFields()
        private var bytes = 0
        private var lines = 0
        /// Whether a status line has arrived.
        private(set) var hasBegun = false
        private(set) var isComplete = false

        /// - Parameter line: one line with its line end, or the empty line that ends a head.
        mutating func take(_ line: UnsafeRawBufferPointer) -> Outcome {
            bytes += line.count
            guard bytes <= Self.byteLimit else {
                return .malformed("the head of the response is larger than \(Self.byteLimit) bytes")
            }
            var end = line.count
            while end > 0, line[end - 1] == 0x0A || line[end - 1] == 0x0D { end -= 1 }
            let text = UnsafeRawBufferPointer(rebasing: line[..<end])
            if text.isEmpty { return isComplete ? .more : endHead() }
            return !isComplete && Self.isStatusLine(text) ? startHead(text) : takeField(text)
        }

        /// The first letter decides about nearly all lines.
        private static func isStatusLine(_ line: UnsafeRawBufferPointer) -> Bool {
            line[0] == UInt8(ascii: "H") && line.starts(with: "HTTP/".utf8)
        }

        private mutating func startHead(_ line: UnsafeRawBufferPointer) -> Outcome {
            fields = HeaderFields()
            fields.lines.reserveCapacity(Self.usualFields)
            let digits = line.drop { $0 != ASCII.space }.drop { $0 == ASCII.space }.prefix { $0 != ASCII.space }
            guard let code = ASCII.decimal(digits, upTo: 999), code >= 100 else {
                return .malformed("status line \"\(Self.string(line))\"")
            }
            status = Int(code)
            hasBegun = true
            return .more
        }

        private mutating func takeField(_ line: UnsafeRawBufferPointer) -> Outcome {
            // RFC 9112 §5.2 lets a user agent join a folded line to the one before. No media server folds lines; one
            // that does intends to be read in two ways.
            guard line[0] != 0x20 && line[0] != 0x09 else { return .malformed("the head has a folded field line") }
            lines += 1
            guard lines <= Self.fieldLimit else {
                return .malformed("the head of the response has more than \(Self.fieldLimit) fields")
            }
            // A line without a colon is not a field; like browsers, skip it.
            guard !isComplete, let colon = line.firstIndex(of: ASCII.colon) else { return .more }
            let bytes = UnsafeRawBufferPointer(rebasing: line[..<colon]), name = Self.string(bytes)
            guard colon > 0, bytes.allSatisfy(ASCII.isToken) else {
                // Like browsers, skip what is no field. But curl does not recognize "Transfer-Encoding ", and would
                // leave the chunks' framing in the body; whoever else reads this head may take it for one (RFC 9112
                // §5.1).
                return Self.looksLikeFraming(name)
                    ? .malformed("the name of the field \"\(name)\" is not a token") : .more
            }
            let value = ASCII.trimmed(UnsafeRawBufferPointer(rebasing: line[(colon + 1)...]))
            if let value = Self.value(value, of: name) { fields.append(name, value) }
            return .more
        }

        /// Nil for a tag that is not UTF-8: it could not be sent back as it came, so it identifies nothing.
        private static func value(_ bytes: UnsafeRawBufferPointer, of name: String) -> String? {
            let text = bytes.bindMemory(to: UInt8.self)
            if let valid = String(utf8: text) { return valid }
            switch ASCII.lowercased(name) {
            case "etag": return nil
            // Like browsers: paths of servers whose file names are in another encoding.
            case "location", "content-location": return PercentEncoding.encodingNonASCII(bytes)
            default: return String(fieldValue: text)
            }
        }

        /// Whether a lenient reader may take a name for one of the fields that tell where the body ends, or what it is.
        private static func looksLikeFraming(_ name: String) -> Bool {
            let letters = ASCII.lowercased(name).utf8.filter(ASCII.isLetter)
            return ["transferencoding", "contentlength", "contentrange", "contentencoding"].contains {
                letters.elementsEqual($0.utf8)
            }
        }

        private mutating func endHead() -> Outcome {
            switch status {
            case 101: return .malformed("the origin switched protocols unasked")
            case 100..<200:
                defer { (status, fields) = (0, HeaderFields()) }
                return InterimResponse.isForClients(status) ? .interim(status: status, fields: fields) : .more
            case 0: return .more
            default:
                isComplete = true
                return .complete(status: status, fields: fields)
            }
        }

        private static func string(_ bytes: some Collection<UInt8>) -> String {
            String(decoding: bytes, as: UTF8.self)
        }
    }
}

extension HeaderFields {
    /// The length from `Content-Length`; nil if it is absent or overridden by `Transfer-Encoding` (RFC 9112 §6.3).
    /// - Throws: `protocolViolation` if the end of the body is ambiguous: a length that is not a number, several
    ///   lengths that differ, or a transfer coding other than `chunked`, which curl would not decode.
    func declaredLength() throws(UpstreamError) -> Int64? {
        if let codings = combined("Transfer-Encoding") {
            // RFC 9112 §7: we sent no TE, so no other coding is allowed.
            guard ASCII.equalIgnoringCase(ASCII.trimmed(codings), "chunked") else {
                throw .protocolViolation(detail: "Transfer-Encoding: \(codings)")
            }
            return nil
        }
        guard let list = combined("Content-Length") else { return nil }
        if let length = ByteNumber.parse(list.utf8) { return length }
        var length: Int64?
        for item in list.utf8.split(separator: ASCII.comma, omittingEmptySubsequences: false) {
            guard let value = ByteNumber.parse(item.drop(while: ASCII.isOptionalSpace)),
                length == nil || length == value
            else { throw .protocolViolation(detail: "Content-Length: \(list)") }
            length = value
        }
        return length
    }
}
