import Foundation
import TestSupport
import Testing

extension Durability {
    /// `kill -9` during the import of an archive, at one change of a file after the other.
    @Suite struct ArchiveTests {
        private let films = [
            Film(path: "/a.mp4", media: Media(seed: 80, size: 700_000)),
            Film(path: "/b.mp4", media: Media(seed: 81, size: 2_000_000)),
            Film(path: "/c.mp4", media: Media(seed: 82, size: 90_000)),
        ]
        private let directory: TemporaryDirectory
        private let origin: ScriptedOrigin
        private var archive: String { directory.file("cache.rca") }

        init() throws {
            (directory, origin) = (try TemporaryDirectory(), try Durability.origin(films))
            let proxy = try ProxyProcess(cacheDirectory: directory.file("first"))
            #expect(try Durability.readAll(films, at: origin, through: proxy) == [])
            let outcome = try ReelcacheCommand.run(
                ["export", "--all", "-o", archive, "--cache-dir", directory.file("first")])
            #expect(outcome.exit == .exited(0), "\(outcome)")
            #expect(try proxy.process.terminate() == .exited(0))
        }

        private var requests: Int { films.reduce(0) { $0 + origin.requestCount($1.path) } }

        /// A cache in which part of the longest film is.
        private func second(_ directory: TemporaryDirectory) throws -> String {
            let cache = directory.file("cache")
            let proxy = try ProxyProcess(cacheDirectory: cache)
            #expect(try proxy.get(origin.url("/b.mp4"), range: 0..<65_536).status == 206)
            #expect(try proxy.process.terminate() == .exited(0))
            return cache
        }

        /// - Returns: whether it was killed.
        private func story(killedAt change: UInt64) throws -> Bool {
            let directory = try TemporaryDirectory(), cache = try second(directory)
            let layer = try FaultLayer(watching: cache, isRecording: false)
            layer.kill(at: .init(kind: nil, count: change))
            _ = try ReelcacheCommand.run(["import", archive, "--cache-dir", cache], environment: layer.environment)
            guard layer.hasKilled else { return false }
            let when = "killed at \(change)"
            try expectSound(cache, when)
            // Nothing is there in part, but what was before.
            for resource in try listed(cache) where (resource["url"] as? String)?.hasSuffix("/b.mp4") == false {
                #expect(resource["is_complete"] as? Bool == true, "\(when): \(resource)")
            }
            let again = try ReelcacheCommand.run(["import", archive, "--cache-dir", cache])
            #expect(again.exit == .exited(0), "\(when): \(again)")
            try expectSound(cache, when)
            #expect(try listed(cache).count == films.count, "\(when)")
            let proxy = try ProxyProcess(cacheDirectory: cache), former = requests
            #expect(try Durability.readAll(films, at: origin, through: proxy) == [], "\(when)")
            #expect(requests == former, "\(when): the origin was asked")
            #expect(try proxy.process.terminate() == .exited(0))
            return true
        }

        private func expectSound(_ cache: String, _ when: String) throws {
            let outcome = try ReelcacheCommand.run(["verify", "--cache-dir", cache])
            #expect(
                outcome.exit == .exited(0) && outcome.stdout.hasSuffix("everything is sound\n"), "\(when): \(outcome)")
        }

        private func listed(_ cache: String) throws -> [[String: Any]] {
            let outcome = try ReelcacheCommand.run(["ls", "--json", "--cache-dir", cache])
            let listing = try JSONSerialization.jsonObject(with: Data(outcome.stdout.utf8)) as? [String: Any]
            return try #require(listing?["resources"] as? [[String: Any]], "\(outcome)")
        }

        @Test func killAtAnyTimeLeavesNothingInPart() async throws {
            try await blocking {
                let whole = try TemporaryDirectory(), cache = try second(whole)
                let layer = try FaultLayer(watching: cache, isRecording: true)
                let outcome = try ReelcacheCommand.run(
                    ["import", archive, "--cache-dir", cache], environment: layer.environment)
                #expect(outcome.exit == .exited(0), "\(outcome)")
                let changes = UInt64(try layer.log.records.count)
                #expect(changes > 20)
                let rounds = Durability.rounds("REELCACHE_ARCHIVE_KILLS", short: 12)
                var kills = 0
                for round in 0..<rounds where try story(killedAt: 1 + UInt64(round) * changes / UInt64(rounds)) {
                    kills += 1
                }
                #expect(kills >= rounds * 3 / 4, "killed \(kills) times of \(rounds)")
                print("archives: \(changes) changes, killed at \(kills) of them")
            }
        }
    }
}
