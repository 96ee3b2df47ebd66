import CachePolicy
import Foundation
import HTTPModel
import Testing
import TestSupport

/// What is stored answers for as long as it is fresh; then its origin is asked (RFC 9111, 5861, 8246).
extension Scenarios {
    @Suite(.serialized) struct S13Freshness {
        private static let film = Media(seed: 71, size: 1_000_000)
        private static let remake = Media(seed: 72, size: 1_200_000)
        private static let path = "/film.mp4"

        /// Serves the film with a `Cache-Control`, and has it cached whole.
        private static func cache(_ stage: Stage, _ cacheControl: String?, etag: String? = "\"v1\"") throws {
            stage.origin.serve(path, film, etag: etag)
            stage.origin.script(path) { $0.headers = cacheControl.map { [("Cache-Control", $0)] } ?? [] }
            let response = try stage.get(path)
            #expect(film.difference(response.body, from: 0..<film.size) == nil && response.head.status == 200)
        }

        private static func play(_ stage: Stage, _ headers: [(String, String)] = [], range: String? = nil) throws
            -> RawClient.Response
        {
            try stage.get(path, range: range, headers: headers)
        }

        private static func isFilm(_ response: RawClient.Response) -> Bool {
            response.status == 200 && film.difference(response.body, from: 0..<film.size) == nil
        }

        // MARK: Fresh and stale

        @Test func whatIsFreshIsNotAskedForAndWhatIsStaleOnce() async throws {
            try await scenario { stage in
                try Self.cache(stage, "max-age=60")
                stage.wait(seconds: 50)
                let fresh = try Self.play(stage)
                #expect(fresh.isHit && Self.isFilm(fresh) && stage.origin.requestCount(Self.path) == 1)
                #expect(fresh.headers["Age"] == "50" && fresh.headers["Cache-Status"] == "reelcache; hit; ttl=10")

                stage.wait(seconds: 50)
                let validated = try Self.play(stage)
                #expect(validated.cacheStatus == "reelcache; fwd=stale; fwd-status=304" && Self.isFilm(validated))
                let question = try #require(stage.origin.requests(Self.path).last)
                #expect(stage.origin.requestCount(Self.path) == 2 && question.headers["If-None-Match"] == "\"v1\"")

                let again = try Self.play(stage)
                #expect(again.isHit && stage.origin.requestCount(Self.path) == 2)
                #expect(try stage.stats[\.validated] == 1)
            }
        }

        @Test(
            arguments: [
                ("Expires", -60, false), ("Expires", 60, true), ("Age", 0, true),
            ] as [(String, Int64, Bool)])
        func expiresAndAgeCount(name: String, delay: Int64, isFresh: Bool) async throws {
            try await scenario { stage in
                stage.origin.serve(Self.path, Self.film)
                stage.origin.script(Self.path) {
                    $0.headers =
                        name == "Expires"
                        ? [(name, HTTPDate.format(stage.clock.now + delay))]
                        : [(name, "50"), ("Cache-Control", "max-age=60")]
                }
                let (first, second) = (try Self.play(stage), try Self.play(stage))
                #expect(first.headers["Age"] == (name == "Age" ? "50" : nil) && second.isHit == isFresh)
                stage.wait(seconds: 61)
                #expect(try Self.play(stage).cacheStatus == "reelcache; fwd=stale; fwd-status=304")
            }
        }

        @Test func withoutALifetimeTenMinutesAreTrustedOrATenthOfItsAge() async throws {
            try await scenario { stage in
                try Self.cache(stage, nil)
                stage.wait(seconds: 590)
                #expect(try Self.play(stage).isHit)
                stage.wait(seconds: 20)
                #expect(try Self.play(stage).cacheStatus == "reelcache; fwd=stale; fwd-status=304")
                stage.origin.serve("/old.mp4", Self.film, lastModified: HTTPDate.format(stage.clock.now - 100_000))
                _ = try stage.get("/old.mp4")
                stage.wait(seconds: 9_900)
                #expect(try stage.get("/old.mp4").isHit)
                stage.wait(seconds: 200)
                #expect(try !stage.get("/old.mp4").isHit)
            }
        }

        @Test func aHundredPlayersOfAStaleFilmAskOnce() async throws {
            try await scenario { stage in
                try Self.cache(stage, "max-age=60")
                stage.wait(seconds: 100)
                stage.origin.holdHeads(Self.path)
                let players = try (0..<100).map { _ in try stage.player() }
                for player in players { try player.send(player.request(stage.target(Self.path))) }
                try stage.origin.waitForRequests(Self.path, count: 2)
                try stage.waitForStats("all to ask") { $0[\.collapsed] == 99 }
                stage.origin.release(Self.path)
                for player in players {
                    let response = try player.readResponse()
                    #expect(
                        Self.isFilm(response)
                            && response.headers["Cache-Status"]?.contains("fwd=stale; fwd-status=304") == true)
                }
                #expect(stage.origin.requestCount(Self.path) == 2)
            }
        }

        @Test(arguments: [nil, "bytes=500000-"])
        func anotherVersionTakesItsPlaceAsAWhole(range: String?) async throws {
            try await scenario { stage in
                try Self.cache(stage, "max-age=60")
                stage.origin.serve(Self.path, Self.remake, etag: "\"v2\"")
                #expect(try Self.play(stage).isHit)
                stage.wait(seconds: 61)
                let response = try Self.play(stage, range: range)
                let from: Int64 = range == nil ? 0 : 500_000
                #expect(
                    Self.remake.difference(response.body, from: from..<Self.remake.size) == nil
                        && response.headers["ETag"] == "\"v2\"")
                #expect(response.cacheStatus == "reelcache; fwd=stale; fwd-status=\(range == nil ? 200 : 206); stored")
                let whole = try Self.play(stage)
                #expect(Self.remake.difference(whole.body, from: 0..<Self.remake.size) == nil)
            }
        }

        @Test func freshnessOutlivesARestart() async throws {
            try await scenario { stage in
                try Self.cache(stage, "max-age=60")
                // The index has its row by then.
                try stage.restart()
                stage.wait(seconds: 61)
                _ = try Self.play(stage)
                try stage.restart()
                #expect(try Self.play(stage).isHit && stage.origin.requestCount(Self.path) == 2)
                stage.wait(seconds: 61)
                #expect(try Self.play(stage).cacheStatus == "reelcache; fwd=stale; fwd-status=304")
            }
        }

        @Test func fieldsOfA304AreTakenOver() async throws {
            try await scenario { stage in
                try Self.cache(stage, "max-age=60")
                let first = try Self.play(stage)
                stage.origin.script(Self.path) {
                    $0.headers = [("Cache-Control", "max-age=3600"), ("X-Note", "new"), ("Content-Type", "text/plain")]
                }
                stage.wait(seconds: 61)
                _ = try Self.play(stage)
                stage.wait(seconds: 600)
                let later = try Self.play(stage)
                #expect(
                    later.isHit && later.headers["X-Note"] == "new" && later.headers["Cache-Control"] == "max-age=3600")
                #expect(later.headers["Content-Type"] == "video/mp4" && first.headers["X-Note"] == nil)
            }
        }

        @Test func a304ForAnotherVersionIsNotBelieved() async throws {
            try await scenario { stage in
                try Self.cache(stage, "max-age=60")
                stage.wait(seconds: 61)
                stage.origin.serve(Self.path, Self.remake, etag: "\"v2\"")
                stage.origin.script(Self.path) {
                    $0.status = 304
                    $0.statusTimes = 1
                    $0.headers = [("ETag", "\"v3\"")]
                }
                stage.origin.script(Self.path) { $0.headers = [("ETag", "\"v2\"")] }
                let response = try Self.play(stage)
                #expect(Self.remake.difference(response.body, from: 0..<Self.remake.size) == nil)
                let questions = stage.origin.requests(Self.path).suffix(2)
                #expect(questions.map { $0.headers["If-None-Match"] } == ["\"v1\"", nil])
            }
        }

        // MARK: What the client wants

        @Test(arguments: [
            ("max-age=60", "no-cache", "fwd=request; fwd-status=304"),
            ("max-age=60", "max-age=0", "fwd=request; fwd-status=304"),
            ("max-age=60, immutable", "max-age=0", "hit; ttl=50"),
            ("max-age=60, immutable", "no-cache", "fwd=request; fwd-status=304"),
            ("max-age=60", "min-fresh=55", "fwd=request; fwd-status=304"),
            ("max-age=60", "min-fresh=30", "hit; ttl=50"),
            ("max-age=5", "max-stale=10", "hit; ttl=-5"), ("max-age=5", "max-stale", "hit; ttl=-5"),
            ("max-age=5", "max-stale=1", "fwd=stale; fwd-status=304"),
            ("max-age=5, must-revalidate", "max-stale", "fwd=stale; fwd-status=304"),
            ("no-cache", "max-stale", "fwd=stale; fwd-status=304"),
        ])
        func directivesOfARequestCount(response: String, request: String, expected: String) async throws {
            try await scenario { stage in
                try Self.cache(stage, response)
                stage.wait(seconds: 10)
                let answer = try Self.play(stage, [("Cache-Control", request)])
                let status = answer.cacheStatus.dropFirst("reelcache; ".count)
                #expect(Self.isFilm(answer) && status == expected)
            }
        }

        @Test func pragmaIsNoCacheWhereThereIsNoCacheControl() async throws {
            try await scenario { stage in
                try Self.cache(stage, "max-age=60")
                #expect(
                    try Self.play(stage, [("Pragma", "no-cache")]).cacheStatus
                        == "reelcache; fwd=request; fwd-status=304")
                #expect(try Self.play(stage, [("Pragma", "no-cache"), ("Cache-Control", "max-age=100")]).isHit)
            }
        }

        @Test func onlyIfCachedNeverAsks() async throws {
            try await scenario { stage in
                let wish = [("Cache-Control", "only-if-cached")]
                stage.origin.serve(Self.path, Self.film)
                #expect(try Self.play(stage, wish).status == 504)
                #expect(try stage.get(Self.path, headers: wish, method: "HEAD").status == 504)
                _ = try Self.play(stage, range: "bytes=0-99")
                // What is on its way counts as stored once its chunk is.
                try stage.catchUp()
                #expect(try Self.play(stage, wish).status == 504)
                #expect(try Self.play(stage, wish, range: "bytes=0-99").status == 206)
                stage.wait(seconds: 601)
                #expect(try Self.play(stage, wish, range: "bytes=0-99").status == 504)
                #expect(stage.origin.requestCount(Self.path) == 1)
            }
        }

        @Test func requestThatForbidsStoringIsPassedOn() async throws {
            try await scenario { stage in
                stage.origin.serve(Self.path, Self.film)
                let response = try Self.play(stage, [("Cache-Control", "no-store")])
                #expect(
                    Self.isFilm(response)
                        && response.cacheStatus
                            == "reelcache; fwd=uri-miss; fwd-status=200; detail=\"request-no-store\""
                )
                #expect(stage.origin.requests(Self.path).first?.headers["Cache-Control"] == "no-store")
                #expect(try !Self.play(stage).isHit)
                #expect(try Self.play(stage).isHit)
            }
        }

        @Test func whoHasACopyOfAnUnknownFilmCostsAChunk() async throws {
            try await scenario { stage in
                stage.origin.serve(Self.path, Self.film)
                let response = try Self.play(stage, [("If-None-Match", "\"v1\"")])
                #expect(
                    response.status == 304 && response.headers["ETag"] == "\"v1\""
                        && response.headers["Content-Type"] == nil)
                // Nobody waits for the body: it is given up where its bytes are not there yet.
                try stage.catchUp()
                #expect(stage.origin.bytesSent(Self.path) <= 65_536)
                let other = try Self.play(stage, [("If-None-Match", "\"v0\"")])
                #expect(Self.isFilm(other))
                #expect(stage.origin.bytesSent(Self.path) <= Self.film.size + 65_536)
            }
        }

        // MARK: While the origin cannot tell

        @Test(arguments: [500, 502, 503, 504, 429])
        func errorsLeaveWhatIsStored(status: Int) async throws {
            try await scenario { stage in
                try Self.cache(stage, "max-age=60")
                stage.wait(seconds: 100)
                stage.origin.script(Self.path) { $0.status = status }
                let stale = try Self.play(stage)
                #expect(
                    Self.isFilm(stale)
                        && stale.cacheStatus
                            == "reelcache; fwd=stale; fwd-status=\(status); ttl=-40; detail=\"origin-error\""
                )
                #expect(stale.headers["Age"] == "100")
                #expect(try stage.stats[\.stale] == 1)
                let head = try stage.get(Self.path, method: "HEAD")
                #expect(head.status == 200 && head.cacheStatus.hasPrefix("reelcache; fwd=stale; fwd-status=\(status)"))
                stage.origin.script(Self.path) { $0.status = nil }
                #expect(try Self.play(stage).cacheStatus.hasPrefix("reelcache; fwd=stale; fwd-status=304"))
            }
        }

        @Test func originThatIsGoneLeavesWhatIsStored() async throws {
            // It is left alone for a second, by a clock that stands still.
            try await scenario {
                $0.tuning.fill.clock = { 1_000_000_000 }
            } _: { stage in
                try Self.cache(stage, "max-age=60")
                stage.wait(seconds: 100)
                stage.origin.stop()
                let stale = try Self.play(stage)
                #expect(Self.isFilm(stale) && stale.cacheStatus.hasPrefix("reelcache; fwd=stale; ttl=-4"))
                #expect(stale.cacheStatus.hasSuffix("detail=\"origin-unreachable\""))
                // Known to be down, it is not tried again at once.
                #expect(try stage.get(Self.path, method: "HEAD").status == 200)
                #expect(Self.isFilm(try Self.play(stage)))
                #expect(try stage.stats.reasons["validation"] == 1)
            }
        }

        @Test(arguments: ["must-revalidate, max-age=60", "no-cache"], [503, nil])
        func whatItsOriginForbidsIsNotPlayedWithoutIt(cacheControl: String, status: Int?) async throws {
            try await scenario { stage in
                try Self.cache(stage, cacheControl)
                stage.wait(seconds: 100)
                if let status { stage.origin.script(Self.path) { $0.status = status } } else { stage.origin.stop() }
                #expect(try Self.play(stage).status == 504)
                #expect(try stage.get(Self.path, method: "HEAD").status == 504)
            }
        }

        @Test func staleIfErrorIsABoundForErrorsButNotForSilence() async throws {
            try await scenario { stage in
                try Self.cache(stage, "max-age=60, stale-if-error=30")
                stage.wait(seconds: 80)
                stage.origin.script(Self.path) { $0.status = 503 }
                #expect(Self.isFilm(try Self.play(stage)))
                stage.wait(seconds: 30)
                #expect(try Self.play(stage).status == 504)
                stage.origin.stop()
                #expect(Self.isFilm(try Self.play(stage)))
            }
        }

        @Test(arguments: [404, 410], ["GET", "HEAD"])
        func whatIsGoneIsForgotten(status: Int, method: String) async throws {
            try await scenario { stage in
                try Self.cache(stage, "max-age=60")
                stage.wait(seconds: 61)
                stage.origin.script(Self.path) {
                    ($0.status, $0.body, $0.headers) = (status, Array("no more".utf8), [])
                }
                let gone = try stage.get(Self.path, method: method)
                #expect(gone.status == status && gone.cacheStatus == "reelcache; fwd=stale; fwd-status=\(status)")
                stage.origin.stop()
                #expect(try Self.play(stage).status == 502)
            }
        }

        @Test func refusalOfTheOriginIsToldAndForgetsNothing() async throws {
            try await scenario { stage in
                try Self.cache(stage, "max-age=60")
                stage.wait(seconds: 61)
                stage.origin.script(Self.path) { $0.status = 403 }
                #expect(try Self.play(stage).status == 403)
                stage.origin.stop()
                #expect(Self.isFilm(try Self.play(stage)))
            }
        }

        @Test func staleWhileRevalidateAnswersAtOnceAndAsksMeanwhile() async throws {
            try await scenario { stage in
                try Self.cache(stage, "max-age=60, stale-while-revalidate=30")
                stage.wait(seconds: 70)
                stage.origin.holdHeads(Self.path)
                let stale = try Self.play(stage)
                #expect(
                    Self.isFilm(stale) && stale.cacheStatus.hasPrefix("reelcache; hit; ttl=-1")
                        && stale.cacheStatus.hasSuffix("detail=\"revalidating\""))
                try stage.origin.waitForRequests(Self.path, count: 2)
                // Another one meanwhile asks nothing.
                #expect(Self.isFilm(try Self.play(stage)))
                stage.origin.release(Self.path)
                try stage.catchUp()
                #expect(try Self.play(stage).isHit && stage.origin.requestCount(Self.path) == 2)
                stage.wait(seconds: 100)
                #expect(try Self.play(stage).cacheStatus == "reelcache; fwd=stale; fwd-status=304")
            }
        }

        @Test func staleWhileRevalidateFindsAnotherVersion() async throws {
            try await scenario { stage in
                try Self.cache(stage, "max-age=60, stale-while-revalidate=30")
                stage.wait(seconds: 70)
                stage.origin.serve(Self.path, Self.remake, etag: "\"v2\"")
                #expect(Self.isFilm(try Self.play(stage)))
                try stage.origin.waitForRequests(Self.path, count: 2)
                try stage.catchUp()
                let next = try Self.play(stage)
                #expect(Self.remake.difference(next.body, from: 0..<Self.remake.size) == nil)
            }
        }

        // MARK: What may not be kept, or is gone

        /// Of each kind of answer that is not kept, a client with a copy of its own or another version's range gets the
        /// whole.
        @Test(
            arguments: ["W/\"v1\"", nil, "\"v1\""],
            [("If-None-Match", "\"v0\"", nil), ("If-Range", "\"v0\"", "bytes=500000-")] as [(String, String, String?)])
        func conditionThatDoesNotHoldIsAnsweredWithTheWhole(
            etag: String?, condition: (name: String, value: String, range: String?)
        ) async throws {
            try await scenario { stage in
                stage.origin.serve(Self.path, Self.film, etag: etag)
                if etag == "\"v1\"" { stage.origin.script(Self.path) { $0.headers = [("Cache-Control", "no-store")] } }
                for _ in 0..<2 {
                    expectWhole(
                        try Self.play(stage, [(condition.name, condition.value)], range: condition.range), Self.film)
                }
            }
        }

        @Test func emptyFileIsEmptyAlsoForWhoHasACopy() async throws {
            try await scenario { stage in
                stage.origin.serve(Self.path, bytes: [])
                let response = try Self.play(stage, [("If-None-Match", "\"v0\"")])
                #expect(response.status == 200 && response.body.isEmpty)
            }
        }

        @Test func newerVersionThatIsNotKeptMakesWhatIsStoredDoubtful() async throws {
            try await scenario { stage in
                try Self.cache(stage, "max-age=3600")
                stage.origin.serve(Self.path, Self.remake, etag: "\"v2\"")
                stage.origin.script(Self.path) { $0.headers = [("Cache-Control", "no-store")] }
                expectWhole(try Self.play(stage, [("Cache-Control", "no-cache")]), Self.remake)
                expectWhole(try Self.play(stage), Self.remake)
            }
        }

        @Test(arguments: [404, 410])
        func gapThatIsGoneTakesTheRestAlong(status: Int) async throws {
            try await scenario { stage in
                stage.origin.serve(Self.path, Self.film)
                _ = try Self.play(stage, range: "bytes=0-99999")
                stage.origin.script(Self.path) { $0.status = status }
                #expect(try Self.play(stage, range: "bytes=500000-").status == status)
                #expect(try Self.play(stage, range: "bytes=0-99").status == status)
            }
        }

        @Test func errorThatManyWaitForIsAskedForOnce() async throws {
            try await scenario { stage in
                try Self.cache(stage, "max-age=60")
                stage.wait(seconds: 61)
                stage.origin.script(Self.path) {
                    ($0.status, $0.body, $0.holdHead) = (404, Array("no more".utf8), true)
                }
                let players = try Background { try concurrently(20) { _ in try Self.play(stage) } }
                try stage.waitForStats("all to wait") { $0[\.collapsed] == 19 }
                stage.origin.release(Self.path)
                for response in try players.value() {
                    #expect(
                        response.status == 404 && response.text == "no more"
                            && response.cacheStatus.hasPrefix("reelcache; fwd=stale; fwd-status=404"))
                }
                #expect(stage.origin.requestCount(Self.path) == 2)
            }
        }

        @Test func rangeThatIsRefusedToOneIsNotRefusedToAnother() async throws {
            try await scenario { stage in
                stage.origin.serve(Self.path, Self.film)
                stage.origin.holdHeads(Self.path)
                let beyond = try stage.player()
                try beyond.send(beyond.request(stage.target(Self.path), range: "bytes=2000000-"))
                try stage.origin.waitForRequests(Self.path, count: 1)
                let inside = try Background { try Self.play(stage, range: "bytes=0-99") }
                try stage.waitForStats("the second to join") { $0[\.collapsed] == 1 }
                stage.origin.release(Self.path)
                #expect(try beyond.readResponse().status == 416)
                expectPart(try inside.value(), 0..<100, of: Self.film)
            }
        }

        @Test func onlyIfCachedLeavesNothingBehind() async throws {
            try await scenario {
                $0.configure {
                    var rule = ResourceRule()
                    rule.bypass = true
                    $0.rules = [rule]
                }
            } _: { stage in
                stage.origin.serve(Self.path, Self.film)
                let wish = [("Cache-Control", "only-if-cached")]
                let responses = [try Self.play(stage, wish), try stage.get(Self.path, headers: wish, method: "HEAD")]
                #expect(responses.allSatisfy { $0.status == 504 })
                #expect(try stage.stats[\.openFetches] == 0 && stage.origin.requestCount(Self.path) == 0)
            }
        }

        // MARK: HEAD

        @Test func headThatNamesTheSameVersionFreshens() async throws {
            try await scenario { stage in
                try Self.cache(stage, "max-age=60")
                stage.wait(seconds: 61)
                let head = try stage.get(Self.path, method: "HEAD")
                #expect(head.status == 200 && head.cacheStatus == "reelcache; fwd=stale; fwd-status=304")
                #expect(head.headers["Content-Length"] == "\(Self.film.size)")
                #expect(stage.origin.requests(Self.path).last?.method == "HEAD")
                #expect(try Self.play(stage).isHit)
            }
        }

        @Test func headThatNamesAnotherVersionHasTheNextGetAsk() async throws {
            try await scenario { stage in
                try Self.cache(stage, "max-age=60")
                stage.origin.serve(Self.path, Self.remake, etag: "\"v2\"")
                let head = try stage.get(Self.path, headers: [("Cache-Control", "no-cache")], method: "HEAD")
                #expect(
                    head.status == 200 && head.headers["ETag"] == "\"v2\""
                        && head.headers["Content-Length"] == "\(Self.remake.size)")
                let next = try Self.play(stage)
                #expect(
                    Self.remake.difference(next.body, from: 0..<Self.remake.size) == nil
                        && next.headers["ETag"] == "\"v2\"")
            }
        }

        // MARK: Selecting fields

        @Test func eachLanguageHasItsOwn() async throws {
            try await scenario { stage in
                try Self.cache(stage, "max-age=60")
                stage.origin.serve("/talk.mp3", Self.film, etag: "\"en\"")
                stage.origin.script("/talk.mp3") { $0.headers = [("Vary", "Accept-Language, Accept-Encoding")] }
                #expect(
                    try stage.get("/talk.mp3", headers: [("Accept-Language", "en")]).cacheStatus
                        == "reelcache; fwd=uri-miss; fwd-status=200; stored")
                stage.origin.serve("/talk.mp3", Self.remake, etag: "\"de\"")
                let german = try stage.get("/talk.mp3", headers: [("Accept-Language", "de")])
                #expect(
                    german.cacheStatus == "reelcache; fwd=vary-miss; fwd-status=200; stored"
                        && german.headers["ETag"] == "\"de\"")
                #expect(
                    try stage.get("/talk.mp3", headers: [("Accept-Language", "en"), ("Accept-Encoding", "gzip")])
                        .headers["ETag"] == "\"en\"")
                let again = try stage.get("/talk.mp3", headers: [("Accept-Language", "de")])
                #expect(again.isHit && Self.remake.difference(again.body, from: 0..<Self.remake.size) == nil)
                #expect(stage.origin.requestCount("/talk.mp3") == 2)
                try stage.restart()
                #expect(try stage.get("/talk.mp3", headers: [("Accept-Language", "de")]).isHit)
                #expect(try stage.get("/talk.mp3", headers: [("Accept-Language", "en")]).isHit)
            }
        }

        @Test func playersOfOneOpeningGetWhatWasChosenForThem() async throws {
            try await scenario { stage in
                stage.origin.serve(Self.path, Self.film, etag: "\"en\"")
                stage.origin.script(Self.path) { $0.headers = [("Vary", "Accept-Language")] }
                stage.origin.holdHeads(Self.path)
                let (english, german) = (try stage.player(), try stage.player())
                try english.send(english.request(stage.target(Self.path), headers: [("Accept-Language", "en")]))
                try stage.origin.waitForRequests(Self.path, count: 1)
                try german.send(german.request(stage.target(Self.path), headers: [("Accept-Language", "de")]))
                try stage.waitForStats("the second to join") { $0[\.collapsed] == 1 }
                stage.origin.serve(Self.path, Self.remake, etag: "\"de\"")
                stage.origin.release(Self.path)
                #expect(try english.readResponse().headers["ETag"] == "\"en\"")
                let response = try german.readResponse()
                #expect(
                    response.headers["ETag"] == "\"de\""
                        && Self.remake.difference(response.body, from: 0..<Self.remake.size) == nil)
                #expect(response.headers["Cache-Status"] == "reelcache; fwd=vary-miss; fwd-status=200; stored")
            }
        }

        @Test func whatCredentialsOpenedIsForThemAlone() async throws {
            try await scenario { stage in
                try Self.cache(stage, "max-age=60")
                stage.origin.serve("/mine.mp4", Self.film)
                let (mine, other) = (
                    [("Authorization", "Basic bWU6c2VjcmV0")], [("Authorization", "Basic eW91OnNlY3JldA==")]
                )
                _ = try stage.get("/mine.mp4", headers: mine)
                #expect(try stage.get("/mine.mp4", headers: mine).isHit)
                stage.origin.script("/mine.mp4") { $0.status = 401 }
                #expect(try stage.get("/mine.mp4", headers: other).status == 401)
                #expect(try stage.get("/mine.mp4").status == 401)
                #expect(try stage.get("/mine.mp4", headers: mine).isHit)
                // The index keeps no credentials.
                try stage.stop()
                for file in stage.files.keys where file.hasPrefix("index") {
                    let bytes = try Data(contentsOf: URL(fileURLWithPath: "\(stage.cache)/\(file)"))
                    #expect(bytes.range(of: Data("bWU6c2VjcmV0".utf8)) == nil)
                }
                try stage.start()
                stage.origin.serve("/all.mp4", Self.film)
                stage.origin.script("/all.mp4") { $0.headers = [("Cache-Control", "public, max-age=60")] }
                _ = try stage.get("/all.mp4", headers: mine)
                #expect(try stage.get("/all.mp4").isHit)
            }
        }
    }
}
