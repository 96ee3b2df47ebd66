import CachePolicy
import Downloads
import Foundation
import HTTPModel
import Playlists

/// A download in its state at one moment.
public struct Download: Sendable, Equatable, Identifiable {
    /// Identifies a download; never reused within a cache directory.
    public typealias ID = Int64

    /// The state of a download.
    public enum State: String, Sendable, CaseIterable {
        /// Waits for its turn, or for its next attempt.
        case waiting
        /// Receives bytes, or requests them.
        case downloading
        /// Paused by a person or program. Its bytes are kept.
        case paused
        /// Everything ordered is cached.
        case completed
        /// Failed, and does not continue by itself. Its bytes are kept, and `retry` continues from them.
        case failed
        /// Cancelled by a person or program. Its bytes are removed, except those that were cached before it or that
        /// others use.
        case cancelled

        /// Whether it belongs to the history.
        public var hasEnded: Bool { self == .completed || self == .failed || self == .cancelled }
    }

    /// Which waiting downloads go first.
    public enum Priority: String, Sendable, CaseIterable {
        /// Before all other waiting downloads.
        case high
        /// In the order in which they were added.
        case normal
        /// When no other download is waiting.
        case low
    }

    let report: DownloadReport

    init(_ report: DownloadReport) { self.report = report }

    /// For tests of programs that show downloads. Each argument is the property of the same name; `url` is
    /// `urlText`.
    public init(
        id: ID, url: String, state: State, options: DownloadOptions = DownloadOptions(), bytes: Int64 = 0,
        total: Int64? = nil, bytesPerSecond: Int64? = nil,
        timeLeft: Duration? = nil, added: Date = Date(), started: Date? = nil, finished: Date? = nil,
        message: String? = nil, fileName: String? = nil, segments: Int64? = nil, totalSegments: Int64? = nil
    ) {
        let seconds = { (date: Date) in Int64(saturating: date.timeIntervalSince1970) }
        var report = DownloadReport(id: id, url: url, added: seconds(added))
        (report.state, report.priority) = (DownloadState(state), DownloadPriority(options.priority))
        (report.first, report.last, report.connections, report.limitRate) = (
            options.first, options.last, options.connections, options.bytesPerSecond
        )
        report.isAtOnce = options.isAtOnce ? true : nil
        (report.category, report.isPinned) = (options.category, options.isPinned)
        (report.bytes, report.total, report.rate, report.eta) = (
            bytes, total, bytesPerSecond, timeLeft?.components.seconds
        )
        (report.started, report.finished, report.message, report.fileName) = (
            started.map(seconds), finished.map(seconds), message, fileName
        )
        (report.segments, report.totalSegments) = (segments, totalSegments)
        self.report = report
    }

    /// Identifies the download.
    public var id: ID { report.id }
    /// The downloaded URL, exact, whereas `URL` may write it differently.
    public var urlText: String { report.url }
    /// The same; nil if `URL` cannot represent it.
    public var url: URL? { URL(string: report.url) }
    /// The state of the download.
    public var state: State { State(report.state) }
    /// Which waiting downloads go first.
    public var priority: Priority { Priority(report.priority) }
    /// The category that its order named.
    public var category: String? { report.category }
    /// Whether the downloaded resource is pinned.
    public var isPinned: Bool { report.isPinned }
    /// The number of ordered bytes that are cached.
    public var bytes: Int64 { report.bytes }
    /// The number of ordered bytes: the resource's length, or less if only its beginning is ordered; nil while
    /// unknown.
    public var total: Int64? { report.total }
    /// For a playlist, the number of cached segments; nil for a file.
    public var segments: Int64? { report.segments }
    /// For a playlist, the number of ordered segments; nil for a file, for a recording, and while unknown.
    public var totalSegments: Int64? { report.totalSegments }
    /// The cached fraction, 0 to 1; nil while the total is unknown. For a playlist, measured in segments.
    public var fractionCompleted: Double? {
        if report.total == nil, let segments, let totalSegments, totalSegments > 0 {
            return min(1, Double(segments) / Double(totalSegments))
        }
        guard let total else { return state == .completed ? 1 : nil }
        return total == 0 ? 1 : min(1, Double(bytes) / Double(total))
    }
    /// The recent rate in bytes per second, smoothed; nil while no bytes arrive.
    public var bytesPerSecond: Int64? { report.rate }
    /// The estimated time to completion; nil while unknown.
    public var timeLeft: Duration? { report.eta.map { .seconds($0) } }
    /// The number of failed attempts in a row.
    public var failures: Int { report.failures }
    /// When it is tried again; nil if it only waits for its turn.
    public var retryDate: Date? { report.retryAt.map(Self.date) }
    /// When the schedule or a cap lets it run; nil if neither holds it back, or for good. `message` then says which.
    public var heldUntil: Date? { report.heldUntil.map(Self.date) }
    /// Whether neither the schedule nor a cap delays it.
    public var isAtOnce: Bool { report.isAtOnce ?? false }
    /// When it was ordered.
    public var added: Date { Self.date(report.added) }
    /// When its first byte was requested; nil before.
    public var started: Date? { report.started.map(Self.date) }
    /// When it ended; nil before.
    public var finished: Date? { report.finished.map(Self.date) }
    /// The last error, the outcome, or why it has to wait although it is its turn: one line.
    public var message: String? { report.message }
    /// The file name that the origin gives; nil while unknown. Not safe to use as a file's name as it is.
    public var fileName: String? { report.fileName }

    private static func date(_ seconds: Int64) -> Date { Date(timeIntervalSince1970: Double(seconds)) }
}

/// The options of a download.
public struct DownloadOptions: Sendable, Equatable {
    /// The number of bytes to download from the beginning; nil for the whole resource. With `last`, the number of those
    /// that arrive first.
    public var first: Int64?
    /// The number of bytes at the end that arrive right after the `first`, before the rest: a file whose index is at its
    /// end then plays at once. Nil for the usual order. With it, the whole resource is downloaded.
    public var last: Int64?
    /// Which waiting downloads go first.
    public var priority = Download.Priority.normal
    /// The most connections to its origin, 1 to 16.
    public var connections = 1
    /// The rate limit in bytes per second; nil for none.
    public var bytesPerSecond: Int64?
    /// A label of the user's, by which the history can be filtered.
    public var category: String?
    /// Whether to pin the downloaded resource.
    public var isPinned = true
    /// Whether to download now, whatever the schedule and the caps say. The bytes are counted all the same.
    public var isAtOnce = false
    /// For a playlist (HLS, DASH), the renditions to download.
    public var renditions = Renditions()
    /// How long to record a live stream, up to a week; nil not to record. At the end `Download.message` tells where
    /// the recording plays.
    public var recordingTime: Duration?

    /// The whole resource, in normal priority, over one connection, pinned.
    public init() {}

    /// The defaults with the changes that `change` makes.
    public init(_ change: (inout DownloadOptions) -> Void) { change(&self) }
}

extension CacheDownloads {
    /// The totals of all downloads that have not ended.
    public struct Totals: Sendable, Equatable {
        /// The number of waiting downloads.
        public let waiting: Int
        /// The number of running downloads.
        public let downloading: Int
        /// The number of paused downloads.
        public let paused: Int
        /// The number of ordered bytes that are cached.
        public let bytes: Int64
        /// The number of ordered bytes; nil while that of any download is unknown.
        public let total: Int64?
        /// The recent rate in bytes per second.
        public let bytesPerSecond: Int64
        /// The estimated time until all are completed; nil while unknown.
        public let timeLeft: Duration?
        /// Why none of the waiting ones begins, such as `outside of the schedule until 01:00`; nil if they may.
        public let hold: String?
        /// When that ends; nil if it does not end by itself.
        public let heldUntil: Date?
        /// The number of bytes that downloads have fetched from origins in this day of local time.
        public let fetchedToday: Int64
        /// The number of bytes that downloads have fetched from origins in this month of local time.
        public let fetchedThisMonth: Int64

        /// For tests of programs that show downloads. Each argument is the property of the same name.
        public init(
            waiting: Int = 0, downloading: Int = 0, paused: Int = 0, bytes: Int64 = 0, total: Int64? = 0,
            bytesPerSecond: Int64 = 0, timeLeft: Duration? = nil, hold: String? = nil, heldUntil: Date? = nil,
            fetchedToday: Int64 = 0, fetchedThisMonth: Int64 = 0
        ) {
            (self.hold, self.heldUntil) = (hold, heldUntil)
            (self.fetchedToday, self.fetchedThisMonth) = (fetchedToday, fetchedThisMonth)
            (self.waiting, self.downloading, self.paused) = (waiting, downloading, paused)
            (self.bytes, self.total, self.bytesPerSecond, self.timeLeft) = (bytes, total, bytesPerSecond, timeLeft)
        }

        init(_ summary: DownloadSummary) {
            (waiting, downloading, paused) = (summary.waiting, summary.downloading, summary.paused)
            (bytes, total, bytesPerSecond) = (summary.bytes, summary.total, summary.rate)
            timeLeft = summary.eta.map { .seconds($0) }
            (hold, heldUntil) = (
                summary.hold, summary.heldUntil.map { Date(timeIntervalSince1970: Double($0)) }
            )
            (fetchedToday, fetchedThisMonth) = (summary.usage?.today ?? 0, summary.usage?.thisMonth ?? 0)
        }

        /// The cached fraction of all together, 0 to 1; nil while the total is unknown or nothing is ordered.
        public var fractionCompleted: Double? {
            guard let total, total > 0 else { return nil }
            return min(1, Double(bytes) / Double(total))
        }
    }
}

/// An event of a download.
public enum DownloadEvent: Sendable, Equatable {
    /// It has progressed, or its state has changed. Of several such events in a row, a slow reader gets the last.
    case progress(Download)
    /// Everything ordered is cached. The last event.
    ///
    /// `localURL` is the URL to play it from, as `MediaCache.localURL(of:)` returns it; nil if there is none, for
    /// the reason that function throws. For example, a download of the beginning alone plays only through the proxy,
    /// and none may be running.
    case completed(Download, localURL: URL?)
    /// It has failed, was cancelled, or cannot be watched any more. The last event.
    case failed(CacheError)
}

// MARK: - The counterparts in other modules

extension Download.State {
    init(_ state: DownloadState) {
        switch state {
        case .waiting: self = .waiting
        case .downloading: self = .downloading
        case .paused: self = .paused
        case .completed: self = .completed
        case .failed: self = .failed
        case .cancelled: self = .cancelled
        }
    }
}

extension DownloadState {
    init(_ state: Download.State) {
        switch state {
        case .waiting: self = .waiting
        case .downloading: self = .downloading
        case .paused: self = .paused
        case .completed: self = .completed
        case .failed: self = .failed
        case .cancelled: self = .cancelled
        }
    }
}

extension Download.Priority {
    init(_ priority: DownloadPriority) {
        switch priority {
        case .high: self = .high
        case .normal: self = .normal
        case .low: self = .low
        }
    }
}

extension DownloadPriority {
    init(_ priority: Download.Priority) {
        switch priority {
        case .high: self = .high
        case .normal: self = .normal
        case .low: self = .low
        }
    }
}

extension DownloadOrder {
    init(_ url: OriginURL, _ options: DownloadOptions) {
        self.init(
            url: url, first: options.first, last: options.last, priority: DownloadPriority(options.priority),
            connections: options.connections,
            limitRate: options.bytesPerSecond, category: options.category, isPinned: options.isPinned,
            isAtOnce: options.isAtOnce, renditions: RenditionChoice(options.renditions),
            recordFor: options.recordingTime.map { Int64(saturating: $0.inSeconds.rounded(.up)) })
    }
}
