import CachePolicy
import Downloads
import Foundation

/// What a subscriber wants of a feed.
public struct FeedOptions: Sendable, Equatable {
    /// How much of a feed stays cached.
    public enum Limit: Sendable, Equatable {
        /// This many of the newest episodes.
        case episodes(Int)
        /// The newest episodes, up to this many bytes.
        case bytes(Int64)
    }

    /// How many of the newest episodes to download after subscribing, 0 to 1000. Later, each new one is downloaded.
    public var latest: Int
    /// The category of its downloads.
    public var category: String?
    /// The time between two checks, five minutes to thirty days. A feed may ask for a longer one.
    public var every: Duration
    /// How much stays cached; nil for everything. Older episodes are removed, but none that is being played.
    public var keep: Limit?
    /// Only episodes whose title contains this text, or matches it if it has a `*`; nil for all. Case does not matter.
    public var title: String?
    /// The most bytes that its downloads may fetch from origins in a day and in a month of local time, such as
    /// `500MB/day`, besides the caps of all downloads; empty for any number.
    public var caps: [String]

    /// Each argument is the property of the same name.
    public init(
        latest: Int = 3, category: String? = nil, every: Duration = .seconds(3600), keep: Limit? = nil,
        title: String? = nil, caps: [String] = []
    ) {
        self.caps = caps
        (self.latest, self.category, self.every, self.keep, self.title) = (latest, category, every, keep, title)
    }

    /// - Throws: `CacheError.invalid` for a cap that is malformed.
    func change() throws(CacheError) -> SubscriptionChange {
        var change = SubscriptionChange()
        do throws(RuleError) { change.caps = try DownloadCap.parse(caps) } catch { throw .invalid(error.reason) }
        (change.latest, change.every) = (latest, every.components.seconds)
        (change.category, change.title) = (category ?? "", title ?? "")
        change.keep =
            switch keep {
            case .episodes(let count): .limit(.count(count))
            case .bytes(let bytes): .limit(.bytes(bytes))
            case nil: .all
            }
        return change
    }
}

/// A subscribed feed in its state at one moment.
public struct FeedSubscription: Sendable, Equatable {
    let report: SubscriptionReport

    init(_ report: SubscriptionReport) { self.report = report }

    /// The URL under which it was subscribed, exact, whereas `URL` may write it differently.
    public var urlText: String { report.url }
    /// The same; nil if `URL` cannot represent it.
    public var url: URL? { URL(string: report.url) }
    /// Where it is fetched: another URL if the feed has moved.
    public var address: String { report.address ?? report.url }
    /// The feed's title; nil before it was first read, or if it has none.
    public var title: String? { report.title }
    /// The category of its downloads.
    public var category: String? { report.category }
    /// When it was last checked; nil before.
    public var checked: Date? { report.checked.map(Self.date) }
    /// When it is checked next.
    public var nextCheck: Date { Self.date(report.nextCheck) }
    /// Since when it cannot be read; nil if the last check succeeded.
    public var brokenSince: Date? { report.brokenSince.map(Self.date) }
    /// What is wrong, in one line; nil if the last check succeeded.
    public var message: String? { report.message }
    /// The number of known episodes.
    public var episodes: Int { report.episodes }
    /// The number of episodes that became downloads.
    public var ordered: Int { report.ordered }

    private static func date(_ seconds: Int64) -> Date { Date(timeIntervalSince1970: Double(seconds)) }
}

/// An episode of a subscribed feed.
public struct FeedEpisode: Sendable, Equatable {
    /// The state of an episode.
    public enum State: String, Sendable, CaseIterable {
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

    let report: EpisodeReport

    init(_ report: EpisodeReport) { self.report = report }

    /// The URL of its media, exact.
    public var urlText: String { report.url }
    /// The same; nil if `URL` cannot represent it.
    public var url: URL? { URL(string: report.url) }
    /// Its title; nil if the feed states none.
    public var title: String? { report.title }
    /// When it was published; nil if the feed does not say.
    public var published: Date? { report.published.map { Date(timeIntervalSince1970: Double($0)) } }
    /// What became of it.
    public var state: State { State(rawValue: report.state.rawValue) ?? .passedOver }
    /// The number of its cached bytes.
    public var bytes: Int64 { report.bytes }
    /// Its download, while that is remembered.
    public var download: Download.ID? { report.download }
}

/// The outcome of a check.
public struct FeedCheckResult: Sendable, Equatable {
    let check: FeedCheck

    init(_ check: FeedCheck) { self.check = check }

    /// The URL under which the feed is subscribed.
    public var urlText: String { check.url }
    /// The feed's title, if it is known.
    public var title: String? { check.title }
    /// The downloads that were ordered, newest episode first.
    public var downloads: [Download.ID] { check.downloads }
    /// Why the feed could not be read, in one line; nil if it was read, or has not changed.
    public var failure: String? { check.outcome == .failed ? check.message ?? "it cannot be read" : nil }
}
