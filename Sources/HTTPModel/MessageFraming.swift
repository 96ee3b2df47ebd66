/// The fields that determine where a request ends and whom it is for: Host, Content-Length and Transfer-Encoding
/// (RFC 9112 §3.2 and §6), and the sender's expectation before it sends the body (RFC 9110 §10.1.1).
struct MessageFraming {
    private var hasHost = false
    private var contentLength: Int64?
    private var hasTransferEncoding = false
    private var isChunked = false
    private var hasUnknownCoding = false
    /// Whether the request has `Expect: 100-continue`.
    private(set) var expectsContinue = false
    private var expectsUnknown = false

    /// Notes one field line. Names are compared by length first, which rules out most lines.
    mutating func note(name: Slice<UnsafeRawBufferPointer>, value: Slice<UnsafeRawBufferPointer>) throws(RequestFault) {
        switch name.count {
        case 4 where Self.isNamed(name, "host"): try noteHost(value)
        case 6 where Self.isNamed(name, "expect"): noteExpectations(value)
        case 14 where Self.isNamed(name, "content-length"): try noteContentLength(value)
        case 17 where Self.isNamed(name, "transfer-encoding"): try noteTransferEncoding(value)
        default: break
        }
    }

    /// - Parameter name: as long as the sent one, in lower case.
    private static func isNamed(_ sent: Slice<UnsafeRawBufferPointer>, _ name: StaticString) -> Bool {
        let sent = UnsafeRawBufferPointer(rebasing: sent)
        for place in sent.indices where ASCII.lowercased(sent[place]) != name.utf8Start[place] { return false }
        return true
    }

    /// Checks what depends on the whole head.
    func check(_ method: RequestMethod, _ version: HTTPVersion) throws(RequestFault) -> BodyFraming {
        switch version {
        case .http11: guard hasHost else { throw .noHost }
        // RFC 9112 §6.1: Transfer-Encoding is faulty framing in HTTP/1.0.
        case .http10: guard !hasTransferEncoding else { throw .encodingInHTTP10 }
        }
        // RFC 9110 §10.1.1: HTTP/1.0 has no expectations.
        guard version == .http10 || !expectsUnknown else { throw .unknownExpectation }
        guard hasTransferEncoding || contentLength ?? 0 > 0 else { return .empty }
        guard case .other = method else { throw .hasBody(method.name) }
        guard !hasUnknownCoding else { throw .unknownCoding }
        return if let contentLength { .length(contentLength) } else { .chunked }
    }

    private mutating func noteHost(_ value: Slice<UnsafeRawBufferPointer>) throws(RequestFault) {
        guard !hasHost else { throw .twoHosts }
        guard Self.isHost(value) else { throw .badHost }
        hasHost = true
    }

    /// `uri-host [ ":" port ]` (RFC 9112 §3.2, RFC 3986 §3.2.2), which may be empty. In anything else, the host of a
    /// URL that begins with it could be another. Hosts in other letters than ASCII's are read elsewhere.
    private static func isHost(_ value: Slice<UnsafeRawBufferPointer>) -> Bool {
        let bytes = UnsafeRawBufferPointer(rebasing: value)
        var end = 0
        if bytes.first == UInt8(ascii: "[") {
            end = 1
            while end < bytes.count, isInName(bytes[end]) || bytes[end] == ASCII.colon { end += 1 }
            guard end < bytes.count, bytes[end] == UInt8(ascii: "]") else { return false }
            end += 1
        } else {
            while end < bytes.count, isInName(bytes[end]) { end += 1 }
        }
        guard end < bytes.count else { return true }
        return bytes[end] == ASCII.colon && bytes[(end + 1)...].allSatisfy(ASCII.isDigit)
    }

    /// Whether a registered name may contain it: `unreserved`, `pct-encoded` and `sub-delims`.
    private static func isInName(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."),
            UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "~"),
            UInt8(ascii: "!"), UInt8(ascii: "$")...UInt8(ascii: "'"), UInt8(ascii: "(")...UInt8(ascii: ","),
            UInt8(ascii: ";"), UInt8(ascii: "="), 0x80...:
            true
        default: false
        }
    }

    /// RFC 9110 §8.6: a list that repeats one number means that number; anything else is an attempt at request
    /// smuggling.
    private mutating func noteContentLength(_ value: Slice<UnsafeRawBufferPointer>) throws(RequestFault) {
        guard !hasTransferEncoding else { throw .twoFramings }
        for element in value.split(separator: ASCII.comma, omittingEmptySubsequences: false) {
            guard let length = ByteNumber.parse(ASCII.trimmed(element)) else { throw .badContentLength }
            guard contentLength ?? length == length else { throw .badContentLength }
            contentLength = length
        }
    }

    /// RFC 9112 §6.1 and §6.3: unless chunked is the last coding, the end cannot be determined.
    private mutating func noteTransferEncoding(_ value: Slice<UnsafeRawBufferPointer>) throws(RequestFault) {
        guard contentLength == nil else { throw .twoFramings }
        hasTransferEncoding = true
        for element in value.split(separator: ASCII.comma, omittingEmptySubsequences: false) {
            let coding = ASCII.trimmed(element)
            guard !isChunked, !coding.isEmpty else { throw .badCodings }
            isChunked = ASCII.equalIgnoringCase(coding, "chunked".utf8)
            if !isChunked { hasUnknownCoding = true }
        }
    }

    private mutating func noteExpectations(_ value: Slice<UnsafeRawBufferPointer>) {
        for element in value.split(separator: ASCII.comma) {
            let expectation = ASCII.trimmed(element)
            if ASCII.equalIgnoringCase(expectation, "100-continue".utf8) {
                expectsContinue = true
            } else if !expectation.isEmpty {
                expectsUnknown = true
            }
        }
    }
}
