import CachePolicy
import Foundation
import HTTPTransport
import TestSupport
import Testing

private let film = Media(seed: 12, size: 300_000)
private let newer = Media(seed: 13, size: 400_000)

extension Stage {
    /// Sends a request with a body, of a length that is told.
    func send(_ method: String, _ target: String, _ body: [UInt8], headers: [(String, String)] = []) throws
        -> RawClient.Response
    {
        let client = try player()
        let head = client.request(target, headers: headers + [("Content-Length", "\(body.count)")], method: method)
        try client.send(Array(head.utf8) + body)
        return try client.readResponse(method: method)
    }
}

/// Chunks of several sizes.
private func chunked(_ body: [UInt8]) -> [UInt8] {
    var (bytes, rest, size) = ([UInt8](), body[...], 1)
    while !rest.isEmpty {
        let piece = rest.prefix(size)
        bytes += Array("\(String(piece.count, radix: 16));x=y\r\n".utf8) + piece + Array("\r\n".utf8)
        rest = rest.dropFirst(piece.count)
        size = min(size * 3, 700_000)
    }
    return bytes + Array("0\r\n\r\n".utf8)
}

extension Scenarios {
    @Suite struct S11Methods {
        private static let body = Media(seed: 14, size: 6_000_000).bytes(0..<6_000_000)

        // MARK: There and back

        @Test(arguments: ["POST", "PUT", "PATCH", "DELETE", "MKCOL", "x-any.token"])
        func bodyOfAnyMethodReachesTheOrigin(method: String) async throws {
            try await mounted { stage in
                stage.origin.script("/vod/new.mp4") { ($0.status, $0.body) = (201, Array("made".utf8)) }
                let client = try stage.player()
                for isChunked in [false, true] {
                    let framing =
                        isChunked ? ("Transfer-Encoding", "chunked") : ("Content-Length", "\(Self.body.count)")
                    let head = client.request("/tv/new.mp4?a=b", headers: [framing], method: method)
                    try client.send(Array(head.utf8) + (isChunked ? chunked(Self.body) : Self.body))
                    let response = try client.readResponse(method: method)
                    #expect(response.status == 201 && response.text == "made")
                    #expect(response.cacheStatus == "reelcache; fwd=method; fwd-status=201")
                    let asked = try #require(stage.origin.requests("/vod/new.mp4").last)
                    #expect(asked.method == method && asked.target == "/vod/new.mp4?a=b")
                    #expect(asked.headers["Content-Length"] == (isChunked ? nil : "6000000"))
                    let isSame = asked.body == Self.body
                    #expect(isSame)
                }
                // The same connection all the time.
                #expect(try client.get("/healthz").text == "ok\n")
                #expect(try stage.stats.reasons["method"] == 2)
            }
        }

        @Test func requestWithoutABodyIsOneAtTheOrigin() async throws {
            try await mounted { stage in
                stage.origin.script("/vod/a") { $0.status = 204 }
                let client = try stage.player()
                let deleted = try client.get("/tv/a", method: "DELETE")
                #expect(deleted.status == 204)
                #expect(try client.get("/tv/a", method: "POST").status == 204)
                #expect(try client.get("/tv/a", headers: [("Content-Length", "0")], method: "LOCK").status == 204)
                #expect(stage.origin.requests("/vod/a").map { $0.headers["Content-Length"] } == [nil, "0", "0"])
                #expect(
                    stage.origin.requests("/vod/a").allSatisfy {
                        $0.headers["Transfer-Encoding"] == nil && $0.body.isEmpty
                    })
            }
        }

        @Test func answerComesBackAsTheOriginGaveIt() async throws {
            try await mounted { stage in
                let answer = Media(seed: 15, size: 5_000_000)
                stage.origin.script("/vod/report") { behaviour in
                    (behaviour.status, behaviour.body, behaviour.contentType) = (
                        202, answer.bytes(0..<answer.size), "text/csv"
                    )
                    behaviour.headers = [
                        ("Set-Cookie", "a=1"), ("Location", "/vod/jobs/1"), ("Content-Location", "report?1"),
                        ("Connection", "X-Hop"), ("X-Hop", "1"),
                        ("X-End", "2"), ("Content-Encoding", "br"), ("Cache-Status", "cdn; hit"),
                        ("Access-Control-Allow-Origin", "https://page.example"),
                        ("Date", "Sun, 06 Nov 1994 08:49:37 GMT"),
                    ]
                }
                for isChunked in [false, true] {
                    stage.origin.script("/vod/report") { $0.chunkedEncoding = isChunked }
                    let response = try stage.send(
                        "POST", "/tv/report", Array("all".utf8),
                        headers: [("Cookie", "b=2"), ("If-Match", "\"x\""), ("TE", "trailers")])
                    #expect(response.status == 202)
                    #expect(response.headers["Content-Length"] == (isChunked ? nil : "5000000"))
                    #expect(answer.difference(response.body, from: 0..<answer.size) == nil)
                    for (name, value) in [
                        ("Set-Cookie", "a=1"), ("Location", "/vod/jobs/1"), ("Content-Location", "report?1"),
                        ("X-End", "2"), ("Content-Encoding", "br"),
                        ("Content-Type", "text/csv"), ("Access-Control-Allow-Origin", "https://page.example"),
                        ("Date", "Sun, 06 Nov 1994 08:49:37 GMT"),
                        ("Cache-Status", "cdn; hit, reelcache; fwd=method; fwd-status=202"),
                    ] { #expect(response.headers[name] == value) }
                    #expect(
                        response.headers["X-Hop"] == nil && response.headers["Connection"] == nil
                            && response.headers.all("Date").count == 1)
                    let asked = try #require(stage.origin.requests("/vod/report").last)
                    #expect(
                        asked.headers["Cookie"] == "b=2" && asked.headers["If-Match"] == "\"x\""
                            && asked.headers["TE"] == nil)
                    #expect(asked.headers["Host"] == "127.0.0.1:\(stage.origin.port)")
                }
            }
        }

        @Test(arguments: [301, 303, 307])
        func redirectOfAnUnsafeMethodIsTheClients(status: Int) async throws {
            try await mounted { stage in
                stage.origin.script("/vod/a") { ($0.status, $0.redirect) = (status, "http://elsewhere.example/b") }
                let response = try stage.send("POST", "/tv/a", [1])
                #expect(response.status == status && response.headers["Location"] == "http://elsewhere.example/b")
                #expect(stage.origin.snapshot.requests.count == 1)
            }
        }

        @Test func errorOfTheOriginIsTheClients() async throws {
            try await mounted { stage in
                stage.origin.script("/vod/a") { ($0.status, $0.body) = (503, Array("later".utf8)) }
                let response = try stage.send("POST", "/tv/a", [1])
                #expect(response.status == 503 && response.text == "later")
                #expect(stage.origin.requestCount("/vod/a") == 1)
            }
        }

        @Test func optionsGoesThroughWithItsAnswer() async throws {
            try await mounted(anyOrigin: true) { stage in
                stage.origin.script("/vod/a") {
                    ($0.status, $0.headers) = (
                        204, [("Allow", "GET, PUT"), ("Access-Control-Allow-Origin", "https://page.example")]
                    )
                }
                for target in ["/tv/a", stage.absolute("/vod/a")] {
                    let response = try stage.ask(
                        target, headers: [("Access-Control-Request-Method", "PUT"), ("Max-Forwards", "5")],
                        method: "OPTIONS")
                    #expect(response.status == 204 && response.headers["Allow"] == "GET, PUT")
                    #expect(response.headers["Access-Control-Allow-Origin"] == "https://page.example")
                    #expect(stage.origin.requests("/vod/a").last?.headers["Max-Forwards"] == "4")
                    // RFC 9110 §7.6.2
                    let here = try stage.ask(target, headers: [("Max-Forwards", "0")], method: "OPTIONS")
                    #expect(here.status == 204 && here.headers["Allow"] == "GET, HEAD, OPTIONS")
                }
                #expect(stage.origin.requestCount("/vod/a") == 2)
            }
        }

        @Test func traceIsNotPassedOn() async throws {
            try await mounted { stage in
                let response = try stage.ask("/tv/a", method: "TRACE")
                expectOneLine(response, status: 405)
                #expect(response.headers["Allow"]?.contains("POST") == true)
                #expect(stage.origin.snapshot.connectionCount == 0)
            }
        }

        // MARK: Waiting

        /// The only slot is taken by a client that has yet to send its body.
        @Test func requestThatWaitsForASlotHearsWhenToComeAgain() async throws {
            let origin = try ScriptedOrigin()
            defer { origin.stop() }
            var policy = ProxyPolicy()
            policy.mounts = [Mount(path: "/tv/", origin: try OriginURL(url: origin.url("/vod/")))]
            try await scenario { [policy] in
                ($0.origin, $0.tuning.policy, $0.tuning.upstream.stallTimeout) = (origin, policy, 0.25)
                $0.configure { $0.maxFetches = 1 }
            } _: { stage in
                let client = try stage.player()
                try client.send(
                    client.request(
                        "/tv/a", headers: [("Expect", "100-continue"), ("Content-Length", "3")], method: "PUT"))
                #expect(try client.readInterimHead().status == 100)
                let second = try stage.send("PUT", "/tv/b", [1])
                expectOneLine(second, status: 503)
                #expect(second.headers["Retry-After"] == "10" && second.cacheStatus.contains("proxy-busy"))
            }
        }

        // RFC 9110 §10.1.1
        @Test func clientThatExpects100SendsWhenTheOriginIsReached() async throws {
            try await mounted { stage in
                stage.origin.script("/vod/a") { $0.status = 201 }
                let client = try stage.player()
                try client.send(
                    client.request(
                        "/tv/a", headers: [("Expect", "100-continue"), ("Content-Length", "3")], method: "PUT"))
                #expect(try client.readInterimHead().status == 100)
                try client.send([1, 2, 3])
                #expect(try client.readResponse(method: "PUT").status == 201)
                #expect(stage.origin.requests("/vod/a").first?.body == [1, 2, 3])
                #expect(try client.get("/healthz").text == "ok\n")
                // Nobody to send it to.
                stage.origin.stop()
                let late = try stage.player()
                try late.send(
                    late.request(
                        "/tv/a", headers: [("Expect", "100-continue"), ("Content-Length", "3")], method: "PUT"))
                #expect(try late.readInterimHead().status == 502)
            }
        }

        /// 64 MB do not fit between a client and an origin that does not read.
        @Test func originThatDoesNotReadMakesTheClientWait() async throws {
            try await mounted { stage in
                stage.origin.script("/vod/a") { ($0.status, $0.answersEarly, $0.holdHead) = (201, true, true) }
                let body = Media(seed: 16, size: 64_000_000).bytes(0..<64_000_000)
                let client = try stage.player(), other = try stage.player()
                try client.send(client.request("/tv/a", headers: [("Content-Length", "\(body.count)")], method: "PUT"))
                var rest = body[...], stalls = 0
                // Each round of the other client is a turn of the loop, in which it would read what is there.
                while !rest.isEmpty && stalls < 200 {
                    let count = try client.sendWhatFits(rest)
                    rest = rest.dropFirst(count)
                    stalls = count == 0 ? stalls + 1 : 0
                    #expect(try other.get("/healthz").status == 200)
                }
                #expect(!rest.isEmpty, "all of it is on its way")
                stage.origin.release("/vod/a")
                try client.send(Array(rest))
                #expect(try client.readResponse(method: "PUT").status == 201)
                try stage.origin.waitUntil("the body") { $0.requests("/vod/a").first?.body.count == body.count }
                let isSame = stage.origin.requests("/vod/a").first?.body == body
                #expect(isSame)
            }
        }

        @Test func clientThatDoesNotReadMakesTheOriginWait() async throws {
            try await mounted { stage in
                let answer = Media(seed: 17, size: 64_000_000)
                stage.origin.script("/vod/a") { ($0.status, $0.body) = (200, answer.bytes(0..<answer.size)) }
                let client = try stage.player(receiveBuffer: 16_384), other = try stage.player()
                try client.send(client.request("/tv/a", headers: [("Content-Length", "0")], method: "POST"))
                #expect(try client.readHead(method: "POST").status == 200)
                for _ in 0..<500 where stage.origin.bytesSent("/vod/a") < answer.size {
                    #expect(try other.get("/healthz").status == 200)
                }
                #expect(stage.origin.bytesSent("/vod/a") < answer.size, "all of it is on its way")
                #expect(try client.difference(from: answer, in: 0..<answer.size) == nil)
            }
        }

        // MARK: Early answers

        @Test func originThatAnswersEarlyIsHeardWhileTheBodyGoesOn() async throws {
            try await mounted { stage in
                stage.origin.script("/vod/a") {
                    ($0.status, $0.body, $0.answersEarly) = (200, Array("heard".utf8), true)
                }
                let client = try stage.player()
                try client.send(
                    client.request("/tv/a", headers: [("Content-Length", "\(Self.body.count)")], method: "POST"))
                try client.send(Array(Self.body[..<100_000]))
                let response = try client.readResponse(method: "POST")
                #expect(response.status == 200 && response.text == "heard")
                try client.send(Array(Self.body[100_000...]))
                try stage.origin.waitUntil("the body") { $0.requests("/vod/a").first?.body == Self.body }
            }
        }

        // The answer is out with its head, and the body has yet to arrive.
        @Test(arguments: [false, true])
        func originThatAnswersEarlyWithoutContentGetsTheWholeBody(isChunked: Bool) async throws {
            try await mounted { stage in
                stage.origin.script("/vod/a") { ($0.status, $0.answersEarly) = (204, true) }
                let client = try stage.player()
                let (framing, bytes) =
                    isChunked
                    ? (("Transfer-Encoding", "chunked"), chunked(Self.body))
                    : (("Content-Length", "6000000"), Self.body)
                try client.send(client.request("/tv/a", headers: [framing], method: "PUT"))
                try client.send(Array(bytes[..<100_000]))
                let response = try client.readResponse(method: "PUT")
                #expect(response.status == 204 && response.headers["Content-Length"] == nil)
                try client.send(Array(bytes[100_000...]))
                try stage.origin.waitUntil("the body") { $0.requests("/vod/a").first?.body == Self.body }
            }
        }

        @Test func originThatRefusesEarlyEndsTheUpload() async throws {
            try await mounted { stage in
                stage.origin.script("/vod/a") {
                    ($0.status, $0.body, $0.answersEarly) = (413, Array("too large".utf8), true)
                }
                let client = try stage.player()
                try client.send(client.request("/tv/a", headers: [("Content-Length", "6000000")], method: "POST"))
                let response = try client.readResponse(method: "POST")
                #expect(response.status == 413 && response.text == "too large")
                #expect(response.headers["Connection"] == "close")
                #expect(try client.isClosedByPeer())
            }
        }

        // MARK: Ends

        @Test func clientThatLeavesEndsTheRequestAtTheOrigin() async throws {
            try await mounted { stage in
                stage.origin.script("/vod/a") { ($0.status, $0.holdHead) = (201, true) }
                let inBody = try stage.player()
                try inBody.send(inBody.request("/tv/a", headers: [("Content-Length", "6000000")], method: "POST"))
                try inBody.send(Array(Self.body[..<1_000_000]))
                try stage.origin.waitUntil("a connection") { $0.openConnections == 1 }
                inBody.close()
                try stage.origin.waitUntil("its end") { $0.openConnections == 0 }
                // Half a body is no request.
                #expect(stage.origin.requestCount("/vod/a") == 0)
                let waiting = try stage.player()
                try waiting.send(waiting.request("/tv/a", headers: [("Content-Length", "0")], method: "POST"))
                try stage.origin.waitForRequests("/vod/a", count: 1)
                waiting.close()
                try stage.origin.waitUntil("its end") {
                    $0.requests("/vod/a").first?.aborted == true && $0.openConnections == 0
                }
            }
        }

        @Test func originThatClosesIsAskedOnceAndABadGateway() async throws {
            try await mounted { stage in
                stage.origin.script("/vod/a") { ($0.status, $0.closesBeforeHead) = (201, true) }
                let response = try stage.send("POST", "/tv/a", Self.body)
                expectOneLine(response, status: 502)
                #expect(response.cacheStatus == "reelcache; fwd=method; detail=\"origin-broken\"")
                #expect(stage.origin.requestCount("/vod/a") == 1)
            }
        }

        @Test func answerThatBreaksOffIsCut() async throws {
            try await mounted { stage in
                stage.origin.script("/vod/a") {
                    ($0.status, $0.body, $0.cutAfter) = (200, film.bytes(0..<film.size), 200_000)
                }
                for isChunked in [false, true] {
                    stage.origin.script("/vod/a") { ($0.chunkedEncoding, $0.cutTimes) = (isChunked, 1) }
                    expectCut { try stage.send("POST", "/tv/a", [1]) }
                }
            }
        }

        @Test func malformedBodyEndsTheRequestAtTheOrigin() async throws {
            try await mounted { stage in
                stage.origin.script("/vod/a") { $0.status = 201 }
                let client = try stage.player()
                try client.send(
                    client.request("/tv/a", headers: [("Transfer-Encoding", "chunked")], method: "PUT")
                        + "5\r\nhello\r\nnonsense\r\n")
                expectOneLine(try client.readResponse(method: "PUT"), status: 400)
                #expect(try client.isClosedByPeer())
                try stage.origin.waitUntil("its end") { $0.openConnections == 0 }
                #expect(stage.origin.requestCount("/vod/a") == 0)
            }
        }

        @Test func bodyBeyondTheLimitIsRefused() async throws {
            try await mounted(largestBody: 1000) { stage in
                stage.origin.script("/vod/a") { $0.status = 201 }
                #expect(try stage.send("PUT", "/tv/a", Array(repeating: 1, count: 1000)).status == 201)
                expectOneLine(try stage.send("PUT", "/tv/a", Array(repeating: 1, count: 1001)), status: 413)
                #expect(stage.origin.snapshot.connectionCount == 1)
                let client = try stage.player()
                try client.send(
                    Array(client.request("/tv/a", headers: [("Transfer-Encoding", "chunked")], method: "PUT").utf8)
                        + chunked(Array(repeating: 1, count: 1001)))
                expectOneLine(try client.readResponse(method: "PUT"), status: 413)
                #expect(stage.origin.requestCount("/vod/a") == 1)
            }
        }

        @Test func privateOriginThatIsNotAllowedIsRefused() async throws {
            let origin = try ScriptedOrigin()
            defer { origin.stop() }
            var policy = ProxyPolicy()
            policy.mounts = [Mount(path: "/tv/", origin: try OriginURL(url: origin.url("/vod/")))]
            try await scenario { [policy] setting in
                setting.allow = []
                setting.origin = origin
                setting.tuning.policy = policy
            } _: { stage in
                let response = try stage.send("PUT", "/tv/a", [1, 2, 3])
                expectOneLine(response, status: 403)
                #expect(response.text.contains("add 127.0.0.1 to allow"))
            }
        }

        // MARK: Invalidation (RFC 9111 §4.4)

        @Test(arguments: ["PUT", "DELETE", "POST", "FROB"], [204, 303])
        func whatAnUnsafeMethodChangedIsAskedForAnew(method: String, status: Int) async throws {
            try await mounted { stage in
                stage.origin.serve("/vod/film.mp4", film)
                expectWhole(try stage.ask("/tv/film.mp4"), film)
                #expect(try stage.ask("/tv/film.mp4").isHit)
                stage.origin.serve("/vod/film.mp4", newer, etag: "\"v2\"")
                stage.origin.script("/vod/film.mp4") { ($0.status, $0.statusTimes) = (status, 1) }
                #expect(try stage.ask("/tv/film.mp4", method: method).status == status)
                expectWhole(try stage.ask("/tv/film.mp4"), newer)
                #expect(try stage.ask("/tv/film.mp4").isHit)
            }
        }

        @Test func whatIsNotOpenIsInvalidatedToo() async throws {
            try await mounted { stage in
                stage.origin.serve("/vod/film.mp4", film)
                expectWhole(try stage.ask("/tv/film.mp4"), film)
                try stage.restart()
                stage.origin.serve("/vod/film.mp4", newer, etag: "\"v2\"")
                stage.origin.script("/vod/film.mp4") { ($0.status, $0.statusTimes) = (204, 1) }
                #expect(try stage.ask("/tv/film.mp4", method: "PUT").status == 204)
                expectWhole(try stage.ask("/tv/film.mp4"), newer)
            }
        }

        @Test func whatFailedOrIsSafeInvalidatesNothing() async throws {
            try await mounted { stage in
                stage.origin.serve("/vod/film.mp4", film)
                expectWhole(try stage.ask("/tv/film.mp4"), film)
                for (method, status) in [("PUT", 403), ("DELETE", 500), ("OPTIONS", 204)] {
                    stage.origin.script("/vod/film.mp4") { ($0.status, $0.statusTimes) = (status, 1) }
                    #expect(try stage.ask("/tv/film.mp4", method: method).status == status)
                    #expect(try stage.ask("/tv/film.mp4").isHit)
                }
            }
        }
    }
}
