import Foundation
import TestSupport
import Testing

extension Durability {
    /// `kill -9` at random moments, again and again on one cache.
    @Suite struct KillTests {
        private let directory: TemporaryDirectory
        private let origin: ScriptedOrigin

        init() throws {
            directory = try TemporaryDirectory()
            origin = try Durability.origin()
        }

        private var cache: String { directory.file("cache") }

        /// What is being done when the kill comes.
        private enum Phase: CaseIterable {
            case evicting, starting, firstBytes, filling, saving

            /// What has to have happened before.
            func hasBegun(_ statistics: Statistics) -> Bool {
                switch self {
                case .starting, .firstBytes, .filling: true
                case .saving: statistics.cache.checkpoints > 0
                case .evicting: statistics.cache.evictedExtents > 0
                }
            }

            /// After how many more bytes it then comes.
            func bytes(_ random: inout SplitMix64) -> Int64 {
                switch self {
                case .starting: 0
                case .firstBytes: .random(in: 1...300_000, using: &random)
                case .filling, .saving, .evicting: .random(in: 300_000...12_000_000, using: &random)
                }
            }
        }

        @Test func whatIsLeftAfterAKillIsRightAndWithinTheLimit() async throws {
            try await blocking {
                var random = SplitMix64.forTest("whatIsLeftAfterAKillIsRightAndWithinTheLimit")
                let rounds = Durability.rounds("REELCACHE_CRASH_ROUNDS", short: 8)
                var (chunks, wrong, overshoot) = (0, 0, 0 as Int64)
                for round in 0..<rounds {
                    let phase = Phase.allCases[round % Phase.allCases.count]
                    let report = phase == .starting ? try start() : try play(phase, &random)
                    #expect(report.faults == [], "round \(round), \(phase)")
                    let findings = try findingsAfterTheKill()
                    #expect(findings.fault == nil, "round \(round), \(phase)")
                    (chunks, wrong) = (chunks + findings.chunks, wrong + findings.wrong.count)
                    overshoot = max(overshoot, report.overshoot, DiskUse.overshoot(of: cache, limit: Durability.limit))
                }
                print(
                    "killed: \(rounds) rounds, \(chunks) chunks compared, \(wrong) wrong, largest overshoot \(overshoot) bytes"
                )
                #expect(overshoot == 0)
                #expect(chunks > 0)

                let proxy = try ProxyProcess(cacheDirectory: cache, arguments: Durability.arguments)
                #expect(try Durability.readAll(at: origin, through: proxy) == [])
                #expect(try proxy.process.terminate() == .exited(0))
                let findings = try CacheImage(directory: cache).compare(Durability.films)
                #expect(findings.fault == nil && findings.chunks > 0)
            }
        }

        /// Starts on what the last kill has left, and kills in the middle of that.
        private func start() throws -> Audience.Report {
            let process = try ReelcacheCommand.start(
                ["serve", "--listen", "127.0.0.1:0", "--cache-dir", cache] + Durability.arguments)
            // The first that it says is that it mends what was left.
            try process.waitForLine("anything", on: .stderr) { !$0.isEmpty }
            #expect(try process.killNow() == .signalled(SIGKILL))
            return Audience.Report()
        }

        /// Plays, and kills.
        private func play(_ phase: Phase, _ random: inout SplitMix64) throws -> Audience.Report {
            let proxy = try ProxyProcess(cacheDirectory: cache, arguments: Durability.arguments)
            let audience = Audience(Durability.films, at: origin, through: proxy) { [cache] in
                DiskUse.overshoot(of: cache, limit: Durability.limit)
            }
            while case let report = audience.report, report.faults.isEmpty, try !phase.hasBegun(proxy.statistics) {
                try audience.read(2_000_000, random: &random)
            }
            try audience.read(phase.bytes(&random), random: &random) { proxy.process.signal(SIGKILL) }
            #expect(try proxy.process.killNow() == .signalled(SIGKILL))
            return audience.report
        }

        private func findingsAfterTheKill() throws -> CacheImage.Findings {
            let copy = try TemporaryDirectory()
            return try CacheImage.copy(of: cache, to: copy.file("cache")).compare(Durability.films)
        }

        /// Waits until one more is over. There is always something new to save.
        private func waitForACheckpoint(_ proxy: ProxyProcess) throws {
            let before = try proxy.statistics.cache.checkpoints
            try eventually("a checkpoint") {
                let path = "/new/\(UUID())"
                origin.serve(path, Media(seed: 1, size: 10_000))
                #expect(try proxy.get(origin.url(path)).status == 200)
                return try proxy.statistics.cache.checkpoints > before
            }
        }

        /// What a checkpoint has saved outlives the crash, also where the origin is gone.
        @Test func whatWasSavedBeforeTheKillIsServedWithoutTheOrigin() async throws {
            try await blocking {
                let film = Durability.films[1], saved: Range<Int64> = 0..<(4 << 20)
                let first = try ProxyProcess(cacheDirectory: cache)
                #expect(try first.get(origin.url(film.path), range: saved).status == 206)
                // The first to end may have begun before all of that was there; the second has not.
                for _ in 1...2 { try waitForACheckpoint(first) }
                #expect(try first.process.killNow() == .signalled(SIGKILL))
                origin.stop()

                let second = try ProxyProcess(cacheDirectory: cache)
                let again = try second.get(origin.url(film.path), range: saved)
                #expect(again.status == 206)
                #expect(film.media.difference(again.body, from: saved) == nil)
                #expect(try second.process.terminate() == .exited(0))
            }
        }
    }
}
