import Foundation
import TestSupport
import Testing

extension Durability {
    /// A disk that refuses: playing goes on from upstream, nothing wrong is kept, and when the disk is well again it is
    /// used again.
    @Suite struct FaultTests {
        private let directory: TemporaryDirectory
        private let origin: ScriptedOrigin
        private let layer: FaultLayer
        private let cached = Film(path: "/cached.mp4", media: Media(seed: 1, size: 3_000_000))
        private let film = Film(path: "/film.mp4", media: Media(seed: 2, size: 5_000_000))
        private let next = Film(path: "/next.mp4", media: Media(seed: 3, size: 2_000_000))

        init() throws {
            directory = try TemporaryDirectory()
            try FileManager.default.createDirectory(atPath: directory.file("cache"), withIntermediateDirectories: false)
            origin = try Durability.origin([cached, film, next])
            layer = try FaultLayer(watching: directory.file("cache"))
        }

        private var cache: String { directory.file("cache") }

        private func start(_ arguments: [String] = ["--min-free", "1MB"]) throws -> ProxyProcess {
            try ProxyProcess(cacheDirectory: cache, arguments: arguments, environment: layer.environment)
        }

        /// What is wrong with a film when it is played as a whole; nil where nothing is.
        private func play(_ film: Film, _ proxy: ProxyProcess) throws -> String? {
            try Durability.readAll([film], at: origin, through: proxy).first
        }

        /// Whether a film is served without asking the origin. Right bytes are required.
        private func isHit(_ film: Film, _ proxy: ProxyProcess) throws -> Bool {
            let requests = origin.requestCount(film.path)
            #expect(try play(film, proxy) == nil)
            return origin.requestCount(film.path) == requests
        }

        /// Leaves a cache that has the film, and was not closed in order.
        private func playAndCrash() throws {
            let proxy = try start()
            #expect(try play(film, proxy) == nil)
            try proxy.waitForStatistics("a checkpoint") { $0.cache.checkpoints > 0 }
            #expect(try proxy.process.killNow() == .signalled(SIGKILL))
        }

        /// With the fault gone: what is played now is cached, saved, and there after a restart.
        /// - Parameter others: what may be cached besides: the first checkpoint after a fault may find some of it.
        private func expectCachingAgain(_ proxy: ProxyProcess, beside others: [Film] = []) throws {
            for film in [film, next] { #expect(try play(film, proxy) == nil) }
            for film in [film, next] { #expect(try isHit(film, proxy), "\(film.path) is not cached after the fault") }
            #expect(try proxy.process.terminate() == .exited(0))
            try expectNothingWrongOnDisk(beside: others)
            let second = try ProxyProcess(cacheDirectory: cache)
            for film in [film, next] { #expect(try isHit(film, second), "\(film.path) is not there after a restart") }
        }

        @discardableResult
        private func expectNothingWrongOnDisk(beside others: [Film] = []) throws -> CacheImage.Findings {
            let copy = try TemporaryDirectory()
            let findings = try CacheImage.copy(of: cache, to: copy.file("cache")).compare(
                [cached, film, next] + others)
            #expect(findings.fault == nil)
            return findings
        }

        // MARK: Writing

        /// At once, after a few writes, and in the middle of the film.
        @Test(arguments: [(ENOSPC, 0), (EIO, 3), (ENOSPC, 17), (EDQUOT, 9)])
        func dataThatCannotBeWrittenIsPlayedAndNotKept(code: Int32, after writes: Int) async throws {
            try await blocking {
                let proxy = try start()
                #expect(try play(cached, proxy) == nil)
                layer.fail(.write, in: .data, with: code, after: UInt64(writes))
                for _ in 1...2 { #expect(try play(film, proxy) == nil) }
                #expect(layer.failures > 0)
                #expect(try proxy.statistics.errors[code == ENOSPC ? "no-room" : "disk-write"] ?? 0 > 0)
                #expect(try isHit(cached, proxy))
                try expectNothingWrongOnDisk()
                layer.heal()
                try expectCachingAgain(proxy)
            }
        }

        /// What has no length goes on through memory, in the middle of a chunk too, for all who read it.
        @Test(arguments: [ENOSPC, EIO]) func bodyWithoutALengthGoesOnThroughMemory(code: Int32) async throws {
            try await blocking {
                let proxy = try start()
                origin.script(film.path) { ($0.chunkedEncoding, $0.stallAfter) = (true, 100_000) }
                let players = try (0..<2).map { _ in try RawClient(port: proxy.port, receiveBuffer: 16_384) }
                for player in players {
                    try player.send(player.request(ProxyProcess.target(origin.url(film.path))))
                    _ = try player.readHead()
                }
                let begun = try [players[0].readBody(exactly: 100_000), players[1].readBody(exactly: 66_000)]
                layer.fail(.write, in: .data, with: code)
                origin.release(film.path)
                // Each at its own speed: who is ahead in memory waits for the slowest.
                let read = try concurrently(2) { index in
                    var read = begun[index]
                    while case let piece = try players[index].readBody(upTo: 1 << 20), !piece.isEmpty { read += piece }
                    return read
                }
                for bytes in read { #expect(film.media.difference(bytes, from: 0..<film.media.size) == nil) }
                #expect(layer.failures > 0)
                try expectNothingWrongOnDisk()
                layer.heal()
                origin.script(film.path) { $0.chunkedEncoding = false }
                try expectCachingAgain(proxy)
            }
        }

        /// As ext4 does it when it has found itself damaged.
        @Test func playingGoesOnWhenTheDiskTurnsReadOnly() async throws {
            try await blocking {
                let proxy = try start()
                #expect(try play(cached, proxy) == nil)
                try proxy.waitForStatistics("a checkpoint") { $0.cache.checkpoints > 0 }
                layer.fail(.everyChange, in: .everywhere, with: EROFS)
                #expect(try play(film, proxy) == nil)
                #expect(try isHit(cached, proxy))
                #expect(layer.failures > 0)
                #expect(try proxy.statistics.errors.values.reduce(0, +) > 0)
                try expectNothingWrongOnDisk()
                layer.heal()
                try expectCachingAgain(proxy)
            }
        }

        /// What was received and not saved is lost with the crash, and with nothing else.
        @Test func aReadOnlyDiskAndACrashLeaveNothingWrong() async throws {
            try await blocking {
                let proxy = try start()
                layer.fail(.everyChange, in: .everywhere, with: EROFS, after: 40)
                #expect(try play(film, proxy) == nil)
                #expect(try proxy.process.killNow() == .signalled(SIGKILL))
                try expectNothingWrongOnDisk()
                layer.heal()
                try expectCachingAgain(try start())
            }
        }

        @Test(arguments: [ENOSPC, EROFS, EMFILE]) func aFileThatCannotBeMadeIsPlayedPastTheCache(code: Int32)
            async throws
        {
            try await blocking {
                let proxy = try start()
                #expect(try play(cached, proxy) == nil)
                layer.fail([.create, .name], in: .data, with: code)
                #expect(try play(film, proxy) == nil)
                #expect(layer.failures > 0)
                #expect(try proxy.statistics.errors.values.reduce(0, +) > 0)
                #expect(try isHit(cached, proxy))
                layer.heal()
                try expectCachingAgain(proxy)
            }
        }

        @Test func aDownloadThatLacksAFileForNowIsTriedAgain() async throws {
            try await blocking {
                let proxy = try start()
                layer.fail(.create, in: .data, with: EMFILE)
                let download = try ReelcacheCommand.start(["prefetch", "--cache-dir", cache, origin.url(film.path)])
                try proxy.waitForStatistics("a file that cannot be made") { $0.errors["open-files"] ?? 0 > 0 }
                layer.heal()
                #expect(try download.waitForExit() == .exited(0))
                #expect(try isHit(film, proxy))
            }
        }

        // MARK: Saving

        @Test func chunksThatCannotBeMadeDurableAreNotSaved() async throws {
            try await blocking {
                let proxy = try start()
                layer.fail(.sync, in: .data, with: EIO)
                #expect(try play(film, proxy) == nil)
                try proxy.waitForStatistics("a sync that failed") { $0.errors["disk-sync"] ?? 0 > 0 }
                #expect(try play(film, proxy) == nil)
                #expect(try expectNothingWrongOnDisk().chunks == 0)
                layer.heal()
                try expectCachingAgain(proxy)
            }
        }

        @Test(arguments: [ENOSPC, EIO]) func anIndexThatCannotBeWrittenIsToldLater(code: Int32) async throws {
            try await blocking {
                let proxy = try start()
                layer.fail([.write, .truncate], in: .index, with: code)
                #expect(try play(film, proxy) == nil)
                try proxy.waitForStatistics("a checkpoint that failed") { $0.errors["store"] ?? 0 > 0 }
                #expect(try isHit(film, proxy))
                #expect(try expectNothingWrongOnDisk().chunks == 0)
                layer.heal()
                try expectCachingAgain(proxy)
            }
        }

        /// Nothing is wrong with what has come: it is saved when the file's directory can be opened.
        @Test func aShortageOfFilesPutsSavingOff() async throws {
            try await blocking {
                let proxy = try start()
                layer.fail(.openDirectory, in: .everywhere, with: EMFILE)
                #expect(try play(film, proxy) == nil)
                try proxy.waitForStatistics("a checkpoint that failed") {
                    $0.errors["store"] ?? $0.errors["disk-sync"] ?? 0 > 0
                }
                #expect(layer.failures > 0)
                #expect(try proxy.statistics.cache.droppedChunks == 0)
                #expect(try isHit(film, proxy))
                layer.heal()
                try expectCachingAgain(proxy)
            }
        }

        /// Where one call for many fails, each is tried for itself; none of them is saved.
        @Test func manyFilesThatCannotBeMadeDurableAreNotSaved() async throws {
            try await blocking {
                let small = (0..<100).map {
                    Film(path: "/small/\($0)", media: Media(seed: UInt64(900 + $0), size: 9000))
                }
                for film in small { origin.serve(film.path, film.media) }
                let proxy = try start()
                layer.fail(.sync, in: .everywhere, with: EIO)
                #expect(try Durability.readAll(small, at: origin, through: proxy) == [])
                try proxy.waitForStatistics("a sync that failed") { $0.errors["disk-sync"] ?? 0 > 0 }
                #expect(try CacheImage(directory: cache).compare(small).chunks == 0)
                layer.heal()
                try expectCachingAgain(proxy, beside: small)
            }
        }

        // MARK: Evicting

        /// NFS before 4.2, FAT, HFS+.
        @Test func withoutHolePunchingTheLimitHoldsAndLaterFilmsAreCached() async throws {
            try await blocking {
                let films = (0..<12).map {
                    Film(path: "/\($0).mp4", media: Media(seed: UInt64(20 + $0), size: 5_000_000 + Int64($0)))
                }
                for film in films { origin.serve(film.path, film.media) }
                layer.fail(.punch, in: .data, with: EOPNOTSUPP)
                let proxy = try start(Durability.arguments)
                var overshoot: Int64 = 0
                for film in films {
                    #expect(try play(film, proxy) == nil)
                    overshoot = max(overshoot, DiskUse.overshoot(of: cache, limit: Durability.limit))
                }
                #expect(overshoot == 0)
                #expect(layer.failures > 0)
                #expect(try isHit(films[11], proxy), "the last film of three times the limit is not cached")
            }
        }

        /// What cannot be punched is not forgotten either: it would go without making room, and the next with it.
        @Test func aShortageOfFilesCostsNothingThatIsCached() async throws {
            try await blocking {
                let films = (0..<3).map {
                    Film(path: "/\($0).mp4", media: Media(seed: UInt64(20 + $0), size: 5_000_000))
                }
                for film in films { origin.serve(film.path, film.media) }
                do {
                    let proxy = try start(Durability.arguments)
                    for film in films { #expect(try play(film, proxy) == nil) }
                    #expect(try proxy.process.terminate() == .exited(0))
                }
                let before = try CacheImage(directory: cache).presentChunks(of: films).count
                // All but the file by which the start tries what the disk can do.
                layer.fail(.openForWriting, in: .data, with: EMFILE, after: 1)
                let proxy = try start(["--max-size", "16MB", "--min-free", "1MB"])
                // Each second it is tried again.
                try proxy.waitForStatistics("eviction that failed") { _ in layer.failures > 6 }
                #expect(try CacheImage(directory: cache).presentChunks(of: films).count == before)
                layer.heal()
                try proxy.waitForStatistics("eviction") { $0.cache.evictedExtents > 0 }
                #expect(try proxy.process.terminate() == .exited(0))
                #expect(try CacheImage(directory: cache).compare(films).fault == nil)
            }
        }

        // MARK: Reading

        /// After a crash what is there is read before it is served.
        @Test func whatCannotBeReadIsFetchedAgain() async throws {
            try await blocking {
                try playAndCrash()

                layer.fail(.read, in: .data, with: EIO)
                let second = try start()
                #expect(try play(film, second) == nil)
                #expect(layer.failures > 0)
                let statistics = try second.statistics
                #expect(statistics.cache.droppedChunks > 0)
                #expect(statistics.errors["disk-read"] ?? 0 > 0)
                layer.heal()
                try expectCachingAgain(second)
            }
        }

        /// Leaves a cache in order that has the film, and starts again.
        private func playAndStartAgain() throws -> ProxyProcess {
            let proxy = try start()
            for film in [cached, film] { #expect(try play(film, proxy) == nil) }
            #expect(try proxy.process.terminate() == .exited(0))
            return try start()
        }

        private static let unreadable: [(FaultLayer.Call, Int32)] = [([.read, .inMemory], EIO), (.sendMapped, EFAULT)]

        /// At once, and in the middle of the film: no answer is cut, and the disk is left alone until the next start.
        @Test(arguments: unreadable, [0, 1, 2, 3, 5, 8])
        func whatCannotBeReadComesFromTheOriginUntilTheNextStart(_ fault: (FaultLayer.Call, Int32), after calls: Int)
            async throws
        {
            try await blocking {
                let proxy = try playAndStartAgain()
                layer.fail(fault.0, in: .data, with: fault.1, after: UInt64(calls))
                #expect(try play(film, proxy) == nil)
                let failures = layer.failures
                #expect(failures > 0)
                #expect(try !isHit(film, proxy))
                #expect(layer.failures == failures, "the disk was asked again")
                #expect(try proxy.statistics.errors["disk-read"] == 1)
                layer.heal()
                #expect(try !isHit(film, proxy) && isHit(cached, proxy))
                #expect(try proxy.process.terminate() == .exited(0))
                try expectNothingWrongOnDisk()

                let second = try start()
                #expect(try play(film, second) == nil)
                #expect(try isHit(film, second))
            }
        }

        /// Bytes of two versions never meet in one answer.
        @Test(arguments: unreadable) func whatHasChangedMeanwhileIsCut(_ fault: (FaultLayer.Call, Int32)) async throws {
            try await blocking {
                let proxy = try playAndStartAgain()
                let newer = Film(path: film.path, media: Media(seed: 4, size: film.media.size))
                origin.serve(newer.path, newer.media, etag: "\"newer\"")
                layer.fail(fault.0, in: .data, with: fault.1, after: 5)
                let player = try RawClient(port: proxy.port)
                try player.send(player.request(ProxyProcess.target(origin.url(film.path))))
                _ = try player.readHead()
                var read: [UInt8] = []
                #expect(throws: RawClient.ResponseError.self) {
                    while case let piece = try player.readBody(upTo: 1 << 20), !piece.isEmpty { read += piece }
                }
                #expect(Int64(read.count) < film.media.size && film.media.firstMismatch(read, at: 0) == nil)
                #expect(try play(newer, proxy) == nil)
            }
        }

        /// Without a validator, nothing continues what was sent; what was not begun is begun again.
        @Test(arguments: unreadable) func whatCannotBeContinuedStartsAgain(_ fault: (FaultLayer.Call, Int32))
            async throws
        {
            try await blocking {
                origin.serve(film.path, film.media, etag: nil)
                let proxy = try playAndStartAgain()
                layer.fail(fault.0, in: .data, with: fault.1)
                if fault.0 == .sendMapped { _ = try? play(film, proxy) }
                for _ in 1...2 { #expect(try play(film, proxy) == nil) }
                #expect(layer.failures > 0)
            }
        }

        /// Some file systems never call their pages resident: one reading is enough.
        @Test func whatIsNeverCalledResidentIsServedAllTheSame() async throws {
            try await blocking {
                let proxy = try playAndStartAgain()
                layer.fail(.inMemory, in: .data, with: EAGAIN)
                #expect(try isHit(film, proxy))
                #expect(layer.failures > 0)
                #expect(try proxy.statistics.errors["disk-read"] == nil)
            }
        }

        /// The disk is sound: nothing is cut, fetched again or dropped, at once or in the middle of the film.
        @Test(arguments: [0, 1]) func whatCannotBeMappedForLackOfMemoryIsRead(after calls: Int) async throws {
            try await blocking {
                let proxy = try playAndStartAgain()
                layer.fail(.map, in: .data, with: ENOMEM, after: UInt64(calls))
                #expect(try isHit(film, proxy))
                #expect(layer.failures > 0)
                layer.heal()
                #expect(try isHit(film, proxy))
                #expect(try proxy.statistics.errors["disk-read"] == nil)
            }
        }

        /// A file system check may have moved it to lost+found.
        @Test func aFileThatIsGoneAfterACrashIsFetchedAgain() async throws {
            try await blocking {
                try playAndCrash()
                let files = Set(try CacheImage(directory: cache).presentChunks(of: [film]).map(\.file))
                #expect(files.count == 1)
                for file in files { try FileManager.default.removeItem(atPath: "\(cache)/\(file)") }

                let second = try start()
                #expect(try play(film, second) == nil)
                #expect(try second.statistics.cache.size >= film.media.size)
                try expectCachingAgain(second)
            }
        }

        /// Neither disk nor origin has it: the player is told so.
        @Test func whatCannotBeReadWithoutTheOriginIsAnError() async throws {
            try await blocking {
                try playAndCrash()

                layer.fail(.read, in: .data, with: EIO)
                let second = try start()
                origin.setGone(true, for: [film])
                #expect(try second.get(origin.url(film.path)).status == 502)
                #expect(second.process.exit == nil)
            }
        }
    }
}
