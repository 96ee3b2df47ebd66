import CachePolicy
import HTTPModel
import Playlists

/// A download in the queue, and as a row in the database.
struct DownloadJob: Sendable, Equatable {
    /// Identifies a download among those that have not ended.
    struct Identity: Hashable {
        let url: OriginURL
        let first: Int64?
        let renditions: RenditionChoice
        let recordFor: Int64?

        init(_ order: DownloadOrder) {
            (url, first, renditions, recordFor) = (order.url, order.wantedFirst, order.renditions, order.recordFor)
        }
    }

    let id: Int64
    /// As ordered last; its `Identity` never changes.
    var order: DownloadOrder
    var state = DownloadState.waiting
    /// Of two waiting downloads with the same priority, the one with the smaller place goes first.
    var place: Double
    /// Counts up as downloads end; nil before.
    var ended: Int64?
    /// The last known progress.
    var progress = DownloadProgress()
    /// Consecutive failed attempts, by cause.
    var networkFailures = 0
    var busyFailures = 0
    /// Seconds since 1970.
    var retryAt: Double?
    var added: Double
    var started: Double?
    var finished: Double?
    var message: String?
    /// The resource's cache key, once known.
    var key: String?
    /// What was cached before its first byte; nil before that, and when it is not needed any more.
    var restorePoint: RestorePoint?

    // Not kept across processes

    /// The most bytes present at any time.
    var best: Int64 = 0
    /// When the next attempt is due, by the monotonic clock.
    var due: Double?
    /// Counts up as downloads begin.
    var begun: Int64 = 0
    var rate = TransferRate()

    init(id: Int64, order: DownloadOrder, place: Double, added: Double) {
        (self.id, self.order, self.place, self.added) = (id, order, place, added)
    }

    /// The URL that people see, which is also the key of resources without rules.
    var url: String { order.url.absolute }

    var identity: Identity { Identity(order) }

    /// The order as it is carried out.
    var dated: DownloadOrder {
        var order = order
        if order.recordFor != nil { order.recordedFrom = Int64(saturating: started ?? added) }
        return order
    }

    /// Names by which downloads of the same bytes are found: the cache key, and the URL while the key is not known.
    var sharedNames: [String] {
        guard isUsing else { return [] }
        let url = url
        guard let key, key != url else { return [url] }
        return [url, key]
    }

    /// Whether the bytes it has downloaded must stay.
    private var isUsing: Bool {
        !state.hasEnded || state == .failed && restorePoint != nil || state == .completed && order.isPinned
    }

    var failures: Int { networkFailures + busyFailures }

    /// Resets the count of failures.
    mutating func forgetFailures() { (networkFailures, busyFailures, retryAt, due) = (0, 0, nil, nil) }

    var report: DownloadReport {
        let rate = state == .downloading ? rate.bytesPerSecond : nil
        var report = DownloadReport(
            id: id, url: url, state: state, priority: order.priority, category: order.category, first: order.first,
            connections: order.connections, limitRate: order.limitRate, isPinned: order.isPinned,
            bytes: progress.bytes, total: progress.total, rate: rate,
            eta: TransferRate.seconds(for: progress.rest, at: rate),
            failures: failures, retryAt: retryAt.map { Int64(saturating: $0.rounded(.up)) },
            added: Int64(saturating: added),
            started: started.map(Int64.init(saturating:)),
            finished: finished.map(Int64.init(saturating:)), message: message, fileName: progress.fileName)
        report.take(order)
        (report.segments, report.totalSegments) = (progress.segments, progress.totalSegments)
        return report
    }

    var listingPlace: DownloadSnapshots.Place {
        switch state {
        case .downloading: .init(group: 0, priority: order.priority, order: place)
        case .waiting: .init(group: 1, priority: order.priority, order: place)
        case .paused: .init(group: 2, priority: order.priority, order: place)
        // The newest first, whatever its priority was.
        case .completed, .failed, .cancelled: .init(group: 3, priority: .high, order: -Double(ended ?? 0))
        }
    }
}

extension DownloadReport {
    /// Takes over options that differ from the default.
    fileprivate mutating func take(_ order: DownloadOrder) {
        let standard = RenditionChoice(), choice = order.renditions
        quality = choice.quality == standard.quality ? nil : choice.quality.text
        audio = choice.audio == standard.audio ? nil : choice.audio.text
        subtitles = choice.subtitles == standard.subtitles ? nil : choice.subtitles.text
        all = choice.isEverything ? true : nil
        recordFor = order.recordFor
        last = order.last
        isAtOnce = order.isAtOnce ? true : nil
        feed = order.episode?.feed
    }
}
