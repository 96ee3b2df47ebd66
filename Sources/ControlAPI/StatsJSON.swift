import Activity
import Foundation

/// The JSON of `GET /stats`, written and read.
package enum StatsJSON {
    /// Written here and not by an encoder, which takes ten times as long: monitoring asks often. Nothing in it needs an
    /// escape.
    package static func page(_ stats: StatsSnapshot) -> [UInt8] {
        var members = stats.numbers.map { (place: $0.key, text: "\($0.value)") }
        members += [
            ("version", "\"\(stats.version)\""), ("uptime_seconds", "\(stats.uptimeSeconds)"),
            ("upstream.requests", counts(stats.reasons)), ("errors", counts(stats.errors)),
            ("first_byte_of_hits", times(stats.firstByteOfHits)),
            ("first_byte_of_misses", times(stats.firstByteOfMisses)),
        ]
        if let ratio = stats.hitRatio { members.append(("bytes.hit_ratio", "\(ratio)")) }
        var (text, open) = ("", Substring())
        for (place, value) in members.sorted(by: { $0.place < $1.place }) {
            let parts = place.split(separator: ".", maxSplits: 1)
            let object = parts.count > 1 ? parts[0] : ""
            if object != open, !open.isEmpty { text += "}" }
            text += text.isEmpty ? "{\n  " : object.isEmpty || object != open ? ",\n  " : ", "
            if object != open, !object.isEmpty { text += "\"\(object)\": {" }
            text += "\"\(parts.last ?? "")\": \(value)"
            open = object
        }
        return Array((text + (open.isEmpty ? "\n}\n" : "}\n}\n")).utf8)
    }

    private static func counts(_ counts: [String: UInt64]) -> String {
        "{" + counts.sorted { $0.key < $1.key }.map { "\"\($0)\": \($1)" }.joined(separator: ", ") + "}"
    }

    private static func times(_ times: StatsSnapshot.FirstByte) -> String {
        let quantiles = [("p50", times.p50), ("p90", times.p90), ("p99", times.p99)]
        return "{\"count\": \(times.count)"
            + quantiles.map { name, time in
                time.map { ", \"\(name)\": \($0)" } ?? ""
            }.joined() + "}"
    }

    package static func read(_ page: some Sequence<UInt8>) throws -> StatsSnapshot {
        try JSONDecoder().decode(StatsSnapshot.self, from: Data(page))
    }
}
