import CachePolicy
import Foundation
import HTTPModel
import Logging
import Synchronization

/// Manages all subscriptions: checks each feed when it is due, and turns new episodes into downloads.
///
/// It has a dispatch queue of its own, on which it may block: it waits for the download manager and for the store, and
/// neither waits for it. Downloads are ordered before their episodes are saved as such. If the process ends in between,
/// the next check finds the downloads, which name their episodes, and orders none of them again.
package actor SubscriptionManager {
    /// The most feeds that are fetched at once.
    static let mostAtOnce = 3
    /// Seconds until it looks again whether the proxy is still offline.
    private static let offlineWait = 60.0

    private nonisolated let executor = QueueExecutor(label: "reelcache.feeds")
    /// Whether a look at the downloads has been posted already.
    private nonisolated let isLookPosted = Mutex(false)
    let subscriptions: SubscriptionTable
    let episodes: EpisodeKeeper
    let clock: any FeedClock
    private let source: any FeedSource
    private let random: @Sendable () -> Double
    let logger: Logger

    private var phase = Phase.idle
    /// Whether feeds are checked when they are due, not only on demand.
    private var checksByItself = false
    private lazy var readings: FeedReadings = FeedReadings(source) { [weak self] answer, number in
        self?.post { $0.readings.take(answer, for: number) }
    }
    /// The subscriptions that are being checked.
    private var checking: Set<Int64> = []
    /// Those of them whose options have changed meanwhile, so that their check begins again.
    private var again: Set<Int64> = []
    /// Subscriptions to check at once, whoever waits for that.
    private var waiters: [Int64: [@Sendable (FeedCheckResult) -> Void]] = [:]
    private var watch: UInt64?
    /// The last change of the downloads that was looked at.
    private var seenDownloads: UInt64 = 0

    private enum Phase { case idle, started, stopped }

    package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// - Parameters:
    ///   - directory: the cache directory, which contains the database `feeds.sqlite`.
    ///   - random: returns numbers between 0 and 1.
    /// - Throws: `.disk` if the database cannot be opened. A damaged database is set aside.
    package init(
        directory: String, source: any FeedSource, downloads: DownloadManager, store: any EpisodeStore,
        clock: any FeedClock, random: @escaping @Sendable () -> Double = { .random(in: 0..<1) }, logger: Logger
    ) throws(DownloadError) {
        subscriptions = try SubscriptionTable(directory: directory, downloads: downloads, logger: logger)
        episodes = EpisodeKeeper(subscriptions: subscriptions, store: store, downloads: downloads, logger: logger)
        (self.source, self.clock, self.random, self.logger) = (source, clock, random, logger)
    }

    /// Runs work inside the actor and waits for it: not on a loop, nor inside the manager or the download manager.
    package nonisolated func perform<Result: Sendable>(
        _ work: @Sendable (isolated SubscriptionManager) throws -> Result
    ) rethrows -> Result {
        try executor.queue.sync { try assumeIsolated(work) }
    }

    package nonisolated func post(_ work: @escaping @Sendable (isolated SubscriptionManager) -> Void) {
        executor.queue.async { self.assumeIsolated(work) }
    }

    // MARK: Starting and stopping

    /// Begins to remove what is not to be kept as downloads complete.
    /// - Parameter checksByItself: whether to check feeds when they are due, too. Otherwise, as before the start, they
    ///   are checked on demand only.
    package func start(checksByItself: Bool = true) {
        guard phase == .idle else { return }
        phase = .started
        self.checksByItself = checksByItself
        if checksByItself { subscriptions.delayStart(now: clock.now, random: random) }
        watch = episodes.downloads.snapshots.watch { [weak self] in self?.postLook() }
        lookAtDownloads()
        commit()
    }

    /// The network of this machine has changed: feeds that could not be read are checked soon.
    package func networkChanged() {
        guard phase == .started else { return }
        subscriptions.retrySoon(now: clock.now, random: random)
        commit()
    }

    /// Ends all checks; those who wait get an error.
    package func stop() {
        guard phase != .stopped else { return }
        lookAtDownloads()
        subscriptions.repairLoss()
        phase = .stopped
        if let watch { episodes.downloads.snapshots.unwatch(watch) }
        clock.wake(after: nil) {}
        readings.stop(FeedFailure(DownloadError.closed.reason))
        let waiting = waiters
        waiters = [:]
        for (id, ends) in waiting { report(ends, of: failed(id, DownloadError.closed.reason)) }
        do throws(DownloadError) { try subscriptions.database.close() } catch { logger.error("\(error)") }
    }

    func checkOpen() throws(DownloadError) {
        guard phase != .stopped else { throw .closed }
    }

    // MARK: Checks

    /// Checks a subscription now, or joins the check that is running.
    /// - Parameter end: called with the outcome, inside the actor.
    func check(_ id: Int64, then end: @escaping @Sendable (FeedCheckResult) -> Void) {
        waiters[id, default: []].append(end)
    }

    /// Lets a check that is running begin again: it has the former options.
    func repeatCheck(_ id: Int64) {
        if checking.contains(id) { again.insert(id) }
    }

    /// Begins the checks that are due, and sets the timer for the next.
    func commit() {
        guard phase != .stopped else { return }
        let (isOffline, now) = (source.isOffline, clock.now)
        for subscription in subscriptions.all where max(subscription.added, subscription.checked ?? now) > now {
            subscriptions[subscription.id]?.follow(clockAt: now)
        }
        episodes.notePlayed(now: now)
        if isOffline { refuseWaiting() }
        while checking.count < Self.mostAtOnce, !isOffline, let id = nextDue { begin(id) }
        guard checksByItself else { return }
        let waiting = subscriptions.all.filter { !checking.contains($0.id) }.map(\.due).min()
        let check =
            checking.count < Self.mostAtOnce
            ? waiting.map { max($0 - clock.now, isOffline ? Self.offlineWait : 0) } : nil
        clock.wake(after: episodes.wait(upTo: check, now: clock.now)) { [weak self] in self?.post { $0.commit() } }
    }

    private var nextDue: Int64? {
        if let id = waiters.keys.filter({ !checking.contains($0) }).min() { return id }
        guard checksByItself else { return nil }
        let now = clock.now
        return subscriptions.all.filter { $0.due <= now && !checking.contains($0.id) }.min { $0.due < $1.due }?.id
    }

    private func refuseWaiting() {
        let waiting = waiters.filter { !checking.contains($0.key) }
        for (id, ends) in waiting {
            waiters[id] = nil
            report(ends, of: failed(id, FeedReadings.offline.message))
        }
    }

    private func begin(_ id: Int64) {
        guard let subscription = subscriptions[id] else {
            let ends = waiters.removeValue(forKey: id) ?? []
            return report(ends, of: failed(id, Self.unsubscribed))
        }
        checking.insert(id)
        let wanted = subscription.wantsLatest ? subscription.options.latest : 0
        read(FeedReading(subscription.request, wanted: wanted, pattern: subscription.options.title)) {
            manager, outcome in
            manager.checking.remove(id)
            if manager.again.remove(id) != nil { return manager.commit() }
            let ends = manager.waiters.removeValue(forKey: id) ?? []
            manager.report(ends, of: manager.conclude(id, outcome))
            manager.commit()
        }
    }

    private static let unsubscribed = "it is no longer subscribed"

    private func report(_ ends: [@Sendable (FeedCheckResult) -> Void], of check: FeedCheckResult) {
        for end in ends { end(check) }
    }

    private func failed(_ id: Int64, _ message: String) -> FeedCheckResult {
        let subscription = subscriptions[id]
        return FeedCheckResult(
            urlText: subscription?.url.absolute ?? "", title: subscription?.title, outcome: .failed, message: message)
    }

    /// Reads a feed with all that belongs to it.
    /// - Parameter end: called once, inside the actor.
    func read(_ value: FeedReading, then end: @escaping (isolated SubscriptionManager, FeedReading.Outcome) -> Void) {
        readings.start(value) { end(self, $0) }
    }

    // MARK: Outcomes

    /// Orders new episodes, and saves what is known of the feed by now.
    func conclude(_ id: Int64, _ outcome: FeedReading.Outcome) -> FeedCheckResult {
        guard phase != .stopped else { return failed(id, DownloadError.closed.reason) }
        guard var subscription = subscriptions[id] else { return failed(id, Self.unsubscribed) }
        var check = FeedCheckResult(
            urlText: subscription.url.absolute, title: subscription.title, outcome: .unchanged)
        do {
            try episodes.noteRemoved(of: subscription)
            switch outcome {
            case .failed(let failure): throw failure
            case .unchanged(let newAddress):
                let former = subscription.address
                subscription.address = newAddress ?? former
                if let end = try episodes.removeDuplicate(subscription, at: subscription.address) { return end }
                subscription.gaps = 0
                succeed(&subscription)
                try subscriptions.save(subscription, [], movedFrom: former)
            case .read(let finding):
                if let end = try episodes.removeDuplicate(subscription, at: finding.address) { return end }
                check = try take(finding, subscription)
            }
        } catch {
            let failure = error as? FeedFailure ?? FeedFailure("\(error)")
            (check.outcome, check.message) = (.failed, failure.message)
            fail(id, failure)
        }
        episodes.retain(id)
        if check.outcome != .failed { episodes.retryDownloads(of: id, now: clock.now) }
        return check
    }

    private func take(_ finding: FeedReading.Finding, _ former: Subscription) throws -> FeedCheckResult {
        let known = try subscriptions.database.episodes(of: former.id)
        subscriptions.repairLoss()
        var subscription = subscriptions[former.id] ?? former
        let downloads = episodes.downloads(of: subscription)
        let plan = SubscriptionPlan(
            finding.items, firstPage: finding.firstPage, known: known, options: subscription.options,
            isFirst: subscription.read == nil, wantsLatest: subscription.wantsLatest,
            downloads: EpisodeKeeper.plannedDownloads(downloads, now: clock.now), now: Int64(saturating: clock.now))
        let renewals = plan.renewals.filter { !episodes.isBeingDownloaded($0.episode.url) }
        let ordered = try episodes.order(plan.orders + renewals.map(\.episode), of: subscription)
        try episodes.cancel(renewals.map(\.replaced))
        let formerlySkipped = Set(subscription.skipped)
        (subscription.title, subscription.address) = (finding.title ?? subscription.title, finding.address)
        (subscription.lifetime, subscription.skipped) = (finding.lifetime, finding.skippedLines)
        let readsAgain = subscription.readsAgain(after: finding.gap)
        if subscription.gaps == 1, let gap = finding.gap {
            logger.notice("the feed \(subscription.url.absolute) was not read completely: \(gap.message)")
        }
        subscription.validators = readsAgain || plan.awaitsRenewal ? FeedValidators() : finding.validators
        if !readsAgain { subscription.wantsLatest = false }
        succeed(&subscription)
        // The rest of a text that ended early is not new when it comes.
        if readsAgain, former.read == nil, finding.gap?.isInText == true { subscription.read = nil }
        try subscriptions.save(subscription, plan.changed, forgetting: plan.forgotten, movedFrom: former.address)
        let skipped = subscription.skipped.filter { !formerlySkipped.contains($0) }
        for line in skipped { logger.info("an item of \(subscription.url.absolute) is skipped: \(line)") }
        return FeedCheckResult(
            urlText: subscription.url.absolute, title: subscription.title, outcome: .read,
            episodes: finding.items.count,
            skipped: finding.skippedCount, skippedItems: skipped.isEmpty ? nil : skipped, new: plan.newCount,
            downloads: ordered,
            message: finding.gap.map { $0.message + (readsAgain ? "; the next check tries again" : "") })
    }

    private func succeed(_ subscription: inout Subscription) {
        if subscription.brokenSince != nil {
            logger.notice("the feed \(subscription.url.absolute) can be read again")
        }
        subscription.succeeded(now: clock.now, random: random())
    }

    private func fail(_ id: Int64, _ failure: FeedFailure) {
        guard var subscription = subscriptions[id] else { return }
        if subscription.brokenSince == nil {
            logger.warning("the feed \(subscription.url.absolute) cannot be read: \(failure.message)")
        }
        subscription.failed(failure, now: clock.now, random: random())
        subscriptions[id] = subscription
        do throws(DownloadError) { try subscriptions.save(subscription, []) } catch { logger.error("\(error)") }
    }

    // MARK: Episodes

    private nonisolated func postLook() {
        let isFirst = isLookPosted.withLock { isPosted in
            defer { isPosted = true }
            return !isPosted
        }
        if isFirst { post { $0.lookAtDownloads() } }
    }

    /// A completed download may be one episode too many.
    private func lookAtDownloads() {
        isLookPosted.withLock { $0 = false }
        guard phase == .started else { return }
        let changes = episodes.downloads.snapshots.changes(since: seenDownloads) { report in
            report.feed != nil && report.state == .completed
        }
        seenDownloads = changes.revision
        let feeds = Set(changes.listing.downloads.compactMap(\.feed))
        guard !feeds.isEmpty else { return }
        for subscription in subscriptions.all where feeds.contains(subscription.url.absolute) {
            episodes.retain(subscription.id)
        }
    }
}
