import HTTPModel
import Testing

/// Request heads for tests, written as text.
enum SampleRequest {
    /// What a browser sends when its player seeks.
    static let browser = """
        GET /https/media.example/a%20b.mp4?x=1 HTTP/1.1\r
        Host: 127.0.0.1:7335\r
        Connection: keep-alive\r
        User-Agent: Mozilla/5.0 (X11; Linux x86_64)\r
        Accept: */*\r
        Range: bytes=0-\r
        \r

        """

    static let valid = [
        browser,
        "GET / HTTP/1.0\r\n\r\n",
        "HEAD /http/a/b HTTP/1.1\nHost:a\nX-Empty:\n\n",
        "\r\n\nOPTIONS * HTTP/1.1\r\nHOST: \t a \t\r\nAccept: a,b\r\naccept: c\r\n\r\n",
        "GET /\u{E9}\u{1F3AC} HTTP/1.1\r\nHost: a\r\nX: \u{E9}\r\n\r\n",
        "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 5\r\n\r\n",
    ]

    /// From a copy of exactly the bytes, so that reading beyond them traps in a debug build.
    static func parse(
        _ bytes: some Collection<UInt8>, limits: RequestLimits = .init(), former: RequestHead.Rest? = nil,
        lines: RequestLines? = nil
    ) -> RequestParser.Outcome {
        Array(bytes).withUnsafeBytes { RequestParser.parse($0, limits: limits, former: former, lines: lines) }
    }

    static func head(_ text: String) throws -> RequestHead {
        guard case .complete(let head, _) = parse(text.utf8) else { throw NotARequest(text: text) }
        return head
    }

    /// A GET with these fields.
    static func get(_ fields: String...) throws -> RequestHead {
        try head("GET / HTTP/1.1\r\nHost: a\r\n" + fields.map { $0 + "\r\n" }.joined() + "\r\n")
    }

    static func fault(_ text: String, limits: RequestLimits = RequestLimits()) -> RequestFault? {
        guard case .invalid(let fault) = parse(text.utf8, limits: limits) else { return nil }
        return fault
    }

    struct NotARequest: Error {
        let text: String
    }
}

/// A result as a line of text, to compare whole results by.
func summary(_ result: RequestParser.Outcome) -> String {
    switch result {
    case .incomplete: "incomplete"
    case .invalid(let fault): "invalid \(fault.status) \(fault.reason)"
    case .complete(let head, let consumed):
        "complete \(consumed) \(head.method.name) \(head.target) \(head.version) \(head.fields.lines)"
    }
}
