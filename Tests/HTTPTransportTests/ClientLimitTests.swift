import CachePolicy
import EventIO
import HTTPTransport
import TestSupport
import Testing

/// Clients that have too many connections, or send too many requests: each is refused in one line, and nobody else is
/// affected.
@Suite struct ClientLimitTests {
    private static func rules(
        trusted: [String] = [], expectsHeader: Bool = false, _ configure: (inout ClientLimits) throws -> Void
    ) throws -> ClientRules {
        var limits = ClientLimits()
        try configure(&limits)
        var clients = ClientRules(limits: Current(limits))
        clients.trusted = try TrustedAddresses(trusted)
        clients.expectsProxyHeader = expectsHeader
        return clients
    }

    private static func expectRefusal(
        _ response: RawClient.Response, _ status: Int, naming setting: String,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        #expect(response.status == status, sourceLocation: sourceLocation)
        #expect(Int(response.headers["Retry-After"] ?? "") ?? 0 > 0, sourceLocation: sourceLocation)
        #expect(
            response.text.contains(setting) && response.text.filter { $0 == "\n" }.count == 1, "\(response.text)",
            sourceLocation: sourceLocation)
    }

    @Test func connectionsBeyondAllAreRefusedUntilOneEnds() throws {
        let feed = Feed(.bytes([1]))
        let server = try TestServer(clients: Self.rules { $0.connections = 2 }) { exchange in
            exchange.target == "/busy" ? feed.answer(exchange, length: 2) : exchange.respond(200, text: "ok")
        }
        let busy = try server.client()
        try busy.send(busy.request("/busy"))
        _ = try busy.readHead()
        // An idle connection makes room for the next; a busy one does not.
        for _ in 0..<3 { #expect(try server.client().get("/a").status == 200) }
        let waiting = try server.client()
        try waiting.send("GET /half HTTP/1.1\r\n")
        let refused = try Self.refusal(of: server)
        Self.expectRefusal(refused, 503, naming: "max_connections")
        #expect(refused.headers["Connection"] == "close")
        feed.give(.bytes([2]), .end)
        #expect(try busy.readBody(exactly: 2) == [1, 2])
        busy.close()
        try Self.served(server)
    }

    /// Also where there may be more than without the limit.
    @Test func limitIsReachedBeforeConnectionsWait() throws {
        var limits = TransportLimits()
        limits.maxConnections = 1
        limits.maxConnectionsWhenRefusing = 3
        let feed = Feed(.bytes([1]))
        let clients = try Self.rules { $0.connections = 2 }
        let server = try TestServer(limits: limits, clients: clients) { feed.answer($0, length: 2) }
        let busy = try (0..<2).map { _ in
            let client = try server.client()
            try client.send(client.request("/busy"))
            return client
        }
        _ = try busy[0].readHead()
        Self.expectRefusal(try server.client().readResponse(), 503, naming: "max_connections")
    }

    /// Those of others are not closed for it.
    @Test func clientBeyondItsOwnLimitGetsNoRoom() throws {
        let clients = try Self.rules {
            $0.connections = 1
            $0.connectionsPerClient = 1
        }
        let server = try TestServer(clients: clients) { $0.respond(200, text: "ok") }
        let first = try server.client()
        #expect(try first.get("/a").status == 200)
        for _ in 0..<3 {
            Self.expectRefusal(try server.client().readResponse(), 429, naming: "max_connections_per_client")
        }
        #expect(try first.get("/b").status == 200)
        #expect(server.metrics.closedForRoom.value == 0)
    }

    /// A client that is refused for want of room has no place among its own either.
    @Test func refusedConnectionIsNotCounted() throws {
        let feed = Feed(.bytes([1]))
        let clients = try Self.rules {
            $0.connections = 1
            $0.connectionsPerClient = 2
        }
        let server = try TestServer(clients: clients) { feed.answer($0, length: 2) }
        let busy = try server.client()
        try busy.send(busy.request("/busy"))
        _ = try busy.readHead()
        for _ in 0..<5 { #expect(try server.client().readResponse().status == 503) }
    }

    /// The answer comes without a request, as a listener gives it.
    private static func refusal(of server: TestServer) throws -> RawClient.Response {
        while true {
            let client = try server.client()
            try client.send(client.request("/a"))
            let response = try client.readResponse()
            if response.status != 200 { return response }
        }
    }

    /// Waits until somebody is served again.
    private static func served(_ server: TestServer) throws {
        let end = ContinuousClock.now + .patience
        while try server.client().get("/a").status != 200 {
            guard ContinuousClock.now < end else { throw Unexpected("nobody is served") }
        }
    }

    @Test func clientWithTooManyConnectionsIsRefusedAlone() throws {
        var limits = TransportLimits()
        // However long the others take.
        limits.idleSeconds = 1e6
        let server = try TestServer(
            loops: 2, limits: limits,
            clients: Self.rules(trusted: ["127.0.0.2"], expectsHeader: true) { $0.connectionsPerClient = 20 }
        ) { $0.respond(200, text: "\($0.client.address)") }
        // These stay; those that are refused are many.
        let held = try (0..<20).map { _ in try server.client() }
        for client in held { #expect(try client.get("/a").status == 200) }
        for _ in 0..<50 {
            // At once, as far as the files of this process permit.
            let flood = try (0..<200).map { _ in try server.client() }
            for client in flood { try client.send(client.request("/a")) }
            for client in flood {
                let response = try client.readResponse()
                // The first that is not refused ends the test: ten thousand of them would say no more.
                try #require(response.status == 429 && response.headers["Connection"] == "close", "\(response)")
                Self.expectRefusal(response, 429, naming: "max_connections_per_client")
            }
        }
        for client in held { #expect(try client.get("/b").status == 200) }
        #expect(server.metrics.errors.values == ["max-connections-per-client": 10_000])
        #expect(server.metrics.acceptedConnections.value == 20)
        // A place that is given back is there for the next.
        held[0].close()
        try Self.served(server)
    }

    @Test func clientsOfAPROXYHeaderAreCountedByIt() throws {
        let server = try TestServer(
            clients: Self.rules(trusted: ["127.0.0.1"], expectsHeader: true) { $0.connectionsPerClient = 1 }
        ) { $0.respond(200, text: "\($0.client.address)") }
        func connect(_ address: String) throws -> (RawClient, RawClient.Response) {
            let client = try server.client()
            try client.send("PROXY TCP4 \(address) 198.51.100.2 1 443\r\n" + client.request("/a"))
            return (client, try client.readResponse())
        }
        let (first, answer) = try connect("192.0.2.1")
        #expect(answer.text == "192.0.2.1\n")
        let (_, refused) = try connect("192.0.2.1")
        Self.expectRefusal(refused, 429, naming: "max_connections_per_client")
        let (second, other) = try connect("192.0.2.2")
        #expect(other.text == "192.0.2.2\n")
        first.close()
        let end = ContinuousClock.now + .patience
        while try connect("192.0.2.1").1.status != 200 { #expect(ContinuousClock.now < end) }
        #expect(try second.get("/b").status == 200)
    }

    /// Its connections are for all of its clients.
    @Test func trustedProxyOfAPROXYHeaderIsNotOneClient() throws {
        let server = try TestServer(
            clients: Self.rules(trusted: ["127.0.0.1", "10.0.0.1"], expectsHeader: true) { $0.connectionsPerClient = 1 }
        ) { $0.respond(200, text: "\($0.client.address)") }
        let clients = try (1...3).map { _ in try server.client() }
        for (number, client) in clients.enumerated() {
            let request = client.request("/a", headers: [("X-Forwarded-For", "192.0.2.\(number)")])
            try client.send("PROXY TCP4 10.0.0.1 198.51.100.2 1 443\r\n" + request)
            #expect(try client.readResponse().text == "192.0.2.\(number)\n")
        }
    }

    @Test func runningRequestsOfAForwardedClientAreCounted() throws {
        let feed = Feed(.bytes([1]))
        let server = try TestServer(
            clients: Self.rules(trusted: ["127.0.0.1"]) { $0.connectionsPerClient = 1 }
        ) { exchange in
            exchange.target == "/busy" ? feed.answer(exchange, length: 2) : exchange.respond(200, text: "ok")
        }
        let balancer = try server.client(), other = try server.client()
        let one = [("X-Forwarded-For", "192.0.2.1")], two = [("X-Forwarded-For", "192.0.2.2")]
        try balancer.send(balancer.request("/busy", headers: one))
        _ = try balancer.readHead()
        Self.expectRefusal(try other.get("/a", headers: one), 429, naming: "max_connections_per_client")
        #expect(try other.get("/a", headers: two).status == 200 && other.get("/a").status == 200)
        feed.give(.bytes([2]), .end)
        #expect(try balancer.readBody(exactly: 2) == [1, 2])
        #expect(try balancer.get("/a", headers: one).status == 200 && other.get("/a", headers: one).status == 200)
    }

    @Test func requestsBeyondTheRateAreRefusedOnTheirConnection() throws {
        let server = try TestServer(
            clients: Self.rules(trusted: ["127.0.0.1"]) { $0.requestsPerClient = try RequestRate("3/h") }
        ) { $0.respond(200, text: "ok") }
        let client = try server.client()
        let one = [("Forwarded", "for=192.0.2.1")], two = [("Forwarded", "for=192.0.2.2")]
        for _ in 0..<3 { #expect(try client.get("/a", headers: one).status == 200) }
        for method in ["GET", "HEAD"] {
            try client.send(client.request("/a", headers: one, method: method))
            let refused = try client.readResponse(method: method)
            #expect(refused.status == 429 && refused.headers["Connection"] == nil)
            #expect((1...1201).contains(Int(refused.headers["Retry-After"] ?? "") ?? 0))
        }
        #expect(try client.get("/a", headers: two).status == 200)
        // The balancer's own requests, such as health checks, are nobody's.
        for _ in 0..<5 { #expect(try client.get("/a").status == 200) }
        #expect(server.metrics.errors.values == ["max-requests-per-client": 2])
    }

    @Test func limitsChangeWhileTheServerRuns() throws {
        let clients = try Self.rules { _ in }
        let server = try TestServer(clients: clients) { $0.respond(200, text: "ok") }
        let client = try server.client()
        for _ in 0..<5 { #expect(try client.get("/a").status == 200) }
        let rate = try RequestRate("1/h")
        clients.limits.change { $0.requestsPerClient = rate }
        #expect(try client.get("/a").status == 200 && client.get("/a").status == 429)
        clients.limits.change { $0.requestsPerClient = nil }
        #expect(try client.get("/a").status == 200)
    }
}
