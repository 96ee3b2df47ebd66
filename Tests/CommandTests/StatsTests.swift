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
                "first_byte_of_hits", "first_byte_of_misses", "tunnels", "errors",
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
                "open_resources",
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
        for line in [
            "proxy       \(proxy.baseURL), version", "requests    2: 1 hits, 0 partial, 1 misses",
            "bytes       3.00 MB from the cache, 3.00 MB from upstream (50 %",
            "upstream    3.00 MB fetched, 0 running", "cache       ", "first byte  hits p50 ",
        ] {
            #expect(
                outcome.stdout.split(separator: "\n").contains { $0.hasPrefix(line) },
                "\(line) is not in:\n\(outcome.stdout)")
        }
        #expect(try proxy.process.terminate() == .exited(0))
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
