import Dispatch
import Foundation
import Logging

/// Forms of the blocking calls for callers that must not wait for the disk, such as those on the main actor. The
/// work runs on a thread that may block; cancelling the task does not stop it.
extension MediaCache {
    /// Opens a cache, as `init(_:logger:)` does.
    /// - Throws: `ProxyError`.
    public static func open(
        _ configuration: ProxyConfiguration = ProxyConfiguration(),
        logger: Logger = Logger(label: "reelcache") { _ in SwiftLogNoOpLogHandler() }
    ) async throws -> MediaCache {
        try await onBlockingThread { try MediaCache(configuration, logger: logger) }
    }

    /// Starts the proxy, unless it is running: see the blocking form.
    @discardableResult
    public func startProxy() async throws -> Proxy { try await onBlockingThread { try self.startProxy() } }

    /// Stops the proxy if it is running: see the blocking form.
    public func stopProxy(grace: Duration = .seconds(5)) async {
        await onBlockingThread { self.stopProxy(grace: grace) }
    }

    /// Stops the proxy and the downloads, and saves everything: see the blocking form.
    public func close(grace: Duration = .seconds(5)) async throws {
        try await onBlockingThread { try self.close(grace: grace) }
    }

    // MARK: Cached resources

    /// The cached byte ranges of a resource at this moment: see the blocking form.
    public func coverage(of url: URL) async throws -> CacheCoverage? {
        try await onBlockingThread { try self.coverage(of: url) }
    }

    /// Lists the cached resources, complete or not: see the blocking form.
    public func resources(
        by order: CachedResource.Order = .recent, containing text: String? = nil, limit: Int? = nil, offset: Int = 0
    ) async throws -> [CachedResource] {
        try await onBlockingThread {
            try self.resources(by: order, containing: text, limit: limit, offset: offset)
        }
    }

    /// Removes a resource, pinned or not: see the blocking form.
    @discardableResult
    public func remove(_ url: URL) async throws -> Int64 { try await onBlockingThread { try self.remove(url) } }

    /// Removes everything that is not pinned: see the blocking form.
    @discardableResult
    public func removeAll(notReadSince date: Date? = nil) async throws -> Int64 {
        try await onBlockingThread { try self.removeAll(notReadSince: date) }
    }

    /// Counts a resource as read now: see the blocking form.
    public func touch(_ url: URL) async throws { try await onBlockingThread { try self.touch(url) } }

    /// Pins a resource: see the blocking form.
    public func pin(_ url: URL) async throws { try await onBlockingThread { try self.pin(url) } }

    /// Unpins a resource: see the blocking form.
    public func unpin(_ url: URL) async throws { try await onBlockingThread { try self.unpin(url) } }

    // MARK: Settings

    /// Changes settings: see the blocking form.
    public func reconfigure(_ change: @escaping @Sendable (inout ProxyConfiguration) throws -> Void) async throws {
        try await onBlockingThread { try self.reconfigure(change) }
    }

    /// Evicts now whatever exceeds the limits: see the blocking form.
    @discardableResult
    public func enforceLimits() async throws -> Int64 { try await onBlockingThread { try self.enforceLimits() } }
}

extension Proxy {
    /// Opens a cache and starts serving it, as `init(_:logger:)` does.
    /// - Throws: `ProxyError`.
    public static func start(
        _ configuration: ProxyConfiguration = ProxyConfiguration(),
        logger: Logger = Logger(label: "reelcache") { _ in SwiftLogNoOpLogHandler() }
    ) async throws -> Proxy {
        try await onBlockingThread { try Proxy(configuration, logger: logger) }
    }

    /// Stops accepting requests, gives running responses the grace period to end, and then closes their connections.
    /// - Parameter grace: how long running responses may take to end.
    /// - Throws: `ProxyError` if the cache could not be saved; what is lost is fetched again.
    public func stop(grace: Duration = .seconds(5)) async throws {
        try await onBlockingThread { try self.stop(grace: grace) }
    }
}

/// Swift's own pool has only as many threads as there are cores, so none of them may wait for a disk.
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
