import Testing
import TestSupport

private let film = Media(seed: 3, size: 5_000_000)

extension Scenarios {
    @Suite struct S03Collapse {
        // MARK: At once

        @Test func fiftyPlayersOfOneUncachedFileCostOneTransfer() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.holdHeads("/film.mp4")
                let players = try Background {
                    try concurrently(50) { _ in try stage.get("/film.mp4") }
                }
                try stage.waitForStats("49 collapsed requests") { $0[\.collapsed] == 49 }
                stage.origin.release("/film.mp4")
                let responses = try players.value()
                for response in responses { expectWhole(response, film) }
                #expect(responses.count { $0.head.isCollapsed } == 49)
                #expect(responses.count { $0.cacheStatus == "reelcache; fwd=uri-miss; fwd-status=200; stored" } == 1)
                #expect(stage.origin.requestCount("/film.mp4") == 1)
                #expect(stage.origin.bytesSent("/film.mp4") == film.size)
            }
        }

        @Test(arguments: [false, true]) func fiftyPlayersOfOneGapCostOneTransfer(isKnown: Bool) async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                if isKnown { _ = try stage.get("/film.mp4", range: "bytes=0-0") }
                let range: Range<Int64> = 2_000_000..<3_048_576
                stage.origin.holdHeads("/film.mp4")
                let players = try Background {
                    try concurrently(50) { _ in try stage.get("/film.mp4", range: range.rangeField) }
                }
                try stage.waitForStats("49 collapsed requests") { $0[\.collapsed] == 49 }
                stage.origin.release("/film.mp4")
                let responses = try players.value()
                for response in responses { expectPart(response, range, of: film) }
                #expect(responses.count { $0.head.isCollapsed } == 49)
                #expect(stage.origin.requestCount("/film.mp4") == (isKnown ? 2 : 1))
            }
        }

        @Test func fiftyPlayersWhoseOriginFailsAreAllToldSo() async throws {
            try await scenario { stage in
                stage.origin.script("/film.mp4") {
                    $0.closesBeforeHead = true; $0.cutTimes = 1000; $0.holdHead = true
                }
                let players = try Background {
                    try concurrently(50) { _ in try stage.get("/film.mp4") }
                }
                try stage.waitForStats("49 collapsed requests") { $0[\.collapsed] == 49 }
                stage.origin.release("/film.mp4")
                for response in try players.value() { expectOneLine(response, status: 502) }
            }
        }

        // MARK: Near and far

        @Test func playersFarApartInOneFileHaveATransferEach() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/film.mp4") { $0.stallAfter = 100_000 }
                let (first, _) = try stage.playerOf("/film.mp4")
                #expect(try first.difference(from: film, in: 0..<1000) == nil)
                let (second, _) = try stage.playerOf("/film.mp4", range: "bytes=4000000-")
                #expect(try second.difference(from: film, in: 4_000_000..<4_010_000) == nil)
                #expect(stage.origin.requestCount("/film.mp4") == 2)
                stage.origin.release("/film.mp4")
                #expect(try first.difference(from: film, in: 1000..<film.size) == nil)
                #expect(try second.difference(from: film, in: 4_010_000..<film.size) == nil)
            }
        }

        @Test func playerShortlyBehindAnotherJoinsItsTransfer() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/film.mp4") { $0.stallAfter = 300_000 }
                let (first, _) = try stage.playerOf("/film.mp4")
                #expect(try first.difference(from: film, in: 0..<300_000) == nil)
                let (second, _) = try stage.playerOf("/film.mp4")
                #expect(try second.difference(from: film, in: 0..<300_000) == nil)
                try stage.waitForStats("a collapsed request") { $0[\.collapsed] == 1 }
                stage.origin.release("/film.mp4")
                #expect(try second.difference(from: film, in: 300_000..<film.size) == nil)
                #expect(try first.difference(from: film, in: 300_000..<film.size) == nil)
                #expect(stage.origin.requestCount("/film.mp4") == 1)
            }
        }

        @Test func playerShortlyAheadOfATransferWaitsForIt() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/film.mp4") { $0.stallAfter = 300_000 }
                let (first, _) = try stage.playerOf("/film.mp4")
                #expect(try first.difference(from: film, in: 0..<300_000) == nil)
                let second = try Background { try stage.get("/film.mp4", range: "bytes=1000000-1099999") }
                try stage.waitForStats("a collapsed request") { $0[\.collapsed] == 1 }
                stage.origin.release("/film.mp4")
                let response = try second.value()
                expectPart(response, 1_000_000..<1_100_000, of: film)
                #expect(response.head.isCollapsed)
                #expect(try first.difference(from: film, in: 300_000..<film.size) == nil)
                #expect(stage.origin.requestCount("/film.mp4") == 1)
            }
        }

        // A transfer pauses when it is far enough ahead of its players; one that comes to its frontier needs it to go
        // on.
        @Test func playerThatCatchesUpWithAPausedOneIsNotHeldUp() async throws {
            try await scenario {
                $0.fill(.ahead(bytes: 1 << 20))
            } _: { stage in
                let (long, other) = (Media(seed: 30, size: 32_000_000), Media(seed: 32, size: 32_000_000))
                stage.origin.serve("/long.mp4", long)
                stage.origin.serve("/other.mp4", other)
                let (paused, _) = try stage.playerOf("/long.mp4", receiveBuffer: 16_384)
                #expect(try paused.difference(from: long, in: 0..<100_000) == nil)
                // By the end of another file the transfer has long paused.
                expectWhole(try stage.get("/other.mp4"), other)
                expectWhole(try stage.get("/long.mp4"), long)
                #expect(try paused.difference(from: long, in: 100_000..<long.size) == nil)
            }
        }

        // MARK: Leaving

        @Test func transferGoesOnForTheOneThatStays() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/film.mp4") { $0.stallAfter = 300_000 }
                let (first, _) = try stage.playerOf("/film.mp4")
                #expect(try first.difference(from: film, in: 0..<300_000) == nil)
                let (second, _) = try stage.playerOf("/film.mp4")
                #expect(try second.difference(from: film, in: 0..<300_000) == nil)
                try stage.waitForStats("a collapsed request") { $0[\.collapsed] == 1 }
                first.reset()
                try stage.waitForStats("one connection") { $0[\.connections] == 1 }
                stage.origin.release("/film.mp4")
                #expect(try second.difference(from: film, in: 300_000..<film.size) == nil)
                #expect(stage.origin.requestCount("/film.mp4") == 1)
                let isFinished = stage.origin.requests("/film.mp4").allSatisfy(\.finished)
                #expect(isFinished)
            }
        }

        @Test func transferEndsWithItsLastPlayerAndKeepsItsWholeChunks() async throws {
            try await scenario {
                $0.tuning.fill.lastChunkSeconds = 0.05
            } _: { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/film.mp4") { $0.stallAfter = 10 * 65_536 + 100 }
                let players = try (0..<2).map { _ in
                    let (player, _) = try stage.playerOf("/film.mp4")
                    #expect(try player.difference(from: film, in: 0..<10 * 65_536 + 100) == nil)
                    return player
                }
                for player in players { player.close() }
                try stage.origin.waitForAbort("/film.mp4")
                try stage.catchUp()
                stage.origin.stop()
                let response = try stage.get("/film.mp4", range: "bytes=0-\(10 * 65_536 - 1)")
                expectPart(response, 0..<10 * 65_536, of: film)
                #expect(response.isHit)
            }
        }

        // A transfer that nobody follows finishes its chunk; whoever comes in that moment takes it over.
        @Test func playerThatComesAsTheLastOneLeavesReadsTheRightBytes() async throws {
            try await scenario { stage in
                for round in 0..<60 {
                    let film = Media(seed: 300 + UInt64(round), size: 3_000_000)
                    stage.origin.serve("/\(round)", film)
                    let (leaving, _) = try stage.playerOf("/\(round)", receiveBuffer: 16_384)
                    #expect(try leaving.difference(from: film, in: 0..<10_000) == nil)
                    let coming = try stage.player()
                    leaving.reset()
                    expectWhole(try coming.get(stage.target("/\(round)")), film)
                    expectWhole(try coming.get(stage.target("/\(round)")), film)
                }
            }
        }

        @Test func playerThatComesAsTheLastOneLeavesAnOriginWithoutRangesReadsTheRightBytes() async throws {
            try await scenario { stage in
                for round in 0..<60 {
                    let film = Media(seed: 400 + UInt64(round), size: 3_000_000)
                    stage.origin.serve("/\(round)", film)
                    stage.origin.script("/\(round)") { $0.ignoresRange = true }
                    let range: Range<Int64> = 500_000..<600_000
                    expectPart(try stage.get("/\(round)", range: range.rangeField), range, of: film)
                    expectWhole(try stage.get("/\(round)"), film)
                    expectWhole(try stage.get("/\(round)"), film)
                }
            }
        }

        @Test func playerThatLeavesBeforeTheHeadEndsTheRequest() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.holdHeads("/film.mp4")
                let player = try stage.player()
                try player.send(player.request(stage.target("/film.mp4")))
                try stage.origin.waitForRequests("/film.mp4", count: 1)
                player.close()
                try stage.origin.waitForAbort("/film.mp4")
                stage.origin.release("/film.mp4")
                expectWhole(try stage.get("/film.mp4"), film)
            }
        }

        @Test func headThatIsNoLongerWantedIsAborted() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.holdHeads("/film.mp4")
                let player = try stage.player()
                try player.send(player.request(stage.target("/film.mp4"), method: "HEAD"))
                try stage.origin.waitForRequests("/film.mp4", count: 1)
                player.close()
                try stage.origin.waitForAbort("/film.mp4")
            }
        }

        // Each seek of a player closes a connection and opens the next.
        @Test func hundredSeeksLeaveNoTransferBehind() async throws {
            try await scenario {
                $0.tuning.fill.lastChunkSeconds = 0.05
            } _: { stage in
                let long = Media(seed: 31, size: 1_000_000_000)
                stage.origin.serve("/long.mp4", long)
                for seek in 0..<100 {
                    let offset = Int64(seek * 37 % 100) * 10_000_000 + Int64(seek)
                    let (player, _) = try stage.playerOf("/long.mp4", range: "bytes=\(offset)-", receiveBuffer: 16_384)
                    #expect(try player.difference(from: long, in: offset..<offset + 2000) == nil)
                    player.close()
                }
                try stage.catchUp()
                try stage.origin.waitUntil("the end of all requests") {
                    $0.requests.allSatisfy { $0.aborted || $0.finished }
                }
            }
        }
    }
}
