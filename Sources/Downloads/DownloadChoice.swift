import HTTPModel

/// Which downloads of a queue a change is for, and whether it applies to them.
struct DownloadChoice {
    private let change: DownloadChange
    private let queue: DownloadQueue
    /// Identities that this change revives: of each, only one download may be unfinished.
    private var revived: Set<DownloadJob.Identity> = []

    init(_ change: DownloadChange, in queue: DownloadQueue) { (self.change, self.queue) = (change, queue) }

    /// The selected downloads, in order.
    /// - Throws: if the change makes no sense, or a named download does not allow it.
    consuming func ids(_ selection: DownloadSelection) throws(DownloadError) -> [Int64] {
        try change.check(selection)
        switch selection {
        case .ids(let ids):
            let ids = Self.unique(ids)
            for id in ids {
                guard let job = queue[id] else {
                    throw DownloadError(.unknown, "there is no download \(id): list them to see which there are")
                }
                try check(job)
            }
            return ids
        case .possible(let ids): return possible(Self.unique(ids).compactMap { queue[$0] })
        case .all:
            let ids = possible(queue.all.sorted { $0.listingPlace < $1.listingPlace })
            // Of one URL the newest, as it is listed first; but all in the order in which they were ordered.
            return change.action == .retry ? ids.sorted() : ids
        }
    }

    private mutating func possible(_ jobs: [DownloadJob]) -> [Int64] {
        var ids: [Int64] = []
        for job in jobs where isMeant(job) && (try? check(job)) != nil { ids.append(job.id) }
        return ids
    }

    static func unique(_ ids: [Int64]) -> [Int64] {
        var seen: Set<Int64> = []
        return ids.filter { seen.insert($0).inserted }
    }

    /// Whether an unspecific change applies to it, without anything that somebody might regret: a failed download is
    /// cancelled, and a cancelled one retried, only by ID.
    private func isMeant(_ job: DownloadJob) -> Bool {
        switch change.action {
        case nil: !job.state.hasEnded
        case .pause: job.state == .waiting || job.state == .downloading
        case .resume: job.state == .paused
        case .cancel: !job.state.hasEnded
        case .retry: job.state == .failed || job.isDelayed(queue)
        }
    }

    private mutating func check(_ job: DownloadJob) throws(DownloadError) {
        var state = job.state
        if let action = change.action {
            guard let next = job.state(after: action, in: queue) else { throw job.cannot("be " + action.participle) }
            state = next
        }
        if job.state.hasEnded, !state.hasEnded {
            if let other = queue.liveOne(job.identity) {
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
        if let limitRate, !(0...ByteNumber.greatest).contains(limitRate) {
            throw .invalid(
                "\(limitRate) bytes per second is not a limit: choose 1 to \(ByteNumber.greatest), or 0 for no limit")
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
    /// Whether it waits for its next attempt, or for its host to work again.
    fileprivate func isDelayed(_ queue: DownloadQueue) -> Bool {
        state == .waiting && (due != nil || queue.rests[order.url.origin] != nil)
    }

    /// nil if the action is impossible in this state.
    func state(after action: DownloadChange.Action, in queue: DownloadQueue) -> Download.State? {
        switch (action, state) {
        case (.pause, .waiting), (.pause, .downloading), (.pause, .paused): .paused
        case (.resume, .paused): .waiting
        case (.resume, .waiting), (.resume, .downloading): state
        case (.cancel, .waiting), (.cancel, .downloading), (.cancel, .paused), (.cancel, .failed): .cancelled
        case (.retry, .failed), (.retry, .cancelled): .waiting
        case (.retry, .waiting): isDelayed(queue) ? .waiting : nil
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
