import Administration
import ArgumentParser
import CachePolicy
import ControlAPI
import Foundation
import HTTPModel
import Metrics
import Reelcache
import Units

struct Stats: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Print the counters of the running proxy.",
        discussion: """
            They begin at zero when the proxy starts.

              reelcache stats
              reelcache stats --json
            """)

    @Flag(help: "Print the JSON of GET /stats.")
    var json = false
    @OptionGroup var cache: CacheOptions

    func run() throws {
        let directory = try cache.path
        guard let proxy = RunningProxy(cacheDirectory: directory) else {
            throw CacheAccessError(
                "no proxy is running for the cache \(directory); start one with reelcache serve, or name its --cache-dir"
            )
        }
        let data = try proxy.get("/stats")
        guard !json else { return print(String(decoding: data, as: UTF8.self), terminator: "") }
        print(Self.table(try StatsJSON.read(data), baseURL: proxy.baseURL))
    }

    static func table(_ stats: StatsSnapshot, baseURL: String) -> String {
        let upstream = stats.upstream.requests.filter { $0.value > 0 }.sorted { $0.key < $1.key }.map {
            "\($0.value) \($0.key)"
        }
        var rows: [(String, String)] = [
            (
                "proxy",
                "\(baseURL), version \(stats.version), up \(Int(saturating: stats.uptimeSeconds)) s, \(stats.connections) connections"
            ),
            (
                "requests",
                "\(stats.requests.total): \(stats.requests.hits) hits, \(stats.requests.partialHits) partial, \(stats.requests.misses) misses, "
                    + "\(stats.requests.bypasses) bypassed; \(stats.requests.collapsed) collapsed"
            ),
            (
                "bytes",
                "\(size(stats.bytes.fromCache)) from the cache, \(size(stats.bytes.fromUpstream)) from upstream"
                    + (stats.bytes.hitRatio.map { " (\(Int(saturating: ($0 * 100).rounded())) % from the cache)" } ?? "")
            ),
            (
                "upstream",
                "\(size(Int64(clamping: stats.upstream.bytes))) fetched, \(stats.upstream.openFetches) running"
                    + (upstream.isEmpty ? "" : "; requests: \(upstream.joined(separator: ", "))")
            ),
            (
                "cache",
                "\(size(stats.cache.size)) of \(size(stats.cache.limit)); \(stats.cache.evictedExtents) extents (\(size(stats.cache.evictedBytes))) evicted"
            ),
            ("first byte", "hits \(time(stats.firstByteOfHits)); misses \(time(stats.firstByteOfMisses))"),
        ]
        if !stats.errors.isEmpty {
            rows.append(
                (
                    "errors",
                    stats.errors.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }.joined(separator: ", ")
                ))
        }
        return rows.map { name, value in name.padding(toLength: 12, withPad: " ", startingAt: 0) + value }.joined(
            separator: "\n")
    }

    private static func size(_ bytes: UInt64) -> String { size(Int64(clamping: bytes)) }
    private static func size(_ bytes: Int64) -> String { ByteSize(bytes: bytes).description }

    private static func time(_ times: StatsSnapshot.FirstByte) -> String {
        guard let p50 = times.p50, let p90 = times.p90, let p99 = times.p99 else { return "none yet" }
        return "p50 \(p50) ms, p90 \(p90) ms, p99 \(p99) ms"
    }
}
