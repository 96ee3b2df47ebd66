import Activity
import ControlAPI
import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite struct S08StatsNames {
        @Test func statisticsAreInSnakeCase() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", Media(seed: 8, size: 10_000))
                _ = try stage.get("/film.mp4")
                try stage.catchUp()
                let bytes = try RawClient.get(port: stage.proxy.port, path: "/stats").body
                let page = try #require(JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any])
                let sums = try #require(page["bytes"] as? [String: Any])
                #expect(sums["from_upstream"] as? Int == 10_000)
                #expect(page["uptime_seconds"] != nil)
                #expect((page["first_byte_of_misses"] as? [String: Any])?["count"] as? Int == 1)
                // Reasons are no names: they are those of Cache-Status.
                let reasons = try #require((page["upstream"] as? [String: Any])?["requests"] as? [String: Any])
                #expect(reasons["uri-miss"] as? Int == 1)
                #expect(try StatsJSON.read(bytes)[\.bytesFromUpstream] == 10_000)
                #expect(Self.names(page).filter { $0.contains("_") }.count > 10)
                #expect(Self.names(page).allSatisfy { $0.allSatisfy { !$0.isUppercase } })
            }
        }

        @Test(arguments: [0, 1]) func whatIsWrittenIsRead(count: Int64) throws {
            let metrics = ProxyMetrics()
            if count > 0 {
                metrics.bytesFromCache.add(1)
                metrics.bytesFromUpstream.add(3)
                metrics.size.set(5)
                for time in [metrics.firstByteOfHits, metrics.firstByteOfMisses] { time.record(nanoseconds: 5_000_000) }
                for name in ["refused", "disk-read"] { metrics.errors.add(name) }
            }
            let stats = StatsSnapshot(metrics, version: "1.2", uptimeSeconds: 3.25)
            let page = StatsJSON.page(stats)
            #expect(try StatsJSON.read(page) == stats)
            let written = try #require(JSONSerialization.jsonObject(with: Data(page)) as? [String: Any])
            #expect(
                Set(written.keys) == [
                    "accepted_connections", "bytes", "cache", "connections", "connections_closed_for_room", "errors",
                    "first_byte_of_hits", "first_byte_of_misses", "requests", "transit", "tunnels", "upstream",
                    "uptime_seconds", "version",
                ])
            #expect((written["bytes"] as? [String: Any])?["hit_ratio"] as? Double == (count > 0 ? 0.25 : nil))
        }

        /// A proxy of another version has other numbers.
        @Test func numbersThatAreMissingAreZero() throws {
            var page = String(
                decoding: StatsJSON.page(StatsSnapshot(ProxyMetrics(), version: "1", uptimeSeconds: 0)), as: UTF8.self)
            page = page.replacing("\"stale\": 0", with: "\"fresh\": 1")
            #expect(try StatsJSON.read(page.utf8)[\.stale] == 0)
        }

        private static func names(_ value: Any) -> [String] {
            (value as? [String: Any])?.flatMap { [$0.key] + names($0.value) } ?? []
        }
    }
}
