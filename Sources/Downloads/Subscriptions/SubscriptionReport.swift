/// A subscription at one moment, as in JSON. Times are in seconds since 1970.
package struct SubscriptionReport: Codable, Sendable, Equatable {
    /// As `OriginURL.absolute` writes it, perhaps with secrets masked.
    package var url: String
    /// Where it is fetched, if it has moved; otherwise nil.
    package var address: String?
    package var title: String?
    package var category: String?
    package var latest: Int
    /// Seconds.
    package var every: Int64
    /// As `EpisodeLimit.text` writes it; nil if everything stays.
    package var keep: String?
    package var titlePattern: String?
    /// As `DownloadCap.text` writes each, with commas between them; nil if there are none.
    package var cap: String?
    package var added: Int64
    /// The last check; nil before.
    package var checked: Int64?
    /// When the next check is due.
    package var nextCheck: Int64
    /// Checks in a row that failed.
    package var failures: Int
    package var brokenSince: Int64?
    /// What is wrong, in one line; nil if the last check succeeded.
    package var message: String?
    /// All known episodes, and those that became downloads.
    package var episodes: Int
    package var ordered: Int
    /// Its downloads that have not ended, and those that failed.
    package var unfinished: Int
    package var failed: Int
}

/// An episode of a subscribed feed.
package struct EpisodeReport: Codable, Sendable, Equatable {
    package enum State: String, Codable, Sendable, CaseIterable {
        /// Not to be downloaded.
        case passedOver = "passed_over"
        case waiting, downloading, paused, failed, cancelled
        /// Downloaded, and cached.
        case cached
        /// Downloaded, and no longer cached.
        case removed
    }

    package var url: String
    package var title: String?
    /// Seconds since 1970; nil if the feed states no date.
    package var published: Int64?
    package var state: State
    /// The cached bytes.
    package var bytes: Int64
    /// The number of its download, while that is known.
    package var download: Int64?
    /// What is wrong with the download.
    package var message: String?
}

/// A subscription with its episodes, newest first.
package struct SubscriptionDetail: Codable, Sendable, Equatable {
    package var feed: SubscriptionReport
    package var episodes: [EpisodeReport]
    /// The first items of the last reading without media that can be played: their names, with the reason. nil for
    /// none.
    package var skippedItems: [String]?
}

/// The outcome of a check.
package struct FeedCheck: Codable, Sendable, Equatable {
    package enum Outcome: String, Codable, Sendable {
        case unchanged, read, failed
    }

    package var url: String
    package var title: String?
    package var outcome: Outcome
    /// The episodes that the feed lists; nil if it was not read.
    package var episodes: Int?
    /// Items without media that can be played; nil if it was not read.
    package var skipped: Int?
    /// Those of them that the last reading did not have: their names, with the reason. At most 20; nil for none.
    package var skippedItems: [String]?
    /// Episodes that were not known before.
    package var new: Int
    /// The downloads that were ordered, newest episode first.
    package var downloads: [Int64]
    /// Why it failed, or what could not be read, in one line.
    package var message: String?
}

/// A feed that is not subscribed, with its newest episodes first.
package struct FeedPreview: Codable, Sendable, Equatable {
    package struct Episode: Codable, Sendable, Equatable {
        package var url: String
        package var title: String?
        /// Seconds since 1970.
        package var published: Int64?
    }

    package var title: String?
    package var episodes: [Episode]
    /// Items without media that can be played.
    package var skipped: Int
}

/// The outcome of an import.
package struct FeedImport: Codable, Sendable, Equatable {
    /// The feeds that were added.
    package var added: [String]
    /// How many were subscribed before.
    package var known: Int
    /// Entries that cannot be fetched: their names, with the reason.
    package var skipped: [String]
}
