import CachePolicy
import Foundation
import HTTPModel
import Logging
import Synchronization

/// Manages all downloads: the queue, its database, and the running transfers.
///
/// It has a dispatch queue of its own, on which it may block. Decisions of the download queue are saved before they are
/// carried out: a download is in the database before its first byte, and a cancellation before its bytes are removed.
package actor DownloadManager {
    package nonisolated let snapshots: DownloadSnapshots

    private nonisolated let executor = QueueExecutor(label: "reelcache.downloads")
    /// Whether a tick has been posted already: they must not pile up while this actor is busy.
    private nonisolated let isTickPosted = Mutex(false)
    private let database: DownloadDatabase
    private let source: (any DownloadSource)?
    private let restorePoints: any RestorePointKeeper
    private let clock: any DownloadClock
    private let logger: Logger
    private let ordered: @Sendable ([Int64]) -> Void
    private let ended: @Sendable (Download) -> Void

    private var queue: DownloadQueue
    private var budget: DownloadBudget
    private var phase = Phase.idle
    private var attempts: [Int64: DownloadAttempt] = [:]
    private var attemptCount: Int64 = 0
    private var isTicking = false

    private var pending = PendingChanges()
    /// The time of the last attempt to save, by the monotonic clock.
    private var savedAt = 0.0
    /// Why the last attempt to save failed; nil if it succeeded.
    private var savingFailure: String?
    /// Downloads about to begin, whose restore points have to be saved first.
    private var unsavedRestorePointIDs: Set<Int64> = []
    /// Cancelled or failed downloads whose bytes could not be removed; the next process tries again.
    private var stuck: Set<Int64> = []
    /// The last failure of each download that the log has: its feed retries it for days.
    private var loggedFailures: [Int64: String] = [:]

    private enum Phase { case idle, started, stopped }

    package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// - Parameters:
    ///   - directory: the cache directory, which contains the database `downloads.sqlite`.
    ///   - source: nil if this process must not fetch anything: orders are then kept for the next process that does.
    ///   - ordered: called, inside the actor, with downloads that were ordered by somebody who does not wait for them.
    ///   - ended: likewise, with each download that has ended, once that was saved.
    /// - Throws: `.disk` if the database cannot be opened. A damaged database is set aside.
    package init(
        directory: String, source: (any DownloadSource)?, restorePoints: any RestorePointKeeper,
        settings: DownloadSettings, clock: any DownloadClock, logger: Logger,
        ordered: @escaping @Sendable ([Int64]) -> Void = { _ in },
        ended: @escaping @Sendable (Download) -> Void = { _ in }
    ) throws(DownloadError) {
        snapshots = DownloadSnapshots(clock: clock)
        let database = try DownloadDatabase(directory: directory, logger: logger)
        let contents = try database.load()
        let queue = DownloadQueue(
            settings: settings, restoring: contents.jobs, nextID: contents.nextID, now: clock.now,
            monotonic: clock.monotonic)
        (self.database, self.source, self.restorePoints, self.clock, self.logger, self.queue) = (
            database, source, restorePoints, clock, logger, queue
        )
        (self.ordered, self.ended) = (ordered, ended)
        budget = DownloadBudget(DownloadUsage(contents.usage), in: clock.local)
        var summary = queue.summary
        summary.isOffline = source?.isOffline ?? false
        snapshots.post(queue.ids.sorted().compactMap(queue.snapshot), summary: summary)
    }

    /// Runs work inside the actor and waits for it: not on a loop, nor inside the manager.
    package nonisolated func perform<Result: Sendable>(_ work: @Sendable (isolated DownloadManager) throws -> Result)
        rethrows -> Result
    {
        try executor.queue.sync { try assumeIsolated(work) }
    }

    // MARK: Starting and stopping

    /// Continues interrupted downloads. Nothing is fetched before.
    package func start() {
        guard phase == .idle else { return }
        phase = .started
        source?.limitAll(to: queue.settings.limitRate)
        releaseLeftovers()
        commit()
    }

    /// A cancelled download still has a restore point if the process ended before its bytes were removed.
    private func releaseLeftovers() {
        var freed: Int64 = 0
        for job in queue.endedIDs.compactMap({ queue[$0] }) where job.restorePoint != nil {
            if job.state == .completed { queue.dropRestorePoint(job.id) }
            if job.state == .cancelled { freed +|= release(job.id) }
        }
        if freed > 0 {
            logger.notice("removed \(ByteSize(bytes: freed)) of partial data that cancelled downloads had left")
        }
    }

    /// Stops running downloads, which continue at the next start, and saves everything.
    package func stop() {
        guard phase != .stopped else { return }
        readProgress()
        for effect in queue.suspendAll() { act(effect) }
        phase = .stopped
        collect()
        save()
        post()
        tickIfWanted()
        do { try database.close() } catch { logger.error("\(error)") }
    }

    private func checkOpen() throws(DownloadError) {
        guard phase != .stopped else { throw DownloadError(.conflict, "the cache is closing") }
    }

    // MARK: Orders and changes

    /// Saves orders, and begins downloads whose turn it is. An order for a URL with an unfinished download changes that
    /// download, and resumes it if it was paused. All orders are saved, or none.
    /// - Parameter waits: whether the downloads are wanted only as long as a caller in this process waits for them.
    /// - Returns: the download of each order.
    package func add(_ orders: [DownloadOrder], waits: Bool = false) throws(DownloadError) -> [Download] {
        try checkOpen()
        readProgress()
        let plan = try queue.plan(orders, areAwaited: waits, now: clock.now)
        try write(Array(plan.jobs.values), all: everything(except: plan.jobs))
        collect()
        let effects = queue.take(plan)
        collect(exceptSaving: plan.jobs)
        if !waits { ordered(plan.ids) }
        commit(effects)
        return plan.ids.compactMap { queue.report($0) }
    }

    /// - Returns: the named downloads, or all that were changed, as they are now.
    package func change(_ selection: DownloadSelection, _ change: DownloadChange) throws(DownloadError)
        -> [Download]
    {
        try checkOpen()
        readProgress()
        let (ids, effects) = try queue.change(selection, change, now: clock.now)
        let changed = ids.compactMap { queue.report($0) }
        commit(effects)
        // If thousands were cancelled, most are forgotten by now.
        return changed.map { queue.report($0.id) ?? $0 }
    }

    /// Changes the settings, after clamping them.
    package func set(_ settings: DownloadSettings) {
        guard phase != .stopped else { return }
        readProgress()
        let before = queue.settings.limitRate
        let effects = queue.set(settings)
        if queue.settings.limitRate != before { source?.limitAll(to: queue.settings.limitRate) }
        commit(effects)
    }

    /// Whether an unfinished download of a URL is to stay: not one that ends with whoever waits for it, and not one
    /// that may be evicted.
    func isKept(_ url: OriginURL) -> Bool {
        snapshots.downloads(of: url).contains { !$0.state.hasEnded && $0.isPinned && queue[$0.id]?.isAwaited == false }
    }

    /// Changes the caps of feeds, by the URL under which each is subscribed.
    package func setFeedCaps(_ caps: [String: [DownloadCap]]) {
        var settings = queue.settings
        guard settings.feedCaps != caps else { return }
        settings.feedCaps = caps
        set(settings)
    }

    /// The newest first.
    package func history(limit: Int?, category: String?, states: Set<Download.State>? = nil) -> [Download] {
        let found = queue.endedIDs.reversed().lazy.compactMap { self.queue[$0] }.filter {
            (category == nil || $0.order.category == category) && states?.contains($0.state) ?? true
        }
        return found.prefix(max(0, limit ?? .max)).map(\.report)
    }

    /// The downloads of a subscription by the episode's identity; of each episode, the latest, as if it had
    /// first failed when the first of them did.
    /// - Parameters:
    ///   - feed: the URL under which it is subscribed.
    ///   - since: only downloads that were ordered at this time or later, in seconds since 1970.
    package func downloads(ofFeed feed: String, since: Double) -> [String: Download] {
        var found: [String: Download] = [:]
        for job in queue.all where job.order.episode?.feed == feed && job.added >= since {
            guard let identity = job.order.episode?.identity else { continue }
            let (report, other) = (job.report, found[identity])
            var latest = other.map { $0.id > report.id ? $0 : report } ?? report
            latest.failedFirst = [report.failedFirst, other?.failedFirst].compactMap { $0 }.min()
            found[identity] = latest
        }
        return found
    }

    /// Forgets all downloads that have ended, but for failed ones that their feeds retry: without one, its episode
    /// would count as removed by a person.
    /// - Returns: how many.
    package func clearHistory() throws(DownloadError) -> Int {
        try checkOpen()
        let forgotten = queue.endedIDs.count { !FeedSchedule.retries(queue[$0]?.report, now: clock.now) && forget($0) }
        commit()
        return forgotten
    }

    // MARK: Events

    package nonisolated func post(_ work: @escaping @Sendable (isolated DownloadManager) -> Void) {
        executor.queue.async { self.assumeIsolated(work) }
    }

    private nonisolated func postTick() {
        let isFirst = isTickPosted.withLock { isPosted in
            defer { isPosted = true }
            return !isPosted
        }
        if isFirst { post { $0.tick() } }
    }

    private func tick() {
        isTickPosted.withLock { $0 = false }
        guard phase == .started else { return }
        readProgress()
        queue.wake(now: clock.now, monotonic: clock.monotonic)
        collect()
        if isSavingDue { save() }
        commit()
    }

    private var hasUnsaved: Bool { !pending.isEmptyOfUnsaved || !budget.usage.unsaved.isEmpty }

    private var isSavingDue: Bool { hasUnsaved && clock.monotonic - savedAt >= 1 }

    private func readProgress() {
        let time = clock.monotonic
        for id in Array(attempts.keys) {
            countFetched(id)
            if let attempt = attempts[id] { queue.progress(id, attempt.running.progress, monotonic: time) }
        }
    }

    /// Counts what an attempt has fetched since the last time.
    private func countFetched(_ id: Int64) {
        guard let bytes = attempts[id]?.takeFetched(), bytes > 0 else { return }
        budget.count(bytes, feed: queue[id]?.order.episode?.feed, now: now)
    }

    /// Seconds since 1970.
    private var now: Int64 { Int64(saturating: clock.now) }

    private func attemptEnded(_ id: Int64, _ number: Int64, _ end: DownloadEnd) {
        guard attempts[id]?.number == number else { return }
        countFetched(id)
        attempts[id] = nil
        endAttempt(id, end)
        commit()
    }

    /// The network of this machine has changed: what failed for its sake is tried again.
    package func networkChanged() {
        guard phase == .started else { return }
        queue.networkChanged(now: clock.now)
        commit()
    }

    // MARK: Acting

    /// Saves changes, carries out effects, and begins downloads whose turn it is, until nothing changes any more.
    private func commit(_ effects: [DownloadQueue.Effect] = []) {
        var effects = effects + applyLimits()
        repeat {
            if mayBegin { effects += queue.begin(now: clock.now) }
            let faults = noteRestorePoints(effects)
            collect()
            if pending.isUrgent { save() }
            holdBackUnsaved()
            for effect in effects {
                if case .begin(let id) = effect, let fault = faults[id] { fail(id, fault) } else { act(effect) }
            }
            effects = []
        } while queue.isAltered
        // What could not be saved ends once more after a restart.
        if savingFailure == nil {
            for report in pending.takeEnded().compactMap({ queue[$0]?.report }) where report.state.hasEnded {
                ended(report)
            }
        }
        for id in queue.surplusEndedIDs { _ = forget(id) }
        collect()
        if pending.isUrgent { save() }
        post()
        tickIfWanted()
    }

    private var mayBegin: Bool { phase == .started && savingFailure == nil && source.map { !$0.isOffline } ?? false }

    /// Applies what the schedule and the caps allow by now.
    private func applyLimits() -> [DownloadQueue.Effect] {
        guard phase == .started, let source else { return [] }
        let allowance = budget.allowance(queue.settings, now: now)
        if allowance.rate != queue.allowance.rate { source.limitScheduled(to: allowance.rate) }
        return queue.set(allowance)
    }

    private func stop(_ id: Int64) {
        attempts[id]?.running.stop()
        countFetched(id)
        attempts[id] = nil
        // Perhaps nothing runs any more, and nobody ticks.
        if !budget.usage.unsaved.isEmpty { pending.hurry() }
    }

    private func act(_ effect: DownloadQueue.Effect) {
        switch effect {
        case .stop(let id): stop(id)
        case .limit(let id): attempts[id]?.running.limit(to: queue[id]?.order.bytesPerSecond)
        case .release(let id): _ = release(id)
        case .begin(let id): begin(id)
        }
    }

    private func begin(_ id: Int64) {
        guard let source, let job = queue[id], job.state == .downloading else { return }
        attemptCount += 1 // no trap: a count of events
        let number = attemptCount
        let running = source.begin(job.dated) { [weak self] end in self?.post { $0.attemptEnded(id, number, end) } }
        attempts[id] = DownloadAttempt(number: number, running)
    }

    /// Ends an attempt before it has begun.
    private func fail(_ id: Int64, _ fault: DownloadFault) {
        guard let job = queue[id] else { return }
        endAttempt(id, .failed(fault, job.progress))
    }

    private func endAttempt(_ id: Int64, _ end: DownloadEnd) {
        var end = end
        if case .failed(let fault, let progress) = end, fault.lacksRoom {
            end = .failed(DownloadFault(fault.kind, fault.message + makingRoom, lacksRoom: true), progress)
        }
        let before = queue[id], origin = before?.order.url.origin ?? "", wasLong = queue.rests[origin]?.isLong == true
        queue.attemptEnded(id, end, now: clock.now, monotonic: clock.monotonic)
        if !wasLong, let rest = queue.rests[origin], rest.isLong {
            logger.warning("downloads from \(origin) wait: \(rest.reason); one of them tries again later")
        }
        guard let before, let job = queue[id], (job.state, job.isHeld) != (before.state, before.isHeld) else { return }
        let name = (job.title ?? job.progress.fileName).map { "\"\($0)\", " } ?? ""
        if job.state == .completed { noteOrder(of: job) }
        switch job.state {
        case .completed: logger.notice("downloaded \(name)\(job.url): \(ByteSize(bytes: job.progress.bytes))")
        case .failed where loggedFailures.updateValue(job.message ?? "", forKey: id) != job.message:
            logger.warning("could not download \(name)\(job.url): \(job.message ?? "")")
        case .waiting where job.isHeld && job.failures == DownloadJob.quickAttempts && queue.rests[origin] == nil:
            logger.warning("cannot download \(name)\(job.url) for now: \(job.message ?? ""); it is tried again later")
        default: break
        }
    }

    private func noteOrder(of job: DownloadJob) {
        guard let key = job.key else { return }
        let order = job.order
        do {
            try restorePoints.noteOrder(
                title: job.title, category: order.options.category,
                isByHand: order.episode == nil && order.options.isPinned, of: key)
        } catch { logger.error("cannot note the title and category of \(job.url): \(error)") }
    }

    /// What could go, in words that complete a sentence; empty if nothing is pinned.
    private var makingRoom: String {
        let all = (try? restorePoints.leastMissed(limit: 3)) ?? [], played = all.filter { $0.played != nil }
        let some = played.isEmpty ? all : played
        guard !some.isEmpty else { return "" }
        let names = some.map {
            "\"\(DisplayName(title: $0.title, url: $0.urlText))\" (\(ByteSize(bytes: $0.cachedBytes)))"
        }
        // An origin may have put a quote into a URL: people paste this into a shell.
        let urls = some.map { "'\($0.urlText.replacing("'", with: "'\\''"))'" }.joined(separator: " ")
        return "; \(played.isEmpty ? "read longest ago" : "played"): \(names.joined(separator: ", "));"
            + " reelcache rm \(urls) removes \(some.count == 1 ? "it" : "them")"
    }

    // MARK: Restore points

    /// Records what is cached before the first byte of the downloads that are about to begin.
    /// - Returns: faults of downloads for which that failed.
    private func noteRestorePoints(_ effects: [DownloadQueue.Effect]) -> [Int64: DownloadFault] {
        var faults: [Int64: DownloadFault] = [:]
        for case .begin(let id) in effects {
            guard let subject = queue[id]?.lackingRestorePoint(restorePoints.key) else { continue }
            do {
                if let former = queue.release(id) { _ = try restorePoints.release(former) }
                queue.setRestorePoint(id, try restorePoints.restorePoint(subject))
                unsavedRestorePointIDs.insert(id)
            } catch {
                faults[id] = DownloadFault(.network, "cannot find out what is cached of it: \(error)")
            }
        }
        return faults
    }

    /// Puts downloads back whose restore points could not be saved: without them, nobody would later know what was
    /// cached before. They begin when saving works again.
    private func holdBackUnsaved() {
        if let savingFailure {
            for id in unsavedRestorePointIDs { queue.holdBack(id, savingFailure) }
        }
        unsavedRestorePointIDs = []
    }

    /// Removes the bytes that a download has fetched.
    /// - Returns: the bytes freed.
    private func release(_ id: Int64) -> Int64 {
        guard let restorePoint = queue.release(id) else { return 0 }
        do {
            let freed = try restorePoints.release(restorePoint)
            queue.dropRestorePoint(id)
            return freed
        } catch {
            if stuck.insert(id).inserted {
                logger.error(
                    "cannot remove the data of download \(id) of \(queue[id]?.url ?? ""): \(error); the next start tries again"
                )
            }
            return 0
        }
    }

    /// Forgets a download that has ended. Nobody can continue it then, so its bytes are removed first.
    /// - Returns: whether it is forgotten.
    private func forget(_ id: Int64) -> Bool {
        if let job = queue[id], job.restorePoint != nil {
            guard !stuck.contains(id) else { return false }
            if job.state == .completed { queue.dropRestorePoint(id) } else { _ = release(id) }
            guard !stuck.contains(id) else { return false }
        }
        if let job = queue[id], job.state == .completed, !restorePoints.keep(job, in: &queue, logger) { return false }
        collect()
        queue.forget(id)
        loggedFailures[id] = nil
        pending.noteRemoval(id)
        return true
    }

    // MARK: Saving and posting

    /// Marks changes as unsaved and unposted.
    private func collect(exceptSaving saved: [Int64: DownloadJob] = [:]) {
        pending.note(queue.takeChanges(), exceptSaving: saved)
    }

    /// Saves changes; if that fails, they are kept for the next attempt.
    private func save() {
        guard hasUnsaved else { return }
        savedAt = clock.monotonic
        pending.saving()
        do {
            let jobs = pending.unsaved.compactMap { queue[$0] }
            try write(jobs, removing: pending.unsavedRemovals, all: everything())
            pending.noteSaved()
            if savingFailure != nil { logger.notice("saving downloads works again") }
            savingFailure = nil
        } catch {
            if savingFailure == nil { logger.error("\(error); downloads continue, and saving will be retried") }
            savingFailure = error.description
        }
    }

    /// Saves these downloads, and what was fetched.
    /// - Parameter all: all other downloads, for a new database if this one turns out to be damaged.
    private func write(
        _ jobs: [DownloadJob], removing ids: Set<Int64> = [], all: @autoclosure () -> [DownloadJob]
    ) throws(DownloadError) {
        let firstDay = budget.usage.forgetOld(today: clock.local.day(now))
        try database.save(jobs, removing: ids, budget.usage, since: firstDay, all: all)
        budget.usage.noteSaved()
    }

    private func everything(except some: [Int64: DownloadJob] = [:]) -> [DownloadJob] {
        queue.all.filter { some[$0.id] == nil }
    }

    private func post() {
        let changed = pending.unposted.compactMap { queue.snapshot($0) }
        var summary = queue.summary
        summary.isOffline = source?.isOffline ?? false
        summary.usage = budget.report(now: now)
        let removed = pending.unpostedRemovals
        guard !changed.isEmpty || !removed.isEmpty || summary != snapshots.posted else { return }
        snapshots.post(changed, removed: removed, summary: summary)
        pending.notePosted()
    }

    /// The clock ticks only while time can change something.
    private func tickIfWanted() {
        let isOfflineInVain = queue.hasReady && source?.isOffline == true
        let isWanted = phase == .started && (queue.isWaitingForTime || isOfflineInVain || savingFailure != nil)
        guard isWanted != isTicking else { return }
        isTicking = isWanted
        clock.tick(isWanted) { [weak self] in self?.postTick() }
    }
}
