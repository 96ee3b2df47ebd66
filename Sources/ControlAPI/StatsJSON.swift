import Foundation
import Metrics

/// The JSON of `GET /stats`, written and read.
package enum StatsJSON {
    /// Writes names in snake_case, as everywhere below `/api`. In version 0.1 only, the former names stand beside
    /// them.
    package static func page(_ snapshot: StatsSnapshot) throws -> [UInt8] {
        let names = try object(ControlJSON.line(snapshot)), old = try object([UInt8](JSONEncoder().encode(snapshot)))
        let page = try JSONSerialization.data(
            withJSONObject: merged(names, old), options: [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes])
        return ControlJSON.escaped(page) + [UInt8(ascii: "\n")]
    }

    package static func read(_ page: some Sequence<UInt8>) throws -> StatsSnapshot {
        try ControlJSON.decode(StatsSnapshot.self, from: page)
    }

    private static func object(_ json: [UInt8]) throws -> Any { try JSONSerialization.jsonObject(with: Data(json)) }

    private static func merged(_ names: Any, _ old: Any) -> Any {
        guard let names = names as? [String: Any], let old = old as? [String: Any] else { return names }
        return names.merging(old) { merged($0, $1) }
    }
}
