import CachePolicy
import Downloads
import Foundation
import Playlists

/// The subscribed feeds of an open cache: their new episodes become downloads, as long as the cache is open.
///
/// Safe to use from any thread. Functions that change a subscription return once the change is saved.
///
/// ```swift
/// try await cache.feeds.subscribe(to: podcast, options: FeedOptions(latest: 2, keep: .episodes(10)))
/// ```
public struct CacheFeeds: Sendable {
    let cache: MediaCache

    private var manager: SubscriptionManager { cache.downloader.subscriptions }

    // MARK: State

    /// All subscriptions, in the order of subscribing.
    /// - Throws: `CacheError`: `.disk`, `.closed`.
    public func subscriptions() async throws -> [FeedSubscription] {
        try await perform { manager throws(DownloadError) in try manager.reports() }
    }

    /// The subscription of a feed; nil if it is not subscribed.
    /// - Parameter url: the URL under which it was subscribed, or where it is fetched by now.
    /// - Throws: `CacheError`: `.unsupportedURL`, `.disk`, `.closed`.
    public func subscription(of url: URL) async throws -> FeedSubscription? {
        let origin = try OriginURL(url)
        return try await perform { manager throws(DownloadError) in
            manager.isSubscribed(origin) ? try manager.detail(of: origin, limit: 1).feed : nil
        }
    }

    /// The known episodes of a subscribed feed, newest first.
    /// - Parameters:
    ///   - url: the feed's URL.
    ///   - limit: the maximum number; nil for all.
    /// - Throws: `CacheError`: `.unknownFeed`, `.unsupportedURL`, `.disk`, `.closed`.
    public func episodes(of url: URL, limit: Int? = nil) async throws -> [FeedEpisode] {
        let origin = try OriginURL(url)
        return try await perform { manager throws(DownloadError) in
            try manager.detail(of: origin, limit: limit.map { max($0, 0) })
        }.episodes
    }

    // MARK: Changing them

    /// Subscribes to a feed once it has been read, and orders its newest episodes. If it is subscribed already, replaces
    /// its options, and checks it.
    /// - Returns: the outcome of the check.
    /// - Throws: `CacheError`: `.unreadableFeed` if it cannot be read, and then nothing is saved; `.unsupportedURL`,
    ///   `.invalid` for invalid options, `.disk`, `.closed`.
    @discardableResult
    public func subscribe(to url: URL, options: FeedOptions = FeedOptions()) async throws -> FeedCheckResult {
        let (origin, change) = (try OriginURL(url), try options.change())
        return try await awaiting { manager, end in manager.subscribe(origin, change, then: end) }
    }

    /// Unsubscribes from a feed, and cancels its downloads that have not ended. Cached episodes stay.
    /// - Throws: `CacheError`: `.unknownFeed`, `.unsupportedURL`, `.disk`, `.closed`.
    public func remove(_ url: URL) async throws {
        let origin = try OriginURL(url)
        _ = try await perform { manager throws(DownloadError) in try manager.remove(origin) }
    }

    /// Checks feeds now, and waits until all are checked. Their downloads continue by themselves.
    /// - Parameter url: nil for all feeds.
    /// - Returns: the outcomes, in the order of subscribing.
    /// - Throws: `CacheError`: `.unknownFeed`, `.unsupportedURL`, `.closed`.
    @discardableResult
    public func check(_ url: URL? = nil) async throws -> [FeedCheckResult] {
        let origin = try url.map { try OriginURL($0) }
        return try await awaiting { manager, end in manager.check(origin, then: end) }
    }

    // MARK: Lists

    /// Subscribes to the feeds of an OPML file that are not subscribed yet. They are checked soon.
    /// - Parameters:
    ///   - opml: the contents of the file.
    ///   - options: for the new subscriptions; without a category, folders of the file become categories.
    /// - Returns: the URLs that were added.
    /// - Throws: `CacheError`: `.invalid` if it is not OPML, or for invalid options, `.disk`, `.closed`.
    @discardableResult
    public func importList(_ opml: Data, options: FeedOptions = FeedOptions()) async throws -> [String] {
        let change = try options.change()
        let list: OPML
        do throws(DownloadError) { list = try OPML(importing: [UInt8](opml)) } catch { throw CacheError(error) }
        return try await perform { manager throws(DownloadError) in try manager.importList(list, change) }.added
    }

    /// All subscriptions as the text of an OPML file.
    /// - Throws: `CacheError.closed`.
    public func exportList() async throws -> String {
        try await perform { manager throws(DownloadError) in try manager.exportList() }.text
    }

    // MARK: Calling the manager

    private func perform<Value: Sendable>(
        _ work: @Sendable (isolated SubscriptionManager) throws(DownloadError) -> Value
    ) async throws(CacheError) -> Value {
        guard !cache.isClosed else { throw .closed }
        do throws(DownloadError) { return try await manager.run(work) } catch {
            throw cache.isClosed ? .closed : CacheError(error)
        }
    }

    /// Waits for an outcome that the manager reports later.
    private func awaiting<Value: Sendable>(
        _ begin:
            @escaping @Sendable (
                isolated SubscriptionManager, @escaping @Sendable (Result<Value, DownloadError>) -> Void
            ) -> Void
    ) async throws(CacheError) -> Value {
        let manager = manager
        let result = await withCheckedContinuation { continuation in
            Task { await manager.run { begin($0) { continuation.resume(returning: $0) } } }
        }
        do throws(DownloadError) { return try result.get() } catch {
            throw cache.isClosed ? .closed : CacheError(error)
        }
    }
}

extension SubscriptionManager {
    /// Runs several steps without interruption.
    fileprivate func run<Value: Sendable, Failure: Error>(
        _ work: @Sendable (isolated SubscriptionManager) throws(Failure) -> Value
    ) throws(Failure) -> Value { try work(self) }
}

extension MediaCache {
    /// The subscribed feeds, and everything that can be done with them.
    public var feeds: CacheFeeds { CacheFeeds(cache: self) }
}
