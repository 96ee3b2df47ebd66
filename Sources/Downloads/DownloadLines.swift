import HTTPModel

/// Indexes over the jobs of a queue, and their totals.
struct DownloadLines {
    /// Jobs that wait for their turn, by the limits that bind them and by priority, in order.
    private var ready: [DownloadLane: [SortedLine]] = [:]
    private(set) var readyCount = 0
    /// Those that wait until their origin can be reached, by origin and priority, in order.
    private var resting: [String: [SortedLine]] = [:]
    private var restingCount = 0
    /// Jobs that wait for their next attempt, by when that is due.
    private(set) var delayed = SortedLine()
    /// In the order in which they began.
    private(set) var running = SortedLine()
    /// In the order in which they ended.
    private(set) var ended = SortedLine()
    /// Jobs that have not ended.
    private(set) var live: [DownloadJob.Identity: Int64] = [:]
    /// Failed jobs that still own their bytes.
    private(set) var failed: [DownloadJob.Identity: Int64] = [:]
    /// The jobs that want the bytes of a resource.
    private(set) var sharers: [String: [Int64]] = [:]
    private var sums = Sums()

    /// Totals over all jobs that have not ended.
    private struct Sums {
        var paused = 0
        var bytes: Int128 = 0
        var total: Int128 = 0
        /// Jobs of unknown total.
        var unknown = 0

        mutating func add(_ job: DownloadJob, _ sign: Int) {
            paused += job.state == .paused ? sign : 0
            bytes += Int128(job.progress.bytes) * Int128(sign)
            total += Int128(job.progress.total ?? 0) * Int128(sign)
            unknown += job.progress.total == nil ? sign : 0
        }
    }

    mutating func insert(_ job: DownloadJob) {
        switch job.state {
        case .waiting:
            if let due = job.due {
                delayed.insert(job.id, at: due)
            } else if rests(job) {
                resting[job.order.url.origin]?[job.order.priority.rank].insert(job.id, at: job.place)
                restingCount += 1
            } else {
                ready[job.order.lane, default: Self.noneReady][job.order.priority.rank].insert(job.id, at: job.place)
                readyCount += 1
            }
        case .downloading: running.insert(job.id, at: Double(job.begun))
        case .paused: break
        case .completed, .failed, .cancelled: ended.insert(job.id, at: Double(job.ended ?? 0))
        }
        if !job.state.hasEnded {
            live[job.identity] = job.id
            sums.add(job, 1)
        }
        if job.state == .failed, job.restorePoint != nil { failed[job.identity] = job.id }
        for name in job.sharedNames { sharers[name, default: []].append(job.id) }
    }

    /// - Parameter job: as it was inserted.
    mutating func remove(_ job: DownloadJob) {
        switch job.state {
        case .waiting:
            if let due = job.due {
                delayed.remove(job.id, at: due)
            } else if rests(job) {
                resting[job.order.url.origin]?[job.order.priority.rank].remove(job.id, at: job.place)
                restingCount -= 1
            } else {
                removeReady(job)
            }
        case .downloading: running.remove(job.id, at: Double(job.begun))
        case .paused: break
        case .completed, .failed, .cancelled: ended.remove(job.id, at: Double(job.ended ?? 0))
        }
        if !job.state.hasEnded { sums.add(job, -1) }
        if live[job.identity] == job.id { live[job.identity] = nil }
        if failed[job.identity] == job.id { failed[job.identity] = nil }
        for name in job.sharedNames {
            sharers[name]?.removeAll { $0 == job.id }
            if sharers[name]?.isEmpty == true { sharers[name] = nil }
        }
    }

    private static let noneReady = [SortedLine](repeating: SortedLine(), count: Download.Priority.allCases.count)

    private mutating func removeReady(_ job: DownloadJob) {
        let lane = job.order.lane
        ready[lane]?[job.order.priority.rank].remove(job.id, at: job.place)
        readyCount -= 1
        if ready[lane]?.allSatisfy(\.ids.isEmpty) == true { ready[lane] = nil }
    }

    // MARK: Origins that rest

    /// Whoever waits for an awaited one is to hear of its failure soon, and a stream does not wait.
    private func rests(_ job: DownloadJob) -> Bool {
        !job.isScout && !job.isAwaited && !job.isRecording && resting[job.order.url.origin] != nil
    }

    /// Lets the jobs of an origin wait aside.
    /// - Parameter jobs: those that wait for their turn.
    mutating func rest(_ origin: String, _ jobs: [DownloadJob]) {
        guard resting[origin] == nil else { return }
        for job in jobs { remove(job) }
        resting[origin] = Self.noneReady
        for job in jobs { insert(job) }
    }

    /// Lets them wait for their turn again.
    mutating func endRest(_ origin: String, _ jobs: [DownloadJob]) {
        for job in jobs { remove(job) }
        resting[origin] = nil
        for job in jobs { insert(job) }
    }

    /// Whether any job waits for an origin.
    var hasResting: Bool { restingCount > 0 }

    /// The jobs that wait for an origin, in order.
    func resting(_ origin: String) -> [Int64] { resting[origin]?.flatMap { Array($0.ids) } ?? [] }

    // MARK: Whose turn it is

    /// The job whose turn is next.
    /// - Parameter isOpen: whether jobs bound by these limits may run.
    func next(where isOpen: (DownloadLane) -> Bool) -> Int64? {
        var best: (rank: Int, place: Double, id: Int64)?
        for (lane, lines) in ready where isOpen(lane) {
            guard let rank = lines.firstIndex(where: { !$0.ids.isEmpty }), let place = lines[rank].firstKey,
                let id = lines[rank].ids.first
            else { continue }
            if best.map({ (rank, place, id) < $0 }) ?? true { best = (rank, place, id) }
        }
        return best?.id
    }

    /// The jobs that wait for their turn under these limits, in no order.
    func ready(_ lane: DownloadLane) -> [Int64] { ready[lane]?.flatMap { Array($0.ids) } ?? [] }

    /// Those of a priority, also where they wait for an origin, in no order.
    func ready(_ priority: Download.Priority) -> [Int64] {
        (Array(ready.values) + resting.values).flatMap { Array($0[priority.rank].ids) }
    }

    /// All that wait for their turn, in no order.
    var allReady: [Int64] { ready.values.flatMap { $0.flatMap { Array($0.ids) } } }

    /// The limits under which any job waits for its turn.
    var readyLanes: [DownloadLane] { Array(ready.keys) }

    // MARK: Totals

    /// Counts and totals; the rate is not known here.
    var summary: DownloadTotals {
        var summary = DownloadTotals()
        summary.downloading = running.ids.count
        summary.waiting = delayed.ids.count + readyCount + restingCount
        summary.paused = sums.paused
        summary.bytes = Int64(clamping: sums.bytes)
        summary.total = sums.unknown == 0 ? Int64(clamping: sums.total) : nil
        return summary
    }
}
