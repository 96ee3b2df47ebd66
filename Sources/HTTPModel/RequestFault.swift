/// Why a request cannot be answered: a status, and one line of ASCII that tells the sender what to do.
package struct RequestFault: Error, Sendable, Equatable {
    package let status: Int
    package let reason: String

    package init(status: Int, reason: String) {
        self.status = status
        self.reason = reason
    }
}

extension RequestFault {
    private static func bad(_ reason: String) -> RequestFault { RequestFault(status: 400, reason: reason) }

    // Request line (RFC 9112 §3)
    static let notHTTP = bad("the request line is not HTTP: send METHOD, space, URL, space, HTTP/1.1")
    static let isTLS = bad("this port speaks plain HTTP, not TLS: begin the URL with http://")
    static let methodTooLong = RequestFault(
        status: 501, reason: "the method is not supported: use GET, HEAD or OPTIONS")
    static let badTarget = bad("the URL contains a control character: percent-encode it")
    static let noVersion = bad("HTTP/0.9 is not supported: end the request line with HTTP/1.1")
    static let badVersion = bad("the request line must end with HTTP/1.1: percent-encode spaces in the URL as %20")
    static let unsupportedVersion = RequestFault(
        status: 505, reason: "only HTTP/1.0 and HTTP/1.1 are supported: send HTTP/1.1")
    static let tooManyEmptyLines = bad("too many empty lines before the request: send the request line first")

    // Field lines (RFC 9112 §5)
    static let bareCarriageReturn = bad("a CR is not followed by LF: end each line with CR LF")
    static let foldedLine = bad("a header line begins with white space: send each field on one line")
    static let badFieldName = bad(
        "a header field's name contains a character that is not allowed: send NAME, colon, value")
    static let spaceBeforeColon = bad("a header field has white space before its colon: remove it")
    static let badFieldValue = bad("a header field's value contains a control character: remove it")

    // Contents of the fields (RFC 9112 §3.2 and §6)
    static let noHost = bad("the Host field is missing: HTTP/1.1 needs it")
    static let twoHosts = bad("there is more than one Host field: send one")
    static let badHost = bad("the Host field is not a host: send HOST or HOST:PORT")
    static let badContentLength = bad("Content-Length is not one number of bytes: send one, of digits only")
    static let twoFramings = bad("Content-Length and Transfer-Encoding contradict each other: send one of them")
    static let badCodings = bad("Transfer-Encoding must end with chunked, once: send Transfer-Encoding: chunked")
    static let unknownCoding = RequestFault(
        status: 501, reason: "the transfer coding is not supported: send Transfer-Encoding: chunked")
    static let unknownExpectation = RequestFault(
        status: 417, reason: "the expectation is not supported: send Expect: 100-continue, or none")
    static let encodingInHTTP10 = bad("HTTP/1.0 has no Transfer-Encoding: send HTTP/1.1 or Content-Length")

    static func hasBody(_ method: String) -> RequestFault { bad("a \(method) request must not have a body") }

    // Chunks (RFC 9112 §7.1)
    static let badChunk = bad(
        "the chunks of the body are malformed: send size in hexadecimal digits, CR LF, bytes, CR LF for each")
    static let chunkLineTooLong = bad("the line with a chunk's size is too long: send the size without extensions")
    static let badTrailer = bad("the trailer after the last chunk is not made of header fields: send CR LF")
    static let trailerTooLong = RequestFault(
        status: 431, reason: "the trailer after the last chunk is too long: send a shorter one, or none")

    // Limits
    static func targetTooLong(_ limit: Int) -> RequestFault {
        RequestFault(status: 414, reason: "the URL is longer than \(limit) bytes: send a shorter one")
    }

    static func headTooLong(_ limits: RequestLimits) -> RequestFault {
        RequestFault(status: 431, reason: "the header is longer than \(limits.maxHeadBytes) bytes: send a shorter one")
    }

    static func tooManyFields(_ limits: RequestLimits) -> RequestFault {
        RequestFault(status: 431, reason: "there are more than \(limits.maxFields) header fields: send fewer")
    }
}
