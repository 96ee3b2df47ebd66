import CachePolicy
import ControlAPI
import DiskCache
import Foundation
import HTTPModel
import Playlists
import Presentations

/// Cached resources. A URL finds the resource that the rules cache it under, otherwise the one cached under the URL
/// itself.
///
/// Functions that are not `async` wait for the disk for a moment (an index look-up; a write to remove or pin). They
/// may be called from any thread.
extension MediaCache {
    /// The URL that a player opens for a media URL while the proxy runs: a URL below a mount, if the proxy serves
    /// mounts only.
    ///
    /// `Proxy.url(for:)` takes and returns text, for URLs that `URL` would write differently.
    /// - Throws: `CacheError`: `.noProxy`, `.unsupportedURL`, `.notServed`.
    public func proxiedURL(for url: URL) throws -> URL {
        let origin = try OriginURL(url)
        guard let proxy else { throw isClosed ? CacheError.closed : .noProxy }
        guard let target = engine.policy.value.target(of: origin) else { throw CacheError.notServed(url) }
        guard let proxied = URL(string: proxy.baseURL + target) else {
            throw CacheError.unsupportedURL("\(proxy.baseURL + target) is not a URL: use Proxy.url(for:)")
        }
        return proxied
    }

    /// Whether a resource is completely cached, so that it plays without its origin; false if the disk fails. For a
    /// presentation: whether completely cached renditions can be played by themselves. That requires reading its
    /// playlists, which takes some milliseconds for a thousand segments; it is false if a playlist cannot be read.
    ///
    /// Fast, and does not wait for running work: can be called for each cell of a list.
    public func isCached(_ url: URL) -> Bool {
        guard let origin = try? OriginURL(url) else { return false }
        do throws(CacheError) {
            return try engine.find(origin) { store, key throws(StoreError) in
                guard try store.isComplete(key) else { return nil }
                return try PresentationContents.isPlayable(key, in: store, engine.policy.value)
            } ?? false
        } catch {
            if error != .closed { logger.error("could not look up whether \(origin.absolute) is cached: \(error)") }
            return false
        }
    }

    /// The cached byte ranges of a resource at this moment, including bytes just written.
    /// - Returns: nil if nothing of it is cached, or its length is not known yet.
    /// - Throws: `CacheError`: `.unsupportedURL`, `.disk`, `.closed`.
    public func coverage(of url: URL) throws -> CacheCoverage? {
        try engine.find(OriginURL(url)) { store, key throws(StoreError) in try store.coverage(key) }
    }

    /// The cached renditions of a presentation, and how much of each is cached, by the URL of its first playlist.
    /// - Returns: nil if that playlist is not cached, or is not a playlist.
    /// - Throws: `CacheError`: `.unsupportedURL`, `.disk`, `.closed`.
    public func presentation(of url: URL) throws -> CachedPresentation? {
        try engine.find(OriginURL(url)) { store, key throws(StoreError) in
            try PresentationContents(of: key, in: store, engine.policy.value)
        }?.report
    }

    /// Lists the cached resources, complete or not.
    /// - Parameters:
    ///   - order: which come first.
    ///   - text: a part of their URLs, ignoring case; nil for all.
    ///   - limit: the maximum number; nil for all.
    ///   - offset: how many to skip at the beginning.
    /// - Throws: `CacheError`: `.disk`, `.closed`.
    public func resources(
        by order: CachedResource.Order = .recent, containing text: String? = nil, limit: Int? = nil, offset: Int = 0
    ) throws -> [CachedResource] {
        var query = ResourceQuery()
        (query.order, query.filter, query.limit, query.offset) = (
            order, text, limit.map { max($0, 0) }, max(offset, 0)
        )
        return try engine.inStore { [query] store throws(StoreError) in try store.resources(query) }.resources
    }

    /// Removes a resource, pinned or not. A player that is reading it gets the rest from the origin.
    /// - Returns: the bytes freed on the disk, some of them only after the last player has finished; 0 if nothing of
    ///   it is cached.
    /// - Throws: `CacheError`: `.conflict` if a download of it has not ended, `.unsupportedURL`, `.disk`, `.closed`.
    @discardableResult
    public func remove(_ url: URL) throws -> Int64 {
        try checkOpen()
        let origin = try OriginURL(url)
        if let download = downloader.manager.snapshots.unfinished(of: origin, under: engine.policy.value) {
            throw CacheError.conflict(ControlError.beingDownloaded(origin.absolute, by: download.id).description)
        }
        return try engine.find(origin) { store, key throws(StoreError) in try store.remove(key, isDryRun: false) }?
            .bytes ?? 0
    }

    /// Removes everything that is not pinned.
    /// - Parameter date: removes only resources that were last read before; nil for all.
    /// - Returns: the bytes freed on the disk.
    /// - Throws: `CacheError`: `.disk`, `.closed`.
    @discardableResult
    public func removeAll(notReadSince date: Date? = nil) throws -> Int64 {
        let selection = RemovalSelection(before: date.map { Int64(saturating: $0.timeIntervalSince1970) })
        return try engine.inStore { store throws(StoreError) in try store.removeAll(selection, isDryRun: false) }.bytes
    }

    /// Counts a resource as read now, so that it is the last to be evicted.
    /// - Throws: `CacheError`: `.notCached`, `.unsupportedURL`, `.disk`, `.closed`.
    public func touch(_ url: URL) throws {
        try engine.change(url) { store, key throws(StoreError) in try store.touch(key) }
    }

    /// Pins a resource, so that it is not evicted until it is unpinned or removed. It still counts towards the
    /// limit.
    /// - Throws: `CacheError`: `.notCached`, `.unsupportedURL`, `.disk`, `.closed`.
    public func pin(_ url: URL) throws {
        try engine.change(url) { store, key throws(StoreError) in try store.setPinned(true, key, isByHand: true) }
    }

    /// Unpins a resource, so that it can be evicted when room is needed.
    /// - Throws: `CacheError`: `.notCached`, `.unsupportedURL`, `.disk`, `.closed`.
    public func unpin(_ url: URL) throws {
        try engine.change(url) { store, key throws(StoreError) in try store.setPinned(false, key, isByHand: true) }
    }

    /// Evicts now whatever exceeds the limits and is neither pinned nor in use, for example after another program
    /// has filled the disk. The cache does so by itself every second.
    /// - Returns: the bytes freed on the disk.
    /// - Throws: `CacheError.closed`.
    @discardableResult
    public func enforceLimits() throws -> Int64 {
        try engine.inStore { store throws(StoreError) in store.enforceLimits() }
    }

    /// The current counters.
    public var statistics: CacheStatistics { CacheStatistics(engine.snapshot()) }

    // MARK: Whole files

    /// The file of a complete resource, with exactly its bytes. Chunks left unverified by an unclean end are
    /// verified first.
    ///
    /// Only read the file: a change damages the cache. It stays for as long as the resource is pinned, not removed,
    /// and not replaced by a newer version from its origin; copy it to keep it longer.
    /// - Throws: `CacheError`: `.notCached`, `.incomplete`, `.unsupportedURL`, `.disk`, `.closed`.
    public func fileURL(of url: URL) async throws -> URL {
        switch try await engine.hold(OriginURL(url)) {
        case nil: throw CacheError.notCached(url)
        case .incomplete(let missing)?: throw CacheError.incomplete(url, missing: missing.reduce(0) { $0 +| $1.count })
        case .complete(let hold)?:
            let file = "\(configuration.cacheDirectory)/\(hold.path)"
            var info = stat()
            guard stat(file, &info) == 0, Int64(info.st_size) == hold.length else {
                throw CacheError.disk("\(file) is missing or was changed: call validate(repairing: true)")
            }
            return URL(fileURLWithPath: file)
        }
    }

    /// The URL to play a resource from: through the proxy while it runs, otherwise that of its file, as
    /// `fileURL(of:)` returns it. A playlist plays through the proxy only.
    /// - Throws: `CacheError` as `proxiedURL(for:)` and `fileURL(of:)` do; `.noProxy` for a playlist while no proxy
    ///   runs.
    public func localURL(of url: URL) async throws -> URL {
        guard proxy == nil else { return try proxiedURL(for: url) }
        let found = try await engine.find(OriginURL(url)) { store, key throws(StoreError) in try store.resource(key) }
        guard found?.resource.parts == nil else { throw CacheError.noProxy }
        return try await fileURL(of: url)
    }

    /// Reads every cached byte again and compares checksums, while players continue to be served. Takes as long as
    /// the disk takes to read the whole cache.
    /// - Parameters:
    ///   - isRepairing: whether to drop damaged bytes, which are then fetched again on demand.
    ///   - progress: called now and then with the fraction read, 0 to 1, on a thread of the cache: it must not
    ///     block.
    /// - Throws: `CancellationError` if the task is cancelled; `CacheError`: `.validationIsRunning`, `.disk`,
    ///   `.closed`.
    public func validate(repairing isRepairing: Bool = false, progress: @escaping @Sendable (Double) -> Void = { _ in })
        async throws -> CacheValidation
    {
        guard scrubs.begin() else { throw CacheError.validationIsRunning }
        defer { scrubs.end() }
        let budget = WorkBudget(bytes: 0)
        let report = try await withTaskCancellationHandler {
            try await engine.perform(isLong: true) { store throws(StoreError) in
                try store.scrub(repairs: isRepairing) { scrub in
                    if scrub.totalBytes > 0 { progress(min(1, Double(scrub.bytes) / Double(scrub.totalBytes))) }
                    return !budget.isCancelled
                }
            }
        } onCancel: {
            budget.cancel()
        }
        try Task.checkCancellation()
        guard report.isComplete else { throw CacheError.closed }
        return report
    }
}
