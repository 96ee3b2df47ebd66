import ControlAPI
import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite struct S08StatsNames {
        /// Names are those of the API; the old ones mean the same.
        @Test func statisticsAreInSnakeCaseAndHaveTheirOldNames() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", Media(seed: 8, size: 10_000))
                _ = try stage.get("/film.mp4")
                try stage.settle()
                let bytes = try RawClient.get(port: stage.proxy.port, path: "/stats").body
                let page = try #require(JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any])
                let sums = try #require(page["bytes"] as? [String: Any])
                #expect(sums["from_upstream"] as? Int == 10_000 && sums["fromUpstream"] as? Int == 10_000)
                #expect(page["uptime_seconds"] != nil && page["uptimeSeconds"] != nil)
                #expect((page["first_byte_of_misses"] as? [String: Any])?["count"] as? Int == 1)
                // Reasons are no names: they are those of Cache-Status.
                let reasons = try #require((page["upstream"] as? [String: Any])?["requests"] as? [String: Any])
                #expect(reasons["uri-miss"] as? Int == 1)
                #expect(try StatsJSON.read(bytes).bytes == stage.stats.bytes)
                #expect(Self.names(page).filter { $0.contains("_") }.count > 10)
            }
        }

        private static func names(_ value: Any) -> [String] {
            (value as? [String: Any])?.flatMap { [$0.key] + names($0.value) } ?? []
        }
    }
}
