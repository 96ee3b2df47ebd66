import CachePolicy
import DiskCache
import HTTPModel
import LocalFiles
import Logging
import Reelcache
import Units

/// What commands do to a cache, whether a proxy owns it (`RunningProxy`) or nobody (`OpenedCache`). All of it blocks,
/// and throws `CacheAccessError`.
package protocol CacheAccess {
    /// Where a proxy serves this cache or would, as far as the configuration says.
    var place: ProxyPlace { get }

    func resources(_ query: ResourceQuery) throws -> ResourceListing

    /// - Throws: also where nothing of it is cached; the other calls for one resource likewise.
    /// - Parameter listsSegments: whether each segment of a presentation is told.
    func resource(_ url: OriginURL, listsSegments: Bool) throws -> ResourceDetail

    func setPinned(_ isPinned: Bool, _ url: OriginURL) throws -> ResourceDetail

    /// Removes a resource, pinned or not.
    /// - Throws: also where a download of it has not ended, which would go on as if nothing had come.
    func remove(_ url: OriginURL, isDryRun: Bool) throws -> RemovalReport

    /// Removes what is not pinned.
    /// - Parameter olderThan: only what was last read so long ago; nil for all.
    func removeAll(olderThan: TimeSpan?, isDryRun: Bool) throws -> RemovalReport

    /// Lends the file of a complete resource: it stays as it is while `body` runs, and `isHeld` of it is true.
    /// - Parameter isWanted: asked now and then before `body` runs; false ends it with an error.
    /// - Throws: what `body` throws; an error with `missing` where the resource is not complete.
    func withFile(_ url: OriginURL, isWanted: @escaping () -> Bool, _ body: @escaping (LentFile) throws -> Void) throws

    /// Takes a resource in.
    /// - Parameters:
    ///   - file: stands at its beginning. If it changes meanwhile, nothing is taken in.
    ///   - isWanted: told now and then how many bytes have been read; false ends it, and nothing is taken in.
    func importFile(
        _ url: OriginURL, file: ImportedFile, fields: HeaderFields, replaces: Bool, isWanted: @escaping (Int64) -> Bool
    ) throws -> ResourceReport

    /// Reads everything again and compares checksums.
    /// - Parameters:
    ///   - repairs: whether what is damaged is dropped.
    ///   - isWanted: told how far it is, nil before that is known; false ends it with an error.
    func verify(repairs: Bool, isWanted: @escaping (ScrubProgress?) -> Bool) throws -> ScrubReport
}

extension CacheAccess {
    package func resource(_ url: OriginURL) throws -> ResourceDetail { try resource(url, listsSegments: false) }
}

/// The file of a complete resource, in the hands of somebody who copies it.
package struct LentFile {
    package let path: String
    /// Bytes of the resource; the file may have more.
    package let length: Int64
    /// Whether the file has been kept as it is until now. Without its owner it can change: then what was read of it is
    /// worth nothing.
    package let isHeld: () -> Bool
}

/// Why something cannot be done to a cache. The description is one line that says what to do.
package struct CacheAccessError: AdvisedError, Sendable {
    package let reason: String
    package let advice: Advice?
    /// What is not cached, where that is the reason.
    package var missing: [ByteSpan]?
    /// The status of the control interface for it, where it has one.
    package var status: Int?
    /// The download that is in the way, where that is the reason.
    var download: Int64?

    /// Nothing of the resource is cached.
    package var isNotCached: Bool { status == 404 }

    package init(_ reason: String, _ advice: Advice? = nil) { (self.reason, self.advice) = (reason, advice) }

    /// What another part says, with its advice.
    init(_ error: some AdvisedError) { self.init(error.reason, error.advice) }

    init(_ error: FileError) { self.init(error.description) }

    static func beingDownloaded(_ url: OriginURL, by id: Int64) -> CacheAccessError {
        CacheAccessError("\(url.absolute) is being downloaded (download \(id))", .cancel(download: id))
    }

    package static let interrupted = CacheAccessError("interrupted")
}

extension ProxyConfiguration {
    /// Gives the cache of this configuration to `body`: through the proxy that owns it, else opened by this process.
    /// Whoever has it for a moment (another command, a proxy that starts or stops) is waited for.
    ///
    /// Opened, it evicts nothing, however large it is: the limit it was filled under is not known.
    /// - Parameters:
    ///   - isFilled: whether bytes come in. Then the cache is made where there is none, and the limits of this
    ///     configuration hold, but for
    ///     what is there already.
    ///   - isWanted: asked while it waits; false ends it with an error.
    /// - Throws: `CacheAccessError` where there is no cache, or another command keeps it; what `body` throws.
    package func withCache<Result>(
        isFilled: Bool = false, isWanted: () -> Bool = { true }, _ body: (any CacheAccess) throws -> Result
    ) throws -> Result {
        var wait = OwnerWait(cacheDirectory: cacheDirectory)
        switch try wait.access(isWanted, orElse: { try OpenedCache(self, isFilled: isFilled) }) {
        case .running(let proxy): return try body(known(proxy))
        case .own(let opened): return try closing(with: opened.close) { try body(opened) }
        }
    }

    /// Gives the downloads of this cache to `body`: through the proxy that owns it, else opened by this process, which
    /// then fetches nothing. It waits as `withCache`.
    /// - Parameter makesCache: whether the cache is made where there is none.
    package func withDownloads<Result>(
        makesCache: Bool = false, isWanted: () -> Bool = { true }, _ body: (any DownloadAccess) throws -> Result
    ) throws -> Result {
        var wait = OwnerWait(cacheDirectory: cacheDirectory)
        switch try wait.access(isWanted, orElse: { try OpenedDownloads(self, makesCache: makesCache) }) {
        case .running(let proxy): return try body(known(proxy))
        case .own(let opened): return try closing(with: opened.close) { try body(opened) }
        }
    }

    /// What went wrong in `body` says more than what goes wrong then.
    private func closing<Result>(with close: () throws -> Void, _ body: () throws -> Result) throws -> Result {
        let result = Swift.Result { try body() }
        do { try close() } catch { if case .success = result { throw error } }
        return try result.get()
    }

    /// Gives the proxy of the cache to `body`: the one that owns it, else one that runs in this process meanwhile. It
    /// waits as `withCache`.
    /// - Parameter carriesOutDownloads: whether one that runs in this process goes on with what is in the queue.
    package func withProxy<Result>(
        carriesOutDownloads: Bool = false, isWanted: () -> Bool = { true }, _ body: (RunningProxy) throws -> Result
    ) throws -> Result {
        try withProxy(isWanted, orElse: { try startProxy(carriesOutDownloads: carriesOutDownloads) }) { proxy, _ in
            try body(proxy)
        }
    }

    /// Gives the proxy of the cache to `body`: the one that owns it; otherwise one that serves in this process as
    /// `reelcache serve` does, until `body` returns. It waits as `withCache`.
    /// - Parameters:
    ///   - logger: for a proxy of this process.
    ///   - body: its second argument is the proxy of this process, if it is that.
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

    /// With what it has mounted, unless its flags say otherwise.
    private func known(_ proxy: RunningProxy) throws -> RunningProxy {
        var proxy = proxy
        proxy.place = try place(proxy.baseURL)
        return proxy
    }

    /// - Parameter url: where the proxy listens.
    func place(_ url: String?) throws(ProxyError) -> ProxyPlace {
        ProxyPlace(url: url, names: names, mounts: try Self.policy(of: mounts))
    }

    private func startProxy(carriesOutDownloads: Bool) throws -> Proxy {
        var configuration = self
        configuration.listen = "127.0.0.1:0"
        let size = try OpenedCache.sizeIfThere(self)
        // What is downloaded is no small thing: the cache does not grow for it past what it has, or may have.
        configuration.maxSize = carriesOutDownloads ? max(maxSize, size) : OpenedCache.limit(self, size: size)
        configuration.minFree = OpenedCache.minFree(self)
        // Nobody but this process asks it.
        configuration.servesAnyOrigin = true
        var tuning = ProxyTuning()
        tuning.evictsAhead = false
        tuning.adviceWords = .flags
        tuning.downloads = carriesOutDownloads
        return try Proxy(configuration, tuning: tuning, logger: OpenedCache.logger)
    }
}
