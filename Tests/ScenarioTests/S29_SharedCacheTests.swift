import Foundation
import CachePolicy
import DiskCache
import HTTPModel
import Reelcache
import TestSupport
import Testing

private let film = Media(seed: 91, size: 900_000)
private let remake = Media(seed: 92, size: 1_000_000)
private let path = "/film.mp4"
private let (anna, ben) = ([("Authorization", "Basic YW5uYTox")], [("Authorization", "Basic YmVuOjI=")])

private extension Stage {
    /// Serves a film with these fields beside its validators.
    func serve(
        _ media: Media = film, at path: String = path, etag: String = "\"v1\"", fields headers: [(String, String)]
    ) {
        origin.serve(path, media, etag: etag)
        origin.script(path) { $0.headers = headers }
    }

    func serve(control: String) { serve(fields: [("Cache-Control", control)]) }
}

/// Plays a scenario with a cache that is shared, whatever is mounted.
private func shared(
    _ change: @escaping @Sendable (inout ProxyConfiguration) -> Void = { _ in },
    _ story: @escaping @Sendable (Stage) throws -> Void
) async throws {
    try await scenario {
        $0.configure { configuration in
            configuration.cache = .shared
            change(&configuration)
        }
    } _: {
        try story($0)
    }
}

/// Four users, told apart by a token, request the same while its origin is answering.
/// - Parameter count: how many of them it answers.
private func expectOfEach(_ stage: Stage, _ path: String, count: Int, _ check: (RawClient.Response) -> Void) throws {
    let before = stage.origin.requestCount(path)
    stage.origin.holdHeads(path)
    let users = try Background { try concurrently(4) { try stage.get(path, headers: [("X-Emby-Token", "\($0)")]) } }
    try stage.waitForStats("all to wait") { $0[\.collapsed] == 3 }
    stage.origin.release(path)
    for response in try users.value() { check(response) }
    let asked = stage.origin.requests(path).dropFirst(before)
    #expect(asked.count == count && Set(asked.compactMap { $0.headers["X-Emby-Token"] }).count == count)
}

/// A cache for many users keeps what is for all of them, and nothing that is for one (RFC 9111 §3, §5.2.2, RFC 9213).
extension Scenarios {
    @Suite struct S29SharedCache {
        // MARK: What is not stored

        @Test(arguments: ["private", "private, max-age=60", "PRIVATE=\"\", s-maxage=60"])
        func whatIsForOneUserPassesThroughAMountAndIsNotStored(control: String) async throws {
            try await mounted { stage in
                stage.serve(at: "/vod/film.mp4", fields: [("Cache-Control", control)])
                for _ in 1...2 {
                    let response = try stage.ask("/tv/film.mp4")
                    expectWhole(response, film)
                    #expect(response.cacheStatus == "reelcache; fwd=uri-miss; fwd-status=200; detail=\"private\"")
                    #expect(response.headers["Cache-Control"] == control)
                }
                expectPart(try stage.ask("/tv/film.mp4", range: "bytes=500000-599999"), 500_000..<600_000, of: film)
                #expect(stage.origin.requestCount("/vod/film.mp4") == 3)
                #expect(stage.dataFiles.isEmpty)
            }
        }

        // The same mount beside other origins serves those who trust each other.
        @Test func whereAnyOriginIsServedTheCacheIsPrivate() async throws {
            try await mounted(anyOrigin: true) { stage in
                stage.serve(at: "/vod/film.mp4", fields: [("Cache-Control", "private, max-age=60")])
                expectWhole(try stage.ask("/tv/film.mp4"), film)
                #expect(try stage.ask("/tv/film.mp4").isHit)
            }
        }

        @Test func playersThatWaitForWhatIsForOneUserGetAnAnswerEach() async throws {
            try await shared { stage in
                stage.serve(control: "private, max-age=60")
                stage.origin.holdHeads(path)
                let players = try Background { try concurrently(6) { _ in try stage.get(path) } }
                try stage.waitForStats("5 collapsed requests") { $0[\.collapsed] == 5 }
                stage.origin.release(path)
                for response in try players.value() { expectWhole(response, film) }
                #expect(stage.origin.requestCount(path) == 6 && stage.dataFiles.isEmpty)
            }
        }

        @Test func fieldsForOneUserAreLeftOutOfWhatIsStored() async throws {
            try await shared { stage in
                stage.serve(fields: [
                    ("Cache-Control", "private=\"X-User, x-plan\", max-age=60"), ("X-User", "anna"), ("X-Plan", "b"),
                    ("X-Other", "c"),
                ])
                expectWhole(try stage.get(path), film)
                let hit = try stage.get(path)
                expectWhole(hit, film)
                #expect(hit.isHit && hit.headers["X-Other"] == "c")
                #expect(hit.headers["X-User"] == nil && hit.headers["X-Plan"] == nil)
                try stage.restart()
                #expect(try stage.get(path).headers["X-User"] == nil)
            }
        }

        // MARK: Authorization

        @Test(arguments: [nil, "max-age=60", "max-age=60, proxy-revalidate"] as [String?])
        func whatCredentialsOpenedIsStoredForNobody(control: String?) async throws {
            try await shared { stage in
                stage.serve(fields: control.map { [("Cache-Control", $0)] } ?? [])
                for headers in [anna, anna, ben] {
                    let response = try stage.get(path, headers: headers)
                    expectWhole(response, film)
                    #expect(response.cacheStatus == "reelcache; fwd=uri-miss; fwd-status=200; detail=\"authorization\"")
                }
                #expect(stage.origin.requestCount(path) == 3 && stage.dataFiles.isEmpty)
                // A request without credentials is nobody's in particular.
                expectWhole(try stage.get(path), film)
                #expect(!stage.dataFiles.isEmpty)
            }
        }

        @Test(arguments: ["public, max-age=60", "s-maxage=60", "max-age=60, must-revalidate"])
        func whatMayBeStoredAllTheSameIsForAll(control: String) async throws {
            try await shared { stage in
                stage.serve(control: control)
                #expect(try stage.get(path, headers: anna).cacheStatus.hasSuffix("; stored"))
                for headers in [anna, ben, []] {
                    let response = try stage.get(path, headers: headers)
                    expectWhole(response, film)
                    #expect(response.isHit)
                }
                #expect(stage.origin.requestCount(path) == 1)
            }
        }

        // Anna's credentials may open what Ben must not see any more.
        @Test(arguments: [("max-age=60", false), ("max-age=60, public", true)])
        func whatIsConfirmedToOneUserIsNotConfirmedToOthers(control: String, isForAll: Bool) async throws {
            try await shared { stage in
                stage.serve(control: control)
                expectWhole(try stage.get(path), film)
                stage.wait(seconds: 100)
                let confirmed = try stage.get(path, headers: anna)
                expectWhole(confirmed, film)
                #expect(confirmed.cacheStatus == "reelcache; fwd=stale; fwd-status=304")
                stage.origin.script(path) { $0.status = isForAll ? nil : 401 }
                let other = try stage.get(path, headers: ben)
                #expect(other.isHit == isForAll && other.status == (isForAll ? 200 : 401))
                #expect(stage.origin.requests(path).last?.headers["Authorization"] == (isForAll ? anna : ben)[0].1)
            }
        }

        // One of them opens it, and the other waits for that: what may be reused is for both, and what has to be asked
        // for each time is not.
        @Test(
            arguments: [
                ("max-age=60", true), ("must-revalidate, max-age=0", true), ("public, no-cache", true),
                ("public, max-age=60", false),
            ], [false, true])
        func whoWaitsForWhatCredentialsOpenAsksWithTheirOwn(_ control: (fields: String, isEach: Bool), isStored: Bool)
            async throws
        {
            try await shared { stage in
                stage.serve(control: control.fields)
                if isStored { expectWhole(try stage.get(path), film) }
                stage.wait(seconds: 100)
                stage.origin.holdHeads(path)
                let users = try Background {
                    try concurrently(2) { try stage.get(path, headers: [anna, ben][$0]) }
                }
                try stage.waitForStats("both to wait") { $0[\.collapsed] == 1 }
                stage.origin.release(path)
                for response in try users.value() { expectWhole(response, film) }
                let asked = stage.origin.requests(path).compactMap { $0.headers["Authorization"] }
                #expect(asked.count == (control.isEach ? 2 : 1))
                if control.isEach { #expect(Set(asked) == [anna[0].1, ben[0].1]) }
            }
        }

        // Media servers tell their users apart by fields of their own.
        @Test(
            arguments: [
                ("no-cache", true), ("max-age=0", true), (nil, true), ("must-revalidate, max-age=0", true),
                ("max-age=60", false),
            ] as [(String?, Bool)], [false, true])
        func whoWaitsSharesOnlyWhatMayBeReusedWithoutValidation(
            _ control: (fields: String?, isEach: Bool), isStored: Bool
        ) async throws {
            try await shared { stage in
                stage.serve(fields: control.fields.map { [("Cache-Control", $0)] } ?? [])
                if isStored { expectWhole(try stage.get(path), film) }
                stage.wait(seconds: 100)
                try expectOfEach(stage, path, count: control.isEach ? 4 : 1) { expectWhole($0, film) }
                // All of them play what one transfer has brought.
                let bodies = stage.origin.requests(path).count { $0.headers["If-None-Match"] == nil }
                #expect(bodies == 1)
            }
        }

        // The same on one's own machine, where a response without a lifetime is fresh for ten minutes.
        @Test(arguments: [("no-cache", 4), ("max-age=0", 4), (nil, 1), ("max-age=60", 1)] as [(String?, Int)])
        func inAPrivateCacheAsWell(control: String?, count: Int) async throws {
            try await scenario { stage in
                stage.serve(fields: control.map { [("Cache-Control", $0)] } ?? [])
                try expectOfEach(stage, path, count: count) { expectWhole($0, film) }
            }
        }

        @Test(arguments: [("no-cache", 4), ("max-age=60", 1)])
        func playlistIsShared(control: String, count: Int) async throws {
            let list = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n1.ts\n#EXT-X-ENDLIST\n"
            try await shared { stage in
                stage.origin.serve("/a.m3u8", bytes: Array(list.utf8), contentType: "application/vnd.apple.mpegurl")
                stage.origin.script("/a.m3u8") { $0.headers = [("Cache-Control", control)] }
                try expectOfEach(stage, "/a.m3u8", count: count) { #expect($0.text.contains("1.ts")) }
            }
        }

        // What is refused to one may be permitted to another; a fault is nobody's own.
        @Test(
            arguments: [
                (CacheMode.shared, 404, nil, 4), (.shared, 403, nil, 4), (.shared, 404, "max-age=60", 1),
                (.shared, 500, nil, 1), (.shared, 500, "no-store", 4), (.private, 403, nil, 4), (.private, 404, nil, 1),
                (.private, 404, "no-cache", 4),
            ] as [(CacheMode, Int, String?, Int)])
        func whoWaitsSharesNoRefusal(cache: CachePolicy.CacheMode, status: Int, control: String?, count: Int)
            async throws
        {
            try await shared {
                $0.cache = cache == .shared ? .shared : .private
            } _: { stage in
                stage.serve(fields: control.map { [("Cache-Control", $0)] } ?? [])
                stage.origin.script(path) { ($0.status, $0.body) = (status, [1]) }
                try expectOfEach(stage, path, count: count) { #expect($0.status == status) }
            }
        }

        // The operator gives them to all who use the proxy.
        @Test func credentialsOfARuleAreForAll() async throws {
            try await shared {
                $0.rules = [.init(hosts: ["http://127.0.0.1:*"]) { $0.headers = ["Authorization": "Bearer key"] }]
            } _: { stage in
                stage.serve(control: "max-age=60")
                expectWhole(try stage.get(path, headers: anna), film)
                #expect(stage.origin.requests(path).first?.headers["Authorization"] == "Bearer key")
                for headers in [ben, []] { #expect(try stage.get(path, headers: headers).isHit) }
            }
        }

        // MARK: Lifetimes

        @Test func originStatesALifetimeForSharedCaches() async throws {
            try await shared { stage in
                stage.serve(control: "max-age=1000, s-maxage=60")
                expectWhole(try stage.get(path), film)
                stage.wait(seconds: 50)
                #expect(try stage.get(path).headers["Cache-Status"] == "reelcache; hit; ttl=10")
                stage.wait(seconds: 20)
                let validated = try stage.get(path, headers: [("Cache-Control", "max-stale")])
                expectWhole(validated, film)
                #expect(validated.cacheStatus == "reelcache; fwd=stale; fwd-status=304")
            }
        }

        @Test(
            arguments: [
                ("max-age=60, proxy-revalidate", "proxy-revalidate"),
                ("s-maxage=60, stale-while-revalidate=999", "s-maxage"),
            ])
        func whatMustBeRevalidatedIsNotPlayedWithoutItsOrigin(control: String, word: String) async throws {
            try await shared { stage in
                stage.serve(control: control)
                expectWhole(try stage.get(path), film)
                stage.wait(seconds: 100)
                stage.origin.script(path) { $0.status = 503 }
                let refused = try stage.get(path)
                expectOneLine(refused, status: 504)
                #expect(refused.text.contains("(Cache-Control: \(word))"), "\(refused.text)")
                // In a private cache these words mean nothing.
                try stage.proxy.cache.reconfigure { $0.cache = .private }
                expectWhole(try stage.get(path), film)
            }
        }

        @Test func fieldForCachesLikeThisGoesFirst() async throws {
            try await shared { stage in
                let fields = [
                    ("Cache-Control", "private, max-age=5"), ("CDN-Cache-Control", "max-age=60"),
                    ("Expires", "Thu, 01 Jan 1970 00:00:00 GMT"),
                ]
                stage.serve(fields: fields)
                expectWhole(try stage.get(path, headers: []), film)
                stage.wait(seconds: 50)
                let hit = try stage.get(path)
                expectWhole(hit, film)
                #expect(hit.headers["Cache-Status"] == "reelcache; hit; ttl=10")
                // Players get all of them.
                for (name, value) in fields { #expect(hit.headers[name] == value) }
                let detail = try stage.read(ResourceDetail.self, "/resources?\(stage.parameter(path))")
                #expect(detail.targetedCacheControl == ["CDN-Cache-Control": "max-age=60"])
                #expect(
                    Freshness.of(detail.freshnessFields, .init(validatedAt: 0), ttl: nil, terms: .shared, now: 0)
                        .lifetime == 60)
                // It counts after a restart, and is updated by a 304.
                try stage.restart()
                #expect(try stage.get(path).isHit)
                stage.origin.script(path) {
                    $0.headers = [("CDN-Cache-Control", "max-age=10"), ("Cache-Control", "max-age=99")]
                }
                stage.wait(seconds: 20)
                #expect(try stage.get(path).cacheStatus == "reelcache; fwd=stale; fwd-status=304")
                stage.wait(seconds: 20)
                #expect(try stage.get(path).cacheStatus == "reelcache; fwd=stale; fwd-status=304")
            }
        }

        @Test func malformedFieldIsAsIfItWereAbsent() async throws {
            try await shared {
                $0.targetedFields = ["Edge-Cache-Control", "CDN-Cache-Control"]
            } _: { stage in
                stage.serve(fields: [
                    ("Edge-Cache-Control", "Max-Age = 5"), ("CDN-Cache-Control", "max-age=60"),
                    ("Cache-Control", "no-store"),
                ])
                expectWhole(try stage.get(path), film)
                #expect(try stage.get(path).headers["Cache-Status"] == "reelcache; hit; ttl=60")
                try stage.proxy.cache.reconfigure { $0.targetedFields = [] }
                expectWhole(try stage.get(path), film)
                stage.origin.script(path) { $0.headers.removeAll { $0.0 == "Cache-Control" } }
                #expect(try stage.get(path).cacheStatus == "reelcache; fwd=stale; fwd-status=304")
            }
        }

        @Test func withoutALifetimeAMountIsValidatedOnEveryRequest() async throws {
            try await shared { stage in
                stage.serve(fields: [])
                expectWhole(try stage.get(path), film)
                let validated = try stage.get(path)
                expectWhole(validated, film)
                #expect(validated.cacheStatus == "reelcache; fwd=stale; fwd-status=304")
                // The setting is for both kinds.
                try stage.proxy.cache.reconfigure { $0.defaultTTL = .seconds(60) }
                #expect(try stage.get(path).isHit)
                stage.wait(seconds: 70)
                #expect(try !stage.get(path).isHit)
                try stage.proxy.cache.reconfigure { $0.cache = .private }
                stage.wait(seconds: 70)
                #expect(try !stage.get(path).isHit)
                try stage.proxy.cache.reconfigure { $0.defaultTTL = nil }
                stage.wait(seconds: 590)
                #expect(try stage.get(path).isHit)
            }
        }

        // MARK: A cache that becomes shared

        @Test(arguments: [false, true]) func whatWasStoredForOneUserAnswersNobodyOnceTheCacheIsShared(restarts: Bool)
            async throws
        {
            try await scenario { stage in
                stage.serve(control: "private, max-age=1000")
                stage.serve(at: "/opened.mp4", fields: [("Cache-Control", "max-age=1000")])
                expectWhole(try stage.get(path), film)
                expectWhole(try stage.get("/opened.mp4", headers: anna), film)
                #expect(try stage.get(path).isHit && stage.get("/opened.mp4", headers: anna).isHit)
                if restarts { try stage.restart() }
                try stage.proxy.cache.reconfigure { $0.cache = .shared }

                // The origin would confirm it; but that would be for this user.
                let (private_, opened) = (try stage.get(path), try stage.get("/opened.mp4", headers: anna))
                expectWhole(private_, film)
                #expect(private_.cacheStatus == "reelcache; fwd=uri-miss; fwd-status=200; detail=\"private\"")
                expectWhole(opened, film)
                #expect(opened.cacheStatus == "reelcache; fwd=uri-miss; fwd-status=200; detail=\"authorization\"")
                for path in [path, "/opened.mp4"] {
                    #expect(stage.origin.requests(path).last?.headers["If-None-Match"] == nil)
                    #expect(try !stage.get(path, headers: ben).isHit)
                }
                // What is for all by now is stored again.
                stage.serve(remake, etag: "\"v2\"", fields: [("Cache-Control", "max-age=1000")])
                expectWhole(try stage.get(path), remake)
                #expect(try stage.get(path).isHit)
            }
        }

        @Test func whatWasStoredForOneUserIsNotPlayedOfflineNorInPlaceOfAnError() async throws {
            try await scenario { stage in
                stage.serve(control: "private, max-age=1000")
                expectWhole(try stage.get(path), film)
                try stage.proxy.cache.reconfigure { $0.cache = .shared }
                try stage.proxy.cache.reconfigure { $0.isOffline = true }
                expectOneLine(try stage.get(path), status: 504)
                expectOneLine(try stage.get(path, headers: [("Cache-Control", "only-if-cached")]), status: 504)
                try stage.proxy.cache.reconfigure { $0.isOffline = false }
                stage.origin.script(path) { $0.status = 503 }
                #expect(try stage.get(path).status == 503)
            }
        }

        @Test func whatIsPinnedStaysForWhenTheCacheIsPrivateAgain() async throws {
            try await scenario { stage in
                stage.serve(control: "private, max-age=1000")
                expectWhole(try stage.get(path), film)
                let url = try #require(URL(string: stage.origin.url(path)))
                try stage.proxy.cache.pin(url)
                try stage.proxy.cache.reconfigure { $0.cache = .shared }
                let passed = try stage.get(path)
                expectWhole(passed, film)
                #expect(!passed.isHit && stage.origin.requestCount(path) == 2)
                try stage.proxy.cache.reconfigure { $0.cache = .private }
                let hit = try stage.get(path)
                expectWhole(hit, film)
                #expect(hit.isHit && stage.origin.requestCount(path) == 2)
            }
        }

        // The 304 is for the user who asked.
        @Test func whatAnOriginMakesPrivateAnswersNobodyElse() async throws {
            try await shared { stage in
                stage.serve(control: "max-age=60")
                expectWhole(try stage.get(path), film)
                stage.wait(seconds: 100)
                stage.origin.script(path) { $0.headers = [("Cache-Control", "private, max-age=60")] }
                expectWhole(try stage.get(path), film)
                let next = try stage.get(path)
                expectWhole(next, film)
                #expect(!next.isHit)
                #expect(stage.origin.requests(path).last?.headers["If-None-Match"] == nil)
            }
        }

        @Test func mountsStoreAsEachOfThemSays() async throws {
            try await scenario { stage in
                try stage.proxy.cache.reconfigure {
                    $0.mounts = ["/all/": stage.origin.url("/a/"), "/mine/": stage.origin.url("/b/")]
                    $0.mountCaches = ["/all/": .shared]
                }
                for path in ["/a/film.mp4", "/b/film.mp4"] {
                    stage.serve(at: path, fields: [("Cache-Control", "private, max-age=60")])
                }
                // In every form of the URL.
                for target in ["/all/film.mp4", stage.target("/a/film.mp4"), stage.absolute("/a/film.mp4")] {
                    let response = try stage.ask(target)
                    expectWhole(response, film)
                    #expect(!response.isHit && response.cacheStatus.contains("private"))
                }
                expectWhole(try stage.ask("/mine/film.mp4"), film)
                for target in ["/mine/film.mp4", stage.target("/b/film.mp4")] { #expect(try stage.ask(target).isHit) }
            }
        }

        // MARK: Downloads and variants

        @Test func downloadOfWhatIsForOneUserFailsWithAReason() async throws {
            try await shared { stage in
                stage.serve(control: "private")
                let fault = try stage.download(path).fault()
                #expect(fault?.kind == .final, "\(fault?.message ?? "")")
                #expect(fault?.message.contains("cache: private") == true, "\(fault?.message ?? "")")
                #expect(stage.dataFiles.isEmpty && stage.origin.requestCount(path) == 1)
            }
        }

        @Test func languagesInAnotherSpellingSelectTheSame() async throws {
            try await scenario { stage in
                stage.serve(fields: [("Vary", "Accept-Language"), ("Cache-Control", "max-age=60")])
                expectWhole(try stage.get(path, headers: [("Accept-Language", "de-DE,en;q=0.5,fr;q=0.5")]), film)
                for field in ["fr;q=0.50, en; q=0.500 ,DE-de", "de-de;q=1.0,fr;q=0.5,,EN;Q=0.5"] {
                    let hit = try stage.get(path, headers: [("Accept-Language", field)])
                    expectWhole(hit, film)
                    #expect(hit.isHit, "\(field)")
                }
                stage.serve(
                    remake, etag: "\"fr\"", fields: [("Vary", "Accept-Language"), ("Cache-Control", "max-age=60")])
                let other = try stage.get(path, headers: [("Accept-Language", "de-DE,en;q=0.6,fr;q=0.5")])
                expectWhole(other, remake)
                #expect(other.cacheStatus == "reelcache; fwd=vary-miss; fwd-status=200; stored")
            }
        }
    }
}
