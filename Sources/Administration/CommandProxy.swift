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

/// What a command does with a cache that no proxy serves.
package enum CacheUse {
    /// Reads and changes what is there.
    case lookup
    /// Plays what is there, through a proxy that is offline.
    case playing
    /// Adds something: the cache is created if it does not exist, and the limits of the configuration apply, but are
    /// raised to keep everything that is cached already.
    case adding
    /// Fetches from origins. That may take long, so other commands find the proxy meanwhile.
    case fetching
    /// Carries out the downloads of the queue, once `Downloader.start` is called.
    case downloading

    var adds: Bool { self != .lookup && self != .playing }
    /// Whether it takes more than the control interface.
    var needsProxy: Bool { self != .lookup && self != .adding }
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
    /// - Throws: `ControlError` if there is no cache, or another command keeps it open; `ProxyError` if it cannot
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
        return try with(isWanted, { try open(for: use) }, isPlayer: use != .downloading, body)
    }

    /// The same with another proxy of this process, if no other process runs one.
    package func withProxy<Result>(
        isWanted: () -> Bool, startedBy start: () throws -> Proxy, _ body: (RunningProxy) throws -> Result
    ) throws -> Result {
        try with(isWanted, { .proxy(try start()) }, isPlayer: true, body)
    }

    private func with<Result>(
        _ isWanted: () -> Bool, _ open: () throws -> OwnCache, isPlayer: Bool,
        _ body: (RunningProxy) throws -> Result
    ) throws -> Result {
        switch try owner(isWanted, orElse: open) {
        case .running(var proxy):
            // Its flags may have set other mounts.
            proxy.place = try place(proxy.baseURL)
            return try body(proxy)
        case .own(let own):
            return try closing(with: own.stop) {
                let proxy = RunningProxy(
                    own: own.proxy, baseURL: own.baseURL, cacheDirectory: cacheDirectory,
                    place: try place(baseURL ?? own.baseURL))
                defer { if own.proxy?.isBrief == true { Self.awaitPlayers(of: proxy, isPlayer: isPlayer, isWanted) } }
                return try body(proxy)
            }
        }
    }

    /// Another command may have had a player use this process's proxy, which would be cut. One of a stream is idle
    /// between two segments.
    /// - Parameter isPlayer: whether this command may have played streams itself.
    private static func awaitPlayers(of proxy: RunningProxy, isPlayer: Bool, _ isWanted: () -> Bool) {
        var isSaid = false
        while isWanted(), let report = try? proxy.client.call(\.now),
            report.plays.contains(where: { $0.state != .idle || $0.isPresentation && !isPlayer })
        {
            if !isSaid {
                let text = "reelcache: a player reads from \(proxy.baseURL): this command ends after it, or on Ctrl-C\n"
                FileHandle.standardError.write(Data(text.utf8))
            }
            isSaid = true
            usleep(200_000)
        }
    }

    /// Reads every cached byte again and compares checksums: through the proxy that serves the cache, otherwise by
    /// opening the store alone, because the rest of a damaged cache may not open.
    /// - Parameters:
    ///   - repairs: whether to drop damaged bytes.
    ///   - isWanted: called with the progress, nil before it is known; false aborts with an error.
    package func verify(repairs: Bool, isWanted: @escaping (ScrubProgress?) -> Bool) throws -> CacheValidation {
        switch try owner({ isWanted(nil) }, orElse: openStore) {
        case .running(let proxy): return try proxy.verify(repairs: repairs, isWanted: isWanted)
        case .own(let store):
            return try closing(with: { try store.close() }) {
                var isInterrupted = !isWanted(nil)
                let report = try store.scrub(repairs: repairs) { progress in
                    isInterrupted = isInterrupted || !isWanted(progress)
                    return !isInterrupted
                }
                if isInterrupted { throw ControlError.interrupted }
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

    /// What this process runs for a command: a proxy only if it plays or fetches.
    private enum OwnCache {
        case control(ControlServer)
        case proxy(Proxy)

        var baseURL: String {
            switch self {
            case .control(let server): server.baseURL
            case .proxy(let proxy): proxy.baseURL
            }
        }

        var proxy: Proxy? { if case .proxy(let proxy) = self { proxy } else { nil } }

        func stop() throws {
            switch self {
            case .control(let server): try server.stop()
            case .proxy(let proxy): try proxy.stop(grace: .zero)
            }
        }
    }

    private func open(for use: CacheUse) throws -> OwnCache {
        if !use.adds { try requireCache() }
        var configuration = self
        // Only this process uses it.
        (configuration.listen, configuration.servesAnyOrigin, configuration.accessLog) = ("127.0.0.1:0", true, nil)
        (configuration.trusted, configuration.expectsProxyHeader) = ([], false)
        (configuration.maxConnectionsPerClient, configuration.maxRequestsPerClient) = (nil, nil)
        (configuration.maxSize, configuration.minFree) = (Self.noLimit, 0)
        let own: OwnCache
        if use.needsProxy {
            if use == .playing {
                (configuration.threads, configuration.isOffline, configuration.certificateFile) = (1, true, nil)
            }
            var tuning = ProxyTuning()
            (tuning.evictsAhead, tuning.adviceWords) = (false, .flags)
            (tuning.downloads, tuning.checksFeeds, tuning.isForOthers) = (use == .downloading, false, use != .playing)
            own = .proxy(
                try Proxy(configuration, tuning: tuning, logger: Self.commandLogger, startsDownloads: false))
        } else {
            own = .control(try ControlServer(configuration, adviceWords: .flags, logger: Self.commandLogger))
        }
        guard use.adds else { return own }
        do { try limit(own, use) } catch {
            try? own.stop()
            throw error
        }
        return own
    }

    private func limit(_ own: OwnCache, _ use: CacheUse) throws {
        // The store leaves up to 8 MiB of its limit free, and something small fits in addition. Downloads are large, so
        // the cache must not grow for them beyond its size or its limit.
        let room: Int64 = use == .downloading ? 0 : 12 << 20
        var (info, minFree) = (statvfs(), minFree)
        if statvfs(cacheDirectory, &info) == 0 {
            // If less is free already, nothing is evicted to change that.
            minFree = min(minFree, Int64(clamping: info.f_bavail) *| Int64(clamping: info.f_frsize) / 2)
        }
        switch own {
        case .control(let server):
            try server.setLimits(maxSize: maxSize, room: room, minFree: minFree)
        case .proxy(let proxy):
            let size = proxy.counters[\.size]
            try proxy.cache.reconfigure { ($0.maxSize, $0.minFree) = (max(maxSize, size +| room), minFree) }
        }
    }

    private func openStore() throws -> CacheStore {
        try requireCache()
        var settings = StoreConfiguration(directory: cacheDirectory)
        (settings.maxSize, settings.minFree, settings.evictsAhead) = (Self.noLimit, 0, false)
        do {
            try DispatchDescriptors.make()
            return try CacheStore(settings, metrics: ProxyMetrics(), logger: Self.commandLogger)
        } catch { throw ControlError(error) }
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
            throw ControlError("the cache directory \(cacheDirectory) is not a directory", .otherDirectory)
        }
        guard isThere && access(cacheDirectory, R_OK | W_OK | X_OK) == 0 || errno == ENOENT else {
            throw ControlError(
                "cannot use the cache directory \(cacheDirectory): \(String(errno: errno))", .otherDirectory)
        }
        guard isThere, access(cacheDirectory + "/index.sqlite", F_OK) == 0 else {
            throw ControlError(
                "there is no cache at \(cacheDirectory); name another with --cache-dir, or fill one with "
                    + "reelcache serve"
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
    /// - Throws: the errors of `open` if no process owns the cache; `ControlError` if another process keeps it.
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
            guard isWanted() else { throw ControlError.interrupted }
            if triesLeft > 0 { usleep(100_000) }
        }
        let owner = CacheOwner.current(of: cacheDirectory).map { "process \($0.pid)" } ?? "another process"
        throw ControlError(
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
