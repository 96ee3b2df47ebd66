import Foundation

/// Downloading while waiting for the result. For downloads that continue by themselves, see `CacheDownloads.add`.
extension MediaCache {
    /// The queue of downloads, and everything that can be done with it.
    public var downloads: CacheDownloads { CacheDownloads(cache: self) }

    /// Downloads a resource, and waits until everything ordered is cached. Bytes that are already cached are not
    /// fetched again, and bytes that a player fetches at the same time are shared. While the cache is offline, this
    /// waits in any case: ask `isCached(_:)` and `localURL(of:)`.
    ///
    /// Cancelling the task cancels the download, unless it was also ordered elsewhere or has another waiter. The
    /// bytes received by then are removed, except those that others use.
    /// - Returns: where to play it from: see `localURL(of:)`.
    /// - Throws: `CancellationError` if the task is cancelled; `CacheError`: `.downloadFailed` after the last
    ///   attempt, `.downloadCancelled` if it is cancelled elsewhere, `.unsupportedURL`, `.invalid`, `.disk`,
    ///   `.closed`. If the download is completed but cannot be played from anywhere, the error of `localURL(of:)`:
    ///   `.incomplete` if only the beginning was ordered and no proxy runs, `.notServed`, `.notCached` if it is not
    ///   pinned and has been evicted already.
    @discardableResult
    public func download(_ url: URL, options: DownloadOptions = DownloadOptions()) async throws -> URL {
        try Task.checkCancellation()
        switch await downloads.follow(url, options, { _ in }) {
        case .completed(_, let local?): return local
        // Throws the reason why there is no local URL, or returns one that exists by now.
        case .completed(let download, _): return try await localURL(of: download.subject ?? url)
        case .failed(let error): throw error
        case .progress, nil: throw CancellationError()
        }
    }

    /// Downloads a resource, and reports its progress. Ends after `.completed` or `.failed`.
    ///
    /// When its consumer goes away (the loop is left, the task is cancelled, the stream is released), the download
    /// is cancelled, unless it has ended, was also ordered elsewhere, or has another waiter.
    public func downloadEvents(
        for url: URL, options: DownloadOptions = DownloadOptions()
    ) -> AsyncStream<DownloadEvent> {
        let (events, continuation) = AsyncStream.makeStream(
            of: DownloadEvent.self, bufferingPolicy: .bufferingNewest(1))
        let work = Task {
            if let last = await downloads.follow(url, options, { continuation.yield($0) }) { continuation.yield(last) }
            continuation.finish()
        }
        continuation.onTermination = { _ in work.cancel() }
        return events
    }
}
