import CachePolicy
import Downloads
import Foundation

/// The downloads of an open cache: a queue that outlives the process. When the cache is opened again, interrupted
/// downloads continue, and paused ones stay paused.
///
/// Safe to use from any thread. Members that report state do not wait; functions that change a download return once
/// the change is saved.
public struct CacheDownloads: Sendable {
    let cache: MediaCache
    private let manager: DownloadManager

    init(cache: MediaCache) { (self.cache, manager) = (cache, cache.downloader.manager) }

    // MARK: State

    /// A download in its current state; nil if there is none with this ID, or the history has dropped it.
    public subscript(id: Download.ID) -> Download? { manager.snapshots[id] }

    /// The download of a URL in its current state: the one that has not ended, otherwise the latest; nil if there is
    /// none.
    public func status(of url: URL) -> Download? {
        guard let origin = try? OriginURL(url) else { return nil }
        let found = manager.snapshots.downloads(of: origin)
        return found.first { !$0.state.hasEnded } ?? found.max { $0.id < $1.id }
    }

    /// All downloads that have not ended, in the order of the queue: running, waiting, paused.
    public var active: [Download] { manager.snapshots.listing().downloads }

    /// The totals of all downloads that have not ended.
    public var totals: Totals { manager.snapshots.summary }

    /// How many downloads may run at once: `maxDownloads` of `ProxyConfiguration`.
    public var maxActive: Int { manager.snapshots.summary.settings.maxActive }

    /// The rate limit of all downloads together, in bytes per second, nil for none: `downloadRate` of
    /// `ProxyConfiguration`.
    public var bytesPerSecond: Int64? { manager.snapshots.summary.settings.limitRate }

    /// The ended downloads, newest first. The last 1,000 are kept.
    /// - Parameters:
    ///   - limit: the maximum number; nil for all.
    ///   - category: only downloads of this category; nil for all.
    public func history(limit: Int? = nil, category: String? = nil) async -> [Download] {
        await manager.history(limit: limit.map { max($0, 0) }, category: category)
    }

    // MARK: Changing them

    /// Orders a download. If a download of the same URL has not ended, it takes these options, and resumes if it was
    /// paused.
    /// - Returns: the download, which is saved.
    /// - Throws: `CacheError`: `.unsupportedURL`, `.invalid` for invalid options, `.disk`, `.closed`.
    @discardableResult
    public func add(_ url: URL, options: DownloadOptions = DownloadOptions()) async throws -> Download {
        try await add([url], options: options)[0]
    }

    /// Orders downloads, all or none.
    /// - Returns: the download of each URL.
    /// - Throws: as for one.
    @discardableResult
    public func add(_ urls: [URL], options: DownloadOptions = DownloadOptions()) async throws -> [Download] {
        let orders = try urls.map { DownloadOrder(url: try OriginURL($0), options: options) }
        let reports = try await perform { manager throws(DownloadError) in try manager.add(orders) }
        guard reports.count == urls.count else { throw CacheError.disk("the downloads could not be saved") }
        return reports
    }

    /// Pauses a download. Its bytes are kept, and later only the missing ones are fetched.
    /// - Throws: `CacheError`: `.unknownDownload`, `.conflict` if it has ended, `.disk`, `.closed`; the other
    ///   changes likewise.
    @discardableResult
    public func pause(_ id: Download.ID) async throws -> Download {
        try await change(id, DownloadChange(action: .pause))
    }

    /// Resumes a paused download.
    @discardableResult
    public func resume(_ id: Download.ID) async throws -> Download {
        try await change(id, DownloadChange(action: .resume))
    }

    /// Ends a download and removes its bytes, except those that were cached before it and those that others use.
    @discardableResult
    public func cancel(_ id: Download.ID) async throws -> Download {
        try await change(id, DownloadChange(action: .cancel))
    }

    /// Restarts a download that has failed or waits for its next attempt. It continues from the bytes that it has.
    @discardableResult
    public func retry(_ id: Download.ID) async throws -> Download {
        try await change(id, DownloadChange(action: .retry))
    }

    /// Changes the priority of a download, which becomes the last of that priority.
    @discardableResult
    public func setPriority(_ priority: Download.Priority, of id: Download.ID) async throws -> Download {
        try await change(id, DownloadChange(priority: priority))
    }

    /// Moves a download among the waiting ones of its priority; 0 is the first place.
    @discardableResult
    public func move(_ id: Download.ID, to position: Int) async throws -> Download {
        try await change(id, DownloadChange(position: position))
    }

    /// Changes the rate limit of a download, in bytes per second; nil for none.
    @discardableResult
    public func setBytesPerSecond(_ limit: Int64?, of id: Download.ID) async throws -> Download {
        try await change(id, DownloadChange(limitRate: limit ?? 0))
    }

    /// Pauses all downloads that have not ended.
    /// - Returns: the changed downloads.
    @discardableResult
    public func pauseAll() async throws -> [Download] { try await changeAll(DownloadChange(action: .pause)) }

    /// Resumes all paused downloads.
    /// - Returns: the changed downloads.
    @discardableResult
    public func resumeAll() async throws -> [Download] { try await changeAll(DownloadChange(action: .resume)) }

    /// Cancels all downloads that have not ended.
    /// - Returns: the changed downloads.
    @discardableResult
    public func cancelAll() async throws -> [Download] { try await changeAll(DownloadChange(action: .cancel)) }

    /// Clears the history. The bytes of completed downloads stay; what failed ones have fetched is removed, as none can
    /// be retried any more. Failed episodes that their feeds retry stay in it.
    /// - Returns: the number of dropped entries.
    /// - Throws: `CacheError`: `.disk`, `.closed`.
    @discardableResult
    public func clearHistory() async throws -> Int {
        try await perform { manager throws(DownloadError) in try manager.clearHistory() }
    }

    // MARK: Calling the manager

    private func change(_ id: Download.ID, _ change: DownloadChange) async throws -> Download {
        let changed = try await perform(id) { manager throws(DownloadError) in try manager.change(.ids([id]), change) }
        guard let download = changed.first else { throw CacheError.unknownDownload(id) }
        return download
    }

    private func changeAll(_ change: DownloadChange) async throws -> [Download] {
        try await perform { manager throws(DownloadError) in try manager.change(.all, change) }
    }

    /// - Parameter id: the download to name in errors.
    func perform<Value: Sendable>(
        _ id: Download.ID? = nil, _ work: @Sendable (isolated DownloadManager) throws(DownloadError) -> Value
    ) async throws(CacheError) -> Value {
        guard !cache.isClosed else { throw .closed }
        do throws(DownloadError) { return try await manager.run(work) } catch {
            throw cache.isClosed ? .closed : CacheError(error, id)
        }
    }
}

extension DownloadManager {
    /// Runs several steps without interruption.
    fileprivate func run<Value: Sendable>(
        _ work: @Sendable (isolated DownloadManager) throws(DownloadError) -> Value
    ) throws(DownloadError) -> Value { try work(self) }
}
