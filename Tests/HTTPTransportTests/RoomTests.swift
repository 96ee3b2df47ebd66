import Activity
import EventIO
import Glibc
import HTTPTransport
import TestSupport
import Testing

/// New connections where there is no room for more: those that wait for nothing go.
@Suite struct RoomTests {
    @Test func idleConnectionIsClosedForANewOne() throws {
        var limits = TransportLimits()
        limits.maxConnections = 2
        let server = try TestServer(limits: limits) { $0.respond(200, text: $0.request.target) }
        let clients = try (0..<2).map { _ in try server.client() }
        for client in clients { #expect(try client.get("/a").status == 200) }
        let third = try server.client()
        #expect(try third.get("/third").text == "/third\n")
        #expect(try clients[0].isClosedByPeer())
        #expect(server.metrics.closedForRoom.value > 0)
    }

    /// The loop that accepts has none that is idle.
    @Test func idleConnectionOfAnotherLoopIsClosedForANewOne() throws {
        var limits = TransportLimits()
        limits.maxConnections = 4
        let held = Monitor<[LoopBound<Exchange>]>([])
        let server = try TestServer(loops: 2, limits: limits) { exchange in
            guard exchange.request.target == "/held" else {
                return exchange.respond(200, text: "\(exchange.loop.index)")
            }
            held.update { $0.append(LoopBound(exchange, on: exchange.loop)) }
        }
        // Two on each loop; those of one have answers that do not end.
        let clients = try (0..<4).map { _ in try server.client() }
        for client in clients where try client.get("/which").text == "0\n" { try client.send(client.request("/held")) }
        // Whichever loop accepts it.
        for _ in 0..<2 {
            let new = try server.client()
            #expect(try new.get("/new").status == 200)
            new.close()
        }
        #expect(server.metrics.closedForRoom.value > 0)
        for exchange in held.read({ $0 }) { exchange.post { $0.respond(200, text: "done") } }
    }

    /// The loop that accepts need not be that of the connection that ends.
    @Test(arguments: [1, 2]) func placeIsTakenAsSoonAsItIsFree(loops: Int) throws {
        var limits = TransportLimits()
        (limits.maxConnections, limits.requestSeconds, limits.sweepSeconds) = (2, 1e6, 1e6)
        let held = Monitor<[LoopBound<Exchange>]>([])
        let server = try TestServer(loops: loops, limits: limits) { exchange in
            if exchange.request.target == "/new" { return exchange.respond(200, text: "new") }
            held.update { $0.append(LoopBound(exchange, on: exchange.loop)) }
        }
        for _ in 1...5 {
            let clients = try (0..<2).map { _ in
                let client = try server.client()
                try client.send(client.request("/held", headers: [("Connection", "close")]))
                return client
            }
            let exchanges = try held.wait(for: "two requests") { $0.count == 2 ? $0 : nil }
            held.update { $0 = [] }
            let new = try server.client()
            try new.send(new.request("/new", headers: [("Connection", "close")]))
            for exchange in exchanges { exchange.post { $0.respond(200, text: "held") } }
            for client in clients {
                #expect(try client.readResponse().text == "held\n")
                client.close()
            }
            #expect(try new.readResponse().text == "new\n")
            new.close()
        }
    }

    /// Those that are at work stay, and the new one waits.
    @Test func busyConnectionStays() throws {
        var limits = TransportLimits()
        limits.maxConnections = 1
        let feed = Feed(.bytes([1]))
        let server = try TestServer(limits: limits) { exchange in
            exchange.request.target == "/long" ? feed.answer(exchange, length: 2) : exchange.respond(200, text: "short")
        }
        let long = try server.client()
        try long.send(long.request("/long"))
        _ = try long.readHead()
        let new = try server.client()
        try new.send(new.request("/new"))
        feed.give(.bytes([2]), .end)
        #expect(try long.readBody(exactly: 2) == [1, 2])
        #expect(try new.readResponse().text == "short\n")
    }
}
