import Downloads
import Foundation
import HTTPModel

/// Watching downloads. Events come from the download itself; nothing is polled.
extension CacheDownloads {
    /// Reports the progress of a download, beginning with its current state. Ends after `.completed` or `.failed`.
    /// Watching has no effect on the download, which continues without watchers too.
    ///
    /// ```swift
    /// for await event in cache.downloads.events(of: download.id) {
    ///     switch event {
    ///     case .progress(let download): print(download.fractionCompleted ?? 0)
    ///     case .completed(_, let localURL): if let localURL { player.open(localURL) }
    ///     case .failed(let error): print(error)
    ///     }
    /// }
    /// ```
    public func events(of id: Download.ID) -> AsyncStream<DownloadEvent> { events(of: id, lastKnown: self[id]) }

    /// - Parameter lastKnown: its last known state; the history may have dropped it since.
    func events(of id: Download.ID, lastKnown: Download?) -> AsyncStream<DownloadEvent> {
        let (events, continuation) = AsyncStream.makeStream(
            of: DownloadEvent.self, bufferingPolicy: .bufferingNewest(1))
        let watching = Task {
            let last = await watch(id, lastKnown) { continuation.yield(.progress($0)) }
            if let last { continuation.yield(last) }
            continuation.finish()
        }
        continuation.onTermination = { _ in watching.cancel() }
        return events
    }

    /// - Parameter report: called with each new state.
    /// - Returns: the last event; nil if the task was cancelled. The stream calls its termination handler before it
    ///   ends, so an event could still reach a consumer that is leaving.
    private func watch(_ id: Download.ID, _ lastKnown: Download?, _ report: (Download) -> Void) async -> DownloadEvent?
    {
        var (last, reported) = (lastKnown, nil as Download?)
        for await _ in cache.downloader.bell.rings() {
            guard let download = self[id] else { return await end(ofForgotten: id, last) }
            if download != reported { report(download) }
            (last, reported) = (download, download)
            if download.state.hasEnded { return await end(of: download) }
        }
        return Task.isCancelled ? nil : .failed(.closed)
    }

    private func end(of download: Download) async -> DownloadEvent {
        switch download.state {
        case .cancelled: return .failed(.downloadCancelled(download))
        case .failed: return .failed(.downloadFailed(download))
        default:
            // A download without a local URL is completed nevertheless: `localURL(of:)` throws the reason.
            guard let url = download.subject, let local = try? await cache.localURL(of: url) else {
                return .completed(download, localURL: nil)
            }
            return .completed(download, localURL: local)
        }
    }

    /// The end of a download that ended and was dropped from the history before it was looked up: the cached bytes
    /// tell how it ended.
    /// - Parameter last: its last known state; nil if it was never looked up.
    private func end(ofForgotten id: Download.ID, _ last: Download?) async -> DownloadEvent {
        if cache.isClosed { return .failed(.closed) }
        guard let last else { return .failed(.unknownDownload(id)) }
        if last.state.hasEnded { return await end(of: last) }
        guard isCached(last) else { return .failed(.downloadCancelled(last)) }
        var download = last
        download.state = .completed
        if let total = download.total { download.bytes = total }
        (download.bytesPerSecond, download.eta) = (nil, nil)
        return await end(of: download)
    }

    /// Whether everything that a download ordered is cached.
    private func isCached(_ download: Download) -> Bool {
        guard let url = download.subject else { return false }
        guard let first = download.wantedFirst else { return cache.isCached(url) }
        do {
            guard let coverage = try cache.coverage(of: url) else { return false }
            return coverage.contains(0..<min(first, coverage.length)) // no trap: neither is negative
        } catch {
            cache.logger.error("could not look up what is cached of \(download.urlText): \(error)")
            return false
        }
    }

    /// A `Progress` of a download, in bytes, for a program's user interface. It is updated on the main actor for as
    /// long as the program holds it. Cancelling, pausing and resuming it cancels, pauses and resumes the download.
    ///
    /// `throughputKey` and `estimatedTimeRemainingKey` of its `userInfo` are in bytes per second and in seconds. It
    /// is indeterminate until the total is known, and becomes cancelled if the download fails or is cancelled
    /// elsewhere.
    @MainActor public func progress(of id: Download.ID) -> Progress {
        let progress = FollowingProgress(totalUnitCount: -1)
        progress.kind = .file
        progress.setUserInfoObject(Progress.FileOperationKind.downloading, forKey: .fileOperationKindKey)
        progress.isPausable = true
        progress.cancellationHandler = { Task { await attempt("cancel", id) { try await cancel(id) } } }
        progress.pausingHandler = { Task { await attempt("pause", id) { try await pause(id) } } }
        progress.resumingHandler = { Task { await attempt("resume", id) { try await resume(id) } } }
        let events = events(of: id)
        progress.following = Task { @MainActor [weak progress] in
            for await event in events {
                guard let progress else { return }
                progress.show(event)
            }
        }
        return progress
    }

    /// Logs an error, because there is no caller to throw it to.
    private func attempt(_ what: String, _ id: Download.ID, _ change: () async throws -> Download) async {
        guard self[id]?.state.hasEnded == false else { return }
        // A cache that was closed ends what is followed, which cancels it.
        do { _ = try await change() } catch CacheError.closed {} catch {
            cache.logger.error("could not \(what) the download \(id): \(error)")
        }
    }
}

/// Follows a download for as long as the program holds it, even when nothing happens to the download any more.
///
/// `@unchecked Sendable`, as `Progress` is, because `following` is set before the object is shared.
private final class FollowingProgress: Progress, @unchecked Sendable {
    var following: Task<Void, Never>?

    deinit { following?.cancel() }
}

extension Progress {
    @MainActor fileprivate func show(_ event: DownloadEvent) {
        switch event {
        case .progress(let download):
            if let total = download.total { totalUnitCount = total }
            completedUnitCount = download.bytes
            setUserInfoObject(download.bytesPerSecond.map { Int($0) }, forKey: .throughputKey)
            setUserInfoObject(download.timeLeft.map { $0.inSeconds }, forKey: .estimatedTimeRemainingKey)
        case .completed(let download, _):
            // A slow reader gets the end alone. 0 of 0 would not count as finished.
            totalUnitCount = max(1, download.total ?? download.bytes)
            completedUnitCount = totalUnitCount
            end()
        case .failed:
            end()
            if !isCancelled { cancel() }
        }
    }

    private func end() {
        setUserInfoObject(nil, forKey: .throughputKey)
        setUserInfoObject(nil, forKey: .estimatedTimeRemainingKey)
        (isPausable, isCancellable) = (false, false)
    }
}
