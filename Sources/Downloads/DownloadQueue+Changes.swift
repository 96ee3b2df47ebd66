/// Changes of existing downloads.
extension DownloadQueue {
    /// Applies a change to a selection; nothing begins before all of it is done.
    /// - Returns: the selected downloads, in order, and the effects. For `possible`, includes those that stay as they
    ///   are.
    mutating func change(
        _ selection: DownloadSelection, _ change: DownloadChange, now: Double
    ) throws(DownloadError) -> (ids: [Int64], effects: [Effect]) {
        try change.check(selection)
        let ids = try select(selection, change)
        var effects: [Effect] = []
        for id in ids { effects += apply(change, to: id, now: now) }
        guard case .possible(let named) = selection else { return (ids, effects) }
        return (Self.unique(named).filter { jobs[$0] != nil }, effects)
    }

    // MARK: Selecting

    private func select(_ selection: DownloadSelection, _ change: DownloadChange) throws(DownloadError) -> [Int64] {
        // Identities that this change revives: of each, only one download may be unfinished.
        var revived: Set<DownloadJob.Identity> = []
        switch selection {
        case .ids(let ids):
            let ids = Self.unique(ids)
            for id in ids {
                guard let job = self[id] else {
                    throw DownloadError(.unknown, "there is no download \(id): list them to see which there are")
                }
                try check(change, job, &revived)
            }
            return ids
        case .possible(let ids): return possible(Self.unique(ids).compactMap { jobs[$0] }, change, &revived)
        case .all: return possible(jobs.values.sorted { $0.listingPlace < $1.listingPlace }, change, &revived)
        }
    }

    private func possible(_ jobs: [DownloadJob], _ change: DownloadChange, _ revived: inout Set<DownloadJob.Identity>)
        -> [Int64]
    {
        jobs.filter { isMeant($0, change) }.compactMap { job in
            (try? check(change, job, &revived)) == nil ? nil : job.id
        }
    }

    private static func unique(_ ids: [Int64]) -> [Int64] {
        var seen: Set<Int64> = []
        return ids.filter { seen.insert($0).inserted }
    }

    /// Whether an unspecific change applies to it, without anything that somebody might regret: a failed download is
    /// cancelled, and a cancelled one retried, only by ID.
    private func isMeant(_ job: DownloadJob, _ change: DownloadChange) -> Bool {
        switch change.action {
        case nil: !job.state.hasEnded
        case .pause: job.state == .waiting || job.state == .downloading
        case .resume: job.state == .paused
        case .cancel: !job.state.hasEnded
        case .retry: job.state == .failed || job.isDelayed
        }
    }

    private func check(_ change: DownloadChange, _ job: DownloadJob, _ revived: inout Set<DownloadJob.Identity>)
        throws(DownloadError)
    {
        var state = job.state
        if let action = change.action {
            guard let next = job.state(after: action) else { throw job.cannot("be " + action.participle) }
            state = next
        }
        if job.state.hasEnded, !state.hasEnded {
            if let other = liveOne(job.identity) {
                throw DownloadError(
                    .conflict,
                    "download \(job.id) cannot be retried because download \(other.id) has the same URL: continue that one"
                )
            }
            guard revived.insert(job.identity).inserted else {
                throw DownloadError(
                    .conflict,
                    "download \(job.id) cannot be retried together with another of the same URL: choose one of them")
            }
        }
        if change.priority != nil || change.limitRate != nil, state.hasEnded { throw job.cannot("be changed") }
        if change.position != nil, state != .waiting { throw job.cannot("be moved") }
    }

    // MARK: Applying

    private mutating func apply(_ change: DownloadChange, to id: Int64, now: Double) -> [Effect] {
        var effects = change.action.map { act($0, on: id, now: now) } ?? []
        guard var job = self[id] else { return effects }
        if let priority = change.priority, priority != job.order.priority {
            (job.order.priority, job.place) = (priority, nextPlace)
            nextPlace += 1
            put(job)
        }
        if let position = change.position { move(id, to: position) }
        if let limit = change.limitRate, var job = self[id] {
            job.order.bytesPerSecond = limit > 0 ? limit : nil
            put(job)
            if job.state == .downloading { effects.append(.limit(id)) }
        }
        return effects
    }

    private mutating func act(_ action: DownloadChange.Action, on id: Int64, now: Double) -> [Effect] {
        guard var job = self[id], let next = job.state(after: action) else { return [] }
        let (before, wasEnded) = (job.state, job.state.hasEnded)
        let stop: [Effect] = before == .downloading && next != .downloading ? [.stop(id)] : []
        if action == .retry {
            job.forgetFailures()
            if wasEnded {
                (job.ended, job.finished, job.place) = (nil, nil, nextPlace)
                nextPlace += 1
            }
            // The bytes of a cancelled download were removed.
            if before == .cancelled { (job.progress.bytes, job.best, job.message) = (0, 0, nil) }
        } else if next == before {
            return []
        }
        // A paused download does not wait for its next attempt any more.
        if next == .paused { (job.retryAt, job.due) = (nil, nil) }
        guard next == .cancelled else {
            job.state = next
            put(job)
            return stop
        }
        end(job, as: .cancelled, now: now)
        return stop + [.release(id)]
    }

    /// Moves a download to a position among the waiting ones of its priority.
    private mutating func move(_ id: Int64, to position: Int) {
        guard let priority = self[id]?.order.priority else { return }
        let others = waiting(priority).filter { $0.id != id }
        let position = min(position, others.count)
        if place(between: others, at: position) == nil { renumber(priority) }
        guard var job = self[id] else { return }
        let renumbered = others.compactMap { self[$0.id] }
        job.place = place(between: renumbered, at: position) ?? job.place
        if position == others.count { nextPlace += 1 }
        put(job)
    }

    /// - Returns: nil if no number lies between the two neighbours.
    private func place(between others: [DownloadJob], at position: Int) -> Double? {
        guard position < others.count else { return nextPlace }
        let next = others[position].place
        guard position > 0 else { return next - 1 }
        let previous = others[position - 1].place
        let middle = previous + (next - previous) / 2
        return middle > previous && middle < next ? middle : nil
    }

    /// Numbers the unfinished downloads of a priority with integers, in the same order.
    private mutating func renumber(_ priority: Download.Priority) {
        let live = jobs.values.filter { $0.order.priority == priority && !$0.state.hasEnded }.sorted {
            ($0.place, $0.id) < ($1.place, $1.id)
        }
        for (index, var job) in live.enumerated() {
            job.place = Double(index + 1)
            put(job)
        }
        nextPlace = max(nextPlace, Double(live.count + 1))
    }
}

extension DownloadChange {
    fileprivate func check(_ selection: DownloadSelection) throws(DownloadError) {
        if self == DownloadChange() {
            throw .invalid("there is nothing to change: name an action, a priority, a position or a limit")
        }
        if let position {
            if position < 0 { throw .invalid("there is no position \(position): 0 is the first") }
            switch selection {
            case .ids(let ids) where Set(ids).count == 1: break
            default: throw .invalid("only one download can be moved to a position: name that one")
            }
        }
        if let limitRate, limitRate < 0 {
            throw .invalid("\(limitRate) bytes per second is not a limit: choose 1 or more, or 0 for no limit")
        }
    }
}

extension DownloadChange.Action {
    fileprivate var participle: String {
        switch self {
        case .pause: "paused"
        case .resume: "resumed"
        case .cancel: "cancelled"
        case .retry: "retried"
        }
    }
}

extension DownloadJob {
    /// Whether it waits for its next attempt.
    fileprivate var isDelayed: Bool { state == .waiting && due != nil }

    /// nil if the action is impossible in this state.
    fileprivate func state(after action: DownloadChange.Action) -> Download.State? {
        switch (action, state) {
        case (.pause, .waiting), (.pause, .downloading), (.pause, .paused): .paused
        case (.resume, .paused): .waiting
        case (.resume, .waiting), (.resume, .downloading): state
        case (.cancel, .waiting), (.cancel, .downloading), (.cancel, .paused), (.cancel, .failed): .cancelled
        case (.retry, .failed), (.retry, .cancelled): .waiting
        case (.retry, .waiting): isDelayed ? .waiting : nil
        default: nil
        }
    }

    fileprivate func cannot(_ what: String) -> DownloadError {
        let (condition, advice) =
            switch state {
            case .waiting: ("is waiting", "pause, move or cancel it")
            case .downloading: ("is running", "pause or cancel it")
            case .paused: ("is paused", "resume or cancel it")
            case .completed: ("has completed", "order it again to have it checked, or remove it from the cache")
            case .failed: ("has failed", "retry or cancel it")
            case .cancelled: ("has been cancelled", "retry it")
            }
        return DownloadError(.conflict, "download \(id) cannot \(what) because it \(condition): \(advice)")
    }
}
