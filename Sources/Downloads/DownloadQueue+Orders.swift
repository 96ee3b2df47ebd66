import HTTPModel

/// Turns orders into downloads.
extension DownloadQueue {
    /// The changes that orders make to the queue; saved before they are applied.
    struct Plan {
        /// The download of each order.
        fileprivate(set) var ids: [Int64] = []
        /// All new and changed downloads.
        fileprivate(set) var jobs: [Int64: DownloadJob] = [:]
        fileprivate var planned: [DownloadJob.Identity: Int64] = [:]
        fileprivate var nextID: Int64
        fileprivate var nextPlace: Double
    }

    /// Plans all orders, or none.
    /// - Parameter areAwaited: whether only a caller in this process wants them; a feed's download stays the feed's.
    func plan(_ orders: [DownloadOrder], areAwaited: Bool, now: Double) throws(DownloadError) -> Plan {
        var plan = Plan(nextID: nextID, nextPlace: nextPlace)
        plan.ids.reserveCapacity(orders.count)
        for order in orders {
            try order.options.check(for: order.url.absolute)
            let identity = DownloadJob.Identity(order)
            var job = planned(order, identity, now: now, in: &plan)
            if areAwaited { job.order.episode = self[job.id]?.order.episode }
            job.isAwaited = areAwaited && (job.isAwaited || self[job.id] == nil)
            (plan.jobs[job.id], plan.planned[identity]) = (job, job.id)
            plan.ids.append(job.id)
        }
        return plan
    }

    private func planned(_ order: DownloadOrder, _ identity: DownloadJob.Identity, now: Double, in plan: inout Plan)
        -> DownloadJob
    {
        if var job = plan.planned[identity].flatMap({ plan.jobs[$0] }) ?? liveOne(identity) {
            job.take(order, endOfPriority: &plan.nextPlace)
            return job
        }
        var job = DownloadJob(id: plan.nextID, order: order, place: plan.nextPlace, added: now)
        plan.nextID += 1 // no trap: rows have numbers far below the greatest
        plan.nextPlace += 1
        // It continues a failed download of the same bytes and inherits its restore point. A recording does not:
        // another recording is another presentation.
        if order.recordFor == nil, var former = failedOne(identity) {
            (job.restorePoint, job.key) = (former.restorePoint, former.key)
            (job.progress, job.best) = (former.progress, former.progress.bytes)
            former.restorePoint = nil
            plan.jobs[former.id] = former
        }
        return job
    }

    mutating func take(_ plan: Plan) -> [Effect] {
        (nextID, nextPlace) = (plan.nextID, plan.nextPlace)
        var effects: [Effect] = []
        for var job in plan.jobs.values.sorted(by: { $0.id < $1.id }) {
            if let before = self[job.id], before.state == .downloading {
                if before.order.differsInFetching(from: job.order) {
                    job.rate = TransferRate()
                    effects += [.stop(job.id), .begin(job.id)]
                } else if before.order.bytesPerSecond != job.order.bytesPerSecond {
                    effects.append(.limit(job.id))
                }
            }
            put(job)
            // People expect that it is tried now.
            if job.order.episode == nil { endRest(of: job.order.url.origin) }
        }
        return effects
    }
}

extension DownloadOrder {
    /// Whether a running attempt has to begin again to be carried out as the other order.
    fileprivate func differsInFetching(from other: DownloadOrder) -> Bool {
        options.connections != other.connections || options.isPinned != other.isPinned
            || options.isAtOnce != other.isAtOnce || options.ends != other.ends
    }
}

extension DownloadJob {
    /// Applies another order for the same bytes, perhaps with other options.
    fileprivate mutating func take(_ order: DownloadOrder, endOfPriority: inout Double) {
        if self.order.priority != order.priority {
            place = endOfPriority
            endOfPriority += 1
        }
        // What a person orders to stay is no longer its feed's to count, to cancel or to remove, nor will it be.
        let isPersons = self.order.episode == nil && self.order.isPinned && !isAwaited
        let former = order.isPinned ? nil : self.order.episode
        let (episode, title) = (isPersons ? nil : order.episode ?? former, order.title ?? self.order.title)
        self.order = order
        (self.order.episode, self.order.title) = (episode, title)
        if state == .paused { state = .waiting }
        if state == .waiting { forgetFailures() }
    }
}
