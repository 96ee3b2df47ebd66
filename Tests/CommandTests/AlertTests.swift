import Foundation
import TestSupport
import Testing

/// When the alerting rules of `config/` fire, by promtool's own tests of rules.
@Suite(.enabled(if: Prometheus.isExpected, "not installed: apt install prometheus"))
struct AlertTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    /// Series of a proxy, one value a minute in promtool's notation, and the alerts that have fired by some minute.
    private func check(_ series: [String: String], interval: String = "1m", at time: String, firing: Set<String>) throws
    {
        let inputs = series.sorted { $0.key < $1.key }.map { "      - {series: '\($0.key)', values: '\($0.value)'}" }
        let samples = firing.sorted().map { "          - {labels: '{alertname=\"\($0)\"}', value: 1}" }
        let file = directory.file("test.yaml")
        try """
        rule_files: ["\(Prometheus.rules)"]
        evaluation_interval: 1m
        tests:
          - interval: \(interval)
            input_series:
        \(inputs.joined(separator: "\n"))
            promql_expr_test:
              - expr: count by (alertname) (ALERTS{alertstate="firing"})
                eval_time: \(time)
                exp_samples:\(samples.isEmpty ? " []" : "\n" + samples.joined(separator: "\n"))

        """.write(toFile: file, atomically: true, encoding: .utf8)
        let outcome = try ChildProcess.run("/usr/bin/env", ["promtool", "test", "rules", file])
        #expect(outcome.exit == .exited(0), "\(outcome.stdout)\(outcome.stderr)")
    }

    /// A proxy that works.
    private static let healthy = [
        "up{job=\"reelcache\",instance=\"a\"}": "1x60",
        "process_start_time_seconds{job=\"reelcache\",instance=\"a\"}": "1000x60",
        "process_open_fds{job=\"reelcache\",instance=\"a\"}": "50x60",
        "process_max_fds{job=\"reelcache\",instance=\"a\"}": "20000x60",
        "reelcache_errors_total{instance=\"a\",kind=\"disk-write\"}": "0x60",
        "reelcache_errors_total{instance=\"a\",kind=\"no-room\"}": "0x60",
        "reelcache_errors_total{instance=\"a\",kind=\"refused\"}": "0+9x60",
        "reelcache_errors_total{instance=\"a\",kind=\"origin-timeout\"}": "0+1x60",
        "reelcache_origin_requests_total{instance=\"a\",reason=\"gap\"}": "0+20x60",
        "reelcache_responses_total{instance=\"a\",code=\"206\"}": "0+20x60",
        "reelcache_responses_total{instance=\"a\",code=\"503\"}": "0+1x60",
        "reelcache_downloads_ended_total{instance=\"a\",outcome=\"completed\"}": "0+1x60",
        "reelcache_downloads_ended_total{instance=\"a\",outcome=\"failed\"}": "1x60",
        "reelcache_cache_dropped_chunks_total{instance=\"a\"}": "7x60",
        "reelcache_disk_free_bytes{instance=\"a\"}": "1000x60",
        "reelcache_cache_min_free_bytes{instance=\"a\"}": "1000x60",
        "reelcache_cache_pinned_bytes{instance=\"a\"}": "500x60",
        "reelcache_cache_limit_bytes{instance=\"a\"}": "1000x60",
        "reelcache_first_byte_seconds_bucket{instance=\"a\",cache=\"hit\",le=\"0.001048575\"}": "0+10x60",
        "reelcache_first_byte_seconds_bucket{instance=\"a\",cache=\"hit\",le=\"+Inf\"}": "0+10x60",
    ]

    @Test func nothingFiresOfAProxyThatWorks() throws {
        try check(Self.healthy, at: "40m", firing: [])
    }

    @Test(arguments: [
        ("up{job=\"reelcache\",instance=\"a\"}", "1x10 0x50", "ReelcacheDown"),
        ("process_start_time_seconds{job=\"reelcache\",instance=\"a\"}", "1x5 2x5 3x5 4x60", "ReelcacheRestarting"),
        ("process_open_fds{job=\"reelcache\",instance=\"a\"}", "19000x60", "ReelcacheFileLimit"),
        ("reelcache_errors_total{instance=\"a\",kind=\"open-files\"}", "0x20 1x60", "ReelcacheFileLimit"),
        ("reelcache_errors_total{instance=\"a\",kind=\"disk-write\"}", "0x20 1x60", "ReelcacheDiskErrors"),
        ("reelcache_errors_total{instance=\"a\",kind=\"index-row\"}", "0x20 1x60", "ReelcacheDiskErrors"),
        ("reelcache_errors_total{instance=\"a\",kind=\"no-room\"}", "0x20 1x60", "ReelcacheNoRoom"),
        ("reelcache_errors_total{instance=\"a\",kind=\"access-log\"}", "0x20 1x60", "ReelcacheAccessLogDropped"),
        ("reelcache_errors_total{instance=\"a\",kind=\"origin-timeout\"}", "0+10x60", "ReelcacheOriginFailures"),
        ("reelcache_errors_total{instance=\"a\",kind=\"resolver-timeout\"}", "0+1x60", "ReelcacheResolverFailures"),
        ("reelcache_responses_total{instance=\"a\",code=\"503\"}", "0+3x60", "ReelcacheResponsesFail"),
        ("reelcache_downloads_ended_total{instance=\"a\",outcome=\"failed\"}", "0x20 1x40", "ReelcacheDownloadsFail"),
        ("reelcache_cache_dropped_chunks_total{instance=\"a\"}", "7x20 9x60", "ReelcacheDamagedChunks"),
        ("reelcache_disk_free_bytes{instance=\"a\"}", "1000x10 100x60", "ReelcacheDiskFull"),
        ("reelcache_cache_pinned_bytes{instance=\"a\"}", "500x10 950x60", "ReelcachePinnedFull"),
        (
            "reelcache_first_byte_seconds_bucket{instance=\"a\",cache=\"hit\",le=\"0.001048575\"}", "0x60",
            "ReelcacheSlowHits"
        ),
    ]) func eachTroubleFiresItsAlert(series: String, values: String, alert: String) throws {
        var trouble = Self.healthy
        trouble[series] = values
        if alert == "ReelcacheSlowHits" {
            trouble[series.replacing("0.001048575", with: "2.147483647")] = "0+10x60"
        }
        try check(trouble, at: "25m", firing: [alert])
    }

    /// A day from the cache, then hours from the origin.
    @Test func hitRatioThatCollapsesFires() throws {
        let series = [
            "reelcache_sent_bytes_total{job=\"r\",instance=\"a\",source=\"cache\"}": "0+1000000000x180 180000000000x20",
            "reelcache_sent_bytes_total{job=\"r\",instance=\"a\",source=\"origin\"}":
                "0+100000000x180 18000000000+1000000000x20",
        ]
        try check(series, interval: "10m", at: "30h", firing: [])
        try check(series, interval: "10m", at: "33h", firing: ["ReelcacheHitRatioCollapsed"])
    }

    // MARK: Causes

    /// What is wrong, and the alerts that fire of it.
    enum Cause: CaseIterable {
        case originsThatAnswer503, originsThatAreDown, downloadOfNothing, resolverThatFails, fullDiskOfTheLog
        case fileThatIsGone, damagedFile

        var alerts: Set<String> {
            switch self {
            case .originsThatAnswer503: ["ReelcacheResponsesFail"]
            case .originsThatAreDown: ["ReelcacheResponsesFail", "ReelcacheOriginFailures"]
            case .downloadOfNothing: ["ReelcacheDownloadsFail"]
            case .resolverThatFails: ["ReelcacheResponsesFail", "ReelcacheResolverFailures"]
            case .fullDiskOfTheLog: ["ReelcacheAccessLogDropped"]
            case .fileThatIsGone: ["ReelcacheDiskErrors"]
            case .damagedFile: ["ReelcacheDamagedChunks"]
            }
        }
    }

    /// What a proxy that does it counts before and after is what Prometheus has for a quarter of an hour each.
    @Test(arguments: Cause.allCases) func causeFiresItsAlert(_ cause: Cause) throws {
        let origin = try ScriptedOrigin()
        origin.serve("/film.mp4", Media(seed: 3, size: 15_000_000))
        let resolver = directory.file("resolvers.yaml")
        try Data("resolvers: [{host: 127.0.0.1, path: /watch, command: ['false']}]\n".utf8).write(
            to: URL(fileURLWithPath: resolver))
        let arguments: [String] =
            switch cause {
            case .fullDiskOfTheLog: ["--access-log", "/dev/full"]
            case .resolverThatFails: ["--config", resolver]
            default: []
            }
        let start = { try ProxyProcess(cacheDirectory: directory.file("cache"), arguments: arguments) }
        var proxy = try start()
        let before = try samples(proxy)
        try make(cause, origin, &proxy, restart: start)
        var series = ["up{job=\"reelcache\",instance=\"a\"}": "1x60"]
        for (name, value) in try samples(proxy) { series[name] = "\(before[name] ?? value)x15 \(value)x15" }
        try check(series, at: "14m", firing: [])
        try check(series, at: "25m", firing: cause.alerts)
    }

    private func make(
        _ cause: Cause, _ origin: ScriptedOrigin, _ proxy: inout ProxyProcess, restart: () throws -> ProxyProcess
    ) throws {
        let film = origin.url("/film.mp4")
        let run = { (arguments: [String], exit: ChildProcess.Exit) in
            let outcome = try ReelcacheCommand.run(arguments + ["--cache-dir", directory.file("cache")])
            #expect(outcome.exit == exit, "\(outcome)")
        }
        switch cause {
        case .originsThatAnswer503:
            origin.script("/film.mp4") { $0.status = 503 }
            for _ in 1...40 { #expect(try proxy.get(film).status == 503) }
        case .originsThatAreDown:
            origin.stop()
            for number in 1...9 { #expect(try proxy.get(origin.url("/\(number).mp4")).status == 502) }
        case .downloadOfNothing: try run(["prefetch", "--quiet", origin.url("/none.mp4")], .exited(1))
        case .resolverThatFails:
            for number in 1...9 { #expect(try proxy.get(origin.url("/watch?v=\(number)")).status == 502) }
        case .fullDiskOfTheLog:
            #expect(try proxy.get(film).status == 200)
            try eventually("a line that is dropped") {
                try samples(proxy)["reelcache_errors_total{kind=\"access-log\",instance=\"a\"}"] != "0"
            }
        case .fileThatIsGone, .damagedFile:
            #expect(try proxy.get(film).status == 200)
            // It saves within a second otherwise, and has the file open.
            _ = try proxy.process.terminate()
            let names = try FileManager.default.subpathsOfDirectory(atPath: directory.file("cache/data"))
            let file = try #require(names.first { $0.contains("/") })
            if cause == .fileThatIsGone {
                try FileManager.default.removeItem(atPath: directory.file("cache/data/\(file)"))
            } else {
                let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: directory.file("cache/data/\(file)")))
                try handle.write(contentsOf: Data(repeating: 0, count: 1000))
                try handle.close()
            }
            proxy = try restart()
            if cause == .damagedFile { try run(["verify", "--repair"], .exited(0)) }
            _ = try proxy.get(film)
        }
    }

    /// All numbers of `/metrics` but those of the histogram, named as Prometheus stores them.
    private func samples(_ proxy: ProxyProcess) throws -> [String: String] {
        let lines = try proxy.get("/metrics").text.split(separator: "\n").filter {
            $0.hasPrefix("reelcache_") && !$0.hasPrefix("reelcache_first_byte")
        }
        return Dictionary(
            uniqueKeysWithValues: try lines.map { line in
                let name = try #require(line.split(separator: " ").first)
                let labels = "instance=\"a\"}"
                return (
                    name.hasSuffix("}") ? name.dropLast() + "," + labels : name + "{" + labels,
                    String(line.dropFirst(name.count + 1))
                )
            })
    }
}
