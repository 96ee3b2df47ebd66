import Activity
import CachePolicy
import ControlAPI
import DiskCache
import Downloads
import EventIO
import Foundation
import HTTPModel
import HTTPTransport
import Logging
import Synchronization
import Upstream

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
    package let manager: DownloadManager
    let hooks: DownloadHooks
    package let subscriptions: SubscriptionManager
    package let source: LoopDownloads
    package let restorePoints: StoreRestorePoints
    let bell: SnapshotBell
    let live: LiveState
    let clientLimits: Current<ClientLimits>
    let wants = DownloadWants()
    /// Shared by all validations, so that one runs at a time.
    let scrubs = ScrubTurn()
    /// Distinguishes the events of this process from those of another.
    let session = String(UInt64.random(in: .min ... .max), radix: 36)
    let logger: Logger
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

    package convenience init(_ configuration: ProxyConfiguration, tuning: ProxyTuning, logger: Logger) throws {
        try self.init(opening: configuration, tuning: tuning, logger: logger)
        startDownloads()
    }

    /// Opens the cache. Until `startDownloads`, it fetches only what players request.
    init(opening configuration: ProxyConfiguration, tuning: ProxyTuning, logger: Logger) throws {
        do {
            let threads = try Self.check(configuration)
            let downloads = try DownloadSettings(configuration)
            let limits = try configuration.clientLimits()
            let engine = try CacheEngine(configuration, tuning: tuning, threads: threads, logger: logger)
            hooks = try DownloadHooks(configuration, engine.policy, engine.metrics, engine.logger)
            clientLimits = Current(limits.bounded(by: engine.descriptors, engine.logger))
            source = LoopDownloads(engine.fillers, of: engine.filler)
            restorePoints = StoreRestorePoints(engine.store) { engine.policy.value }
            do throws(DownloadError) {
                manager = try DownloadManager(
                    directory: configuration.cacheDirectory, source: tuning.downloads ? source : nil,
                    restorePoints: restorePoints,
                    settings: downloads, clock: SystemDownloadClock(), logger: engine.logger
                ) { [wants] ids in
                    for id in ids { wants.keep(id) }
                } ended: { [hooks] in
                    hooks.ended($0)
                }
            } catch {
                try engine.shutDown()
                throw error
            }
            do throws(DownloadError) {
                subscriptions = try Self.subscriptions(configuration, tuning, engine, manager)
            } catch {
                manager.perform { $0.stop() }
                try engine.shutDown()
                throw error
            }
            let nextDownloads = NextDownloads(engine, manager, now: tuning.now)
            engine.next.add { [subscriptions] url, answer in subscriptions.next(after: url, then: answer) }
            // Inside the subscriptions' actor, which may wait for downloads and for the store.
            engine.next.connect { [subscriptions] url in
                subscriptions.unlessOrdered(url) { nextDownloads.order($0) }
            }
            // Includes the databases of downloads and feeds.
            engine.store.countIndexNow()
            engine.onNetworkChange { [manager] in manager.post { $0.networkChanged() } }
            bell = SnapshotBell(manager.snapshots)
            live = Self.liveState(engine, manager.snapshots, tuning)
            settings = Current(configuration)
            self.tuning = tuning
            self.engine = engine
            self.logger = engine.logger
        } catch {
            throw ProxyError(error)
        }
    }

    private static func liveState(_ engine: CacheEngine, _ downloads: DownloadSnapshots, _ tuning: ProxyTuning)
        -> LiveState
    {
        LiveState(
            collect: { [activity = engine.activity] in activity.collect($0) }, downloads: downloads,
            policy: engine.policy, metrics: engine.metrics, statistics: engine.snapshot,
            perform: { [store = engine.store] in store.perform($0) },
            moment: { [now = tuning.now] in .init(instant: MonotonicClock.nanoseconds(), time: now()) })
    }

    private static func subscriptions(
        _ configuration: ProxyConfiguration, _ tuning: ProxyTuning, _ engine: CacheEngine, _ downloads: DownloadManager
    ) throws(DownloadError) -> SubscriptionManager {
        try SubscriptionManager(
            directory: configuration.cacheDirectory, source: LoopFeeds(engine.fillers, of: engine.filler),
            downloads: downloads,
            store: StoreEpisodes(
                engine.store, snapshots: downloads.snapshots, policy: { engine.policy.value }, now: tuning.now),
            clock: SystemFeedClock(), logger: engine.logger)
    }

    /// - Returns: the number of loops.
    static func check(_ configuration: ProxyConfiguration) throws(ProxyError) -> Int {
        _ = try configuration.address()
        _ = try DownloadHooks.commands(configuration)
        _ = try configuration.checkedTransmission()
        _ = try configuration.checkedTrusted()
        let threads = configuration.threads ?? ProcessInfo.processInfo.activeProcessorCount
        guard (1...256).contains(threads) else {
            throw .invalidSetting("\(threads) threads cannot work; choose 1 to 256")
        }
        if let name = configuration.names.first(where: { !HostName.isOne($0) }) {
            throw .invalidSetting(
                "'\(name)' in names is not a host name: write it without a port, like tv.example; addresses need no entry"
            )
        }
        if let file = configuration.certificateFile, access(file, R_OK) != 0 {
            throw .invalidSetting("cannot read the certificates in \(file): \(String(errno: errno))")
        }
        for (name, time, range) in [
            ("linger", configuration.linger, ProxyConfiguration.lingerRange),
            ("connectTimeout", configuration.connectTimeout, ProxyConfiguration.connectTimeoutRange),
            ("stallTimeout", configuration.stallTimeout, ProxyConfiguration.stallTimeoutRange),
            ("downloadRetryTime", configuration.downloadRetryTime, ProxyConfiguration.downloadRetryRange),
            ("drainTime", configuration.drainTime, ProxyConfiguration.drainTimeRange),
        ] where !range.contains(time) {
            throw .invalidSetting("\(name) of \(time) cannot work; choose \(range.lowerBound) to \(range.upperBound)")
        }
        for (name, count) in [
            ("maxFetches", configuration.maxFetches), ("maxFetchesPerHost", configuration.maxFetchesPerHost),
        ]
        where !ProxyConfiguration.fetchesRange.contains(count) {
            throw .invalidSetting(
                "\(name) of \(count) cannot work; choose 1 to \(ProxyConfiguration.fetchesRange.upperBound)")
        }
        return threads
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
        changes.sync {
            guard let proxy else { return }
            stop(proxy, grace: grace)
        }
    }

    /// Stops this proxy, unless another one has been started since.
    func stopProxy(_ proxy: Proxy, grace: Duration, quiet: Duration?) {
        changes.sync {
            if self.proxy === proxy { stop(proxy, grace: grace, quiet: quiet) }
        }
    }

    /// On `changes`.
    private func stop(_ proxy: Proxy, grace: Duration, quiet: Duration? = nil) {
        proxy.server.stop(graceSeconds: grace.inSeconds, quietSeconds: quiet?.inSeconds)
        state.withLock { $0.proxy = nil }
        do throws(StoreError) { try engine.store.announce(url: "") } catch {
            logger.error("other processes still look for the proxy at \(proxy.baseURL): \(error)")
        }
    }

    func began(_ proxy: Proxy) throws(StoreError) {
        if tuning.isForOthers { try engine.store.announce(url: proxy.baseURL, isBrief: !tuning.checksFeeds) }
        state.withLock { $0.proxy = proxy }
    }

    /// Publishes for other processes that this one reads its configuration again on SIGHUP, and from where.
    /// - Parameter path: absolute; nil if it reads no file.
    package func announce(configurationFile path: String?) {
        guard let proxy else { return }
        do throws(StoreError) {
            try engine.store.announce(url: proxy.baseURL, reloads: true, configurationFile: path)
        } catch {
            logger.error("other processes do not know the configuration file: \(error)")
        }
    }

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
            if let proxy { stop(proxy, grace: grace) }
            bell.end()
            engine.next.stop()
            // Must be earlier than the loops' end: stopping checks and downloads needs them.
            subscriptions.perform { $0.stop() }
            manager.perform { $0.stop() }
            // Last: a program that takes its time keeps nothing from being saved.
            defer { hooks.close() }
            do throws(StoreError) { try engine.shutDown() } catch {
                throw ProxyError.disk("the cache could not be closed in order: \(error)")
            }
        }
    }

    var isClosed: Bool { state.withLock { $0.isClosed } }

    func checkOpen() throws(CacheError) {
        if isClosed { throw .closed }
    }

    /// Continues interrupted downloads, and looks after the subscribed feeds.
    func startDownloads() {
        manager.perform { $0.start() }
        if tuning.downloads { subscriptions.perform { [tuning] in $0.start(checksByItself: tuning.checksFeeds) } }
    }
}

extension ProxyConfiguration {
    /// The address to listen on.
    func address() throws(ProxyError) -> ListenAddress {
        guard let address = ListenAddress(listen) else {
            throw .invalidSetting("cannot listen on '\(listen)': write HOST:PORT, such as 127.0.0.1:7335")
        }
        return address
    }

    func checkedTransmission() throws(ProxyError) -> Transmission {
        guard let transmission = Transmission(rawValue: transmission) else {
            throw .invalidSetting("'\(transmission)' is not a transmission: write mapping or sendfile")
        }
        return transmission
    }
}
