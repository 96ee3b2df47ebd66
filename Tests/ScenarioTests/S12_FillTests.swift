import Activity
import CachePolicy
import Synchronization
import TestSupport
import Testing

private let chunk: Int64 = 65_536
private let film = Media(seed: 12, size: 5_000_000)
private let long = Media(seed: 120, size: 96_000_000)
private let other = Media(seed: 121, size: 16_000_000)
/// What comes at once, over and above.
private let piece: Int64 = 65_536

extension StatsSnapshot {
    /// Fetched and not yet given to a player, where nothing is read from the cache.
    fileprivate var lead: Int64 { Int64(self[\.upstreamBytes]) - Int64(self[\.bytesFromUpstream]) }
}

extension Stage {
    /// Lets time pass by something that takes some.
    fileprivate func passTime() throws {
        origin.serve("/other.mp4", other)
        expectWhole(try get("/other.mp4"), other)
    }

    /// Opens a film at an offset, reads so much of it, and leaves.
    fileprivate func glance(_ path: String, of film: Media, at offset: Int64, count: Int64) throws {
        let (player, _) = try playerOf(path, range: "bytes=\(offset)-", receiveBuffer: 16_384)
        #expect(try player.difference(from: film, in: offset..<offset + count) == nil)
        player.close()
    }
}

extension Scenarios {
    @Suite struct S12Fill {
        // MARK: How far past a reader

        @Test func readGoesShortlyPastItsReaderAndNoFurther() async throws {
            try await scenario {
                $0.fill(.read)
            } _: { stage in
                stage.origin.serve("/long.mp4", long)
                let (paused, _) = try stage.playerOf("/long.mp4", receiveBuffer: 16_384)
                #expect(try paused.difference(from: long, in: 0..<100_000) == nil)
                try stage.passTime()
                #expect(try stage.stats.lead <= 128 << 10 + piece)
                #expect(try paused.difference(from: long, in: 100_000..<long.size) == nil)
                #expect(stage.origin.requestCount("/long.mp4") == 1)
            }
        }

        @Test func aheadGoesTwiceAsFarAsWasReadUpToItsLimit() async throws {
            try await scenario {
                $0.fill(.ahead(bytes: 24 << 20))
            } _: { stage in
                stage.origin.serve("/long.mp4", long)
                let (player, _) = try stage.playerOf("/long.mp4", receiveBuffer: 16_384)
                #expect(try player.difference(from: long, in: 0..<100_000) == nil)
                // What the proxy has given away is more than that, by what the kernel takes.
                try stage.waitForStats("a transfer ahead of its reader") {
                    $0[\.bytesFromUpstream] >= 100_000 && $0.lead >= 96 << 10 + Int64($0[\.bytesFromUpstream]) / 2
                }
                try stage.passTime()
                let stats = try stage.stats
                let given = Int64(stats[\.bytesFromUpstream]) - other.size
                #expect(stats.lead <= 128 << 10 + 2 * given + piece)
                #expect(2 * given < 16 << 20)
                #expect(try player.difference(from: long, in: 100_000..<40_000_000) == nil)
                // It resumes at three quarters; the reader's last piece, up to 1 MiB, counts there once it wants more.
                try stage.waitForStats("a transfer at its limit") { $0.lead >= 17 << 20 }
                try stage.passTime()
                #expect(try stage.stats.lead <= 24 << 20 + piece)
                #expect(stage.origin.requestCount("/long.mp4") == 1)
            }
        }

        @Test func severalCursorsInOneFileHaveATransferEach() async throws {
            try await scenario {
                $0.tuning.fill.lingerSeconds = 60
            } _: { stage in
                stage.origin.serve("/long.mp4", long)
                let (video, _) = try stage.playerOf("/long.mp4", range: "bytes=0-")
                let (audio, _) = try stage.playerOf("/long.mp4", range: "bytes=80000000-")
                for step in 0..<Int64(16) {
                    #expect(try video.difference(from: long, in: step * 1_000_000..<(step + 1) * 1_000_000) == nil)
                    #expect(
                        try audio.difference(
                            from: long, in: 80_000_000 + step * 1_000_000..<80_000_000 + (step + 1) * 1_000_000) == nil)
                }
                #expect(stage.origin.requestCount("/long.mp4") == 2)
            }
        }

        // MARK: To the end

        @Test func endIsFilledWhenItsReaderHasLeft() async throws {
            try await scenario {
                $0.fill(.end)
            } _: { stage in
                stage.origin.serve("/long.mp4", long)
                try stage.glance("/long.mp4", of: long, at: 0, count: 1000)
                try stage.catchUp()
                #expect(stage.origin.ranges("/long.mp4", of: long) == [0..<long.size])
                stage.origin.stop()
                let response = try stage.get("/long.mp4", range: "bytes=60000000-69999999")
                expectPart(response, 60_000_000..<70_000_000, of: long)
                #expect(response.isHit)
                expectWhole(try stage.get("/long.mp4"), long)
            }
        }

        @Test func endIsFilledFromWhereItIsReadAndThenFromWhereTheNextOneReads() async throws {
            try await scenario {
                $0.fill(.end)
                $0.tuning.fill.lastChunkSeconds = 60
            } _: { stage in
                stage.origin.serve("/film.mp4", film)
                let (seek, last) = (3_000_000 / chunk * chunk, (film.size - 1) / chunk * chunk)
                expectPart(
                    try stage.get("/film.mp4", range: "bytes=4999999-4999999"), film.size - 1..<film.size, of: film)
                expectPart(try stage.get("/film.mp4", range: "bytes=3000000-3000009"), 3_000_000..<3_000_010, of: film)
                try stage.waitForStats("filling to the end") {
                    $0[\.openFetches] == 0 && $0[\.upstreamBytes] == film.size - seek
                }
                expectPart(try stage.get("/film.mp4", range: "bytes=1000000-1000009"), 1_000_000..<1_000_010, of: film)
                try stage.waitForStats("filling up to what is there") {
                    $0[\.openFetches] == 0 && $0[\.upstreamBytes] == film.size - 1_000_000 / chunk * chunk
                }
                let asked = stage.origin.ranges("/film.mp4", of: film)
                #expect(asked.allSatisfy { $0.lowerBound >= 1_000_000 / chunk * chunk })
                #expect(asked.first == last..<film.size)
                #expect(stage.origin.bytesSent("/film.mp4") == film.size - 1_000_000 / chunk * chunk)
            }
        }

        @Test func wholeIsFilledFromItsReaderToTheEndAndThenFromTheStart() async throws {
            try await scenario {
                $0.fill(.whole)
                $0.tuning.fill.lastChunkSeconds = 60
            } _: { stage in
                stage.origin.serve("/film.mp4", film)
                let (start, end) = (3_000_000 / chunk * chunk, (3_000_009 / chunk + 1) * chunk)
                expectPart(try stage.get("/film.mp4", range: "bytes=3000000-3000009"), 3_000_000..<3_000_010, of: film)
                try stage.waitForStats("the whole") { $0[\.openFetches] == 0 && $0[\.upstreamBytes] == film.size }
                #expect(stage.origin.ranges("/film.mp4", of: film) == [start..<end, end..<film.size, 0..<start])
                #expect(stage.origin.bytesSent("/film.mp4") == film.size)
                stage.origin.stop()
                expectWhole(try stage.get("/film.mp4"), film)
            }
        }

        @Test func manyReadersOfOneFileHaveItFilledOnce() async throws {
            try await scenario {
                $0.fill(.whole)
            } _: { stage in
                stage.origin.serve("/film.mp4", film)
                let parts = try concurrently(16) { index in
                    let range = Int64(index) * 300_000..<Int64(index) * 300_000 + 10
                    return (range, try stage.get("/film.mp4", range: range.rangeField))
                }
                for (range, response) in parts { expectPart(response, range, of: film) }
                // A transfer stops where another one has been; what the origin has sent by then is not kept.
                try stage.waitForStats("the whole") { $0[\.openFetches] == 0 && $0[\.upstreamBytes] == film.size }
                stage.origin.stop()
                expectWhole(try stage.get("/film.mp4"), film)
            }
        }

        // The gap that somebody waits for is not last in a long row.
        @Test func readerFarFromWhatIsFilledHasATransferOfItsOwn() async throws {
            try await scenario {
                $0.fill(.whole)
            } _: { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/film.mp4") { $0.stallAfter = 100_000 }
                try stage.glance("/film.mp4", of: film, at: 0, count: 1000)
                try stage.glance("/film.mp4", of: film, at: 4_000_000, count: 1000)
                #expect(stage.origin.requestCount("/film.mp4") == 2)
                stage.origin.release("/film.mp4")
                // One after another: between them there is a moment without any.
                try stage.waitForStats("the whole") { $0[\.openFetches] == 0 && $0[\.upstreamBytes] >= film.size }
                stage.origin.stop()
                expectWhole(try stage.get("/film.mp4"), film)
            }
        }

        @Test func fillingThatFailedIsTakenUpByTheNextReader() async throws {
            try await scenario {
                $0.fill(.whole)
            } _: { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/film.mp4") {
                    $0.cutAfter = 1_000_000; $0.stallAfter = 500_000
                }
                try stage.glance("/film.mp4", of: film, at: 0, count: 1000)
                stage.origin.script("/film.mp4") { $0.status = 403 }
                stage.origin.release("/film.mp4")
                try stage.waitForStats("the failure") {
                    $0[\.openFetches] == 0 && $0.errors["origin-error"] == 1
                }
                stage.origin.script("/film.mp4") { $0.status = nil }
                #expect(try stage.get("/film.mp4", range: "bytes=0-9").isHit)
                try stage.waitForStats("the whole") { $0[\.openFetches] == 0 && $0[\.upstreamBytes] >= film.size }
                stage.origin.stop()
                expectWhole(try stage.get("/film.mp4"), film)
            }
        }

        @Test func fillingEndsWithTheProxy() async throws {
            try await scenario {
                $0.fill(.whole)
            } _: { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/film.mp4") { $0.stallAfter = 500_000 }
                try stage.glance("/film.mp4", of: film, at: 0, count: 1000)
                try stage.restart()
                try stage.origin.waitForAbort("/film.mp4")
                #expect(try stage.stats[\.openFetches] == 0)
                stage.origin.release("/film.mp4")
                expectWhole(try stage.get("/film.mp4"), film)
            }
        }

        // MARK: With little room

        @Test func whatIsMoreThanHalfOfTheCacheIsNotFilled() async throws {
            try await scenario {
                $0.maxSize = 32_000_000; $0.fill(.whole)
            } _: { stage in
                let large = Media(seed: 122, size: 16_000_001), small = Media(seed: 123, size: 12_000_000)
                stage.origin.serve("/large.mp4", large)
                stage.origin.serve("/small.mp4", small)
                expectPart(try stage.get("/large.mp4", range: "bytes=0-9"), 0..<10, of: large)
                expectPart(try stage.get("/small.mp4", range: "bytes=0-9"), 0..<10, of: small)
                try stage.waitForStats("the end of filling") {
                    $0[\.openFetches] == 0 && $0[\.upstreamBytes] >= small.size
                }
                #expect(stage.origin.bytesSent("/small.mp4") == small.size)
                #expect(stage.origin.bytesSent("/large.mp4") == chunk)
            }
        }

        @Test func fillingEvictsNothingThatIsBeingRead() async throws {
            try await scenario {
                $0.maxSize = 40_000_000; $0.fill(.whole)
            } _: { stage in
                let films = (0..<6).map { Media(seed: 130 + UInt64($0), size: 16_000_000) }
                for (index, film) in films.enumerated() { stage.origin.serve("/\(index)", film) }
                let (reader, _) = try stage.playerOf("/0", receiveBuffer: 16_384)
                #expect(try reader.difference(from: films[0], in: 0..<5_000_000) == nil)
                for index in 1..<films.count {
                    try stage.glance("/\(index)", of: films[index], at: 8_000_000, count: 1000)
                    try stage.waitForStats("the end of filling") {
                        $0[\.openFetches] <= 1 && stage.origin.bytesSent("/\(index)") >= films[index].size
                    }
                    #expect(try stage.oversize() == nil)
                }
                #expect(try stage.stats[\.evictedBytes] > 0)
                #expect(try reader.difference(from: films[0], in: 5_000_000..<films[0].size) == nil)
            }
        }

        // MARK: When a reader leaves

        @Test func readerThatComesBackFindsItsTransfer() async throws {
            try await scenario {
                $0.tuning.fill.lingerSeconds = 60
            } _: { stage in
                stage.origin.serve("/long.mp4", long)
                for offset in stride(from: Int64(0), to: 20_000_000, by: 2_000_000) {
                    try stage.glance("/long.mp4", of: long, at: offset, count: 2_000_000)
                    try stage.waitForStats("a connection less") { $0[\.connections] == 0 }
                    #expect(try stage.stats[\.openFetches] == 1)
                }
                let (player, _) = try stage.playerOf("/long.mp4", range: "bytes=1000000-")
                #expect(try player.difference(from: long, in: 1_000_000..<long.size) == nil)
                #expect(stage.origin.ranges("/long.mp4", of: long) == [0..<long.size])
                #expect(stage.origin.bytesSent("/long.mp4") == long.size)
            }
        }

        @Test func transferThatNobodyFollowsGoesUpToTheEndOfItsWindowAndWaitsThere() async throws {
            try await scenario {
                $0.tuning.fill.lingerSeconds = 60
            } _: { stage in
                stage.origin.serve("/long.mp4", long)
                let (player, _) = try stage.playerOf("/long.mp4", receiveBuffer: 16_384)
                #expect(try player.difference(from: long, in: 0..<100_000) == nil)
                player.close()
                try stage.waitForStats("the reader's leaving") { $0[\.connections] == 0 }
                let given = Int64(try stage.stats[\.bytesFromUpstream])
                try stage.waitForStats("a transfer that goes on") { $0.lead >= 96 << 10 }
                try stage.passTime()
                let stats = try stage.stats
                #expect(stats.lead <= 128 << 10 + 2 * given + piece)
                try stage.waitForStats("one transfer") { $0[\.openFetches] == 1 }
            }
        }

        @Test func transferToWhichNobodyComesBackEndsAndKeepsItsChunks() async throws {
            try await scenario {
                ($0.tuning.fill.lingerSeconds, $0.tuning.fill.lastChunkSeconds) = (0.05, 60)
            } _: { stage in
                stage.origin.serve("/long.mp4", long)
                try stage.glance("/long.mp4", of: long, at: 0, count: 100_000)
                try stage.catchUp()
                try stage.origin.waitForAbort("/long.mp4")
                let bytes = Int64(try stage.stats[\.upstreamBytes])
                #expect(bytes % chunk == 0 && bytes < long.size)
                stage.origin.stop()
                let response = try stage.get("/long.mp4", range: "bytes=0-\(bytes - 1)")
                expectPart(response, 0..<bytes, of: long)
                #expect(response.isHit)
            }
        }

        @Test func transferThatLingersEndsWhenTheNextBegins() async throws {
            try await scenario {
                $0.tuning.fill.lingerSeconds = 60
            } _: { stage in
                stage.origin.serve("/long.mp4", long)
                try stage.glance("/long.mp4", of: long, at: 0, count: 1000)
                try stage.waitForStats("the reader's leaving") { $0[\.connections] == 0 }
                let (player, _) = try stage.playerOf("/long.mp4", range: "bytes=60000000-", receiveBuffer: 16_384)
                #expect(try player.difference(from: long, in: 60_000_000..<60_001_000) == nil)
                try stage.waitForStats("one transfer") { $0[\.openFetches] == 1 }
                try stage.origin.waitForAbort("/long.mp4")
                #expect(stage.origin.requestCount("/long.mp4") == 2)
            }
        }

        @Test func transferThatFetchesOnlyWhatIsReadDoesNotLinger() async throws {
            try await scenario {
                $0.tuning.fill.lingerSeconds = 60; $0.fill(.read)
            } _: { stage in
                stage.origin.serve("/long.mp4", long)
                try stage.glance("/long.mp4", of: long, at: 0, count: 1000)
                try stage.catchUp()
                try stage.origin.waitForAbort("/long.mp4")
            }
        }

        @Test func transferOfWhatIsNotStoredDoesNotLinger() async throws {
            try await scenario {
                $0.tuning.fill.lingerSeconds = 60
            } _: { stage in
                stage.origin.serve("/long.mp4", long)
                stage.origin.script("/long.mp4") { $0.headers = [("Cache-Control", "no-store")] }
                try stage.glance("/long.mp4", of: long, at: 0, count: 1000)
                try stage.catchUp()
                try stage.origin.waitForAbort("/long.mp4")
            }
        }

        // Each is in the middle of a chunk, and keeps its extent.
        @Test func transfersThatLingerLeaveRoomForOthers() async throws {
            try await scenario {
                ($0.maxSize, $0.tuning.fill.lingerSeconds, $0.tuning.fill.lastChunkSeconds) = (40_000_000, 60, 0.05)
            } _: { stage in
                for index in 0..<16 {
                    let film = Media(seed: 140 + UInt64(index), size: 6_000_000)
                    stage.origin.serve("/\(index)", film)
                    stage.origin.script("/\(index)") { $0.stallAfter = 3_500_000 }
                    try stage.glance("/\(index)", of: film, at: 0, count: 3_500_000)
                }
                try stage.waitForStats("one transfer that lingers") {
                    $0[\.connections] == 0 && $0[\.openFetches] == 1
                }
                try stage.passTime()
                #expect(try stage.get("/other.mp4").isHit)
                #expect(try stage.oversize() == nil)
            }
        }

        // MARK: Dragging the slider

        @Test func twoHundredSeeksLeaveAtMostTwoTransfersAndFetchLittleMoreThanIsRead() async throws {
            try await scenario {
                $0.tuning.fill.lingerSeconds = 60
            } _: { stage in
                let (huge, glanced): (Media, Int64) = (Media(seed: 124, size: 2_000_000_000), 65_536)
                stage.origin.serve("/huge.mp4", huge)
                stage.origin.script("/huge.mp4") { $0.bytesPerSecond = 4_000_000 }
                var random = SplitMix64(seed: 12)
                for _ in 0..<200 {
                    let offset = Int64.random(in: 0..<huge.size - glanced, using: &random)
                    try stage.glance("/huge.mp4", of: huge, at: offset, count: glanced)
                    // Each ends as soon as its loop hears of it.
                    try stage.waitForStats("at most two transfers") { $0[\.openFetches] <= 2 }
                    try stage.origin.waitUntil("at most two responses") {
                        $0.requests.count { !$0.finished && !$0.aborted } <= 2
                    }
                }
                // Each seek begins and ends somewhere in a chunk, and goes twice as far ahead as was read. How much
                // that is, and how much more the origin sends, depends on the kernel's buffers and on this machine.
                let stats = try stage.stats
                let (given, cached) = (Int64(stats[\.bytesFromUpstream]), Int64(stats[\.bytesFromCache]))
                let each = 128 << 10 + piece + 2 * chunk
                #expect(stats.lead <= 200 * each + 2 * (given + cached))
            }
        }

        // MARK: Parts that end elsewhere than asked

        @Test(arguments: [true, false])
        func originThatSendsLessAtATimeThanAskedForIsAskedForTheRest(isKnown: Bool) async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                if isKnown { _ = try stage.get("/film.mp4", range: "bytes=0-0") }
                stage.origin.script("/film.mp4") { $0.longestPart = 600_000 }
                expectPart(try stage.get("/film.mp4", range: "bytes=1000000-4999999"), 1_000_000..<5_000_000, of: film)
                let asked = 5_000_000 - 1_000_000 / chunk * chunk
                try stage.catchUp()
                if isKnown { #expect(stage.origin.bytesSent("/film.mp4") == chunk + asked) }
                // Nothing was broken.
                #expect(try stage.stats.errors.isEmpty)
            }
        }

        @Test func partThatGoesFurtherThanAskedIsUsedUpToThere() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                _ = try stage.get("/film.mp4", range: "bytes=0-0")
                stage.origin.script("/film.mp4") { $0.partSurplus = 100_000 }
                expectPart(try stage.get("/film.mp4", range: "bytes=1000000-1099999"), 1_000_000..<1_100_000, of: film)
                stage.origin.script("/film.mp4") { $0.partSurplus = 0 }
                expectWhole(try stage.get("/film.mp4"), film)
            }
        }

        @Test(arguments: [1, -1] as [Int64])
        func partWhoseLengthIsNotThatOfItsRangeLeadsToTheWhole(shift: Int64) async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                _ = try stage.get("/film.mp4", range: "bytes=0-0")
                stage.origin.script("/film.mp4") { $0.wrongContentRange = .endShifted(by: shift) }
                expectPart(try stage.get("/film.mp4", range: "bytes=1000000-1099999"), 1_000_000..<1_100_000, of: film)
                #expect(stage.origin.requests("/film.mp4").last?.headers["Range"] == nil)
            }
        }

        // Of a body without a length, what is beyond the range that it claims to be has no known place.
        @Test func bytesBeyondTheRangeOfAPartAreNotUsed() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                _ = try stage.get("/film.mp4", range: "bytes=0-0")
                stage.origin.script("/film.mp4") {
                    $0.chunkedEncoding = true; $0.wrongContentRange = .value("bytes 983040-1114111/5000000")
                }
                expectPart(try stage.get("/film.mp4", range: "bytes=1000000-1114111"), 1_000_000..<1_114_112, of: film)
                let (player, _) = try stage.playerOf("/film.mp4", range: "bytes=983040-")
                #expect(try player.difference(from: film, in: 983_040..<1_114_112) == nil)
                // The next part would have to begin where this one ended.
                expectCut { try player.readBody(exactly: Int(film.size)) }
            }
        }

        // MARK: Hosts that want to be left alone

        /// A clock that goes when it is told to.
        final class Clock: Sendable {
            let nanoseconds = Atomic<UInt64>(1_000_000_000)
            func pass(seconds: UInt64) { nanoseconds.add(seconds * 1_000_000_000, ordering: .relaxed) }
        }

        @Test(
            arguments: [429, 503], [("120", nil), ("Sun, 06 Nov 1994 08:51:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT")])
        func hostThatWantsToBeLeftAloneIs(status: Int, retryAfter: (String, date: String?)) async throws {
            let clock = Clock()
            try await scenario {
                $0.tuning.fill.clock = { clock.nanoseconds.load(ordering: .relaxed) }
            } _: { stage in
                stage.origin.serve("/film.mp4", film)
                let small = Media(seed: 125, size: 1000)
                stage.origin.serve("/other.mp4", small)
                stage.origin.script("/film.mp4") {
                    $0.status = status
                    $0.body = Array("later\n".utf8)
                    $0.headers = [("Retry-After", retryAfter.0)] + (retryAfter.date.map { [("Date", $0)] } ?? [])
                }
                let refused = try stage.get("/film.mp4")
                #expect(
                    refused.status == status && refused.text == "later\n"
                        && refused.headers["Retry-After"] == retryAfter.0)
                clock.pass(seconds: 20)
                for method in ["GET", "HEAD"] {
                    let response = try stage.get("/other.mp4", method: method)
                    #expect(response.status == 503 && response.headers["Retry-After"] == "100")
                    if method == "GET" { expectOneLine(response) }
                }
                #expect(stage.origin.requestCount("/other.mp4") == 0)
                // Another port is another host.
                let second = try ScriptedOrigin()
                defer { second.stop() }
                second.serve("/film.mp4", film)
                expectWhole(
                    try RawClient.get(port: stage.proxy.port, path: "/http/127.0.0.1:\(second.port)/film.mp4"), film)
                clock.pass(seconds: 100)
                expectWhole(try stage.get("/other.mp4"), small)
            }
        }

        /// Most signed links, and trackers before a CDN, redirect each time.
        @Test(arguments: [false, true]) func hostBehindARedirectIsLeftAlone(isKept: Bool) async throws {
            let clock = Clock()
            try await scenario {
                $0.tuning.fill.clock = { clock.nanoseconds.load(ordering: .relaxed) }
            } _: { stage in
                let host = try ScriptedOrigin()
                defer { host.stop() }
                host.serve("/film.mp4", film)
                host.script("/film.mp4") { ($0.status, $0.retryAfter) = (429, 120) }
                stage.origin.script("/link.mp4") {
                    $0.redirect = host.url("/film.mp4")
                    if isKept { ($0.status, $0.headers) = (301, [("Cache-Control", "max-age=600")]) }
                }
                #expect(try stage.get("/link.mp4").status == 429)
                clock.pass(seconds: 20)
                for method in ["GET", "HEAD"] {
                    let response = try stage.get("/link.mp4", method: method)
                    #expect(response.status == 503 && response.headers["Retry-After"] == "100")
                }
                #expect(host.requestCount("/film.mp4") == 1)
                clock.pass(seconds: 100)
                host.script("/film.mp4") { $0.status = nil }
                expectWhole(try stage.get("/link.mp4"), film)
            }
        }

        @Test func whatIsCachedPlaysWhileItsHostIsLeftAlone() async throws {
            let clock = Clock()
            try await scenario {
                $0.tuning.fill.clock = { clock.nanoseconds.load(ordering: .relaxed) }
            } _: { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/busy") {
                    $0.status = 503; $0.retryAfter = 120
                }
                expectPart(try stage.get("/film.mp4", range: "bytes=0-999999"), 0..<1_000_000, of: film)
                #expect(try stage.get("/busy").status == 503)
                expectPart(try stage.get("/film.mp4", range: "bytes=0-999999"), 0..<1_000_000, of: film)
                let gap = try stage.get("/film.mp4", range: "bytes=2000000-")
                expectOneLine(gap, status: 503)
                #expect(gap.headers["Retry-After"] == "120")
                #expect(stage.origin.requestCount("/film.mp4") == 1)
            }
        }

        @Test func requestWaitsForAHostThatWantsToBeLeftAloneShortly() async throws {
            let clock = Clock()
            try await scenario {
                $0.tuning.fill.clock = { clock.nanoseconds.load(ordering: .relaxed) }
            } _: { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/busy") {
                    $0.status = 429; $0.retryAfter = 1
                }
                #expect(try stage.get("/busy").status == 429)
                let waiting = try Background { try stage.get("/film.mp4") }
                try stage.waitForStats("the request") { $0[\.requests] == 2 && $0[\.openFetches] == 1 }
                #expect(stage.origin.requestCount("/film.mp4") == 0)
                clock.pass(seconds: 1)
                expectWhole(try waiting.value(), film)
            }
        }

        @Test func brokenTransferGoesOnWhenItsHostIsReadyAgain() async throws {
            let clock = Clock()
            try await scenario {
                ($0.tuning.fill.clock, $0.tuning.fill.longestWait) = (
                    { clock.nanoseconds.load(ordering: .relaxed) }, 0.5
                )
            } _: { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/film.mp4") {
                    $0.cutAfter = 1_000_000; $0.stallAfter = 500_000
                }
                let (player, _) = try stage.playerOf("/film.mp4")
                #expect(try player.difference(from: film, in: 0..<500_000) == nil)
                stage.origin.script("/film.mp4") {
                    $0.status = 429; $0.retryAfter = 1
                }
                stage.origin.release("/film.mp4")
                // Others are told to come again as soon as the proxy knows of it.
                let end = ContinuousClock.now + .patience
                while try stage.get("/nothing").status != 503 { try #require(ContinuousClock.now < end) }
                stage.origin.script("/film.mp4") { ($0.status, $0.retryAfter) = (nil, nil) }
                #expect(stage.origin.requestCount("/film.mp4") == 2)
                clock.pass(seconds: 1)
                #expect(try player.difference(from: film, in: 500_000..<film.size) == nil)
                #expect(stage.origin.requestCount("/film.mp4") == 3)
            }
        }

        @Test func brokenTransferWhoseHostWantsToBeLeftAloneForLongCutsThePlayer() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/film.mp4") {
                    $0.cutAfter = 1_000_000; $0.stallAfter = 500_000
                }
                let (player, _) = try stage.playerOf("/film.mp4")
                #expect(try player.difference(from: film, in: 0..<500_000) == nil)
                stage.origin.script("/film.mp4") {
                    $0.status = 503; $0.retryAfter = 61
                }
                stage.origin.release("/film.mp4")
                expectCut { try player.readBody(exactly: Int(film.size)) }
                #expect(stage.origin.requestCount("/film.mp4") == 2)
                #expect(try stage.stats.errors["origin-busy"] == 1)
            }
        }
    }
}
