import CachePolicy
import ControlAPI
import Downloads
import Reelcache
import Upstream

/// Subscriptions, through the proxy that looks after them, or through one of this process that does so on demand only.
/// All calls block and throw `CacheAccessError`.
extension RunningProxy {
    private enum Path {
        static let feeds = "/api/v1/feeds"
        static let check = feeds + "/check"
        static let preview = feeds + "/preview"
        static let importing = feeds + "/import"
        static let export = feeds + "/export"
    }

    /// All subscriptions, in the order of subscribing.
    package func feeds() throws -> [FeedSubscription] {
        try ask(request("GET", Path.feeds), for: FeedList.self).feeds
    }

    /// A subscription with its newest episodes.
    package func feed(_ url: OriginURL, limit: Int) throws -> SubscriptionDetail {
        try ask(
            request("GET", Path.feeds, [("url", url.absolute), ("limit", "\(limit)")]), for: SubscriptionDetail.self)
    }

    /// Subscribes, or changes a subscription, and waits for its check.
    package func subscribe(_ url: OriginURL, _ change: SubscriptionChange, isWanted: @escaping () -> Bool) throws
        -> FeedCheckResult
    {
        var request = try request("POST", Path.feeds, body: FeedRequest(url, change))
        request.isWanted = isWanted
        return try ask(request, for: FeedCheckResult.self)
    }

    /// Unsubscribes.
    package func removeFeed(_ url: OriginURL) throws -> FeedSubscription {
        try ask(request("DELETE", Path.feeds, [("url", url.absolute)]), for: FeedSubscription.self)
    }

    /// Checks a feed, or all, and waits for that.
    package func checkFeeds(_ url: OriginURL?, isWanted: @escaping () -> Bool) throws -> [FeedCheckResult] {
        var request = try request("POST", Path.check, url.map { [("url", $0.absolute)] } ?? [])
        request.isWanted = isWanted
        request.stallTimeout = 0
        return try ask(request, for: FeedChecks.self).checks
    }

    /// Reads a feed without subscribing.
    package func previewFeed(_ url: OriginURL, latest: Int, title: String?, isWanted: @escaping () -> Bool) throws
        -> FeedPreview
    {
        let parameters = [("url", url.absolute), ("latest", "\(latest)")] + (title.map { [("title", $0)] } ?? [])
        var request = try request("POST", Path.preview, parameters)
        request.isWanted = isWanted
        return try ask(request, for: FeedPreview.self)
    }

    /// Subscribes to the feeds of a list.
    /// - Parameter opml: the bytes of an OPML file.
    package func importFeeds(_ opml: [UInt8], _ change: SubscriptionChange) throws -> FeedImport {
        var request = try request("POST", Path.importing, change.parameters)
        request.fields.append("Content-Type", "text/x-opml")
        request.content = .bytes(opml)
        return try ask(request, for: FeedImport.self)
    }

    /// All subscriptions as OPML.
    package func exportFeeds() throws -> [UInt8] {
        try body(of: request("GET", Path.export, needsToken: true))
    }
}

extension SubscriptionChange {
    /// The same as parameters of a request.
    fileprivate var parameters: [(String, String)] {
        [
            latest.map { ("latest", "\($0)") }, category.map { ("category", $0) }, every.map { ("every", "\($0)s") },
            keep.map { ("keep", $0.text) }, title.map { ("title", $0) },
            caps.map { ("cap", DownloadCap.text($0)) },
        ].compactMap { $0 }
    }
}
