import CachePolicy
import HTTPModel
import Logging
import Playlists

/// The subscriptions in memory and in the database, which are always saved together. Blocks. For use inside the manager
/// only.
final class SubscriptionTable {
    /// The most subscriptions.
    static let most = 5000

    let database: SubscriptionDatabase
    private let downloads: DownloadManager
    private let logger: Logger
    private var rows: [Int64: Subscription]
    /// Whether a new database lacks subscriptions, because they could not be written yet.
    private var isRepairing = false
    /// When somebody looked last which episodes were played, in seconds since 1970.
    var lookedAtPlayed = -Double.infinity

    /// Opens the database, and applies the caps of feeds, before any download begins.
    init(directory: String, downloads: DownloadManager, logger: Logger) throws(DownloadError) {
        database = try SubscriptionDatabase(directory: directory, logger: logger)
        (self.downloads, self.logger) = (downloads, logger)
        rows = Dictionary(try database.load().map { ($0.id, $0) }) { $1 }
        applyCaps()
    }

    /// Setting it saves nothing.
    subscript(id: Int64) -> Subscription? {
        get { rows[id] }
        set { rows[id] = newValue }
    }

    /// In the order of subscribing.
    var all: [Subscription] { rows.values.sorted { $0.id < $1.id } }

    /// The subscription that a URL names: its own, or the one where it is fetched; the oldest of several.
    func find(_ url: OriginURL) -> Subscription? {
        rows.values.first { $0.url == url } ?? rows.values.filter { $0.address == url }.min { $0.id < $1.id }
    }

    /// Spreads the checks that are due at a start.
    func delayStart(now: Double, random: () -> Double) {
        let all = all
        for subscription in all { rows[subscription.id]?.delayStart(now: now, count: all.count, random: random()) }
    }

    /// Has feeds that could not be read checked soon, spread over a while.
    func retrySoon(now: Double, random: () -> Double) {
        let broken = all.filter { $0.brokenSince != nil }
        for subscription in broken { rows[subscription.id]?.retrySoon(now: now, count: broken.count, random: random()) }
    }

    // MARK: Saving

    func checkCount(adding count: Int) throws(DownloadError) {
        guard rows.count + count <= Self.most else {
            throw .invalid("there can be \(Self.most) subscriptions at most: remove some first")
        }
    }

    /// - Returns: the subscriptions with their IDs.
    @discardableResult
    func save(_ changed: [Subscription]) throws(DownloadError) -> [Subscription] {
        let saved = try database.save(changed) { everything(except: changed.map(\.id)) }
        for subscription in saved { rows[subscription.id] = subscription }
        applyCaps()
        return saved
    }

    /// - Parameter former: where the feed was; nil for where it is.
    func save(
        _ subscription: Subscription, _ episodes: [KnownEpisode], forgetting forgotten: [Int64] = [],
        movedFrom former: OriginURL? = nil
    ) throws(DownloadError) {
        try database.save(subscription, episodes, forgetting: forgotten) { everything(except: [subscription.id]) }
        rows[subscription.id] = subscription
        applyCaps()
        guard let former, former != subscription.address else { return }
        logger.notice("the feed \(former.absolute) has moved to \(subscription.address.absolute)")
    }

    func remove(_ subscription: Subscription) throws(DownloadError) {
        try database.remove(subscription.id) { everything(except: [subscription.id]) }
        rows[subscription.id] = nil
        applyCaps()
    }

    /// Subscribes to the feeds of a list that are not subscribed yet.
    /// - Parameter options: without a category, a feed gets that of its folder.
    func add(_ list: OPML, _ options: SubscriptionOptions, now: Double) throws(DownloadError) -> [Subscription] {
        let feeds = list.feeds.filter { find($0.url) == nil }
        try checkCount(adding: feeds.count)
        let new = feeds.map { feed in
            var options = options
            options.category = options.category ?? feed.categories.last?.beginning(100)
            var subscription = Subscription(feed.url, options: options, added: now, due: now)
            subscription.title = feed.title == feed.url.absolute ? nil : feed.title
            return subscription
        }
        return new.isEmpty ? [] : try save(new)
    }

    /// Applies the caps of feeds to their downloads.
    private func applyCaps() {
        let caps = rows.values.filter { !$0.options.caps.isEmpty }.map { ($0.url.absolute, $0.options.caps) }
        let byFeed = Dictionary(caps) { $1 }
        downloads.perform { $0.setFeedCaps(byFeed) }
    }

    private func everything(except ids: [Int64]) -> [Subscription] {
        let ids = Set(ids)
        return all.filter { !ids.contains($0.id) }
    }

    /// Writes all subscriptions to a new database that replaced a damaged one. The episodes are lost: those that feeds
    /// have now are passed over, not ordered again.
    ///
    /// To be called wherever the database may have been read: until then, the new one is empty.
    func repairLoss() {
        if database.takeLoss() {
            for id in rows.keys { rows[id]?.forgetEpisodes() }
            isRepairing = true
        }
        guard isRepairing else { return }
        do throws(DownloadError) {
            try save(all)
            isRepairing = false
        } catch { logger.error("\(error)") }
    }

    // MARK: Episodes

    /// The next newer episode of the feed that has this one; `.unknown` if no subscribed feed has it.
    func next(after url: OriginURL) throws(DownloadError) -> PlaybackOrder.Next {
        defer { repairLoss() }
        var answer = PlaybackOrder.Next.unknown
        for current in try database.episodes(at: url) {
            guard let subscription = rows[current.subscription] else { continue }
            let later = try database.episodes(of: subscription.id).filter {
                $0.isNewer(than: current) && $0.url.normalized != url.normalized
                    && subscription.options.title?.matches($0.title) ?? true
            }
            // A feed that has something after it decides.
            if let next = later.min(by: { $1.isNewer(than: $0) }) { return .item(next.url) }
            answer = .nothing
        }
        return answer
    }

    /// Whether an episode of any subscription with this URL became a download.
    func wasOrdered(_ url: OriginURL) throws(DownloadError) -> Bool {
        defer { repairLoss() }
        return try database.episodes(at: url).contains { $0.state != .passedOver }
    }
}
