import Foundation
import TestSupport
import Testing

/// `reelcache stats`, with a running proxy and without.
@Suite struct StatsTests {
    private let cache: TemporaryDirectory

    init() throws {
        cache = try TemporaryDirectory()
    }

    private func stats(_ arguments: String...) throws -> ChildProcess.Outcome {
        try ReelcacheCommand.run(["stats", "--cache-dir", cache.path] + arguments)
    }

    /// A proxy of which a film was played twice.
    private func usedProxy(_ film: Media) throws -> ProxyProcess {
        let origin = try ScriptedOrigin()
        origin.serve("/film.mp4", film)
        let proxy = try ProxyProcess(cacheDirectory: cache.path)
        for _ in 1...2 { #expect(try proxy.get(origin.url("/film.mp4")).status == 200) }
        return proxy
    }

    @Test func jsonHasEveryDocumentedKeyAndTheCounts() throws {
        let film = Media(seed: 1, size: 3_000_000)
        let proxy = try usedProxy(film)

        let outcome = try stats("--json")

        #expect(outcome.exit == .exited(0) && outcome.stderr == "")
        let all = try #require(JSONSerialization.jsonObject(with: Data(outcome.stdout.utf8)) as? [String: Any])
        #expect(
            Self.names(all) == [
                "version", "uptime_seconds", "requests", "bytes", "upstream", "cache", "connections",
                "accepted_connections", "connections_closed_for_room",
                "first_byte_of_hits", "first_byte_of_misses", "tunnels", "transit", "errors",
            ], "\(Self.names(all))")
        #expect(
            try Self.numbers(all, "requests") == [
                "total": 2, "hits": 1, "partial_hits": 0, "misses": 1, "bypasses": 0, "collapsed": 0, "validated": 0,
                "stale": 0,
            ])
        #expect(
            try Self.numbers(all, "bytes") == ["from_cache": 3_000_000, "from_upstream": 3_000_000, "hit_ratio": 0.5])
        let upstream = try Self.numbers(all, "upstream")
        #expect(upstream["bytes"] == 3_000_000 && upstream["open_fetches"] == 0 && upstream["resumed_transfers"] == 0)
        let cached = try Self.numbers(all, "cache")
        #expect(
            Set(cached.keys) == [
                "size", "limit", "min_free", "evicted_extents", "evicted_bytes", "dropped_chunks", "checkpoints",
                "open_resources", "short_responses", "short_response_bytes",
            ])
        #expect(try #require(cached["size"]) >= 3_000_000)
        for name in ["first_byte_of_hits", "first_byte_of_misses"] {
            let times = try Self.numbers(all, name)
            #expect(Set(times.keys) == ["count", "p50", "p90", "p99"] && times["count"] == 1)
        }
        #expect(try proxy.process.terminate() == .exited(0))
    }

    /// Without the names of former versions, which have capitals.
    private static func names(_ members: [String: Any]) -> Set<String> {
        Set(members.keys.filter { $0 == $0.lowercased() })
    }

    /// The numbers among the members of an object.
    private static func numbers(_ all: [String: Any], _ name: String) throws -> [String: Double] {
        let members = try #require(all[name] as? [String: Any])
        return members.filter { names(members).contains($0.key) }.compactMapValues {
            $0 as? Double ?? ($0 as? Int).map(Double.init)
        }
    }

    @Test func theTableSaysTheSameInWords() throws {
        let proxy = try usedProxy(Media(seed: 2, size: 3_000_000))

        let outcome = try stats()

        #expect(outcome.exit == .exited(0) && outcome.stderr == "")
        let lines = outcome.stdout.split(separator: "\n")
        for line in [
            "proxy       \(proxy.baseURL), version",
            "requests    2: 1 hits (50 %), 0 partial (0 %), 1 misses (50 %), 0",
            "sent        6.00 MB: 3.00 MB from the cache (50 %), 3.00 MB from origins",
            "first byte   median     90 %     99 %  answers", "  hits  ", "  misses  ",
            "origins     3.00 MB received, 0 running", "            requests: 1 uri-miss", "cache       ",
        ] {
            #expect(lines.contains { $0.hasPrefix(line) }, "\(line) is not in:\n\(outcome.stdout)")
        }
        #expect(lines.allSatisfy { $0.count < 120 })
        #expect(try proxy.process.terminate() == .exited(0))
    }

    // MARK: Watching

    private func watch(_ arguments: String...) throws -> ChildProcess {
        try ReelcacheCommand.start(["stats", "--cache-dir", cache.path, "--watch"] + arguments)
    }

    @Test func watchPrintsALineOfRatesUntilItIsInterrupted() throws {
        let proxy = try usedProxy(Media(seed: 4, size: 3_000_000))
        let watch = try watch()
        let header = try watch.waitForLine(containing: "requests")
        #expect(
            header.split(separator: "  ", omittingEmptySubsequences: true).map { $0.drop { $0 == " " } } == [
                "requests", "hit ratio", "from cache", "from origins", "received", "fetches", "downloads",
                "connections",
                "cache",
            ])
        let line = try watch.waitForLine(containing: "/s")
        #expect(line.contains("0.0/s") && line.contains("MB"), "\(line)")
        #expect(line.count == header.count)
        watch.signal(SIGINT)
        #expect(try watch.waitForExit() == .exited(0))
        #expect(watch.stderr == "")
        #expect(try proxy.process.terminate() == .exited(0))
    }

    @Test func watchSaysThatTheProxyHasEnded() throws {
        let proxy = try ProxyProcess(cacheDirectory: cache.path)
        let watch = try watch("1")
        try watch.waitForLine(containing: "/s")
        #expect(try proxy.process.terminate() == .exited(0))
        #expect(try watch.waitForExit() == .exited(1))
        #expect(watch.stderr == "reelcache: the proxy at \(proxy.baseURL) has ended\n")
    }

    @Test func watchEndsWithWhoReadsIt() throws {
        let proxy = try ProxyProcess(cacheDirectory: cache.path)
        let outcome = try ChildProcess.run(
            "/bin/sh",
            ["-c", "\"$0\" stats --watch --cache-dir '\(cache.path)' | head -n 1", try ReelcacheCommand.path()],
            environment: ReelcacheCommand.neutral)
        #expect(
            outcome.exit == .exited(0) && outcome.stdout.contains("hit ratio") && outcome.stderr == "", "\(outcome)")
        #expect(try proxy.process.terminate() == .exited(0))
    }

    @Test(arguments: [
        (["--watch", "0"], "the interval is 1 to 3600 seconds, not 0"),
        (["--watch", "3601"], "the interval is 1 to 3600 seconds"), (["--watch", "soon"], "soon"),
        (["5"], "the interval 5 is for --watch: write --watch 5"), (["--watch", "--json"], "leave out --json"),
    ]) func watchRefusesOtherIntervals(arguments: [String], words: String) throws {
        let outcome = try ReelcacheCommand.run(["stats", "--cache-dir", cache.path] + arguments)
        #expect(outcome.exit == .exited(2) && (outcome.stderr + outcome.stdout).contains(words), "\(outcome)")
    }

    @Test(arguments: [[], ["--json"]]) func withoutAProxyItSaysHowToGetOne(arguments: [String]) throws {
        let line = try #require(
            try ReelcacheCommand.run(["stats", "--cache-dir", cache.path] + arguments).failureLine(
                isJSON: !arguments.isEmpty))
        #expect(line.contains(cache.path) && line.contains("reelcache serve"), "\(line)")
    }

    @Test func aProxyThatWasKilledIsNotAskedForStatistics() throws {
        #expect(try ProxyProcess(cacheDirectory: cache.path).process.killNow() == .signalled(SIGKILL))
        #expect(try #require(try stats().failureLine).contains("no proxy is running"))
    }
}
