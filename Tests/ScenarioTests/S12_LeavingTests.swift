import CachePolicy
import Testing
import TestSupport

private let chunk: Int64 = 65_536
private let long = Media(seed: 127, size: 96_000_000)
private let other = Media(seed: 128, size: 16_000_000)
/// What comes at once, over and above.
private let piece: Int64 = 65_536

extension Stage {
    /// Opens a film whose origin stops after so many bytes, reads them, and leaves. What is asked for next does not
    /// stop.
    fileprivate func readAndLeave(_ path: String, count: Int64) throws {
        origin.script(path) { $0.stallAfter = count }
        let (player, _) = try playerOf(path, receiveBuffer: 16_384)
        #expect(try player.difference(from: long, in: 0..<count) == nil)
        player.close()
        try waitForStats("the reader's leaving") { $0[\.connections] == 0 }
        // It waits on, as there is a place where the next one would stop.
        origin.script(path) { $0.stallAfter = .max }
    }

    /// Fetched and not given to a player.
    fileprivate var lead: Int64 {
        get throws { Int64(try stats[\.upstreamBytes]) - Int64(try stats[\.bytesFromUpstream]) }
    }

    /// Lets time pass by something that takes some.
    fileprivate func passTime() throws {
        origin.serve("/other.mp4", other)
        expectWhole(try get("/other.mp4"), other)
    }
}

extension Scenarios {
    /// What a player leaves behind when it goes, or goes elsewhere.
    @Suite struct S12Leaving {
        // MARK: The chunk in progress

        // Most of a chunk was played: the rest costs less than all of it again.
        @Test func seekLeavesNoChunkBehindThatIsNearlyThere() async throws {
            try await scenario {
                ($0.tuning.fill.lingerSeconds, $0.tuning.fill.lastChunkSeconds) = (60, 60)
            } _: { stage in
                stage.origin.serve("/long.mp4", long)
                try stage.readAndLeave("/long.mp4", count: 3 * chunk + 50_000)
                expectPart(
                    try stage.get("/long.mp4", range: "bytes=60000000-60000999"), 60_000_000..<60_001_000, of: long)
                try stage.waitForStats("one transfer") { $0[\.openFetches] == 1 }
                stage.origin.release("/long.mp4")
                try stage.catchUp()
                let sent = stage.origin.bytesSent("/long.mp4")
                stage.origin.stop()
                let response = try stage.get("/long.mp4", range: "bytes=0-\(4 * chunk - 1)")
                expectPart(response, 0..<4 * chunk, of: long)
                #expect(response.isHit)
                #expect(sent > 4 * chunk)
            }
        }

        @Test func seekGivesUpAChunkThatHasHardlyBegun() async throws {
            try await scenario {
                ($0.tuning.fill.lingerSeconds, $0.tuning.fill.lastChunkSeconds) = (60, 60)
            } _: { stage in
                stage.origin.serve("/long.mp4", long)
                try stage.readAndLeave("/long.mp4", count: 3 * chunk + 5000)
                expectPart(
                    try stage.get("/long.mp4", range: "bytes=60000000-60000999"), 60_000_000..<60_001_000, of: long)
                try stage.origin.waitForAbort("/long.mp4")
                try stage.catchUp()
            }
        }

        // MARK: Ahead of nobody

        @Test(arguments: [(1_000_000, 1_000_000), (20_000_000, 8 << 20)] as [(Int64, Int64)])
        func noMoreIsFetchedForAPlayerThatLeftThanItHasRead(read: Int64, most: Int64) async throws {
            try await scenario {
                $0.tuning.fill.lingerSeconds = 60
            } _: { stage in
                stage.origin.serve("/long.mp4", long)
                try stage.readAndLeave("/long.mp4", count: read)
                stage.origin.release("/long.mp4")
                try stage.waitForStats("a transfer that goes on") { Int64($0[\.upstreamBytes]) - read >= most / 2 }
                try stage.passTime()
                #expect(try stage.lead <= most + piece)
                try stage.waitForStats("one transfer") { $0[\.openFetches] == 1 }
            }
        }

        @Test(arguments: [.ahead(bytes: 32 << 20), .end, .whole] as [FillMode])
        func nothingIsFetchedForAPlayerThatLeftWhereBytesAreMetered(fill: FillMode) async throws {
            try await scenario { setting in
                (setting.tuning.fill.lingerSeconds, setting.tuning.fill.lastChunkSeconds) = (60, 60)
                setting.fill(fill)
                setting.configure {
                    var rule = ResourceRule()
                    rule.isMetered = true
                    $0.rules = [rule]
                }
            } _: { stage in
                stage.origin.serve("/long.mp4", long)
                try stage.readAndLeave("/long.mp4", count: 3 * chunk + 50_000)
                stage.origin.release("/long.mp4")
                try stage.catchUp()
                #expect(try Int64(stage.stats[\.upstreamBytes]) == 4 * chunk)
            }
        }
    }
}
