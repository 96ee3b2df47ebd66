import ControlAPI
import DiskCache
import Downloads
import Glibc
import Synchronization
import Testing
import TestSupport

private let chunk: Int64 = 65_536
private let extent: Int64 = 64 * chunk
private let film = Media(seed: 160, size: 5_000_000)
private let remake = Media(seed: 161, size: 6_000_000)
private let long = Media(seed: 162, size: 40_000_000)
private let path = "/film.mp4"

/// What a download fetches, and what it leaves alone.
extension Scenarios {
    @Suite struct S16Prefetch {
        /// The whole film is in the cache, and nothing of it is asked for again.
        private func expectCached(
            _ stage: Stage, _ film: Media = film, sourceLocation: SourceLocation = #_sourceLocation
        ) throws {
            let count = stage.origin.requestCount(path)
            let response = try stage.get(path)
            expectWhole(response, film, sourceLocation: sourceLocation)
            #expect(response.isHit, "\(response.cacheStatus)", sourceLocation: sourceLocation)
            #expect(stage.origin.requestCount(path) == count, sourceLocation: sourceLocation)
        }

        private func resource(_ stage: Stage) throws -> CachedResource {
            try stage.read(ResourceDetail.self, "/resources?" + stage.parameter(path)).resource
        }

        // MARK: What comes

        @Test func whatIsUnknownComesWithOneRequestAndIsPinned() async throws {
            try await scenario { stage in
                stage.origin.serve(path, film)
                stage.origin.script(path) {
                    $0.headers = [
                        ("Cache-Control", "max-age=600"),
                        ("Content-Disposition", "attachment; filename=\"film one.mp4\""),
                    ]
                }
                let progress = try stage.download(path).complete()
                #expect(
                    progress.bytes == film.size && progress.total == film.size && progress.fileName == "film one.mp4")
                #expect(stage.origin.ranges(path, of: film) == [0..<film.size])
                #expect(try resource(stage).isPinned)
                try expectCached(stage)
            }
        }

        @Test func whatIsNotToBePinnedIsNot() async throws {
            try await scenario { stage in
                stage.origin.serve(path, film)
                _ = try stage.download(path, isPinned: false).complete()
                #expect(try !resource(stage).isPinned)
            }
        }

        // It is complete: whether it still holds is asked when it is played.
        @Test func whatIsCompleteIsNotAskedForThoughItIsStale() async throws {
            try await scenario { stage in
                stage.origin.serve(path, film)
                stage.origin.script(path) { $0.headers = [("Cache-Control", "max-age=60")] }
                _ = try stage.get(path)
                stage.wait(seconds: 1000)
                let progress = try stage.download(path).complete()
                #expect(progress.bytes == film.size && progress.total == film.size)
                #expect(stage.origin.requestCount(path) == 1)
                #expect(try resource(stage).isPinned)
            }
        }

        @Test func onlyGapsAreAskedForAndOnlyOfTheSameVersion() async throws {
            try await scenario { stage in
                stage.origin.serve(path, film, etag: "\"one\"")
                _ = try stage.get(path, range: "bytes=1000000-1999999")
                try stage.catchUp()
                _ = try stage.download(path).complete()
                let (from, to) = (1_000_000 / chunk * chunk, (2_000_000 + chunk - 1) / chunk * chunk)
                #expect(stage.origin.ranges(path, of: film) == [from..<to, 0..<from, to..<film.size])
                #expect(stage.origin.requests(path).dropFirst().allSatisfy { $0.headers["If-Range"] == "\"one\"" })
                #expect(stage.origin.bytesSent(path) == film.size)
                try expectCached(stage)
            }
        }

        @Test func stoppedOneKeepsItsBytesAndTheNextGoesOn() async throws {
            try await scenario { stage in
                stage.origin.serve(path, film)
                stage.origin.script(path) { $0.stallAfter = 2_000_000 }
                let first = try stage.download(path)
                try first.wait(forBytes: 2_000_000 / chunk * chunk)
                first.stop()
                try stage.origin.waitForAbort(path)
                stage.origin.script(path) { $0.stallAfter = nil }
                _ = try stage.download(path).complete()
                #expect(!first.hasEnded)
                #expect(stage.origin.ranges(path, of: film) == [0..<film.size, 2_000_000 / chunk * chunk..<film.size])
                #expect(stage.origin.requests(path)[1].headers["If-Range"] != nil)
                try expectCached(stage)
            }
        }

        @Test func contentThatChangesUnderItStartsOver() async throws {
            try await scenario { stage in
                stage.origin.serve(path, film, etag: "\"one\"")
                stage.origin.script(path) { $0.stallAfter = 2_000_000 }
                let first = try stage.download(path)
                try first.wait(forBytes: 1_900_000)
                first.stop()
                try stage.catchUp()
                stage.origin.serve(path, remake, etag: "\"two\"")
                stage.origin.script(path) { $0.stallAfter = nil }
                let progress = try stage.download(path).complete()
                #expect(progress.total == remake.size && progress.bytes == remake.size)
                try expectCached(stage, remake)
            }
        }

        @Test func onlyItsBeginningIsFetchedWhereNoMoreIsWanted() async throws {
            try await scenario { stage in
                stage.origin.serve(path, film)
                let progress = try stage.download(path, first: 1_000_000).complete()
                #expect(progress.total == 1_000_000 && progress.bytes == 1_000_000)
                let end = (1_000_000 + chunk - 1) / chunk * chunk
                #expect(stage.origin.ranges(path, of: film) == [0..<end])
                // More of it later: what is there stays.
                _ = try stage.download(path).complete()
                #expect(stage.origin.ranges(path, of: film) == [0..<end, end..<film.size])
                try expectCached(stage)
            }
        }

        // MARK: The beginning and the end first

        private static let (head, tail): (Int64, Int64) = (1_000_000, 500_000)
        private static let headEnd = (head + chunk - 1) / chunk * chunk
        private static let tailStart = (film.size - tail) / chunk * chunk

        @Test func beginningAndEndArriveBeforeTheRest() async throws {
            try await scenario { stage in
                stage.origin.serve(path, film)
                // More than either has, and less than what is between them.
                stage.origin.script(path) { $0.stallAfter = 1_200_000 }
                let download = try stage.download(path, first: Self.head, last: Self.tail)
                // In whole chunks.
                try download.wait(forBytes: Self.headEnd + film.size - Self.tailStart)
                let first = try stage.get(path, range: "bytes=0-\(Self.head - 1)")
                let last = try stage.get(path, range: "bytes=-\(Self.tail)")
                #expect(first.isHit && last.isHit && first.status == 206 && last.status == 206)
                #expect(first.body == film.bytes(0..<Self.head))
                #expect(last.body == film.bytes(film.size - Self.tail..<film.size))
                #expect(download.progress.total == film.size)
                stage.origin.release(path)
                let progress = try download.complete()
                #expect(progress.bytes == film.size && progress.total == film.size)
                #expect(
                    stage.origin.ranges(path, of: film) == [
                        0..<Self.headEnd, Self.tailStart..<film.size, Self.headEnd..<Self.tailStart,
                    ])
                #expect(download.fetched == film.size)
                try expectCached(stage)
            }
        }

        /// Each of two connections takes one of them, and whichever is done first goes on.
        @Test func twoConnectionsShareTheBeginningAndTheEnd() async throws {
            try await scenario { stage in
                stage.origin.serve(path, film)
                let download = try stage.download(path, first: Self.head, last: Self.tail, connections: 2)
                let progress = try download.complete()
                #expect(progress.bytes == film.size && progress.total == film.size)
                let ranges = stage.origin.ranges(path, of: film)
                #expect(ranges.first?.lowerBound == 0)
                #expect(ranges.contains { $0.lowerBound == Self.tailStart }, "\(ranges)")
                try expectCached(stage)
            }
        }

        @Test func theEndAloneMayComeFirst() async throws {
            try await scenario { stage in
                stage.origin.serve(path, film)
                _ = try stage.download(path, last: Self.tail).complete()
                #expect(
                    stage.origin.ranges(path, of: film) == [
                        0..<chunk, Self.tailStart..<film.size, chunk..<Self.tailStart,
                    ])
                try expectCached(stage)
            }
        }

        @Test func whatHeadAndTailLackIsFetchedAfterAnInterruption() async throws {
            try await scenario { stage in
                stage.origin.serve(path, film)
                stage.origin.script(path) { $0.stallAfter = 1_200_000 }
                let former = try stage.download(path, first: Self.head, last: Self.tail)
                try former.wait(forBytes: Self.head + Self.tail)
                try former.wait(forFetched: Self.headEnd + film.size - Self.tailStart + 1_200_000)
                former.stop()
                try stage.catchUp()
                stage.origin.script(path) { $0.stallAfter = nil }
                let next = try stage.download(path, first: Self.head, last: Self.tail)
                _ = try next.complete()
                #expect(former.fetched + next.fetched == stage.origin.bytesSent(path))
                #expect(stage.origin.ranges(path, of: film).last?.upperBound == Self.tailStart)
                try expectCached(stage)
            }
        }

        @Test(
            arguments: [
                (film.size, film.size), (10 * film.size, 1), (1, 10 * film.size), (2_500_000, 2_500_000),
            ] as [(Int64, Int64)])
        func headsAndTailsThatMeetAreTheWhole(head: Int64, tail: Int64) async throws {
            try await scenario { stage in
                stage.origin.serve(path, film)
                let download = try stage.download(path, first: head, last: tail)
                #expect(try download.complete().bytes == film.size)
                #expect(download.fetched == film.size)
                try expectCached(stage)
            }
        }

        @Test func originsWithoutRangesSendTheWholeOnce() async throws {
            try await scenario { stage in
                stage.origin.serve(path, film)
                stage.origin.script(path) { $0.ignoresRange = true }
                let download = try stage.download(path, first: Self.head, last: Self.tail)
                _ = try download.complete()
                #expect(stage.origin.bytesSent(path) == film.size)
                #expect(download.fetched == film.size)
                try expectCached(stage)
            }
        }

        @Test func aPlaylistHasNoBeginningAndEnd() async throws {
            try await scenario { stage in
                stage.origin.serve("/main.m3u8", bytes: Array("#EXTM3U\n#EXT-X-ENDLIST\n".utf8))
                let fault = try stage.download("/main.m3u8", first: 5, last: 5).fault()
                #expect(
                    fault?.message
                        == "it is a playlist, whose first or last bytes cannot be played: leave out --first and --last")
            }
        }

        // MARK: What counts as fetched

        @Test(arguments: [1, 4]) func onlyWhatArrivesForADownloadCounts(connections: Int) async throws {
            try await scenario { stage in
                stage.origin.serve(path, film)
                _ = try stage.get(path, range: "bytes=1000000-1999999")
                try stage.catchUp()
                let sent = stage.origin.bytesSent(path)
                let download = try stage.download(path, connections: connections)
                _ = try download.complete()
                #expect(download.fetched == film.size - sent)
                let again = try stage.download(path)
                _ = try again.complete()
                #expect(again.fetched == 0)
            }
        }

        @Test(arguments: [100, 70_000, 5_000_000]) func smallAndLargeFilesAreCountedInFull(size: Int64) async throws {
            try await scenario { stage in
                let media = Media(seed: 164, size: size)
                stage.origin.serve("/one.mp4", media)
                stage.origin.serve("/unknown.mp4", media)
                stage.origin.script("/unknown.mp4") { $0.chunkedEncoding = true }
                for name in ["/one.mp4", "/unknown.mp4"] {
                    let download = try stage.download(name)
                    _ = try download.complete()
                    #expect(download.fetched == size, "\(name)")
                }
            }
        }

        @Test func whatArrivesForAPlayerTooDoesNotCount() async throws {
            try await scenario { stage in
                stage.origin.serve(path, film)
                stage.origin.script(path) { $0.stallAfter = 1_000_000 }
                let (player, _) = try stage.playerOf(path)
                let download = try stage.download(path)
                try download.wait(forBytes: 1_000_000 / chunk * chunk)
                #expect(download.fetched == 0)
                player.close()
                download.stop()
            }
        }

        @Test func ofTwoDownloadsOneCounts() async throws {
            try await scenario { stage in
                stage.origin.serve(path, film)
                stage.origin.hold(path)
                let one = try stage.download(path)
                try stage.origin.waitForRequests(path, count: 1)
                let other = try stage.download(path)
                stage.origin.release(path)
                _ = (try one.complete(), try other.complete())
                #expect(one.fetched + other.fetched == stage.origin.bytesSent(path))
            }
        }

        @Test(arguments: [2, 8]) func severalConnectionsShareItInBlocks(connections: Int) async throws {
            try await scenario { stage in
                stage.origin.serve("/long.mp4", long)
                _ = try stage.download("/long.mp4", connections: connections).complete()
                let ranges = stage.origin.ranges("/long.mp4", of: long).sorted { $0.lowerBound < $1.lowerBound }
                #expect(ranges.count >= connections)
                #expect(ranges.first?.lowerBound == 0 && ranges.map(\.upperBound).max() == long.size)
                // Where one was much slower than another, as a busy machine lets it be, the other has taken over a part
                // of what it had asked for.
                for (former, next) in zip(ranges, ranges.dropFirst()) {
                    #expect(former.upperBound >= next.lowerBound && former.lowerBound < next.lowerBound)
                }
                expectWhole(try stage.get("/long.mp4"), long)
            }
        }

        @Test func severalConnectionsRunAtOnce() async throws {
            try await scenario { stage in
                stage.origin.serve("/long.mp4", long)
                stage.origin.hold("/long.mp4")
                let download = try stage.download("/long.mp4", connections: 16)
                try stage.origin.waitForRequests("/long.mp4", count: 16)
                stage.origin.release("/long.mp4")
                _ = try download.complete()
                expectWhole(try stage.get("/long.mp4"), long)
            }
        }

        /// The blocks that are there already are many more than those that are not.
        @Test func resumingFindsTheGapsAmongManyBlocks() async throws {
            try await scenario { stage in
                let large = Media(seed: 163, size: 400_000_000)
                stage.origin.serve("/large.mp4", large)
                _ = try stage.download("/large.mp4").complete()
                #expect(try stage.download("/large.mp4", connections: 8).complete().bytes == large.size)
                let ranges = stage.origin.ranges("/large.mp4", of: large)
                #expect(ranges.count == 1, "\(ranges)")
            }
        }

        @Test func connectionsThatAreRefusedAreDoneWithout() async throws {
            try await scenario { stage in
                stage.origin.serve("/long.mp4", long)
                stage.origin.hold("/long.mp4")
                let download = try stage.download("/long.mp4", connections: 4)
                try stage.origin.waitForRequests("/long.mp4", count: 1)
                stage.origin.script("/long.mp4") {
                    $0.status = 503
                    $0.statusTimes = 3
                }
                stage.origin.release("/long.mp4")
                _ = try download.complete()
                expectWhole(try stage.get("/long.mp4"), long)
            }
        }

        // MARK: Origins that are simple

        @Test func originWithoutRangesSendsItOnce() async throws {
            try await scenario { stage in
                stage.origin.serve(path, film)
                stage.origin.script(path) { $0.ignoresRange = true }
                _ = try stage.download(path, connections: 4).complete()
                #expect(stage.origin.bytesSent(path) == film.size)
                try expectCached(stage)
            }
        }

        @Test func originWhosePartsDoNotTellTheWholeIsAskedForTheWhole() async throws {
            try await scenario { stage in
                stage.origin.serve(path, film)
                stage.origin.script(path) { $0.wrongContentRange = .unknownTotal }
                _ = try stage.download(path, connections: 4).complete()
                try expectCached(stage)
            }
        }

        @Test(arguments: [1, 3]) func whatHasNoValidatorComesAsAWhole(connections: Int) async throws {
            try await scenario { stage in
                stage.origin.serve(path, film)
                stage.origin.script(path) {
                    $0.noValidators = true
                    $0.ignoresRange = true
                }
                let progress = try stage.download(
                    path, first: connections > 1 ? nil : 1_000_000, connections: connections
                ).complete()
                #expect(progress.total == (connections > 1 ? film.size : 1_000_000))
                try expectCached(stage)
            }
        }

        @Test(arguments: [true, false]) func whatHasNoLengthComesToItsEnd(isChunked: Bool) async throws {
            try await scenario { stage in
                stage.origin.serve(path, film)
                stage.origin.script(path) {
                    $0.chunkedEncoding = isChunked
                    $0.closeDelimited = !isChunked
                    $0.stallAfter = 3_000_000
                }
                let download = try stage.download(path)
                try download.wait(forBytes: 2_900_000)
                #expect(download.progress.total == nil)
                stage.origin.release(path)
                #expect(try download.complete().total == film.size)
                try expectCached(stage)
            }
        }

        @Test(arguments: [(1, nil), (1, 1000), (4, nil)] as [(Int, Int64?)]) func emptyOneIsCompleteAtOnce(
            connections: Int, first: Int64?
        ) async throws {
            try await scenario { stage in
                stage.origin.serve(path, Media(seed: 1, size: 0))
                let progress = try stage.download(path, first: first, connections: connections).complete()
                #expect(progress.bytes == 0 && progress.total == 0)
            }
        }

        @Test func whatItsOriginChoosesByFieldsIsTheOneForNone() async throws {
            try await scenario { stage in
                stage.origin.serve(path, film, etag: "\"de\"")
                stage.origin.script(path) {
                    $0.headers = [("Vary", "Accept-Language"), ("Cache-Control", "max-age=600")]
                }
                _ = try stage.get(path, headers: [("Accept-Language", "de")])
                stage.origin.serve(path, remake, etag: "\"any\"")
                stage.origin.script(path) {
                    $0.headers = [("Vary", "Accept-Language"), ("Cache-Control", "max-age=600")]
                }
                _ = try stage.download(path).complete()
                try expectCached(stage, remake)
                #expect(try stage.get(path, headers: [("Accept-Language", "de")]).headers["ETag"] == "\"de\"")
            }
        }

        // MARK: What goes wrong

        @Test(arguments: [403, 404, 410, 451]) func errorThatStaysEndsItAndKeepsWhatIsThere(status: Int) async throws {
            try await scenario {
                $0.tuning.fill.lastChunkSeconds = 60
            } _: { stage in
                stage.origin.serve(path, film)
                _ = try stage.get(path, range: "bytes=0-999999")
                try stage.catchUp()
                stage.origin.script(path) { $0.status = status }
                let fault = try stage.download(path).fault()
                #expect(fault?.kind == .final && fault?.message.contains("\(status)") == true)
                #expect(stage.origin.requestCount(path) == 2)
                #expect(try resource(stage).cachedBytes == (1_000_000 + chunk - 1) / chunk * chunk)
                // The same where nothing is there.
                stage.origin.serve("/other.mp4", film)
                stage.origin.script("/other.mp4") { $0.status = status }
                #expect(try stage.download("/other.mp4").fault()?.kind == .final)
                #expect(stage.origin.requestCount("/other.mp4") == 1)
            }
        }

        @Test(arguments: [429, 503, 500]) func errorThatMayPassIsToldWithTheOriginsWish(status: Int) async throws {
            try await scenario { stage in
                stage.origin.serve(path, film)
                stage.origin.script(path) {
                    $0.status = status
                    $0.retryAfter = 30
                }
                let fault = try stage.download(path).fault()
                guard case .busy(let wish)? = fault?.kind else {
                    Issue.record("\(fault as Any)")
                    return
                }
                #expect(status == 500 ? wish == nil : (1...30).contains(wish ?? 0))
                #expect(stage.origin.requestCount(path) == 1)
                // Meanwhile it is not even asked.
                guard status != 500, case .busy? = try stage.download(path).fault()?.kind else { return }
                #expect(stage.origin.requestCount(path) == 1)
            }
        }

        @Test func brokenTransferIsNotTriedAgainHereAndKeepsWhatCame() async throws {
            try await scenario { stage in
                stage.origin.serve(path, film)
                stage.origin.script(path) { $0.cutAfter = 2_000_000 }
                let download = try stage.download(path)
                #expect(try download.fault()?.kind == .network)
                #expect(stage.origin.requestCount(path) == 1)
                _ = try stage.download(path).complete()
                #expect(stage.origin.ranges(path, of: film) == [0..<film.size, 2_000_000 / chunk * chunk..<film.size])
                try expectCached(stage)
            }
        }

        @Test func brokenTransferThatAPlayerFollowsGoesOnForIt() async throws {
            try await scenario { stage in
                stage.origin.serve(path, film)
                stage.origin.script(path) {
                    $0.stallAfter = 1_000_000
                    $0.cutAfter = 2_000_000
                }
                let download = try stage.download(path)
                try download.wait(forBytes: 900_000)
                let (player, _) = try stage.playerOf(path)
                #expect(try player.difference(from: film, in: 0..<900_000) == nil)
                stage.origin.release(path)
                #expect(try player.difference(from: film, in: 900_000..<film.size) == nil)
                _ = try download.complete()
                #expect(stage.origin.requestCount(path) == 2)
            }
        }

        @Test func unreachableOriginIsTold() async throws {
            try await scenario { stage in
                stage.origin.serve(path, film)
                stage.origin.stop()
                let fault = try stage.download(path).fault()
                #expect(fault?.kind == .network)
            }
        }

        @Test func offlineNothingIsAsked() async throws {
            try await scenario {
                $0.configure { $0.isOffline = true }
            } _: { stage in
                stage.origin.serve(path, film)
                #expect(stage.proxy.cache.downloader.source.isOffline)
                let fault = try stage.download(path).fault()
                #expect(fault?.kind == .offline)
                #expect(stage.origin.requestCount(path) == 0)
            }
        }

        @Test func addressThatIsNotPermittedIsFinal() async throws {
            try await scenario {
                $0.allow = []
            } _: { stage in
                stage.origin.serve(path, film)
                let fault = try stage.download(path).fault()
                #expect(
                    fault?.kind == .final && fault?.message.contains("add 127.0.0.1 to allow") == true,
                    "\(fault?.message ?? "")")
            }
        }

        @Test func whatMustNotBeKeptIsNotDownloaded() async throws {
            try await scenario { stage in
                stage.origin.serve(path, film)
                stage.origin.script(path) { $0.headers = [("Cache-Control", "no-store")] }
                let fault = try stage.download(path).fault()
                #expect(
                    fault?.kind == .final && fault?.message.contains("ignore_no_store") == true,
                    "\(fault?.message ?? "")")
                #expect(stage.origin.requestCount(path) == 1)
            }
        }

        @Test func whatARuleKeepsAllTheSameIsDownloaded() async throws {
            try await scenario {
                $0.configure { $0.rules = [.init { $0.ignoresNoStore = true }] }
            } _: { stage in
                stage.origin.serve(path, film)
                stage.origin.script(path) { $0.headers = [("Cache-Control", "no-store")] }
                _ = try stage.download(path).complete()
                #expect(try resource(stage).isComplete)
            }
        }

        @Test func whatFindsNoRoomFailsBeforeAllElseHasGone() async throws {
            try await scenario {
                $0.maxSize = 30_000_000
            } _: { stage in
                stage.origin.serve(path, film)
                stage.origin.serve("/long.mp4", long)
                stage.origin.script("/long.mp4") { $0.stallAfter = 1_000_000 }
                _ = try stage.download(path).complete()
                let fault = try stage.download("/long.mp4").fault()
                #expect(fault?.kind == .final && fault?.message.contains("room") == true, "\(fault?.message ?? "")")
                #expect(stage.origin.requestCount("/long.mp4") == 1)
                try expectCached(stage)
            }
        }

        @Test func downloadsThatDoNotFitTogetherDoNotEvictEachOther() async throws {
            try await scenario {
                $0.maxSize = 60_000_000
            } _: { stage in
                stage.origin.serve("/one.mp4", long)
                stage.origin.serve("/other.mp4", long)
                stage.origin.script("/one.mp4") { $0.stallAfter = 1_000_000 }
                let one = try stage.download("/one.mp4")
                try one.wait(forBytes: 900_000)
                let fault = try stage.download("/other.mp4").fault()
                #expect(
                    fault?.kind == .final && fault?.message.contains("for other downloads") == true,
                    "\(fault?.message ?? "")")
                stage.origin.release("/one.mp4")
                _ = try one.complete()
                // What is complete needs no room.
                _ = try stage.download("/one.mp4").complete()
            }
        }

        // MARK: Beside players

        @Test func itSharesBytesAndTransfersWithAPlayer() async throws {
            try await scenario { stage in
                stage.origin.serve(path, film)
                stage.origin.script(path) { $0.stallAfter = 2_000_000 }
                let (player, _) = try stage.playerOf(path)
                #expect(try player.difference(from: film, in: 0..<1_000_000) == nil)
                let download = try stage.download(path)
                stage.origin.release(path)
                #expect(try player.difference(from: film, in: 1_000_000..<film.size) == nil)
                _ = try download.complete()
                #expect(stage.origin.requestCount(path) == 1 && stage.origin.bytesSent(path) == film.size)
            }
        }

        @Test func playerThatComesLaterSharesItToo() async throws {
            try await scenario { stage in
                stage.origin.serve(path, film)
                stage.origin.script(path) { $0.stallAfter = 2_000_000 }
                let download = try stage.download(path)
                try download.wait(forBytes: 1_900_000)
                let (player, _) = try stage.playerOf(path)
                stage.origin.release(path)
                #expect(try player.difference(from: film, in: 0..<film.size) == nil)
                _ = try download.complete()
                #expect(stage.origin.requestCount(path) == 1 && stage.origin.bytesSent(path) == film.size)
            }
        }

        @Test func stoppedOneDoesNotStopThePlayerThatSharesIt() async throws {
            try await scenario { stage in
                stage.origin.serve(path, film)
                stage.origin.script(path) { $0.stallAfter = 2_000_000 }
                let download = try stage.download(path)
                try download.wait(forBytes: 1_900_000)
                let (player, _) = try stage.playerOf(path)
                #expect(try player.difference(from: film, in: 0..<1_900_000) == nil)
                download.stop()
                stage.origin.release(path)
                #expect(try player.difference(from: film, in: 1_900_000..<film.size) == nil)
                #expect(stage.origin.requestCount(path) == 1)
            }
        }

        // The clock stands: what a download may have beside a player comes no more.
        @Test(arguments: ["max-age=60", "no-store"]) func playingGoesFirst(control: String) async throws {
            let time = ManualTime()
            try await scenario {
                $0.tuning.fill.clock = { time.now }
            } _: { stage in
                stage.origin.serve(path, film)
                stage.origin.script(path) {
                    $0.stallAfter = 1_000_000
                    $0.headers = [("Cache-Control", control)]
                }
                stage.origin.serve("/long.mp4", long)
                let (player, _) = try stage.playerOf(path)
                #expect(try player.difference(from: film, in: 0..<1_000_000) == nil)
                let download = try stage.download("/long.mp4")
                try stage.origin.waitForRequests("/long.mp4", count: 1)
                // It is paused by now, or will be: what a transfer brings before its reader is told is bounded.
                try stage.passTime()
                #expect(!download.hasEnded && download.progress.bytes <= 2 << 20)
                stage.origin.release(path)
                #expect(try player.difference(from: film, in: 1_000_000..<film.size) == nil)
                time.advance(bySeconds: 1)
                _ = try download.complete()
            }
        }

        @Test func rateIsKept() async throws {
            let time = ManualTime()
            try await scenario {
                $0.tuning.fill.clock = { time.now }
            } _: { stage in
                stage.origin.serve("/long.mp4", long)
                let download = try stage.download("/long.mp4", limitRate: 1_000_000)
                try stage.origin.waitForRequests("/long.mp4", count: 1)
                try stage.passTime()
                let first = download.progress.bytes
                #expect(!download.hasEnded && first <= 2 << 20)
                // Four times a quarter of a second, which is as much as it may catch up at once.
                for _ in 0..<8 {
                    time.advance(bySeconds: 0.25)
                    try stage.passTime()
                }
                #expect(!download.hasEnded && download.progress.bytes <= 5 << 20)
                download.limit(to: nil)
                _ = try download.complete()
                expectWhole(try stage.get("/long.mp4"), long)
            }
        }

        @Test func rateOfAllIsKept() async throws {
            let time = ManualTime()
            try await scenario {
                $0.tuning.fill.clock = { time.now }
            } _: { stage in
                stage.origin.serve("/long.mp4", long)
                stage.proxy.cache.downloader.source.limitAll(to: 100_000)
                let download = try stage.download("/long.mp4")
                try stage.origin.waitForRequests("/long.mp4", count: 1)
                try stage.passTime()
                #expect(!download.hasEnded && download.progress.bytes <= 2 << 20)
                stage.proxy.cache.downloader.source.limitAll(to: nil)
                // Nobody plays any more.
                time.advance(bySeconds: 1)
                _ = try download.complete()
            }
        }

        // The clock stands: what comes at once, over and above, is counted before more is asked for.
        @Test func rateOfAllHoldsFromTheStart() async throws {
            let time = ManualTime()
            try await scenario {
                $0.tuning.fill.clock = { time.now }
            } _: { stage in
                let paths = (0..<3).map { "/long-\($0).mp4" }
                for path in paths { stage.origin.serve(path, long) }
                stage.proxy.cache.downloader.source.limitAll(to: 8 << 20)
                let downloads = try paths.map { try stage.download($0, connections: 8) }
                for path in paths { try stage.origin.waitForRequests(path, count: 1) }
                for _ in 0..<4 { try stage.passTime() }
                #expect(paths.map { stage.origin.requestCount($0) } == [1, 1, 1])
                let first = downloads.reduce(0) { $0 + $1.progress.bytes }
                #expect(first <= 4 << 20)
                for _ in 0..<4 {
                    time.advance(bySeconds: 0.25)
                    try stage.passTime()
                }
                #expect(downloads.reduce(0) { $0 + $1.progress.bytes } <= 12 << 20)
                stage.proxy.cache.downloader.source.limitAll(to: nil)
                time.advance(bySeconds: 1)
                for download in downloads { _ = try download.complete() }
            }
        }

        // MARK: What a cancelled one leaves

        @Test func whatWasNotThereBeforeGoes() async throws {
            try await scenario { stage in
                stage.origin.serve(path, film)
                let claim = try stage.claim(path)
                _ = try stage.download(path).complete()
                #expect(try resource(stage).isPinned)
                #expect(try stage.proxy.cache.downloader.restorePoints.release(claim) >= film.size)
                #expect(try stage.control("GET", "/resources?" + stage.parameter(path), .nothing).status == 404)
                #expect(stage.dataFiles.isEmpty)
            }
        }

        @Test func whatWasThereBeforeStays() async throws {
            try await scenario { stage in
                stage.origin.serve("/long.mp4", long)
                let seek = 3 * extent
                expectPart(try stage.get("/long.mp4", range: "bytes=\(seek)-\(seek + 99)"), seek..<seek + 100, of: long)
                try stage.catchUp()
                let claim = try stage.claim("/long.mp4")
                _ = try stage.download("/long.mp4").complete()
                _ = try stage.proxy.cache.downloader.restorePoints.release(claim)
                let detail = try stage.read(ResourceDetail.self, "/resources?" + stage.parameter("/long.mp4"))
                #expect(detail.present == [ByteSpan(seek..<seek + extent)])
                #expect(!detail.resource.isPinned)
                #expect(try stage.get("/long.mp4", range: "bytes=\(seek)-\(seek + 99)").isHit)
                expectWhole(try stage.get("/long.mp4"), long)
            }
        }

        @Test func whatWasPinnedBeforeStaysSo() async throws {
            try await scenario { stage in
                stage.origin.serve(path, film)
                _ = try stage.download(path, first: 1000).complete()
                let claim = try stage.claim(path)
                _ = try stage.download(path).complete()
                _ = try stage.proxy.cache.downloader.restorePoints.release(claim)
                #expect(try resource(stage).isPinned)
            }
        }

        /// A variant has a pin of its own, which would outlive it.
        @Test func whatItsOriginChoosesByFieldsGoesWithItsPin() async throws {
            try await scenario { stage in
                stage.origin.serve(path, film, etag: "\"de\"")
                stage.origin.script(path) {
                    $0.headers = [("Vary", "Accept-Language"), ("Cache-Control", "max-age=600")]
                }
                _ = try stage.get(path, headers: [("Accept-Language", "de")])
                try stage.catchUp()
                let claim = try stage.claim(path)
                stage.origin.serve(path, remake, etag: "\"any\"")
                stage.origin.script(path) {
                    $0.headers = [("Vary", "Accept-Language"), ("Cache-Control", "max-age=600")]
                }
                _ = try stage.download(path).complete()
                let pinned = try stage.read(CacheReport.self, "/cache").pinned
                #expect(pinned == 1)
                #expect(try stage.proxy.cache.downloader.restorePoints.release(claim) >= remake.size)
                expectWhole(try stage.get(path), remake)
                let report = try stage.read(CacheReport.self, "/cache")
                #expect(report.pinned == 0 && report.resources == 2)
                #expect(try stage.get(path, headers: [("Accept-Language", "de")]).isHit)
            }
        }

        @Test func whatAPlayerIsReadingStays() async throws {
            try await scenario { stage in
                stage.origin.serve(path, film)
                let claim = try stage.claim(path)
                stage.origin.script(path) { $0.stallAfter = 2_000_000 }
                let download = try stage.download(path)
                try download.wait(forBytes: 1_900_000)
                let (player, _) = try stage.playerOf(path)
                download.stop()
                #expect(try stage.proxy.cache.downloader.restorePoints.release(claim) == 0)
                stage.origin.release(path)
                #expect(try player.difference(from: film, in: 0..<film.size) == nil)
                #expect(try !resource(stage).isPinned)
                try expectCached(stage)
            }
        }

        @Test func whatAPlayerHasReadMeanwhileStays() async throws {
            try await scenario { stage in
                stage.origin.serve(path, film)
                let claim = try stage.claim(path)
                _ = try stage.download(path).complete()
                _ = try stage.get(path, range: "bytes=0-99")
                #expect(try stage.proxy.cache.downloader.restorePoints.release(claim) == 0)
                try expectCached(stage)
            }
        }
    }
}

extension Stage {
    /// Lets time pass by something that takes some: what runs at the same time gets further.
    fileprivate func passTime() throws {
        let other = Media(seed: 169, size: 16_000_000)
        origin.serve("/other.mp4", other)
        expectWhole(try get("/other.mp4"), other)
    }
}

/// A clock that is moved on by hand, in nanoseconds.
private final class ManualTime: Sendable {
    private let time = Atomic<UInt64>(1_000_000_000)

    var now: UInt64 { time.load(ordering: .relaxed) }

    func advance(bySeconds seconds: Double) { time.wrappingAdd(UInt64(seconds * 1e9), ordering: .relaxed) }
}
