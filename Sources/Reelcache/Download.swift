import CachePolicy
import Downloads
import Foundation
import HTTPModel
import Playlists

/// A download as it is at a moment.
public struct Download: Sendable, Equatable, Identifiable {
    /// Names a download for as long as the cache directory is.
    public typealias ID = Int64

    /// What becomes of a download.
    public enum State: String, Sendable, CaseIterable {
        /// For its turn, or for its next attempt.
        case waiting
        /// Bytes come, or are asked for.
        case downloading
        /// Somebody has paused it. Its bytes are kept.
        case paused
        /// All that was wanted is cached.
        case completed
        /// It does not go on by itself. Its bytes are kept, and `retry` goes on from them.
        case failed
        /// Somebody has cancelled it. Its bytes are gone, but for what was there before or is used by others.
        case cancelled

        /// Whether it belongs to the history.
        public var hasEnded: Bool { self == .completed || self == .failed || self == .cancelled }
    }

    /// Who goes first of those that wait.
    public enum Priority: String, Sendable, CaseIterable {
        /// Before all others that wait.
        case high
        /// In the order in which they came.
        case normal
        /// When nobody else waits.
        case low
    }

    let report: DownloadReport

    init(_ report: DownloadReport) { self.report = report }

    /// For tests of programs that show downloads. Each value is that of the property of its name; `url` is `urlText`.
    public init(
        id: ID, url: String, state: State, options: DownloadOptions = DownloadOptions(), bytes: Int64 = 0,
        total: Int64? = nil, bytesPerSecond: Int64? = nil,
        timeLeft: Duration? = nil, added: Date = Date(), started: Date? = nil, finished: Date? = nil,
        message: String? = nil, fileName: String? = nil, segments: Int64? = nil, totalSegments: Int64? = nil
    ) {
        let seconds = { (date: Date) in Int64(saturating: date.timeIntervalSince1970) }
        var report = DownloadReport(id: id, url: url, added: seconds(added))
        (report.state, report.priority) = (DownloadState(state), DownloadPriority(options.priority))
        (report.first, report.connections, report.limitRate) = (
            options.first, options.connections, options.bytesPerSecond
        )
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

    /// Names it.
    public var id: ID { report.id }
    /// The URL that is downloaded, exact, as `URL` may write it otherwise.
    public var urlText: String { report.url }
    /// The same; nil where `URL` cannot hold it.
    public var url: URL? { URL(string: report.url) }
    /// What becomes of it.
    public var state: State { State(report.state) }
    /// Who goes first of those that wait.
    public var priority: Priority { Priority(report.priority) }
    /// The word that it was given with its order.
    public var category: String? { report.category }
    /// Whether what is downloaded is kept from being evicted.
    public var isPinned: Bool { report.isPinned }
    /// How many bytes of what is wanted are cached.
    public var bytes: Int64 { report.bytes }
    /// How many bytes are wanted: the resource's length, or less where only its beginning is; nil while unknown.
    public var total: Int64? { report.total }
    /// Of a playlist: how many of its segments are cached; nil for a file.
    public var segments: Int64? { report.segments }
    /// Of a playlist: how many segments are wanted; nil for a file, for a recording, and while unknown.
    public var totalSegments: Int64? { report.totalSegments }
    /// How much of it is cached, 0 to 1; nil while the total is unknown. Of a playlist, in segments.
    public var fractionCompleted: Double? {
        if report.total == nil, let segments, let totalSegments, totalSegments > 0 {
            return min(1, Double(segments) / Double(totalSegments))
        }
        guard let total else { return state == .completed ? 1 : nil }
        return total == 0 ? 1 : min(1, Double(bytes) / Double(total))
    }
    /// Bytes per second of late, smoothed; nil while none come.
    public var bytesPerSecond: Int64? { report.rate }
    /// How long it takes until it has all; nil while that cannot be told.
    public var timeLeft: Duration? { report.eta.map { .seconds($0) } }
    /// How many attempts in a row have failed.
    public var failures: Int { report.failures }
    /// When it is tried again; nil where it only waits for its turn.
    public var retryDate: Date? { report.retryAt.map(Self.date) }
    /// When it was ordered.
    public var added: Date { Self.date(report.added) }
    /// When its first byte was asked for; nil before.
    public var started: Date? { report.started.map(Self.date) }
    /// When it ended; nil before.
    public var finished: Date? { report.finished.map(Self.date) }
    /// What went wrong last, or what became of it: one line.
    public var message: String? { report.message }
    /// How the origin calls the file; nil while unknown. Not safe to be a file's name as it is.
    public var fileName: String? { report.fileName }

    private static func date(_ seconds: Int64) -> Date { Date(timeIntervalSince1970: Double(seconds)) }
}

/// How something is downloaded.
public struct DownloadOptions: Sendable, Equatable {
    /// Only so many bytes of its beginning; nil for the whole.
    public var first: Int64?
    /// Who goes first of those that wait.
    public var priority = Download.Priority.normal
    /// How many connections to its origin it may have, 1 to 16.
    public var connections = 1
    /// Bytes per second; nil for no limit of its own.
    public var bytesPerSecond: Int64?
    /// A word of the user's by which the history can be searched.
    public var category: String?
    /// Whether what is downloaded is kept from being evicted.
    public var isPinned = true
    /// Of a playlist (HLS, DASH): which renditions come with it.
    public var renditions = Renditions()
    /// Records a live stream for so long, a week at most; nil for none. `Download.message` says at the end where it
    /// plays.
    public var recordingTime: Duration?

    /// The whole, in its turn, over one connection, pinned.
    public init() {}

    /// The same but for what `change` changes.
    public init(_ change: (inout DownloadOptions) -> Void) { change(&self) }
}

extension CacheDownloads {
    /// All downloads that have not ended, together.
    public struct Totals: Sendable, Equatable {
        /// How many wait for their turn.
        public let waiting: Int
        /// How many are under way.
        public let downloading: Int
        /// How many are paused.
        public let paused: Int
        /// How many bytes of what is wanted are cached.
        public let bytes: Int64
        /// How many bytes are wanted; nil while that is unknown of one of them.
        public let total: Int64?
        /// Bytes per second of late.
        public let bytesPerSecond: Int64
        /// How long it takes until all are done; nil while that cannot be told.
        public let timeLeft: Duration?

        /// For tests of programs that show downloads. Each value is that of the property of its name.
        public init(
            waiting: Int = 0, downloading: Int = 0, paused: Int = 0, bytes: Int64 = 0, total: Int64? = 0,
            bytesPerSecond: Int64 = 0, timeLeft: Duration? = nil
        ) {
            (self.waiting, self.downloading, self.paused) = (waiting, downloading, paused)
            (self.bytes, self.total, self.bytesPerSecond, self.timeLeft) = (bytes, total, bytesPerSecond, timeLeft)
        }

        init(_ summary: DownloadSummary) {
            (waiting, downloading, paused) = (summary.waiting, summary.downloading, summary.paused)
            (bytes, total, bytesPerSecond) = (summary.bytes, summary.total, summary.rate)
            timeLeft = summary.eta.map { .seconds($0) }
        }

        /// How much is cached of all together, 0 to 1; nil while the total is unknown, or nothing is wanted.
        public var fractionCompleted: Double? {
            guard let total, total > 0 else { return nil }
            return min(1, Double(bytes) / Double(total))
        }
    }
}

/// What happens to a download.
public enum DownloadEvent: Sendable, Equatable {
    /// It has come further, or its state is another. Of several in a row, a reader who is slow sees the last.
    case progress(Download)
    /// All that was wanted is cached. The last event.
    ///
    /// `localURL` is where it can be played from, as `MediaCache.localURL(of:)` gives it; nil where there is no such
    /// place, and that throws why: such as where only the beginning was wanted, which plays through the proxy alone,
    /// and none runs.
    case completed(Download, localURL: URL?)
    /// It has ended without success, was cancelled, or cannot be watched any more. The last event.
    case failed(CacheError)
}

// MARK: - What the modules below call these

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
            url: url, first: options.first, priority: DownloadPriority(options.priority),
            connections: options.connections,
            limitRate: options.bytesPerSecond, category: options.category, isPinned: options.isPinned,
            renditions: RenditionChoice(options.renditions),
            recordFor: options.recordingTime.map { Int64(saturating: $0.inSeconds.rounded(.up)) })
    }
}
