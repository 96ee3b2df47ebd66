import CachePolicy

/// What becomes of a download.
package enum DownloadState: String, Codable, Sendable, CaseIterable {
    /// For its turn, or for its next attempt.
    case waiting
    case downloading
    case paused
    case completed, failed, cancelled

    /// Whether it belongs to the history. One that has failed can be tried again.
    package var hasEnded: Bool { self == .completed || self == .failed || self == .cancelled }
}

/// Who goes first of those that wait.
package enum DownloadPriority: String, Codable, Sendable, CaseIterable, Comparable {
    case high, normal, low

    /// The one that goes first is the smaller.
    package static func < (a: DownloadPriority, b: DownloadPriority) -> Bool { a.rank < b.rank }

    var rank: Int {
        switch self {
        case .high: 0
        case .normal: 1
        case .low: 2
        }
    }
}

/// A download as it is told at a moment: what was ordered, how far it is, and what has become of it, side by side as
/// JSON has them. Sizes are bytes, times are seconds since 1970.
package struct DownloadReport: Codable, Sendable, Equatable, Identifiable {
    package var id: Int64
    /// As `OriginURL.absolute` writes it, perhaps without its secrets.
    package var url: String
    package var state: DownloadState
    package var priority: DownloadPriority
    package var category: String?
    package var first: Int64?
    package var connections: Int
    package var limitRate: Int64?
    package var isPinned: Bool
    /// Of what is wanted, so much is cached.
    package var bytes: Int64
    /// What is wanted: the resource's length, or less with `first`; nil while unknown.
    package var total: Int64?
    /// Bytes per second of late; nil while none come.
    package var rate: Int64?
    /// Seconds until it has all; nil while that cannot be told.
    package var eta: Int64?
    /// Attempts in a row that have failed.
    package var failures: Int
    /// When it is tried again; nil where it only waits for its turn.
    package var retryAt: Int64?
    package var added: Int64
    /// When its first byte was asked for; nil before.
    package var started: Int64?
    /// When it ended; nil before.
    package var finished: Int64?
    /// What went wrong last, or what became of it.
    package var message: String?
    /// How the origin calls the file, in a field or by its URL; nil while unknown. Not yet safe to be a file's name.
    package var fileName: String?
    // Of a playlist alone, and each nil where it is as nobody has asked
    /// `best`, `1080p`, bits per second.
    package var quality: String?
    /// Languages, `all`, `none`, `default`.
    package var audio: String?
    package var subtitles: String?
    /// Whether all renditions are wanted.
    package var all: Bool?
    /// Seconds.
    package var recordFor: Int64?
    /// So many of its segments are cached; nil for a file.
    package var segments: Int64?
    /// Of so many; nil while unknown, and of a recording.
    package var totalSegments: Int64?
}

extension DownloadReport {
    /// One of which nothing is known yet.
    package init(id: Int64, url: String, added: Int64) {
        self.init(
            id: id, url: url, state: .waiting, priority: .normal, connections: 1, isPinned: true, bytes: 0,
            failures: 0, added: added)
    }
}

/// All downloads together.
package struct DownloadSummary: Codable, Sendable, Equatable {
    package var waiting = 0
    package var downloading = 0
    package var paused = 0
    /// Of all that have not ended, so much is cached.
    package var bytes: Int64 = 0
    /// What is wanted of them; nil while it is unknown of one.
    package var total: Int64? = 0
    /// Bytes per second of late.
    package var rate: Int64 = 0
    /// Seconds; nil while that cannot be told.
    package var eta: Int64?
    package var settings = DownloadSettings()
    /// Whether nothing is begun, as no origin is asked. Up to date wherever some have not ended.
    package var isOffline = false

    package init() {}
}

/// What holds for all downloads.
package struct DownloadSettings: Codable, Sendable, Equatable {
    package static let maxActiveRange = 1...64

    /// How many run at once.
    package var maxActive = 3
    /// Bytes per second of all together; nil for no limit.
    package var limitRate: Int64?

    package init() {}
}

/// A listing of downloads, in the order in which they go, those that have ended last.
package struct DownloadListing: Codable, Sendable, Equatable {
    package var downloads: [DownloadReport]
    package var summary: DownloadSummary

    package init(downloads: [DownloadReport], summary: DownloadSummary) {
        (self.downloads, self.summary) = (downloads, summary)
    }
}

/// What is to be done with downloads that are there. Of several members all are done, in this order.
package struct DownloadChange: Codable, Sendable, Equatable {
    package enum Action: String, Codable, Sendable, CaseIterable { case pause, resume, cancel, retry }

    package var action: Action?
    package var priority: DownloadPriority?
    /// The place among those of its priority that wait; 0 is the first. For one download only.
    package var position: Int?
    /// Bytes per second; 0 for no limit.
    package var limitRate: Int64?

    package init(
        action: Action? = nil, priority: DownloadPriority? = nil, position: Int? = nil, limitRate: Int64? = nil
    ) {
        (self.action, self.priority, self.position, self.limitRate) = (action, priority, position, limitRate)
    }
}

/// Which downloads.
package enum DownloadSelection: Sendable, Equatable {
    /// All for which the change is possible. Ended ones are meant only where they are to be tried again, and then not
    /// the cancelled ones.
    case all
    /// All of these, or none.
    case ids([Int64])
    /// As `all`, but of these alone. The others of them stay as they are, and what is not there is passed over.
    case possible([Int64])
}

/// Why a download cannot be ordered or changed. The description is one line that says what to do.
package struct DownloadError: AdvisedError, Sendable, Equatable {
    package enum Kind: Sendable, Equatable {
        /// There is no such download.
        case unknown
        /// It cannot be in this state.
        case conflict
        /// What was asked for makes no sense.
        case invalid
        /// The database cannot be read or written.
        case disk
    }

    package let kind: Kind
    package let reason: String
    package let advice: Advice?

    package init(_ kind: Kind, _ reason: String, _ advice: Advice? = nil) {
        (self.kind, self.reason, self.advice) = (kind, reason, advice)
    }
}
