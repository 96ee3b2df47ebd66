import EventIO
import Foundation
import HTTPTransport
import TestSupport
import Testing

/// Clients that are slow, idle, too many or out of bounds.
@Suite struct LimitTests {
    private func server(_ configure: (inout TransportLimits) -> Void) throws -> TestServer {
        var limits = TransportLimits()
        configure(&limits)
        return try TestServer(limits: limits) { $0.respond(200, text: $0.request.target) }
    }

    @Test func requestThatDoesNotArriveInTimeIsAnswered408() throws {
        let server = try server { $0.requestSeconds = 0.1 }
        let client = try server.client { try $0.send("GET /a HTTP/1.1\r\nHost:") }
        let answer = try client.readResponse()
        #expect(answer.status == 408)
        #expect(answer.text == "the request did not arrive within 0.1 seconds: send it faster\n")
        #expect(answer.headers["Connection"] == "close")
        #expect(try client.isClosedByPeer())
        #expect(server.metrics.errors.values == ["request-timeout": 1])
    }

    /// The time runs from the first byte of a request, also of a later one.
    @Test func laterRequestThatDoesNotArriveInTimeIsAnswered408() throws {
        let server = try server { $0.requestSeconds = 0.5 }
        let client = try server.client { try $0.send($0.request("/a")) }
        #expect(try client.readResponse().status == 200)
        try client.send("GET /b HTTP/1.1\r\n")
        #expect(try client.readResponse().status == 408)
    }

    @Test func connectionThatSendsNothingIsClosedWithoutAnAnswer() throws {
        let server = try server { $0.requestSeconds = 0.1 }
        #expect(try server.client().readUntilClosed().isEmpty)
        #expect(server.metrics.errors.values.isEmpty)
    }

    @Test func idleConnectionIsClosed() throws {
        let server = try server {
            $0.requestSeconds = 20
            $0.idleSeconds = 0.1
        }
        let client = try server.client()
        #expect(try client.get("/a").status == 200)
        #expect(try client.readUntilClosed().isEmpty)
        try server.waitUntilIdle()
    }

    /// However long an answer takes: a paused player is no idle connection.
    @Test func connectionWithARunningAnswerIsNotIdle() throws {
        var limits = TransportLimits()
        limits.requestSeconds = 0.2
        limits.idleSeconds = 0.2
        let feed = Feed(.bytes([1]))
        let server = try TestServer(limits: limits) { exchange in
            if exchange.request.target == "/paused" {
                feed.answer(exchange, length: 2)
            } else {
                exchange.respond(200, text: "ok")
            }
        }
        let paused = try server.client { try $0.send($0.request("/paused")) }
        _ = try paused.readHead()
        // Others come and are timed out meanwhile.
        for _ in 1...3 {
            let other = try server.client { try $0.send($0.request("/other")) }
            #expect(try other.readResponse().status == 200)
            #expect(try other.isClosedByPeer())
        }
        feed.give(.bytes([2]), .end)
        #expect(try paused.readBody(exactly: 2) == [1, 2])
    }

    /// The kernel has all of its answer, and would drop that if the connection were closed.
    @Test(arguments: [true, false]) func connectionIsNotClosedBeforeAPausedPlayerHasTheEnd(keepsAlive: Bool) throws {
        var limits = TransportLimits()
        (limits.requestSeconds, limits.idleSeconds, limits.lingerSeconds, limits.maxConnections) = (0.2, 0.2, 0.2, 2)
        let all = [UInt8](repeating: 7, count: 400_000)
        let server = try TestServer(limits: limits) { exchange in
            exchange.request.target == "/paused"
                ? exchange.respond(Response(200, length: Int64(all.count)), body: exchange.source(of: all))
                : exchange.respond(200, text: "ok")
        }
        let paused = try server.client(receiveBuffer: 8192) {
            try $0.send($0.request("/paused", headers: keepsAlive ? [] : [("Connection", "close")]))
        }
        _ = try paused.readHead()
        // Others come and are timed out meanwhile, or make room for the next.
        for _ in 1...4 {
            let other = try server.client { try $0.send($0.request("/other")) }
            #expect(try other.readResponse().status == 200)
            #expect(try other.isClosedByPeer())
        }
        try server.waitUntilIdle(connections: 1)
        #expect(try paused.readBody(exactly: all.count) == all)
        #expect(try paused.isClosedByPeer())
        try server.waitUntilIdle()
    }

    /// As after a refusal: what it sends is dropped, for a moment only.
    @Test func connectionOfAClientThatSendsOnIsClosed() throws {
        var limits = TransportLimits()
        (limits.requestSeconds, limits.lingerSeconds) = (0.2, 0.2)
        let server = try TestServer(limits: limits) { exchange in
            let all = [UInt8](repeating: 7, count: 400_000)
            exchange.respond(Response(200, length: Int64(all.count)), body: exchange.source(of: all))
        }
        let client = try server.client(receiveBuffer: 8192) {
            try $0.send($0.request("/a", headers: [("Connection", "close")]))
        }
        _ = try client.readHead()
        try client.send("more")
        try server.waitUntilIdle()
    }

    // MARK: Bad requests

    @Test(arguments: [
        ("nonsense\r\n\r\n", 400), ("GET /a HTTP/3.0\r\n\r\n", 505), ("GET /a HTTP/1.1\r\n\r\n", 400),
        ("\u{16}\u{3}\u{1}\u{2}\r\n\r\n", 400),
    ])
    func badRequestIsAnsweredAndClosed(text: String, status: Int) throws {
        let server = try server { _ in }
        let client = try server.client()
        try client.send(text)
        let answer = try client.readResponse()
        #expect(answer.status == status)
        #expect(answer.headers["Connection"] == "close")
        #expect(!answer.text.isEmpty)
        #expect(try client.isClosedByPeer())
        #expect(server.metrics.errors.values == ["bad-request": 1])
    }

    @Test func badRequestBehindGoodOnesIsAnsweredInItsTurn() throws {
        let server = try server { _ in }
        let client = try server.client()
        try client.send(client.request("/a") + client.request("/b") + "nonsense\r\n\r\n" + client.request("/c"))
        #expect(try client.readResponse().text == "/a\n")
        #expect(try client.readResponse().text == "/b\n")
        #expect(try client.readResponse().status == 400)
        #expect(try client.readUntilClosed().isEmpty)
    }

    /// Closing a socket that holds unread input resets it, and the answer may be lost: the server reads on for a while.
    @Test func errorAnswerArrivesAlthoughTheClientKeepsSending() throws {
        let server = try server { $0.lingerSeconds = 20 }
        for _ in 0..<10 {
            let client = try server.client()
            try client.send("GET /a HTTP/1.1\r\n")
            let line = "X-Field: " + String(repeating: "x", count: 8000) + "\r\n"
            for _ in 0..<500 { try client.send(line) }
            #expect(try client.readResponse().status == 431)
            client.close()
        }
        try server.waitUntilIdle()
    }

    @Test func clientThatNeverStopsIsCutInTheEnd() throws {
        let server = try server {
            $0.requestSeconds = 0.2
            $0.lingerSeconds = 0.1
        }
        let client = try server.client { try $0.send("nonsense\r\n\r\n") }
        #expect(try client.readResponse().status == 400)
        // It does not close; the server does.
        try server.waitUntilIdle()
    }

    /// A client that pipelines without end while it reads nothing is not read ahead without end.
    @Test func pipeliningClientIsNotReadAheadWithoutEnd() throws {
        let exchanges = Monitor<[LoopBound<Exchange>]>([])
        let server = try TestServer { exchange in
            exchange.request.target == "/first"
                ? exchanges.update { $0.append(LoopBound(exchange, on: exchange.loop)) }
                : exchange.respond(200, text: exchange.request.target)
        }
        let client = try server.client()
        try client.send(client.request("/first"))
        let first = try exchanges.wait(for: "the request") { $0.first }
        // More than the sockets hold and than is read ahead: the sender has to wait for the first answer.
        let count = 3000, filler = String(repeating: "x", count: 8000)
        let sender = try Background {
            for index in 0..<count { try client.send(client.request("/\(index)", headers: [("X", filler)])) }
        }
        #expect(!sender.isFinished)
        first.post { $0.respond(200, text: "first") }
        #expect(try client.readResponse().text == "first\n")
        for index in 0..<count {
            let text = try client.readResponse().text
            if text != "/\(index)\n" { throw Unexpected("\(text) instead of /\(index)") }
        }
        try sender.value()
    }

    @Test func connectionsAboveTheLimitWaitForAPlace() throws {
        let server = try server {
            $0.maxConnections = 2
            $0.requestSeconds = 20
        }
        let clients = try (0..<2).map { _ in try server.client() }
        for client in clients { #expect(try client.get("/a").status == 200) }
        let third = try server.client()
        try third.send(third.request("/third"))
        clients[0].close()
        #expect(try third.readResponse().text == "/third\n")
        #expect(server.metrics.acceptedConnections.value == 3)
    }
}
