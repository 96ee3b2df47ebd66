import Testing
import TestSupport

private let chunk: Int64 = 65_536
private let film = Media(seed: 2, size: 10_000_000)

extension Scenarios {
    @Suite struct S02Gaps {
        // MARK: Only what is missing

        @Test(arguments: ["bytes=5000000-5000999", "bytes=5000000-"])
        func seekIntoAnUncachedFileStartsAtTheWantedChunk(field: String) async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                let (player, head) = try stage.playerOf("/film.mp4", range: field)
                #expect(head.status == 206)
                #expect(try player.difference(from: film, in: 5_000_000..<5_001_000) == nil)
                let asked = stage.origin.ranges("/film.mp4", of: film)
                #expect(asked.map(\.lowerBound) == [5_000_000 / chunk * chunk])
            }
        }

        @Test func readOfTheWholeAfterItsMiddleFetchesTheTwoGapsAlone() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                expectPart(try stage.get("/film.mp4", range: "bytes=5000000-5999999"), 5_000_000..<6_000_000, of: film)
                // The player has its last byte before the chunk that it is in has ended.
                try stage.catchUp()
                let whole = try stage.get("/film.mp4")
                expectWhole(whole, film)
                #expect(whole.cacheStatus.hasPrefix("reelcache; fwd=partial"))
                let (start, end) = (5_000_000 / chunk * chunk, (5_999_999 / chunk + 1) * chunk)
                #expect(stage.origin.ranges("/film.mp4", of: film) == [start..<end, 0..<start, end..<film.size])
                #expect(stage.origin.bytesSent("/film.mp4") == film.size)
                #expect(
                    stage.origin.requests("/film.mp4").dropFirst().map { $0.headers["If-Range"] } == [
                        "\"v1\"", "\"v1\"",
                    ])
                #expect(try stage.get("/film.mp4").isHit)
            }
        }

        @Test func manyHolesAreEachFilledOnce() async throws {
            try await scenario {
                $0.tuning.fill.lastChunkSeconds = 60
            } _: { stage in
                stage.origin.serve("/film.mp4", film)
                for offset in stride(from: Int64(100_000), to: film.size, by: 700_000) {
                    expectPart(
                        try stage.get("/film.mp4", range: "bytes=\(offset)-\(offset)"), offset..<offset + 1, of: film)
                }
                expectWhole(try stage.get("/film.mp4"), film)
                #expect(stage.origin.bytesSent("/film.mp4") == film.size)
                let filled = stage.origin.ranges("/film.mp4", of: film).sorted { $0.lowerBound < $1.lowerBound }
                #expect(zip(filled, filled.dropFirst()).allSatisfy { $0.upperBound == $1.lowerBound })
            }
        }

        @Test func suffixOfAnUnknownFileIsAskedForAsOne() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                expectPart(try stage.get("/film.mp4", range: "bytes=-1000"), film.size - 1000..<film.size, of: film)
                #expect(stage.origin.bytesSent("/film.mp4") < 1000 + chunk)
                let start = (film.size - 1000) / chunk * chunk
                expectWhole(try stage.get("/film.mp4"), film)
                #expect(stage.origin.ranges("/film.mp4", of: film).last == 0..<start)
            }
        }

        @Test func rangesThatAreCachedTogetherAreAHit() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                _ = try stage.get("/film.mp4", range: "bytes=0-999999")
                _ = try stage.get("/film.mp4", range: "bytes=1000000-1999999")
                stage.origin.stop()
                let response = try stage.get("/film.mp4", range: "bytes=500000-1500000")
                expectPart(response, 500_000..<1_500_001, of: film)
                #expect(response.isHit)
            }
        }

        // MARK: As they arrive

        @Test func bytesReachThePlayerBeforeTheirChunkIsFull() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/film.mp4") { $0.stallAfter = 1000 }
                let (player, head) = try stage.playerOf("/film.mp4")
                #expect(head.status == 200 && head.headers["Content-Length"] == "10000000")
                #expect(try player.difference(from: film, in: 0..<1000) == nil)
                stage.origin.release("/film.mp4")
                #expect(try player.difference(from: film, in: 1000..<film.size) == nil)
            }
        }

        @Test func bytesOfASeekReachThePlayerBeforeTheirChunkIsFull() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                let (seek, start): (Int64, Int64) = (5_000_000, 5_000_000 / chunk * chunk)
                stage.origin.script("/film.mp4") { $0.stallAfter = seek - start + 10 }
                let (player, head) = try stage.playerOf("/film.mp4", range: "bytes=\(seek)-")
                #expect(head.status == 206)
                #expect(try player.difference(from: film, in: seek..<seek + 10) == nil)
                stage.origin.release("/film.mp4")
                #expect(try player.difference(from: film, in: seek + 10..<film.size) == nil)
            }
        }

        @Test func bytesOfAHalfFullChunkReachASecondPlayerToo() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/film.mp4") { $0.stallAfter = 1000 }
                let (first, _) = try stage.playerOf("/film.mp4")
                #expect(try first.difference(from: film, in: 0..<1000) == nil)
                let (second, _) = try stage.playerOf("/film.mp4", range: "bytes=500-")
                #expect(try second.difference(from: film, in: 500..<1000) == nil)
                stage.origin.release("/film.mp4")
                #expect(try second.difference(from: film, in: 1000..<film.size) == nil)
                #expect(try first.difference(from: film, in: 1000..<film.size) == nil)
                #expect(stage.origin.requestCount("/film.mp4") == 1)
            }
        }

        // MARK: How far ahead

        @Test func transferOfAPausedPlayerPausesAndGoesOnWithIt() async throws {
            try await scenario {
                $0.fill(.ahead(bytes: 1 << 20))
            } _: { stage in
                let (long, other) = (Media(seed: 3, size: 64_000_000), Media(seed: 4, size: 16_000_000))
                stage.origin.serve("/long.mp4", long)
                stage.origin.serve("/other.mp4", other)
                let (paused, _) = try stage.playerOf("/long.mp4", receiveBuffer: 16_384)
                #expect(try paused.difference(from: long, in: 0..<100_000) == nil)
                // While another file of a quarter of its size comes through, the rest would long have come.
                expectWhole(try stage.get("/other.mp4"), other)
                // The read-ahead, and what the kernel takes for three sockets.
                #expect(stage.origin.bytesSent("/long.mp4") < 16_000_000)
                #expect(try paused.difference(from: long, in: 100_000..<long.size) == nil)
                #expect(stage.origin.requestCount("/long.mp4") == 1)
            }
        }
    }
}
