import Foundation

/// What a program does with a cache, as a value: tests can replace its closures one by one, and the rest of the
/// program does not depend on a cache.
///
/// ```swift
/// struct Player { var cache: MediaCacheClient }
///
/// let player = Player(cache: .live(try await MediaCache.open()))
///
/// var client = MediaCacheClient.failing
/// client.isCached = { _ in true }
/// let tested = Player(cache: client)
/// ```
public struct MediaCacheClient: Sendable {
    /// As `MediaCache.isCached(_:)`.
    public var isCached: @Sendable (URL) -> Bool
    /// As `MediaCache.coverage(of:)`.
    public var coverage: @Sendable (URL) async throws -> CacheCoverage?
    /// As `MediaCache.startProxy()`. Returns `Proxy.baseURL`, the URL at which the proxy can be reached.
    public var startProxy: @Sendable () async throws -> String
    /// As `MediaCache.stopProxy(grace:)`.
    public var stopProxy: @Sendable (_ grace: Duration) async -> Void
    /// As `MediaCache.proxiedURL(for:)`.
    public var proxiedURL: @Sendable (URL) throws -> URL
    /// As `MediaCache.localURL(of:)`.
    public var localURL: @Sendable (URL) async throws -> URL
    /// As `MediaCache.resources(by:containing:limit:offset:)`, most recently read first.
    public var resources: @Sendable () async throws -> [CachedResource]
    /// As `MediaCache.remove(_:)`.
    public var remove: @Sendable (URL) async throws -> Int64
    /// As `MediaCache.touch(_:)`.
    public var touch: @Sendable (URL) async throws -> Void
    /// As `MediaCache.pin(_:)`.
    public var pin: @Sendable (URL) async throws -> Void
    /// As `MediaCache.unpin(_:)`.
    public var unpin: @Sendable (URL) async throws -> Void
    /// Changes `maxSize` and `minFree` as `MediaCache.reconfigure(_:)` does; nil leaves one unchanged.
    public var setLimits: @Sendable (_ maxSize: Int64?, _ minFree: Int64?) async throws -> Void
    /// As `MediaCache.enforceLimits()`.
    public var enforceLimits: @Sendable () async throws -> Int64
    /// As `MediaCache.validate(repairing:progress:)`.
    public var validate:
        @Sendable (_ isRepairing: Bool, _ progress: @escaping @Sendable (Double) -> Void) async throws ->
            CacheValidation
    /// As `MediaCache.download(_:options:)`.
    public var download: @Sendable (URL, DownloadOptions) async throws -> URL
    /// As `MediaCache.downloadEvents(for:options:)`.
    public var downloadEvents: @Sendable (URL, DownloadOptions) -> AsyncStream<DownloadEvent>
    /// As `CacheDownloads.add(_:options:)`.
    public var add: @Sendable (URL, DownloadOptions) async throws -> Download
    /// As `CacheDownloads.pause(_:)`.
    public var pause: @Sendable (Download.ID) async throws -> Download
    /// As `CacheDownloads.resume(_:)`.
    public var resume: @Sendable (Download.ID) async throws -> Download
    /// As `CacheDownloads.cancel(_:)`.
    public var cancel: @Sendable (Download.ID) async throws -> Download
    /// As `CacheDownloads.retry(_:)`.
    public var retry: @Sendable (Download.ID) async throws -> Download
    /// As `CacheDownloads.setPriority(_:of:)`.
    public var setPriority: @Sendable (Download.Priority, Download.ID) async throws -> Download
    /// As `CacheDownloads.move(_:to:)`.
    public var move: @Sendable (Download.ID, _ position: Int) async throws -> Download
    /// As `CacheDownloads.status(of:)`.
    public var status: @Sendable (URL) -> Download?
    /// As `CacheDownloads.active`.
    public var active: @Sendable () -> [Download]
    /// As `CacheDownloads.totals`.
    public var totals: @Sendable () -> CacheDownloads.Totals
    /// As `CacheDownloads.history(limit:category:)`.
    public var history: @Sendable (_ limit: Int?, _ category: String?) async -> [Download]
    /// As `CacheDownloads.clearHistory()`.
    public var clearHistory: @Sendable () async throws -> Int
    /// As `CacheDownloads.events(of:)`.
    public var events: @Sendable (Download.ID) -> AsyncStream<DownloadEvent>

    /// Uses an open cache.
    public static func live(_ cache: MediaCache) -> MediaCacheClient {
        let downloads = cache.downloads
        return MediaCacheClient(
            isCached: { cache.isCached($0) }, coverage: { try await cache.coverage(of: $0) },
            startProxy: { try await cache.startProxy().baseURL },
            stopProxy: { await cache.stopProxy(grace: $0) }, proxiedURL: { try cache.proxiedURL(for: $0) },
            localURL: { try await cache.localURL(of: $0) }, resources: { try await cache.resources() },
            remove: { try await cache.remove($0) }, touch: { try await cache.touch($0) },
            pin: { try await cache.pin($0) }, unpin: { try await cache.unpin($0) },
            setLimits: { maxSize, minFree in
                try await cache.reconfigure {
                    ($0.maxSize, $0.minFree) = (maxSize ?? $0.maxSize, minFree ?? $0.minFree)
                }
            },
            enforceLimits: { try await cache.enforceLimits() },
            validate: { try await cache.validate(repairing: $0, progress: $1) },
            download: { try await cache.download($0, options: $1) },
            downloadEvents: { cache.downloadEvents(for: $0, options: $1) },
            add: { try await downloads.add($0, options: $1) },
            pause: { try await downloads.pause($0) }, resume: { try await downloads.resume($0) },
            cancel: { try await downloads.cancel($0) }, retry: { try await downloads.retry($0) },
            setPriority: { try await downloads.setPriority($0, of: $1) },
            move: { try await downloads.move($0, to: $1) },
            status: { downloads.status(of: $0) }, active: { downloads.active }, totals: { downloads.totals },
            history: { await downloads.history(limit: $0, category: $1) },
            clearHistory: { try await downloads.clearHistory() },
            events: { downloads.events(of: $0) })
    }

    /// Throws `CacheError.unimplemented` with the name of the closure: a test replaces the closures that it expects
    /// to be called. The only event of `downloadEvents` and `events` is that error.
    ///
    /// Closures that can neither throw nor report behave as with an empty cache: `isCached`, `status`, `active`,
    /// `totals` and `history`; `stopProxy` does nothing.
    public static let failing = MediaCacheClient(
        isCached: { _ in false }, coverage: { _ in throw CacheError.unimplemented("coverage") },
        startProxy: { throw CacheError.unimplemented("startProxy") }, stopProxy: { _ in },
        proxiedURL: { _ in throw CacheError.unimplemented("proxiedURL") },
        localURL: { _ in throw CacheError.unimplemented("localURL") },
        resources: { throw CacheError.unimplemented("resources") },
        remove: { _ in throw CacheError.unimplemented("remove") },
        touch: { _ in throw CacheError.unimplemented("touch") }, pin: { _ in throw CacheError.unimplemented("pin") },
        unpin: { _ in throw CacheError.unimplemented("unpin") },
        setLimits: { _, _ in throw CacheError.unimplemented("setLimits") },
        enforceLimits: { throw CacheError.unimplemented("enforceLimits") },
        validate: { _, _ in throw CacheError.unimplemented("validate") },
        download: { _, _ in throw CacheError.unimplemented("download") },
        downloadEvents: { _, _ in .of(.failed(.unimplemented("downloadEvents"))) },
        add: { _, _ in throw CacheError.unimplemented("add") }, pause: { _ in throw CacheError.unimplemented("pause") },
        resume: { _ in throw CacheError.unimplemented("resume") },
        cancel: { _ in throw CacheError.unimplemented("cancel") },
        retry: { _ in throw CacheError.unimplemented("retry") },
        setPriority: { _, _ in throw CacheError.unimplemented("setPriority") },
        move: { _, _ in throw CacheError.unimplemented("move") }, status: { _ in nil }, active: { [] },
        totals: { CacheDownloads.Totals() },
        history: { _, _ in [] }, clearHistory: { throw CacheError.unimplemented("clearHistory") },
        events: { _ in .of(.failed(.unimplemented("events"))) })

    /// An empty cache for previews: downloads are complete at once, at the URLs that they were ordered for, and
    /// nothing is kept.
    public static let noop = MediaCacheClient(
        isCached: { _ in false }, coverage: { _ in nil }, startProxy: { "http://127.0.0.1:7335" }, stopProxy: { _ in },
        proxiedURL: { $0 },
        localURL: { $0 }, resources: { [] }, remove: { _ in 0 }, touch: { _ in }, pin: { _ in }, unpin: { _ in },
        setLimits: { _, _ in },
        enforceLimits: { 0 }, validate: { _, _ in CacheValidation() }, download: { url, _ in url },
        downloadEvents: { .of(.completed(.done($0, $1), localURL: $0)) }, add: { .done($0, $1) },
        pause: { throw CacheError.unknownDownload($0) },
        resume: { throw CacheError.unknownDownload($0) }, cancel: { throw CacheError.unknownDownload($0) },
        retry: { throw CacheError.unknownDownload($0) }, setPriority: { throw CacheError.unknownDownload($1) },
        move: { id, _ in throw CacheError.unknownDownload(id) }, status: { _ in nil }, active: { [] },
        totals: { CacheDownloads.Totals() },
        history: { _, _ in [] }, clearHistory: { 0 }, events: { .of(.failed(.unknownDownload($0))) })
}

extension Download {
    /// A download as if the whole resource had been cached already.
    fileprivate static func done(_ url: URL, _ options: DownloadOptions) -> Download {
        Download(id: 0, url: url.absoluteString, state: .completed, options: options)
    }
}

extension AsyncStream<DownloadEvent> {
    fileprivate static func of(_ event: DownloadEvent) -> Self {
        AsyncStream { continuation in
            continuation.yield(event)
            continuation.finish()
        }
    }
}
