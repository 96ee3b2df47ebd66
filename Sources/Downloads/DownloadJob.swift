import CachePolicy
import HTTPModel
import Playlists

/// A download as the queue keeps it, and its row in the database.
struct DownloadJob: Sendable, Equatable {
    /// What no two downloads have in common that have not ended.
    struct Identity: Hashable {
        let url: OriginURL
        let first: Int64?
        let renditions: RenditionChoice
        let recordFor: Int64?

        init(_ order: DownloadOrder) {
            (url, first, renditions, recordFor) = (order.url, order.first, order.renditions, order.recordFor)
        }
    }

    let id: Int64
    /// As it was given last. Which bytes are meant (`Identity`) stays.
    var order: DownloadOrder
    var state = DownloadState.waiting
    /// Of two that wait with the same priority, the one whose place is the smaller goes first.
    var place: Double
    /// Counts up as downloads end; nil before.
    var ended: Int64?
    /// As far as it is known to be.
    var progress = DownloadProgress()
    /// Attempts in a row that have failed, by what they failed of.
    var networkFailures = 0
    var busyFailures = 0
    /// Seconds since 1970.
    var retryAt: Double?
    var added: Double
    var started: Double?
    var finished: Double?
    var message: String?
    /// The resource's cache key, once that is known.
    var key: String?
    /// What was cached before its first byte; nil before, and when nobody needs to know it any more.
    var restorePoint: RestorePoint?

    // What a new process does not know any more

    /// The most bytes that were there.
    var best: Int64 = 0
    /// When it is tried again, by the clock that never goes back.
    var due: Double?
    /// Counts up as downloads are begun.
    var begun: Int64 = 0
    var rate = TransferRate()

    init(id: Int64, order: DownloadOrder, place: Double, added: Double) {
        (self.id, self.order, self.place, self.added) = (id, order, place, added)
    }

    /// As it is known by to people, and to resources whose key is their URL.
    var url: String { order.url.absolute }

    var identity: Identity { Identity(order) }

    /// As it is carried out.
    var dated: DownloadOrder {
        var order = order
        if order.recordFor != nil { order.recordedFrom = Int64(saturating: started ?? added) }
        return order
    }

    /// By which others are found that want the same bytes: the same key means that, and the same URL where the key is
    /// not known yet.
    var sharedNames: [String] {
        guard isUsing else { return [] }
        let url = url
        guard let key, key != url else { return [url] }
        return [url, key]
    }

    /// Whether it wants what it has brought to stay.
    private var isUsing: Bool {
        !state.hasEnded || state == .failed && restorePoint != nil || state == .completed && order.isPinned
    }

    var failures: Int { networkFailures + busyFailures }

    /// As if none of its attempts had failed.
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

    /// As it is told.
    var snapshot: DownloadSnapshots.Entry { .init(report: report, url: order.url, place: listingPlace) }

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
    /// What of a playlist was ordered, where it is not what comes without being asked for.
    fileprivate mutating func take(_ order: DownloadOrder) {
        let standard = RenditionChoice(), choice = order.renditions
        quality = choice.quality == standard.quality ? nil : choice.quality.text
        audio = choice.audio == standard.audio ? nil : choice.audio.text
        subtitles = choice.subtitles == standard.subtitles ? nil : choice.subtitles.text
        all = choice.isEverything ? true : nil
        recordFor = order.recordFor
    }
}
