import Foundation
import Reelcache
import Testing
import TestSupport

/// Four chunks and a bit.
private let film = Media(seed: 6, size: 5_000_000)

extension Scenarios {
    @Suite struct S06Store {
        // MARK: Restarts

        @Test func cacheOutlivesTheProxy() async throws {
            try await scenario { stage in
                let sizes: [Int64] = [1, 65_536, 300_000, 4_194_305, 5_000_000]
                for (index, size) in sizes.enumerated() {
                    let film = Media(seed: UInt64(size), size: size)
                    stage.origin.serve("/\(index)", film, lastModified: "Sun, 06 Nov 1994 08:49:37 GMT")
                    expectWhole(try stage.get("/\(index)"), film)
                }
                try stage.restart()
                stage.origin.stop()
                for (index, size) in sizes.enumerated() {
                    let response = try stage.get("/\(index)")
                    expectWhole(response, Media(seed: UInt64(size), size: size))
                    #expect(response.isHit)
                    #expect(response.headers["ETag"] == "\"v1\"" && response.headers["Content-Type"] == "video/mp4")
                    #expect(response.headers["Last-Modified"] == "Sun, 06 Nov 1994 08:49:37 GMT")
                }
            }
        }

        @Test func partsOutliveTheProxyAndTheGapsAreFetchedAfterIt() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                expectPart(try stage.get("/film.mp4", range: "bytes=1000000-1999999"), 1_000_000..<2_000_000, of: film)
                try stage.catchUp()
                try stage.restart()
                #expect(try stage.get("/film.mp4", range: "bytes=1000000-1999999").isHit)
                try stage.restart()
                expectWhole(try stage.get("/film.mp4"), film)
                #expect(stage.origin.bytesSent("/film.mp4") == film.size)
            }
        }

        @Test func fileOfUnknownLengthOutlivesTheProxy() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/film.mp4") { $0.chunkedEncoding = true }
                _ = try stage.get("/film.mp4")
                try stage.restart()
                stage.origin.stop()
                let response = try stage.get("/film.mp4")
                expectWhole(response, film)
                #expect(response.isHit)
            }
        }

        @Test func proxyStoppedInTheMiddleOfAFileKeepsItsWholeChunks() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/film.mp4") { $0.stallAfter = 1_000_000 }
                let (player, _) = try stage.playerOf("/film.mp4")
                #expect(try player.difference(from: film, in: 0..<1_000_000) == nil)
                try stage.stop()
                #expect(throws: RawClient.ResponseError.truncated(received: 1_000_000, expected: film.size)) {
                    try player.readBody(upTo: 1)
                }
                stage.origin.release("/film.mp4")
                try stage.start()
                let whole = 15 * Int64(65_536)
                #expect(try stage.get("/film.mp4", range: "bytes=0-\(whole - 1)").isHit)
                expectWhole(try stage.get("/film.mp4"), film)
                #expect(stage.origin.requests("/film.mp4").last?.range == whole..<film.size)
            }
        }

        @Test func sizeIsWhatItWasAfterARestart() async throws {
            try await scenario { stage in
                for index in 0..<20 {
                    stage.origin.serve("/\(index)", film)
                    _ = try stage.get("/\(index)", range: "bytes=\(index * 100_000)-\(index * 200_000)")
                }
                let before = try stage.stats[\.size]
                try stage.restart()
                let after = try stage.stats[\.size]
                // The index is packed when it is closed.
                #expect(abs(before - after) < 2_000_000)
                #expect(after >= stage.files.filter { $0.key.hasPrefix("data/") }.values.reduce(0, +))
            }
        }

        @Test func fileDeletedWhileTheProxyIsStoppedIsFetchedAgain() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.serve("/other.mp4", film)
                expectWhole(try stage.get("/film.mp4"), film)
                try stage.stop()
                for name in stage.dataFiles { try FileManager.default.removeItem(atPath: "\(stage.cache)/\(name)") }
                try stage.start()
                expectWhole(try stage.get("/film.mp4"), film)
                #expect(stage.origin.requestCount("/film.mp4") == 2)
                try stage.restart()
                #expect(try stage.get("/film.mp4").isHit)
            }
        }

        @Test func fileDeletedUnderARunningProxyPlaysRight() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                _ = try stage.get("/film.mp4", range: "bytes=0-2999999")
                for name in stage.dataFiles { try FileManager.default.removeItem(atPath: "\(stage.cache)/\(name)") }
                expectWhole(try stage.get("/film.mp4"), film)
                try stage.restart()
                expectWhole(try stage.get("/film.mp4"), film)
            }
        }

        /// In the middle of a page: what stands behind the end of a file in its last page is zeros, and no error.
        @Test func fileCutShortUnderARunningProxyIsFetchedFromThereOn() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                // The second time from a mapping.
                for _ in 1...2 { expectWhole(try stage.get("/film.mp4"), film) }
                for name in stage.dataFiles { #expect(truncate("\(stage.cache)/\(name)", 1_000_100) == 0) }
                // First further on: what is written there extends the file, and nothing before it may count as there.
                let late = try stage.get("/film.mp4", range: "bytes=2000000-2099999")
                #expect(late.status == 206 && film.firstMismatch(late.body, at: 2_000_000) == nil)
                for _ in 1...2 { expectWhole(try stage.get("/film.mp4"), film) }
            }
        }

        /// Nothing is stored where the next proxy would find it, and nothing that is wrong is sent.
        @Test func cacheDirectoryThatIsMovedAwayIsSaidOnceAndResponsesPassThrough() async throws {
            try await scenario { stage in
                for path in ["/a.mp4", "/b.mp4"] { stage.origin.serve(path, film) }
                expectWhole(try stage.get("/a.mp4"), film)
                #expect(try stage.player().get("/healthz").text == "ok\n")
                let aside = stage.cache + ".aside"
                #expect(rename(stage.cache, aside) == 0)
                #expect(mkdir(stage.cache, 0o700) == 0)
                try eventually("health that says so") {
                    try stage.player().get("/healthz").text.contains("restart the proxy")
                }
                for path in ["/a.mp4", "/b.mp4", "/b.mp4"] {
                    let response = try stage.get(path)
                    expectWhole(response, film)
                    #expect(path == "/a.mp4" || !response.isHit, "only what is still open stays readable")
                }
                #expect(try FileManager.default.contentsOfDirectory(atPath: stage.cache) == [])
                #expect(try stage.stats.errors["directory-gone"] == 1)
                #expect(rmdir(stage.cache) == 0 && rename(aside, stage.cache) == 0)
            }
        }

        @Test func secondProxyOnOneCacheIsToldWhoHasIt() async throws {
            try await scenario { stage in
                do {
                    let second = try stage.makeProxy()
                    try second.stop()
                    Issue.record("two proxies have one cache")
                } catch let error as ProxyError {
                    #expect(error.description.contains("in use by process \(getpid())"))
                    #expect(error.description.contains(stage.proxy.baseURL))
                }
                #expect(try stage.player().get("/healthz").text == "ok\n")
            }
        }

        // MARK: The limit

        @Test func filesOfThreeTimesTheLimitPlayRightWithinIt() async throws {
            try await scenario {
                $0.maxSize = 20_000_000
            } _: { stage in
                for round in 0..<2 {
                    for index in 0..<12 {
                        let film = Media(seed: 60 + UInt64(index), size: 5_000_000 + Int64(index))
                        stage.origin.serve("/\(index)", film)
                        let (player, _) = try stage.playerOf("/\(index)")
                        #expect(
                            try player.difference(from: film, in: 0..<film.size, and: stage.oversize) == nil,
                            "round \(round)")
                    }
                }
                #expect(try stage.stats[\.evictedBytes] > 60_000_000)
            }
        }

        @Test func fileLargerThanTheCachePlaysThrough() async throws {
            try await scenario {
                $0.maxSize = 16_000_000
            } _: { stage in
                let long = Media(seed: 61, size: 64_000_000)
                stage.origin.serve("/long.mp4", long)
                let (player, _) = try stage.playerOf("/long.mp4")
                #expect(try player.difference(from: long, in: 0..<long.size, and: stage.oversize) == nil)
                #expect(stage.origin.bytesSent("/long.mp4") == long.size)
                expectPart(try stage.get("/long.mp4", range: "bytes=0-999999"), 0..<1_000_000, of: long)
            }
        }

        @Test(arguments: [true, false])
        func fileOfUnknownLengthLargerThanTheCachePlaysThrough(hasValidators: Bool) async throws {
            try await scenario {
                $0.maxSize = 16_000_000
            } _: { stage in
                let long = Media(seed: 62, size: 40_000_000)
                stage.origin.serve("/long.mp4", long, etag: hasValidators ? "\"v1\"" : nil)
                stage.origin.script("/long.mp4") { $0.chunkedEncoding = true }
                let (player, _) = try stage.playerOf("/long.mp4")
                #expect(try player.difference(from: long, in: 0..<long.size, and: stage.oversize) == nil)
            }
        }

        @Test func fileWithoutValidatorsLargerThanTheCachePlaysThrough() async throws {
            try await scenario {
                $0.maxSize = 16_000_000
            } _: { stage in
                let long = Media(seed: 63, size: 40_000_000)
                stage.origin.serve("/long.mp4", long, etag: nil)
                for _ in 1...2 {
                    let (player, _) = try stage.playerOf("/long.mp4")
                    #expect(try player.difference(from: long, in: 0..<long.size, and: stage.oversize) == nil)
                }
            }
        }

        @Test func leastRecentlyReadFileGoesAndOneReadAgainStays() async throws {
            try await scenario {
                $0.maxSize = 20_000_000
            } _: { stage in
                let films = Dictionary(
                    uniqueKeysWithValues: "abcde".enumerated().map {
                        ("/\($1)", Media(seed: 70 + UInt64($0), size: 4_194_304))
                    })
                for (path, film) in films { stage.origin.serve(path, film) }
                for path in ["/a", "/b", "/c", "/a", "/d", "/e"] { expectWhole(try stage.get(path), films[path]!) }
                #expect(try stage.stats[\.evictedExtents] > 0)
                #expect(try stage.get("/a").isHit)
                #expect(stage.origin.requestCount("/a") == 1)
                #expect(try stage.get("/b", method: "GET").isHit == false)
            }
        }

        @Test func orderOfLastReadsOutlivesTheProxy() async throws {
            try await scenario {
                $0.maxSize = 20_000_000
            } _: { stage in
                let films = Dictionary(
                    uniqueKeysWithValues: "abcde".enumerated().map {
                        ("/\($1)", Media(seed: 70 + UInt64($0), size: 4_194_304))
                    })
                for (path, film) in films { stage.origin.serve(path, film) }
                for path in ["/a", "/b", "/c", "/a"] { _ = try stage.get(path) }
                try stage.restart()
                for path in ["/d", "/e"] { expectWhole(try stage.get(path), films[path]!) }
                #expect(try stage.stats[\.evictedExtents] > 0)
                let (evicted, last) = (try stage.stats[\.evictedExtents], try stage.get("/a"))
                #expect(last.isHit, "\(last.cacheStatus), \(evicted) extents evicted")
                #expect(try stage.get("/b").isHit == false)
            }
        }

        @Test func playerPausedInACachedFileReadsOnWhileOthersEvict() async throws {
            try await scenario {
                $0.maxSize = 20_000_000
            } _: { stage in
                let (first, second) = (Media(seed: 64, size: 12_000_000), Media(seed: 65, size: 48_000_000))
                stage.origin.serve("/first.mp4", first)
                stage.origin.serve("/second.mp4", second)
                expectWhole(try stage.get("/first.mp4"), first)
                let (paused, head) = try stage.playerOf("/first.mp4", receiveBuffer: 16_384)
                #expect(head.isHit)
                #expect(try paused.difference(from: first, in: 0..<1_000_000) == nil)
                let (other, _) = try stage.playerOf("/second.mp4")
                #expect(try other.difference(from: second, in: 0..<second.size, and: stage.oversize) == nil)
                #expect(try paused.difference(from: first, in: 1_000_000..<first.size, and: stage.oversize) == nil)
            }
        }

        @Test func playerPausedInAFetchReadsOnWhileOthersEvict() async throws {
            try await scenario {
                $0.maxSize = 16_000_000
            } _: { stage in
                let (first, second) = (Media(seed: 66, size: 32_000_000), Media(seed: 67, size: 32_000_000))
                stage.origin.serve("/first.mp4", first)
                stage.origin.serve("/second.mp4", second)
                let (paused, _) = try stage.playerOf("/first.mp4", receiveBuffer: 16_384)
                #expect(try paused.difference(from: first, in: 0..<1_000_000) == nil)
                let (other, _) = try stage.playerOf("/second.mp4")
                #expect(try other.difference(from: second, in: 0..<second.size, and: stage.oversize) == nil)
                #expect(try paused.difference(from: first, in: 1_000_000..<first.size, and: stage.oversize) == nil)
            }
        }

        // It holds nothing in the cache yet, and what it counted on goes: it needs a second transfer where it expected
        // cached bytes.
        @Test
        func playerThatWaitsForItsFirstByteReadsOnThoughAllOfItsFileIsEvicted() async throws {
            try await scenario {
                $0.maxSize = 16_000_000
            } _: { stage in
                let (first, second) = (Media(seed: 80, size: 4_000_000), Media(seed: 81, size: 32_000_000))
                stage.origin.serve("/first.mp4", first)
                stage.origin.serve("/second.mp4", second)
                for offset in [0, 2_000_000] as [Int64] {
                    _ = try stage.get("/first.mp4", range: "bytes=\(offset)-\(offset)")
                }
                stage.origin.holdHeads("/first.mp4")
                let waiting = try Background { try stage.get("/first.mp4", range: "bytes=1000000-2999999") }
                try stage.origin.waitForRequests("/first.mp4", count: 3)
                let (other, _) = try stage.playerOf("/second.mp4")
                #expect(try other.difference(from: second, in: 0..<second.size, and: stage.oversize) == nil)
                stage.origin.release("/first.mp4")
                expectPart(try waiting.value(), 1_000_000..<3_000_000, of: first)
            }
        }

        // Each holds the extent that it is in: more than there is room for.
        @Test func twentyPausedPlayersInAFullCacheDoNotKeepAnotherFromPlaying() async throws {
            try await scenario {
                $0.maxSize = 16_000_000
            } _: { stage in
                let (first, second) = (Media(seed: 68, size: 100_000_000), Media(seed: 69, size: 24_000_000))
                stage.origin.serve("/first.mp4", first)
                stage.origin.serve("/second.mp4", second)
                let paused = try (0..<20).map { index in
                    let range = Int64(index) * 5_000_000..<Int64(index + 1) * 5_000_000
                    let (player, _) = try stage.playerOf("/first.mp4", range: range.rangeField, receiveBuffer: 16_384)
                    #expect(try player.difference(from: first, in: range.lowerBound..<range.lowerBound + 1000) == nil)
                    return (player, range)
                }
                let (other, _) = try stage.playerOf("/second.mp4")
                #expect(try other.difference(from: second, in: 0..<second.size, and: stage.oversize) == nil)
                for (player, range) in paused {
                    #expect(
                        try player.difference(
                            from: first, in: range.lowerBound + 1000..<range.upperBound, and: stage.oversize) == nil)
                }
            }
        }

        /// What has no length, or no validator, cannot be asked for again from where the room ended.
        @Test(arguments: [true, false])
        func whatComesInNoOtherWayPlaysThoughThePausedPlayersHoldTheWholeCache(hasLength: Bool) async throws {
            try await scenario {
                $0.maxSize = 16_000_000
            } _: { stage in
                let (first, second) = (Media(seed: 70, size: 100_000_000), Media(seed: 71, size: 9_000_000))
                stage.origin.serve("/first.mp4", first)
                stage.origin.serve(
                    "/second.mp4", second, etag: nil, lastModified: hasLength ? nil : "Sun, 06 Nov 1994 08:49:37 GMT")
                stage.origin.script("/second.mp4") { $0.chunkedEncoding = !hasLength }
                let paused = try (0..<20).map { index in
                    let range = Int64(index) * 5_000_000..<Int64(index + 1) * 5_000_000
                    let (player, _) = try stage.playerOf("/first.mp4", range: range.rangeField, receiveBuffer: 16_384)
                    #expect(try player.difference(from: first, in: range.lowerBound..<range.lowerBound + 1000) == nil)
                    return player
                }
                let differences = try concurrently(3) { _ in
                    let (other, _) = try stage.playerOf("/second.mp4")
                    return try other.difference(from: second, in: 0..<second.size, and: stage.oversize)
                }
                #expect(differences == [nil, nil, nil])
                withExtendedLifetime(paused) {}
            }
        }

        @Test func whatFindsNoRoomBesidePinnedFilmsPlaysAndSaysThatItIsNotStored() async throws {
            try await scenario {
                $0.maxSize = 16_000_000
            } _: { stage in
                let (first, second) = (Media(seed: 72, size: 20_000_000), Media(seed: 73, size: 6_000_000))
                stage.origin.serve("/first.mp4", first)
                stage.origin.serve("/second.mp4", second)
                expectWhole(try stage.get("/first.mp4"), first)
                #expect(
                    try stage.control(
                        "PATCH", "/resources?\(stage.parameter("/first.mp4"))", body: #"{"pinned": true}"#
                    ).status == 200)
                // What room is left fills up; from then on nothing can be evicted.
                expectWhole(try stage.get("/first.mp4"), first)
                for _ in 1...2 {
                    let answer = try stage.get("/second.mp4")
                    expectWhole(answer, second)
                    let status = answer.cacheStatus
                    #expect(
                        status.contains("fwd=") && status.contains("detail=\"no-room\"") && !status.contains("stored"),
                        "\(status)")
                    #expect(try stage.oversize() == nil)
                }
                let errors = try stage.stats.errors
                #expect(errors["no-room"] ?? 0 > 0 && errors["disk-write"] == nil, "\(errors)")
                #expect(
                    try stage.control(
                        "PATCH", "/resources?\(stage.parameter("/first.mp4"))", body: #"{"pinned": false}"#
                    ).status == 200)
                for isHit in [false, true] {
                    let answer = try stage.get("/second.mp4")
                    expectWhole(answer, second)
                    #expect(
                        answer.cacheStatus.contains("; hit") == isHit && !answer.cacheStatus.contains("no-room"),
                        "\(answer.cacheStatus)")
                }
            }
        }

        @Test func smallerLimitTakesEffectWhileAFilmPlays() async throws {
            try await scenario {
                $0.maxSize = 100_000_000
            } _: { stage in
                let film = Media(seed: 74, size: 60_000_000)
                stage.origin.serve("/film.mp4", film)
                expectWhole(try stage.get("/film.mp4"), film)
                let (player, _) = try stage.playerOf("/film.mp4", receiveBuffer: 16_384)
                #expect(try player.difference(from: film, in: 0..<1000) == nil)
                let answer = try stage.control("PATCH", "/cache", body: #"{"max_size": "20MB"}"#)
                #expect(answer.status == 200)
                #expect(stage.files.values.reduce(0, +) <= 20_000_000)
                #expect(try player.difference(from: film, in: 1000..<film.size) == nil)
                #expect(stage.files.values.reduce(0, +) <= 20_000_000)
            }
        }

        /// Players that leave with the last byte, before the fetch has heard that it is written; nothing could complete
        /// such a file later.
        @Test func filesWithoutValidatorsThatWereReadToTheirEndsStay() async throws {
            try await scenario { stage in
                let films = (0..<60).map { Media(seed: UInt64(100 + $0), size: 300_000) }
                for (index, film) in films.enumerated() {
                    stage.origin.serve("/\(index)", film, etag: nil, lastModified: nil)
                }
                for _ in 0..<2 {
                    let wrong = try concurrently(6) { worker in
                        try stride(from: worker, to: films.count, by: 6).compactMap { index in
                            films[index].difference(try stage.get("/\(index)").body, from: 0..<300_000)
                        }
                    }
                    #expect(wrong.flatMap { $0 } == [])
                }
                #expect(films.indices.map { stage.origin.requestCount("/\($0)") } == films.map { _ in 1 })
            }
        }

        @Test func smallFilesOfThreeTimesTheLimitComeWithinIt() async throws {
            try await scenario {
                $0.maxSize = 16_000_000
            } _: { stage in
                let count = 800
                for index in 0..<count { stage.origin.serve("/\(index)", Media(seed: UInt64(index), size: 60_000)) }
                let wrong = try concurrently(8) { worker in
                    try stride(from: worker, to: count, by: 8).compactMap { index -> String? in
                        let response = try stage.get("/\(index)")
                        if index % 10 == 0, let oversize = try stage.oversize() { return oversize }
                        return Media(seed: UInt64(index), size: 60_000).difference(response.body, from: 0..<60_000)
                    }
                }
                #expect(wrong.flatMap { $0 } == [])
            }
        }

        // What takes no more blocks must not go on counting.
        @Test
        func thousandsOfSmallFilesLeaveRoomForTheNext() async throws {
            try await scenario {
                $0.maxSize = 16_000_000
            } _: { stage in
                let (count, player) = (2500, try stage.player())
                for index in 0..<count {
                    let film = Media(seed: UInt64(index), size: 1000)
                    stage.origin.serve("/\(index)", film)
                    expectWhole(try player.get(stage.target("/\(index)")), film)
                }
                for index in [count - 2, count - 1] { #expect(try player.get(stage.target("/\(index)")).isHit) }
                // None had to pass by a full cache.
                #expect(try stage.stats.errors == [:])
                #expect(try stage.oversize() == nil)
            }
        }
    }
}
