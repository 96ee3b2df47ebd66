import CachePolicy
import ControlAPI
import Downloads
import Reelcache
import Upstream

/// Subscriptions, through the proxy that looks after them, or through one of this process that does so on demand only.
/// All calls block and throw `ControlError`.
extension RunningProxy {
    /// All subscriptions, in the order of subscribing.
    package func feeds() throws -> [FeedSubscription] { try client.call(\.feeds).feeds }

    /// A subscription with its newest episodes.
    package func feed(_ url: OriginURL, limit: Int) throws -> SubscriptionDetail {
        try client.call(\.feed, [.url: url.absolute, .limit: "\(limit)"])
    }

    /// Subscribes, or changes a subscription, and waits for its check.
    package func subscribe(_ url: OriginURL, _ change: SubscriptionChange, isWanted: @escaping () -> Bool) throws
        -> FeedCheckResult
    {
        var request = try client.request(\.subscribe, body: SubscriptionRequest(url, change))
        request.fetch.isWanted = isWanted
        return try client.send(request)
    }

    /// Unsubscribes.
    package func removeFeed(_ url: OriginURL) throws -> FeedSubscription {
        try client.call(\.removeFeed, [.url: url.absolute])
    }

    /// Checks a feed, or all, and waits for that.
    package func checkFeeds(_ url: OriginURL?, isWanted: @escaping () -> Bool) throws -> [FeedCheckResult] {
        var request = try client.request(\.checkFeeds, [.url: url?.absolute])
        request.fetch.isWanted = isWanted
        request.fetch.stallTimeout = 0
        return try client.send(request).checks
    }

    /// Reads a feed without subscribing.
    package func previewFeed(_ url: OriginURL, latest: Int, title: String?, isWanted: @escaping () -> Bool) throws
        -> FeedPreview
    {
        var request = try client.request(
            \.previewFeed, [.url: url.absolute, .latest: "\(latest)", .title: title])
        request.fetch.isWanted = isWanted
        return try client.send(request)
    }

    /// Subscribes to the feeds of a list.
    /// - Parameter opml: the bytes of an OPML file.
    package func importFeeds(_ opml: [UInt8], _ change: SubscriptionChange) throws -> FeedImport {
        var request = try client.request(
            \.importFeeds,
            [
                .latest: change.latest.map { "\($0)" }, .category: change.category,
                .every: change.every.map { "\($0)s" }, .keep: change.keep?.text, .title: change.title,
                .cap: change.caps.map(DownloadCap.text),
            ])
        request.fetch.fields.append("Content-Type", "text/x-opml")
        request.fetch.content = .bytes(opml)
        return try client.send(request)
    }

    /// All subscriptions as OPML.
    package func exportFeeds() throws -> [UInt8] {
        try client.body(of: client.request(\.exportFeeds))
    }
}
