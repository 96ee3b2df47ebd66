import Foundation
import GRDB
import HTTPModel

extension DownloadJob {
    static let columnNames = [
        "id", "url", "first", "priority", "connections", "limit_rate", "category", "pinned", "state", "place", "ended", "bytes", "total", "file_name",
        "network_failures", "busy_failures", "retry_at", "added", "started", "finished", "message", "key", "claim",
    ]

    /// What stands in the columns of those names.
    var columns: [(any DatabaseValueConvertible)?] {
        get throws {
            let claim = try claim.map { String(decoding: try JSONEncoder().encode($0), as: UTF8.self) }
            return [
                id, url, first, priority.rawValue, connections, limitRate, category, isPinned, state.rawValue, place, ended, bytes, total, fileName,
                networkFailures, busyFailures, retryAt, added, started, finished, message, key, claim,
            ]
        }
    }

    /// nil for a row with what cannot be: none of it is believed then.
    init?(_ row: Row) {
        func value<Value: DatabaseValueConvertible>(_ name: String) -> Value? { Value.fromDatabaseValue(row[name]) }
        // Bounded, so that what counts on from them cannot overflow.
        func isWhole(_ names: [String]) -> Bool {
            names.allSatisfy { Int64.fromDatabaseValue(row[$0]).map { (0...ByteNumber.greatest).contains($0) } ?? (row[$0] as DatabaseValue).isNull }
        }

        guard let id: Int64 = value("id"), let url: String = value("url"), let priority = value("priority").flatMap(DownloadPriority.init),
            let state = value("state").flatMap(DownloadState.init), let connections: Int = value("connections"),
            (1...DownloadOrder.maxConnections).contains(connections), let isPinned: Bool = value("pinned"), let place: Double = value("place"),
            place.isFinite, let added: Double = value("added"), let bytes: Int64 = value("bytes"),
            let networkFailures: Int = value("network_failures"), let busyFailures: Int = value("busy_failures"),
            isWhole(["id", "first", "limit_rate", "ended", "bytes", "total", "network_failures", "busy_failures"]),
            ["added", "retry_at", "started", "finished"].allSatisfy({ (value($0) ?? 0.0).magnitude < 1e15 })
        else { return nil }
        let order = DownloadOrder(
            url: url, first: value("first"), priority: priority, connections: connections, limitRate: value("limit_rate"), category: value("category"),
            isPinned: isPinned)
        self.init(id: id, url: url, order: order, place: place, added: added)
        (self.state, self.bytes, self.networkFailures, self.busyFailures) = (state, bytes, networkFailures, busyFailures)
        (ended, total, fileName, retryAt) = (value("ended"), value("total"), value("file_name"), value("retry_at"))
        (started, finished, message, key) = (value("started"), value("finished"), value("message"), value("key"))
        guard state.hasEnded == (ended != nil) else { return nil }
        if let text: String = value("claim") {
            guard let claim = try? JSONDecoder().decode(DownloadClaim.self, from: Data(text.utf8)), claim.isOrdered else { return nil }
            self.claim = claim
        }
    }
}

extension DownloadClaim {
    /// Whether its runs can be.
    fileprivate var isOrdered: Bool {
        former.allSatisfy { former in
            former.present.count.isMultiple(of: 2) && zip(former.present, former.present.dropFirst()).allSatisfy { $0 <= $1 }
                && former.present.allSatisfy { (0...ByteNumber.greatest).contains($0) }
        }
    }
}
