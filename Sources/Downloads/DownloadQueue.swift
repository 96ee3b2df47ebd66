import CachePolicy
import Foundation
import HTTPModel

/// The queue of downloads: which exist, which run, and which is next. It carries out nothing: operations return effects
/// for the caller.
///
/// A download *waits* for its turn or for its next attempt, *runs*, is *paused*, or has *ended* and is part of the
/// history. All changes go through `put`, which keeps the indexes up to date.
struct DownloadQueue {
    /// The number of ended downloads to remember.
    static let longestHistory = 1000

    enum Effect: Equatable {
        /// End a running attempt.
        case stop(Int64)
        /// Change the rate limit of a running attempt.
        case limit(Int64)
        /// Remove the bytes of a cancelled download, unless another one wants them.
        case release(Int64)
        /// Begin an attempt.
        case begin(Int64)
    }

    /// On the heap: a dictionary has room for up to twice as many as there are.
    private var jobs: [Int64: Stored] = [:]
    private(set) var settings: DownloadSettings
    var nextID: Int64 = 1
    var nextPlace = 1.0
    private var nextEnded: Int64 = 1
    private var nextBegun: Int64 = 1

    var lines = DownloadLines()
    var rests = HostRests()
    /// What the schedule and the caps allow now.
    private(set) var allowance = DownloadAllowance()

    /// Since the last `takeChanges`.
    var changes = PendingChanges.News()

    init(settings: DownloadSettings = DownloadSettings()) { self.settings = settings.bounded }

    /// Restores the downloads of the last process: those that were running wait at their old place.
    init(settings: DownloadSettings, restoring saved: [DownloadJob], nextID: Int64, now: Double, monotonic: Double) {
        self.init(settings: settings)
        for var job in saved.sorted(by: { ($0.place, $0.id) < ($1.place, $1.id) }) {
            job.best = job.progress.bytes
            if job.state == .downloading { job.state = .waiting }
            // The wall clock may have been changed since.
            if let retryAt = job.retryAt { job.wait(min(max(0, retryAt - now), DownloadJob.longestDelay), monotonic) }
            put(job)
            nextPlace = max(nextPlace, job.place + 1)
            nextEnded = max(nextEnded, (job.ended ?? 0) +| 1)
            self.nextID = max(self.nextID, job.id +| 1)
        }
        self.nextID = max(self.nextID, nextID)
        _ = takeChanges()
    }

    private final class Stored: Sendable {
        let job: DownloadJob
        init(_ job: DownloadJob) { self.job = job }
    }

    subscript(_ id: Int64) -> DownloadJob? { jobs[id]?.job }

    var ids: some Collection<Int64> { jobs.keys }

    /// All, in no order.
    var all: some Collection<DownloadJob> { jobs.values.lazy.map(\.job) }

    // MARK: Updating

    /// - Parameter isProgress: whether only progress has changed, which may be saved later.
    mutating func put(_ job: DownloadJob, isProgress: Bool = false) {
        if let old = self[job.id] { lines.remove(old) }
        jobs[job.id] = Stored(job)
        lines.insert(job)
        if isProgress { changes.progressed.insert(job.id) } else { changes.altered.insert(job.id) }
    }

    /// Forgets a download that has ended.
    mutating func forget(_ id: Int64) {
        guard let job = self[id], job.state.hasEnded else { return }
        lines.remove(job)
        jobs[id] = nil
        changes.altered.remove(id)
        changes.progressed.remove(id)
        changes.repainted.remove(id)
    }

    var isAltered: Bool { !changes.altered.isEmpty }

    /// Returns the changes since the last call.
    mutating func takeChanges() -> PendingChanges.News {
        defer { changes = PendingChanges.News() }
        return changes
    }

    // MARK: Looking up

    func liveOne(_ identity: DownloadJob.Identity) -> DownloadJob? { lines.live[identity].flatMap { self[$0] } }

    func failedOne(_ identity: DownloadJob.Identity) -> DownloadJob? { lines.failed[identity].flatMap { self[$0] } }

    func jobs(sharing name: String) -> [DownloadJob] { (lines.sharers[name] ?? []).compactMap { self[$0] } }

    /// The oldest first.
    var endedIDs: [Int64] { Array(lines.ended.ids) }

    /// Ended downloads beyond the longest history, the oldest first.
    var surplusEndedIDs: [Int64] { Array(lines.ended.ids.dropLast(Self.longestHistory)) }

    /// All waiting downloads of a priority, in order.
    func waiting(_ priority: Download.Priority) -> [DownloadJob] {
        let delayed = lines.delayed.ids.compactMap { self[$0] }.filter { $0.order.priority == priority }
        return (lines.ready(priority).compactMap { self[$0] } + delayed).sorted {
            ($0.place, $0.id) < ($1.place, $1.id)
        }
    }

    /// Whether any download only waits for its turn.
    var hasReady: Bool { lines.readyCount > 0 }

    /// Whether time alone can change something.
    var isWaitingForTime: Bool {
        !lines.running.ids.isEmpty || !lines.delayed.ids.isEmpty || lines.hasResting
            || lines.readyLanes.contains { allowance.hold(for: $0) != nil }
    }

    var summary: DownloadTotals {
        var summary = lines.summary
        (summary.settings, summary.scheduledRate) = (settings, allowance.rate)
        summary.bytesPerSecond = lines.running.ids.reduce(0) { $0 +| (self[$1]?.rate.bytesPerSecond ?? 0) }
        summary.eta = TransferRate.seconds(for: summary.total.map { $0 -| summary.bytes }, at: summary.bytesPerSecond)
        if lines.hasResting || lines.readyLanes.contains(where: { $0 != .atOnce }) {
            (summary.hold, summary.heldUntil) = (allowance.hold?.reason, allowance.hold?.until.map(Date.init(seconds:)))
        }
        return summary
    }

    /// A download for people.
    func report(_ id: Int64) -> Download? {
        self[id].map { $0.report(allowance.hold(for: $0.order.lane), rests[$0.order.url.origin]) }
    }

    /// A download as listings show it.
    func snapshot(_ id: Int64) -> DownloadSnapshots.Entry? {
        guard let job = self[id], let report = report(id) else { return nil }
        return .init(report: report, url: job.order.url, place: job.listingPlace)
    }

    // MARK: Turns

    /// Begins downloads whose turn it is.
    mutating func begin(now: Double) -> [Effect] {
        var effects: [Effect] = []
        while lines.running.ids.count < settings.maxActive,
            let id = lines.next(where: { allowance.hold(for: $0) == nil }), var job = self[id]
        {
            (job.state, job.isScout) = (.downloading, false)
            job.begin(now: now)
            job.begun = nextBegun
            job.rate = TransferRate()
            nextBegun += 1 // no trap: a count of events
            put(job)
            effects.append(.begin(id))
        }
        return effects
    }

    /// Changes the settings. If fewer may run now, those that began last return to their places.
    mutating func set(_ settings: DownloadSettings) -> [Effect] {
        self.settings = settings.bounded
        return Array(lines.running.ids.dropFirst(self.settings.maxActive)).reversed().flatMap { suspend($0) }
    }

    /// Changes what the schedule and the caps allow. Downloads that may not run any more return to their places.
    mutating func set(_ allowance: DownloadAllowance) -> [Effect] {
        let lanes = lines.readyLanes.filter { self.allowance.hold(for: $0) != allowance.hold(for: $0) }
        changes.repainted.formUnion(lanes.flatMap { lines.ready($0) })
        if self.allowance != allowance { changes.repainted.formUnion(rests.all.keys.flatMap { lines.resting($0) }) }
        self.allowance = allowance
        let held = lines.running.ids.filter { id in
            self[id].map { allowance.hold(for: $0.order.lane) != nil } ?? false
        }
        return held.flatMap { suspend($0) }
    }

    /// Stops all downloads, until they begin again.
    mutating func suspendAll() -> [Effect] { Array(lines.running.ids).flatMap { suspend($0) } }

    private mutating func suspend(_ id: Int64) -> [Effect] {
        guard var job = self[id] else { return [] }
        job.state = .waiting
        put(job)
        return [.stop(id)]
    }

    /// Lets downloads whose next attempt is due wait for their turn.
    mutating func wake(now: Double, monotonic: Double) {
        while let due = lines.delayed.firstKey, due <= monotonic, let id = lines.delayed.ids.first, var job = self[id] {
            job.becomeReady(now: now)
            put(job)
        }
        sendScouts(monotonic: monotonic)
    }

    /// Moves a download to the history.
    mutating func end(_ job: DownloadJob, as state: Download.State, now: Double) {
        var job = job
        (job.state, job.finished) = (state, now)
        (job.retryAt, job.due, job.isScout) = (nil, nil, false)
        job.ended = nextEnded
        nextEnded += 1 // no trap: counts on from rows, whose numbers are far below the greatest
        changes.ended.append(job.id)
        put(job)
    }
}

extension DownloadSettings {
    /// The settings, clamped to valid values.
    fileprivate var bounded: DownloadSettings {
        var settings = self
        settings.maxActive = min(max(maxActive, Self.maxActiveRange.lowerBound), Self.maxActiveRange.upperBound)
        settings.limitRate = limitRate.flatMap { $0 > 0 ? $0 : nil }
        return settings
    }
}
