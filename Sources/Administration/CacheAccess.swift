import CachePolicy
import ControlAPI
import DiskCache
import HTTPModel
import Logging
import Reelcache

/// The operations of commands on a cache, whether a running proxy owns it (`RunningProxy`) or no process does
/// (`OpenedCache`). All of them block and throw `CacheAccessError`.
package protocol CacheAccess {
    /// The place at which a proxy serves or would serve this cache, as far as the configuration tells.
    var place: ProxyPlace { get }

    func resources(_ query: ResourceQuery) throws -> ResourceListing

    /// - Throws: also if nothing of it is cached; the other calls for one resource likewise.
    /// - Parameter listsSegments: whether to list each segment of a presentation.
    func resource(_ url: OriginURL, listsSegments: Bool) throws -> ResourceDetail

    func setPinned(_ isPinned: Bool, _ url: OriginURL) throws -> ResourceDetail

    /// Removes a resource, pinned or not.
    /// - Throws: also if a download of it has not ended, which would continue without the bytes it has received.
    func remove(_ url: OriginURL, isDryRun: Bool) throws -> RemovalReport

    /// Removes resources that are not pinned.
    /// - Parameter olderThan: removes only resources that were last read that long ago; nil for all.
    func removeAll(olderThan: TimeSpan?, isDryRun: Bool) throws -> RemovalReport

    /// Lends the file of a complete resource: while `body` runs, the file does not change and its `isHeld` is true.
    /// - Parameter isWanted: called now and then before `body` runs; false aborts with an error.
    /// - Throws: the errors of `body`; an error with `missing` if the resource is not complete.
    func withFile(_ url: OriginURL, isWanted: @escaping () -> Bool, _ body: @escaping (LentFile) throws -> Void) throws

    /// Imports a resource.
    /// - Parameters:
    ///   - file: positioned at its beginning. If it changes during the import, nothing is imported.
    ///   - isWanted: called now and then with the number of bytes read; false aborts, and nothing is imported.
    func importFile(
        _ url: OriginURL, file: ImportedFile, fields: HeaderFields, replaces: Bool, isWanted: @escaping (Int64) -> Bool
    ) throws -> ResourceReport

    /// Reads every cached byte again and compares checksums.
    /// - Parameters:
    ///   - repairs: whether to drop damaged bytes.
    ///   - isWanted: called with the progress, nil before it is known; false aborts with an error.
    func verify(repairs: Bool, isWanted: @escaping (ScrubProgress?) -> Bool) throws -> ScrubReport
}

extension CacheAccess {
    package func resource(_ url: OriginURL) throws -> ResourceDetail { try resource(url, listsSegments: false) }
}

/// The file of a complete resource, lent for copying.
package struct LentFile {
    package let path: String
    /// The length of the resource, in bytes; the file may be longer.
    package let length: Int64
    /// The content codings in which its origin sent it.
    package let codings: [String]
    /// Whether the file has been held without interruption. Once it is not, the file can change, and bytes read from
    /// it are useless.
    package let isHeld: () -> Bool
}

/// Why a cache operation failed. The description is one line that tells what to do.
package struct CacheAccessError: AdvisedError, Sendable {
    package let reason: String
    package let advice: Advice?
    /// The ranges that are not cached, if that is the reason.
    package var missing: [ByteSpan]?
    /// The corresponding status of the control interface, if there is one.
    package var status: Int?
    /// The download that prevents the operation, if that is the reason.
    var download: Int64?

    /// Nothing of the resource is cached.
    package var isNotCached: Bool { status == 404 }

    package init(_ reason: String, _ advice: Advice? = nil) { (self.reason, self.advice) = (reason, advice) }

    /// An error of another module, with its advice.
    init(_ error: some AdvisedError) { self.init(error.reason, error.advice) }

    init(_ error: FileError) { self.init(error.description) }

    static func beingDownloaded(_ url: OriginURL, by id: Int64) -> CacheAccessError {
        CacheAccessError("\(url.absolute) is being downloaded (download \(id))", .cancel(download: id))
    }

    package static let interrupted = CacheAccessError("interrupted")
}

extension ProxyConfiguration {
    /// Passes the cache of this configuration to `body`: through the proxy that owns it, otherwise opened by this
    /// process. If another process owns it for a moment (another command, a proxy that starts or stops), waits for
    /// it.
    ///
    /// A cache opened by this process evicts nothing, however large it is, because the limit it was filled under is
    /// unknown.
    /// - Parameters:
    ///   - isFilled: whether `body` adds bytes. Then the cache is created if it does not exist, and the limits of
    ///     this configuration apply, but are raised to keep everything that is cached already.
    ///   - isWanted: called while waiting; false aborts with an error.
    /// - Throws: `CacheAccessError` if there is no cache, or another command keeps it open; the errors of `body`.
    package func withCache<Result>(
        isFilled: Bool = false, isWanted: () -> Bool = { true }, _ body: (any CacheAccess) throws -> Result
    ) throws -> Result {
        var wait = OwnerWait(cacheDirectory: cacheDirectory)
        switch try wait.access(isWanted, orElse: { try OpenedCache(self, isFilled: isFilled) }) {
        case .running(let proxy): return try body(known(proxy))
        case .own(let opened): return try closing(with: opened.close) { try body(opened) }
        }
    }

    /// Passes the downloads of this cache to `body`: through the proxy that owns it, otherwise opened by this
    /// process, which then fetches nothing. Waits as `withCache` does.
    /// - Parameter makesCache: whether to create the cache if it does not exist.
    package func withDownloads<Result>(
        makesCache: Bool = false, isWanted: () -> Bool = { true }, _ body: (any DownloadAccess) throws -> Result
    ) throws -> Result {
        var wait = OwnerWait(cacheDirectory: cacheDirectory)
        switch try wait.access(isWanted, orElse: { try OpenedDownloads(self, makesCache: makesCache) }) {
        case .running(let proxy): return try body(known(proxy))
        case .own(let opened): return try closing(with: opened.close) { try body(opened) }
        }
    }

    /// An error of `body` takes precedence over one from closing.
    private func closing<Result>(with close: () throws -> Void, _ body: () throws -> Result) throws -> Result {
        let result = Swift.Result { try body() }
        do { try close() } catch { if case .success = result { throw error } }
        return try result.get()
    }

    /// Passes the proxy of the cache to `body`: the one that owns it, otherwise one that runs in this process until
    /// `body` returns. Waits as `withCache` does.
    package func withProxy<Result>(
        isWanted: () -> Bool = { true }, _ body: (RunningProxy) throws -> Result
    ) throws -> Result {
        try withProxy(isWanted, orElse: { try startProxy(carriesOutDownloads: false) }) { proxy, _ in try body(proxy) }
    }

    /// The same for who waits for downloads: a proxy of this process carries out those of the queue.
    /// - Parameter body: its second argument starts them, if this process runs the proxy.
    package func withDownloadingProxy<Result>(
        isWanted: () -> Bool = { true }, _ body: (RunningProxy, _ start: () -> Void) throws -> Result
    ) throws -> Result {
        try withProxy(isWanted, orElse: { try startProxy(carriesOutDownloads: true) }) { proxy, own in
            try body(proxy) { own?.startDownloads() }
        }
    }

    /// Passes the proxy of the cache to `body`: the one that owns it, otherwise one that serves in this process as
    /// `reelcache serve` does, until `body` returns. Waits as `withCache` does.
    /// - Parameters:
    ///   - logger: for a proxy of this process.
    ///   - body: its second argument is the proxy of this process, or nil if another process runs it.
    package func withServingProxy<Result>(
        logger: Logger, isWanted: () -> Bool = { true }, _ body: (RunningProxy, Proxy?) throws -> Result
    ) throws -> Result {
        try withProxy(isWanted, orElse: { try Proxy(self, logger: logger) }, body)
    }

    private func withProxy<Result>(
        _ isWanted: () -> Bool, orElse start: () throws -> Proxy, _ body: (RunningProxy, Proxy?) throws -> Result
    ) throws -> Result {
        var wait = OwnerWait(cacheDirectory: cacheDirectory)
        let proxy: Proxy
        switch try wait.access(isWanted, orElse: start) {
        case .running(let running): return try body(known(running), nil)
        case .own(let started): proxy = started
        }
        guard let running = RunningProxy(cacheDirectory: cacheDirectory) else {
            try proxy.stop(grace: .zero)
            throw CacheAccessError("the proxy that was started for the cache \(cacheDirectory) cannot be found")
        }
        return try closing(with: { try proxy.stop(grace: .zero) }) { try body(known(running), proxy) }
    }

    /// The proxy with the mounts of this configuration. Its flags may have set others.
    private func known(_ proxy: RunningProxy) throws -> RunningProxy {
        var proxy = proxy
        proxy.place = try place(proxy.baseURL)
        return proxy
    }

    /// - Parameter url: the address of the proxy.
    func place(_ url: String?) throws(ProxyError) -> ProxyPlace {
        ProxyPlace(url: url, names: names, mounts: try Self.policy(of: mounts))
    }

    /// - Parameter carriesOutDownloads: whether it will run the downloads of the queue, once they are started.
    private func startProxy(carriesOutDownloads: Bool) throws -> Proxy {
        var configuration = self
        configuration.listen = "127.0.0.1:0"
        let size = try OpenedCache.sizeIfThere(self)
        // Downloads are large, so the cache must not grow for them beyond its size or its limit.
        configuration.maxSize = carriesOutDownloads ? max(maxSize, size) : OpenedCache.limit(self, size: size)
        configuration.minFree = OpenedCache.minFree(self)
        // Only this process uses the proxy.
        configuration.servesAnyOrigin = true
        var tuning = ProxyTuning()
        tuning.evictsAhead = false
        tuning.adviceWords = .flags
        tuning.downloads = carriesOutDownloads
        tuning.checksFeeds = false
        return try Proxy(
            configuration, tuning: tuning, logger: OpenedCache.logger, startsDownloads: !carriesOutDownloads)
    }
}
