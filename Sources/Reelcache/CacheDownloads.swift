import Downloads
import Foundation

/// The downloads of an open cache: a queue that outlives the process. What was interrupted goes on when the cache is
/// opened again; what is paused stays paused.
///
/// Safe to use from any thread. What tells how things are does not wait; what changes something waits for it to be
/// saved.
public struct CacheDownloads: Sendable {
    let cache: MediaCache

    private var manager: DownloadManager { cache.manager }
    private var snapshots: DownloadSnapshots { cache.manager.snapshots }

    // MARK: How things are

    /// A download, as it is now; nil where there is none of that name, or it is forgotten.
    public subscript(id: Download.ID) -> Download? { snapshots[id].map(Download.init) }

    /// The download of a URL, as it is now: the one that has not ended, else the last that has; nil where there is
    /// none.
    public func status(of url: URL) -> Download? {
        guard let origin = try? MediaCache.origin(url) else { return nil }
        let found = snapshots.downloads(of: origin)
        return (found.first { !$0.state.hasEnded } ?? found.max { $0.id < $1.id }).map(Download.init)
    }

    /// All that have not ended, in the order in which they go: those under way, those that wait, those that are paused.
    public var active: [Download] { snapshots.listing().downloads.map(Download.init) }

    /// All of them together.
    public var totals: Totals { Totals(snapshots.summary) }

    /// How many run at once; `MediaCache.setMaxDownloads` changes it.
    public var maxActive: Int { snapshots.summary.settings.maxActive }

    /// Bytes per second of all together, nil for no limit; `MediaCache.setDownloadRate` changes it.
    public var bytesPerSecond: Int64? { snapshots.summary.settings.limitRate }

    /// Those that have ended, the newest first; the last 1,000 are kept.
    /// - Parameters:
    ///   - limit: how many at most; nil for all.
    ///   - category: only those with this word; nil for all.
    public func history(limit: Int? = nil, category: String? = nil) async -> [Download] {
        await manager.history(limit: limit.map { max($0, 0) }, category: category).map(Download.init)
    }

    // MARK: Changing them

    /// Orders a download. One of the same URL that has not ended is that download from now on, as these options say,
    /// and goes on if it was paused.
    /// - Returns: the download, which is saved.
    /// - Throws: `CacheError`: `.unsupportedURL`, `.invalid` for options that make no sense, `.disk`, `.closed`.
    @discardableResult
    public func add(_ url: URL, options: DownloadOptions = DownloadOptions()) async throws -> Download {
        try await add([url], options: options)[0]
    }

    /// Orders downloads, all or none.
    /// - Returns: for each URL its download.
    /// - Throws: as for one.
    @discardableResult
    public func add(_ urls: [URL], options: DownloadOptions = DownloadOptions()) async throws -> [Download] {
        let orders = try urls.map { DownloadOrder(try MediaCache.origin($0), options) }
        let reports = try await perform { manager throws(DownloadError) in try manager.add(orders) }
        guard reports.count == urls.count else { throw CacheError.disk("the downloads could not be saved") }
        return reports.map(Download.init)
    }

    /// Pauses a download. Its bytes are kept, and only what is missing is fetched later.
    /// - Throws: `CacheError`: `.unknownDownload`, `.conflict` where it has ended, `.disk`, `.closed`; the other
    ///   changes likewise.
    @discardableResult
    public func pause(_ id: Download.ID) async throws -> Download {
        try await change(id, DownloadChange(action: .pause))
    }

    /// Has a paused download go on.
    @discardableResult
    public func resume(_ id: Download.ID) async throws -> Download {
        try await change(id, DownloadChange(action: .resume))
    }

    /// Ends a download and removes its bytes, but for those that were there before, and those that somebody else uses.
    @discardableResult
    public func cancel(_ id: Download.ID) async throws -> Download {
        try await change(id, DownloadChange(action: .cancel))
    }

    /// Has a download that has failed, or waits for its next attempt, go on now, from the bytes that it has.
    @discardableResult
    public func retry(_ id: Download.ID) async throws -> Download {
        try await change(id, DownloadChange(action: .retry))
    }

    /// Gives a download another priority; it then is the last of those that have it.
    @discardableResult
    public func setPriority(_ priority: Download.Priority, of id: Download.ID) async throws -> Download {
        try await change(id, DownloadChange(priority: DownloadPriority(priority)))
    }

    /// Gives a download another place among those of its priority that wait; 0 is the first.
    @discardableResult
    public func move(_ id: Download.ID, to position: Int) async throws -> Download {
        try await change(id, DownloadChange(position: position))
    }

    /// Limits how fast a download is, in bytes per second; nil for no limit of its own.
    @discardableResult
    public func setBytesPerSecond(_ limit: Int64?, of id: Download.ID) async throws -> Download {
        try await change(id, DownloadChange(limitRate: limit ?? 0))
    }

    /// Pauses all that have not ended.
    /// - Returns: those that were changed.
    @discardableResult
    public func pauseAll() async throws -> [Download] { try await changeAll(DownloadChange(action: .pause)) }

    /// Has all go on that are paused.
    /// - Returns: those that were changed.
    @discardableResult
    public func resumeAll() async throws -> [Download] { try await changeAll(DownloadChange(action: .resume)) }

    /// Cancels all that have not ended.
    /// - Returns: those that were changed.
    @discardableResult
    public func cancelAll() async throws -> [Download] { try await changeAll(DownloadChange(action: .cancel)) }

    /// Forgets what has ended. What is cached stays.
    /// - Returns: how many.
    /// - Throws: `CacheError`: `.disk`, `.closed`.
    @discardableResult
    public func clearHistory() async throws -> Int {
        try await perform { manager throws(DownloadError) in try manager.clearHistory() }
    }

    // MARK: Asking the manager

    private func change(_ id: Download.ID, _ change: DownloadChange) async throws -> Download {
        let changed = try await perform(id) { manager throws(DownloadError) in try manager.change(.ids([id]), change) }
        guard let report = changed.first else { throw CacheError.unknownDownload(id) }
        return Download(report)
    }

    private func changeAll(_ change: DownloadChange) async throws -> [Download] {
        try await perform { manager throws(DownloadError) in try manager.change(.all, change) }.map(Download.init)
    }

    /// - Parameter id: the download that it is about.
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
    /// Does several things with nothing between them.
    fileprivate func run<Value: Sendable>(
        _ work: @Sendable (isolated DownloadManager) throws(DownloadError) -> Value
    ) throws(DownloadError) -> Value { try work(self) }
}
