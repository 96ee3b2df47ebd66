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
    /// With `last`, which bytes of the whole arrive first; without it, all that is wanted.
    package var first: Int64?
    package var connections: Int
    package var limitRate: Int64?
    package var isPinned: Bool
    /// The cached bytes of what is wanted.
    package var bytes: Int64
    /// The size of what is wanted: the resource's length, or less with `first` alone; nil while unknown.
    package var total: Int64?
    /// The recent rate in bytes per second; nil while no bytes arrive.
    package var rate: Int64?
    /// Seconds until it is complete; nil while unknown.
    package var eta: Int64?
    /// Consecutive failed attempts.
    package var failures: Int
    /// When the next attempt is due; nil if it only waits for its turn.
    package var retryAt: Int64?
    /// Whether the schedule or a cap holds it back; nil for false.
    package var isHeld: Bool?
    /// When the schedule or a cap lets it run again; nil if neither holds it back, or for good.
    package var heldUntil: Int64?
    package var added: Int64
    /// When its first byte was requested; nil before.
    package var started: Int64?
    /// When it ended; nil before.
    package var finished: Int64?
    /// The last error, a note on the result, or why it has to wait although it is its turn.
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
    /// The bytes at the end that arrive before the rest; nil for the usual order.
    package var last: Int64?
    /// Whether neither the schedule nor a cap delays it; nil for false.
    package var isAtOnce: Bool?
    /// The URL of the subscription that ordered it; nil if none did.
    package var feed: String?
    /// The number of cached segments; nil for a file.
    package var segments: Int64?
    /// The number of segments; nil while unknown, and for a recording.
    package var totalSegments: Int64?
}

extension DownloadReport {
    /// The number of bytes from the beginning if no more than these are wanted; nil for the whole.
    package var wantedFirst: Int64? { last == nil ? first : nil }

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
    /// Why nothing begins although downloads wait, such as `outside of the schedule until 01:00`; nil if they may.
    package var hold: String?
    /// When that ends, in seconds since 1970; nil if it does not end by itself.
    package var heldUntil: Int64?
    /// The schedule's rate at this time, in bytes per second; nil for no limit.
    package var scheduledRate: Int64?
    /// What was fetched from origins; nil in what a process of an earlier version has told.
    package var usage: Usage?

    /// Bytes that downloads have fetched from origins, in local time.
    package struct Usage: Codable, Sendable, Equatable {
        package var today: Int64
        package var thisMonth: Int64
        /// Today, in days since 1970; nil in what another process has told.
        var day: Int64?

        private enum CodingKeys: CodingKey { case today, thisMonth }

        package init(today: Int64, thisMonth: Int64, day: Int64? = nil) {
            (self.today, self.thisMonth, self.day) = (today, thisMonth, day)
        }

        /// Whether they say the same of their days.
        package static func == (a: Usage, b: Usage) -> Bool { a.today == b.today && a.thisMonth == b.thisMonth }

        /// The same on another day.
        func seen(on today: Int64) -> Usage {
            guard let day, day != today else { return self }
            let isInMonth = DownloadCap.Period.month.days(around: today).contains(day)
            return Usage(today: 0, thisMonth: isInMonth ? thisMonth : 0, day: today)
        }
    }

    /// What it is at another time, although nothing has happened: a day or the schedule's rate may have changed.
    func seen(by clock: any DownloadClock) -> DownloadSummary {
        let (now, local) = (Int64(saturating: clock.now), clock.local)
        var summary = self
        summary.usage = (usage ?? Usage(today: 0, thisMonth: 0)).seen(on: local.day(now))
        if let schedule = settings.schedule { summary.scheduledRate = schedule.rate(at: now, in: local).bytesPerSecond }
        return summary
    }

    package init() {}
}

/// Settings for all downloads.
package struct DownloadSettings: Codable, Sendable, Equatable {
    package static let maxActiveRange = 1...64

    /// The number of downloads that run at once.
    package var maxActive = 3
    /// Bytes per second of all together; nil for no limit.
    package var limitRate: Int64?
    /// When downloads run, and at what rate; nil for always. The lower of its rate and `limitRate` applies.
    package var schedule: DownloadSchedule?
    /// The most bytes that downloads may fetch from origins; none for any number.
    package var caps: [DownloadCap] = []
    /// Further caps for the downloads of a feed, by the URL under which it is subscribed.
    package var feedCaps: [String: [DownloadCap]] = [:]

    package init() {}
}

extension DownloadSettings {
    /// The caps of feeds are those of subscriptions, which report them.
    private enum CodingKeys: String, CodingKey { case maxActive, limitRate, schedule, caps }

    /// - Throws: `DecodingError`, `RuleError` for a schedule or cap that is malformed.
    package init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        maxActive = try members.decode(Int.self, forKey: .maxActive)
        limitRate = try members.decodeIfPresent(Int64.self, forKey: .limitRate)
        schedule = try DownloadSchedule.parse(members.decodeIfPresent([String].self, forKey: .schedule) ?? [])
        caps = try DownloadCap.parse(members.decodeIfPresent([String].self, forKey: .caps) ?? [])
    }

    package func encode(to encoder: any Encoder) throws {
        var members = encoder.container(keyedBy: CodingKeys.self)
        try members.encode(maxActive, forKey: .maxActive)
        try members.encodeIfPresent(limitRate, forKey: .limitRate)
        try members.encodeIfPresent(schedule?.texts, forKey: .schedule)
        if !caps.isEmpty { try members.encode(caps.map(\.text), forKey: .caps) }
    }
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
