import Testing
import TestSupport

private let film = Media(seed: 147, size: 1_000_000)

extension Stage {
    /// The answer of an origin that is awake; nil where this machine was too slow for the stall timeout.
    fileprivate func heard(_ path: String, range: String? = nil) throws -> RawClient.Response? {
        let response = try get(path, range: range)
        return response.status == 504 ? nil : response
    }
}

extension Scenarios {
    /// Origins that accept and never answer.
    @Suite struct S14Silence {
        enum Silence: CaseIterable, Sendable { case head, body }

        // It is asked once more, as a connection may have died unnoticed; but not for four times as long as it may be
        // silent.
        @Test(arguments: Silence.allCases, [nil, "bytes=500000-"])
        func playerThatWaitsForItsFirstByteHearsInTime(silence: Silence, range: String?) async throws {
            try await scenario {
                $0.tuning.upstream.stallTimeout = 1
            } _: { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/film.mp4") { ($0.holdHead, $0.holdBody) = (silence == .head, silence == .body) }
                let player = try stage.player()
                try player.send(player.request(stage.target("/film.mp4"), range: range))
                try stage.origin.waitForRequests("/film.mp4", count: 1)
                expectOneLine(try player.readResponse(), status: 504)
                #expect(stage.origin.requestCount("/film.mp4") <= 2)
                #expect(try stage.stats.errors["origin-timeout"] ?? 0 >= 1)
                try stage.catchUp()
                stage.origin.release("/film.mp4")
                expectWhole(try eventually("an answer") { try? stage.heard("/film.mp4") }, film)
            }
        }

        @Test func playerThatJoinedASilentTransferHearsToo() async throws {
            try await scenario {
                $0.tuning.upstream.stallTimeout = 1
            } _: { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.holdHeads("/film.mp4")
                for response in try concurrently(8, { _ in try stage.get("/film.mp4") }) {
                    expectOneLine(response, status: 504)
                }
            }
        }

        @Test func gapOfASilentOriginIsAGatewayTimeoutAndWhatIsStoredPlays() async throws {
            try await scenario {
                $0.tuning.upstream.stallTimeout = 1
            } _: { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/film.mp4") { $0.headers = [("Cache-Control", "max-age=60")] }
                // All of it is stored.
                let first: RawClient.Response = try eventually("its beginning in the cache") {
                    try? stage.heard("/film.mp4", range: "bytes=0-99999").flatMap { $0.isHit ? $0 : nil }
                }
                expectPart(first, 0..<100_000, of: film)
                try stage.catchUp()
                stage.origin.holdHeads("/film.mp4")
                expectOneLine(try stage.get("/film.mp4", range: "bytes=500000-"), status: 504)
                stage.wait(seconds: 100)
                // Stale: its origin cannot tell.
                let stale = try stage.get("/film.mp4", range: "bytes=0-99999")
                expectPart(stale, 0..<100_000, of: film)
                #expect(stale.cacheStatus.contains("fwd=stale"))
                // What has begun is tried for longer.
                expectOneLine(try stage.get("/film.mp4", range: "bytes=500000-"), status: 504)
            }
        }

        @Test func answerThatHasBegunIsTriedForLonger() async throws {
            try await scenario {
                $0.tuning.upstream.stallTimeout = 1
                // On a busy machine the origin is silent for as long by itself, several times in a row.
                $0.tuning.fill.retry.maxAttempts = 1000
            } _: { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/film.mp4") { $0.stallAfter = 300_000 }
                // Once it has begun it is not cut.
                expectWhole(try eventually("an answer that has begun") { try stage.heard("/film.mp4") }, film)
                #expect(stage.origin.requestCount("/film.mp4") > 3)
            }
        }
    }
}
