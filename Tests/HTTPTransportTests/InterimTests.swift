import HTTPModel
import HTTPTransport
import TestSupport
import Testing

/// Responses before the answer (RFC 9110 §15.2).
@Suite struct InterimTests {
    private static let hints = HeaderFields([
        .init(name: "Link", value: "</a.css>; rel=preload"), .init(name: "X-A", value: "b"),
    ])

    @Test func interimResponsesPrecedeTheAnswer() throws {
        let server = try TestServer { exchange in
            for status in [102, 103] { exchange.sendInterim(status, Self.hints) }
            exchange.respond(200, text: exchange.request.target)
            exchange.sendInterim(103, Self.hints)
        }
        let client = try server.client()
        for path in ["/a", "/b"] {
            try client.send(client.request(path))
            let first = try client.readInterimHead()
            #expect(first.status == 102 && first.version == "HTTP/1.1" && first.reason == "Processing")
            #expect(first.headers.fields.map(\.name) == ["Link", "X-A"])
            let second = try client.readInterimHead()
            #expect(second.status == 103 && second.reason == "Early Hints")
            #expect(try client.readResponse().text == path + "\n")
        }
    }

    @Test func clientOfHTTP10GetsTheAnswerAlone() throws {
        let server = try TestServer { exchange in
            exchange.sendInterim(103, Self.hints)
            exchange.respond(200, text: "a")
        }
        let client = try server.client()
        try client.send(client.request("/a", version: "1.0"))
        #expect(try client.readInterimHead().status == 200)
    }

    /// They are held in memory for a client that does not read.
    @Test(arguments: [(100, 16), (4000, 8)]) func thereAreOnlyAFew(length: Int, count: Int) throws {
        let fields = HeaderFields([.init(name: "Link", value: String(repeating: "x", count: length))])
        let server = try TestServer { exchange in
            for _ in 0..<1000 { exchange.sendInterim(103, fields) }
            exchange.respond(200, text: "a")
        }
        let client = try server.client()
        try client.send(client.request("/a"))
        var seen = 0
        while try client.readInterimHead().status == 103 { seen += 1 }
        #expect(seen == count)
    }
}
