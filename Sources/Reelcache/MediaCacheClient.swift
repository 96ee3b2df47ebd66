import Foundation

/// What a program does with a cache, as a value: its parts can be replaced one by one in tests, and the rest of the
/// program knows no cache.
///
/// ```swift
/// struct Player { var cache: MediaCacheClient }
///
/// let player = Player(cache: .live(try MediaCache()))
///
/// var client = MediaCacheClient.failing
/// client.isCached = { _ in true }
/// let tested = Player(cache: client)
/// ```
public struct MediaCacheClient: Sendable {
    /// As `MediaCache.isCached(_:)`.
    public var isCached: @Sendable (URL) -> Bool
    /// As `MediaCache.coverage(of:)`.
    public var coverage: @Sendable (URL) throws -> CacheCoverage?
    /// As `MediaCache.startProxy()`. Gives `Proxy.baseURL`: where the proxy can be reached.
    public var startProxy: @Sendable () throws -> String
    /// As `MediaCache.stopProxy(graceSeconds:)`.
    public var stopProxy: @Sendable (_ graceSeconds: Double) -> Void
    /// As `MediaCache.proxiedURL(for:)`.
    public var proxiedURL: @Sendable (URL) throws -> URL
    /// As `MediaCache.localURL(of:)`.
    public var localURL: @Sendable (URL) async throws -> URL
    /// As `MediaCache.resources(by:containing:limit:offset:)`, the last read first.
    public var resources: @Sendable () throws -> [CachedResource]
    /// As `MediaCache.remove(_:)`.
    public var remove: @Sendable (URL) throws -> Int64
    /// As `MediaCache.touch(_:)`.
    public var touch: @Sendable (URL) throws -> Void
    /// As `MediaCache.pin(_:)`.
    public var pin: @Sendable (URL) throws -> Void
    /// As `MediaCache.unpin(_:)`.
    public var unpin: @Sendable (URL) throws -> Void
    /// As `MediaCache.setLimits(maxSize:minFree:)`.
    public var setLimits: @Sendable (_ maxSize: Int64?, _ minFree: Int64?) throws -> Void
    /// As `MediaCache.enforceLimits()`.
    public var enforceLimits: @Sendable () throws -> Int64
    /// As `MediaCache.validate(repairing:progress:)`.
    public var validate:
        @Sendable (_ isRepairing: Bool, _ progress: @escaping @Sendable (Double) -> Void) async throws ->
            CacheValidation
    /// As `MediaCache.download(_:_:)`.
    public var download: @Sendable (URL, DownloadOptions) async throws -> URL
    /// As `MediaCache.downloading(_:_:)`.
    public var downloading: @Sendable (URL, DownloadOptions) -> AsyncStream<DownloadEvent>
    /// As `CacheDownloads.add(_:_:)`.
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

    /// Each closure is the property of its name. Tests that need few of them begin with `failing` instead.
    public init(
        isCached: @escaping @Sendable (URL) -> Bool,
        coverage: @escaping @Sendable (URL) throws -> CacheCoverage?,
        startProxy: @escaping @Sendable () throws -> String,
        stopProxy: @escaping @Sendable (_ graceSeconds: Double) -> Void,
        proxiedURL: @escaping @Sendable (URL) throws -> URL,
        localURL: @escaping @Sendable (URL) async throws -> URL,
        resources: @escaping @Sendable () throws -> [CachedResource],
        remove: @escaping @Sendable (URL) throws -> Int64,
        touch: @escaping @Sendable (URL) throws -> Void,
        pin: @escaping @Sendable (URL) throws -> Void,
        unpin: @escaping @Sendable (URL) throws -> Void,
        setLimits: @escaping @Sendable (_ maxSize: Int64?, _ minFree: Int64?) throws -> Void,
        enforceLimits: @escaping @Sendable () throws -> Int64,
        validate:
            @escaping @Sendable (_ isRepairing: Bool, _ progress: @escaping @Sendable (Double) -> Void) async throws ->
            CacheValidation,
        download: @escaping @Sendable (URL, DownloadOptions) async throws -> URL,
        downloading: @escaping @Sendable (URL, DownloadOptions) -> AsyncStream<DownloadEvent>,
        add: @escaping @Sendable (URL, DownloadOptions) async throws -> Download,
        pause: @escaping @Sendable (Download.ID) async throws -> Download,
        resume: @escaping @Sendable (Download.ID) async throws -> Download,
        cancel: @escaping @Sendable (Download.ID) async throws -> Download,
        retry: @escaping @Sendable (Download.ID) async throws -> Download,
        setPriority: @escaping @Sendable (Download.Priority, Download.ID) async throws -> Download,
        move: @escaping @Sendable (Download.ID, _ position: Int) async throws -> Download,
        status: @escaping @Sendable (URL) -> Download?,
        active: @escaping @Sendable () -> [Download],
        totals: @escaping @Sendable () -> CacheDownloads.Totals,
        history: @escaping @Sendable (_ limit: Int?, _ category: String?) async -> [Download],
        clearHistory: @escaping @Sendable () async throws -> Int,
        events: @escaping @Sendable (Download.ID) -> AsyncStream<DownloadEvent>
    ) {
        self.isCached = isCached
        self.coverage = coverage
        self.startProxy = startProxy
        self.stopProxy = stopProxy
        self.proxiedURL = proxiedURL
        self.localURL = localURL
        self.resources = resources
        self.remove = remove
        self.touch = touch
        self.pin = pin
        self.unpin = unpin
        self.setLimits = setLimits
        self.enforceLimits = enforceLimits
        self.validate = validate
        self.download = download
        self.downloading = downloading
        self.add = add
        self.pause = pause
        self.resume = resume
        self.cancel = cancel
        self.retry = retry
        self.setPriority = setPriority
        self.move = move
        self.status = status
        self.active = active
        self.totals = totals
        self.history = history
        self.clearHistory = clearHistory
        self.events = events
    }

    /// Does all of it with an open cache.
    public static func live(_ cache: MediaCache) -> MediaCacheClient {
        let downloads = cache.downloads
        return MediaCacheClient(
            isCached: { cache.isCached($0) }, coverage: { try cache.coverage(of: $0) },
            startProxy: { try cache.startProxy().baseURL },
            stopProxy: { cache.stopProxy(graceSeconds: $0) }, proxiedURL: { try cache.proxiedURL(for: $0) },
            localURL: { try await cache.localURL(of: $0) }, resources: { try cache.resources() },
            remove: { try cache.remove($0) },
            touch: { try cache.touch($0) }, pin: { try cache.pin($0) }, unpin: { try cache.unpin($0) },
            setLimits: { try cache.setLimits(maxSize: $0, minFree: $1) }, enforceLimits: { try cache.enforceLimits() },
            validate: { try await cache.validate(repairing: $0, progress: $1) },
            download: { try await cache.download($0, $1) },
            downloading: { cache.downloading($0, $1) }, add: { try await downloads.add($0, $1) },
            pause: { try await downloads.pause($0) },
            resume: { try await downloads.resume($0) }, cancel: { try await downloads.cancel($0) },
            retry: { try await downloads.retry($0) },
            setPriority: { try await downloads.setPriority($0, of: $1) },
            move: { try await downloads.move($0, to: $1) },
            status: { downloads.status(of: $0) }, active: { downloads.active }, totals: { downloads.totals },
            history: { await downloads.history(limit: $0, category: $1) },
            clearHistory: { try await downloads.clearHistory() },
            events: { downloads.events(of: $0) })
    }

    /// Throws `CacheError.unimplemented`, which names what was asked: a test replaces what it expects to be used.
    /// `downloading` and `events` tell it as their only event.
    ///
    /// What can neither throw nor tell answers as a cache does that is empty: `isCached`, `status`, `active`, `totals`
    /// and `history`; `stopProxy` does nothing.
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
        downloading: { _, _ in .of(.failed(.unimplemented("downloading"))) },
        add: { _, _ in throw CacheError.unimplemented("add") }, pause: { _ in throw CacheError.unimplemented("pause") },
        resume: { _ in throw CacheError.unimplemented("resume") },
        cancel: { _ in throw CacheError.unimplemented("cancel") },
        retry: { _ in throw CacheError.unimplemented("retry") },
        setPriority: { _, _ in throw CacheError.unimplemented("setPriority") },
        move: { _, _ in throw CacheError.unimplemented("move") }, status: { _ in nil }, active: { [] },
        totals: { CacheDownloads.Totals() },
        history: { _, _ in [] }, clearHistory: { throw CacheError.unimplemented("clearHistory") },
        events: { _ in .of(.failed(.unimplemented("events"))) })

    /// An empty cache in which downloads are complete at once, at the URLs that they were asked for, and nothing is
    /// kept: for previews.
    public static let noop = MediaCacheClient(
        isCached: { _ in false }, coverage: { _ in nil }, startProxy: { "http://127.0.0.1:7335" }, stopProxy: { _ in },
        proxiedURL: { $0 },
        localURL: { $0 }, resources: { [] }, remove: { _ in 0 }, touch: { _ in }, pin: { _ in }, unpin: { _ in },
        setLimits: { _, _ in },
        enforceLimits: { 0 }, validate: { _, _ in CacheValidation() }, download: { url, _ in url },
        downloading: { .of(.completed(.done($0, $1), localURL: $0)) }, add: { .done($0, $1) },
        pause: { throw CacheError.unknownDownload($0) },
        resume: { throw CacheError.unknownDownload($0) }, cancel: { throw CacheError.unknownDownload($0) },
        retry: { throw CacheError.unknownDownload($0) }, setPriority: { throw CacheError.unknownDownload($1) },
        move: { id, _ in throw CacheError.unknownDownload(id) }, status: { _ in nil }, active: { [] },
        totals: { CacheDownloads.Totals() },
        history: { _, _ in [] }, clearHistory: { 0 }, events: { .of(.failed(.unknownDownload($0))) })
}

extension Download {
    /// As if all of it had been there already.
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
