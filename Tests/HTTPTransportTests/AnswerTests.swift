import EventIO
import HTTPModel
import HTTPTransport
import TestSupport
import Testing

/// How answers are framed, and which connections outlive them.
@Suite struct AnswerTests {
    private let media = Media(seed: 21, size: 3_000_007)

    private func echo(loops: Int = 1) throws -> TestServer {
        try TestServer(loops: loops) { $0.respond(200, text: $0.request.target) }
    }

    @Test func answerHasItsLengthDateAndType() throws {
        let server = try echo()
        let answer = try server.client().get("/a")
        #expect(answer.status == 200 && answer.reason == "OK")
        #expect(answer.text == "/a\n")
        #expect(answer.headers["Content-Length"] == "3")
        #expect(answer.headers["Content-Type"] == "text/plain; charset=utf-8")
        #expect(answer.headers["Date"].flatMap { HTTPDate.parse($0) } != nil)
        #expect(answer.headers["Connection"] == nil)
    }

    @Test func connectionIsKeptForTheNextRequest() throws {
        let server = try echo()
        let client = try server.client()
        for index in 0..<100 { #expect(try client.get("/\(index)").text == "/\(index)\n") }
        #expect(server.metrics.acceptedConnections.value == 1)
    }

    @Test func clientThatAsksForItIsClosed() throws {
        let server = try echo()
        let client = try server.client()
        let answer = try client.get("/a", headers: [("Connection", "close")])
        #expect(answer.headers["Connection"] == "close")
        #expect(try client.isClosedByPeer())
    }

    @Test func answerThatClosesSaysSo() throws {
        let server = try TestServer { $0.respond(503, text: "later", closes: true) }
        let client = try server.client()
        let answer = try client.get("/a")
        #expect(answer.status == 503 && answer.headers["Connection"] == "close")
        #expect(try client.isClosedByPeer())
    }

    @Test func pipelinedRequestsAreAnsweredInOrder() throws {
        let server = try echo()
        let client = try server.client()
        let targets = (0..<300).map { "/\($0)" }
        let answers = try client.pipeline(targets.map { client.request($0) })
        #expect(answers.map(\.text) == targets.map { $0 + "\n" })
    }

    /// The second answer is ready long before the first.
    @Test func pipelinedRequestWaitsForTheAnswerBeforeIt() throws {
        let feed = Feed()
        let server = try TestServer { exchange in
            if exchange.request.target == "/slow" {
                feed.answer(exchange, length: 4)
            } else {
                exchange.respond(200, text: "fast")
            }
        }
        let client = try server.client()
        try client.send(client.request("/slow") + client.request("/fast"))
        try feed.waitForWait()
        feed.give(.bytes(Array("slow".utf8)), .end)
        #expect(try client.readResponse().text == "slow")
        #expect(try client.readResponse().text == "fast\n")
        #expect(feed.endedOnce)
    }

    @Test func requestInSinglesBytesIsOneRequest() throws {
        let server = try echo()
        let client = try server.client()
        for byte in client.request("/slowly").utf8 { try client.send([byte]) }
        #expect(try client.readResponse().text == "/slowly\n")
    }

    // A head that is cut at any place, the rest together with the next request.
    @Test func requestsAreCutAnywhere() throws {
        var random = SplitMix64.forTest("requestsAreCutAnywhere")
        let server = try echo()
        let client = try server.client()
        for _ in 0..<50 {
            let targets = (0..<Int.random(in: 1...5, using: &random)).map { "/\($0)" }
            let bytes = Array(targets.map { client.request($0) }.joined().utf8)
            var start = 0
            while start < bytes.count {
                let end = min(bytes.count, start + Int.random(in: 1...100, using: &random))
                try client.send(Array(bytes[start..<end]))
                start = end
            }
            for target in targets { #expect(try client.readResponse().text == target + "\n") }
        }
    }

    // MARK: Bodies

    @Test(arguments: ["1.1", "1.0"])
    func headHasTheLengthAndNoBody(version: String) throws {
        let feed = Feed(.bytes([1, 2, 3]), .end)
        let server = try TestServer { feed.answer($0, length: 3) }
        let client = try server.client()
        let answer = try client.get("/a", headers: [("Connection", "keep-alive")], method: "HEAD", version: version)
        #expect(answer.headers["Content-Length"] == "3")
        #expect(answer.body.isEmpty)
        #expect(feed.endedOnce)
        // What follows is the next answer, and not the body.
        #expect(try client.get("/b", headers: [("Connection", "close")], method: "HEAD").status == 200)
        #expect(try client.readUntilClosed().isEmpty)
    }

    @Test(arguments: [204, 304])
    func statusWithoutContentHasNone(status: Int) throws {
        let feed = Feed(.bytes([1, 2, 3]), .end)
        let server = try TestServer { feed.answer($0, length: 3, status: status) }
        let client = try server.client()
        let answer = try client.get("/a")
        #expect(answer.status == status)
        #expect(answer.headers["Content-Length"] == (status == 204 ? nil : "3"))
        #expect(feed.endedOnce)
        #expect(try client.get("/b", headers: [("Connection", "close")]).status == status)
        #expect(try client.readUntilClosed().isEmpty)
    }

    @Test func bodyOfUnknownLengthIsChunked() throws {
        let feed = Feed(.bytes([1]), .bytes(Array(repeating: 2, count: 70_000)), .bytes([3, 4]), .end, .end)
        let server = try TestServer { feed.answer($0, length: nil) }
        let client = try server.client()
        let answer = try client.get("/a")
        #expect(answer.headers["Transfer-Encoding"] == "chunked")
        #expect(answer.headers["Content-Length"] == nil)
        #expect(answer.body == [1] + Array(repeating: 2, count: 70_000) + [3, 4])
        #expect(try client.get("/b").body.isEmpty, "the connection goes on, with a body of no bytes")
    }

    @Test func chunksOnTheWire() throws {
        let feed = Feed(.bytes(Array("hello".utf8)), .bytes(Array("0123456789abcdefg".utf8)), .end)
        let server = try TestServer { feed.answer($0, length: nil) }
        let client = try server.client()
        try client.send(client.request("/a", headers: [("Connection", "close")]))
        let bytes = String(decoding: try client.readUntilClosed(), as: UTF8.self)
        #expect(bytes.hasSuffix("\r\n\r\n5\r\nhello\r\n11\r\n0123456789abcdefg\r\n0\r\n\r\n"))
    }

    @Test func bodyOfUnknownLengthEndsWithTheConnectionInHTTP10() throws {
        let feed = Feed(.bytes(Array("hello ".utf8)), .bytes(Array("world".utf8)), .end)
        let server = try TestServer { feed.answer($0, length: nil) }
        let answer = try server.client().get("/a", headers: [("Connection", "keep-alive")], version: "1.0")
        #expect(answer.headers["Transfer-Encoding"] == nil && answer.headers["Content-Length"] == nil)
        #expect(answer.headers["Connection"] == "close")
        #expect(answer.text == "hello world")
    }

    @Test func connectionOfHTTP10IsKeptOnlyWhenItAsks() throws {
        let server = try echo()
        let client = try server.client()
        for _ in 1...3 {
            #expect(
                try client.get("/a", headers: [("Connection", "keep-alive")], version: "1.0").headers["Connection"]
                    == "keep-alive")
        }
        #expect(try client.get("/a", version: "1.0").headers["Connection"] == "close")
        #expect(try client.isClosedByPeer())
    }

    @Test(arguments: [true, false])
    func bodyThatWaitsGoesOnWhenItIsResumed(isLengthKnown: Bool) throws {
        let feed = Feed()
        let server = try TestServer { [media] in feed.answer($0, length: isLengthKnown ? media.size : nil) }
        let client = try server.client()
        try client.send(client.request("/a"))
        #expect(try client.readHead().status == 200)
        var offset: Int64 = 0
        for step in 1...20 {
            try feed.waitForWait(step)
            let part = offset..<media.size * Int64(step) / 20
            feed.give(.bytes(media.bytes(part)))
            #expect(media.difference(try client.readBody(exactly: part.count), from: part) == nil)
            offset = part.upperBound
        }
        feed.give(.end)
        #expect(try client.readBody(upTo: 1).isEmpty)
        try feed.waitForFinish()
        #expect(feed.endedOnce)
    }

    @Test func headIsSentWhileTheBodyStillWaits() throws {
        let feed = Feed()
        let server = try TestServer { feed.answer($0, length: 5) }
        let client = try server.client()
        try client.send(client.request("/a"))
        #expect(try client.readHead().headers["Content-Length"] == "5")
        feed.give(.bytes([1, 2, 3, 4, 5]), .end)
        #expect(try client.readBody(exactly: 5) == [1, 2, 3, 4, 5])
    }

    /// Answers may come later, from the loop, in any order.
    @Test func answerMayComeLater() throws {
        let waiting = Monitor<[LoopBound<Exchange>]>([])
        let server = try TestServer { exchange in waiting.update { $0.append(LoopBound(exchange, on: exchange.loop)) } }
        let clients = try (0..<3).map { _ in try server.client() }
        for (index, client) in clients.enumerated() { try client.send(client.request("/\(index)")) }
        let exchanges = try waiting.wait(for: "three requests") { $0.count == 3 ? $0 : nil }
        for exchange in exchanges.reversed() { exchange.post { $0.respond(200, text: $0.request.target) } }
        for (index, client) in clients.enumerated() { #expect(try client.readResponse().text == "/\(index)\n") }
    }

    /// A slow client and a long body: what the socket takes no more of is asked for later.
    @Test func slowClientGetsEachByteOnce() throws {
        let feed = Feed(.bytes(media.allBytes), .bytes(media.allBytes), .end)
        var limits = TransportLimits()
        limits.writeTurnBytes = 10_000
        let server = try TestServer(limits: limits) { [media] in feed.answer($0, length: 2 * media.size) }
        let client = try server.client(receiveBuffer: 4096)
        try client.send(client.request("/a"))
        _ = try client.readHead()
        for _ in 1...2 {
            #expect(media.difference(try client.readBody(exactly: Int(media.size)), from: 0..<media.size) == nil)
        }
        #expect(try client.readBody(upTo: 1).isEmpty)
    }

    /// A client that takes nothing holds up nobody.
    @Test func clientThatReadsNothingHoldsUpNobody() throws {
        let server = try TestServer { [media] exchange in
            exchange.request.target == "/long"
                ? exchange.respond(bytes: media.allBytes + media.allBytes + media.allBytes)
                : exchange.respond(200, text: "short")
        }
        let sleeper = try server.client(receiveBuffer: 4096)
        try sleeper.send(sleeper.request("/long"))
        _ = try sleeper.readHead()
        let other = try server.client()
        for _ in 0..<50 { #expect(try other.get("/short").text == "short\n") }
    }
}
