import CachePolicy
import DiskCache
import Foundation
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

    var id: Int64
    /// As ordered last; its `Identity` never changes.
    var order: DownloadOrder
    var state = Download.State.waiting
    /// Of two waiting downloads with the same priority, the one with the smaller place goes first.
    var place: Double
    /// Counts up as downloads end; nil before.
    var ended: Int64?
    /// The last known progress.
    var progress = DownloadProgress()
    /// Consecutive failed attempts, by cause.
    var networkFailures = 0
    var busyFailures = 0
    /// When the first of them failed, in seconds since 1970.
    var failingSince: Double?
    /// When it first ended as failed since it last came further, in seconds since 1970.
    var failedFirst: Double?
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
    /// Since when it could have been tried, but for holds and pauses, in seconds since 1970.
    var idleSince: Double?
    /// Counts up as downloads begin.
    var begun: Int64 = 0
    var rate = TransferRate()
    /// Whether it tries for all others whether its host works again (`HostRests`).
    var isScout = false
    /// Whether only a caller in this process wants it, which waits for it: it fails rather than being held.
    var isAwaited = false
    /// Whether its next attempt is as far off as that of one that is held, as its origin asked for that.
    var isPutOff = false
    /// Whether its media was found under another key, which is no failure yet.
    var hasMoved = false

    init(id: Int64, order: DownloadOrder, place: Double, added: Double) {
        (self.id, self.order, self.place, self.added) = (id, order, place, added)
    }

    /// The URL that people see, which is also the key of resources without rules.
    var url: String { order.url.absolute }

    /// What its feed, whoever ordered it, or its playlist calls it.
    var title: String? { order.title ?? progress.title }

    var identity: Identity { Identity(order) }

    /// The order as it is carried out.
    var dated: DownloadOrder {
        var order = order
        // A recording is a presentation of its own: the stream is not kept under its key.
        if order.recordFor != nil {
            order.recordedFrom = Int64(saturating: started ?? added)
        } else {
            order.key = key.map(CacheKey.init)
        }
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

    /// What was fetched is no longer there.
    mutating func forgetBytes() {
        (progress.bytes, best) = (0, 0)
        (progress.segments, progress.totalSegments) = (nil, nil)
    }

    /// Resets the count of failures.
    mutating func forgetFailures() {
        (networkFailures, busyFailures, failingSince, retryAt, due) = (0, 0, nil, nil, nil)
        (isScout, hasMoved, isPutOff) = (false, false, false)
    }

    /// Whether it waits long for its next attempt, as several have failed.
    var isHeld: Bool {
        state == .waiting && retryAt != nil && (failures >= Self.quickAttempts || isPutOff) && !isRecording
    }

    /// Whether it records a stream: what it misses does not come again.
    var isRecording: Bool { order.recordFor != nil }

    var report: Download {
        var report = Download(id: id, url: url, added: Date(second: added))
        report.take(order.options)
        (report.state, report.failures, report.message, report.feed) = (state, failures, message, order.episode?.feed)
        report.title = title
        (report.bytes, report.total, report.fileName) = (progress.bytes, progress.total, progress.fileName)
        (report.segments, report.totalSegments) = (progress.segments, progress.totalSegments)
        report.bytesPerSecond = state == .downloading ? rate.bytesPerSecond : nil
        report.eta = TransferRate.seconds(for: progress.rest, at: report.bytesPerSecond)
        report.isHeld = isHeld ? true : nil
        report.retryDate = retryAt.map { Date(second: $0.rounded(.up)) }
        (report.started, report.finished) = (started.map(Date.init(second:)), finished.map(Date.init(second:)))
        report.failedFirst = failedFirst.map(Date.init(second:))
        return report
    }

    /// As people see it.
    /// - Parameters:
    ///   - hold: what the schedule and the caps say of such a download.
    ///   - rest: that of its host.
    func report(_ hold: DownloadHold?, _ rest: HostRests.Rest?) -> Download {
        var report = report
        guard state == .waiting else { return report }
        guard due == nil else {
            // It has tried its host for all others.
            if !isRecording, rest?.isLong == true { report.isHeld = true }
            return report
        }
        if let hold {
            (report.message, report.isHeld) = (hold.reason, true)
            report.heldUntil = hold.until.map(Date.init(seconds:))
        } else if let rest, !isScout {
            (report.message, report.isHeld) = (rest.reason, rest.isLong && !isRecording ? true : nil)
            report.retryDate = Date(second: rest.retryAt.rounded(.up))
        }
        return report
    }

    var listingPlace: DownloadPlace {
        switch state {
        case .downloading: .init(group: 0, priority: order.priority, order: place)
        case .waiting: .init(group: 1, priority: order.priority, order: place)
        case .paused: .init(group: 2, priority: order.priority, order: place)
        // The newest first, whatever its priority was.
        case .completed, .failed, .cancelled: .init(group: 3, priority: .high, order: -Double(ended ?? 0))
        }
    }
}
