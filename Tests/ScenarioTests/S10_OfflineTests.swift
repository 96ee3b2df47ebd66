import CachePolicy
import Reelcache
import Testing
import TestSupport

private let film = Media(seed: 19, size: 3_000_000)

/// How a proxy comes to ask no origin.
enum WayOffline: CaseIterable {
    /// As it starts.
    case setting
    /// While it runs.
    case running
}

/// Plays a scenario in which the proxy goes offline when the story calls for it.
private func withdrawal(
    _ way: WayOffline, fill: FillMode = .ahead(bytes: 32 << 20),
    _ story: @escaping @Sendable (Stage, _ goOffline: () throws -> Void) throws -> Void
) async throws {
    let isOffline = Monitor(false)
    try await scenario {
        $0.configure { ($0.isOffline, $0.fill) = (isOffline.read(\.self), fill) }
    } _: { stage in
        try story(stage) {
            switch way {
            case .setting:
                isOffline.update { $0 = true }
                try stage.restart()
            case .running: try stage.proxy.cache.reconfigure { $0.isOffline = true }
            }
        }
    }
}

/// A proxy that never asks an origin.
extension Scenarios {
    @Suite struct S10Offline {
        @Test(
            arguments: WayOffline.allCases,
            [
                "max-age=60, must-revalidate", "no-cache", "max-age=60, stale-if-error=1",
                "max-age=60, stale-while-revalidate=9000",
            ])
        func whatIsCachedPlaysWhateverItsOriginSaid(way: WayOffline, cacheControl: String) async throws {
            try await withdrawal(way) { stage, goOffline in
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/film.mp4") { $0.headers = [("Cache-Control", cacheControl)] }
                expectWhole(try stage.get("/film.mp4"), film)
                stage.wait(seconds: 1000)
                try goOffline()
                for wish in ["no-cache", "max-age=0", "max-age=10000"] {
                    let response = try stage.get("/film.mp4", headers: [("Cache-Control", wish)])
                    expectWhole(response, film)
                    expectOffline(response)
                    let part = try stage.get("/film.mp4", range: "bytes=-1000", headers: [("Cache-Control", wish)])
                    expectPart(part, 2_999_000..<3_000_000, of: film)
                    expectOffline(part)
                    let head = try stage.get("/film.mp4", headers: [("Cache-Control", wish)], method: "HEAD")
                    #expect(head.status == 200 && head.headers["Content-Length"] == "3000000")
                    expectOffline(head)
                }
                #expect(try stage.get("/film.mp4", headers: [("If-None-Match", "\"v1\"")]).status == 304)
                #expect(stage.origin.requestCount("/film.mp4") == 1)
            }
        }

        private func expectOffline(_ response: RawClient.Response, sourceLocation: SourceLocation = #_sourceLocation) {
            let status = response.cacheStatus
            #expect(
                status.hasPrefix("reelcache; hit; ttl=-") && status.hasSuffix("; detail=\"offline\""), "\(status)",
                sourceLocation: sourceLocation)
        }

        @Test(arguments: WayOffline.allCases)
        func whatIsFreshIsAHitLikeAnyOther(way: WayOffline) async throws {
            try await withdrawal(way) { stage, goOffline in
                stage.origin.serve("/film.mp4", film)
                _ = try stage.get("/film.mp4")
                try goOffline()
                let response = try stage.get("/film.mp4")
                expectWhole(response, film)
                #expect(response.isHit)
            }
        }

        @Test(arguments: WayOffline.allCases, [FillMode.read, .whole])
        func whatIsCachedInPartPlaysUpToTheGap(way: WayOffline, fill: CachePolicy.FillMode) async throws {
            try await withdrawal(way, fill: .read) { stage, goOffline in
                stage.origin.serve("/film.mp4", film)
                _ = try stage.get("/film.mp4", range: "bytes=0-99999")
                _ = try stage.get("/film.mp4", range: "bytes=2000000-2000099")
                try stage.catchUp()
                let asked = stage.origin.requestCount("/film.mp4")
                try goOffline()
                try stage.proxy.cache.reconfigure { $0.fill = fill }
                let (player, head) = try stage.playerOf("/film.mp4")
                #expect(head.status == 200 && head.headers["Content-Length"] == "3000000")
                #expect(head.cacheStatus == "reelcache; fwd=partial; detail=\"offline\"")
                #expect(try player.difference(from: film, in: 0..<131_072) == nil)
                expectCut { try player.readBody(upTo: 1) }
                // A part that is there.
                let part = try stage.get("/film.mp4", range: "bytes=2000000-2000099")
                expectPart(part, 2_000_000..<2_000_100, of: film)
                #expect(part.isHit)
                let missing = try stage.get("/film.mp4", range: "bytes=1000000-1000099")
                expectOneLine(missing, status: 504)
                #expect(missing.cacheStatus == "reelcache; detail=\"offline\"")
                #expect(try stage.get("/film.mp4", method: "HEAD").status == 200)
                #expect(stage.origin.requestCount("/film.mp4") == asked)
                // It is all there still, for when the origin may be asked again.
                try stage.proxy.cache.reconfigure { $0.isOffline = false }
                expectWhole(try stage.get("/film.mp4"), film)
            }
        }

        @Test func transferThatBreaksDoesNotGoOn() async throws {
            try await withdrawal(.running) { stage, goOffline in
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/film.mp4") { ($0.stallAfter, $0.cutAfter) = (1_000_000, 2_000_000) }
                let (player, _) = try stage.playerOf("/film.mp4")
                #expect(try player.difference(from: film, in: 0..<900_000) == nil)
                try goOffline()
                stage.origin.release("/film.mp4")
                expectCut { try player.difference(from: film, in: 900_000..<film.size) }
                try stage.catchUp()
                #expect(stage.origin.requestCount("/film.mp4") == 1)
            }
        }

        @Test(arguments: WayOffline.allCases)
        func whatIsMissingIsNotAskedFor(way: WayOffline) async throws {
            try await withdrawal(way) { stage, goOffline in
                stage.origin.serve("/film.mp4", film)
                try goOffline()
                for range in [nil, "bytes=0-99"] {
                    let response = try stage.get("/film.mp4", range: range)
                    expectOneLine(response, status: 504)
                    #expect(
                        response.text.contains("offline") && response.cacheStatus == "reelcache; detail=\"offline\"")
                }
                let head = try stage.get("/film.mp4", method: "HEAD")
                #expect(head.status == 504 && head.cacheStatus == "reelcache; detail=\"offline\"")
                #expect(try stage.stats.errors == ["offline": 3])
                #expect(stage.origin.snapshot.connectionCount == 0)
                try stage.catchUp()
                try stage.proxy.cache.reconfigure { $0.isOffline = false }
                expectWhole(try stage.get("/film.mp4"), film)
            }
        }

        @Test func otherMethodsAreNotPassedOn() async throws {
            try await scenario { stage in
                stage.origin.serve("/vod/film.mp4", film)
                stage.origin.script("/vod/in") { $0.status = 201 }
                try stage.proxy.cache.reconfigure { $0.mounts = ["/tv/": stage.origin.url("/vod/")] }
                expectWhole(try stage.ask("/tv/film.mp4"), film)
                try stage.proxy.cache.reconfigure { $0.isOffline = true }
                let asked = stage.origin.snapshot.requests.count
                for method in ["POST", "PUT", "DELETE"] {
                    let response = try stage.send(method, "/tv/in", [1, 2, 3])
                    expectOneLine(response, status: 504)
                    #expect(response.cacheStatus == "reelcache; detail=\"offline\"")
                }
                for target in ["/tv/in", stage.absolute("/vod/in")] {
                    expectOneLine(try stage.ask(target, method: "OPTIONS"), status: 504)
                }
                #expect(try stage.stats.errors == ["offline": 5])
                // Nothing was changed by it either.
                #expect(try stage.ask("/tv/film.mp4").isHit)
                #expect(try stage.ask("/tv/none.mp4").status == 504)
                #expect(stage.origin.snapshot.requests.count == asked)
                try stage.proxy.cache.reconfigure { $0.isOffline = false }
                #expect(try stage.send("POST", "/tv/in", [1]).status == 201)
            }
        }

        @Test func bypassedIsMissingToo() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                _ = try stage.get("/film.mp4")
                var rule = ResourceRule()
                rule.bypass = true
                try stage.proxy.cache.reconfigure { $0.rules = [rule] }
                try stage.proxy.cache.reconfigure { $0.isOffline = true }
                expectOneLine(try stage.get("/film.mp4"), status: 504)
                #expect(try stage.get("/film.mp4", method: "HEAD").status == 504)
                #expect(stage.origin.requestCount("/film.mp4") == 1)
            }
        }

        // What began before is brought to its end; nothing else begins.
        @Test func transferThatRunsGoesOn() async throws {
            try await scenario { stage in
                for path in ["/film.mp4", "/other.mp4"] { stage.origin.serve(path, film) }
                stage.origin.script("/film.mp4") { $0.stallAfter = 1_000_000 }
                let (player, head) = try stage.playerOf("/film.mp4")
                #expect(head.status == 200)
                #expect(try player.difference(from: film, in: 0..<900_000) == nil)
                try stage.proxy.cache.reconfigure { $0.isOffline = true }
                #expect(try stage.get("/other.mp4").status == 504)
                stage.origin.release("/film.mp4")
                #expect(try player.difference(from: film, in: 900_000..<film.size) == nil)
                #expect(try stage.get("/film.mp4").isHit)
                #expect(stage.origin.requestCount("/film.mp4") == 1 && stage.origin.requestCount("/other.mp4") == 0)
            }
        }
    }
}
