/// What decides where a request ends and whom it is for: Host, Content-Length and Transfer-Encoding (RFC 9112 §3.2 and §6).
struct MessageFraming {
    private var hasHost = false
    private var contentLength: Int64?
    private var hasTransferEncoding = false

    /// Takes note of one field line. Names are told apart by length first: most lines end there.
    mutating func note(name: Slice<UnsafeRawBufferPointer>, value: Slice<UnsafeRawBufferPointer>) throws(RequestFault) {
        switch name.count {
        case 4 where ASCII.equalIgnoringCase(name, "host".utf8): try noteHost()
        case 14 where ASCII.equalIgnoringCase(name, "content-length".utf8): try noteContentLength(value)
        case 17 where ASCII.equalIgnoringCase(name, "transfer-encoding".utf8): try noteTransferEncoding()
        default: break
        }
    }

    /// What only the whole head shows.
    func check(_ method: RequestMethod, _ version: HTTPVersion) throws(RequestFault) {
        switch version {
        case .http11: guard hasHost else { throw .noHost }
        // RFC 9112 §6.1: framing by Transfer-Encoding is faulty there.
        case .http10: guard !hasTransferEncoding else { throw .encodingInHTTP10 }
        }
        if case .other = method { return }
        guard !hasTransferEncoding, contentLength ?? 0 == 0 else { throw .hasBody(method.name) }
    }

    private mutating func noteHost() throws(RequestFault) {
        guard !hasHost else { throw .twoHosts }
        hasHost = true
    }

    /// RFC 9110 §8.6: a list of one repeated number is that number; anything else is an attempt at request smuggling.
    private mutating func noteContentLength(_ value: Slice<UnsafeRawBufferPointer>) throws(RequestFault) {
        guard !hasTransferEncoding else { throw .twoFramings }
        for element in value.split(separator: ASCII.comma, omittingEmptySubsequences: false) {
            guard let length = ASCII.decimal(ASCII.trimmed(element)) else { throw .badContentLength }
            guard contentLength ?? length == length else { throw .badContentLength }
            contentLength = length
        }
    }

    private mutating func noteTransferEncoding() throws(RequestFault) {
        guard contentLength == nil else { throw .twoFramings }
        hasTransferEncoding = true
    }
}
