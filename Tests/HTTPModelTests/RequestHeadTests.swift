import HTTPModel
import Testing

@Suite struct RequestHeadTests {
    @Test func valuesAreFoundWithoutRegardToCaseAndTrimmed() throws {
        let head = try SampleRequest.get("rANGE: \t bytes=0-1 \t", "X-Empty:", "X-Blank:  ", "X-Inner: a  b")
        #expect(head.value(of: "Range") == "bytes=0-1")
        #expect(head.value(of: "x-empty") == "")
        #expect(head.value(of: "x-blank") == "")
        #expect(head.value(of: "x-inner") == "a  b")
        #expect(head.value(of: "rang") == nil)
        #expect(head.value(of: "ranges") == nil)
        #expect(head.combined("absent") == nil)
    }

    @Test func repeatedFieldGivesTheFirstOrAllOfThem() throws {
        let head = try SampleRequest.get(
            "If-None-Match: \"a\"", "X: y", "if-none-match: \"b\", \"c\"", "IF-NONE-MATCH: \"d\"")
        #expect(head.value(of: "if-none-match") == "\"a\"")
        #expect(head.combined("if-none-match") == "\"a\", \"b\", \"c\", \"d\"")
        #expect(head.fields.combined("if-none-match") == head.combined("if-none-match"))
    }

    @Test func targetBeyondASCIIIsPercentEncodedByteForByte() throws {
        #expect(try SampleRequest.head("GET /\u{E9}x HTTP/1.0\r\n\r\n").target == "/%C3%A9x")
        let latin1 = Array("GET /".utf8) + [0xE9] + Array(" HTTP/1.0\r\n\r\n".utf8)
        guard case .complete(let head, _) = SampleRequest.parse(latin1) else {
            Issue.record("not complete")
            return
        }
        #expect(head.target == "/%E9")
    }

    @Test(
        arguments: [
            ("HTTP/1.1", nil, true), ("HTTP/1.1", "close", false), ("HTTP/1.1", "Keep-Alive", true),
            ("HTTP/1.1", "foo, CLOSE ", false),
            ("HTTP/1.1", "closed", true), ("HTTP/1.0", nil, false), ("HTTP/1.0", "keep-alive", true),
            ("HTTP/1.0", "a ,Keep-Alive", true),
            ("HTTP/1.0", "keep-alive, close", false),
        ] as [(String, String?, Bool)])
    func connectionIsKeptAsVersionAndOptionsSay(version: String, options: String?, isKept: Bool) throws {
        let field = options.map { "Connection: \($0)\r\n" } ?? ""
        #expect(try SampleRequest.head("GET / \(version)\r\nHost: a\r\n\(field)\r\n").keepsAlive == isKept)
    }

    @Test func secondConnectionFieldCounts() throws {
        #expect(try !SampleRequest.get("Connection: keep-alive", "Connection: close").keepsAlive)
    }

    // RFC 9112 §3.2
    @Test(arguments: [
        ("GET", "/film.mp4?a"), ("GET", "http://a.example:8080/film.mp4"), ("GET", "https://a.example"),
        ("CONNECT", "a.example:443"), ("CONNECT", "[2001:db8::1]:443"),
        ("OPTIONS", "*"),
    ])
    func targetOfEachFormIsTakenAsItIs(method: String, target: String) throws {
        #expect(try SampleRequest.head("\(method) \(target) HTTP/1.1\r\nHost: a\r\n\r\n").target == target)
    }

    @Test(arguments: [("http://a/", false), ("a:443", false), ("*", false), ("/http://a/", true)])
    func onlyAClientOfTheOriginFormIsKeptOverHTTP10(target: String, isKept: Bool) throws {
        #expect(try SampleRequest.head("GET \(target) HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").keepsAlive == isKept)
    }

    // RFC 9112 §9.3: to such a client we are a proxy.
    @Test func absoluteFormOverHTTP10IsNotKept() throws {
        #expect(try !SampleRequest.head("GET http://a/ HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").keepsAlive)
    }
}
