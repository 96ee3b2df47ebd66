import Foundation
import TestSupport
import Testing

extension Durability {
    /// `kill -9` at each step of subscribing, checking, removing old episodes and unsubscribing: at one change of a file
    /// after the other.
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

        private enum Step: String, CaseIterable {
            case add, check
            /// Removes the oldest of the episodes.
            case keep
            /// Unsubscribes, and cancels a download that waits.
            case remove
        }

        private func arguments(_ step: Step, _ cache: String) -> [String] {
            let (feed, options) = (origin.url("/feed.xml"), ["--cache-dir", cache])
            let allowing = ["--allow", "127.0.0.1"] + options
            return switch step {
            case .add: ["feeds", "add", feed, "--latest", "2"] + allowing
            case .check: ["feeds", "check", feed] + allowing
            case .keep: ["feeds", "add", feed, "--keep", "2"] + allowing
            case .remove: ["feeds", "remove", feed] + options
            }
        }

        private func prepare(_ step: Step, _ cache: String) throws {
            switch step {
            case .add: serve([3, 2, 1])
            case .check: serve([4, 3, 2, 1])
            case .keep: break
            case .remove:
                // Nothing downloads it without a proxy.
                serve([5, 4, 3, 2, 1])
                let outcome = try ReelcacheCommand.run(arguments(.add, cache))
                #expect(outcome.exit == .exited(0), "\(outcome)")
            }
        }

        private enum Kill {
            /// None was asked for: the number of changes that the step makes.
            case none(changes: UInt64)
            case done
            /// The step ended before that change.
            case missed
        }

        /// Adds a feed and checks it on a new cache, then perhaps takes another step. One of these is killed, and done
        /// again.
        /// - Parameter change: at which change of a file; nil for no kill.
        private func story(killing killed: Step, at change: UInt64?) throws -> Kill {
            let directory = try TemporaryDirectory()
            let cache = directory.file("cache")
            try FileManager.default.createDirectory(atPath: cache, withIntermediateDirectories: true)
            var kill = Kill.missed
            for step in [.add, .check] + ([.add, .check].contains(killed) ? [] : [killed]) {
                try prepare(step, cache)
                if step == killed {
                    let layer = try FaultLayer(watching: cache, isRecording: change == nil)
                    if let change { layer.kill(at: .init(kind: nil, count: change)) }
                    let outcome = try ReelcacheCommand.run(arguments(step, cache), environment: layer.environment)
                    if change == nil {
                        #expect(outcome.exit == .exited(0), "\(outcome)")
                        kill = .none(changes: UInt64(try layer.log.records.count))
                    } else if layer.hasKilled {
                        kill = .done
                    } else {
                        return .missed
                    }
                }
                let outcome = try ReelcacheCommand.run(arguments(step, cache))
                let isDone = step == .remove && outcome.stderr.contains("is not subscribed")
                #expect(outcome.exit == .exited(0) || isDone, "\(step), killed at \(change ?? 0): \(outcome)")
            }
            try expectEachOnce(cache, after: killed, "\(killed), killed at \(change ?? 0)")
            return kill
        }

        private func expectEachOnce(_ cache: String, after step: Step, _ when: String) throws {
            let outcome = try ReelcacheCommand.run(["downloads", "--all", "--json", "--cache-dir", cache])
            let listing = try JSONSerialization.jsonObject(with: Data(outcome.stdout.utf8)) as? [String: Any]
            let downloads = try #require(listing?["downloads"] as? [[String: Any]], "\(outcome)")
            let lines = downloads.map { "\(($0["url"] as? String ?? "").suffix(7)) \($0["state"] as? String ?? "")" }
            let completed = ["/e2.mp3 completed", "/e3.mp3 completed", "/e4.mp3 completed"]
            #expect(lines.sorted() == completed + (step == .remove ? ["/e5.mp3 cancelled"] : []), "\(when)")
            guard step != .remove else { return try expectUnsubscribed(cache, when) }
            let shown = try ReelcacheCommand.run(
                ["feeds", "show", origin.url("/feed.xml"), "--json", "--cache-dir", cache])
            let detail = try JSONSerialization.jsonObject(with: Data(shown.stdout.utf8)) as? [String: Any]
            let episodes = try #require(detail?["episodes"] as? [[String: Any]], "\(shown)")
            #expect(
                episodes.compactMap { $0["state"] as? String }
                    == ["cached", "cached", step == .keep ? "removed" : "cached", "passed_over"], "\(when)")
        }

        private func expectUnsubscribed(_ cache: String, _ when: String) throws {
            let listed = try ReelcacheCommand.run(["feeds", "--cache-dir", cache]).stdout
            #expect(listed.hasPrefix("no feeds"), "\(when)")
            #expect(
                try ReelcacheCommand.run(["ls", "--cache-dir", cache]).stdout.contains("3 of 3 resources"), "\(when)")
        }

        @Test func killAtEachStepOrdersNothingTwiceAndLosesNothing() async throws {
            try await blocking {
                let rounds = Durability.rounds("REELCACHE_FEED_KILLS", short: 10)
                for step in Step.allCases {
                    // A slow run makes more changes, as some are made again and again while it lasts.
                    guard case .none(let first) = try story(killing: step, at: nil),
                        case .none(let second) = try story(killing: step, at: nil)
                    else {
                        Issue.record("\(step) was not taken")
                        continue
                    }
                    let changes = min(first, second)
                    #expect(changes > 10)
                    var kills = 0
                    for round in 0..<rounds {
                        let change = 1 + UInt64(round) * changes / UInt64(rounds)
                        if case .done = try story(killing: step, at: change) { kills += 1 }
                    }
                    // Two runs of a step do not make exactly as many changes.
                    #expect(kills >= rounds * 3 / 4, "\(step): killed \(kills) times of \(rounds)")
                    print("feeds \(step.rawValue): \(changes) changes, killed at \(kills) of them")
                }
            }
        }
    }
}
