import CachePolicy
import Foundation
import HTTPModel
import Playlists
import Presentations

/// A download in its state at one moment: its order, its progress and its state, side by side as in JSON.
public struct Download: Codable, Sendable, Equatable, Identifiable {
    /// Identifies a download; never reused within a cache directory.
    public typealias ID = Int64

    /// The state of a download.
    public enum State: String, Codable, Sendable, CaseIterable {
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
    public enum Priority: String, Codable, Sendable, CaseIterable, Comparable {
        /// Before all other waiting downloads.
        case high
        /// In the order in which they were added.
        case normal
        /// When no other download is waiting.
        case low

        /// High priority is the smallest.
        public static func < (a: Priority, b: Priority) -> Bool { a.rank < b.rank }

        var rank: Int {
            switch self {
            case .high: 0
            case .normal: 1
            case .low: 2
            }
        }
    }

    /// Identifies the download.
    public var id: ID
    /// The downloaded URL, exact, whereas `URL` may write it differently; perhaps with secrets masked.
    public var urlText: String
    /// The state of the download.
    public var state = State.waiting
    /// Which waiting downloads go first.
    public var priority = Priority.normal
    /// The category that its order named.
    public var category: String?
    /// With `last`, which bytes of the whole arrive first; without it, all that is wanted.
    package var first: Int64?
    package var connections = 1
    package var limitRate: Int64?
    /// Whether the downloaded resource is pinned.
    public var isPinned = true
    /// The number of ordered bytes that are cached.
    public var bytes: Int64 = 0
    /// The number of ordered bytes: the resource's length, or less if only its beginning is ordered; nil while
    /// unknown.
    public var total: Int64?
    /// The recent rate in bytes per second, smoothed; nil while no bytes arrive.
    public var bytesPerSecond: Int64?
    /// Seconds until it is complete; nil while unknown.
    package var eta: Int64?
    /// The number of failed attempts in a row.
    public var failures = 0
    /// When it is tried again; nil if it only waits for its turn.
    public var retryDate: Date?
    /// Whether the schedule or a cap holds it back; nil for false.
    package var isHeld: Bool?
    /// When the schedule or a cap lets it run; nil if neither holds it back, or for good. `message` then says which.
    public var heldUntil: Date?
    /// When it was ordered.
    public var added: Date
    /// When its first byte was requested; nil before.
    public var started: Date?
    /// When it ended; nil before.
    public var finished: Date?
    /// When it first failed since it last came further. Not in JSON.
    package var failedFirst: Date?
    /// The last error, the outcome, or why it has to wait although it is its turn: one line.
    public var message: String?
    /// What its feed or playlist calls it; nil if that is not known.
    public var title: String?
    /// The file name that the origin gives; nil while unknown. Not safe to use as a file's name as it is.
    public var fileName: String?
    // Only for playlists; nil for the default
    /// `best`, `1080p`, bits per second.
    package var quality: String?
    /// Languages, `all`, `none`, `default`.
    package var audio: String?
    package var subtitles: String?
    /// Whether all renditions are wanted.
    package var all: Bool?
    /// Seconds.
    package var recordFor: Int64?
    /// The bytes at the end that arrive before the rest; nil for the usual order.
    package var last: Int64?
    /// `isAtOnce`; nil for false.
    package var ignoresLimits: Bool?
    /// The URL of the subscription that ordered it; nil if none did.
    package var feed: String?
    /// For a playlist, the number of cached segments; nil for a file.
    public var segments: Int64?
    /// For a playlist, the number of ordered segments; nil for a file, for a recording, and while unknown.
    public var totalSegments: Int64?

    /// A property with a default that is not listed compiles, and is missing from JSON.
    private enum CodingKeys: String, CodingKey {
        case id, state, priority, category, first, connections, limitRate, isPinned, bytes, total, eta, failures, isHeld
        case heldUntil, added, started, finished, message, title, fileName, quality, audio, subtitles, all, recordFor,
            last
        case feed, segments, totalSegments
        case urlText = "url", bytesPerSecond = "rate", retryDate = "retryAt", ignoresLimits = "isAtOnce"
    }

    /// A download of which no more is known yet. Programs that show downloads make one for their tests, and set the
    /// rest.
    public init(
        id: ID, url: String, state: State = .waiting, options: DownloadOptions = DownloadOptions(), added: Date = Date()
    ) {
        (self.id, urlText, self.state, self.added) = (id, url, state, added)
        take(options)
    }

    /// Takes over the options, without those that are the default where nil stands for it.
    mutating func take(_ options: DownloadOptions) {
        (priority, category, isPinned, connections) = (
            options.priority, options.category, options.isPinned, options.connections
        )
        (first, last, limitRate, recordFor) = (options.first, options.last, options.bytesPerSecond, options.recordFor)
        ignoresLimits = options.isAtOnce ? true : nil
        let standard = RenditionChoice(), choice = options.renditions
        quality = choice.quality == standard.quality ? nil : choice.quality.text
        audio = choice.audio == standard.audio ? nil : choice.audio.text
        subtitles = choice.subtitles == standard.subtitles ? nil : choice.subtitles.text
        all = choice.isEverything ? true : nil
    }

    /// The downloaded URL; nil if `URL` cannot represent it.
    public var url: URL? { URL(string: urlText) }
    /// The URL under which it is cached: a recording is a presentation beside the stream.
    package var subject: URL? {
        guard recordFor != nil, let stream = try? OriginURL(url: urlText) else { return url }
        return URL(string: RecordingName(began: (started ?? added).seconds).url(of: stream).absolute)
    }
    /// Whether neither the schedule nor a cap delays it.
    public var isAtOnce: Bool { ignoresLimits ?? false }
    /// The estimated time to completion; nil while unknown.
    public var timeLeft: Duration? {
        get { eta.map { .seconds($0) } }
        set { eta = newValue?.components.seconds }
    }
    /// The cached fraction, 0 to 1; nil while the total is unknown. For a playlist, measured in segments.
    public var fractionCompleted: Double? {
        if total == nil, let segments, let totalSegments, totalSegments > 0 {
            return min(1, Double(segments) / Double(totalSegments))
        }
        guard let total else { return state == .completed ? 1 : nil }
        return total == 0 ? 1 : min(1, Double(bytes) / Double(total))
    }
    /// The number of bytes from the beginning if no more than these are wanted; nil for the whole.
    package var wantedFirst: Int64? { last == nil ? first : nil }
}

extension Date {
    /// The second that a time is in.
    /// - Parameter seconds: since 1970.
    init(second seconds: Double) { self.init(seconds: Int64(saturating: seconds)) }

    package init(seconds: Int64) { self.init(timeIntervalSince1970: Double(seconds)) }

    /// Whole seconds since 1970, as JSON and people are told.
    package var seconds: Int64 { Int64(saturating: timeIntervalSince1970) }
}
