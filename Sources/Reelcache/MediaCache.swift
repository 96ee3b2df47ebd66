import CachePolicy
import DiskCache
import Downloads
import EventIO
import Foundation
import HTTPModel
import Logging
import Synchronization

#if DEBUG
/// Counts what its thread holds.
typealias Mutex = CountedMutex
#endif

/// An open cache in this process: the store on the disk, the loops that fill it, and the proxy that serves it to
/// players while it runs.
///
/// One process at a time can have a cache directory open. Safe to use from any thread. Functions that wait for the
/// disk or for running work block if called without `await`; their `async` forms do not.
///
/// Close each cache that you open. Releasing one without `close` does not close it: its threads continue, its
/// directory stays locked, and it cannot be opened again until the process ends.
///
/// ```swift
/// let cache = try await MediaCache.open()
/// try await cache.startProxy()
/// player.open(try cache.proxiedURL(for: film))
/// try await cache.download(nextEpisode)
/// try await cache.close()
/// ```
public final class MediaCache: Sendable {
    /// As they were configured last.
    let settings: Current<ProxyConfiguration>
    let tuning: ProxyTuning
    let engine: CacheEngine
    package let downloader: Downloader
    let live: LiveState
    /// Shared by all validations, so that one runs at a time.
    let scrubs = ScrubTurn()
    /// Distinguishes the events of this process from those of another.
    let session = String(UInt64.random(in: .min ... .max), radix: 36)
    /// Masks and escapes what the log of this cache masks and escapes.
    package let logger: Logger
    /// Serializes changes of settings.
    let reconfigurations = DispatchQueue(label: "reelcache.settings")
    /// Serializes starting and stopping the proxy and closing the cache.
    private let changes = DispatchQueue(label: "reelcache.cache")
    private let state = Mutex(State())

    private struct State {
        /// The running proxy.
        var proxy: Proxy?
        var isClosed = false
    }

    /// Opens the cache, creating it if it does not exist, and continues interrupted downloads, and checks the
    /// subscribed feeds when they are due. Does not start the proxy.
    /// - Parameters:
    ///   - configuration: the cache directory and all other settings; `startProxy` uses the listen address.
    ///   - logger: receives events such as origin failures; by default they are dropped.
    /// - Throws: `ProxyError`: an invalid setting, a cache directory that another process uses, a failing disk.
    public convenience init(
        _ configuration: ProxyConfiguration = ProxyConfiguration(),
        logger: Logger = Logger(label: "reelcache") { _ in SwiftLogNoOpLogHandler() }
    ) throws {
        try self.init(configuration, tuning: ProxyTuning(), logger: logger)
    }

    /// - Parameter startsDownloads: false to start them with `downloader.start` later: until then, it fetches only what
    ///   players request.
    package init(
        _ configuration: ProxyConfiguration, tuning: ProxyTuning, logger: Logger, startsDownloads: Bool = true
    ) throws {
        do {
            let threads = try configuration.checkedThreads()
            let downloads = try DownloadSettings(configuration), commands = try DownloadHooks.commands(configuration)
            let engine = try CacheEngine(configuration, tuning: tuning, threads: threads, logger: logger)
            do throws(DownloadError) {
                downloader = try Downloader(configuration, downloads, commands, tuning, engine)
            } catch {
                try engine.shutDown()
                throw error
            }
            // Includes the databases of downloads and feeds.
            engine.store.countIndexNow()
            live = engine.liveState(downloader.manager.snapshots)
            settings = Current(configuration)
            self.tuning = tuning
            self.engine = engine
            self.logger = engine.logger
        } catch {
            throw ProxyError(error)
        }
        if startsDownloads { downloader.start() }
    }

    // MARK: The proxy

    /// The running proxy; nil if none is running.
    public var proxy: Proxy? { state.withLock { $0.proxy } }

    /// Starts the proxy, unless it is running: it listens at `listen` of the configuration, and other processes can
    /// find it. It may be started again after it was stopped; with port 0 it then has another port.
    /// - Returns: the running proxy.
    /// - Throws: `ProxyError`: a port that another process uses; `CacheError.closed`.
    @discardableResult
    public func startProxy() throws -> Proxy {
        try changes.sync {
            let (running, isClosed) = state.withLock { ($0.proxy, $0.isClosed) }
            guard !isClosed else { throw CacheError.closed }
            return try running ?? Proxy(of: self, closesCache: false)
        }
    }

    /// Stops the proxy if it is running: stops accepting requests, gives running responses the grace period to end,
    /// and then closes their connections. The cache stays open, and downloads continue.
    /// - Parameter grace: how long running responses may take to end.
    public func stopProxy(grace: Duration = .seconds(5)) {
        changes.sync { stop(proxy, grace: grace) }
    }

    /// Stops this proxy, unless another one has been started since.
    func stopProxy(_ proxy: Proxy, grace: Duration, quiet: Duration?) {
        changes.sync { stop(self.proxy === proxy ? proxy : nil, grace: grace, quiet: quiet) }
    }

    /// On `changes`.
    private func stop(_ proxy: Proxy?, grace: Duration, quiet: Duration? = nil) {
        guard let proxy else { return }
        proxy.server.stop(graceSeconds: grace.inSeconds, quietSeconds: quiet?.inSeconds)
        state.withLock { $0.proxy = nil }
        proxy.withdraw()
    }

    func began(_ proxy: Proxy) { state.withLock { $0.proxy = proxy } }

    // MARK: Closing

    /// Stops the proxy as `stopProxy` does, then the downloads, which continue when the cache is opened again, and
    /// saves everything. Further calls do nothing; all other throwing functions then throw `CacheError.closed` and
    /// change nothing.
    /// - Parameter grace: how long running responses may take to end.
    /// - Throws: `ProxyError` if the cache could not be saved; what is lost is fetched again.
    public func close(grace: Duration = .seconds(5)) throws {
        try changes.sync {
            let isFirst = state.withLock { state in
                defer { state.isClosed = true }
                return !state.isClosed
            }
            guard isFirst else { return }
            engine.isClosing.value = true
            stop(proxy, grace: grace)
            engine.next.stop()
            // Must be earlier than the loops' end: stopping checks and downloads needs them.
            downloader.stop()
            // Last: a program that takes its time keeps nothing from being saved.
            defer { downloader.hooks.programs.close() }
            do throws(StoreError) { try engine.shutDown() } catch {
                throw ProxyError.disk("the cache could not be closed in order: \(error)")
            }
        }
    }

    var isClosed: Bool { state.withLock { $0.isClosed } }

    func checkOpen() throws(CacheError) {
        if isClosed { throw .closed }
    }
}
