import CachePolicy

/// What somebody wants becomes downloads.
extension DownloadQueue {
    /// What orders make of the queue, to be saved before it is so.
    struct Plan {
        /// For each order its download.
        fileprivate(set) var ids: [Int64] = []
        /// All that is new or changes.
        fileprivate(set) var jobs: [Int64: DownloadJob] = [:]
        fileprivate var planned: [DownloadJob.Identity: Int64] = [:]
        fileprivate var nextID: Int64
        fileprivate var nextPlace: Double
    }

    /// All or none.
    func plan(_ orders: [DownloadOrder], now: Double) throws(DownloadError) -> Plan {
        var plan = Plan(nextID: nextID, nextPlace: nextPlace)
        plan.ids.reserveCapacity(orders.count)
        for order in orders {
            let identity = DownloadJob.Identity(url: try order.checkedURL(), first: order.first)
            let job = planned(order, identity, now: now, in: &plan)
            plan.jobs[job.id] = job
            plan.planned[identity] = job.id
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
        var job = DownloadJob(id: plan.nextID, url: identity.url, order: order, place: plan.nextPlace, added: now)
        plan.nextID += 1 // no trap: rows have numbers far below the greatest
        plan.nextPlace += 1
        // It goes on with what a failed one has brought: what was there before that one is what was there before this
        // one.
        if var former = failedOne(identity) {
            (job.restorePoint, job.key) = (former.restorePoint, former.key)
            (job.bytes, job.best, job.total, job.fileName) = (former.bytes, former.bytes, former.total, former.fileName)
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
                if before.connections != job.connections || before.isPinned != job.isPinned {
                    job.rate = TransferRate()
                    effects += [.stop(job.id), .begin(job.id)]
                } else if before.limitRate != job.limitRate {
                    effects.append(.limit(job.id))
                }
            }
            put(job)
        }
        return effects
    }
}

extension DownloadJob {
    /// The same is wanted again, perhaps otherwise.
    fileprivate mutating func take(_ order: DownloadOrder, endOfPriority: inout Double) {
        if priority != order.priority {
            (priority, place) = (order.priority, endOfPriority)
            endOfPriority += 1
        }
        (connections, limitRate, category, isPinned) = (
            order.connections, order.limitRate, order.category, order.isPinned
        )
        if state == .paused { state = .waiting }
        if state == .waiting { forgetFailures() }
    }
}

extension DownloadOrder {
    private static let longestCategory = 100

    /// - Returns: the URL in the one form that it is known by.
    fileprivate func checkedURL() throws(DownloadError) -> String {
        let parsed: OriginURL
        do { parsed = try OriginURL(url: url) } catch {
            throw .invalid("cannot download \(url.quoted): \(error.reason)")
        }
        let name = parsed.absolute
        if let first, first <= 0 {
            throw .invalid(
                "cannot download the first \(first) bytes of \(name): ask for 1 at least, or leave it out for the whole"
            )
        }
        guard (1...Self.maxConnections).contains(connections) else {
            throw .invalid(
                "cannot download \(name) through \(connections) connections: choose 1 to \(Self.maxConnections)")
        }
        if let limitRate, limitRate <= 0 {
            throw .invalid(
                "cannot download \(name) at \(limitRate) bytes per second: ask for 1 at least, or leave the limit out")
        }
        if let category { try Self.check(category, of: name) }
        return name
    }

    private static func check(_ category: String, of name: String) throws(DownloadError) {
        guard !category.isEmpty else {
            throw .invalid("the category of \(name) is empty: give it a word, or leave it out")
        }
        guard category.count <= longestCategory else {
            throw .invalid(
                "the category of \(name) has \(category.count) characters: choose one of \(longestCategory) at most")
        }
        guard category.unicodeScalars.allSatisfy({ $0.properties.generalCategory != .control }) else {
            throw .invalid("the category \(category.quoted) of \(name) holds a control character: leave that out")
        }
    }
}

extension DownloadError {
    static func invalid(_ description: String) -> DownloadError { DownloadError(.invalid, description) }
}

extension String {
    /// In quotes and on one line, however it was made, and not too long for it.
    fileprivate var quoted: String {
        let longest = 200
        let text = unicodeScalars.prefix(longest).reduce(into: "") {
            $0 += $1.properties.generalCategory == .control ? $1.escaped(asASCII: true) : String($1)
        }
        return "'\(text)\(unicodeScalars.count > longest ? "..." : "")'"
    }
}
