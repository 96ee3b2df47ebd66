import CachePolicy
import Testing
import TestSupport

private let film = Media(seed: 351, size: 200_000)

/// What an origin sends to one client besides its response: cookies, and responses before the final one. Only where the
/// client means the origin.
extension Scenarios {
    @Suite struct S35Interim {
        /// `/tv/` of the proxy is `/vod/` of the origin, and nothing else is served.
        private static func site(
            _ cache: CacheMode = .shared, _ story: @escaping @Sendable (Stage) throws -> Void
        ) async throws {
            let origin = try ScriptedOrigin()
            defer { origin.stop() }
            var policy = ProxyPolicy()
            policy.mounts = [Mount(path: "/tv/", origin: try OriginURL(url: origin.url("/vod/")))]
            (policy.servesAnyOrigin, policy.cache, policy.defaultTTL) = (false, cache, 600)
            try await scenario { [policy] setting in
                (setting.tuning.policy, setting.origin) = (policy, origin)
            } _: {
                try story($0)
            }
        }

        private static let hints = ("Link", "</style.css>; rel=preload")

        /// Sends early hints before each answer.
        private static func hint(_ stage: Stage, _ path: String, status: Int = 103) {
            stage.origin.serve(path, film)
            stage.origin.script(path) {
                $0.headers = [("Cache-Control", "max-age=60")]
                $0.interims = [(status, [hints, ("Connection", "X-Hop"), ("X-Hop", "1"), ("Set-Cookie", "a=1")])]
            }
        }

        // MARK: Interim responses

        @Test(arguments: [102, 103])
        func hintsComeBeforeTheAnswer(status: Int) async throws {
            try await Self.site { stage in
                Self.hint(stage, "/vod/film.mp4", status: status)
                stage.origin.holdHeads("/vod/film.mp4")
                let player = try stage.player()
                try player.send(player.request("/tv/film.mp4"))
                let early = try player.readInterimHead()
                #expect(early.status == status && early.headers["Link"] == Self.hints.1)
                #expect(early.headers["X-Hop"] == nil && early.headers["Set-Cookie"] == nil)
                stage.origin.release("/vod/film.mp4")
                expectWhole(try player.readResponse(), film)
                // Nobody asks the origin for what is cached, so nothing precedes it.
                try player.send(player.request("/tv/film.mp4"))
                #expect(try player.readInterimHead().status == 200)
            }
        }

        @Test(arguments: ["GET", "HEAD", "POST", "OPTIONS"])
        func hintsPrecedeTheAnswersToAllMethods(method: String) async throws {
            try await Self.site { stage in
                Self.hint(stage, "/vod/film.mp4")
                let player = try stage.player()
                try player.send(player.request("/tv/film.mp4", headers: [("Content-Length", "0")], method: method))
                #expect(try player.readInterimHead().status == 103)
                #expect(try player.readHead(method: method).status < 500)
            }
        }

        @Test func hintsOfAnOriginWhoseNameTheClientUsesReachIt() async throws {
            try await scenario { stage in
                Self.hint(stage, "/film.mp4")
                let player = try stage.player()
                try player.send(player.request(stage.absolute("/film.mp4")))
                #expect(try player.readInterimHead().status == 103)
                expectWhole(try player.readResponse(), film)
            }
        }

        // To a browser, `Link` would name paths of the proxy.
        @Test func inPathFormThereAreNone() async throws {
            try await scenario { stage in
                Self.hint(stage, "/film.mp4")
                let player = try stage.player()
                try player.send(player.request(stage.target("/film.mp4")))
                #expect(try player.readInterimHead().status == 200)
            }
        }

        @Test func aMountBesideOtherOriginsHasNone() async throws {
            try await mounted(anyOrigin: true) { stage in
                Self.hint(stage, "/vod/film.mp4")
                let player = try stage.player()
                try player.send(player.request("/tv/film.mp4"))
                #expect(try player.readInterimHead().status == 200)
            }
        }

        // RFC 9110 §15.2
        @Test func clientOfHTTP10GetsNone() async throws {
            try await Self.site { stage in
                Self.hint(stage, "/vod/film.mp4")
                let player = try stage.player()
                try player.send(player.request("/tv/film.mp4", version: "1.0"))
                #expect(try player.readInterimHead().status == 200)
            }
        }

        @Test(arguments: [100, 101, 150])
        func othersStayOnTheirConnection(status: Int) async throws {
            try await Self.site { stage in
                Self.hint(stage, "/vod/film.mp4", status: status)
                let player = try stage.player()
                try player.send(player.request("/tv/film.mp4"))
                #expect(try player.readInterimHead().status == (status == 101 ? 502 : 200))
            }
        }

        @Test func onlyAFewArePassedOn() async throws {
            try await Self.site { stage in
                stage.origin.serve("/vod/film.mp4", film)
                stage.origin.script("/vod/film.mp4") {
                    $0.interims = Array(repeating: (103, [Self.hints]), count: 200)
                }
                let player = try stage.player()
                try player.send(player.request("/tv/film.mp4"))
                var count = 0
                while try player.readInterimHead().status == 103 { count += 1 }
                #expect(count == 16)
            }
        }

        /// Nor do they end a validation that nobody waits for.
        @Test func hintsPrecedeTheAnswerToAValidationInTheBackground() async throws {
            try await Self.site { stage in
                Self.hint(stage, "/vod/film.mp4")
                stage.origin.script("/vod/film.mp4") {
                    $0.headers = [("Cache-Control", "max-age=60, stale-while-revalidate=30")]
                }
                expectWhole(try stage.ask("/tv/film.mp4"), film)
                stage.wait(seconds: 70)
                stage.origin.holdHeads("/vod/film.mp4")
                #expect(try stage.ask("/tv/film.mp4").cacheStatus.hasSuffix("detail=\"revalidating\""))
                try stage.origin.waitForRequests("/vod/film.mp4", count: 2)
                stage.origin.release("/vod/film.mp4")
                try stage.catchUp()
                let validated = try stage.ask("/tv/film.mp4")
                #expect(validated.isHit && !validated.cacheStatus.contains("revalidating"))
                #expect(stage.origin.requestCount("/vod/film.mp4") == 2)
            }
        }

        // MARK: Cookies

        @Test(arguments: CacheMode.allCases)
        func cookieReachesTheClientWhoseRequestWasForwarded(cache: CacheMode) async throws {
            try await Self.site(cache) { stage in
                stage.origin.serve("/vod/film.mp4", film)
                stage.origin.script("/vod/film.mp4") {
                    $0.headers = [("Set-Cookie", "id=1; Path=/"), ("Cache-Control", "max-age=60")]
                }
                let head = try stage.ask("/tv/film.mp4", method: "HEAD")
                #expect(head.status == 200 && head.headers["Set-Cookie"] == "id=1; Path=/")
                let first = try stage.ask("/tv/film.mp4")
                expectWhole(first, film)
                #expect(first.headers["Set-Cookie"] == "id=1; Path=/")
                stage.origin.script("/vod/film.mp4") { $0.headers = [("Cache-Control", "max-age=60")] }
                let second = try stage.ask("/tv/film.mp4")
                expectWhole(second, film)
                #expect(second.headers["Set-Cookie"] == nil)
                // A private cache stores the rest of the response, a shared one nothing of it.
                #expect(second.isHit == (cache == .private))
                #expect(
                    first.cacheStatus
                        == "reelcache; fwd=uri-miss; fwd-status=200; "
                        + (cache == .private ? "stored" : "detail=\"set-cookie\""))
            }
        }

        @Test(arguments: CacheMode.allCases) func cookieOfAValidationReachesItsClient(cache: CacheMode) async throws {
            try await Self.site(cache) { stage in
                stage.origin.serve("/vod/film.mp4", film)
                stage.origin.script("/vod/film.mp4") {
                    $0.headers = [("Cache-Control", "max-age=60, stale-if-error=600")]
                }
                expectWhole(try stage.ask("/tv/film.mp4"), film)
                stage.origin.script("/vod/film.mp4") {
                    $0.headers = [("Set-Cookie", "id=2"), ("Cache-Control", "max-age=60, stale-if-error=600")]
                }
                stage.wait(seconds: 61)
                let validated = try stage.ask("/tv/film.mp4")
                #expect(validated.cacheStatus == "reelcache; fwd=stale; fwd-status=304")
                #expect(validated.headers["Set-Cookie"] == "id=2")
                let hit = try stage.ask("/tv/film.mp4")
                #expect(hit.isHit && hit.headers["Set-Cookie"] == nil)
                stage.origin.script("/vod/film.mp4") { ($0.status, $0.headers) = (503, [("Set-Cookie", "id=3")]) }
                stage.wait(seconds: 61)
                let stale = try stage.ask("/tv/film.mp4")
                #expect(stale.status == 200 && stale.headers["Set-Cookie"] == "id=3", "\(stale.cacheStatus)")
            }
        }

        @Test(arguments: CacheMode.allCases)
        func errorThatSetsACookieIsStoredForNobodyElse(cache: CacheMode) async throws {
            try await Self.site(cache) { stage in
                stage.origin.script("/vod/film.mp4") {
                    ($0.status, $0.body) = (404, [1])
                    $0.headers = [("Set-Cookie", "id=1"), ("Cache-Control", "max-age=60")]
                }
                let (first, second) = (try stage.ask("/tv/film.mp4"), try stage.ask("/tv/film.mp4"))
                #expect(
                    first.headers["Set-Cookie"] == "id=1" && second.isHit == (cache == .private),
                    "\(first.headers["Set-Cookie"] ?? "no cookie"), then \(second.cacheStatus)")
            }
        }

        /// In a shared cache each has a response of its own.
        @Test(arguments: CacheMode.allCases, [200, 404])
        func twoWhoWaitDoNotShareACookie(cache: CacheMode, status: Int) async throws {
            try await Self.site(cache) { stage in
                stage.origin.serve("/vod/film.mp4", film)
                stage.origin.script("/vod/film.mp4") {
                    $0.headers = [("Set-Cookie", "id=1")]
                    if status == 404 { ($0.status, $0.body) = (404, [1]) }
                }
                stage.origin.holdHeads("/vod/film.mp4")
                let players = try Background { try concurrently(2) { _ in try stage.ask("/tv/film.mp4") } }
                try stage.waitForStats("both to wait") { $0[\.collapsed] == 1 }
                stage.origin.release("/vod/film.mp4")
                let answers = try players.value()
                for answer in answers { #expect(answer.status == status) }
                let own = cache == .shared ? 2 : 1
                #expect(answers.count { $0.headers["Set-Cookie"] == "id=1" } == own)
                #expect(stage.origin.requestCount("/vod/film.mp4") == own)
            }
        }

        @Test func cookieOfAnErrorReachesItsClient() async throws {
            try await Self.site { stage in
                stage.origin.script("/vod/film.mp4") {
                    ($0.status, $0.body, $0.headers) = (403, [1], [("Set-Cookie", "id=1")])
                }
                let answer = try stage.ask("/tv/film.mp4")
                #expect(answer.status == 403 && answer.headers["Set-Cookie"] == "id=1")
            }
        }

        /// A session that begins at a redirect.
        @Test(arguments: CacheMode.allCases) func cookieOfARedirectReachesItsClient(cache: CacheMode) async throws {
            try await Self.site(cache) { stage in
                stage.origin.serve("/vod/play.mp4", film)
                stage.origin.script("/vod/play.mp4") { $0.headers = [("Cache-Control", "max-age=60")] }
                stage.origin.script("/vod/film.mp4") {
                    ($0.redirect, $0.headers) = ("/vod/play.mp4", [("Set-Cookie", "id=1")])
                }
                let first = try stage.ask("/tv/film.mp4")
                expectWhole(first, film)
                #expect(first.headers["Set-Cookie"] == "id=1")
                // One that joins the first's transfer gets no cookie that is another's.
                try stage.catchUp()
                let second = try stage.ask("/tv/film.mp4")
                expectWhole(second, film)
                #expect(second.isHit == (cache == .private))
                #expect(second.headers["Set-Cookie"] == (cache == .private ? nil : "id=1"))
            }
        }

        // To the client it would be one of the mounted origin.
        @Test func cookieOfTheOriginBehindARedirectDoesNot() async throws {
            let other = try ScriptedOrigin()
            defer { other.stop() }
            try await Self.site { stage in
                other.serve("/film.mp4", film)
                other.script("/film.mp4") { $0.headers = [("Set-Cookie", "id=1")] }
                stage.origin.script("/vod/film.mp4") { $0.redirect = other.url("/film.mp4") }
                let answer = try stage.ask("/tv/film.mp4")
                expectWhole(answer, film)
                #expect(answer.headers["Set-Cookie"] == nil)
            }
        }

        @Test func inPathFormCookiesStayBehind() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/film.mp4") { $0.headers = [("Set-Cookie", "id=1")] }
                let (get, head) = (try stage.get("/film.mp4"), try stage.get("/film.mp4", method: "HEAD"))
                #expect(get.headers["Set-Cookie"] == nil && head.headers["Set-Cookie"] == nil)
            }
        }
    }
}
