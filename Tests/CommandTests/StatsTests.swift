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
        #expect(Set(all.keys) == [
            "version", "uptimeSeconds", "requests", "bytes", "upstream", "cache", "connections", "acceptedConnections", "firstByteOfHits",
            "firstByteOfMisses", "errors",
        ])
        #expect(try Self.numbers(all, "requests") == ["total": 2, "hits": 1, "partialHits": 0, "misses": 1, "bypasses": 0, "collapsed": 0, "validated": 0, "stale": 0])
        #expect(try Self.numbers(all, "bytes") == ["fromCache": 3_000_000, "fromUpstream": 3_000_000, "hitRatio": 0.5])
        let upstream = try Self.numbers(all, "upstream")
        #expect(upstream["bytes"] == 3_000_000 && upstream["openFetches"] == 0 && upstream["resumedTransfers"] == 0)
        let cached = try Self.numbers(all, "cache")
        #expect(Set(cached.keys) == [
            "size", "limit", "minFree", "evictedExtents", "evictedBytes", "droppedChunks", "checkpoints", "openResources",
        ])
        #expect(try #require(cached["size"]) >= 3_000_000)
        for name in ["firstByteOfHits", "firstByteOfMisses"] {
            let times = try Self.numbers(all, name)
            #expect(Set(times.keys) == ["count", "p50", "p90", "p99"] && times["count"] == 1)
        }
        #expect(try proxy.process.terminate() == .exited(0))
    }

    /// The numbers among the members of an object.
    private static func numbers(_ all: [String: Any], _ name: String) throws -> [String: Double] {
        try #require(all[name] as? [String: Any]).compactMapValues { $0 as? Double ?? ($0 as? Int).map(Double.init) }
    }

    @Test func theTableSaysTheSameInWords() throws {
        let proxy = try usedProxy(Media(seed: 2, size: 3_000_000))

        let outcome = try stats()

        #expect(outcome.exit == .exited(0) && outcome.stderr == "")
        for line in [
            "proxy       \(proxy.baseURL), version", "requests    2: 1 hits, 0 partial, 1 misses", "bytes       3.00 MB from the cache, 3.00 MB from upstream (50 %",
            "upstream    3.00 MB fetched, 0 running", "cache       ", "first byte  hits p50 ",
        ] {
            #expect(outcome.stdout.split(separator: "\n").contains { $0.hasPrefix(line) }, "\(line) is not in:\n\(outcome.stdout)")
        }
        #expect(try proxy.process.terminate() == .exited(0))
    }

    @Test(arguments: [[], ["--json"]]) func withoutAProxyItSaysHowToGetOne(arguments: [String]) throws {
        let line = try #require(try ReelcacheCommand.run(["stats", "--cache-dir", cache.path] + arguments).failureLine(isJSON: !arguments.isEmpty))
        #expect(line.contains(cache.path) && line.contains("reelcache serve"), "\(line)")
    }

    @Test func aProxyThatWasKilledIsNotAskedForStatistics() throws {
        #expect(try ProxyProcess(cacheDirectory: cache.path).process.killNow() == .signalled(SIGKILL))
        #expect(try #require(try stats().failureLine).contains("no proxy is running"))
    }
}
