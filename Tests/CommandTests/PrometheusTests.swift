import Foundation
import TestSupport
import Testing

/// `GET /metrics` as Prometheus reads it, and what `config/` has for Prometheus and Grafana.
@Suite(.enabled(if: Prometheus.isExpected, "not installed: apt install prometheus"))
struct PrometheusTests {
    private let directory: TemporaryDirectory
    private let origin: ScriptedOrigin
    private let proxy: ProxyProcess

    /// A proxy of which a film was played twice.
    init() throws {
        directory = try TemporaryDirectory()
        origin = try ScriptedOrigin()
        origin.serve("/film.mp4", Media(seed: 3, size: 1_000_000))
        proxy = try ProxyProcess(cacheDirectory: directory.file("cache"), arguments: ["--download-cap", "40GB/month"])
        for _ in 1...2 { #expect(try proxy.get(origin.url("/film.mp4")).status == 200) }
    }

    private static let openMetrics = "application/openmetrics-text;version=1.0.0"

    private func metrics(as type: String? = nil) throws -> String {
        let headers = type.map { [("Accept", $0)] } ?? []
        return try RawClient.get(port: proxy.port, path: "/metrics", headers: headers).text
    }

    /// The names of all samples, with and without the endings of histograms.
    private func names() throws -> Set<String> {
        let lines = try metrics().split(separator: "\n").filter { !$0.hasPrefix("#") }
        return Set(lines.map { String($0.prefix { $0 != "{" && $0 != " " }) })
    }

    private func promtool(_ arguments: String...) throws -> ChildProcess.Outcome {
        try ChildProcess.run("/usr/bin/env", ["promtool"] + arguments)
    }

    @Test func promtoolFindsNothingToSay() throws {
        let file = directory.file("metrics")
        try metrics().write(toFile: file, atomically: true, encoding: .utf8)
        let outcome = try ChildProcess.run("/bin/sh", ["-c", "promtool check metrics <'\(file)'"])
        #expect(outcome.exit == .exited(0) && outcome.stdout + outcome.stderr == "", "\(outcome)")
    }

    /// It has a reader of its own for OpenMetrics, which is strict.
    @Test func promtoolReadsOpenMetrics() throws {
        let file = directory.file("metrics.om")
        // Blocks are made of samples with times.
        let text = try metrics(as: Self.openMetrics)
        #expect(text.hasSuffix("\n# EOF\n"))
        let timed = text.split(separator: "\n").map { $0.hasPrefix("#") ? "\($0)" : "\($0) 1795453757" }
        try (timed.joined(separator: "\n") + "\n").write(toFile: file, atomically: true, encoding: .utf8)
        let outcome = try promtool("tsdb", "create-blocks-from", "openmetrics", file, directory.file("blocks"))
        #expect(outcome.exit == .exited(0), "\(outcome)")
    }

    @Test func prometheusScrapesItAndLoadsTheRules() async throws {
        try await blocking { [proxy, origin] in
            let prometheus = try Prometheus(scraping: proxy)
            try prometheus.wait(for: "up", [1])
            try prometheus.wait(for: "reelcache_sent_bytes_total{source=\"cache\"}", [1_000_000])
            try prometheus.wait(for: "reelcache_host_received_bytes_total{host=\"127.0.0.1\"}", [1_000_000])
            try prometheus.wait(for: "reelcache_first_byte_seconds_bucket{cache=\"hit\",le=\"+Inf\"}", [1])
            try prometheus.wait(for: "reelcache_build_info", [1])
            // What happens next is in the next scrape.
            #expect(try proxy.get(origin.url("/film.mp4")).status == 200)
            try prometheus.wait(for: "reelcache_answers_total{cache=\"hit\"}", [2])
            let types = try prometheus.get("metadata")
            #expect((types["reelcache_requests"] ?? types["reelcache_requests_total"]) != nil)
            let groups = try #require(try prometheus.get("rules")["groups"] as? [[String: Any]])
            let rules = try #require(groups.first?["rules"] as? [[String: Any]])
            #expect(rules.count >= 10)
            for rule in rules { #expect(rule["lastError"] as? String ?? "" == "", "\(rule)") }
            // Each plot of the dashboard can be drawn.
            for expression in try Dashboard().expressions { _ = try prometheus.values(expression) }
            #expect(try proxy.process.terminate() == .exited(0))
            try prometheus.wait(for: "up", [0])
        }
    }

    @Test func prometheusScrapesBeyondThisMachineWithTheTokenForReading() async throws {
        try await blocking { [directory] in
            let cache = directory.file("shared")
            let proxy = try ProxyProcess(cacheDirectory: cache, arguments: ["--listen", "0.0.0.0:0"])
            let without = try Prometheus(scraping: proxy)
            try without.wait(for: "up", [0])
            let prometheus = try Prometheus(scraping: proxy, token: cache + "/control-token-read")
            try prometheus.wait(for: "up", [1])
            try prometheus.wait(for: "reelcache_build_info", [1])
        }
    }

    @Test func rulesAreSound() throws {
        let outcome = try promtool("check", "rules", Prometheus.rules)
        #expect(outcome.exit == .exited(0) && outcome.stdout.contains("SUCCESS"), "\(outcome)")
    }

    /// The names that a text of rules or of a dashboard uses.
    private static func metricNames(in text: String) -> Set<String> {
        Set(text.matches(of: /\b(?:reelcache|process)_[a-z_]+\b/).map { String($0.0) })
    }

    @Test func eachNameInTheRulesExists() throws {
        let text = try String(contentsOfFile: Prometheus.rules, encoding: .utf8)
        let used = Self.metricNames(in: text), names = try names()
        #expect(used.count > 10 && used.subtracting(names) == [])
    }

    @Test func eachNameInTheDashboardExistsAndEachMetricIsShown() throws {
        let dashboard = try Dashboard()
        let used = Self.metricNames(in: dashboard.expressions.joined(separator: "\n") + dashboard.queries.joined())
        let names = try names()
        #expect(used.subtracting(names) == [])
        #expect(names.subtracting(used) == ["process_start_time_seconds"], "no panel shows these")
    }

    @Test func guideHasEachMetricAndNoOther() throws {
        let page = Prometheus.configuration.deletingLastPathComponent().appendingPathComponent(
            "docs/operators/monitoring.md")
        let named = Self.metricNames(in: try String(contentsOf: page, encoding: .utf8)).subtracting(["process_"])
        let names = try names()
        let families = Set(names.map { $0.replacing(/_seconds_(bucket|sum|count)$/, with: "_seconds") })
        #expect(named.subtracting(names.union(families)) == [])
        #expect(families.subtracting(named).filter { !$0.hasPrefix("process_") } == [])
    }

    /// Errors of these kinds are among those of the exposition.
    @Test func eachKindOfErrorInTheRulesExists() throws {
        let text = try String(contentsOfFile: Prometheus.rules, encoding: .utf8)
        let kinds = try metrics().matches(of: /reelcache_errors_total\{kind="([a-z-]+)"\}/).map { String($0.1) }
        let patterns = text.matches(of: /kind=~?"([^"]+)"/).flatMap { $0.1.split(separator: "|") }
        #expect(patterns.count > 5 && kinds.count > 20)
        for pattern in patterns {
            let regex = try Regex(String(pattern))
            #expect(kinds.contains { $0.wholeMatch(of: regex) != nil }, "\(pattern)")
        }
    }
}

/// `config/grafana/reelcache.json`
struct Dashboard {
    private let panels: [[String: Any]]
    /// The expressions of all panels, with values for Grafana's variables.
    let expressions: [String]
    /// The queries of the dashboard's variables.
    let queries: [String]

    init() throws {
        let file = Prometheus.configuration.appendingPathComponent("grafana/reelcache.json")
        let page = try #require(JSONSerialization.jsonObject(with: Data(contentsOf: file)) as? [String: Any])
        panels = try #require(page["panels"] as? [[String: Any]])
        let variables = try #require((page["templating"] as? [String: Any])?["list"] as? [[String: Any]])
        queries = variables.compactMap { $0["definition"] as? String }
        let targets = panels.flatMap { $0["targets"] as? [[String: Any]] ?? [] }
        let values = ["$__rate_interval": "1m", "$__range": "6h", "$instance": ".*", "$job": ".*"]
        expressions = targets.compactMap { $0["expr"] as? String }.map { expression in
            values.reduce(expression) { $0.replacing($1.key, with: $1.value) }
        }
        #expect(targets.count == expressions.count && !expressions.contains { $0.contains("$") })
        #expect(page["schemaVersion"] as? Int == 39 && page["uid"] as? String == "reelcache" && page["id"] == nil)
        #expect(variables.first?["type"] as? String == "datasource")
    }

    /// Those of panels that are no headings.
    var sources: [String] {
        panels.flatMap { [$0] + ($0["targets"] as? [[String: Any]] ?? []) }
            .compactMap { ($0["datasource"] as? [String: Any])?["uid"] as? String }
    }

    /// The places of panels on the grid of 24 columns.
    var places: [(x: Int, y: Int, width: Int, height: Int)] {
        panels.compactMap { $0["gridPos"] as? [String: Int] }.map { ($0["x"]!, $0["y"]!, $0["w"]!, $0["h"]!) }
    }

    var ids: [Int] { panels.compactMap { $0["id"] as? Int } }
    var titles: [String] { panels.compactMap { $0["title"] as? String } }
}

/// The dashboard as a file, wherever it is loaded.
@Suite struct DashboardTests {
    @Test func panelsHaveTheirOwnNumbersTitlesAndPlaces() throws {
        let dashboard = try Dashboard()
        let (ids, places) = (dashboard.ids, dashboard.places)
        #expect(ids.count > 20 && Set(ids).count == ids.count && places.count == ids.count)
        #expect(Set(dashboard.titles).count == ids.count)
        var taken: Set<Int> = []
        for place in places {
            #expect(place.x >= 0 && place.x + place.width <= 24)
            for cell in (place.y..<place.y + place.height).flatMap({ y in
                (place.x..<place.x + place.width).map { y * 24 + $0 }
            }) {
                #expect(taken.insert(cell).inserted, "two panels overlap")
            }
        }
    }

    /// So that it can be imported anywhere.
    @Test func dataSourceIsAVariable() throws {
        let sources = try Dashboard().sources
        #expect(sources.count > 40 && Set(sources) == ["${datasource}"])
    }
}
