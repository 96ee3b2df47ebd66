import EventIO
import HTTPTransport
import TestSupport
import Testing

/// Answers that do not come to their end, by whoever's doing.
@Suite struct CutTests {
    @Test(arguments: [10, nil] as [Int64?])
    func cutBodyEndsWithoutACleanEnd(length: Int64?) throws {
        let feed = Feed(.bytes([1, 2, 3]), .cut)
        let server = try TestServer { feed.answer($0, length: length) }
        let client = try server.client()
        #expect(throws: RawClient.ResponseError.truncated(received: 3, expected: length)) { try client.get("/a") }
        #expect(client.partialBody == [1, 2, 3])
        #expect(feed.endedOnce)
    }

    @Test func bodyThatIsShorterThanItsLengthIsCut() throws {
        let feed = Feed(.bytes([1, 2, 3]), .end)
        let server = try TestServer { feed.answer($0, length: 4) }
        #expect(throws: RawClient.ResponseError.truncated(received: 3, expected: 4)) { try server.client().get("/a") }
        #expect(feed.endedOnce)
    }

    @Test func bodyThatIsLongerThanItsLengthIsCut() throws {
        let feed = Feed(.bytes([1, 2, 3]), .bytes([4, 5]), .end)
        let server = try TestServer { feed.answer($0, length: 4) }
        let client = try server.client()
        #expect(throws: RawClient.ResponseError.truncated(received: 3, expected: 4)) { try client.get("/a") }
        #expect(try client.isClosedByPeer())
        #expect(feed.endedOnce)
    }

    /// A source that has given its length is asked for its end.
    @Test func bodyThatIsCutAfterItsLastByteIsCut() throws {
        let feed = Feed(.bytes([1, 2, 3]), .cut)
        let server = try TestServer { feed.answer($0, length: 3) }
        let client = try server.client()
        try client.send(client.request("/a") + client.request("/b"))
        #expect(try client.readResponse().body == [1, 2, 3])
        #expect(throws: RawClient.ResponseError.closedBeforeHead) { try client.readHead() }
        #expect(feed.endedOnce)
    }

    // MARK: The client goes

    @Test(arguments: [true, false])
    func clientThatGoesBeforeTheAnswerAbortsItOnce(byReset: Bool) throws {
        let exchanges = Monitor<[LoopBound<Exchange>]>([]), aborts = Monitor(0)
        let feed = Feed()
        let server = try TestServer { exchange in
            exchange.onAbort { aborts.update { $0 += 1 } }
            exchanges.update { $0.append(LoopBound(exchange, on: exchange.loop)) }
        }
        let client = try server.client()
        try client.send(client.request("/a"))
        let exchange = try exchanges.wait(for: "the request") { $0.first }
        byReset ? client.reset() : client.close()
        try aborts.wait(for: "the abort") { $0 > 0 ? () : nil }
        // An answer that comes too late is taken, and finished.
        let isOpen = exchange.loop.sync {
            feed.answer(exchange.value, length: 1)
            exchange.value.resume()
            return exchange.value.isOpen
        }
        #expect(!isOpen)
        server.stop(graceSeconds: 0)
        #expect(aborts.read { $0 } == 1)
        #expect(feed.endedOnce)
    }

    @Test(arguments: [true, false])
    func clientThatGoesWhileTheBodyWaitsFinishesItOnce(byReset: Bool) throws {
        let aborts = Monitor(0)
        let feed = Feed(.bytes([1]))
        let server = try TestServer { exchange in
            exchange.onAbort { aborts.update { $0 += 1 } }
            feed.answer(exchange, length: 10)
        }
        let client = try server.client()
        try client.send(client.request("/a"))
        _ = try client.readHead()
        try feed.waitForWait()
        byReset ? client.reset() : client.close()
        try feed.waitForFinish()
        feed.give(.bytes([2]), .end)
        try server.waitUntilIdle()
        server.stop(graceSeconds: 0)
        #expect(feed.endedOnce)
        #expect(aborts.read { $0 } == 0, "the body's end tells, once there is one")
    }

    @Test func clientThatGoesInTheMiddleOfALongBodyFinishesIt() throws {
        let feed = Feed(.bytes(Array(repeating: 7, count: 20_000_000)), .end)
        let server = try TestServer { feed.answer($0, length: 20_000_000) }
        let client = try server.client(receiveBuffer: 4096)
        try client.send(client.request("/a"))
        _ = try client.readHead()
        client.reset()
        try feed.waitForFinish()
        #expect(feed.endedOnce)
        try server.waitUntilIdle()
    }

    /// Each connection is given back, whatever becomes of it.
    @Test func clientsThatGoAtRandomMomentsLeaveNothingBehind() throws {
        let seed = SplitMix64.forTest("clientsThatGoAtRandomMomentsLeaveNothingBehind")
        let open = Monitor(0), media = Media(seed: 1, size: 1_000_000)
        let server = try TestServer(loops: 2) { exchange in
            open.update { $0 += 1 }
            exchange.respond(
                Response(200, length: media.size), body: CountedSource(media.allBytes) { open.update { $0 -= 1 } })
        }
        _ = try concurrently(8) { thread in
            var random = seed
            for _ in 0...thread { _ = random.next() }
            for _ in 0..<15 {
                let client = try server.client()
                let request = client.request("/a")
                try client.send(String(request.prefix(Int.random(in: 0...request.utf8.count * 2, using: &random))))
                if Bool.random(using: &random) { client.reset() } else { client.close() }
                let whole = try server.client().get("/b")
                if let difference = media.difference(whole.body, from: 0..<media.size) { throw Unexpected(difference) }
            }
        }
        try server.waitUntilIdle()
        // Clients that have gone may still be accepted.
        try eventually("nothing that is open", instead: "\(open.read { $0 })") { open.read { $0 } == 0 }
    }
}

/// Bytes, and a call when they are no longer needed.
private final class CountedSource: BodySource {
    private let bytes: BytesSource
    private let onFinish: () -> Void

    init(_ bytes: [UInt8], onFinish: @escaping () -> Void) {
        self.bytes = BytesSource(bytes)
        self.onFinish = onFinish
    }

    func next(limit: Int) -> BodyStep { bytes.next(limit: limit) }

    func finish() { onFinish() }
}
