import CachePolicy
import EventIO
import HTTPTransport
import TestSupport
import Testing

/// Clients behind a balancer: who they are, by a PROXY header or by fields of their requests.
@Suite struct ProxyProtocolTests {
    /// Answers with the client that it sees, the address that this one used, and the target.
    private func server(
        trusted: [String], expectsHeader: Bool = true, _ configure: (inout TransportLimits) -> Void = { _ in }
    ) throws -> TestServer {
        var limits = TransportLimits()
        configure(&limits)
        var clients = ClientRules()
        clients.trusted = try TrustedAddresses(trusted)
        clients.expectsProxyHeader = expectsHeader
        return try TestServer(limits: limits, clients: clients) { exchange in
            exchange.respond(
                200,
                text:
                    "\(exchange.client.description) \(exchange.clientHost) \(exchange.localAddress) \(exchange.target)")
        }
    }

    private static let line = "PROXY TCP4 192.0.2.1 198.51.100.2 4660 443\r\n"
    private static let binary: [UInt8] =
        [0x0D, 0x0A, 0x0D, 0x0A, 0, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A, 0x21, 0x11, 0, 12]
        + [192, 0, 2, 1, 198, 51, 100, 2, 0x12, 0x34, 0x01, 0xBB]
    private static let forwarded = "192.0.2.1:4660 192.0.2.1 198.51.100.2:443"

    @Test(arguments: [Array(line.utf8), binary])
    func headerNamesTheClientOfAllRequestsAfterIt(header: [UInt8]) throws {
        let server = try server(trusted: ["127.0.0.1"])
        let client = try server.client()
        let requests = client.request("/a") + client.request("/b")
        try client.send(header + Array(requests.utf8))
        for target in ["/a", "/b"] { #expect(try client.readResponse().text == "\(Self.forwarded) \(target)\n") }
        // On the kept connection, no header comes again.
        #expect(try client.get("/c").text == "\(Self.forwarded) /c\n")
    }

    @Test(arguments: [Array(line.utf8), binary])
    func headerMayArriveInPieces(header: [UInt8]) throws {
        let server = try server(trusted: ["127.0.0.0/8"])
        let client = try server.client()
        for byte in header { try client.send([byte]) }
        for byte in client.request("/a").utf8 { try client.send([byte]) }
        #expect(try client.readResponse().text == "\(Self.forwarded) /a\n")
    }

    /// What was read for one client is not another's, although it sends the same fields.
    @Test func whatWasReadOfFieldsIsForTheirClientAlone() throws {
        final class Reading { let client: String; init(_ client: String) { self.client = client } }
        let made = Monitor(0)
        var clients = ClientRules()
        clients.trusted = try TrustedAddresses(["127.0.0.1"])
        clients.expectsProxyHeader = true
        let server = try TestServer(clients: clients) { exchange in
            let reading = exchange.reading as? Reading ?? Reading(exchange.clientHost)
            if reading !== exchange.reading { made.update { $0 += 1 } }
            exchange.keep(reading)
            exchange.respond(200, text: "\(reading.client) \(exchange.request.combined("Range") ?? "-")")
        }
        func text(of client: Int, from byte: Int, _ fields: [(String, String)] = []) throws -> String {
            let connection = try server.client()
            try connection.send("PROXY TCP4 192.0.2.\(client) 198.51.100.2 4660 443\r\n")
            let response = try connection.get("/", range: "bytes=\(byte)-", headers: fields)
            return response.text
        }
        // The second and the third connection share what was read on the first.
        for byte in 1...3 { #expect(try text(of: 1, from: byte) == "192.0.2.1 bytes=\(byte)-\n") }
        #expect(made.read { $0 } == 1)
        for client in [2, 1] { #expect(try text(of: client, from: 3) == "192.0.2.\(client) bytes=3-\n") }
        #expect(made.read { $0 } == 3)
        #expect(try text(of: 1, from: 3, [("Accept", "a")]) == "192.0.2.1 bytes=3-\n")
        #expect(made.read { $0 } == 4)
    }

    @Test func balancerThatSpeaksForItselfIsTheClient() throws {
        let server = try server(trusted: ["127.0.0.1"])
        let client = try server.client()
        try client.send("PROXY UNKNOWN\r\n" + client.request("/health"))
        let text = try client.readResponse().text
        #expect(text.hasPrefix("127.0.0.1:") && text.hasSuffix(" 127.0.0.1 127.0.0.1:\(server.port) /health\n"))
    }

    @Test(arguments: ["GET / HTTP/1.1\r\nHost: a\r\n\r\n", "PROXY TCP4 192.0.2.1\r\n", "PROXY TCP4 a b c d\r\nGET "])
    func connectionOfABalancerWithoutAHeaderIsRefusedInOneLine(text: String) throws {
        let server = try server(trusted: ["127.0.0.1"])
        let client = try server.client()
        try client.send(text)
        let answer = try client.readResponse()
        #expect(answer.status == 400 && answer.text.contains("PROXY header"), "\(answer.text)")
        #expect(answer.text.filter { $0 == "\n" }.count == 1)
        #expect(try client.isClosedByPeer())
        #expect(server.metrics.errors.values == ["bad-request": 1])
    }

    @Test func halfAHeaderIsRefusedWhenItsTimeIsOver() throws {
        let server = try server(trusted: ["127.0.0.1"]) { $0.requestSeconds = 0.1 }
        let client = try server.client { try $0.send(Array(Self.binary.prefix(20))) }
        let answer = try client.readResponse()
        #expect(answer.status == 408)
        #expect(answer.text == "the PROXY header did not arrive within 0.1 seconds: send it faster\n")
        // And without a byte, silently.
        #expect(try server.client().readUntilClosed().isEmpty)
        #expect(server.metrics.errors.values == ["request-timeout": 1])
    }

    @Test(arguments: [Array(line.utf8), binary], [true, false])
    func headerFromAnybodyElseIsRefusedInOneLine(header: [UInt8], expectsHeader: Bool) throws {
        let server = try server(trusted: ["192.0.2.7"], expectsHeader: expectsHeader)
        let client = try server.client()
        try client.send(header + Array(client.request("/a").utf8))
        let answer = try client.readResponse()
        #expect(answer.status == 400 && answer.text.contains("add 127.0.0.1 to trusted"), "\(answer.text)")
        #expect(answer.text.contains("set proxy_protocol to true") != expectsHeader)
        #expect(try client.isClosedByPeer())
        // HTTP is spoken with it as ever.
        #expect(try server.client().get("/b").status == 200)
    }

    // MARK: Fields

    @Test func fieldsOfATrustedBalancerNameTheClientOfEachRequest() throws {
        let server = try server(trusted: ["127.0.0.1"], expectsHeader: false)
        let client = try server.client()
        for (field, expected) in [
            (("Forwarded", "for=192.0.2.9"), "192.0.2.9 192.0.2.9 "),
            (("X-Forwarded-For", "8.8.8.8, 192.0.2.8:99"), "192.0.2.8:99 192.0.2.8 "),
        ] {
            #expect(try client.get("/a", headers: [field]).text.hasPrefix(expected))
        }
        #expect(try client.get("/a").text.hasPrefix("127.0.0.1:"))
        // One client's forged field is no reason to close the balancer's connection.
        let forged = try client.get("/a", headers: [("Forwarded", "for=127.0.0.1"), ("X-Forwarded-For", "192.0.2.8")])
        #expect(
            forged.status == 400 && forged.text.contains("different clients") && forged.headers["Connection"] == nil)
        #expect(try client.get("/b").status == 200)
    }

    @Test func fieldsOfAnybodyElseMeanNothing() throws {
        let server = try server(trusted: ["192.0.2.7"], expectsHeader: false)
        let client = try server.client()
        for field in [("Forwarded", "for=192.0.2.9"), ("X-Forwarded-For", "192.0.2.8"), ("Forwarded", "for=\"")] {
            #expect(try client.get("/a", headers: [field]).text.hasPrefix("127.0.0.1:"))
        }
    }

    /// What the PROXY header's client says of others counts only if it is trusted itself.
    @Test func clientOfAPROXYHeaderDoesNotNameAnother() throws {
        let server = try server(trusted: ["127.0.0.1", "10.0.0.1"])
        for (source, expected) in [("192.0.2.1", "192.0.2.1:1 "), ("10.0.0.1", "203.0.113.9 ")] {
            let client = try server.client()
            let request = client.request("/a", headers: [("X-Forwarded-For", "203.0.113.9")])
            try client.send("PROXY TCP4 \(source) 198.51.100.2 1 443\r\n" + request)
            #expect(try client.readResponse().text.hasPrefix(expected))
        }
    }

    private static func binary(_ command: UInt8, _ family: UInt8, _ rest: [UInt8]) -> [UInt8] {
        Array(binary.prefix(12)) + [command, family, 0, UInt8(rest.count)] + rest
    }

    private static let overTLS: [UInt8] = [0x20, 0, 5, 1, 0, 0, 0, 0]

    /// A balancer that does not read HTTP passes on whatever its client writes.
    @Test(arguments: [
        (Array(line.utf8), "192.0.2.1 nil nil nil"), (binary, "192.0.2.1 nil nil nil"),
        (binary(0x21, 0x11, binary.suffix(12) + overTLS), "192.0.2.1 https nil nil"),
        // It does not know the client.
        (Array("PROXY UNKNOWN\r\n".utf8), "127.0.0.1 nil nil nil"), (binary(0x21, 0, []), "127.0.0.1 nil nil nil"),
        (binary(0x21, 0x31, Array(repeating: 0, count: 216)), "127.0.0.1 nil nil nil"),
        // A trusted proxy before it, and the balancer itself.
        (Array("PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\n".utf8), "203.0.113.9 https tv.example 8443"),
        (binary(0x20, 0, []), "203.0.113.9 https tv.example 8443"),
    ])
    func fieldsBehindAPROXYHeaderCountOnlyIfItsClientIsTrusted(header: [UInt8], expected: String) throws {
        var clients = ClientRules()
        clients.trusted = try TrustedAddresses(["127.0.0.1", "10.0.0.1"])
        clients.expectsProxyHeader = true
        let server = try TestServer(clients: clients) { exchange in
            let stated = exchange.forwarded
            let (scheme, port) = (stated?.scheme.map { "\($0)" }, stated?.port.map { "\($0)" })
            exchange.respond(
                200, text: "\(exchange.clientHost) \(scheme ?? "nil") \(stated?.host ?? "nil") \(port ?? "nil")")
        }
        let client = try server.client()
        let fields = [
            ("X-Forwarded-For", "203.0.113.9"), ("X-Forwarded-Proto", "https"), ("X-Forwarded-Host", "tv.example"),
            ("X-Forwarded-Port", "8443"),
        ]
        try client.send(header + Array(client.request("/a", headers: fields).utf8))
        #expect(try client.readResponse().text == expected + "\n")
        // What does not count is not judged either.
        if !expected.hasPrefix("203.") {
            #expect(try client.get("/b", headers: [("Forwarded", "for=\"")]).status == 200)
        }
    }
}
