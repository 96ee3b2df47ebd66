import Foundation

/// A subscribed feed in its state at one moment.
public struct FeedSubscription: Codable, Sendable, Equatable {
    /// The URL under which it was subscribed, exact, whereas `URL` may write it differently; perhaps with secrets
    /// masked.
    public package(set) var urlText: String
    /// Where it is fetched, if it has moved; otherwise nil.
    package var movedTo: String?
    /// The feed's title; nil before it was first read, or if it has none.
    public package(set) var title: String?
    /// The category of its downloads.
    public package(set) var category: String?
    package var latest: Int
    /// Seconds.
    package var every: Int64
    /// As `EpisodeLimit.text` writes it; nil if everything stays pinned.
    package var keep: String?
    package var titlePattern: String?
    /// As `DownloadCap.text` writes each, with commas between them; nil if there are none.
    package var cap: String?
    package var added: Date
    /// When it was last checked; nil before.
    public package(set) var checked: Date?
    /// When it is checked next.
    public package(set) var nextCheck: Date
    /// Checks in a row that failed.
    package var failures: Int
    /// Since when it cannot be read; nil if the last check succeeded.
    public package(set) var brokenSince: Date?
    /// What is wrong, in one line; nil if the last check succeeded.
    public package(set) var message: String?
    /// The number of known episodes.
    public package(set) var episodes: Int
    /// The number of episodes that became downloads.
    public package(set) var ordered: Int
    /// Its downloads that have not ended.
    package var unfinished: Int
    /// Its downloads that failed.
    package var failed: Int

    private enum CodingKeys: String, CodingKey {
        case title, category, latest, every, keep, titlePattern, cap, added, checked, nextCheck, failures, brokenSince
        case message, episodes, ordered, unfinished, failed
        case urlText = "url", movedTo = "address"
    }

    /// `urlText`; nil if `URL` cannot represent it.
    public var url: URL? { URL(string: urlText) }
    /// Where it is fetched: another URL if the feed has moved.
    public var address: String { movedTo ?? urlText }
}

/// An episode of a subscribed feed.
public struct FeedEpisode: Codable, Sendable, Equatable {
    /// The state of an episode.
    public enum State: String, Codable, Sendable, CaseIterable {
        /// Known, and not to be downloaded.
        case passedOver = "passed_over"
        /// Its download waits for its turn, or for its next attempt.
        case waiting
        /// Its download receives bytes.
        case downloading
        /// Its download is paused.
        case paused
        /// Its download has failed, and does not continue by itself.
        case failed
        /// Its download was cancelled.
        case cancelled
        /// Downloaded, and cached.
        case cached
        /// Downloaded, and no longer cached.
        case removed
    }

    /// The URL of its media, exact.
    public package(set) var urlText: String
    /// Its title; nil if the feed states none.
    public package(set) var title: String?
    /// When it was published; nil if the feed does not say.
    public package(set) var published: Date?
    /// What became of it.
    public package(set) var state: State
    /// The number of its cached bytes.
    public package(set) var bytes: Int64
    /// When it had been played: a player read three quarters of it. nil before.
    public package(set) var played: Date?
    /// Its download, while that is remembered.
    public package(set) var download: Download.ID?
    /// What is wrong with the download.
    package var message: String?

    private enum CodingKeys: String, CodingKey {
        case title, published, state, bytes, played, download, message
        case urlText = "url"
    }

    /// `urlText`; nil if `URL` cannot represent it.
    public var url: URL? { URL(string: urlText) }
}

/// A subscription with its episodes, newest first.
package struct SubscriptionDetail: Codable, Sendable, Equatable {
    /// The most episodes that one request may ask for.
    package static let mostEpisodes = 50_000

    package var feed: FeedSubscription
    package var episodes: [FeedEpisode]
    /// The first items of the last reading without media that can be played: their names, with the reason. nil for
    /// none.
    package var skippedItems: [String]?
}

/// The outcome of a check.
public struct FeedCheckResult: Codable, Sendable, Equatable {
    package enum Outcome: String, Codable, Sendable {
        case unchanged, read, failed
    }

    /// The URL under which the feed is subscribed.
    public package(set) var urlText: String
    /// The feed's title, if it is known.
    public package(set) var title: String?
    package var outcome: Outcome
    /// The episodes that the feed lists; nil if it was not read.
    package var episodes: Int?
    /// Items without media that can be played; nil if it was not read.
    package var skipped: Int?
    /// Those of them that the last reading did not have: their names, with the reason. At most 20; nil for none.
    package var skippedItems: [String]?
    /// Episodes that were not known before.
    package var new = 0
    /// The downloads that were ordered, newest episode first.
    public package(set) var downloads: [Download.ID] = []
    /// Why it failed, or what could not be read, in one line.
    package var message: String?

    private enum CodingKeys: String, CodingKey {
        case title, outcome, episodes, skipped, skippedItems, new, downloads, message
        case urlText = "url"
    }

    /// Why the feed could not be read, in one line; nil if it was read, or has not changed.
    public var failure: String? { outcome == .failed ? message ?? "it cannot be read" : nil }
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
