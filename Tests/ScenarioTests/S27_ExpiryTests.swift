import Activity
import CachePolicy
import Foundation
import Reelcache
import TestSupport
import Testing

private let film = Media(seed: 270, size: 1_500_000)
private let other = Media(seed: 271, size: film.size)
private let signed = #"echo "$media?sig=$n""#

private extension ScriptedOrigin {
    /// Serves the film at links that expire one after the other.
    func serveExpiring(
        _ media: Media = film, links: ClosedRange<Int> = 1...5, after bytes: Int64 = 250_000, etag: String? = "\"v1\""
    ) {
        for number in links {
            serve("/film.mp4?sig=\(number)", media, etag: etag)
            script("/film.mp4?sig=\(number)") { $0.expiresAfter = bytes }
        }
    }

    /// All bytes that were sent for the film.
    var filmBytes: Int64 { snapshot.requests.filter { $0.status != 403 }.reduce(0) { $0 + $1.bodyBytesSent } }
}

extension Scenarios {
    /// Links that expire while the media is read.
    @Suite struct S27Expiry {
        @Test func linkThatExpiresFiveTimesIsResolvedAgainUnderTheRunningResponse() async throws {
            try await Stage.resolving(signed) { stage, resolver in
                stage.origin.serveExpiring()
                stage.origin.serve("/film.mp4?sig=6", film)
                expectWhole(try stage.get("/watch?v=1"), film)
                #expect(resolver.runs.count == 6)
                #expect(stage.origin.filmBytes == film.size, "something was fetched twice")
                #expect(try stage.stats[\.refreshedLinks] == 5)
                try stage.catchUp()
                #expect(try stage.get("/watch?v=1").isHit)
            }
        }

        /// Nothing shows the version but the bytes themselves.
        @Test(arguments: [nil, "W/\"v1\""])
        func linkOfMediaWithoutAStrongValidatorContinuesWhereTheBytesAgree(etag: String?) async throws {
            try await Stage.resolving(signed) { stage, resolver in
                stage.origin.serveExpiring(etag: etag)
                stage.origin.serve("/film.mp4?sig=6", film, etag: etag)
                expectWhole(try stage.get("/watch?v=1"), film)
                #expect(resolver.runs.count == 6)
                // Each continuation repeats 64 KiB.
                #expect(stage.origin.filmBytes == film.size + 5 * 65_536)
                try stage.catchUp()
                #expect(try stage.get("/watch?v=1").isHit)
            }
        }

        @Test(
            arguments: [
                // Another entity tag.
                ("\"v1\"", "\"v2\"", film), ("W/\"v1\"", "W/\"v2\"", film),
                // Other bytes, without a tag.
                (nil, nil, other),
                // Another length.
                ("\"v1\"", "\"v1\"", Media(seed: 270, size: 1_500_001)), (nil, nil, Media(seed: 270, size: 1_500_001)),
            ] as [(String?, String?, Media)])
        func anotherVersionBehindTheNewLinkCutsTheResponse(first: String?, second: String?, media: Media) async throws {
            try await Stage.resolving(signed) { stage, resolver in
                stage.origin.serveExpiring(links: 1...1, etag: first)
                stage.origin.serve("/film.mp4?sig=2", media, etag: second)
                let player = try stage.player()
                expectCut {
                    try player.send(player.request(stage.target("/watch?v=1")))
                    return try player.readResponse()
                }
                #expect(player.partialBody.count >= 200_000)
                #expect(film.firstMismatch(player.partialBody, at: 0) == nil, "bytes of two versions met")
                #expect(resolver.runs.count == 2)
                // The next player gets the new version, whole.
                expectWhole(try stage.get("/watch?v=1"), media)
            }
        }

        /// An origin that assembles each answer does so behind a redirect: the next one would be another.
        @Test func brokenTransferGoesOnWhereItsLinkRedirectedTo() async throws {
            try await Stage.resolving(signed) { stage, resolver in
                stage.origin.serve("/session/1", film, etag: nil)
                stage.origin.script("/session/1") { $0.cutAfter = 500_000 }
                stage.origin.serve("/session/2", other, etag: nil)
                stage.origin.script("/film.mp4") { [port = stage.origin.port] in
                    $0.redirects = (1...2).map { "http://127.0.0.1:\(port)/session/\($0)" }
                }
                expectWhole(try stage.get("/watch?v=1"), film)
                #expect(stage.origin.requestCount("/film.mp4") == 1 && resolver.runs.count == 1)
            }
        }

        @Test(arguments: [401, 403, 404, 410]) func gapOfAnExpiredLinkIsRequestedAtAFreshOne(status: Int) async throws {
            try await Stage.resolving(signed) { stage, resolver in
                stage.origin.serve("/film.mp4?sig=1", film)
                stage.origin.serve("/film.mp4?sig=2", film)
                expectPart(try stage.get("/watch?v=1", range: "bytes=0-99"), 0..<100, of: film)
                stage.origin.script("/film.mp4?sig=1") { $0.status = status }
                expectWhole(try stage.get("/watch?v=1"), film)
                #expect(resolver.runs.count == 2)
                #expect(stage.origin.requestCount("/film.mp4?sig=1") == 2)
            }
        }

        @Test func expiredLinkOfAnUncachedPartIsReplacedForItsFirstRequestToo() async throws {
            try await Stage.resolving(signed) { stage, resolver in
                stage.origin.serve("/film.mp4?sig=1", film, etag: nil)
                stage.origin.serve("/film.mp4?sig=2", film, etag: nil)
                expectPart(try stage.get("/watch?v=1", range: "bytes=0-99"), 0..<100, of: film)
                stage.origin.script("/film.mp4?sig=1") { $0.status = 403 }
                expectPart(try stage.get("/watch?v=1", range: "bytes=500000-500099"), 500_000..<500_100, of: film)
                #expect(resolver.runs.count == 2)
            }
        }

        @Test func originThatRefusesEveryLinkDoesNotKeepTheProgramRunning() async throws {
            try await Stage.resolving(signed) { stage, resolver in
                stage.origin.script("/film.mp4") { $0.status = 403 }
                for _ in 0..<5 { #expect([403, 502].contains(try stage.get("/watch?v=1").status)) }
                #expect(resolver.runs.count == 1)
                let answer = try stage.get("/watch?v=1")
                expectOneLine(answer, status: 502)
                #expect(answer.text.contains("answered 403 to the address that resolver gave"), "\(answer.text)")
                #expect(answer.headers["Retry-After"] == "2")
                stage.wait(seconds: 3)
                stage.origin.serve("/film.mp4?sig=2", film)
                expectWhole(try stage.get("/watch?v=1"), film)
            }
        }

        /// With and without a strong validator.
        @Test(arguments: ["\"v1\"", nil]) func downloadSurvivesLinksThatExpire(etag: String?) async throws {
            try await Stage.resolving(signed) { stage, resolver in
                stage.origin.serveExpiring(etag: etag)
                stage.origin.serve("/film.mp4?sig=6", film, etag: etag)
                let progress = try StageDownload(stage, "/watch?v=1").complete()
                #expect(progress.bytes == film.size && resolver.runs.count == 6)
                #expect(stage.origin.filmBytes == film.size + (etag == nil ? 5 * 65_536 : 0))
            }
        }

        // MARK: Without a resolver

        private static func refreshing(_ story: @escaping @Sendable (Stage) throws -> Void) async throws {
            let origin = try ScriptedOrigin()
            try await scenario { setting in
                setting.origin = origin
                setting.configure {
                    $0.rules = [
                        ResourceRule(hosts: ["http://127.0.0.1:*"], paths: ["/film.mp4"]) {
                            $0.ignoredQuery = .parameters(["sig"])
                            $0.refresh = "http://127.0.0.1:\(origin.port)/play{path}"
                        }
                    ]
                }
            } _: { stage in
                stage.origin.script("/play/film.mp4") { [port = stage.origin.port] in
                    $0.redirects = (2...6).map { "http://127.0.0.1:\(port)/film.mp4?sig=\($0)" }
                }
                try story(stage)
            }
        }

        @Test func ruleNamesTheAddressWhereAPlayersOwnLinkIsRefreshed() async throws {
            try await Self.refreshing { stage in
                stage.origin.serveExpiring()
                stage.origin.serve("/film.mp4?sig=6", film)
                expectWhole(try stage.get("/film.mp4?sig=1"), film)
                #expect(stage.origin.filmBytes == film.size, "something was fetched twice")
                // Each link was tried for the rest, and then the lasting address.
                #expect(stage.origin.requestCount("/play/film.mp4") == 5)
                #expect(try stage.get("/film.mp4?sig=7").isHit)
            }
        }

        @Test func anotherVersionAtTheRefreshedLinkCutsTheResponse() async throws {
            try await Self.refreshing { stage in
                stage.origin.serveExpiring(links: 1...1)
                stage.origin.serve("/film.mp4?sig=2", other, etag: "\"v2\"")
                let player = try stage.player()
                expectCut {
                    try player.send(player.request(stage.target("/film.mp4?sig=1")))
                    return try player.readResponse()
                }
                #expect(player.partialBody.count >= 200_000)
                #expect(film.firstMismatch(player.partialBody, at: 0) == nil)
            }
        }

        @Test func firstRequestWithAnExpiredLinkGetsTheOriginsAnswer() async throws {
            try await Self.refreshing { stage in
                stage.origin.script("/film.mp4?sig=1") { $0.status = 403 }
                let response = try stage.get("/film.mp4?sig=1")
                #expect(response.status == 403)
                #expect(stage.origin.requestCount("/play/film.mp4") == 0)
            }
        }
    }
}
