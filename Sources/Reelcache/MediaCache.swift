import CachePolicy
import ControlAPI
import DiskCache
import Downloads
import EventIO
import Foundation
import HTTPModel
import HTTPTransport
import Logging
import Metrics
import Synchronization
import Units
import Upstream

/// An open cache in this process: what is on the disk, what fills it, and the proxy through which players use it, while
/// that runs.
///
/// One process at a time can have a cache directory open. Safe to use from any thread. What waits for the disk or for
/// what is running blocks where it is called without `await`, and has an `async` form, which does not.
///
/// Whoever opens a cache closes it. One that is let go of without `close` is not closed by that: its threads go on, its
/// directory stays locked, and nobody can open it again until the process ends.
///
/// ```swift
/// let cache = try await MediaCache.open()
/// try await cache.startProxy()
/// player.open(try cache.proxiedURL(for: film))
/// try await cache.download(nextEpisode)
/// try await cache.close()
/// ```
public final class MediaCache: Sendable {
    /// What it was opened with. What was changed since by `setLimits` and its like is not in it.
    public let configuration: ProxyConfiguration
    let tuning: ProxyTuning
    let engine: CacheEngine
    package let manager: DownloadManager
    package let source: LoopDownloads
    package let restorePoints: StoreRestorePoints
    let bell: SnapshotBell
    let wants = DownloadWants()
    /// Shared by all who read everything again.
    let scrubs = ScrubTurn()
    /// Tells the events of this process from those of another.
    let session = String(UInt64.random(in: .min ... .max), radix: 36)
    let logger: Logger
    /// Where the proxy is started and stopped and the cache is closed, one after the other.
    private let changes = DispatchQueue(label: "reelcache.cache")
    private let state = Mutex(State())

    private struct State {
        /// The one that runs.
        var proxy: Proxy?
        var isClosed = false
    }

    /// Opens the cache, making it where there is none, and goes on with the downloads that were interrupted. No proxy
    /// runs yet.
    /// - Parameters:
    ///   - configuration: the cache directory and all else; where to listen is used by `startProxy`.
    ///   - logger: where events go that nobody asked for; by default nowhere.
    /// - Throws: `ProxyError`: a setting that cannot work, a cache directory that another process has, a disk that
    ///   fails.
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

    /// Opens it. Until `startDownloads` nothing is fetched that nobody asks for.
    init(opening configuration: ProxyConfiguration, tuning: ProxyTuning, logger: Logger) throws {
        do {
            let threads = try Self.check(configuration)
            let engine = try CacheEngine(configuration, tuning: tuning, threads: threads, logger: logger)
            source = LoopDownloads(engine.fillers, of: engine.filler)
            restorePoints = StoreRestorePoints(engine.store) { engine.policy.value }
            do throws(DownloadError) {
                manager = try DownloadManager(
                    directory: configuration.cacheDirectory, source: tuning.downloads ? source : nil,
                    restorePoints: restorePoints,
                    settings: DownloadSettings(configuration), clock: SystemDownloadClock(), logger: engine.logger
                ) { [wants] ids in
                    for id in ids { wants.keep(id) }
                }
            } catch {
                try engine.shutDown()
                throw error
            }
            // With the database of downloads, which is there by now.
            engine.store.countIndexNow()
            bell = SnapshotBell(manager.snapshots)
            self.configuration = configuration
            self.tuning = tuning
            self.engine = engine
            self.logger = engine.logger
        } catch {
            throw ProxyError(error)
        }
    }

    /// - Returns: how many loops there are.
    private static func check(_ configuration: ProxyConfiguration) throws(ProxyError) -> Int {
        _ = try configuration.address()
        _ = try configuration.checkedTransmission()
        try configuration.checkDownloads()
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

    /// The proxy that runs; nil while none does.
    public var proxy: Proxy? { state.withLock { $0.proxy } }

    /// Starts the proxy, where none runs yet: it listens at `listen` of the configuration, and other processes find it.
    /// It may be started again after it was stopped; with port 0 it then has another port.
    /// - Returns: the proxy that runs from now on, or did already.
    /// - Throws: `ProxyError`: a port that another process has; `CacheError.closed`.
    @discardableResult
    public func startProxy() throws -> Proxy {
        try changes.sync {
            let (running, isClosed) = state.withLock { ($0.proxy, $0.isClosed) }
            guard !isClosed else { throw CacheError.closed }
            return try running ?? Proxy(of: self, closesCache: false)
        }
    }

    /// Stops the proxy, if it runs: it accepts no more requests, lets running answers end for so long, and cuts what is
    /// left. The cache stays open, and downloads go on.
    /// - Parameter grace: how long running answers have to end.
    public func stopProxy(grace: Duration = .seconds(5)) {
        changes.sync {
            guard let proxy else { return }
            stop(proxy, grace: grace)
        }
    }

    /// The same for one that may have been followed by another.
    func stopProxy(_ proxy: Proxy, grace: Duration) {
        changes.sync {
            if self.proxy === proxy { stop(proxy, grace: grace) }
        }
    }

    /// On `changes`.
    private func stop(_ proxy: Proxy, grace: Duration) {
        proxy.server.stop(graceSeconds: grace.inSeconds)
        state.withLock { $0.proxy = nil }
        do throws(StoreError) { try engine.store.announce(url: "") } catch {
            logger.error("other processes still look for the proxy at \(proxy.baseURL): \(error)")
        }
    }

    func began(_ proxy: Proxy) throws(StoreError) {
        try engine.store.announce(url: proxy.baseURL)
        state.withLock { $0.proxy = proxy }
    }

    // MARK: Closing

    /// Stops the proxy as `stopProxy` does, then downloads, which go on when the cache is opened again, and saves
    /// everything. Later calls do nothing; of all others those that throw throw `CacheError.closed`, and what they
    /// would change stays as it is.
    /// - Parameter grace: how long running answers have to end.
    /// - Throws: `ProxyError` where the cache could not be saved; what is lost is fetched again.
    public func close(grace: Duration = .seconds(5)) throws {
        try changes.sync {
            let isFirst = state.withLock { state in
                defer { state.isClosed = true }
                return !state.isClosed
            }
            guard isFirst else { return }
            if let proxy { stop(proxy, grace: grace) }
            bell.end()
            // While there is still something to stop it with.
            manager.perform { $0.stop() }
            do throws(StoreError) { try engine.shutDown() } catch {
                throw ProxyError.disk("the cache could not be closed in order: \(error)")
            }
        }
    }

    var isClosed: Bool { state.withLock { $0.isClosed } }

    func checkOpen() throws(CacheError) {
        if isClosed { throw .closed }
    }

    /// Goes on with what was interrupted.
    func startDownloads() { manager.perform { $0.start() } }
}

extension ProxyConfiguration {
    /// Where to listen.
    func address() throws(ProxyError) -> ListenAddress {
        guard let address = ListenAddress(listen) else {
            throw .invalidSetting("cannot listen on '\(listen)': write HOST:PORT, such as 127.0.0.1:7335")
        }
        return address
    }

    func checkedTransmission() throws(ProxyError) -> Transmission {
        guard let transmission = Transmission(rawValue: transmission) else {
            throw .invalidSetting("there is no transmission '\(transmission)': mapping or sendfile")
        }
        return transmission
    }
}
