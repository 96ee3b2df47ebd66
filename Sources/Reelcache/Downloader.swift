import CachePolicy
import Downloads

/// What carries out the downloads of an open cache and looks after its subscribed feeds.
package struct Downloader: Sendable {
    package let manager: DownloadManager
    package let subscriptions: SubscriptionManager
    package let source: LoopDownloads
    package let restorePoints: StoreRestorePoints
    let hooks: DownloadHooks
    let bell: SnapshotBell
    let wants = DownloadWants()
    private let tuning: ProxyTuning

    /// Opens the databases of downloads and feeds. Fetches nothing until `start`.
    init(
        _ configuration: ProxyConfiguration, _ settings: DownloadSettings, _ commands: DownloadHooks.Commands,
        _ tuning: ProxyTuning, _ engine: CacheEngine
    ) throws(DownloadError) {
        self.tuning = tuning
        hooks = DownloadHooks(commands, engine.policy, engine.metrics, configuration.cacheDirectory, engine.logger)
        source = LoopDownloads(engine.fillers, of: engine.filler)
        restorePoints = StoreRestorePoints(engine.store) { engine.policy.value }
        manager = try DownloadManager(
            directory: configuration.cacheDirectory, source: tuning.downloads ? source : nil,
            restorePoints: restorePoints, settings: settings, clock: SystemDownloadClock(), logger: engine.logger
        ) { [wants] ids in
            for id in ids { wants.keep(id) }
        } ended: { [hooks] in
            hooks.ended($0)
        }
        do throws(DownloadError) {
            subscriptions = try SubscriptionManager(
                directory: configuration.cacheDirectory, source: LoopFeeds(engine.fillers, of: engine.filler),
                downloads: manager,
                store: StoreEpisodes(
                    engine.store, snapshots: manager.snapshots, policy: { engine.policy.value }, now: tuning.now),
                clock: SystemFeedClock(), logger: engine.logger)
        } catch {
            manager.perform { $0.stop() }
            throw error
        }
        bell = SnapshotBell(manager.snapshots)
        orderNextItems(engine)
        engine.onNetworkChange { [manager, subscriptions] in
            manager.post { $0.networkChanged() }
            subscriptions.post { $0.networkChanged() }
        }
    }

    /// Has the next items after what is played found in the feeds, and ordered.
    private func orderNextItems(_ engine: CacheEngine) {
        let nextDownloads = NextDownloads(engine, manager, now: tuning.now)
        engine.next.add { [subscriptions] url, answer in subscriptions.next(after: url, then: answer) }
        // Inside the subscriptions' actor, which may wait for downloads and for the store.
        engine.next.connect { [subscriptions] url in
            subscriptions.unlessOrdered(url) { nextDownloads.order($0) }
        }
    }

    /// Continues interrupted downloads, and looks after the subscribed feeds.
    package func start() {
        manager.perform { $0.start() }
        if tuning.downloads { subscriptions.perform { [tuning] in $0.start(checksByItself: tuning.checksFeeds) } }
    }

    /// Applies changed settings.
    func set(_ downloads: DownloadSettings, _ commands: DownloadHooks.Commands) {
        hooks.set(commands)
        manager.perform { manager in
            var settings = downloads
            // Those of subscriptions, which set them.
            settings.feedCaps = manager.snapshots.summary.settings.feedCaps
            if settings != manager.snapshots.summary.settings { manager.set(settings) }
        }
    }

    /// Stops checks and downloads, which continue when the cache is opened again, and saves everything.
    func stop() {
        bell.end()
        subscriptions.perform { $0.stop() }
        manager.perform { $0.stop() }
    }
}
