import CachePolicy
import HTTPModel

/// Which downloads there are, which of them run, and whose turn is next. Nothing is done here: operations say what is
/// to be done, as effects.
///
/// A download *waits* for its turn or for its next attempt, *runs*, is *paused*, or has *ended* and belongs to the
/// history. Whatever changes goes through `put`, which keeps the lines beside the jobs in step with them.
struct DownloadQueue {
    /// So many that have ended are remembered.
    static let longestHistory = 1000

    enum Effect: Equatable {
        /// An attempt that runs is ended.
        case stop(Int64)
        /// The one that runs gets another limit.
        case limit(Int64)
        /// What a cancelled one has brought is removed, unless somebody else wants it.
        case release(Int64)
        /// An attempt is begun.
        case begin(Int64)
    }

    private(set) var jobs: [Int64: DownloadJob] = [:]
    private(set) var settings: DownloadSettings
    var nextID: Int64 = 1
    var nextPlace = 1.0
    private var nextEnded: Int64 = 1
    private var nextBegun: Int64 = 1

    private var lines = DownloadLines()

    /// What has changed that must not get lost, since somebody took it.
    private var altered: Set<Int64> = []
    /// What has come further only.
    private var progressed: Set<Int64> = []

    init(settings: DownloadSettings = DownloadSettings()) { self.settings = settings.bounded }

    /// With what another process has left: what was running waits for its turn, at its old place.
    init(settings: DownloadSettings, restoring saved: [DownloadJob], nextID: Int64, now: Double, monotonic: Double) {
        self.init(settings: settings)
        for var job in saved.sorted(by: { ($0.place, $0.id) < ($1.place, $1.id) }) {
            job.best = job.progress.bytes
            if job.state == .downloading { job.state = .waiting }
            // Another hour than then may be it now.
            if let retryAt = job.retryAt { job.due = monotonic + min(max(0, retryAt - now), Self.longestDelay) }
            put(job)
            nextPlace = max(nextPlace, job.place + 1)
            nextEnded = max(nextEnded, (job.ended ?? 0) +| 1)
            self.nextID = max(self.nextID, job.id +| 1)
        }
        self.nextID = max(self.nextID, nextID)
        _ = takeChanges()
    }

    subscript(_ id: Int64) -> DownloadJob? { jobs[id] }

    // MARK: Keeping in step

    /// - Parameter isProgress: whether only that has changed which may be saved later.
    mutating func put(_ job: DownloadJob, isProgress: Bool = false) {
        if let old = jobs[job.id] { lines.remove(old) }
        jobs[job.id] = job
        lines.insert(job)
        if isProgress { progressed.insert(job.id) } else { altered.insert(job.id) }
    }

    /// Forgets one that has ended.
    mutating func forget(_ id: Int64) {
        guard let job = jobs[id], job.state.hasEnded else { return }
        lines.remove(job)
        jobs[id] = nil
        altered.remove(id)
        progressed.remove(id)
    }

    var isAltered: Bool { !altered.isEmpty }

    /// What has changed since the last call.
    mutating func takeChanges() -> (altered: Set<Int64>, progressed: Set<Int64>) {
        defer { (altered, progressed) = ([], []) }
        return (altered, progressed)
    }

    // MARK: Looking

    func liveOne(_ identity: DownloadJob.Identity) -> DownloadJob? { lines.live[identity].flatMap { jobs[$0] } }

    func failedOne(_ identity: DownloadJob.Identity) -> DownloadJob? { lines.failed[identity].flatMap { jobs[$0] } }

    func jobs(sharing name: String) -> [DownloadJob] { (lines.sharers[name] ?? []).compactMap { jobs[$0] } }

    /// The oldest first.
    var endedIDs: [Int64] { Array(lines.ended.ids) }

    /// Those that have ended and are too many, the oldest first.
    var surplusEndedIDs: [Int64] { Array(lines.ended.ids.prefix(max(0, lines.ended.count - Self.longestHistory))) }

    /// Those of a priority that wait, for whatever, in order.
    func waiting(_ priority: DownloadPriority) -> [DownloadJob] {
        let delayed = lines.delayed.ids.compactMap { jobs[$0] }.filter { $0.order.priority == priority }
        return (lines.ready[priority.rank].ids.compactMap { jobs[$0] } + delayed).sorted {
            ($0.place, $0.id) < ($1.place, $1.id)
        }
    }

    /// Whether some wait for nothing but their turn.
    var hasReady: Bool { lines.ready.contains { !$0.isEmpty } }

    /// Whether time alone changes something.
    var isWaitingForTime: Bool { !lines.running.isEmpty || !lines.delayed.isEmpty }

    var summary: DownloadSummary {
        var summary = lines.summary
        summary.rate = lines.running.ids.reduce(0) { $0 +| (jobs[$1]?.rate.bytesPerSecond ?? 0) }
        summary.eta = TransferRate.seconds(for: summary.total.map { $0 -| summary.bytes }, at: summary.rate)
        summary.settings = settings
        return summary
    }

    // MARK: Turns

    /// Begins those whose turn it is.
    mutating func begin(now: Double) -> [Effect] {
        var effects: [Effect] = []
        while lines.running.count < settings.maxActive, let id = lines.ready.lazy.compactMap(\.first).first,
            var job = jobs[id]
        {
            job.state = .downloading
            job.started = job.started ?? now
            job.begun = nextBegun
            job.rate = TransferRate()
            nextBegun += 1 // no trap: a count of events
            put(job)
            effects.append(.begin(id))
        }
        return effects
    }

    /// More may run, or fewer: then those go back to their places that were begun last.
    mutating func set(_ settings: DownloadSettings) -> [Effect] {
        self.settings = settings.bounded
        var effects: [Effect] = []
        while lines.running.count > self.settings.maxActive, let id = lines.running.last { effects += suspend(id) }
        return effects
    }

    /// Nothing runs any more, until it is begun again.
    mutating func suspendAll() -> [Effect] { Array(lines.running.ids).flatMap { suspend($0) } }

    private mutating func suspend(_ id: Int64) -> [Effect] {
        guard var job = jobs[id] else { return [] }
        job.state = .waiting
        put(job)
        return [.stop(id)]
    }

    /// Those whose next attempt is due wait for their turn only.
    mutating func wake(monotonic: Double) {
        while let due = lines.delayed.firstKey, due <= monotonic, let id = lines.delayed.first, var job = jobs[id] {
            (job.due, job.retryAt) = (nil, nil)
            put(job)
        }
    }

    /// It belongs to the history from now on.
    mutating func end(_ job: DownloadJob, as state: DownloadState, now: Double) {
        var job = job
        job.state = state
        job.finished = now
        (job.retryAt, job.due) = (nil, nil)
        job.ended = nextEnded
        nextEnded += 1 // no trap: counts on from rows, whose numbers are far below the greatest
        put(job)
    }
}

extension DownloadSettings {
    /// What can be meant by it.
    fileprivate var bounded: DownloadSettings {
        var settings = self
        settings.maxActive = min(max(maxActive, Self.maxActiveRange.lowerBound), Self.maxActiveRange.upperBound)
        settings.limitRate = limitRate.flatMap { $0 > 0 ? $0 : nil }
        return settings
    }
}
