import TestSupport
import Testing

private let film = Media(seed: 148, size: 1_000_000)

extension Scenarios {
    /// More is asked for than may be fetched at once.
    @Suite struct S14Queue {
        /// Somebody else plays, slowly, with the only transfer that there may be. It is the proxy that has no time, not
        /// the origin.
        @Test func playerThatWaitsForATransferHearsWhatItWaitsFor() async throws {
            try await scenario {
                // If the slow origin is silent for longer, its place is free between two attempts.
                $0.tuning.upstream.stallTimeout = 5
                $0.configure { $0.maxFetches = 1 }
            } _: { stage in
                stage.origin.serve("/slow.mp4", Media(seed: 149, size: 10_000_000))
                stage.origin.script("/slow.mp4") { $0.bytesPerSecond = 50_000 }
                stage.origin.serve("/film.mp4", film)
                let (slow, head) = try stage.playerOf("/slow.mp4")
                #expect(head.status == 200)
                let response = try stage.get("/film.mp4")
                expectOneLine(response, status: 503)
                #expect(response.text.contains("max_fetches") && response.headers["Retry-After"] == "10")
                #expect(response.cacheStatus.contains("detail=\"proxy-busy\""))
                #expect(stage.origin.requestCount("/film.mp4") == 0)
                slow.close()
                try stage.catchUp()
                expectWhole(try stage.get("/film.mp4"), film)
            }
        }

        /// What was ordered as a download is played: it is no longer behind the downloads that were ordered sooner.
        @Test func downloadThatIsPlayedGoesBeforeOtherDownloads() async throws {
            try await scenario {
                $0.configure { ($0.maxFetches, $0.threads) = (1, 1) }
            } _: { stage in
                for path in ["/first.mp4", "/download.mp4", "/played.mp4"] { stage.origin.serve(path, film) }
                stage.origin.holdHeads("/first.mp4")
                let first = try stage.player(), player = try stage.player()
                try first.send(first.request(stage.target("/first.mp4")))
                try stage.origin.waitForRequests("/first.mp4", count: 1)
                let downloads = try ["/download.mp4", "/played.mp4"].map { try stage.download($0) }
                try player.send(player.request(stage.target("/played.mp4")))
                try stage.waitForStats("the player") { $0[\.requests] >= 2 }
                stage.origin.release("/first.mp4")
                expectWhole(try first.readResponse(), film)
                expectWhole(try player.readResponse(), film)
                for download in downloads { _ = try download.complete() }
                var paths: [String] = []
                for request in stage.origin.snapshot.requests where !paths.contains(request.path) {
                    paths.append(request.path)
                }
                #expect(paths == ["/first.mp4", "/played.mp4", "/download.mp4"])
            }
        }
    }
}
