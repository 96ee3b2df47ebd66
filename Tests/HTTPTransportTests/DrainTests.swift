import EventIO
import Glibc
@testable import HTTPTransport
import TestSupport
import Testing

/// A server that is stopped while it is in use.
@Suite struct DrainTests {
    private func server(loops: Int = 1, port: Int = 0, listener: InheritedListener? = nil, _ feed: Feed) throws
        -> TestServer
    {
        try TestServer(loops: loops, port: port, listener: listener) { exchange in
            switch exchange.target {
            case "/busy": feed.answer(exchange, length: 2)
            case "/health":
                exchange.count(as: .probe)
                exchange.respond(200, text: exchange.isDraining ? "draining" : "ok")
            default: exchange.respond(200, text: "ok")
            }
        }
    }

    /// Until the server says so.
    private func waitUntilDraining(_ server: TestServer) throws {
        let end = ContinuousClock.now + .patience
        while try server.client().get("/health").text != "draining\n" {
            guard ContinuousClock.now < end else { throw Unexpected("it does not drain") }
        }
    }

    @Test func drainingServerAnswersUntilNothingRuns() throws {
        let feed = Feed(.bytes([1])), place = try HeldPort()
        defer { withExtendedLifetime(place) {} }
        let server = try server(loops: 2, port: place.port, feed)
        let busy = try server.client(), kept = try server.client()
        #expect(try kept.get("/a").headers["Connection"] == nil)
        try busy.send(busy.request("/busy"))
        _ = try busy.readHead()
        let stopping = try Background { server.stop(graceSeconds: 600, quietSeconds: 0) }
        try waitUntilDraining(server)
        // New and kept connections are served, once more each.
        for client in [kept, try server.client()] {
            let answer = try client.get("/a")
            #expect(answer.text == "ok\n" && answer.headers["Connection"] == "close")
            #expect(try client.isClosedByPeer())
        }
        #expect(!stopping.isFinished)
        feed.give(.bytes([2]), .end)
        #expect(try busy.readBody(exactly: 2) == [1, 2])
        try stopping.value()
        #expect(throws: (any Error).self) { try server.client() }
    }

    /// It goes on sending requests until as many checks in a row have failed.
    @Test func balancerThatChecksHearsThreeTimesThatTheServerDrains() throws {
        let server = try server(Feed())
        // However long this machine takes between two checks.
        server.server.probes.ledger.withLock { $0.longestInterval = .max }
        let balancer = { try server.client().get("/health").text }
        // One more than it needs: the last is noted after its answer has been read.
        for _ in 0..<4 { #expect(try balancer() == "ok\n") }
        let stopping = try Background { server.stop(graceSeconds: 600, quietSeconds: 0.000_001) }
        try waitUntilDraining(server)
        // It would find nothing to wait for a few milliseconds later.
        let end = ContinuousClock.now + .milliseconds(200)
        while ContinuousClock.now < end { #expect(try server.client().get("/a").text == "ok\n") }
        #expect(try balancer() == "draining\n" && balancer() == "draining\n")
        try stopping.value()
    }

    @Test func inAHurryWhatRunsIsCut() throws {
        let feed = Feed(.bytes([1]))
        let server = try server(feed)
        let busy = try server.client()
        try busy.send(busy.request("/busy"))
        _ = try busy.readHead()
        let stopping = try Background { server.stop(graceSeconds: 600, quietSeconds: 600) }
        try waitUntilDraining(server)
        server.server.hurry()
        try stopping.value()
        #expect(feed.endedOnce)
    }

    /// A balancer may be sending a request on it at this moment.
    @Test func idleConnectionStaysOpenUntilTheEnd() throws {
        let server = try server(Feed())
        let kept = try server.client()
        #expect(try kept.get("/a").status == 200)
        let stopping = try Background { server.stop(graceSeconds: 600, quietSeconds: 600) }
        try waitUntilDraining(server)
        #expect(try kept.get("/b").headers["Connection"] == "close")
        server.server.hurry()
        try stopping.value()
    }

    // MARK: Inherited sockets

    @Test func serverOnAnInheritedSocketLeavesItsConnectionsToTheNext() throws {
        let listening = try listeningSocket()
        defer { close(listening) }
        let first = try server(loops: 2, listener: InheritedListener(dup(listening)), Feed())
        let port = first.port
        for _ in 0..<5 { #expect(try first.client().get("/a").status == 200) }
        first.stop(graceSeconds: 1)
        // Nobody serves; the kernel takes the connection all the same.
        let client = try RawClient(port: port)
        try client.send(client.request("/b"))
        let second = try server(loops: 2, listener: InheritedListener(dup(listening)), Feed())
        #expect(second.port == port)
        #expect(try client.readResponse().text == "ok\n")
    }

    @Test func whatDoesNotListenForTCPIsRefusedInOneLine() throws {
        var pair: [Int32] = [0, 0]
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &pair) == 0)
        let bound = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { for descriptor in pair + [bound] { close(descriptor) } }
        for descriptor in pair + [bound, 99_999] {
            do {
                _ = try InheritedListener(descriptor)
                Issue.record("\(descriptor) was accepted")
            } catch { #expect(error.description.contains("ListenStream=HOST:PORT")) }
        }
    }

    private func listeningSocket() throws -> Int32 {
        let listening = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let bound = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listening, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        try #require(bound == 0 && listen(listening, 100) == 0)
        return listening
    }
}
