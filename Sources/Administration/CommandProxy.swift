import Activity
import CachePolicy
import ControlAPI
import DiskCache
import EventIO
import Foundation
import HTTPModel
import Logging
import Reelcache
import Upstream

/// What a command does with a cache that no proxy serves. Each includes those before it.
package enum CacheUse {
    /// Reads and changes what is there.
    case lookup
    /// Adds something: the cache is created if it does not exist, and the limits of the configuration apply, but are
    /// raised to keep everything that is cached already.
    case adding
    /// Fetches from origins. That may take long, so other commands find the proxy meanwhile.
    case fetching
    /// Carries out the downloads of the queue, once `startDownloads` is called.
    case downloading

    var fetches: Bool { self == .fetching || self == .downloading }
}

/// The one way of commands to a cache: through a proxy, whether another process runs it or this one.
extension ProxyConfiguration {
    /// Passes the proxy of the cache to `body`: the one that serves it, otherwise one that runs in this process until
    /// `body` returns. That one listens on the loopback interface, and nothing begins by itself: no download, no check
    /// of a feed, no eviction. If another process owns the cache for a moment (another command, a proxy that starts or
    /// stops), waits for it.
    /// - Parameters:
    ///   - isWanted: called while waiting; false aborts with an error.
    ///   - none: the result for a cache that does not exist; nil to throw.
    /// - Throws: `CacheAccessError` if there is no cache, or another command keeps it open; `ProxyError` if it cannot
    ///   be opened; the errors of `body`.
    package func withProxy<Result>(
        for use: CacheUse = .lookup, isWanted: () -> Bool = { true }, orElse none: Result? = nil,
        _ body: (RunningProxy) throws -> Result
    ) throws -> Result {
        if let none, access(cacheDirectory + "/index.sqlite", F_OK) != 0, errno == ENOENT,
            RunningProxy(cacheDirectory: cacheDirectory) == nil
        {
            return none
        }
        return try withProxy(isWanted: isWanted, startedBy: { try startProxy(for: use) }, body)
    }

    /// The same with another proxy of this process, if no other process runs one.
    package func withProxy<Result>(
        isWanted: () -> Bool, startedBy start: () throws -> Proxy, _ body: (RunningProxy) throws -> Result
    ) throws -> Result {
        switch try owner(isWanted, orElse: start) {
        case .running(var proxy):
            // Its flags may have set other mounts.
            proxy.place = try place(proxy.baseURL)
            return try body(proxy)
        case .own(let own):
            return try closing(with: { try own.stop(grace: .zero) }) {
                try body(RunningProxy(own, at: place(baseURL ?? own.baseURL)))
            }
        }
    }

    /// Reads every cached byte again and compares checksums: through the proxy that serves the cache, otherwise by
    /// opening the store alone, because the rest of a damaged cache may not open.
    /// - Parameters:
    ///   - repairs: whether to drop damaged bytes.
    ///   - isWanted: called with the progress, nil before it is known; false aborts with an error.
    package func verify(repairs: Bool, isWanted: @escaping (ScrubProgress?) -> Bool) throws -> ScrubReport {
        switch try owner({ isWanted(nil) }, orElse: openStore) {
        case .running(let proxy): return try proxy.verify(repairs: repairs, isWanted: isWanted)
        case .own(let store):
            return try closing(with: { try store.close() }) {
                var isInterrupted = !isWanted(nil)
                let report = try store.scrub(repairs: repairs) { progress in
                    isInterrupted = isInterrupted || !isWanted(progress)
                    return !isInterrupted
                }
                if isInterrupted { throw CacheAccessError.interrupted }
                return report
            }
        }
    }

    /// An error of `body` takes precedence over one from closing.
    private func closing<Result>(with close: () throws -> Void, _ body: () throws -> Result) throws -> Result {
        let result = Swift.Result { try body() }
        do { try close() } catch { if case .success = result { throw error } }
        return try result.get()
    }

    /// - Parameter url: the address of the proxy.
    func place(_ url: String?) throws(ProxyError) -> ProxyPlace {
        ProxyPlace(url: url, names: names, mounts: try Self.policy(of: mounts))
    }

    // MARK: A cache of this process

    /// The limit that a cache was filled under is unknown to a command, so nothing is evicted to one.
    private static let noLimit = Int64.max / 2

    private func startProxy(for use: CacheUse) throws -> Proxy {
        if use == .lookup { try requireCache() }
        var (configuration, tuning) = (self, ProxyTuning())
        // Only this process uses the proxy.
        (configuration.listen, configuration.servesAnyOrigin, configuration.accessLog) = ("127.0.0.1:0", true, nil)
        (configuration.trusted, configuration.expectsProxyHeader) = ([], false)
        (configuration.maxConnectionsPerClient, configuration.maxRequestsPerClient) = (nil, nil)
        (configuration.maxSize, configuration.minFree) = (Self.noLimit, 0)
        if !use.fetches {
            (configuration.threads, configuration.isOffline, configuration.certificateFile) = (1, true, nil)
        }
        tuning.evictsAhead = false
        tuning.adviceWords = .flags
        tuning.downloads = use == .downloading
        tuning.checksFeeds = false
        tuning.isForOthers = use.fetches
        let proxy = try Proxy(configuration, tuning: tuning, logger: Self.commandLogger, startsDownloads: false)
        guard use != .lookup else { return proxy }
        do { try limit(proxy, use) } catch {
            try? proxy.stop(grace: .zero)
            throw error
        }
        return proxy
    }

    private func limit(_ proxy: Proxy, _ use: CacheUse) throws {
        // The store leaves up to 8 MiB of its limit free, and something small fits in addition. Downloads are large, so
        // the cache must not grow for them beyond its size or its limit.
        let size = proxy.counters[\.size], room: Int64 = use == .downloading ? 0 : 12 << 20
        var (info, minFree) = (statvfs(), minFree)
        if statvfs(cacheDirectory, &info) == 0 {
            // If less is free already, nothing is evicted to change that.
            minFree = min(minFree, Int64(clamping: info.f_bavail) *| Int64(clamping: info.f_frsize) / 2)
        }
        try proxy.cache.reconfigure { ($0.maxSize, $0.minFree) = (max(maxSize, size +| room), minFree) }
    }

    private func openStore() throws -> CacheStore {
        try requireCache()
        var settings = StoreConfiguration(directory: cacheDirectory)
        (settings.maxSize, settings.minFree, settings.evictsAhead) = (Self.noLimit, 0, false)
        do {
            try DispatchDescriptors.make()
            return try CacheStore(settings, metrics: ProxyMetrics(), logger: Self.commandLogger)
        } catch { throw CacheAccessError(ControlError(error)) }
    }

    private static let commandLogger: Logger = {
        var logger = Logger(label: "reelcache", factory: { StreamLogHandler.standardError(label: $0) })
        logger.logLevel = .error
        return logger.guarded(by: Current(ProxyPolicy()))
    }()

    /// Refuses a missing cache, because a query must not create one.
    private func requireCache() throws {
        var info = stat()
        let isThere = stat(cacheDirectory, &info) == 0
        guard !isThere || info.st_mode & S_IFMT == S_IFDIR else {
            throw CacheAccessError("the cache directory \(cacheDirectory) is not a directory", .otherDirectory)
        }
        guard isThere && access(cacheDirectory, R_OK | W_OK | X_OK) == 0 || errno == ENOENT else {
            throw CacheAccessError(
                "cannot use the cache directory \(cacheDirectory): \(String(errno: errno))", .otherDirectory)
        }
        guard isThere, access(cacheDirectory + "/index.sqlite", F_OK) == 0 else {
            throw CacheAccessError(
                "there is no cache at \(cacheDirectory); name another with --cache-dir, or fill one with reelcache serve"
            )
        }
    }

    // MARK: The owner

    private enum Owner<Own> {
        case running(RunningProxy)
        case own(Own)
    }

    /// Finds the proxy that serves the cache, or opens the cache in this process. Waits for an owner that will probably
    /// release it soon: another command, a proxy that has not announced itself yet, or one that accepts no more
    /// connections.
    /// - Throws: the errors of `open` if no process owns the cache; `CacheAccessError` if another process keeps it.
    private func owner<Own>(_ isWanted: () -> Bool, orElse open: () throws -> Own) throws -> Owner<Own> {
        // Ten seconds, in steps too short to notice.
        for triesLeft in (0...100).reversed() {
            let proxy = RunningProxy(cacheDirectory: cacheDirectory)
            if let proxy, triesLeft == 0 || proxy.isReachable { return .running(proxy) }
            if proxy == nil {
                do { return .own(try open()) } catch {
                    // The lock may have been taken since the check, and its owner has not always recorded its
                    // process ID.
                    guard CacheOwner.isThere(in: cacheDirectory) else { throw error }
                }
            }
            guard isWanted() else { throw CacheAccessError.interrupted }
            if triesLeft > 0 { usleep(100_000) }
        }
        let owner = CacheOwner.current(of: cacheDirectory).map { "process \($0.pid)" } ?? "another process"
        throw CacheAccessError(
            "\(owner) has the cache \(cacheDirectory) open but runs no proxy: wait until it has ended")
    }
}

private extension RunningProxy {
    /// Whether it accepts connections. A proxy that does but does not answer has another problem, and waiting would
    /// not help.
    var isReachable: Bool {
        do throws(UpstreamError) { _ = try BlockingFetch.get(url: baseURL + "/healthz", timeout: 2) } catch {
            switch error {
            case .cannotConnect, .broken: return false
            default: break
            }
        }
        return true
    }
}
