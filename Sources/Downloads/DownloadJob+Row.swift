import CachePolicy
import DiskCache
import Foundation
import GRDB
import HTTPModel
import Playlists

extension DownloadJob {
    static let columnNames = [
        "id", "url", "first", "priority", "connections", "limit_rate", "category", "pinned", "state", "place", "ended",
        "bytes", "total", "file_name",
        "network_failures", "busy_failures", "retry_at", "added", "started", "finished", "message", "key", "claim",
        "quality", "audio", "subtitles", "everything", "record_for", "segments", "total_segments",
        "feed", "episode", "last", "at_once",
    ]

    /// The values of the columns with these names.
    var columns: [(any DatabaseValueConvertible)?] {
        get throws {
            let restorePoint = try restorePoint.map { String(decoding: try JSONEncoder().encode($0), as: UTF8.self) }
            let report = report
            return [
                id, url, order.first, order.priority.rawValue, order.connections, order.limitRate, order.category,
                order.isPinned, state.rawValue, place, ended, progress.bytes, progress.total, progress.fileName,
                networkFailures, busyFailures, retryAt, added, started, finished, message, key, restorePoint,
                report.quality, report.audio, report.subtitles, report.all, order.recordFor, progress.segments,
                progress.totalSegments, order.episode?.feed, order.episode?.identity, order.last,
                report.isAtOnce,
            ]
        }
    }

    /// IDs of downloads count up from 1 to at most this: beyond it, `Double` skips numbers.
    static let lastID: Int64 = 1 << 53
    /// Plausible times, in seconds since 1970.
    private static let times: ClosedRange<Double> = -1e15...1e15

    /// - Throws: for a row with an invalid value, which is dropped as a whole.
    init(_ row: StoredRow) throws(RowDamage) {
        // Bounded, so that counting on from these values cannot overflow.
        func whole(_ column: String) throws(RowDamage) -> Int64 { try row.integer(column, in: 0...ByteNumber.greatest) }
        func time(_ column: String) throws(RowDamage) -> Double { try row.real(column, in: Self.times) }
        guard let priority = DownloadPriority(rawValue: try row.text("priority")) else {
            throw RowDamage(column: "priority", reason: "is not a priority")
        }
        guard let state = DownloadState(rawValue: try row.text("state")) else {
            throw RowDamage(column: "state", reason: "is not a state")
        }
        guard let url = try? OriginURL(url: try row.text("url")) else {
            throw RowDamage(column: "url", reason: "is not a URL")
        }
        var order = DownloadOrder(
            url: url, first: try row.optional("first", whole), priority: priority,
            connections: Int(try row.integer("connections", in: 1...Int64(DownloadOrder.maxConnections))),
            limitRate: try row.optional("limit_rate", whole),
            category: try row.optional("category", row.text), isPinned: try row.flag("pinned"))
        order.renditions = try RenditionChoice(row)
        order.recordFor = try row.optional("record_for") { (column) throws(RowDamage) in
            try row.integer(column, in: 1...DownloadOrder.longestRecording)
        }
        (order.last, order.isAtOnce) = (
            try row.optional("last", whole), try row.optional("at_once", row.flag) ?? false
        )
        if let feed = try row.optional("feed", row.text), let identity = try row.optional("episode", row.text) {
            order.episode = EpisodeName(feed: feed, identity: identity)
        }
        self.init(
            id: try row.integer("id", in: 1...Self.lastID), order: order,
            place: try row.real("place", in: -1e15...1e15), added: try time("added"))
        self.state = state
        (progress.bytes, progress.total, progress.fileName) = (
            try whole("bytes"), try row.optional("total", whole), try row.optional("file_name", row.text)
        )
        (progress.segments, progress.totalSegments) = (
            try row.optional("segments", whole), try row.optional("total_segments", whole)
        )
        (networkFailures, busyFailures) = (
            Int(try row.integer("network_failures", in: 0...1 << 30)),
            Int(try row.integer("busy_failures", in: 0...1 << 30))
        )
        ended = try row.optional("ended") { (column) throws(RowDamage) in try row.integer(column, in: 0...Self.lastID) }
        (retryAt, started, finished) = (
            try row.optional("retry_at", time), try row.optional("started", time), try row.optional("finished", time)
        )
        (message, key) = (try row.optional("message", row.text), try row.optional("key", row.text))
        guard state.hasEnded == (ended != nil) else {
            throw RowDamage(column: "ended", reason: "does not fit the state")
        }
        restorePoint = try row.optional("claim") { (column) throws(RowDamage) in
            try row.decoded(RestorePoint.self, column)
        }
        guard restorePoint?.isOrdered != false else {
            throw RowDamage(column: "claim", reason: "has invalid runs")
        }
    }
}

extension RenditionChoice {
    fileprivate init(_ row: StoredRow) throws(RowDamage) {
        func languages(_ column: String) throws(RowDamage) -> Languages? {
            try row.optional(column) { (column) throws(RowDamage) in
                guard let value = Languages(try row.text(column)) else {
                    throw RowDamage(column: column, reason: "is not a valid choice")
                }
                return value
            }
        }
        self.init()
        quality =
            try row.optional("quality") { (column) throws(RowDamage) in
                guard let value = Quality(try row.text(column)) else {
                    throw RowDamage(column: column, reason: "is not a valid choice")
                }
                return value
            } ?? quality
        audio = try languages("audio") ?? audio
        subtitles = try languages("subtitles") ?? subtitles
        isEverything = try row.optional("everything", row.flag) ?? false
    }
}

extension RestorePoint {
    /// Whether its runs are valid.
    fileprivate var isOrdered: Bool {
        former.allSatisfy { former in
            former.present.count.isMultiple(of: 2)
                && zip(former.present, former.present.dropFirst()).allSatisfy { $0 <= $1 }
                && former.present.allSatisfy { (0...ByteNumber.greatest).contains($0) }
        }
    }
}
