import Foundation

/// Downloading for somebody who waits for it. For what shall go on without that, see `CacheDownloads.add`.
extension MediaCache {
    /// The queue of downloads, and all that can be done with it.
    public var downloads: CacheDownloads { CacheDownloads(cache: self) }

    /// Downloads a resource, and waits until all that is wanted is cached. Bytes that are there already are not fetched
    /// again; what a player fetches at the same time is shared.
    ///
    /// When the task is cancelled, so is the download, unless somebody else has ordered it or waits for it too. What
    /// has come by then is removed, but for what others use.
    /// - Returns: where it can be played from: see `localURL(of:)`.
    /// - Throws: `CancellationError` where the task is cancelled; `CacheError`: `.downloadFailed` after the last
    ///   attempt, `.downloadCancelled` where somebody else cancels it, `.unsupportedURL`, `.invalid`, `.disk`,
    ///   `.closed`. What `localURL(of:)` throws where the download is completed, but cannot be played from anywhere:
    ///   `.incomplete` where only the beginning was wanted and no proxy runs, `.notServed`, `.notCached` where it is
    ///   not pinned and has been evicted already.
    @discardableResult
    public func download(_ url: URL, options: DownloadOptions = DownloadOptions()) async throws -> URL {
        try Task.checkCancellation()
        switch await follow(url, options, { _ in }) {
        case .completed(_, let local?): return local
        // Which throws why there is none, unless there is by now.
        case .completed: return try await localURL(of: url)
        case .failed(let error): throw error
        case .progress, nil: throw CancellationError()
        }
    }

    /// Downloads a resource, and tells how far it is. Ends after `.completed` or `.failed`.
    ///
    /// When its consumer goes away (the loop is left, the task is cancelled, the stream is let go of), the download is
    /// cancelled, unless it has ended, or somebody else has ordered it or waits for it too.
    public func downloadEvents(
        for url: URL, options: DownloadOptions = DownloadOptions()
    ) -> AsyncStream<DownloadEvent> {
        let (events, continuation) = AsyncStream.makeStream(
            of: DownloadEvent.self, bufferingPolicy: .bufferingNewest(1))
        let work = Task {
            if let last = await follow(url, options, { continuation.yield($0) }) { continuation.yield(last) }
            continuation.finish()
        }
        continuation.onTermination = { _ in work.cancel() }
        return events
    }

    /// - Parameter tell: told what happens before the end.
    /// - Returns: the last event; nil where the task was cancelled.
    private func follow(_ url: URL, _ options: DownloadOptions, _ tell: (DownloadEvent) -> Void) async -> DownloadEvent?
    {
        let ordered: Download
        do throws(CacheError) { ordered = try await downloads.want(Self.origin(url), options) } catch {
            return .failed(error)
        }
        var end: DownloadEvent?
        for await event in downloads.events(of: ordered.id, lastKnown: ordered) {
            if case .progress = event { tell(event) } else { end = event }
        }
        await downloads.unwant(ordered.id, isOver: end != nil)
        return end
    }
}
