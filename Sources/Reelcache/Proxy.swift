import Activity
import CachePolicy
import ControlAPI
import DiskCache
import Foundation
import HTTPTransport
import Logging
import MediaProxy

#if !os(Linux)
#error("Reelcache is for Linux: it needs O_TMPFILE, fallocate(2), eventfd(2) and netlink sockets")
#endif

/// A running proxy: the server through which players use a cache.
///
/// Safe to use from any thread. Starting and stopping block, and have `async` forms, which do not.
///
/// ```swift
/// var configuration = ProxyConfiguration()
/// configuration.listen = "127.0.0.1:0"
/// let proxy = try await Proxy.start(configuration)
/// player.open(try proxy.url(for: "https://example.org/film.mp4"))
/// ```
public final class Proxy: Sendable {
    /// The version of this library.
    public static let version = ProxyConfiguration.libraryVersion

    /// The URL of the proxy, such as `http://127.0.0.1:7335`.
    public let baseURL: String
    /// The cache that it serves.
    public let cache: MediaCache
    let server: HTTPServer
    /// Whether the cache was opened for this proxy alone.
    private let closesCache: Bool

    /// Opens the cache and starts serving it. Stopping the proxy closes the cache.
    /// - Parameters:
    ///   - configuration: the listen address, the cache directory, and all other settings.
    ///   - logger: receives events such as origin failures; by default they are dropped.
    /// - Throws: `ProxyError`: an invalid setting, a port or cache directory that another process uses, a failing disk.
    public convenience init(
        _ configuration: ProxyConfiguration = ProxyConfiguration(),
        logger: Logger = Logger(label: "reelcache") { _ in SwiftLogNoOpLogHandler() }
    ) throws {
        try self.init(configuration, tuning: ProxyTuning(), logger: logger)
    }

    /// - Parameter startsDownloads: false to start them with `cache.downloader.start` later.
    package convenience init(
        _ configuration: ProxyConfiguration, tuning: ProxyTuning, logger: Logger,
        listener: InheritedListener? = nil, startsDownloads: Bool = true
    ) throws {
        let cache = try MediaCache(configuration, tuning: tuning, logger: logger, startsDownloads: false)
        do { try self.init(of: cache, listener: listener, closesCache: true) } catch {
            try? cache.close(grace: .zero)
            throw error
        }
        // Only once the proxy is certain to serve.
        if startsDownloads { cache.downloader.start() }
    }

    /// Starts a proxy as a service does: on the socket that the service manager passes, if it passes one, otherwise on
    /// one that is bound to `listen`. Before other threads run.
    package static func start(asService configuration: ProxyConfiguration, logger: Logger) throws -> Proxy {
        let listener: InheritedListener?
        do throws(ListenError) { listener = try InheritedListener.take() } catch { throw ProxyError(error) }
        if let listener {
            logger.notice("serving on the socket of the service manager at \(listener.address), whatever listen says")
        }
        return try Proxy(configuration, tuning: ProxyTuning(), logger: logger, listener: listener)
    }

    /// Starts serving an open cache that no other proxy serves.
    /// - Parameters:
    ///   - listener: a socket to serve on, in place of one that is bound to the address in the configuration.
    ///   - closesCache: whether stopping the proxy closes the cache.
    init(of cache: MediaCache, listener: InheritedListener? = nil, closesCache: Bool) throws {
        self.cache = cache
        self.closesCache = closesCache
        do {
            let (engine, configuration) = (cache.engine, cache.configuration)
            let downloads = cache.downloader.manager.snapshots
            let numbers = engine.numbers
            let address = try listener?.address ?? configuration.address()
            var clients = ClientRules(limits: engine.clientLimits)
            clients.trusted = try configuration.checkedTrusted()
            clients.expectsProxyHeader = configuration.expectsProxyHeader
            let isOfThisMachine = address.isLoopback && clients.trusted.isEmpty
            let token = try ControlToken(makingIn: configuration.cacheDirectory)
            let readToken =
                isOfThisMachine ? nil : try ControlToken(makingIn: configuration.cacheDirectory, for: .reading)
            let access = ControlAccess(
                token: token, readToken: readToken, sessions: SharedDashboardSessions(), policy: engine.policy)
            let routes = Self.controlParts(of: cache).routes(access, numbers)
            let hosts = HostPolicy(names: [address.host] + configuration.names.map(HostName.normalized))
            server = try HTTPServer(
                address, listener: listener, loops: engine.loops.loops, limits: Self.limits(cache), clients: clients,
                metrics: engine.metrics, recorder: engine.accessLog
            ) { loop in
                MediaHandler(
                    ProxyLoop(
                        engine.fillers[loop.index].value, shelf: engine.shelf, ahead: engine.ahead, next: engine.next,
                        policy: engine.policy, addresses: engine.addresses, via: engine.via, hosts: hosts),
                    plays: engine.plays[loop.index].value,
                    control: ControlHandler(
                        store: engine.store, access: access, downloads: downloads, numbers: numbers, routes: routes))
            }
            baseURL = "http://\(server.address.reachable)"
            do {
                if cache.tuning.isForOthers {
                    try engine.store.announce(url: baseURL, isBrief: isBrief)
                }
            } catch {
                server.stop(graceSeconds: 0)
                throw error
            }
        } catch {
            throw ProxyError(error)
        }
        cache.began(self)
        warnOfStrangers()
    }

    /// Whether others find it only for as long as a command takes.
    package var isBrief: Bool { cache.tuning.isForOthers && !cache.tuning.checksFeeds }

    /// Publishes for other processes that this one reads its configuration again on SIGHUP, and from where.
    /// - Parameter paths: absolute; it reads the first that exists.
    package func announce(configurationFiles paths: [String]) {
        guard cache.proxy === self else { return }
        do throws(StoreError) {
            try cache.engine.store.announce(url: baseURL, reloads: true, configurationFiles: paths)
        } catch {
            cache.logger.error("other processes do not know the configuration file: \(error)")
        }
    }

    /// Reopens the access log under its name, after the file was renamed.
    package func reopenAccessLog() throws {
        try cache.checkOpen()
        try cache.engine.accessLog.reopen()
    }

    /// Other processes look for it no longer.
    func withdraw() {
        do throws(StoreError) { try cache.engine.store.announce(url: "") } catch {
            cache.logger.error("other processes still look for the proxy at \(baseURL): \(error)")
        }
    }

    private static func limits(_ cache: MediaCache) throws(ProxyError) -> TransportLimits {
        var limits = cache.tuning.limits
        limits.transmission = try cache.configuration.checkedTransmission()
        limits.maxConnections = min(limits.maxConnections, cache.engine.descriptors.clients)
        limits.maxConnectionsWhenRefusing = cache.engine.descriptors.clients
        limits.refusedOfALoop = cache.engine.descriptors.refusedOfALoop
        limits.maxDescriptor = cache.engine.descriptors.highestOfClients
        return limits
    }

    /// Stops accepting requests, gives running responses the grace period to end, and then closes their connections.
    /// Further calls do nothing.
    ///
    /// A cache that was opened for this proxy is saved and closed; a cache that started it with `startProxy` stays open.
    /// - Parameter grace: how long running responses may take to end.
    /// - Throws: `ProxyError` if the cache could not be saved; what is lost is fetched again.
    public func stop(grace: Duration = .seconds(5)) throws { try stop(grace: grace, quiet: nil) }

    /// As `stop(grace:)`.
    /// - Parameter quiet: how long nothing has to have run before it closes: until then, it answers, but `/healthz` says
    ///   `draining`. Nil to close at once.
    package func stop(grace: Duration, quiet: Duration?) throws {
        cache.stopProxy(self, grace: grace, quiet: quiet)
        if closesCache { try cache.close(grace: .zero) }
    }

    /// Makes `stop`, which waits on another thread, cut what still runs.
    package func hurry() { server.hurry() }

    /// Whether clients of other machines use it, directly or through a balancer.
    package var hasDistantClients: Bool { !server.address.isLoopback || !cache.configuration.trusted.isEmpty }

    func warnOfStrangers() {
        guard !server.address.isLoopback, cache.engine.policy.value.servesAnyOrigin else { return }
        cache.logger.warning(
            """
            listening beyond this machine: anyone who can reach \(server.address) can fetch any public URL through it; to serve mounts only, \
            set any_origin to false
            """)
    }

    /// The URLs at which other machines reach the proxy; empty if it listens on this machine only.
    package var urlsForOthers: [String] {
        let addresses = server.address.reachableByOthers
        // The kernel accepts both IPv4 and IPv6 on `::`, but only IPv4 on `0.0.0.0`.
        return addresses.filter { server.address.host != "0.0.0.0" || !$0.host.contains(":") }.map { "http://\($0)" }
    }

    /// The URL that a player opens for a media URL: a URL below a mount, if the proxy serves mounts only.
    /// - Parameter url: exact, as it is sent; it may be one that Foundation's `URL` would write differently.
    /// - Throws: `ProxyError` if it is not an http or https URL, or is not served.
    public func url(for url: String) throws -> String {
        try cache.engine.policy.value.url(for: url, through: baseURL)
    }

    /// The port that the proxy listens on.
    public var port: Int { server.address.port }

    /// The current counters.
    package var counters: StatsSnapshot { cache.engine.snapshot() }

    /// The current counters, as in the response to `GET /stats`: a JSON object.
    public func statistics() throws -> Data { Data(StatsJSON.page(counters)) }
}

extension Proxy {
    private static func controlParts(of cache: MediaCache) -> ControlParts {
        ControlParts(
            policy: cache.engine.policy, live: cache.live, downloads: OnDemand(cache.downloader.manager),
            feeds: OnDemand(cache.downloader.subscriptions), scrubs: cache.scrubs, session: cache.session,
            wantNext: { [next = cache.engine.next] in next.want($0) }, now: cache.tuning.now)
    }
}
