import Dispatch
import Foundation
import Logging

/// What waits for the disk, for callers that must not wait, such as those on the main actor. A thread that may block
/// does it; a task that is cancelled meanwhile does not end it.
extension MediaCache {
    /// Opens a cache, as `init(_:logger:)` does.
    /// - Throws: `ProxyError`.
    public static func open(
        _ configuration: ProxyConfiguration = ProxyConfiguration(),
        logger: Logger = Logger(label: "reelcache") { _ in SwiftLogNoOpLogHandler() }
    ) async throws -> MediaCache {
        try await onBlockingThread { try MediaCache(configuration, logger: logger) }
    }

    /// Starts the proxy, where none runs yet.
    /// - Returns: the proxy that runs from now on, or did already.
    /// - Throws: `ProxyError`: a port that another process has; `CacheError.closed`.
    @discardableResult
    public func startProxy() async throws -> Proxy { try await onBlockingThread { try self.startProxy() } }

    /// Stops the proxy, if it runs. The cache stays open, and downloads go on.
    /// - Parameter grace: how long running answers have to end.
    public func stopProxy(grace: Duration = .seconds(5)) async {
        await onBlockingThread { self.stopProxy(grace: grace) }
    }

    /// Stops the proxy and the downloads, which go on when the cache is opened again, and saves everything.
    /// - Parameter grace: how long running answers have to end.
    /// - Throws: `ProxyError` where the cache could not be saved; what is lost is fetched again.
    public func close(grace: Duration = .seconds(5)) async throws {
        try await onBlockingThread { try self.close(grace: grace) }
    }

    // MARK: What is cached

    /// What of a resource is cached at this moment.
    /// - Returns: nil where nothing of it is, or its length is not known yet.
    /// - Throws: `CacheError`: `.unsupportedURL`, `.disk`, `.closed`.
    public func coverage(of url: URL) async throws -> CacheCoverage? {
        try await onBlockingThread { try self.coverage(of: url) }
    }

    /// What is cached, wholly or in part: see the form that blocks.
    /// - Throws: `CacheError`: `.disk`, `.closed`.
    public func resources(
        by order: CachedResource.Order = .recent, containing text: String? = nil, limit: Int? = nil, offset: Int = 0
    ) async throws -> [CachedResource] {
        try await onBlockingThread {
            try self.resources(by: order, containing: text, limit: limit, offset: offset)
        }
    }

    /// Removes a resource, pinned or not.
    /// - Returns: the bytes freed on the disk.
    /// - Throws: `CacheError`: `.conflict` where a download of it has not ended, `.unsupportedURL`, `.disk`, `.closed`.
    @discardableResult
    public func remove(_ url: URL) async throws -> Int64 { try await onBlockingThread { try self.remove(url) } }

    /// Removes everything that is not pinned.
    /// - Parameter date: only what was last read before; nil for all.
    /// - Returns: the bytes freed on the disk.
    /// - Throws: `CacheError`: `.disk`, `.closed`.
    @discardableResult
    public func removeAll(notReadSince date: Date? = nil) async throws -> Int64 {
        try await onBlockingThread { try self.removeAll(notReadSince: date) }
    }

    /// Counts a resource as read now.
    /// - Throws: `CacheError`: `.notCached`, `.unsupportedURL`, `.disk`, `.closed`.
    public func touch(_ url: URL) async throws { try await onBlockingThread { try self.touch(url) } }

    /// Keeps a resource from being evicted.
    /// - Throws: `CacheError`: `.notCached`, `.unsupportedURL`, `.disk`, `.closed`.
    public func pin(_ url: URL) async throws { try await onBlockingThread { try self.pin(url) } }

    /// Lets a resource be evicted again when room is wanted.
    /// - Throws: `CacheError`: `.notCached`, `.unsupportedURL`, `.disk`, `.closed`.
    public func unpin(_ url: URL) async throws { try await onBlockingThread { try self.unpin(url) } }

    // MARK: Limits

    /// Changes how much the cache takes on the disk, in bytes, and evicts what is too much.
    /// - Parameters:
    ///   - maxSize: as in `ProxyConfiguration`; nil leaves it as it is.
    ///   - minFree: likewise.
    /// - Throws: `ProxyError`: a limit that cannot work, a disk that fails; `CacheError.closed`.
    public func setLimits(maxSize: Int64? = nil, minFree: Int64? = nil) async throws {
        try await onBlockingThread { try self.setLimits(maxSize: maxSize, minFree: minFree) }
    }

    /// Evicts what is over the limits now.
    /// - Returns: the bytes freed on the disk.
    /// - Throws: `CacheError.closed`.
    @discardableResult
    public func enforceLimits() async throws -> Int64 { try await onBlockingThread { try self.enforceLimits() } }

    /// Changes how many downloads run at once.
    /// - Throws: `ProxyError` where so many cannot work, `CacheError.closed`.
    public func setMaxDownloads(_ count: Int) async throws {
        try await onBlockingThread { try self.setMaxDownloads(count) }
    }

    /// Changes the limit of all downloads together, in bytes per second; nil for none.
    /// - Throws: `ProxyError` for a limit that is not above 0, `CacheError.closed`.
    public func setDownloadRate(_ rate: Int64?) async throws {
        try await onBlockingThread { try self.setDownloadRate(rate) }
    }
}

extension Proxy {
    /// Opens a cache and serves, as `init(_:logger:)` does.
    /// - Throws: `ProxyError`.
    public static func start(
        _ configuration: ProxyConfiguration = ProxyConfiguration(),
        logger: Logger = Logger(label: "reelcache") { _ in SwiftLogNoOpLogHandler() }
    ) async throws -> Proxy {
        try await onBlockingThread { try Proxy(configuration, logger: logger) }
    }

    /// Accepts no more requests, lets running answers end, and cuts what is left.
    /// - Parameter grace: how long running answers have to end.
    /// - Throws: `ProxyError` where the cache could not be saved; what is lost is fetched again.
    public func stop(grace: Duration = .seconds(5)) async throws {
        try await onBlockingThread { try self.stop(grace: grace) }
    }
}

/// Threads of Swift's own pool are as many as there are cores: none of them waits for a disk.
private let blockingThreads = DispatchQueue(label: "reelcache.blocking", attributes: .concurrent)

private func onBlockingThread<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
        blockingThreads.async { continuation.resume(with: Result { try work() }) }
    }
}

private func onBlockingThread(_ work: @escaping @Sendable () -> Void) async {
    await withCheckedContinuation { continuation in
        blockingThreads.async {
            work()
            continuation.resume()
        }
    }
}
