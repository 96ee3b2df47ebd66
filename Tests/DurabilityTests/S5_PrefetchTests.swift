import Foundation
import TestSupport
import Testing

extension Durability {
    /// `kill -9` of whoever prefetches, again and again, until all is there.
    @Suite struct PrefetchTests {
        /// Who fetches: a command alone, or a proxy that a command gave its orders to before it began.
        enum Fetcher: CaseIterable { case command, proxy }

        private static let kills = 5
        private static let films = (0..<6).map {
            Film(path: "/episode-\($0).mp4", media: Media(seed: UInt64(500 + $0), size: 12_000_000))
        }
        /// What a kill may cost: what came since the last checkpoint, and what was on its way. If nothing were kept,
        /// each would cost the 12 MB since the one before it.
        private static let lossPerKill: Int64 = 8 << 20

        private let directory: TemporaryDirectory
        private let origin: ScriptedOrigin

        init() throws {
            directory = try TemporaryDirectory()
            origin = try Durability.origin(Self.films)
        }

        private var cache: String { directory.file("cache") }
        private var flags: [String] { ["--cache-dir", cache, "--allow", "127.0.0.1"] }
        private var urls: [String] { Self.films.map { origin.url($0.path) } }

        private func start(_ fetcher: Fetcher) throws -> ChildProcess {
            try ReelcacheCommand.start(
                fetcher == .command ? ["prefetch"] + flags + urls : ["serve", "--listen", "127.0.0.1:0"] + flags)
        }

        /// Has a command do something to one path.
        private func command(_ arguments: [String], _ path: String) throws -> ChildProcess.Exit {
            try ReelcacheCommand.run(arguments + ["--cache-dir", cache, origin.url(path)]).exit
        }

        /// Paths and states of all downloads, in the order in which they are listed, those that have ended by their
        /// path.
        private func states() throws -> [String] {
            let outcome = try ReelcacheCommand.run(["downloads", "--all", "--json", "--cache-dir", cache])
            let downloads =
                try #require(try JSONSerialization.jsonObject(with: Data(outcome.stdout.utf8)) as? [String: Any])[
                    "downloads"] as? [[String: Any]]
            let lines = (downloads ?? []).map {
                "\(($0["url"] as? String ?? "").replacing(origin.url(""), with: "")) \($0["state"] as? String ?? "")"
            }
            let order = ["downloading", "waiting", "paused", "failed", "completed", "cancelled"]
            let rank = { (line: String) in order.firstIndex { line.hasSuffix($0) } ?? order.count }
            return lines.enumerated().sorted { (rank($0.element), $0.offset) < (rank($1.element), $1.offset) }.map(
                \.element)
        }

        @Test(arguments: Fetcher.allCases) func killedOneGoesOnUntilAllIsThere(fetcher: Fetcher) async throws {
            try await blocking {
                let total = Self.films.reduce(0) { $0 + $1.media.size }
                // Slowly: what comes while the disk makes a checkpoint durable is lost, too, and beside other writers
                // that may take a second or two.
                for film in Self.films { origin.script(film.path) { $0.bytesPerSecond = 1_000_000 } }
                if fetcher == .proxy {
                    #expect(
                        try ReelcacheCommand.run(["prefetch", "--detach", "--cache-dir", cache] + urls).exit
                            == .exited(0))
                    #expect(origin.snapshot.requests.isEmpty)
                }
                for kill in 1...Self.kills {
                    let process = try start(fetcher)
                    let sent = total / Int64(Self.kills + 1) * Int64(kill)
                    try origin.waitUntil("\(sent) bytes sent") {
                        $0.requests.reduce(0) { $0 + $1.bodyBytesSent } >= sent
                    }
                    #expect(try process.killNow() == .signalled(SIGKILL))
                }
                let process = try start(fetcher)
                if fetcher == .proxy {
                    // Not to fetch, but to hear of the end: these are the downloads that run there.
                    _ = try process.waitForLine(containing: " serves at ")
                    #expect(try ReelcacheCommand.run(["prefetch", "--cache-dir", cache] + urls).exit == .exited(0))
                    #expect(try process.terminate() == .exited(0))
                } else {
                    #expect(try process.waitForExit() == .exited(0), "\(process.stderr)")
                }
                let sent = origin.snapshot.requests.reduce(0) { $0 + $1.bodyBytesSent }
                #expect(sent <= total + Int64(Self.kills) * Self.lossPerKill)
                print("prefetch by \(fetcher), killed \(Self.kills) times: \(sent) bytes sent for \(total)")

                origin.stop()
                let proxy = try ProxyProcess(cacheDirectory: cache)
                #expect(try Durability.readAll(Self.films, at: origin, through: proxy) == [])
                #expect(try proxy.process.terminate() == .exited(0))
            }
        }

        /// One that runs, one that is paused, two that wait, one that has failed, one that is done and one that was
        /// cancelled.
        @Test func killLeavesEachStateAsItWas() async throws {
            try await blocking {
                let paths = Self.films.map(\.path)
                let (held, paused, waiting, last, done, cancelled) = (
                    paths[0], paths[1], paths[2], paths[3], paths[4], paths[5]
                )
                origin.script(held) { $0.stallAfter = 4_000_000 }
                origin.script("/gone") { ($0.status, $0.body) = (404, []) }
                let proxy = try ProxyProcess(cacheDirectory: cache, arguments: ["--max-downloads", "1"])
                #expect(try command(["prefetch"], done) == .exited(0))
                #expect(try command(["prefetch"], "/gone") == .exited(1))
                for path in [held, paused, waiting, last, cancelled] {
                    #expect(try command(["prefetch", "--detach"], path) == .exited(0))
                }
                #expect(try command(["downloads", "pause"], paused) == .exited(0))
                #expect(try command(["downloads", "cancel"], cancelled) == .exited(0))
                #expect(try command(["downloads", "move", "--first"], last) == .exited(0))
                try origin.waitUntil("the first bytes") { $0.bytesSent(held) >= 4_000_000 }
                let before = try states()
                #expect(
                    before == [
                        "\(held) downloading", "\(last) waiting", "\(waiting) waiting", "\(paused) paused",
                        "/gone failed", "\(done) completed", "\(cancelled) cancelled",
                    ])
                #expect(try proxy.process.killNow() == .signalled(SIGKILL))

                // Nobody goes on with it here: what ran is the next to run.
                let left = try states()
                #expect(left == ["\(held) waiting"] + before.dropFirst())

                let again = try ProxyProcess(cacheDirectory: cache, arguments: ["--max-downloads", "1"])
                try origin.waitForRequests(held, count: 2)
                #expect(try states() == before)
                origin.release(held)
                #expect(try command(["downloads", "resume"], paused) == .exited(0))
                for path in [held, last, waiting, paused] { #expect(try command(["prefetch"], path) == .exited(0)) }
                #expect(
                    origin.requestCount(done) == 1 && origin.requestCount(cancelled) == 0
                        && origin.requestCount("/gone") == 1)
                #expect(try again.process.terminate() == .exited(0))
            }
        }
    }
}
