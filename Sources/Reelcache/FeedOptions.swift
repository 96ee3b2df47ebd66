import CachePolicy
import Downloads

/// What a subscriber wants of a feed.
public struct FeedOptions: Sendable, Equatable {
    /// How much of a feed stays cached.
    public typealias Limit = EpisodeLimit

    /// How many of the newest episodes to download after subscribing, 0 to 1000. Later, each new one is downloaded.
    public var latest: Int
    /// The category of its downloads.
    public var category: String?
    /// The time between two checks, five minutes to thirty days. A feed may ask for a longer one.
    public var every: Duration
    /// How much stays cached, and for how long; nil for everything. Older episodes are removed, but none that is being
    /// played.
    public var keep: Limit?
    /// Only episodes whose title contains this text, or matches it if it has a `*`; nil for all. Case does not matter.
    public var title: String?
    /// The most bytes that its downloads may fetch from origins in a day and in a month of local time, such as
    /// `500MB/day`, besides the caps of all downloads; empty for any number.
    public var caps: [String]

    /// Each argument is the property of the same name.
    public init(
        latest: Int = 3, category: String? = nil, every: Duration = .seconds(3600), keep: Limit? = .untilPlayed,
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
        change.keep = keep.map { .limit($0) } ?? .all
        return change
    }
}
