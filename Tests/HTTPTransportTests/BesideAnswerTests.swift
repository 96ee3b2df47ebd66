import HTTPModel
import HTTPTransport
import TestSupport
import Testing

/// A request's body that comes in while its answer goes out.
@Suite struct BesideAnswerTests {
    private static func head(_ fields: String...) -> String {
        "POST /upload HTTP/1.1\r\nHost: a\r\n" + fields.map { $0 + "\r\n" }.joined() + "\r\n"
    }

    /// A server that answers at once with the feed and goes on reading.
    private static func server(_ upload: Upload, _ feed: Feed, length: Int64? = nil, limits: TransportLimits = .init())
        throws -> TestServer
    {
        try TestServer(limits: limits) { exchange in
            upload.read(exchange, answer: { _ in })
            feed.answer(exchange, length: length, keepsReading: true)
        }
    }

    @Test(arguments: [true, false])
    func bodyComesInUntilTheAnswerIsOut(isWhole: Bool) throws {
        let upload = Upload(), feed = Feed(.bytes([1, 2]))
        let server = try Self.server(upload, feed)
        let client = try server.client()
        let body = Media(seed: 32, size: 1_000_000).allBytes
        try client.send(Self.head("Content-Length: \(body.count)"))
        let head = try client.readHead()
        // So much would not be dropped, if it were not wanted in the end.
        #expect(head.status == 200 && head.headers["Connection"] == "close")
        let count = isWhole ? body.count : 1000
        try client.send(Array(body[..<count]))
        try upload.waitForBytes(count)
        if isWhole { #expect(try upload.waitForEnd() == nil) }
        feed.give(.bytes([3]), .end)
        #expect(try client.readBody(upTo: 100) == [1, 2])
        #expect(try client.readBody(upTo: 100) == [3])
        #expect(try client.readBody(upTo: 100).isEmpty)
        #expect(try client.isClosedByPeer())
        try feed.waitForFinish()
        #expect(upload.state.read { $0.ends == (isWhole ? 1 : 0) && $0.faults.isEmpty && $0.callsAfterTheEnd == 0 })
        #expect(feed.endedOnce)
    }

    @Test func restOfAShortBodyIsDroppedAndTheConnectionKept() throws {
        let upload = Upload(), feed = Feed(.bytes([1, 2]))
        let server = try Self.server(upload, feed, length: 2)
        let client = try server.client()
        try client.send(Self.head("Content-Length: 10") + "hello")
        #expect(try client.readHead().status == 200)
        try upload.waitForBytes(5)
        feed.give(.end)
        try feed.waitForFinish()
        #expect(try client.readBody(upTo: 100) == [1, 2])
        try client.send("world" + Self.head("Content-Length: 0"))
        #expect(try client.readHead().status == 200)
        #expect(upload.has(Array("hello".utf8)))
    }

    @Test func clientThatStopsSendingIsCut() throws {
        var limits = TransportLimits()
        (limits.requestSeconds, limits.lingerSeconds) = (0.3, 0.2)
        let upload = Upload(), feed = Feed(.bytes([1, 2]))
        let server = try Self.server(upload, feed, limits: limits)
        let client = try server.client { try $0.send(Self.head("Content-Length: 10") + "hello") }
        #expect(try client.readHead().status == 200)
        guard case .refused(let fault)? = try upload.waitForEnd() else {
            Issue.record("no fault")
            return
        }
        #expect(fault.status == 408)
        #expect(throws: RawClient.ResponseError.self) { while try !client.readBody(upTo: 100).isEmpty {} }
        try feed.waitForFinish()
        #expect(upload.endedOnce && feed.endedOnce)
    }

    @Test func clientThatLeavesEndsBoth() throws {
        let upload = Upload(), feed = Feed(.bytes([1, 2]))
        let server = try Self.server(upload, feed)
        let client = try server.client()
        try client.send(Self.head("Content-Length: 10") + "hello")
        #expect(try client.readHead().status == 200)
        client.close()
        #expect(try upload.waitForEnd() == .disconnected)
        try feed.waitForFinish()
        #expect(upload.endedOnce && feed.endedOnce)
    }

    /// `100 Continue` amid an answer would be taken for a part of it.
    @Test func clientThatWaitsFor100IsNotAskedAnyMore() throws {
        let upload = Upload(), feed = Feed(.bytes([1, 2]))
        let server = try Self.server(upload, feed, length: 4)
        let client = try server.client()
        try client.send(Self.head("Content-Length: 10", "Expect: 100-continue"))
        #expect(try client.readInterimHead().status == 200)
        try feed.waitForWait()
        feed.give(.bytes([3, 4]), .end)
        var body: [UInt8] = []
        while case let piece = try client.readBody(upTo: 100), !piece.isEmpty { body += piece }
        #expect(body == [1, 2, 3, 4])
    }
}
