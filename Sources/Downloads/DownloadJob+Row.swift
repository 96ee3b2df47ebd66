import CachePolicy
import DiskCache
import Foundation
import HTTPModel
import Playlists

extension DownloadJob {
    /// IDs of downloads count up from 1 to at most this: beyond it, `Double` skips numbers.
    static let lastID: Int64 = 1 << 53

    /// The table `download`.
    static let columns: [TableColumn<DownloadJob>] = [
        .init("id", \.id, .integer(in: 1...lastID)),
        .init("url", \.order.url, .url),
        .init("first", \.order.options.first, .whole),
        .init("priority", \.order.options.priority, .name),
        .init("connections", \.order.options.connections, .integer(in: 1...DownloadOptions.maxConnections)),
        .init("limit_rate", \.order.options.bytesPerSecond, .whole),
        .init("category", \.order.options.category, .text),
        .init("pinned", \.order.options.isPinned, .flag),
        .init("state", \.state, .name),
        .init("place", \.place, .time),
        .init("ended", \.ended, .integer(in: 0...lastID)),
        .init("bytes", \.progress.bytes, .whole),
        .init("total", \.progress.total, .whole),
        .init("file_name", \.progress.fileName, .text),
        .init("network_failures", \.networkFailures, .integer(in: 0...1 << 30)),
        .init("busy_failures", \.busyFailures, .integer(in: 0...1 << 30)),
        .init("retry_at", \.retryAt, .time),
        .init("added", \.added, .time),
        .init("started", \.started, .time),
        .init("finished", \.finished, .time),
        .init("message", \.message, .text),
        .init("key", \.key, .text),
        .init("claim", \.restorePoint, StoredForm<RestorePoint>.json),
        .init("quality", \.order.options.renditions.quality, .text({ .init($0) }, { $0.text }), nullFor: .best),
        .init("audio", \.order.options.renditions.audio, .text({ .init($0) }, { $0.text }), nullFor: .standard),
        .init("subtitles", \.order.options.renditions.subtitles, .text({ .init($0) }, { $0.text }), nullFor: .none),
        .init("everything", \.order.options.renditions.isEverything, .flag, nullFor: false),
        .init("record_for", \.order.options.recordFor, .integer(in: 1...DownloadOptions.longestRecording)),
        .init("segments", \.progress.segments, .whole),
        .init("total_segments", \.progress.totalSegments, .whole),
        .init("feed") {
            $0.order.episode?.feed
        } read: { (row, job) throws(RowDamage) in
            guard let feed = try row.optional("feed", row.text), let identity = try row.optional("episode", row.text)
            else { return }
            job.order.episode = EpisodeName(feed: feed, identity: identity)
        },
        .init("episode", stored: { $0.order.episode?.identity }, read: { _, _ in }),
        .init("last", \.order.options.last, .whole),
        .init("failing_since", \.failingSince, .time),
        .init("failed_first", \.failedFirst, .time),
        // A title that the playlist gave outlives the session, too.
        .init(
            "title", stored: { $0.title },
            read: { (row, job) throws(RowDamage) in
                job.order.title = try row.optional("title", row.text)
            }),
        .init("at_once", \.order.options.isAtOnce, .flag, nullFor: false),
    ]

    /// - Throws: for a row with an invalid value, which is dropped as a whole.
    init(_ row: StoredRow) throws(RowDamage) {
        let url = try StoredForm<OriginURL>.url.read(row, "url")
        self.init(id: 0, order: DownloadOrder(url: url), place: 0, added: 0)
        for column in Self.columns { try column.read(row, &self) }
        guard state.hasEnded == (ended != nil) else {
            throw RowDamage(column: "ended", reason: "does not fit the state")
        }
        guard restorePoint?.isOrdered != false else {
            throw RowDamage(column: "claim", reason: "has invalid runs")
        }
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
