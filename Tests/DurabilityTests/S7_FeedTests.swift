import Foundation
import TestSupport
import Testing

extension Durability {
    /// `kill -9` at each step of subscribing and of checking: at one change of a file after the other.
    @Suite struct FeedTests {
        private static let sizes: Int64 = 100_000

        private let origin: ScriptedOrigin

        init() throws {
            origin = try ScriptedOrigin()
            serve([3, 2, 1])
        }

        private func serve(_ numbers: [Int]) {
            let items = numbers.map {
                """
                <item><title>\($0)</title><guid>g\($0)</guid><pubDate>\($0) Jan 2024 10:00:00 GMT</pubDate>\
                <enclosure url="\(origin.url("/e\($0).mp3"))" type="audio/mpeg"/></item>
                """
            }.joined()
            let text = "<rss version=\"2.0\"><channel><title>Talk</title>\(items)</channel></rss>"
            origin.serve("/feed.xml", bytes: Array(text.utf8), etag: "\"\(numbers.count)\"", contentType: "text/xml")
            for number in numbers {
                origin.serve(
                    "/e\(number).mp3", Media(seed: UInt64(number), size: Self.sizes), contentType: "audio/mpeg")
            }
        }

        private enum Step: String, CaseIterable { case add, check }

        private func arguments(_ step: Step, _ cache: String) -> [String] {
            ["feeds", step.rawValue, origin.url("/feed.xml")] + (step == .add ? ["--latest", "2"] : [])
                + ["--allow", "127.0.0.1", "--cache-dir", cache]
        }

        /// Runs both steps on a new cache, one of which is killed first.
        /// - Parameter change: at which change of a file; nil for none.
        /// - Returns: the number of changes that the step makes, if it wasn't killed.
        private func story(killing killed: Step, at change: UInt64?) throws -> UInt64? {
            let directory = try TemporaryDirectory()
            let cache = directory.file("cache")
            try FileManager.default.createDirectory(atPath: cache, withIntermediateDirectories: true)
            serve([3, 2, 1])
            var changes: UInt64?
            for step in Step.allCases {
                if step == .check { serve([4, 3, 2, 1]) }
                if step == killed {
                    let layer = try FaultLayer(watching: cache, isRecording: change == nil)
                    if let change { layer.kill(at: .init(kind: nil, count: change)) }
                    let outcome = try ReelcacheCommand.run(arguments(step, cache), environment: layer.environment)
                    if change == nil {
                        #expect(outcome.exit == .exited(0), "\(outcome)")
                        changes = UInt64(try layer.log.records.count)
                    }
                    guard change == nil || layer.hasKilled else { return nil }
                }
                let outcome = try ReelcacheCommand.run(arguments(step, cache))
                #expect(outcome.exit == .exited(0), "\(step), killed at \(change ?? 0): \(outcome)")
            }
            try expectEachOnce(cache, "\(killed), killed at \(change ?? 0)")
            return changes
        }

        private func expectEachOnce(_ cache: String, _ when: String) throws {
            let outcome = try ReelcacheCommand.run(["downloads", "--all", "--json", "--cache-dir", cache])
            let listing = try JSONSerialization.jsonObject(with: Data(outcome.stdout.utf8)) as? [String: Any]
            let downloads = try #require(listing?["downloads"] as? [[String: Any]], "\(outcome)")
            let lines = downloads.map { "\(($0["url"] as? String ?? "").suffix(7)) \($0["state"] as? String ?? "")" }
            #expect(lines.sorted() == ["/e2.mp3 completed", "/e3.mp3 completed", "/e4.mp3 completed"], "\(when)")
            let shown = try ReelcacheCommand.run(
                ["feeds", "show", origin.url("/feed.xml"), "--json", "--cache-dir", cache])
            let detail = try JSONSerialization.jsonObject(with: Data(shown.stdout.utf8)) as? [String: Any]
            let episodes = try #require(detail?["episodes"] as? [[String: Any]], "\(shown)")
            #expect(
                episodes.compactMap { $0["state"] as? String } == ["cached", "cached", "cached", "passed_over"],
                "\(when)"
            )
        }

        @Test func killAtEachStepOrdersNothingTwiceAndLosesNothing() async throws {
            try await blocking {
                let rounds = Durability.rounds("REELCACHE_FEED_KILLS", short: 24)
                for step in Step.allCases {
                    let changes = try #require(try story(killing: step, at: nil))
                    #expect(changes > 20)
                    for round in 0..<rounds {
                        let change = 1 + UInt64(round) * changes / UInt64(rounds)
                        _ = try story(killing: step, at: change)
                    }
                    print("feeds \(step.rawValue): \(changes) changes, killed at \(rounds) of them")
                }
            }
        }
    }
}
