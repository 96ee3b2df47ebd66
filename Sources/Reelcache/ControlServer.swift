import Activity
import CachePolicy
import ControlAPI
import DiskCache
import Downloads
import EventIO
import HTTPModel
import HTTPTransport
import Logging
import Upstream

/// The control interface of a store that no player uses: for a command that fetches nothing.
///
/// The databases of downloads and feeds are opened by the first request that needs them, so that one which cannot be
/// opened stops no other request. Listens on the loopback interface; every request requires the token.
package final class ControlServer: Sendable {
    package let baseURL: String
    private let store: CacheStore
    private let loops: EventLoopGroup
    private let server: HTTPServer
    private let downloads: OnDemand<DownloadManager>
    private let feeds: OnDemand<SubscriptionManager>

    /// Opens the store, and evicts nothing in advance.
    /// - Parameter configuration: only its cache directory, limits and rules matter.
    /// - Throws: `ProxyError`: an invalid setting, a cache directory that another process uses, a failing disk.
    package init(_ configuration: ProxyConfiguration, adviceWords: Advice.Words, logger: Logger) throws {
        do {
            var rules = try configuration.policy()
            rules.adviceWords = adviceWords
            let policy = Current<ProxyPolicy>(rules), logger = logger.guarded(by: policy), metrics = ProxyMetrics()
            let aliases = AliasFile(directory: configuration.cacheDirectory, logger: logger).read()
            policy.change { $0.aliases = aliases }
            _ = OpenFileLimit.raise()
            try DispatchDescriptors.make()
            var settings = StoreConfiguration(directory: configuration.cacheDirectory)
            (settings.maxSize, settings.minFree) = (configuration.maxSize, configuration.minFree)
            settings.evictsAhead = false
            store = try CacheStore(settings, metrics: metrics, logger: logger)
            do {
                (downloads, feeds) = Self.managers(of: store, configuration, policy, logger)
                let token = try ControlToken(makingIn: configuration.cacheDirectory)
                loops = try EventLoopGroup(count: 1)
                server = try Self.serve(store, policy, token, downloads, feeds, metrics, on: loops)
            } catch {
                try? store.close()
                throw error
            }
        } catch {
            throw ProxyError(error)
        }
        baseURL = "http://\(server.address.reachable)"
    }

    private static func serve(
        _ store: CacheStore, _ policy: Current<ProxyPolicy>, _ token: ControlToken,
        _ downloads: OnDemand<DownloadManager>, _ feeds: OnDemand<SubscriptionManager>, _ metrics: ProxyMetrics,
        on loops: EventLoopGroup
    ) throws -> HTTPServer {
        let numbers = numbers(of: store, metrics), live = live(store, policy, metrics, numbers)
        let access = ControlAccess(token: token, readToken: token, sessions: SharedDashboardSessions(), policy: policy)
        let routes = ControlParts(policy: policy, live: live, downloads: downloads, feeds: feeds).routes(
            access, numbers)
        var configuration = ProxyConfiguration()
        configuration.listen = "127.0.0.1:0"
        let address = try configuration.address()
        try loops.start()
        do {
            return try HTTPServer(address, loops: loops.loops, limits: TransportLimits(), metrics: metrics) { _ in
                ControlHandler(
                    store: store, access: access, downloads: live.downloads, numbers: numbers, routes: routes)
            }
        } catch {
            loops.stop()
            throw error
        }
    }

    private static func managers(
        of store: CacheStore, _ configuration: ProxyConfiguration, _ policy: Current<ProxyPolicy>, _ logger: Logger
    ) -> (OnDemand<DownloadManager>, OnDemand<SubscriptionManager>) {
        let downloads = OnDemand {
            try DownloadManager(
                directory: configuration.cacheDirectory, source: nil,
                restorePoints: StoreRestorePoints(store) { policy.value }, settings: DownloadSettings(configuration),
                clock: SystemDownloadClock(), logger: logger)
        }
        let feeds = OnDemand {
            let downloads = try downloads.value()
            return try SubscriptionManager(
                directory: configuration.cacheDirectory, source: NoOrigins(), downloads: downloads,
                store: StoreEpisodes(
                    store, snapshots: downloads.snapshots, policy: { policy.value }, now: ProxyTuning().now),
                clock: SystemFeedClock(), logger: logger)
        }
        return (downloads, feeds)
    }

    /// Feeds are not checked here.
    private struct NoOrigins: FeedSource {
        var isOffline: Bool { true }

        func fetch(_ request: FeedRequest, onEnd end: @escaping @Sendable (FeedAnswer) -> Void) -> @Sendable () -> Void
        {
            end(.failed(FeedReadings.offline))
            return {}
        }
    }

    /// - Parameters:
    ///   - maxSize: raised to keep all that is cached already.
    ///   - room: what may come in besides, in bytes.
    /// - Throws: `ProxyError` if the limits cannot work.
    package func setLimits(maxSize: Int64, room: Int64, minFree: Int64) throws {
        let size = max(maxSize, store.ledger.size +| room)
        do { try store.setLimits(maxSize: size, minFree: minFree) } catch { throw ProxyError(error) }
    }

    /// Stops at once, and saves and closes what is open.
    /// - Throws: `ProxyError`; what is lost is fetched again.
    package func stop() throws {
        server.stop(graceSeconds: 0)
        feeds.close()?.perform { $0.stop() }
        downloads.close()?.perform { $0.stop() }
        // The loop must not end before the threads' callbacks have run.
        store.endThreads()
        loops.stop()
        do { try store.close() } catch { throw ProxyError.disk("the cache could not be closed in order: \(error)") }
    }
}

extension ControlServer {
    /// The numbers of a store that no player uses.
    private static func numbers(of store: CacheStore, _ metrics: ProxyMetrics) -> ControlNumbers {
        let stats: @Sendable () -> StatsSnapshot = {
            metrics.size.set(store.ledger.size)
            return StatsSnapshot(metrics, version: Proxy.version, uptimeSeconds: 0)
        }
        return ControlNumbers(
            stats: stats, metrics: { MetricsSnapshot(metrics, stats(), process: .read()) },
            history: { HistoryReport(History([:]), $0, now: ProxyTuning().now()) }, plays: { $0(0) })
    }

    /// What lives in a store that no player uses: nothing.
    private static func live(
        _ store: CacheStore, _ policy: Current<ProxyPolicy>, _ metrics: ProxyMetrics, _ numbers: ControlNumbers
    ) -> LiveState {
        LiveState(
            collect: { $0(ActivitySamples()) }, downloads: DownloadSnapshots(), policy: policy,
            metrics: metrics, statistics: numbers.stats, perform: { store.perform($0) },
            moment: { .init(instant: MonotonicClock.nanoseconds(), time: ProxyTuning().now()) })
    }
}
