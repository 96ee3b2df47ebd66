import CachePolicy
import HTTPModel

/// A download as the queue keeps it, and its row in the database.
struct DownloadJob: Sendable, Equatable {
    /// What no two downloads have in common that have not ended.
    struct Identity: Hashable {
        var url: String
        var first: Int64?
    }

    let id: Int64
    /// As `OriginURL.absolute` writes it.
    let url: String
    let first: Int64?
    var priority: DownloadPriority
    var connections: Int
    var limitRate: Int64?
    var category: String?
    var isPinned: Bool
    var state = DownloadState.waiting
    /// Of two that wait with the same priority, the one whose place is the smaller goes first.
    var place: Double
    /// Counts up as downloads end; nil before.
    var ended: Int64?
    var bytes: Int64 = 0
    var total: Int64?
    var fileName: String?
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

    init(id: Int64, url: String, order: DownloadOrder, place: Double, added: Double) {
        (self.id, self.url, self.place, self.added) = (id, url, place, added)
        (first, priority, connections, limitRate) = (order.first, order.priority, order.connections, order.limitRate)
        (category, isPinned) = (order.category, order.isPinned)
    }

    var identity: Identity { Identity(url: url, first: first) }

    /// By which others are found that want the same bytes: the same key means that, and the same URL where the key is
    /// not known yet.
    var sharedNames: [String] {
        guard isUsing else { return [] }
        guard let key, key != url else { return [url] }
        return [url, key]
    }

    /// Whether it wants what it has brought to stay.
    private var isUsing: Bool {
        !state.hasEnded || state == .failed && restorePoint != nil || state == .completed && isPinned
    }

    var failures: Int { networkFailures + busyFailures }

    /// As if none of its attempts had failed.
    mutating func forgetFailures() { (networkFailures, busyFailures, retryAt, due) = (0, 0, nil, nil) }

    var report: DownloadReport {
        let rate = state == .downloading ? rate.bytesPerSecond : nil
        return DownloadReport(
            id: id, url: url, state: state, priority: priority, category: category, first: first,
            connections: connections, limitRate: limitRate,
            isPinned: isPinned, bytes: bytes, total: total, rate: rate,
            eta: TransferRate.seconds(for: total.map { $0 -| bytes }, at: rate),
            failures: failures, retryAt: retryAt.map { Int64(saturating: $0.rounded(.up)) },
            added: Int64(saturating: added),
            started: started.map(Int64.init(saturating:)),
            finished: finished.map(Int64.init(saturating:)), message: message, fileName: fileName)
    }

    var listingPlace: DownloadSnapshots.Place {
        switch state {
        case .downloading: .init(group: 0, priority: priority, order: place)
        case .waiting: .init(group: 1, priority: priority, order: place)
        case .paused: .init(group: 2, priority: priority, order: place)
        // The newest first, whatever its priority was.
        case .completed, .failed, .cancelled: .init(group: 3, priority: .high, order: -Double(ended ?? 0))
        }
    }
}
