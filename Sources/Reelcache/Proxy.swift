import CacheFill
import CachePolicy
import ControlAPI
import DiskCache
import EventIO
import Foundation
import HTTPModel
import HTTPTransport
import Logging
import MediaProxy
import Metrics
import Synchronization
import Upstream

/// A running proxy: where the parts are put together.
///
/// Safe to use from any thread. Starting and stopping block, so they are not for the main actor of a program with a window.
///
/// ```swift
/// var configuration = ProxyConfiguration()
/// configuration.listen = "127.0.0.1:0"
/// let proxy = try Proxy(configuration)
/// player.open(try proxy.url(for: "https://example.org/film.mp4"))
/// ```
public final class Proxy: Sendable {
    /// The version of this library.
    public static let version = "0.1.0"

    /// Where the proxy can be reached, such as `http://127.0.0.1:7335`.
    public let baseURL: String
    private let server: HTTPServer
    private let loops: EventLoopGroup
    private let store: CacheStore
    private let filler: CacheFiller
    private let fillers: [LoopBound<LoopFiller>]
    private let metrics: ProxyMetrics
    private let addresses: Current<AddressPolicy>
    let policy: Current<ProxyPolicy>
    private let logger: Logger
    private let snapshot: @Sendable () -> StatsSnapshot
    private let isStopped = Mutex(false)

    /// Opens the cache and serves.
    /// - Parameter logger: where events go that nobody asked for.
    /// - Throws: `ProxyError`: a setting that cannot work, a port or a cache directory that another process has, a disk that fails.
    public convenience init(_ configuration: ProxyConfiguration = ProxyConfiguration(), logger: Logger = Logger(label: "reelcache")) throws {
        try self.init(configuration, tuning: ProxyTuning(), logger: logger)
    }

    package init(_ configuration: ProxyConfiguration, tuning: ProxyTuning, logger: Logger) throws {
        let (address, threads) = try Self.check(configuration)
        do {
            let addresses = Current<AddressPolicy>(try AddressPolicy(allow: configuration.allow))
            let policy = Current<ProxyPolicy>(try tuning.policy ?? configuration.policy())
            let openFiles = OpenFileLimit.raise()
            let limits = try Self.limits(configuration, tuning, openFiles)
            let via = Via(pseudonym: "reelcache-" + String(UInt32.random(in: .min ... .max), radix: 16))
            let settings = Self.upstreamSettings(configuration, tuning, via)
            let metrics = ProxyMetrics()
            let loops = try EventLoopGroup(count: threads)
            let store = try Self.openStore(configuration, tuning, metrics, logger)
            let token = try Self.token(configuration, store)
            let filler = CacheFiller(
                store: store, settings: Self.fillSettings(configuration, tuning), policy: policy, capacity: max(64, min(4096, openFiles / 3)), metrics: metrics,
                logger: logger, now: tuning.now)
            let snapshot = Self.snapshot(metrics, store, filler)

            loops.start()
            let fillers = loops.loops.map { loop in
                loop.sync { LoopBound(LoopFiller(filler, upstream: UpstreamClient(loop: loop, policy: addresses, settings: settings), loop: loop), on: loop) }
            }
            self.loops = loops
            self.store = store
            self.filler = filler
            self.fillers = fillers
            self.metrics = metrics
            self.addresses = addresses
            self.policy = policy
            self.logger = logger
            self.snapshot = snapshot
            do {
                let (now, audits, names) = (tuning.now, AuditTurn(), configuration.names.map(HostName.normalized))
                server = try HTTPServer(address, loops: loops.loops, limits: limits, metrics: metrics) { loop in
                    MediaHandler(
                        fillers[loop.index].value, policy: policy, addresses: addresses, via: via, hosts: HostPolicy(names: [address.host] + names), metrics: metrics,
                        control: ControlHandler(store: store, policy: policy, token: token, audits: audits, snapshot: snapshot, now: now))
                }
            } catch {
                Self.stop(fillers, store, loops)
                filler.closeAll()
                try store.close()
                throw error
            }
            baseURL = "http://\(server.address.reachable)"
            do { try store.announce(url: baseURL) } catch {
                try? stop(graceSeconds: 0)
                throw error
            }
            warnOfStrangers()
        } catch let error as ProxyError {
            throw error
        } catch {
            throw ProxyError("\(error)")
        }
    }

    /// - Returns: where to listen, and how many loops there are.
    private static func check(_ configuration: ProxyConfiguration) throws -> (ListenAddress, threads: Int) {
        guard let address = ListenAddress(configuration.listen) else {
            throw ProxyError("cannot listen on '\(configuration.listen)': write HOST:PORT, such as 127.0.0.1:7335")
        }
        let threads = configuration.threads ?? ProcessInfo.processInfo.activeProcessorCount
        guard (1...256).contains(threads) else { throw ProxyError("\(threads) threads cannot work; choose 1 to 256") }
        if let name = configuration.names.first(where: { !HostName.isOne($0) }) {
            throw ProxyError("'\(name)' in names is no host name: write it without a port, like tv.example; addresses need no entry")
        }
        if let file = configuration.certificateFile, access(file, R_OK) != 0 {
            throw ProxyError("cannot read the certificates in \(file): \(String(cString: strerror(errno)))")
        }
        for (name, seconds, range) in [
            ("lingerSeconds", configuration.lingerSeconds, ProxyConfiguration.lingerRange),
            ("connectTimeoutSeconds", configuration.connectTimeoutSeconds, ProxyConfiguration.connectTimeoutRange),
            ("stallTimeoutSeconds", configuration.stallTimeoutSeconds, ProxyConfiguration.stallTimeoutRange),
        ] where !range.contains(seconds) {
            throw ProxyError("\(name) of \(seconds) cannot work; choose \(range.lowerBound) to \(range.upperBound)")
        }
        return (address, threads)
    }

    /// Without the token nothing starts: the store, which is open already, is closed in order.
    private static func token(_ configuration: ProxyConfiguration, _ store: CacheStore) throws -> ControlToken {
        do throws(TokenError) { return try ControlToken(makingIn: configuration.cacheDirectory) } catch {
            try store.close()
            throw error
        }
    }

    /// - Parameter openFiles: how many files this process may have open; connections get a third.
    private static func limits(_ configuration: ProxyConfiguration, _ tuning: ProxyTuning, _ openFiles: Int) throws -> TransportLimits {
        guard let transmission = Transmission(rawValue: configuration.transmission) else {
            throw ProxyError("there is no transmission '\(configuration.transmission)': mapping or sendfile")
        }
        var limits = tuning.limits
        limits.transmission = transmission
        limits.maxConnections = max(64, min(limits.maxConnections, openFiles / 3))
        return limits
    }

    private static func fillSettings(_ configuration: ProxyConfiguration, _ tuning: ProxyTuning) -> FillSettings {
        var settings = tuning.fill
        settings.lingerSeconds = tuned(tuning.fill, \.lingerSeconds, unlessAs: FillSettings()) ?? configuration.lingerSeconds
        return settings
    }

    /// What somebody has tuned; nil for what is as it was.
    private static func tuned<Root, Value: Equatable>(_ settings: Root, _ path: KeyPath<Root, Value>, unlessAs standard: Root) -> Value? {
        settings[keyPath: path] == standard[keyPath: path] ? nil : settings[keyPath: path]
    }

    private static func upstreamSettings(_ configuration: ProxyConfiguration, _ tuning: ProxyTuning, _ via: Via) -> UpstreamSettings {
        var settings = tuning.upstream
        settings.connectTimeout = tuned(tuning.upstream, \.connectTimeout, unlessAs: UpstreamSettings()) ?? configuration.connectTimeoutSeconds
        settings.stallTimeout = tuned(tuning.upstream, \.stallTimeout, unlessAs: UpstreamSettings()) ?? configuration.stallTimeoutSeconds
        settings.caFile = configuration.certificateFile
        settings.userAgent = "reelcache/\(version)"
        settings.via = via.element
        return settings
    }

    /// What takes the statistics, from now on.
    private static func snapshot(_ metrics: ProxyMetrics, _ store: CacheStore, _ filler: CacheFiller) -> @Sendable () -> StatsSnapshot {
        let started = MonotonicClock.nanoseconds()
        return {
            StatsSnapshot(
                metrics, version: version, uptimeSeconds: Double((MonotonicClock.nanoseconds() - started) / 1_000_000) / 1000,
                size: store.ledger.size, limit: store.ledger.limit, minFree: store.ledger.minFree, openResources: filler.openCount)
        }
    }

    private static func openStore(_ configuration: ProxyConfiguration, _ tuning: ProxyTuning, _ metrics: ProxyMetrics, _ logger: Logger) throws(StoreError) -> CacheStore {
        var store = StoreConfiguration(directory: configuration.cacheDirectory)
        store.maxSize = configuration.maxSize
        store.minFree = configuration.minFree
        store.geometry = tuning.geometry
        store.evictsAhead = tuning.evictsAhead
        return try CacheStore(store, metrics: metrics, logger: logger)
    }

    private static func stop(_ fillers: [LoopBound<LoopFiller>], _ store: CacheStore, _ loops: EventLoopGroup) {
        for filler in fillers {
            filler.loop.sync { filler.value.shutdown() }
        }
        // What is called back on the loops has to come before they end.
        store.endThreads()
        loops.stop()
    }

    /// Accepts no more requests, lets running answers end for so long, cuts what is left, saves the cache. Later calls do nothing.
    /// - Parameter graceSeconds: seconds that running answers have.
    /// - Throws: `ProxyError` where the cache could not be saved; what is lost is fetched again.
    public func stop(graceSeconds: Double = 5) throws {
        let isFirst = isStopped.withLock { isStopped in
            defer { isStopped = true }
            return !isStopped
        }
        guard isFirst else { return }
        server.stop(graceSeconds: graceSeconds)
        Self.stop(fillers, store, loops)
        filler.closeAll()
        do { try store.close() } catch { throw ProxyError("the cache could not be closed in order: \(error)") }
    }

    /// Changes how much the cache takes on the disk, in bytes. What is too much by then is evicted before this returns, as far as nobody
    /// is reading it.
    /// - Parameters:
    ///   - maxSize: as in `ProxyConfiguration`; nil leaves it as it is.
    ///   - minFree: likewise.
    /// - Throws: `ProxyError`: a limit that cannot work, a disk that fails.
    public func setLimits(maxSize: Int64? = nil, minFree: Int64? = nil) throws {
        do { try store.setLimits(maxSize: maxSize, minFree: minFree) } catch { throw ProxyError("\(error)") }
    }

    /// Changes which private origins may be fetched from: `allow` of `ProxyConfiguration`, as a whole. Transfers that are running go on.
    /// - Throws: `ProxyError` where an entry is no host name, address or network; then nothing changes.
    public func setAllow(_ allow: [String]) throws {
        do { addresses.value = try AddressPolicy(allow: allow) } catch { throw ProxyError("\(error)") }
    }

    /// Changes how resources are handled: `rules` of `ProxyConfiguration`, as a whole. What is cached stays under the key it has.
    /// - Throws: `ProxyError` where a rule cannot work; then nothing changes.
    public func setRules(_ rules: [ResourceRule]) throws {
        let rules = try ProxyConfiguration.policy(of: rules)
        policy.change { $0.rules = rules }
    }

    /// Changes what is served at places of the proxy's own: `mounts` of `ProxyConfiguration`, as a whole.
    /// - Throws: `ProxyError` where a mount cannot work; then nothing changes.
    public func setMounts(_ mounts: [String: String]) throws {
        let mounts = try ProxyConfiguration.policy(of: mounts)
        policy.change { $0.mounts = mounts }
    }

    /// Changes whether players may name any origin: `servesAnyOrigin` of `ProxyConfiguration`. Answers that are running go on.
    public func setServesAnyOrigin(_ servesAnyOrigin: Bool) {
        policy.change { $0.servesAnyOrigin = servesAnyOrigin }
        warnOfStrangers()
    }

    /// Changes how many bytes the body of a request through a mount may have: `largestMountBody` of `ProxyConfiguration`. Requests that are
    /// running go on.
    /// - Throws: `ProxyError` for less than 0; then nothing changes.
    public func setLargestMountBody(_ bytes: Int64?) throws {
        let bytes = try ProxyConfiguration.checked(largestMountBody: bytes)
        policy.change { $0.largestMountBody = bytes }
    }

    /// Changes whether origins are asked at all: `isOffline` of `ProxyConfiguration`. Transfers that are running go on until they end or break.
    public func setOffline(_ isOffline: Bool) {
        policy.change { $0.isOffline = isOffline }
    }

    /// Changes how much is fetched beyond what is asked for: `fill` of `ProxyConfiguration`.
    /// - Throws: `ProxyError` for a distance that cannot work; then nothing changes.
    public func setFill(_ fill: FillMode) throws {
        let fill = try ProxyConfiguration.policy(of: fill)
        policy.change { $0.fill = fill }
    }

    /// Changes all that decides about requests, in one step: nothing is served meanwhile by a part of it. Answers that are running go on.
    /// - Throws: `ProxyError` for the first of it that cannot work; then nothing changes.
    func setPolicy(as configuration: ProxyConfiguration) throws {
        let servedAnyOrigin = policy.value.servesAnyOrigin
        policy.value = try configuration.policy()
        if configuration.servesAnyOrigin && !servedAnyOrigin { warnOfStrangers() }
    }

    private func warnOfStrangers() {
        guard !server.address.isLoopback, policy.value.servesAnyOrigin else { return }
        logger.warning(
            """
            listening beyond this machine: whoever reaches \(server.address) can fetch any public URL through it; to serve only what is mounted, \
            set any_origin to false
            """)
    }

    /// The URL that a player opens for a media URL: one below a mount, where only what is mounted is served.
    /// - Throws: `ProxyError` where it is not an http or https URL, or is not served.
    public func url(for url: String) throws -> String {
        try policy.value.url(for: url, through: baseURL)
    }

    /// The port that is listened on.
    public var port: Int { server.address.port }

    /// The counters now, as `GET /stats` gives them: a JSON object.
    public func statistics() throws -> Data {
        try JSONEncoder().encode(snapshot())
    }
}
