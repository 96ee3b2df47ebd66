import Testing
import TestSupport

extension Scenarios {
    /// Several players of one file that nothing was known of: each byte comes once.
    @Suite struct S12Sharing {
        @Test(arguments: [nil, "bytes=0-"])
        func firstTransferOfAnUnknownFileEndsWhereAnotherHasBeen(range: String?) async throws {
            try await scenario { stage in
                let film = Media(seed: 129, size: 12 << 20)
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/film.mp4") { ($0.stallAfter, $0.bytesPerSecond) = (300_000, 40_000_000) }
                let (first, _) = try stage.playerOf("/film.mp4", range: range)
                #expect(try first.difference(from: film, in: 0..<300_000) == nil)
                stage.origin.script("/film.mp4") { $0.stallAfter = .max }
                expectPart(try stage.get("/film.mp4", range: "bytes=4194304-"), 4_194_304..<film.size, of: film)
                stage.origin.release("/film.mp4")
                #expect(try first.difference(from: film, in: 300_000..<film.size) == nil)
                try stage.catchUp()
                #expect(try stage.stats[\.upstreamBytes] == film.size)
                // What was on its way when the transfer ended was in vain: what the kernel holds. Without that end it
                // would be two thirds of the film.
                #expect(stage.origin.bytesSent("/film.mp4") <= film.size * 3 / 2)
            }
        }

        @Test func manyReadersSpreadOverAnUnknownFileHaveItFetchedOnce() async throws {
            try await scenario { stage in
                let film = Media(seed: 126, size: 24 << 20)
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/film.mp4") { $0.bytesPerSecond = 1_000_000 }
                let parts = try concurrently(24) { index in
                    let start = Int64(index * 7 % 24) << 20
                    return (start, try stage.get("/film.mp4", range: "bytes=\(start)-"))
                }
                for (start, response) in parts { expectPart(response, start..<film.size, of: film) }
                try stage.catchUp()
                #expect(try stage.stats[\.upstreamBytes] == film.size)
                // In vain was what came to each of the 24 transfers until it was ended. Each for itself they would have
                // sent twelve times the film.
                #expect(stage.origin.bytesSent("/film.mp4") <= film.size * 3)
            }
        }
    }
}
