import Activity
import CacheFill
import CachePolicy
import ControlAPI
import DiskCache
import Downloads
import EventIO
import Foundation
import HTTPModel
import HTTPTransport
import Logging
import MediaProxy
import Presentations
import Upstream

/// The machinery of an open cache: the store, the loops, and a filler on each loop.
struct CacheEngine: Sendable {
    let store: CacheStore
    let loops: EventLoopGroup
    let filler: CacheFiller
    let fillers: [LoopBound<LoopFiller>]
    /// What players read through each loop.
    let plays: [LoopBound<LoopPlays>]
    let activity: ActivityCollector
    let metrics = ProxyMetrics()
    /// The recently served playlists and feeds.
    let shelf = PlaylistShelf()
    let ahead: SegmentAhead
    let next: NextItems
    let addresses: Current<AddressPolicy>
    /// The proxy through which origins are reached.
    let outgoing: Current<OutgoingProxy?>
    /// Whether programs change nothing any more.
    let isClosing = Current(false)
    private let networks: LoopBound<NetworkWatch>
    let policy: Current<ProxyPolicy>
    /// Masks secrets by the policy.
    let logger: Logger
    /// Identifies this proxy among others.
    let via = Via(pseudonym: "reelcache-" + String(UInt32.random(in: .min ... .max), radix: 16))
    /// The shares of the files that this process may have open.
    let descriptors: DescriptorBudget
    let clientLimits: Current<ClientLimits>
    let accessLog: AccessLog
    /// Returns the current counters.
    let snapshot: @Sendable () -> StatsSnapshot
    /// The counters over time.
    let history: HistoryRecorder

    /// Opens the store and starts the loops.
    /// - Parameter threads: the number of loops.
    init(_ configuration: ProxyConfiguration, tuning: ProxyTuning, threads: Int, logger: Logger) throws {
        let addresses = Current<AddressPolicy>(try AddressPolicy(allow: configuration.allow))
        let outgoing = Current<OutgoingProxy?>(try configuration.outgoingProxy())
        let limits = try configuration.clientLimits()
        var initial = try tuning.policy ?? configuration.policy()
        initial.adviceWords = tuning.adviceWords
        let policy = Current<ProxyPolicy>(initial)
        let logger = logger.guarded(by: policy)
        (self.policy, self.logger) = (policy, logger)
        (ahead, next) = (SegmentAhead(shelf), NextItems(shelf.feeds))
        accessLog = try AccessLog(policy, configuration.accessLogFormat, metrics: metrics)
        // Early, while nothing needs to be undone on failure.
        try accessLog.open(configuration.accessLog)
        let limit = OpenFileLimit.raise()
        guard let descriptors = DescriptorBudget(limit: limit, loops: threads) else {
            throw ProxyError.tooFewFiles(
                """
                this process may have only \(limit) files open, and with \(threads) threads it needs \
                \(DescriptorBudget.needed(loops: threads)): raise the limit (ulimit -n, LimitNOFILE=)\
                \(threads > 1 ? ", or choose fewer threads" : "")
                """)
        }
        self.descriptors = descriptors
        clientLimits = Current(limits.bounded(by: descriptors, logger))
        try DispatchDescriptors.make()
        var settings = Self.upstreamSettings(configuration, tuning, via)
        settings.idleConnections = descriptors.idleOriginsOfALoop
        let upstream = settings
        let resolver = NameResolver(nanoseconds: MonotonicClock.nanoseconds)
        metrics.transit.setLimit(try ProxyConfiguration.checked(maxBuffered: configuration.maxBuffered))
        // Requests that are passed on have half as many slots, and half of these may be paused, on top.
        let most = max(1, min(configuration.maxFetches, descriptors.origins * 4 / 9))
        let slots = TransferSlots(.init(total: most, perHost: configuration.maxFetchesPerHost))
        loops = try EventLoopGroup(count: threads)
        try loops.start()
        do { store = try Self.openStore(configuration, tuning, metrics, logger) } catch {
            loops.stop()
            throw error
        }
        let filler = CacheFiller(
            store: store, settings: Self.fillSettings(configuration, tuning), policy: policy,
            capacity: descriptors.resources, metrics: metrics,
            logger: logger, now: tuning.now)
        snapshot = Self.snapshot(metrics, store, filler, slots)
        history = HistoryRecorder(
            in: configuration.cacheDirectory, isKept: tuning.isForOthers, store: store, metrics: metrics,
            logger: logger,
            now: tuning.now)
        // Must be first, before anything is fetched.
        let watcher = loops.loops[0]
        networks = watcher.sync {
            LoopBound(NetworkWatch(addresses, resolver, on: watcher, logger: logger), on: watcher)
        }
        fillers = loops.loops.map { [metrics] loop in
            loop.sync {
                let client = UpstreamClient(
                    loop: loop, policy: addresses, settings: upstream, resolver: resolver, slots: slots,
                    outgoing: outgoing, responses: metrics.originResponses)
                return LoopBound(LoopFiller(filler, upstream: client, loop: loop), on: loop)
            }
        }
        plays = loops.loops.map { [shelf] loop in LoopBound(LoopPlays(shelf), on: loop) }
        activity = ActivityCollector(fillers, plays)
        self.filler = filler
        self.addresses = addresses
        self.outgoing = outgoing
        history.start()
        noteOutgoingProxy()
    }

    /// Calls back after each change of this machine's addresses, on a loop.
    func onNetworkChange(_ change: @escaping @Sendable () -> Void) {
        networks.loop.sync { networks.value.onChange = change }
    }

    /// Ends all transfers and the loops, and closes the store. Blocks.
    func shutDown() throws(StoreError) {
        ahead.stop()
        // First, as commands take a moment to end; what waits for them is told through the loops.
        filler.locations.close()
        activity.end()
        for filler in fillers {
            filler.loop.sync { filler.value.shutdown() }
        }
        networks.loop.sync { networks.value.stop() }
        history.stop()
        // The loops must not end before their callbacks have run.
        store.endThreads()
        loops.stop()
        defer { accessLog.close() }
        filler.closeAll()
        try store.close()
    }

    private static func fillSettings(_ configuration: ProxyConfiguration, _ tuning: ProxyTuning) -> FillSettings {
        var settings = tuning.fill
        settings.lingerSeconds =
            tuned(tuning.fill, \.lingerSeconds, unlessAs: FillSettings()) ?? configuration.linger.inSeconds
        settings.shortResponseBytes = max(0, configuration.maxShortResponses)
        return settings
    }

    /// The tuned value; nil if it is the standard one.
    private static func tuned<Root, Value: Equatable>(
        _ settings: Root, _ path: KeyPath<Root, Value>, unlessAs standard: Root
    ) -> Value? {
        settings[keyPath: path] == standard[keyPath: path] ? nil : settings[keyPath: path]
    }

    private static func upstreamSettings(_ configuration: ProxyConfiguration, _ tuning: ProxyTuning, _ via: Via)
        -> UpstreamSettings
    {
        var settings = tuning.upstream
        settings.connectTimeout =
            tuned(tuning.upstream, \.connectTimeout, unlessAs: UpstreamSettings())
            ?? configuration.connectTimeout.inSeconds
        settings.stallTimeout =
            tuned(tuning.upstream, \.stallTimeout, unlessAs: UpstreamSettings()) ?? configuration.stallTimeout.inSeconds
        settings.caFile = configuration.certificateFile
        settings.userAgent = "reelcache/\(ProxyConfiguration.libraryVersion)"
        settings.via = via.element
        return settings
    }

    private static func openStore(
        _ configuration: ProxyConfiguration, _ tuning: ProxyTuning, _ metrics: ProxyMetrics, _ logger: Logger
    ) throws(StoreError) -> CacheStore {
        var store = StoreConfiguration(directory: configuration.cacheDirectory)
        store.maxSize = configuration.maxSize
        store.minFree = configuration.minFree
        store.geometry = tuning.geometry
        store.evictsAhead = tuning.evictsAhead
        return try CacheStore(store, metrics: metrics, logger: logger)
    }

    /// Returns a closure that takes the statistics, with the uptime counted from now.
    private static func snapshot(
        _ metrics: ProxyMetrics, _ store: CacheStore, _ filler: CacheFiller, _ slots: TransferSlots
    )
        -> @Sendable () -> StatsSnapshot
    {
        let started = MonotonicClock.nanoseconds()
        return {
            let (transfers, short) = (slots.usage, filler.shortResponses.usage)
            for (gauge, level) in [
                (metrics.size, store.ledger.size), (metrics.limit, store.ledger.limit),
                (metrics.minFree, store.ledger.minFree), (metrics.openResources, Int64(filler.openCount)),
                (metrics.shortResponses, Int64(short.count)), (metrics.shortResponseBytes, Int64(short.bytes)),
                (metrics.openTransfers, Int64(transfers.open)), (metrics.pausedTransfers, Int64(transfers.parked)),
                (metrics.transitBytes, metrics.transit.bytes), (metrics.transitLimit, metrics.transit.limit),
            ] { gauge.set(level) }
            return StatsSnapshot(
                metrics, version: ProxyConfiguration.libraryVersion,
                // no trap: the clock never goes back
                uptimeSeconds: Double((MonotonicClock.nanoseconds() - started) / 1_000_000) / 1000)
        }
    }
}

extension CacheEngine {
    func liveState(_ downloads: DownloadSnapshots) -> LiveState {
        LiveState(
            collect: { [activity] in activity.collect($0) }, downloads: downloads, policy: policy, metrics: metrics,
            statistics: snapshot, perform: { [store] in store.perform($0) },
            moment: { [now = filler.now] in .init(instant: MonotonicClock.nanoseconds(), time: now()) })
    }

    var numbers: ControlNumbers {
        ControlNumbers(
            stats: snapshot, metrics: { [metrics, snapshot] in MetricsSnapshot(metrics, snapshot(), process: .read()) },
            history: { [history] in history.report($0) },
            plays: { [activity, now = filler.now] then in
                activity.collect { samples in
                    let moment = ActivityBook.Moment(instant: MonotonicClock.nanoseconds(), time: now())
                    then(samples.map { ActivityBook.playCount($0, at: moment) })
                }
            })
    }
}
