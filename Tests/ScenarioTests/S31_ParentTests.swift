import CachePolicy
import DiskCache
import TestSupport
import Testing

@testable import CacheFill
@testable import Reelcache

private let film = Media(seed: 31, size: 4_000_000)

/// Tiers: proxies that ask other proxies before the origin.
extension Scenarios {
    @Suite struct S31Parents {
        // MARK: Two tiers

        @Test func gapThatThreeEdgesWantIsRequestedOnceAtTheOrigin() async throws {
            try await tiers(4) { origin, stages in
                let parent = stages[0], edges = Array(stages[1...])
                for edge in edges { try edge.asks(parent) }
                origin.serve("/film.mp4", film)
                for edge in edges { try expectPart(edge.get("/film.mp4", range: "bytes=0-99"), 0..<100, of: film) }
                #expect(origin.requestCount("/film.mp4") == 1)
                origin.holdHeads("/film.mp4")
                let range: Range<Int64> = 2_000_000..<2_500_000

                let players = try Background {
                    try concurrently(3) { try edges[$0].get("/film.mp4", range: range.rangeField) }
                }
                try parent.waitForStats("the requests of all edges") { $0[\.requests] == 6 }
                origin.release("/film.mp4")

                for response in try players.value() { expectPart(response, range, of: film) }
                #expect(origin.requestCount("/film.mp4") == 2)
            }
        }

        @Test func whatAnEdgeLacksComesFromItsParentsCache() async throws {
            try await tiers(2) { origin, stages in
                try stages[1].asks(stages[0])
                origin.serve("/film.mp4", film)
                expectWhole(try stages[0].get("/film.mp4"), film)

                let response = try stages[1].get("/film.mp4")

                expectWhole(response, film)
                // RFC 9211 §2: the member nearest the origin is the first.
                let members = response.headers.all("Cache-Status")
                #expect(members.count == 2 && members[0].hasPrefix("reelcache; hit; ttl="), "\(members)")
                #expect(members.last == "reelcache; fwd=uri-miss; fwd-status=200; stored")
                #expect(origin.requestCount("/film.mp4") == 1)
            }
        }

        /// A household's proxy without `Via` could not tell a circle.
        @Test func parentIsAskedAsAProxyWithTheExactRange() async throws {
            try await tiers(1) { origin, stages in
                let edge = stages[0], parent = try ScriptedOrigin()
                defer { parent.stop() }
                let url = origin.url("/film.mp4")
                parent.serve(url, film)
                try edge.asks("http://127.0.0.1:\(parent.port)")

                try expectPart(edge.get("/film.mp4", range: "bytes=3000000-3000099"), 3_000_000..<3_000_100, of: film)

                let request = try #require(parent.requests(url).first)
                #expect(request.target == url)
                #expect(request.headers["Host"] == "127.0.0.1:\(origin.port)")
                #expect(request.headers["Via"]?.hasPrefix("1.1 reelcache-") == true)
                #expect(request.range?.contains(3_000_000) == true)
                #expect(origin.requestCount("/film.mp4") == 0)
            }
        }

        @Test func headOfAnUnknownFileGoesThroughTheParent() async throws {
            try await tiers(2) { origin, stages in
                try stages[1].asks(stages[0])
                origin.serve("/film.mp4", film)
                let response = try stages[1].get("/film.mp4", method: "HEAD")
                #expect(response.status == 200 && response.headers["Content-Length"] == "\(film.size)")
                try #expect(stages[0].stats[\.requests] == 1)
                #expect(origin.requestCount("/film.mp4") == 1)
            }
        }

        /// What never reached it says nothing about a parent.
        @Test func headOfARefusedAddressRestsNoParent() async throws {
            try await tiers(2) { origin, stages in
                try stages[1].asks(stages[0])
                origin.serve("/film.mp4", film)
                let port = stages[1].proxy.port
                let refused = try RawClient.get(port: port, path: "/http/10.1.2.3/x", method: "HEAD")
                #expect(refused.status == 403)
                expectWhole(try stages[1].get("/film.mp4"), film)
                try #expect(stages[0].stats[\.requests] == 1)
            }
        }

        /// What a parent answered before is not why the origin failed.
        @Test func headReportsWhyTheOriginFailed() async throws {
            try await tiers(1) { origin, stages in
                let parent = try ScriptedOrigin()
                defer { parent.stop() }
                parent.script(origin.url("/film.mp4")) { $0.status = 502 }
                try stages[0].asks("http://127.0.0.1:\(parent.port)")
                origin.stop()
                let response = try stages[0].get("/film.mp4", method: "HEAD")
                #expect(response.status == 502 && parent.requestCount(origin.url("/film.mp4")) == 1)
                #expect(response.headers["Cache-Status"]?.contains("origin-unreachable") == true)
            }
        }

        @Test func ruleNamesTheParentsOrNone() async throws {
            try await tiers(2) { origin, stages in
                origin.serve("/film.mp4", film)
                origin.serve("/own.mp4", film)
                var none = ResourceRule(paths: ["/own.mp4"]), all = ResourceRule()
                (none.parents, all.parents) = ([], [stages[0].proxy.baseURL])
                try stages[1].proxy.cache.reconfigure { $0.rules = [none, all] }
                expectWhole(try stages[1].get("/own.mp4"), film)
                try #expect(stages[0].stats[\.requests] == 0)
                expectWhole(try stages[1].get("/film.mp4"), film)
                try #expect(stages[0].stats[\.requests] == 1)
            }
        }

        // MARK: Freshness

        @Test func ageAddsUpAndTheOriginRevalidatesForBoth() async throws {
            try await tiers(3) { origin, stages in
                let (parent, early, late) = (stages[0], stages[1], stages[2])
                for edge in [early, late] { try edge.asks(parent) }
                origin.serve("/film.mp4", film)
                origin.script("/film.mp4") { $0.headers = [("Cache-Control", "max-age=100")] }
                func wait(_ seconds: Int64) { for stage in stages { stage.wait(seconds: seconds) } }

                #expect(try early.get("/film.mp4").headers["Age"] == nil)
                wait(30)
                #expect(try late.get("/film.mp4").headers["Age"] == "30")
                wait(50)
                let hit = try late.get("/film.mp4")
                #expect(
                    hit.headers["Age"] == "80"
                        && hit.headers.all("Cache-Status").last?.contains("; hit; ttl=20") == true)
                wait(30)
                let sent = origin.bytesSent("/film.mp4")
                let validated = try late.get("/film.mp4")
                expectWhole(validated, film)
                #expect(validated.headers.all("Cache-Status").last == "reelcache; fwd=stale; fwd-status=304")
                #expect(origin.requests("/film.mp4").last?.status == 304 && origin.bytesSent("/film.mp4") == sent)
                // The parent's answer is fresh for the other edge, too.
                expectWhole(try early.get("/film.mp4"), film)
                #expect(origin.requestCount("/film.mp4") == 2)
            }
        }

        @Test(arguments: [404, 403, 410]) func errorOfTheOriginPassesAndIsAskedForOnce(status: Int) async throws {
            try await tiers(2) { origin, stages in
                try stages[1].asks(stages[0])
                origin.script("/film.mp4") { ($0.status, $0.body) = (status, Array("of the origin".utf8)) }
                let response = try stages[1].get("/film.mp4")
                #expect(response.status == status && response.text == "of the origin")
                #expect(origin.requestCount("/film.mp4") == 1)
                try #expect(stages[1].stats.errors["parent-failed"] == nil)
            }
        }

        @Test func playlistLeadsThroughTheEdgeAlone() async throws {
            try await tiers(2) { origin, stages in
                try stages[1].asks(stages[0])
                let text = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n\(origin.url("/2.ts"))\n#EXT-X-ENDLIST\n"
                origin.serve("/film.m3u8", bytes: Array(text.utf8), contentType: "application/vnd.apple.mpegurl")
                origin.serve("/2.ts", film)
                let own = "\(stages[1].proxy.baseURL)/http/127.0.0.1:\(origin.port)/2.ts"
                #expect(try stages[1].get("/film.m3u8").text == text.replacing(origin.url("/2.ts"), with: own))
                expectWhole(try stages[1].get("/2.ts"), film)
                try #expect(stages[0].stats[\.requests] >= 2)
                #expect(origin.requestCount("/film.m3u8") == 1 && origin.requestCount("/2.ts") == 1)
            }
        }

        // MARK: Parents that fail

        @Test func parentThatIsStoppedMidwayIsNotMissed() async throws {
            try await tiers(2) { origin, stages in
                let (parent, edge) = (stages[0], stages[1])
                try edge.asks(parent)
                origin.serve("/film.mp4", film)
                origin.script("/film.mp4") { $0.stallAfter = 1_000_000 }
                let (player, head) = try edge.playerOf("/film.mp4")
                #expect(head.status == 200)
                #expect(try player.difference(from: film, in: 0..<500_000) == nil)

                try parent.stop()
                origin.release("/film.mp4")

                #expect(try player.difference(from: film, in: 500_000..<film.size) == nil)
                let last = try #require(origin.requests("/film.mp4").last)
                #expect(origin.requestCount("/film.mp4") == 2)
                #expect(last.range.map { $0.lowerBound >= 500_000 } == true && last.headers["If-Range"] == "\"v1\"")
                try #expect(edge.stats.errors["parent-failed"] == 1)
            }
        }

        @Test func parentThatIsDownIsPassedOverAndIsNoFaultOfTheOrigin() async throws {
            // The clock stands still: the parent rests for the whole scenario.
            try await tiers(2, { $0.tuning.fill.clock = { 1_000_000_000 } }) { origin, stages in
                try stages[1].asks(stages[0])
                try stages[0].stop()
                for path in ["/a.mp4", "/b.mp4"] {
                    origin.serve(path, film)
                    expectWhole(try stages[1].get(path), film)
                }
                try #expect(stages[1].stats.errors["parent-failed"] == 1)
            }
        }

        @Test func nextParentIsAskedInPlaceOfOneThatIsDown() async throws {
            try await tiers(3) { origin, stages in
                try stages[2].asks(stages[0], stages[1])
                try stages[0].stop()
                for number in 1...4 {
                    origin.serve("/\(number).mp4", film)
                    expectWhole(try stages[2].get("/\(number).mp4"), film)
                }
                try #expect(stages[1].stats[\.requests] == 4)
            }
        }

        @Test func parentThatServesMountsAloneIsNoObstacle() async throws {
            try await tiers(2) { origin, stages in
                try stages[1].asks(stages[0])
                try stages[0].proxy.cache.reconfigure { $0.servesAnyOrigin = false }
                origin.serve("/film.mp4", film)
                expectWhole(try stages[1].get("/film.mp4"), film)
                #expect(origin.requestCount("/film.mp4") == 1)
            }
        }

        /// A ring of nodes is the parent of one that joins.
        @Test func parentThatServesMountsAloneServesTheseToItsChildren() async throws {
            try await tiers(2) { origin, stages in
                try stages[1].asks(stages[0])
                try stages[0].proxy.cache.reconfigure { $0.mounts = ["/films/": origin.url("/films/")] }
                try stages[0].proxy.cache.reconfigure { $0.servesAnyOrigin = false }
                for path in ["/films/a.mp4", "/other.mp4"] {
                    origin.serve(path, film)
                    origin.script(path) { $0.headers = [("Cache-Control", "max-age=60")] }
                }
                expectWhole(try RawClient.get(port: stages[0].proxy.port, path: "/films/a.mp4"), film)
                expectWhole(try stages[1].get("/films/a.mp4"), film)
                #expect(origin.requestCount("/films/a.mp4") == 1)
                expectWhole(try stages[1].get("/other.mp4"), film)
                try #expect(stages[0].stats.errors["refused"] == 1 && stages[1].stats.errors["parent-failed"] == 1)
            }
        }

        @Test func whatNobodyAnswersIsTheOriginsFailure() async throws {
            try await tiers(2) { origin, stages in
                try stages[1].asks(stages[0])
                origin.stop()
                expectOneLine(try stages[1].get("/film.mp4"), status: 502)
            }
        }

        enum Lie: CaseIterable { case version, position, length, status, page }

        @Test(arguments: Lie.allCases) func parentThatLiesIsContradictedByTheOrigin(_ lie: Lie) async throws {
            try await tiers(1) { origin, stages in
                let edge = stages[0], liar = try ScriptedOrigin()
                defer { liar.stop() }
                let url = origin.url("/film.mp4")
                origin.serve("/film.mp4", film)
                expectPart(try edge.get("/film.mp4", range: "bytes=0-99"), 0..<100, of: film)
                liar.serve(
                    url, lie == .version ? Media(seed: 32, size: film.size) : film,
                    etag: lie == .version ? "\"v2\"" : "\"v1\"")
                liar.script(url) {
                    switch lie {
                    case .version: break
                    case .position: $0.wrongContentRange = .shifted(by: 65_536)
                    case .length: ($0.cutAfter, $0.cutTimes) = (100_000, 100)
                    case .status: $0.status = 418
                    case .page: $0.contentType = "text/html"
                    }
                }
                try edge.asks("http://127.0.0.1:\(liar.port)")

                expectWhole(try edge.get("/film.mp4"), film)

                #expect(liar.requestCount(url) == 1)
                #expect(origin.requestCount("/film.mp4") == 2)
            }
        }

        /// Only the origin knows whether what is stored is gone.
        @Test(arguments: [404, 410, 416]) func errorOfAParentDoesNotEndWhatIsStored(status: Int) async throws {
            try await tiers(1) { origin, stages in
                let edge = stages[0], parent = try ScriptedOrigin()
                defer { parent.stop() }
                origin.serve("/film.mp4", film)
                expectPart(try edge.get("/film.mp4", range: "bytes=0-99"), 0..<100, of: film)
                parent.script(origin.url("/film.mp4")) {
                    ($0.status, $0.headers) = (status, [("Cache-Status", "reelcache; hit; ttl=9")])
                }
                try edge.asks("http://127.0.0.1:\(parent.port)")

                expectWhole(try edge.get("/film.mp4"), film)

                #expect(parent.requestCount(origin.url("/film.mp4")) == 1)
                #expect(origin.requests("/film.mp4").last?.range?.contains(0) == false, "the beginning was kept")
            }
        }

        /// RFC 9111 §4: of two versions the later one counts.
        @Test(arguments: [(nil, 5), (404, 5), (nil, 1000), (404, 1000)] as [(Int?, Int)], ["GET", "HEAD"])
        func parentWithAnOlderVersionIsPassedOver(_ answer: (status: Int?, age: Int), method: String) async throws {
            try await tiers(1) { origin, stages in
                let edge = stages[0], parent = try ScriptedOrigin(), url = origin.url("/film.mp4")
                defer { parent.stop() }
                origin.serve("/film.mp4", film)
                origin.script("/film.mp4") { $0.headers = [("Cache-Control", "max-age=10")] }
                expectWhole(try edge.get("/film.mp4"), film)
                let other = Media(seed: 33, size: 1_000_000), (status, age) = answer
                parent.serve(url, other, etag: "\"other\"")
                parent.script(url) {
                    $0.status = status
                    $0.headers = [
                        ("Cache-Status", "reelcache; hit"), ("Age", "\(age)"), ("Cache-Control", "max-age=2000"),
                    ]
                }
                try edge.asks("http://127.0.0.1:\(parent.port)")
                edge.wait(seconds: 100)
                parent.setClock(edge.clock.now)

                let response = try edge.get("/film.mp4", method: method)

                #expect(parent.requestCount(url) == 1)
                if age == 1000 {
                    #expect(origin.requests("/film.mp4").last?.status == 304)
                    expectWhole(method == "GET" ? response : try edge.get("/film.mp4"), film)
                    #expect(origin.requestCount("/film.mp4") == 2)
                } else {
                    #expect(response.status == status ?? 200)
                    if status == nil, method == "GET" { expectWhole(response, other) }
                    #expect(origin.requestCount("/film.mp4") == 1)
                }
            }
        }

        /// An edge without a way to the origin depends on its parents.
        @Test func parentIsRequestedWhereTheOriginIsOutOfReach() async throws {
            try await tiers(1) { origin, stages in
                let edge = stages[0], parent = try ScriptedOrigin(), url = origin.url("/film.mp4")
                defer { parent.stop() }
                parent.serve(url, film)
                parent.script(url) {
                    $0.headers = [("Cache-Status", "reelcache; hit"), ("Cache-Control", "max-age=10")]
                }
                parent.serve(origin.url("/other.mp4"), film)
                parent.script(origin.url("/other.mp4")) { $0.status = 403 }
                origin.stop()
                try edge.asks("http://127.0.0.1:\(parent.port)")
                expectWhole(try edge.get("/film.mp4"), film)
                edge.wait(seconds: 100)
                _ = try edge.get("/other.mp4")
                expectWhole(try edge.get("/film.mp4"), film)
                #expect(parent.requestCount(url) == 2)
            }
        }

        /// What a HEAD has put in doubt keeps the time that it is of.
        @Test func parentWithAnOlderVersionDoesNotReplaceADoubtedOne() async throws {
            try await tiers(1) { origin, stages in
                let edge = stages[0], parent = try ScriptedOrigin(), url = origin.url("/film.mp4")
                defer { parent.stop() }
                let newest = Media(seed: 34, size: 1_000_000)
                origin.serve("/film.mp4", film)
                expectWhole(try edge.get("/film.mp4"), film)
                origin.serve("/film.mp4", newest, etag: "\"newest\"")
                _ = try edge.get("/film.mp4", headers: [("Cache-Control", "no-cache")], method: "HEAD")
                parent.serve(url, Media(seed: 33, size: 1_000_000), etag: "\"oldest\"")
                parent.script(url) {
                    $0.headers = [
                        ("Cache-Status", "reelcache; hit"), ("Age", "1000"), ("Cache-Control", "max-age=2000"),
                    ]
                }
                try edge.asks("http://127.0.0.1:\(parent.port)")
                expectWhole(try edge.get("/film.mp4"), newest)
                #expect(parent.requestCount(url) == 1)
            }
        }

        /// What was stored directly is as good as before where a proxy does not tell the addresses of origins. But no
        /// page may read it any more, as it may have come from this network.
        @Test func whatIsStoredStaysBehindAnUpstreamProxy() async throws {
            try await scenario { stage in
                let proxy = try ScriptedProxy(.http, to: stage.origin.port), url = "/http/origin.test/film.mp4"
                defer { proxy.stop() }
                stage.origin.serve("/film.mp4", film)
                let engine = stage.proxy.cache.engine
                try stage.proxy.cache.reconfigure { $0.upstreamProxy = "http://127.0.0.1:\(proxy.port)" }
                expectPart(try stage.ask(url, range: "bytes=0-99"), 0..<100, of: film)
                let key = engine.policy.value.resolve(try OriginURL(url: "http://origin.test/film.mp4")).key
                guard case .generation(let stored)? = engine.filler.resource(key).view() else {
                    Issue.record("nothing is stored")
                    return
                }
                // As if it had come directly.
                stored.setHead {
                    GenerationHead(
                        status: $0.status, fields: $0.fields, finalURL: $0.finalURL, isPublic: true,
                        storedAt: $0.storedAt, times: $0.times)
                }
                expectWhole(try stage.ask(url), film)
                #expect(!stored.isRetired && !stored.head.isPublic)
                #expect(stage.origin.requests("/film.mp4").last?.range?.contains(0) == false)
            }
        }

        /// How busy one origin is says nothing of the others.
        @Test func backOffOfAnOriginIsNotThatOfTheParent() async throws {
            let busy = try ScriptedOrigin()
            defer { busy.stop() }
            busy.script("/a/1.mp4") { ($0.status, $0.retryAfter) = (503, 3600) }
            try await tiers(2) { origin, stages in
                try stages[1].asks(stages[0])
                origin.serve("/film.mp4", film)
                for path in ["/a/1.mp4", "/a/2.mp4"] {
                    let answer = try stages[1].ask("/http/127.0.0.1:\(busy.port)\(path)")
                    #expect(answer.status == 503 && answer.headers["Retry-After"] != nil)
                }
                expectWhole(try stages[1].get("/film.mp4"), film)
                try #expect(stages[0].stats[\.requests] == 3)
                #expect(busy.requestCount("/a/2.mp4") == 0)
            }
        }

        /// Nor is an origin in back-off asked for a HEAD once no parent is left.
        @Test func headWaitsForTheOriginToo() async throws {
            // The clock stands still: the parent rests for the whole scenario.
            try await tiers(2, { $0.tuning.fill.clock = { 1_000_000_000 } }) { origin, stages in
                try stages[1].asks(stages[0])
                try stages[0].stop()
                origin.script("/film.mp4") { ($0.status, $0.retryAfter) = (503, 3600) }
                #expect(try stages[1].get("/film.mp4").status == 503)
                #expect(try stages[1].get("/film.mp4", method: "HEAD").status == 503)
                #expect(origin.requestCount("/film.mp4") == 1)
            }
        }

        /// RFC 9111 §4.4: the parent has not seen the request that changed it.
        @Test(arguments: ["GET", "HEAD"]) func whatAClientHasChangedIsNotTheParentsOldCopy(method: String) async throws
        {
            try await tiers(2) { origin, stages in
                let edge = stages[1], newer = Media(seed: 34, size: 1_000_000)
                try edge.asks(stages[0])
                try edge.proxy.cache.reconfigure { $0.mounts = ["/tv/": origin.url("/")] }
                origin.serve("/film.mp4", film)
                origin.script("/film.mp4") { $0.headers = [("Cache-Control", "max-age=1000")] }
                expectWhole(try edge.get("/film.mp4"), film)
                origin.script("/film.mp4") { $0.status = 204 }
                #expect(try edge.send("PUT", "/tv/film.mp4", [1]).status == 204)
                origin.serve("/film.mp4", newer, etag: "\"v2\"")
                origin.script("/film.mp4") { $0.status = nil }
                let response = try edge.get("/film.mp4", method: method)
                if method == "GET" { expectWhole(response, newer) }
                #expect(response.headers["ETag"] == "\"v2\"")
            }
        }

        // MARK: Circles

        /// Anybody may name a parent in the `Via` of a request.
        @Test func forgedViaCostsOneRequest() async throws {
            try await tiers(2) { origin, stages in
                for path in ["/a.mp4", "/b.mp4", "/c.mp4"] { origin.serve(path, film) }
                expectWhole(try stages[0].get("/a.mp4"), film)
                let name = try #require(origin.requests("/a.mp4").first?.headers["Via"])
                try stages[1].asks(stages[0])
                expectWhole(try stages[1].get("/b.mp4", headers: [("Via", name)]), film)
                try #expect(stages[1].stats.errors["parent-failed"] == 1)
                expectWhole(try stages[1].get("/c.mp4"), film)
                let way = origin.requests("/c.mp4").first?.headers["Via"]
                #expect(way?.hasSuffix(name) == true && way != name, "\(way ?? "")")
            }
        }

        @Test(arguments: [1, 2, 3]) func circleOfParentsEndsAtTheOrigin(_ count: Int) async throws {
            try await tiers(count) { origin, stages in
                for (index, stage) in stages.enumerated() { try stage.asks(stages[(index + 1) % count]) }
                origin.serve("/film.mp4", film)
                expectWhole(try stages[0].get("/film.mp4"), film)
                #expect(origin.requestCount("/film.mp4") == 1)
            }
        }

        /// Each waits for the other's fetch of the same file, which neither `Via` shows.
        @Test func clientsOfACircleThatBeginAtOnceDoNotWaitForEachOther() async throws {
            try await tiers(2) { setting in
                setting.tuning.fill.parentPatience = 0.02
                // Waiting for this would take longer than the test may.
                setting.tuning.upstream.stallTimeout = 600
            } _: { origin, stages in
                for (index, stage) in stages.enumerated() { try stage.asks(stages[1 - index]) }
                for round in 1...20 {
                    let path = "/\(round).mp4"
                    origin.serve(path, film)
                    for response in try concurrently(2, { try stages[$0].get(path) }) { expectWhole(response, film) }
                    #expect(origin.requestCount(path) <= 2)
                }
            }
        }
    }
}

/// Proxies before one origin, which stand beside each other until they are told whom to ask.
private func tiers(
    _ count: Int, _ change: (inout Stage.Setting) -> Void = { _ in },
    _ story: @escaping @Sendable (ScriptedOrigin, [Stage]) throws -> Void
) async throws {
    var setting = Stage.Setting()
    change(&setting)
    try await blocking { [setting] in
        var setting = setting
        let origin = try ScriptedOrigin()
        setting.origin = origin
        var stages: [Stage] = []
        defer { for stage in stages { stage.end() } }
        for _ in 0..<count { stages.append(try Stage(setting)) }
        try story(origin, stages)
    }
}

extension Stage {
    /// From now on, asks these before the origin.
    fileprivate func asks(_ parents: Stage...) throws { try asks(parents.map(\.proxy.baseURL)) }

    fileprivate func asks(_ parent: String) throws { try asks([parent]) }

    private func asks(_ parents: [String]) throws {
        var rule = ResourceRule()
        rule.parents = parents
        try proxy.cache.reconfigure { $0.rules = [rule] }
    }
}
