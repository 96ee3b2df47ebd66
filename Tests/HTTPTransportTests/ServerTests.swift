import Activity
import EventIO
import Foundation
import HTTPTransport
import TestSupport
import Testing

/// Loops, ports and the end.
@Suite struct ServerTests {
    @Test(arguments: [1, 2, 3, 4])
    func connectionsAreSpreadEvenlyOverTheLoops(loops: Int) throws {
        let server = try TestServer(loops: loops) { $0.respond(200, text: "\($0.loop.index)") }
        var counts = Array(repeating: 0, count: loops)
        let clients = try concurrently(64) { _ in
            let client = try server.client()
            return (client, try client.get("/a").text)
        }
        for (_, text) in clients { counts[try #require(Int(text.dropLast()))] += 1 }
        #expect(counts.max()! - counts.min()! <= 1, "\(counts)")
        #expect(server.metrics.connections.value == 64)
    }

    @Test func connectionStaysOnItsLoop() throws {
        let server = try TestServer(loops: 4) { $0.respond(200, text: "\($0.loop.index) \($0.loop.isCurrent)") }
        for _ in 0..<8 {
            let client = try server.client()
            let texts = try (0..<10).map { _ in try client.get("/a").text }
            #expect(Set(texts).count == 1 && texts[0].hasSuffix(" true\n"))
        }
    }

    /// Those that went leave their places to those that come.
    @Test func placesOfClosedConnectionsAreFilledAgain() throws {
        let server = try TestServer(loops: 2) { $0.respond(200, text: "\($0.loop.index)") }
        var clients: [(client: RawClient, text: String)] = []
        for _ in 0..<32 {
            let client = try server.client()
            clients.append((client, try client.get("/a").text))
        }
        for (client, text) in clients where text == "0\n" { client.close() }
        clients.removeAll { $0.text == "0\n" }
        #expect(clients.count == 16)
        try server.waitUntilIdle(connections: 16)
        for _ in 0..<16 {
            let client = try server.client()
            clients.append((client, try client.get("/a").text))
        }
        #expect(clients.count { $0.text == "0\n" } == 16)
    }

    // MARK: Ports

    @Test func freePortIsToldByTheAddress() throws {
        let server = try TestServer { $0.respond(200, text: "ok") }
        #expect(server.port > 0)
        #expect(server.server.address.description == "127.0.0.1:\(server.port)")
    }

    // Also by a socket that would share it.
    @Test(arguments: [false, true])
    func takenPortIsAnErrorThatSaysSo(isShared: Bool) throws {
        let taken = try Listener(isShared: isShared)
        do {
            _ = try TestServer(loops: 2, port: taken.port) { $0.respond(200, text: "ok") }
            Issue.record("it listens")
        } catch let error as ListenError {
            #expect(error.description.contains("127.0.0.1:\(taken.port)"))
            #expect(error.isPortTaken)
        }
    }

    @Test func portOfAnotherServerIsTaken() throws {
        let first = try TestServer(loops: 2) { $0.respond(200, text: "first") }
        #expect(throws: ListenError.self) {
            _ = try TestServer(loops: 2, port: first.port) { $0.respond(200, text: "second") }
        }
        #expect(try first.client().get("/a").text == "first\n")
    }

    @Test func portIsFreeAgainAfterStop() throws {
        // No other test is given it in between.
        let place = try HeldPort()
        defer { withExtendedLifetime(place) {} }
        let first = try TestServer(loops: 2, port: place.port) { $0.respond(200, text: "first") }
        let client = try first.client()
        _ = try client.get("/a")
        first.stop(graceSeconds: 0)
        let second = try TestServer(loops: 2, port: first.port) { $0.respond(200, text: "second") }
        #expect(try second.client().get("/a").text == "second\n")
    }

    @Test(arguments: [
        ("127.0.0.1:80", "127.0.0.1", 80), ("[::1]:8080", "::1", 8080), (":7335", "::", 7335),
        ("[::]:7335", "::", 7335), ("localhost:0", "localhost", 0),
    ])
    func addressIsReadAndPrinted(text: String, host: String, port: Int) throws {
        let address = try #require(ListenAddress(text))
        #expect(address.host == host && address.port == port && address.description == text)
        #expect(!address.isLoopback == (host == "::"))
    }

    @Test(arguments: ["", "localhost", "localhost:", "localhost:x", "localhost:65536", "localhost:-1", "::1:80", "80"])
    func whatIsNoAddressIsRefused(text: String) {
        #expect(ListenAddress(text) == nil)
    }

    @Test func hostThatDoesNotExistIsAnError() throws {
        let group = try EventLoopGroup(count: 1)
        try group.start()
        defer { group.stop() }
        #expect(throws: ListenError.self) {
            try HTTPServer(
                ListenAddress(host: "host.invalid", port: 0), loops: group.loops, limits: .init(),
                metrics: ProxyMetrics()
            ) { _ in Silent() }
        }
    }

    /// One file may be opened yet: a socket for the first loop, none for the second.
    @Test func listeningThatFailsLeavesThePortFree() async {
        await #expect(processExitsWith: .success) {
            let group = try EventLoopGroup(count: 2)
            try group.start()
            let port = try TestServer({ _ in }).port
            let next = open("/dev/null", O_RDONLY)
            close(next)
            var limit = rlimit()
            getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            let before = limit
            limit.rlim_cur = rlim_t(next) + 1
            setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            #expect(throws: ListenError.self) {
                try HTTPServer(
                    ListenAddress(host: "127.0.0.1", port: port), loops: group.loops, limits: .init(),
                    metrics: ProxyMetrics()
                ) { _ in Silent() }
            }
            limit = before
            setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            _ = try TestServer(port: port) { _ in }
            group.stop()
        }
    }

    // MARK: The end

    @Test func stopLetsARunningAnswerEndAndClosesTheRest() throws {
        let feed = Feed(.bytes([1])), place = try HeldPort()
        defer { withExtendedLifetime(place) {} }
        let server = try TestServer(port: place.port) { exchange in
            if exchange.request.target == "/running" {
                feed.answer(exchange, length: 3)
            } else {
                exchange.respond(200, text: "ok")
            }
        }
        let idle = try server.client(), running = try server.client()
        #expect(try idle.get("/a").status == 200)
        try running.send(running.request("/running"))
        _ = try running.readHead()
        let stop = try Background { server.stop(graceSeconds: 60) }
        #expect(try idle.readUntilClosed().isEmpty)
        // The listener went before the idle connections.
        #expect(throws: SystemError.self) { try server.client() }
        #expect(!stop.isFinished)
        feed.give(.bytes([2, 3]), .end)
        #expect(try running.readBody(exactly: 3) == [1, 2, 3])
        #expect(try running.isClosedByPeer())
        running.close()
        try stop.value()
        #expect(feed.endedOnce)
        #expect(server.metrics.connections.value == 0)
    }

    @Test func requestThatComesInWhileStoppingIsTheLast() throws {
        let exchanges = Monitor<[LoopBound<Exchange>]>([])
        let server = try TestServer { exchange in exchanges.update { $0.append(LoopBound(exchange, on: exchange.loop)) }
        }
        let client = try server.client(), idle = try server.client()
        try client.send(client.request("/a") + client.request("/b"))
        let exchange = try exchanges.wait(for: "the request") { $0.first }
        let stop = try Background { server.stop(graceSeconds: 60) }
        #expect(try idle.isClosedByPeer())
        exchange.post { $0.respond(200, text: "last") }
        let answer = try client.readResponse()
        #expect(answer.text == "last\n" && answer.headers["Connection"] == "close")
        #expect(try client.readUntilClosed().isEmpty)
        client.close()
        try stop.value()
        #expect(exchanges.read(\.count) == 1)
    }

    @Test func answersThatDoNotEndInTimeAreCut() throws {
        let feed = Feed(.bytes([1])), aborts = Monitor(0)
        let server = try TestServer(loops: 2) { exchange in
            if exchange.request.target == "/running" { return feed.answer(exchange, length: 3) }
            exchange.onAbort { aborts.update { $0 += 1 } }
        }
        let running = try server.client(), waiting = try server.client()
        try running.send(running.request("/running"))
        _ = try running.readHead()
        try waiting.send(waiting.request("/waiting"))
        try feed.waitForWait()
        server.stop(graceSeconds: 0)
        #expect(throws: RawClient.ResponseError.truncated(received: 1, expected: 3)) {
            while try !running.readBody(upTo: 9).isEmpty {}
        }
        #expect(throws: RawClient.ResponseError.closedBeforeHead) { try waiting.readHead() }
        #expect(feed.endedOnce)
        #expect(aborts.read { $0 } <= 1)
        #expect(server.metrics.connections.value == 0)
    }

    @Test func serverWithoutConnectionsStopsAtOnce() throws {
        let server = try TestServer(loops: 3) { $0.respond(200, text: "ok") }
        let stop = try Background { server.stop(graceSeconds: 3600) }
        try stop.value()
    }

    /// Each loop's handler, and what it holds on to, goes with its server.
    @Test func stoppedServerLetsGoOfItsHandlers() throws {
        let count = Monitor(0)
        let group = try EventLoopGroup(count: 2)
        try group.start()
        do {
            let server = try HTTPServer(
                ListenAddress(host: "127.0.0.1", port: 0), loops: group.loops, limits: .init(), metrics: ProxyMetrics()
            ) { _ in CountedHandler(count) }
            #expect(count.read { $0 } == 2)
            server.stop(graceSeconds: 0)
        }
        group.stop()
        // Once: the balance and the loops' servers hold each other.
        #expect(count.read { $0 } == 0)
    }
}

private final class Silent: RequestHandler {
    func handle(_ exchange: Exchange) {}
}

private final class CountedHandler: RequestHandler {
    private let count: Monitor<Int>

    init(_ count: Monitor<Int>) {
        self.count = count
        count.update { $0 += 1 }
    }

    deinit { count.update { $0 -= 1 } }

    func handle(_ exchange: Exchange) {}
}

/// Somebody else's listening socket on 127.0.0.1.
private final class Listener {
    private let descriptor: Int32
    let port: Int

    /// - Parameter isShared: whether it lets others listen there too (`SO_REUSEPORT`).
    init(isShared: Bool) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var on: Int32 = 1
        let size = socklen_t(MemoryLayout<Int32>.size)
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, size)
        if isShared { setsockopt(descriptor, SOL_SOCKET, SO_REUSEPORT, &on, size) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let descriptor = descriptor
        let outcome = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, length) | listen(descriptor, 8) | getsockname(descriptor, $0, &length)
            }
        }
        guard outcome == 0 else { throw SystemError("listen") }
        port = Int(UInt16(bigEndian: address.sin_port))
    }

    deinit { close(descriptor) }
}
