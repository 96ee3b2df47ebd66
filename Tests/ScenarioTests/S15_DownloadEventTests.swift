import Administration
import ControlAPI
import Downloads
import Foundation
import Synchronization
import Testing
import TestSupport

@testable import Reelcache

extension Scenarios {
    /// What happens to downloads is told to whoever listens. Who makes it happen here is the test.
    @Suite struct S15DownloadEvents {
        // MARK: The stream

        @Test func whatHasNotEndedIsToldAndThenWhatChanges() async throws {
            try await scenario { stage in
                stage.snapshots.post(.sample(1, .downloading), .sample(2, .completed), .sample(3, .paused), waiting: 7)
                let listener = try stage.listener()
                #expect(listener.head.status == 200 && listener.head.headers["Content-Type"] == "text/event-stream")
                #expect(
                    listener.head.headers["Cache-Control"] == "no-store"
                        && listener.head.headers["Transfer-Encoding"] == "chunked")
                let first = try listener.batch()
                #expect(first.texts == ["1 downloading", "3 paused", "summary"])

                stage.snapshots.post(.sample(1, .completed), waiting: 7)
                let second = try listener.batch()
                #expect(second.texts == ["1 completed"] && second.id != first.id)
                stage.snapshots.post(.sample(4), waiting: 8)
                #expect(try listener.batch().texts == ["4 waiting", "summary"])
                stage.snapshots.post([], waiting: 9)
                #expect(try listener.batch().texts == ["summary"])
            }
        }

        @Test func anEventIsOneLineOfJSON() async throws {
            try await scenario { stage in
                var report = Download.sample(1, .downloading, bytes: 10)
                (report.total, report.message, report.fileName) = (100, "one\nline\u{2028}", "a \"film\".mp4")
                stage.snapshots.post(report, waiting: 3)
                let listener = try stage.listener()
                let event = try listener.event()
                #expect(event.name == "download" && event.id == nil)
                #expect(try event.decoded(Download.self) == report)
                let members = try #require(JSONSerialization.jsonObject(with: Data(event.data.utf8)) as? [String: Any])
                #expect(
                    Set(members.keys) == [
                        "id", "url", "state", "priority", "connections", "is_pinned", "bytes", "total", "failures",
                        "added", "message", "file_name",
                    ])
                let summary = try listener.event()
                #expect(summary.name == "summary" && summary.id != nil)
                #expect(try summary.decoded(DownloadTotals.self).waiting == 3)
            }
        }

        @Test func ofWhatIsNamedOnlyThatIsTold() async throws {
            try await scenario { stage in
                stage.snapshots.post(.sample(1, .failed), .sample(2), .sample(3))
                let listener = try stage.listener("?id=3,1")
                #expect(try listener.batch().texts == ["1 failed", "3 waiting", "summary"])
                stage.snapshots.post(.sample(2, .paused), .sample(3, .paused))
                #expect(try listener.batch().texts == ["3 paused"])
                let all = try stage.listener("?ended")
                #expect(try all.batch().texts == ["1 failed", "2 paused", "3 paused", "summary"])
            }
        }

        /// Who waits for its end would wait for ever.
        @Test func whatIsForgottenBeforeItsEndWasToldIsRemoved() async throws {
            try await scenario { stage in
                stage.snapshots.post(.sample(1), .sample(2), .sample(3))
                let (all, named) = (try stage.listener(), try stage.listener("?id=1,3,9"))
                #expect(try all.batch().texts == ["1 waiting", "2 waiting", "3 waiting", "summary"])
                #expect(try named.batch().texts == ["1 waiting", "3 waiting", "-9", "summary"])
                stage.snapshots.post(.sample(1, .completed))
                #expect(try (all.batch().texts, named.batch().texts) == (["1 completed"], ["1 completed"]))
                stage.snapshots.post([], removed: [1, 2, 3], waiting: 1)
                #expect(try (all.batch().texts, named.batch().texts) == (["-2", "-3", "summary"], ["-3", "summary"]))
            }
        }

        @Test func whoHasHeardTheBeginningHearsTheRest() async throws {
            try await scenario { stage in
                stage.snapshots.post(.sample(1), .sample(2), .sample(3))
                let id = try stage.listener().batch().id
                stage.snapshots.post(.sample(2, .completed))
                func again(_ id: String, _ query: String = "") throws -> [String] {
                    try stage.listener(query, headers: [("Last-Event-ID", id)]).batch().texts
                }
                #expect(try again(id) == ["2 completed", "summary"])
                #expect(try again(id, "?id=1") == ["summary"])
                stage.snapshots.post([], removed: [1, 2])
                // Its end was told to nobody who went on from there.
                #expect(try again(id, "?id=1,2,3") == ["-1", "-2", "summary"])
                #expect(try again(id) == ["-1", "-2", "summary"])

                let (session, revision) = try #require(id.lastIndex(of: "-").map { (id[..<$0], id[$0...]) })
                for other in [
                    "", "x", "other\(revision)", "\(session)-", "\(session)-x", "\(session)-99999",
                    "\(session)-99999999999999999999",
                ] {
                    #expect(try again(other) == ["3 waiting", "summary"], "\(other)")
                }
                let before = id
                try stage.restart()
                stage.snapshots.post(.sample(1), .sample(5))
                stage.snapshots.post(.sample(1, .paused))
                stage.snapshots.post(.sample(1))
                #expect(try again(before) == ["5 waiting", "1 waiting", "summary"])
            }
        }

        @Test func headAndAnOldPlayerAreAnswered() async throws {
            try await scenario { stage in
                stage.snapshots.post(.sample(1))
                let head = try stage.control("HEAD", "/downloads/events", .nothing)
                #expect(head.status == 200 && head.headers["Content-Type"] == "text/event-stream" && head.body.isEmpty)
                let listener = try stage.listener(version: "1.0")
                #expect(
                    listener.head.headers["Transfer-Encoding"] == nil && listener.head.headers["Connection"] == "close")
                #expect(try listener.batch().texts == ["1 waiting", "summary"])
                stage.snapshots.post(.sample(1, .completed))
                #expect(try listener.batch().texts == ["1 completed"])
            }
        }

        /// A hundred thousand changes happen while a client takes none: it is told how things are, not how they came to
        /// be so.
        @Test func aSlowClientMissesWhatWasBetween() async throws {
            try await scenario { stage in
                let (count, rounds) = (1000, 100)
                func all(_ bytes: Int) -> [Download] {
                    (1...count).map { .sample(Int64($0), .downloading, bytes: Int64(bytes)) }
                }
                stage.snapshots.post(all(0))
                let listener = try stage.listener(receiveBuffer: 32 << 10)
                _ = try listener.event()
                for round in 1...rounds { stage.snapshots.post(all(round)) }
                var (events, left) = (0, Set((1...count).map(Int64.init)))
                while !left.isEmpty {
                    let event = try listener.event()
                    guard event.name == "download" else { continue }
                    events += 1
                    let report = try event.decoded(Download.self)
                    if report.bytes == Int64(rounds) { left.remove(report.id) }
                }
                #expect(events < count * rounds / 10)
            }
        }

        /// The other player is on the same loop: there is only one.
        @Test func whileMuchIsToldOthersAreAnswered() async throws {
            try await scenario {
                $0.configure { $0.threads = 1 }
            } _: { stage in
                stage.snapshots.post((1...10_000).map { .sample($0) })
                let listener = try stage.listener()
                _ = try listener.event()
                #expect(try RawClient.get(port: stage.proxy.port, path: "/healthz").status == 200)
                var last: Int64 = 1
                while last < 10_000 {
                    let report = try listener.event().decoded(Download.self)
                    #expect(report.id == last + 1)
                    last = report.id
                }
                #expect(try listener.batch().texts == ["summary"])
            }
        }

        @Test func aProxyThatStopsWaitsForNobodyWhoListens() async throws {
            try await scenario { stage in
                let listener = try stage.listener()
                #expect(try listener.batch().texts == ["summary"])
                let proxy = stage.proxy
                try Background { try proxy.stop(grace: .seconds(3600)) }.value()
                #expect(throws: RawClient.ResponseError.self) { try listener.event() }
            }
        }

        @Test func whoLeavesIsForgotten() async throws {
            try await scenario { stage in
                let listener = try stage.listener()
                #expect(try listener.batch().texts == ["summary"])
                listener.client.close()
                try stage.waitForStats("the end of the connection") { $0[\.connections] == 0 }
                stage.snapshots.post(.sample(1))
                #expect(try stage.listener().batch().texts == ["1 waiting", "summary"])
            }
        }

        @Test func oneClientFollowsSomeStreamsAtATime() async throws {
            try await scenario { stage in
                let targets = ["/api/v1/downloads/events", "/api/v1/now/events"]
                var listeners = try (0..<64).map { try stage.listener(of: targets[$0 % 2]) }
                _ = try listeners[62].batch()
                for target in targets {
                    let refused = try stage.listener(of: target)
                    #expect(refused.head.status == 429 && refused.head.headers["Content-Type"] == "application/json")
                }
                listeners.removeFirst().client.close()
                try stage.waitForStats("the end of the connection") { $0[\.connections] == 63 }
                listeners.append(try stage.listener())
                #expect(try listeners[63].batch().texts == ["summary"])
            }
        }

        // MARK: A command that watches

        private static func watched(_ stage: Stage, _ ids: [Int64], until isLast: @escaping (DownloadNews) -> Bool)
            throws -> [String]
        {
            let proxy = try #require(RunningProxy(cacheDirectory: stage.cache))
            var texts: [String] = []
            let end = ContinuousClock.now + .patience
            try proxy.watchDownloads(ids, isWanted: { ContinuousClock.now < end }) { news in
                switch news {
                case .download(let report): texts.append("\(report.id) \(report.state)")
                case .removed(let id): texts.append("-\(id)")
                case .summary: texts.append("summary")
                }
                return !isLast(news)
            }
            return texts
        }

        private static func isSummary(_ news: DownloadNews) -> Bool { if case .summary = news { true } else { false } }

        @Test func aCommandIsToldOfWhatItNames() async throws {
            try await scenario { stage in
                stage.snapshots.post(.sample(1, .completed), .sample(2), .sample(3))
                #expect(try Self.watched(stage, [], until: Self.isSummary) == ["2 waiting", "3 waiting", "summary"])
                #expect(
                    try Self.watched(stage, [1, 2], until: Self.isSummary) == ["1 completed", "2 waiting", "summary"])
                #expect(try Self.watched(stage, [2, 8], until: Self.isSummary) == ["2 waiting", "-8", "summary"])
                // So many that they cannot be named in a request.
                let many = (1...5000).map(Int64.init).filter { $0 != 3 }
                let texts = try Self.watched(stage, many, until: Self.isSummary)
                #expect(
                    texts.count == many.count + 1 && texts.prefix(3) == ["1 completed", "2 waiting", "-4"]
                        && texts.last == "summary")
            }
        }

        @Test func aCommandIsToldOfChangesUntilItHasEnough() async throws {
            try await scenario { stage in
                stage.snapshots.post(.sample(1))
                let snapshots = stage.snapshots
                let texts = try Self.watched(stage, [1]) { news in
                    switch news {
                    case .summary:
                        snapshots.post(.sample(1, .completed))
                        return false
                    case .download(let report): return report.state.hasEnded
                    case .removed: return false
                    }
                }
                #expect(texts == ["1 waiting", "summary", "1 completed"])
            }
        }

        @Test func aCommandThatIsInterruptedReturns() async throws {
            try await scenario { stage in
                let proxy = try #require(RunningProxy(cacheDirectory: stage.cache))
                let asked = Atomic(0)
                try proxy.watchDownloads([], isWanted: { asked.wrappingAdd(1, ordering: .relaxed).newValue < 8 }) { _ in
                    true
                }
                #expect(asked.load(ordering: .relaxed) == 8)
            }
        }

        @Test func aCommandSaysThatTheProxyHasEnded() async throws {
            try await scenario { stage in
                let proxy = try #require(RunningProxy(cacheDirectory: stage.cache))
                let running = stage.proxy
                let stopping = Mutex<Background<Void>?>(nil)
                let error = #expect(throws: ControlError.self) {
                    try proxy.watchDownloads([], isWanted: { true }) { _ in
                        let background = try Background { try running.stop(grace: .zero) }
                        stopping.withLock { $0 = background }
                        return true
                    }
                }
                #expect(
                    error?.description.contains("has ended") == true
                        && error?.description.contains(proxy.baseURL) == true)
                try stopping.withLock { $0 }?.value()
                let late = #expect(throws: ControlError.self) {
                    try proxy.watchDownloads([], isWanted: { true }) { _ in true }
                }
                #expect(late?.description.contains(proxy.baseURL) == true)
            }
        }

        @Test func whatACommandThrowsItGetsBack() async throws {
            struct Mine: Error {}
            try await scenario { stage in
                let proxy = try #require(RunningProxy(cacheDirectory: stage.cache))
                #expect(throws: Mine.self) { try proxy.watchDownloads([], isWanted: { true }) { _ in throw Mine() } }
            }
        }
    }
}
