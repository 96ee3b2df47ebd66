import CachePolicy

/// The state of a download.
package enum DownloadState: String, Codable, Sendable, CaseIterable {
    /// Waits for its turn or its next attempt.
    case waiting
    case downloading
    case paused
    case completed, failed, cancelled

    /// Whether it is part of the history. A failed download can be retried.
    package var hasEnded: Bool { self == .completed || self == .failed || self == .cancelled }
}

/// Which waiting downloads go first.
package enum DownloadPriority: String, Codable, Sendable, CaseIterable, Comparable {
    case high, normal, low

    /// High priority is the smallest.
    package static func < (a: DownloadPriority, b: DownloadPriority) -> Bool { a.rank < b.rank }

    var rank: Int {
        switch self {
        case .high: 0
        case .normal: 1
        case .low: 2
        }
    }
}

/// A download at one moment: its order, its progress and its state, side by side as in JSON. Sizes are in bytes, times
/// in seconds since 1970.
package struct DownloadReport: Codable, Sendable, Equatable, Identifiable {
    package var id: Int64
    /// As `OriginURL.absolute` writes it, perhaps with secrets masked.
    package var url: String
    package var state: DownloadState
    package var priority: DownloadPriority
    package var category: String?
    package var first: Int64?
    package var connections: Int
    package var limitRate: Int64?
    package var isPinned: Bool
    /// The cached bytes of what is wanted.
    package var bytes: Int64
    /// The size of what is wanted: the resource's length, or less with `first`; nil while unknown.
    package var total: Int64?
    /// The recent rate in bytes per second; nil while no bytes arrive.
    package var rate: Int64?
    /// Seconds until it is complete; nil while unknown.
    package var eta: Int64?
    /// Consecutive failed attempts.
    package var failures: Int
    /// When the next attempt is due; nil if it only waits for its turn.
    package var retryAt: Int64?
    package var added: Int64
    /// When its first byte was requested; nil before.
    package var started: Int64?
    /// When it ended; nil before.
    package var finished: Int64?
    /// The last error, or a note on the result.
    package var message: String?
    /// The file name that the origin gives, in a field or by its URL; nil while unknown. Not yet safe as the name of a
    /// file.
    package var fileName: String?
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
    /// The number of cached segments; nil for a file.
    package var segments: Int64?
    /// The number of segments; nil while unknown, and for a recording.
    package var totalSegments: Int64?
}

extension DownloadReport {
    /// A download of which nothing is known yet.
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
    /// The cached bytes of all downloads that have not ended.
    package var bytes: Int64 = 0
    /// The size of what they want; nil if it is unknown for one.
    package var total: Int64? = 0
    /// The recent rate in bytes per second.
    package var rate: Int64 = 0
    /// Seconds; nil while unknown.
    package var eta: Int64?
    package var settings = DownloadSettings()
    /// Whether nothing begins because the proxy is offline. Up to date while any download has not ended.
    package var isOffline = false

    package init() {}
}

/// Settings for all downloads.
package struct DownloadSettings: Codable, Sendable, Equatable {
    package static let maxActiveRange = 1...64

    /// The number of downloads that run at once.
    package var maxActive = 3
    /// Bytes per second of all together; nil for no limit.
    package var limitRate: Int64?

    package init() {}
}

/// A listing of downloads, in the order in which they run, ended ones last.
package struct DownloadListing: Codable, Sendable, Equatable {
    package var downloads: [DownloadReport]
    package var summary: DownloadSummary

    package init(downloads: [DownloadReport], summary: DownloadSummary) {
        (self.downloads, self.summary) = (downloads, summary)
    }
}

/// A change of existing downloads. If several members are set, all are applied, in this order.
package struct DownloadChange: Codable, Sendable, Equatable {
    package enum Action: String, Codable, Sendable, CaseIterable { case pause, resume, cancel, retry }

    package var action: Action?
    package var priority: DownloadPriority?
    /// The position among the waiting downloads of its priority; 0 is the first. For one download only.
    package var position: Int?
    /// Bytes per second; 0 for no limit.
    package var limitRate: Int64?

    package init(
        action: Action? = nil, priority: DownloadPriority? = nil, position: Int? = nil, limitRate: Int64? = nil
    ) {
        (self.action, self.priority, self.position, self.limitRate) = (action, priority, position, limitRate)
    }
}

/// Which downloads to change.
package enum DownloadSelection: Sendable, Equatable {
    /// All that the change applies to. Ended ones are included only in a retry, and then only failed ones.
    case all
    /// All of these, or none.
    case ids([Int64])
    /// As `all`, but only among these. Others of them stay as they are; unknown ones are skipped.
    case possible([Int64])
}

/// Why a download cannot be ordered or changed. The description is one line that names the remedy.
package struct DownloadError: AdvisedError, Sendable, Equatable {
    package enum Kind: Sendable, Equatable {
        /// There is no such download.
        case unknown
        /// Its state does not allow this.
        case conflict
        /// The request makes no sense.
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
