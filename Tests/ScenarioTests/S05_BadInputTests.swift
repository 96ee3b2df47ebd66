import Testing
import TestSupport

private let film = Media(seed: 5, size: 300_000)

extension Scenarios {
    @Suite struct S05BadInput {
        // MARK: What is no request

        /// Each ends a connection, and nothing else.
        @Test func malformedRequestIsRefusedInOneLine() async throws {
            try await scenario { stage in
                for (text, status) in [
                    // Request lines
                    ("\r\n\r\n\r\n\r\n\r\n\r\n\r\n", 400),
                    ("GET\r\n\r\n", 400),
                    ("GET /healthz\r\n\r\n", 400),
                    ("GET  /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
                    (" GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
                    ("GET /health z HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
                    ("GET /health\tz HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
                    ("GET /health\u{7F}z HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
                    ("GET /healthz HTTP/1.1 \r\nHost: localhost\r\n\r\n", 400),
                    ("GET /healthz HTTP/1.x\r\nHost: localhost\r\n\r\n", 400),
                    ("GET /healthz HTTP/11\r\nHost: localhost\r\n\r\n", 400),
                    ("GET /healthz http/1.1\r\nHost: localhost\r\n\r\n", 400),
                    ("GET /healthz FTP/1.1\r\nHost: localhost\r\n\r\n", 400),
                    ("GET /healthz HTTP/2.0\r\nHost: localhost\r\n\r\n", 505),
                    ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
                    ("G\u{0}T /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
                    ("G@T /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
                    (String(repeating: "A", count: 100) + " /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 501),
                    ("\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}\u{0}\u{1}\u{3}\u{3}", 400),
                    // Header fields
                    ("GET /healthz HTTP/1.1\r\n\r\n", 400),
                    ("GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", 400),
                    ("GET /healthz HTTP/1.1\r\nHost: localhost\r\nno colon\r\n\r\n", 400),
                    ("GET /healthz HTTP/1.1\r\nHost: localhost\r\nX : 1\r\n\r\n", 400),
                    ("GET /healthz HTTP/1.1\r\nHost: localhost\r\n: 1\r\n\r\n", 400),
                    ("GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: 1\r\n 2\r\n\r\n", 400),
                    ("GET /healthz HTTP/1.1\r\n X: 1\r\nHost: localhost\r\n\r\n", 400),
                    ("GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: a\u{0}b\r\n\r\n", 400),
                    ("GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: a\rb\r\n\r\n", 400),
                    ("GET /healthz HTTP/1.1\r\nHost: localhost\r\nX\"Y: 1\r\n\r\n", 400),
                    // Bodies
                    ("GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello", 400),
                    ("HEAD /healthz HTTP/1.0\r\nContent-Length: 5\r\n\r\nhello", 400),
                    ("GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5, 6\r\n\r\nhello", 400),
                    ("GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: five\r\n\r\n", 400),
                    ("GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n", 400),
                    ("GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n", 400),
                    ("GET /healthz HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
                    (
                        "GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n",
                        400
                    ),
                    ("GET /healthz HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
                    ("POST /http/127.0.0.1/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello", 405),
                    ("PUT /healthz HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 405),
                    ("DELETE /http/127.0.0.1/film.mp4 HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
                    ("CONNECT 127.0.0.1:443 HTTP/1.1\r\nHost: 127.0.0.1:443\r\n\r\n", 405),
                    ("BREW /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
                ] as [(String, Int)] {
                    let client = try stage.player()
                    try client.send(text)
                    // The answer to a HEAD that is no request has a body too.
                    expectOneLine(try client.readResponse(method: "GET"), status: status, "\(text)")
                    #expect(try client.isClosedByPeer(), "\(text)")
                    #expect(try stage.player().get("/healthz").text == "ok\n", "\(text)")
                }
            }
        }

        @Test func arbitraryBytesNeverEndTheProxy() async throws {
            try await scenario { stage in
                var random = SplitMix64.forTest("arbitraryBytesNeverEndTheProxy")
                let request = Array(
                    "GET \(stage.target("/film.mp4")) HTTP/1.1\r\nHost: localhost\r\nRange: bytes=0-9\r\nIf-Range: \"v1\"\r\n\r\n"
                        .utf8)
                stage.origin.serve("/film.mp4", film)
                for round in 0..<300 {
                    let client = try stage.player()
                    var bytes = request
                    if round % 2 == 0 {
                        for _ in 0..<Int.random(in: 1...4, using: &random) {
                            bytes[Int.random(in: 0..<bytes.count, using: &random)] = random.next()
                        }
                    } else {
                        bytes = (0..<Int.random(in: 1...200, using: &random)).map { _ in random.next() }
                    }
                    try client.send(bytes)
                    client.close()
                }
                #expect(try stage.player().get("/healthz").text == "ok\n")
                expectWhole(try stage.get("/film.mp4"), film)
            }
        }

        @Test func urlThatIsTooLongIsRefused() async throws {
            try await scenario { stage in
                let client = try stage.player()
                expectOneLine(try client.get("/http/127.0.0.1/" + String(repeating: "a", count: 8192)), status: 414)
                #expect(try client.isClosedByPeer())
            }
        }

        @Test(arguments: [101, 1000])
        func headerOfTooManyFieldsIsRefused(count: Int) async throws {
            try await scenario { stage in
                let client = try stage.player()
                expectOneLine(try client.get("/healthz", headers: (0..<count).map { ("X-\($0)", "1") }), status: 431)
                #expect(try client.isClosedByPeer())
            }
        }

        @Test func headerThatIsTooLongIsRefusedBeforeItsEnd() async throws {
            try await scenario { stage in
                let client = try stage.player()
                try client.send(
                    "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + String(repeating: "a", count: 65_536))
                expectOneLine(try client.readResponse(), status: 431)
                #expect(try client.isClosedByPeer())
            }
        }

        @Test func requestBehindAMalformedOneIsNotAnswered() async throws {
            try await scenario { stage in
                let client = try stage.player()
                let good = client.request("/healthz")
                try client.send(
                    good + "GET /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(good.utf8.count)\r\n\r\n" + good)
                #expect(try client.readResponse().text == "ok\n")
                expectOneLine(try client.readResponse(), status: 400)
                #expect(try client.readUntilClosed().isEmpty)
            }
        }

        // MARK: What cannot be fetched

        @Test func urlThatCannotBeMeantIsRefusedInOneLine() async throws {
            try await scenario { stage in
                for target in [
                    "/https/", "/http/", "/https://", "/http:", "/http:///film.mp4", "/http/user@127.0.0.1/film.mp4",
                    "/https/user:password@127.0.0.1/",
                    "/http/127.0.0.1:0/film.mp4", "/http/127.0.0.1:65536/film.mp4",
                    "/http/127.0.0.1:99999999999999999999/",
                    "/http/127.0.0.1:abc/film.mp4",
                    "/http/127.0.0.1:-80/", "/http/127.0.0.1:80:80/", "/http/[::1/film.mp4", "/http/[zz]/film.mp4",
                    "/http/a%20b/film.mp4", "/http/ex%61mple.org/",
                    "/http/a<b>/film.mp4", "/http/\u{2603}.example/film.mp4", "/https:film.mp4",
                    "/httpx/127.0.0.1/film.mp4", "/ftp/127.0.0.1/film.mp4",
                    "/ftp://127.0.0.1/film.mp4", "/file:///etc/passwd", "/http", "/https", "/%68ttp/127.0.0.1/film.mp4",
                    "/../../etc/passwd",
                    "http://", "https:///film.mp4", "ftp://127.0.0.1/film.mp4", "127.0.0.1:80", "*", "film.mp4",
                    "/nothing",
                    "//127.0.0.1/film.mp4",
                ] as [String] {
                    let client = try stage.player()
                    for method in ["GET", "HEAD"] {
                        let response = try client.get(target, method: method)
                        #expect([400, 404].contains(response.status), "\(method) \(target)")
                        if method == "GET" { expectOneLine(response, "\(target)") }
                    }
                    #expect(try client.get("/healthz").text == "ok\n", "\(target)")
                    #expect(stage.origin.snapshot.connectionCount == 0, "\(target)")
                }
            }
        }

        @Test
        func hostThatCannotBeFoundIsABadGateway() async throws {
            try await scenario { stage in
                let response = try RawClient.get(port: stage.proxy.port, path: "/http/no-such-host.invalid/film.mp4")
                expectOneLine(response, status: 502)
                #expect(response.text.contains("no-such-host.invalid"))
            }
        }

        // A page can have its own name resolve to this machine (DNS rebinding).
        @Test(arguments: ["evil.example", "evil.example:7335", "127.0.0.1.evil.example", "localhost.evil.example", ""])
        func requestForAnotherHostIsMisdirected(host: String) async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                let client = try stage.player()
                for target in [stage.target("/film.mp4"), "/stats", "/healthz"] {
                    expectOneLine(try client.get(target, headers: [("Host", host)]), status: 421)
                }
                #expect(stage.origin.snapshot.connectionCount == 0)
            }
        }

        /// RFC 9112 §3.2. In a playlist, they would lead to the host that stands first.
        @Test(arguments: [
            "evil.example#.localhost", "evil.example/.localhost", "evil.example?.localhost", "evil.example\\.localhost",
            "evil.example .localhost", "localhost:abc", "evil.example@localhost",
        ])
        func hostThatIsNoneIsABadRequest(host: String) async throws {
            try await scenario { stage in
                expectOneLine(try stage.player().get("/healthz", headers: [("Host", host)]), status: 400)
            }
        }

        @Test(arguments: ["127.0.0.1", "127.0.0.1:1", "localhost", "LOCALHOST:7335", "[::1]:7335", "reel.localhost"])
        func requestForThisMachineIsAnswered(host: String) async throws {
            try await scenario { stage in
                let response = try stage.player().get("/healthz", headers: [("Host", host)])
                #expect(response.text == "ok\n")
            }
        }

        // MARK: Slow clients

        @Test func clientThatTricklesItsRequestIsDroppedAndAPausedPlayerIsNot() async throws {
            try await scenario { setting in
                setting.tuning.limits.requestSeconds = 0.3
                setting.tuning.limits.idleSeconds = 0.3
            } _: { stage in
                let long = Media(seed: 51, size: 32_000_000)
                stage.origin.serve("/long.mp4", long)
                // One in the middle of a fetch, one of what is cached. On a busy machine one may be dropped before it
                // has sent its request.
                let (paused, _) = try eventually("a player") {
                    try? stage.playerOf("/long.mp4", receiveBuffer: 16_384)
                }
                expectWhole(try eventually("the whole") { try? stage.get("/long.mp4") }, long)
                let (ofHit, head) = try eventually("a player of what is cached") {
                    try? stage.playerOf("/long.mp4", receiveBuffer: 16_384)
                }
                #expect(head.isHit)
                for _ in 1...3 { try drop(trickler: stage.player()) }
                #expect(try paused.difference(from: long, in: 0..<long.size) == nil)
                #expect(try ofHit.difference(from: long, in: 0..<long.size) == nil)
            }
        }

        /// Sends a byte of a request now and then, until it is dropped.
        private func drop(trickler: RawClient) throws {
            let end = ContinuousClock.now + .patience
            try trickler.send("GET / HTTP/1.1\r\nX: ")
            while try !trickler.isClosedByPeer(within: .milliseconds(20)) {
                guard ContinuousClock.now < end else { throw DeadlinePassed(what: "the end of a trickling client") }
                do { try trickler.send("x") } catch { break }
            }
        }

        @Test func clientThatStallsInItsRequestIsToldAndDropped() async throws {
            try await scenario {
                $0.tuning.limits.requestSeconds = 0.3
            } _: { stage in
                // Who has not even begun in time is dropped without a word.
                let (client, response) = try eventually("a word") { () -> (RawClient, RawClient.Response)? in
                    let client = try stage.player()
                    guard (try? client.send("GET / HTTP/1.1\r\n")) != nil, let response = try? client.readResponse()
                    else { return nil }
                    return (client, response)
                }
                expectOneLine(response, status: 408)
                #expect(try client.isClosedByPeer())
            }
        }

        @Test func clientThatSaysNothingIsDropped() async throws {
            try await scenario {
                $0.tuning.limits.requestSeconds = 0.3
            } _: { stage in
                let isDropped = try stage.player().isClosedByPeer()
                #expect(isDropped)
            }
        }

        @Test func connectionThatIsIdleIsDropped() async throws {
            try await scenario {
                $0.tuning.limits.idleSeconds = 0.3
            } _: { stage in
                let client = try stage.player()
                #expect(try client.get("/healthz").text == "ok\n")
                #expect(try client.isClosedByPeer())
            }
        }

        @Test func clientThatSendsWithoutEndAfterItsErrorIsDropped() async throws {
            try await scenario { stage in
                let client = try stage.player()
                try client.send("nonsense\r\n\r\n")
                expectOneLine(try client.readResponse(), status: 400)
                let end = ContinuousClock.now + .patience
                let piece = String(repeating: "x", count: 100_000)
                #expect(throws: (any Error).self) {
                    while ContinuousClock.now < end { try client.send(piece) }
                }
                #expect(try stage.player().get("/healthz").text == "ok\n")
            }
        }
    }
}
