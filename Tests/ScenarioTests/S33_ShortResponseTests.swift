import CachePolicy
import Foundation
import HTTPModel
import Reelcache
import Testing
import TestSupport

private let film = Media(seed: 331, size: 400_000)
private let path = "/film.mp4"

/// What is not media is stored, too, where its origin says for how long (RFC 9111 §3): in memory, and never in the place
/// of media.
extension Scenarios {
    @Suite struct S33ShortResponses {
        /// Answers with a status and a text instead of the film.
        private static func refuse(
            _ stage: Stage, _ status: Int, _ fields: [(String, String)], body: String = "the origin's page\n"
        ) {
            stage.origin.serve(path, film)
            stage.origin.script(path) {
                ($0.status, $0.body, $0.contentType) = (status, Array(body.utf8), "text/plain")
                $0.headers = fields
            }
        }

        private static func serveFilm(_ stage: Stage, _ fields: [(String, String)] = []) {
            stage.origin.serve(path, film)
            stage.origin.script(path) { ($0.status, $0.headers) = (nil, fields) }
        }

        // MARK: Stored and reused

        @Test(arguments: [403, 404, 410, 500, 503])
        func errorWithALifetimeIsAskedForOnceUntilItIsStale(status: Int) async throws {
            try await scenario { stage in
                Self.refuse(stage, status, [("Cache-Control", "max-age=60")])
                let first = try stage.get(path)
                #expect(first.status == status && first.text == "the origin's page\n")
                #expect(first.cacheStatus == "reelcache; fwd=uri-miss; fwd-status=\(status); stored")
                stage.wait(seconds: 50)
                for range in [nil, "bytes=100-199"] {
                    let again = try stage.get(path, range: range)
                    #expect(again.status == status && again.text == "the origin's page\n")
                    #expect(again.cacheStatus == "reelcache; hit; ttl=10")
                    #expect(again.headers["Age"] == "50" && again.headers["Content-Type"] == "text/plain")
                }
                let head = try stage.get(path, method: "HEAD")
                #expect(head.status == status && head.isHit && head.headers["Content-Length"] == "18")
                #expect(stage.origin.requestCount(path) == 1)
                let stats = try stage.stats
                #expect(stats[\.hits] == 3 && stats[\.shortResponses] == 1)

                stage.wait(seconds: 11)
                #expect(
                    try stage.get(path).cacheStatus == "reelcache; fwd=stale; fwd-status=\(status); stored")
                #expect(stage.origin.requestCount(path) == 2)
                #expect(stage.dataFiles.isEmpty)
            }
        }

        @Test(
            arguments: [
                [], [("Cache-Control", "max-age=60, no-store")], [("Cache-Control", "max-age=0")],
                [("Vary", "*"), ("Cache-Control", "max-age=60")],
            ] as [[(String, String)]])
        func errorThatItsOriginDoesNotCallFreshIsAskedForAgain(fields: [(String, String)]) async throws {
            try await scenario { stage in
                Self.refuse(stage, 404, fields)
                for count in 1...2 {
                    let answer = try stage.get(path)
                    #expect(answer.status == 404 && answer.cacheStatus == "reelcache; fwd=uri-miss; fwd-status=404")
                    #expect(stage.origin.requestCount(path) == count)
                }
                #expect(try stage.stats[\.shortResponses] == 0)
            }
        }

        /// A rule leaves the token out of the key, and its origin refuses some.
        @Test func refusalOfOneTokenIsNotForAnother() async throws {
            try await scenario {
                $0.configure {
                    $0.rules = [.init(hosts: ["http://127.0.0.1:*"]) { $0.ignoredQuery = .parameters(["token"]) }]
                }
            } _: { stage in
                let (bad, good) = (path + "?token=bad", path + "?token=good")
                for path in [bad, good] { stage.origin.serve(path, film) }
                stage.origin.script(bad) { ($0.status, $0.headers) = (403, [("Cache-Control", "max-age=60")]) }
                for _ in 1...2 { #expect(try stage.get(bad).status == 403) }
                #expect(stage.origin.requestCount(bad) == 1)
                stage.origin.holdHeads(bad + "2")
                stage.origin.script(bad + "2") { ($0.status, $0.headers) = (403, [("Cache-Control", "max-age=60")]) }
                let refused = try Background { try stage.get(bad + "2") }
                try stage.origin.waitForRequests(bad + "2", count: 1)
                let player = try Background { try stage.get(good) }
                try stage.waitForStats("both to wait") { $0[\.collapsed] == 1 }
                stage.origin.release(bad + "2")
                #expect(try refused.value().status == 403)
                expectWhole(try player.value(), film)
                expectWhole(try stage.get(good), film)
            }
        }

        @Test func noContentIsStored() async throws {
            try await scenario { stage in
                Self.refuse(stage, 204, [("Cache-Control", "max-age=60"), ("ETag", "\"n\"")], body: "")
                #expect(try stage.get(path).status == 204)
                let again = try stage.get(path)
                #expect(again.status == 204 && again.isHit && again.headers["Content-Length"] == nil)
                // RFC 9110 §13.2.1
                let known = try stage.get(path, headers: [("If-None-Match", "\"n\"")])
                #expect(known.status == 304 && known.isHit && known.headers["ETag"] == "\"n\"")
                #expect(stage.origin.requestCount(path) == 1)
            }
        }

        @Test func directivesOfARequestCountForErrorsToo() async throws {
            try await scenario { stage in
                Self.refuse(stage, 404, [("Expires", HTTPDate.format(stage.clock.now + 100))])
                let cached = [("Cache-Control", "only-if-cached")]
                #expect(try stage.get(path, headers: cached).status == 504)
                #expect(try stage.get(path, headers: [("Cache-Control", "no-store")]).status == 404)
                #expect(try stage.get(path, headers: cached).status == 504)
                #expect(try stage.get(path).status == 404)
                #expect(try stage.get(path, headers: cached).status == 404)
                #expect(stage.origin.requestCount(path) == 2)
                let reload = try stage.get(path, headers: [("Cache-Control", "no-cache")])
                #expect(reload.cacheStatus == "reelcache; fwd=request; fwd-status=404; stored")
                #expect(stage.origin.requestCount(path) == 3)
            }
        }

        @Test func longPageIsNotStored() async throws {
            try await scenario { stage in
                let page = String(repeating: "x", count: 65_537)
                for isChunked in [false, true] {
                    Self.refuse(stage, 404, [("Cache-Control", "max-age=60")], body: page)
                    stage.origin.script(path) { $0.chunkedEncoding = isChunked }
                    let before = stage.origin.requestCount(path)
                    for _ in 1...2 { #expect(try stage.get(path).text == page) }
                    #expect(stage.origin.requestCount(path) == before + 2)
                }
                let short = String(page.dropLast())
                Self.refuse(stage, 404, [("Cache-Control", "max-age=60")], body: short)
                stage.origin.script(path) { $0.chunkedEncoding = true }
                #expect(try stage.get(path).text == short)
                let again = try stage.get(path)
                #expect(again.isHit && again.text == short)
            }
        }

        // RFC 9110 §15.5.2: whoever has credentials by now is not refused for the lack of them.
        @Test func refusalOfOneWithoutCredentialsIsNotForThemWhoHaveThem() async throws {
            try await scenario { stage in
                Self.refuse(stage, 401, [("Cache-Control", "max-age=60, public")])
                #expect(try stage.get(path).status == 401)
                #expect(try stage.get(path).isHit)
                Self.serveFilm(stage)
                expectWhole(try stage.get(path, headers: [("Authorization", "Basic YTpi")]), film)
            }
        }

        @Test func eachLanguageHasItsOwnError() async throws {
            try await scenario { stage in
                Self.refuse(stage, 404, [("Cache-Control", "max-age=60"), ("Vary", "Accept-Language")])
                for round in 1...2 {
                    for language in ["de", "en"] {
                        let answer = try stage.get(path, headers: [("Accept-Language", language)])
                        #expect(answer.status == 404 && answer.isHit == (round == 2))
                    }
                }
                #expect(stage.origin.requestCount(path) == 2)
            }
        }

        @Test func whoWaitsForTheSameGetsItWithoutAskingAgain() async throws {
            try await scenario { stage in
                Self.refuse(stage, 204, [("Cache-Control", "max-age=60")], body: "")
                stage.origin.holdHeads(path)
                let players = try Background { try concurrently(20) { _ in try stage.get(path) } }
                try stage.waitForStats("all to wait") { $0[\.collapsed] == 19 }
                stage.origin.release(path)
                #expect(try players.value().allSatisfy { $0.status == 204 })
                #expect(stage.origin.requestCount(path) == 1)
            }
        }

        // MARK: Beside media

        @Test func errorDoesNotTakeThePlaceOfMedia() async throws {
            try await scenario { stage in
                Self.serveFilm(stage, [("Cache-Control", "max-age=60")])
                expectWhole(try stage.get(path), film)
                stage.wait(seconds: 61)
                Self.refuse(stage, 503, [("Cache-Control", "max-age=3600")])
                let stale = try stage.get(path)
                expectWhole(stale, film)
                #expect(stale.cacheStatus.contains("detail=\"origin-error\""))
                Self.refuse(stage, 403, [("Cache-Control", "max-age=3600")])
                for _ in 1...2 { #expect(try stage.get(path).cacheStatus == "reelcache; fwd=stale; fwd-status=403") }
                Self.serveFilm(stage, [("Cache-Control", "max-age=60")])
                expectWhole(try stage.get(path), film)
                #expect(try stage.stats[\.shortResponses] == 0)
            }
        }

        @Test func mediaThatIsGoneLeavesItsErrorAndComesBackInItsPlace() async throws {
            try await scenario { stage in
                Self.serveFilm(stage, [("Cache-Control", "max-age=60")])
                expectWhole(try stage.get(path), film)
                stage.wait(seconds: 61)
                Self.refuse(stage, 404, [("Cache-Control", "max-age=30")])
                #expect(try stage.get(path).cacheStatus == "reelcache; fwd=stale; fwd-status=404; stored")
                Self.serveFilm(stage, [("Cache-Control", "max-age=60")])
                #expect(try stage.get(path).cacheStatus == "reelcache; hit; ttl=30")
                // A reload finds out, and from then on nobody gets the error.
                expectWhole(try stage.get(path, headers: [("Cache-Control", "no-cache")]), film)
                #expect(try stage.stats[\.shortResponses] == 0)
                let again = try stage.get(path)
                expectWhole(again, film)
                #expect(again.isHit)
            }
        }

        @Test func downloadAsksItsOriginWhateverIsStored() async throws {
            try await scenario { stage in
                Self.refuse(stage, 404, [("Cache-Control", "max-age=3600")])
                #expect(try stage.get(path).status == 404)
                Self.serveFilm(stage)
                _ = try stage.download(path).complete()
                let played = try stage.get(path)
                expectWhole(played, film)
                #expect(played.isHit)
            }
        }

        @Test func unsafeMethodEndsIt() async throws {
            try await mounted { stage in
                stage.origin.script("/vod/film.mp4") {
                    ($0.status, $0.body, $0.headers) = (404, [1], [("Cache-Control", "max-age=3600")])
                }
                for count in 1...2 {
                    let (first, again) = (try stage.ask("/tv/film.mp4"), try stage.ask("/tv/film.mp4"))
                    #expect(first.status == 404 && !first.isHit && again.isHit)
                    #expect(stage.origin.requests("/vod/film.mp4").count { $0.method == "GET" } == count)
                    stage.origin.script("/vod/film.mp4") { $0.status = 201 }
                    #expect(try stage.send("PUT", "/tv/film.mp4", [1]).status == 201)
                    stage.origin.script("/vod/film.mp4") { $0.status = 404 }
                }
            }
        }

        @Test func whatIsRemovedByHandIsAskedForAnew() async throws {
            try await scenario { stage in
                Self.refuse(stage, 404, [("Cache-Control", "max-age=3600")])
                #expect(try stage.get(path).status == 404)
                let removed = try stage.control("DELETE", "/resources?\(stage.parameter(path))")
                #expect(removed.status == 404)
                #expect(try !stage.get(path).isHit)
                #expect(try stage.get(path).isHit)
                #expect(try stage.control("DELETE", "/resources?all=true").status == 200)
                #expect(try !stage.get(path).isHit)
            }
        }

        // MARK: Rules and settings

        @Test(arguments: [404, 410, 501, 500, 302])
        func ruleStoresWhatIsCacheableByDefault(status: Int) async throws {
            try await scenario { setting in
                setting.configure {
                    var rule = ResourceRule()
                    rule.heuristic = true
                    $0.rules = [rule]
                }
            } _: { stage in
                Self.refuse(stage, status, [])
                for _ in 1...2 { #expect(try stage.get(path).status == status) }
                #expect(stage.origin.requestCount(path) == (status == 500 || status == 302 ? 2 : 1))
                stage.wait(seconds: 601)
                let later = try stage.get(path)
                #expect(later.status == status)
                #expect(stage.origin.requestCount(path) == (status == 500 || status == 302 ? 3 : 2))
            }
        }

        @Test func bypassHoldsForWhatIsStoredAlready() async throws {
            try await scenario { stage in
                Self.refuse(stage, 404, [("Cache-Control", "max-age=60")])
                #expect(try stage.get(path).status == 404)
                var rule = ResourceRule()
                rule.bypass = true
                try stage.proxy.cache.reconfigure { $0.rules = [rule] }
                #expect(try !stage.get(path).isHit)
                try stage.proxy.cache.reconfigure { $0.rules = [] }
                #expect(try stage.get(path).isHit)
            }
        }

        @Test func withoutALimitNothingIsStored() async throws {
            try await scenario {
                $0.configure { $0.maxShortResponses = 0 }
            } _: { stage in
                Self.refuse(stage, 404, [("Cache-Control", "max-age=60")])
                for count in 1...2 {
                    let answer = try stage.get(path)
                    #expect(answer.status == 404 && stage.origin.requestCount(path) == count)
                }
            }
        }

        @Test func offlineAnErrorThatIsStoredAnswers() async throws {
            try await scenario { stage in
                Self.refuse(stage, 404, [("Cache-Control", "max-age=60")])
                #expect(try stage.get(path).status == 404)
                try stage.proxy.cache.reconfigure { $0.isOffline = true }
                stage.wait(seconds: 61)
                let answer = try stage.get(path)
                #expect(answer.status == 404 && answer.cacheStatus == "reelcache; hit; ttl=-1; detail=\"offline\"")
            }
        }

        // MARK: Redirects

        /// `/film.mp4` redirects to `/cdn/film.mp4`.
        private static func redirect(_ stage: Stage, _ status: Int, _ fields: [(String, String)]) {
            stage.origin.serve("/cdn/film.mp4", film)
            stage.origin.script("/cdn/film.mp4") { $0.headers = [("Cache-Control", "max-age=10")] }
            stage.origin.script(path) {
                ($0.status, $0.redirect, $0.headers) = (status, "/cdn/film.mp4", fields)
            }
        }

        @Test(arguments: [301, 302, 303, 307, 308])
        func redirectWithALifetimeSavesItsRequest(status: Int) async throws {
            try await scenario { stage in
                Self.redirect(stage, status, [("Cache-Control", "max-age=60")])
                expectWhole(try stage.get(path), film)
                for age in [11, 22] as [Int64] {
                    stage.wait(seconds: 11)
                    let validated = try stage.get(path)
                    expectWhole(validated, film)
                    #expect(validated.cacheStatus == "reelcache; fwd=stale; fwd-status=304", "after \(age) s")
                }
                #expect(stage.origin.requestCount(path) == 1 && stage.origin.requestCount("/cdn/film.mp4") == 3)
                stage.wait(seconds: 60)
                expectWhole(try stage.get(path), film)
                #expect(stage.origin.requestCount(path) == 2)
            }
        }

        @Test func redirectWithoutALifetimeOrWithACookieIsAskedForEachTime() async throws {
            try await scenario { stage in
                for fields in [[], [("Cache-Control", "max-age=60"), ("Set-Cookie", "a=1")]] {
                    Self.redirect(stage, 302, fields)
                    let before = stage.origin.requestCount(path)
                    for _ in 1...2 {
                        stage.wait(seconds: 11)
                        expectWhole(try stage.get(path), film)
                    }
                    #expect(stage.origin.requestCount(path) == before + 2)
                }
            }
        }

        // Signed links expire before the redirect that leads to them.
        @Test func targetThatRefusesIsAskedForAtItsOrigin() async throws {
            try await scenario { stage in
                Self.redirect(stage, 302, [("Cache-Control", "max-age=3600")])
                expectWhole(try stage.get(path), film)
                stage.origin.script("/cdn/film.mp4") { $0.status = 403 }
                stage.origin.serve("/cdn/new.mp4", film)
                stage.origin.script(path) { $0.redirect = "/cdn/new.mp4" }
                stage.wait(seconds: 11)
                expectWhole(try stage.get(path), film)
                #expect(stage.origin.requestCount(path) == 2 && stage.origin.requestCount("/cdn/new.mp4") == 1)
            }
        }

        @Test func credentialsDoNotFollowAStoredRedirectToAnotherOrigin() async throws {
            let other = try ScriptedOrigin()
            defer { other.stop() }
            try await scenario { stage in
                other.serve("/film.mp4", film)
                other.script("/film.mp4") { $0.headers = [("Cache-Control", "max-age=10")] }
                stage.origin.script(path) {
                    ($0.status, $0.redirect) = (302, other.url("/film.mp4"))
                    $0.headers = [("Cache-Control", "max-age=3600")]
                }
                for count in 1...2 {
                    other.setClock(stage.clock.now)
                    expectWhole(try stage.get(path, headers: [("Authorization", "Basic YTpi")]), film)
                    #expect(other.requestCount("/film.mp4") == count && stage.origin.requestCount(path) == 1)
                    stage.wait(seconds: 11)
                }
                #expect(other.requests("/film.mp4").allSatisfy { $0.headers["Authorization"] == nil })
            }
        }

        // The redirect is stored for longer than it leads anywhere.
        @Test func redirectThatHasBeenTurnedRoundIsForgotten() async throws {
            try await scenario { stage in
                let lasting = [("Cache-Control", "max-age=3600")]
                stage.origin.serve("/b.mp4", film)
                stage.origin.script("/a.mp4") { ($0.redirect, $0.headers) = ("/b.mp4", lasting) }
                expectWhole(try stage.get("/a.mp4"), film)
                stage.origin.serve("/a.mp4", film)
                stage.origin.script("/a.mp4") { ($0.redirect, $0.headers) = (nil, []) }
                stage.origin.script("/b.mp4") { ($0.redirect, $0.headers) = ("/a.mp4", lasting) }
                expectWhole(try stage.get("/b.mp4"), film)
            }
        }

        @Test func circleOfStoredRedirectsIsABadGateway() async throws {
            try await scenario { stage in
                stage.origin.script("/a.mp4") {
                    ($0.redirect, $0.headers) = ("/b.mp4", [("Cache-Control", "max-age=3600")])
                }
                stage.origin.script("/b.mp4") {
                    ($0.redirect, $0.headers) = ("/a.mp4", [("Cache-Control", "max-age=3600")])
                }
                for _ in 1...3 { #expect(try stage.get("/a.mp4").status == 502) }
                stage.origin.serve("/c.mp4", film)
                stage.origin.script("/b.mp4") { $0.redirect = "/c.mp4" }
                stage.wait(seconds: 3601)
                expectWhole(try stage.get("/a.mp4"), film)
            }
        }
    }
}
