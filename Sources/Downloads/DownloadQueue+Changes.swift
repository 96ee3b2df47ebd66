/// Changes of existing downloads.
extension DownloadQueue {
    /// Applies a change to a selection; nothing begins before all of it is done.
    /// - Returns: the selected downloads, in order, and the effects. For `possible`, includes those that stay as they
    ///   are.
    mutating func change(
        _ selection: DownloadSelection, _ change: DownloadChange, now: Double
    ) throws(DownloadError) -> (ids: [Int64], effects: [Effect]) {
        let ids = try DownloadChoice(change, in: self).ids(selection)
        var effects: [Effect] = []
        for id in ids { effects += apply(change, to: id, now: now) }
        guard case .possible(let named) = selection else { return (ids, effects) }
        return (DownloadChoice.unique(named).filter { self[$0] != nil }, effects)
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
        guard var job = self[id], let next = job.state(after: action, in: self) else { return [] }
        let before = job.state
        let stop: [Effect] = before == .downloading && next != .downloading ? [.stop(id)] : []
        if action == .retry {
            endRest(of: job.order.url.origin)
            if job.retry(at: nextPlace) { nextPlace += 1 }
        } else if next == before {
            return []
        }
        // A paused download does not wait for its next attempt any more.
        if next == .paused { (job.retryAt, job.due, job.isScout) = (nil, nil, false) }
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
        if others.place(at: position, end: nextPlace) == nil { renumber(priority) }
        guard var job = self[id] else { return }
        let renumbered = others.compactMap { self[$0.id] }
        job.place = renumbered.place(at: position, end: nextPlace) ?? job.place
        if position == others.count { nextPlace += 1 }
        put(job)
    }

    /// Numbers the unfinished downloads of a priority with integers, in the same order.
    private mutating func renumber(_ priority: Download.Priority) {
        let live = all.filter { $0.order.priority == priority && !$0.state.hasEnded }.sorted {
            ($0.place, $0.id) < ($1.place, $1.id)
        }
        for (index, var job) in live.enumerated() {
            job.place = Double(index + 1)
            put(job)
        }
        nextPlace = max(nextPlace, Double(live.count + 1))
    }
}

extension [DownloadJob] {
    /// A place at this position among them.
    /// - Returns: nil if no number lies between the two neighbours.
    fileprivate func place(at position: Int, end: Double) -> Double? {
        guard position < count else { return end }
        let next = self[position].place
        guard position > 0 else { return next - 1 }
        let previous = self[position - 1].place
        let middle = previous + (next - previous) / 2
        return middle > previous && middle < next ? middle : nil
    }
}

extension DownloadJob {
    /// - Parameter place: its place, if it had ended.
    /// - Returns: whether it takes that place.
    fileprivate mutating func retry(at place: Double) -> Bool {
        forgetFailures()
        // The bytes of a cancelled download were removed.
        if state == .cancelled {
            forgetBytes()
            message = nil
        }
        guard state.hasEnded else { return false }
        // Nothing can be recorded of a time that has passed: a recording without a segment is made now.
        let isGivenBack = state != .cancelled || restorePoint == nil
        if order.recordFor != nil, progress.segments ?? 0 == 0, isGivenBack {
            (started, key, restorePoint) = (nil, nil, nil)
        }
        // Whoever waited has got the error.
        (ended, finished, isAwaited, self.place) = (nil, nil, false, place)
        return true
    }
}
