import Activity
import Foundation

/// The JSON of `GET /stats`, written and read.
package enum StatsJSON {
    /// Written here and not by an encoder, which takes ten times as long: monitoring asks often. Nothing in it needs an
    /// escape.
    package static func page(_ stats: StatsSnapshot) -> [UInt8] {
        let others = [
            "\"\(stats.version)\"", "\(stats.uptimeSeconds)", counts(stats.reasons), counts(stats.errors),
            times(stats.firstByteOfHits), times(stats.firstByteOfMisses), stats.hitRatio.map { "\($0)" },
        ]
        var text = ""
        for (name, member) in layout.members {
            if member < stats.numbers.count {
                text += name
                text += String(stats.numbers[member])
            } else if let other = others[member - stats.numbers.count] {
                text += name
                text += other
            }
        }
        return Array((text + layout.end).utf8)
    }

    /// What stands before each value, in order, and its index: the numbers' first, then that of the others.
    private static let layout: (members: [(name: String, index: Int)], end: String) = {
        let others = [
            "version", "uptime_seconds", "upstream.requests", "errors", "first_byte_of_hits", "first_byte_of_misses",
            "bytes.hit_ratio", // which is missing now and then, and not the first of its object
        ]
        var (members, open): ([(String, Int)], Substring) = ([], "")
        for (index, place) in (StatsSnapshot.places + others).enumerated().sorted(by: { $0.element < $1.element }) {
            let parts = place.split(separator: ".", maxSplits: 1), object = parts.count > 1 ? parts[0] : ""
            var text = object != open && !open.isEmpty ? "}" : ""
            text += members.isEmpty ? "{\n  " : object.isEmpty || object != open ? ",\n  " : ", "
            if object != open, !object.isEmpty { text += "\"\(object)\": {" }
            members.append((text + "\"\(parts.last ?? "")\": ", index))
            open = object
        }
        return (members, open.isEmpty ? "\n}\n" : "}\n}\n")
    }()

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
