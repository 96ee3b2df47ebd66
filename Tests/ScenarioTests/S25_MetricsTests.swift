import Activity
import ControlAPI
import Foundation
import Reelcache
import TestSupport
import Testing

private let film = Media(seed: 25, size: 700_000)

extension Scenarios {
    /// `/metrics` and `/api/v1/history`: what happened, as programs read it.
    @Suite struct S25Metrics {
        private static func metrics(
            _ stage: Stage, headers: [(String, String)] = [], method: String = "GET"
        ) throws -> RawClient.Response {
            try RawClient.get(port: stage.proxy.port, path: "/metrics", headers: headers, method: method)
        }

        /// The value of a sample.
        private static func value(_ sample: String, _ stage: Stage) throws -> String? {
            try metrics(stage).text.split(separator: "\n").first { $0.hasPrefix(sample + " ") }.map {
                String($0.dropFirst(sample.count + 1))
            }
        }

        @Test func formIsThatOfTheAcceptField() async throws {
            try await scenario { stage in
                for accept in [[], [("Accept", "*/*")], [("Accept", ";;,q=\"nonsense")]] {
                    let text = try Self.metrics(stage, headers: accept)
                    #expect(text.status == 200)
                    #expect(text.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8")
                    #expect(text.text.contains("# TYPE reelcache_requests_total counter\n"))
                    #expect(!text.text.contains("# EOF"))
                }
                let open = try Self.metrics(
                    stage, headers: [("Accept", "application/openmetrics-text;version=1.0.0,*/*;q=0.1")])
                #expect(
                    open.headers["Content-Type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8")
                #expect(open.headers["Vary"] == "Accept" && open.headers["Cache-Control"] == "no-store")
                #expect(open.text.contains("# TYPE reelcache_requests counter\n") && open.text.hasSuffix("\n# EOF\n"))
            }
        }

        @Test func methodsAreGetAndHead() async throws {
            try await scenario { stage in
                let head = try Self.metrics(stage, method: "HEAD")
                #expect(head.status == 200 && head.body.isEmpty)
                #expect(head.headers["Content-Length"].flatMap { Int($0) } ?? 0 > 5000)
                #expect(try Self.metrics(stage, method: "OPTIONS").headers["Allow"] == "GET, HEAD, OPTIONS")
                #expect(try Self.metrics(stage, method: "DELETE").status == 405)
            }
        }

        @Test func whatIsPlayedIsCountedByHost() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                expectWhole(try stage.get("/film.mp4"), film)
                expectWhole(try stage.get("/film.mp4"), film)
                try stage.catchUp()
                for (sample, value) in [
                    ("reelcache_answers_total{cache=\"hit\"}", "1"), ("reelcache_answers_total{cache=\"miss\"}", "1"),
                    ("reelcache_sent_bytes_total{source=\"cache\"}", "700000"),
                    ("reelcache_host_received_bytes_total{host=\"127.0.0.1\"}", "700000"),
                    ("reelcache_host_received_bytes_total{host=\"other\"}", "0"),
                    ("reelcache_host_sent_bytes_total{host=\"127.0.0.1\",source=\"cache\"}", "700000"),
                    ("reelcache_host_sent_bytes_total{host=\"127.0.0.1\",source=\"origin\"}", "700000"),
                    ("reelcache_first_byte_seconds_count{cache=\"hit\"}", "1"),
                    ("reelcache_errors_total{kind=\"origin-broken\"}", "0"), ("reelcache_offline", "0"),
                    ("reelcache_downloads{state=\"waiting\"}", "0"), ("reelcache_cache_pinned_bytes", "0"),
                    ("reelcache_responses_total{code=\"200\"}", "2"), ("reelcache_plays", "1"),
                    ("reelcache_origin_responses_total{code=\"200\"}", "1"), ("reelcache_cache_resources", "0"),
                ] { #expect(try Self.value(sample, stage) == value, "\(sample)") }
            }
        }

        /// Those of the control interface are nobody's play.
        @Test func failuresAreNamedAndCountedByTheirStatus() async throws {
            try await scenario { stage in
                stage.origin.script("/busy.mp4") { $0.status = 503 }
                stage.origin.script("/odd.mp4") { $0.raw = Array("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n".utf8) }
                for _ in 1...3 { #expect(try stage.get("/busy.mp4").status == 503) }
                #expect(try stage.get("/none.mp4").status == 404)
                #expect(try stage.get("/odd.mp4").cacheStatus.hasSuffix("; detail=\"origin-unusable\""))
                stage.origin.stop()
                #expect(
                    try stage.get("/film.mp4").cacheStatus == "reelcache; fwd=uri-miss; detail=\"origin-unreachable\"")
                #expect(try stage.ask("/api/v1/nothing").status == 404)
                for (sample, value) in [
                    ("reelcache_responses_total{code=\"503\"}", "3"), ("reelcache_responses_total{code=\"404\"}", "1"),
                    ("reelcache_responses_total{code=\"502\"}", "2"), ("reelcache_responses_total{code=\"200\"}", "0"),
                    ("reelcache_origin_responses_total{code=\"404\"}", "1"),
                ] { #expect(try Self.value(sample, stage) == value, "\(sample)") }
                let report = try stage.read(NowReport.self, "/now")
                #expect(report.served.failures == 5 && report.cache.minFree != nil && report.cache.free ?? 0 > 0)
            }
        }

        @Test func downloadsThatHaveEndedAreCountedByOutcome() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.serve("/held.mp4", film)
                stage.origin.hold("/held.mp4")
                let orders = ["/film.mp4", "/none.mp4", "/held.mp4"].map { "{\"url\": \"\(stage.origin.url($0))\"}" }
                _ = try stage.control(
                    "POST", "/downloads", body: "{\"downloads\": [\(orders.joined(separator: ", "))]}")
                try stage.origin.waitForRequests("/held.mp4", count: 1)
                _ = try stage.control("PATCH", "/downloads?id=3", body: "{\"action\": \"cancel\"}")
                for outcome in ["completed", "failed", "cancelled"] {
                    try eventually("one \(outcome)") {
                        try Self.value("reelcache_downloads_ended_total{outcome=\"\(outcome)\"}", stage) == "1"
                    }
                }
            }
        }

        /// The names of failures of an origin, and of all that the guide lists.
        @Test func eachErrorOfTheGuideHasASample() async throws {
            try await scenario { stage in
                let guide = try String(
                    contentsOfFile: #filePath.replacing(
                        "Tests/ScenarioTests/S25_MetricsTests.swift", with: "docs/programs/http-api.md"),
                    encoding: .utf8)
                let section = try #require(guide.components(separatedBy: "\n#### Other errors\n").last)
                let rows = section.components(separatedBy: "\n## ")[0].split(separator: "\n").filter {
                    $0.hasPrefix("| `")
                }
                let names = rows.flatMap { row in
                    row.split(separator: "|")[0].matches(of: /`([a-z-]+)`/).map { String($0.1) }
                }
                let text = try Self.metrics(stage).text
                #expect(names.count > 10)
                for name in names + ["origin-broken", "page", "no-room"] {
                    #expect(text.contains("reelcache_errors_total{kind=\"\(name)\"} 0\n"), "\(name)")
                }
            }
        }

        // MARK: Over time

        @Test func historyHasWhatHappenedUntilNow() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                expectWhole(try stage.get("/film.mp4"), film)
                expectWhole(try stage.get("/film.mp4"), film)
                try stage.catchUp()
                for span in HistorySpan.allCases {
                    let history = try stage.read(HistoryReport.self, "/history?span=\(span)")
                    #expect(history.span == span && history.to == stage.clock.now)
                    #expect(history.periodSeconds == span.periodSeconds)
                    #expect(history.from <= history.to - history.periodSeconds * Int64(span.periodCount - 1))
                    let periods = history.periods
                    #expect(periods.map(\.requests).reduce(0, +) == 2 && periods.map(\.hits).reduce(0, +) == 1)
                    #expect(periods.map(\.bytes.fromCache).reduce(0, +) == 700_000)
                    #expect(periods.map(\.upstreamBytes).reduce(0, +) == 700_000)
                    let last = try #require(periods.last)
                    #expect(last.size > 0 && last.limit == stage.setting.maxSize)
                    #expect(last.firstByteOfHits.count == 1 && last.firstByteOfHits.p99 != nil)
                }
                #expect(try stage.read(HistoryReport.self, "/history").span == .hour)
            }
        }

        @Test func historySurvivesARestartAndLeavesAGap() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                expectWhole(try stage.get("/film.mp4"), film)
                try stage.catchUp()
                try stage.stop()
                stage.clock.advance(by: 1200)
                try stage.start()
                expectWhole(try stage.get("/film.mp4"), film)
                let history = try stage.read(HistoryReport.self, "/history?span=hour")
                let played = history.periods.filter { $0.requests > 0 }
                #expect(played.map(\.requests) == [1, 1] && played.map(\.hits) == [0, 1])
                #expect(played[1].start - played[0].start >= 1190)
                // Nothing was counted while it was off.
                #expect(
                    !history.periods.contains { $0.start > played[0].start + 10 && $0.start < played[1].start - 10 })
                let day = try stage.read(HistoryReport.self, "/history?span=day")
                #expect(day.periods.map(\.requests).reduce(0, +) == 2 && day.periods.count <= 4)
            }
        }

        @Test func clockThatIsSetBackHidesTheFuture() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                expectWhole(try stage.get("/film.mp4"), film)
                _ = try stage.read(HistoryReport.self, "/history")
                stage.clock.advance(by: -1800)
                let history = try stage.read(HistoryReport.self, "/history")
                #expect(history.periods.allSatisfy { $0.start <= history.to && $0.requests == 0 })
                stage.clock.advance(by: 1800)
                #expect(try stage.read(HistoryReport.self, "/history").periods.map(\.requests).reduce(0, +) == 1)
            }
        }

        @Test func otherSpansAreRefused() async throws {
            try await scenario { stage in
                for span in ["year", "", "HOUR", "hour%00"] {
                    let refusal = try stage.control("GET", "/history?span=\(span)", .nothing)
                    #expect(
                        refusal.status == 400 && refusal.text.contains("span is one of hour, day, month"), "\(span)")
                }
                #expect(try stage.control("DELETE", "/history").status == 405)
            }
        }
    }
}
