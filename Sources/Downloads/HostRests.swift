import CacheFill
import CachePolicy

/// Origins that nothing is begun from for a while, as one could just not be reached: what waits for its turn would fail
/// as well. When the time is over, one download, the scout, tries for all.
struct HostRests {
    struct Rest {
        /// Attempts that failed one after the other.
        fileprivate(set) var failures = 0
        /// By the monotonic clock.
        fileprivate(set) var until = 0.0
        /// The same in seconds since 1970.
        fileprivate(set) var retryAt = 0.0
        /// Why the last attempt failed.
        fileprivate(set) var reason = ""
        var scout: Int64?

        /// Whether it takes as long as a download is held.
        var isLong: Bool { failures >= DownloadJob.quickAttempts }
    }

    /// By scheme, host and port.
    private(set) var all: [String: Rest] = [:]

    subscript(origin: String) -> Rest? {
        get { all[origin] }
        set { all[origin] = newValue }
    }

    /// Takes an attempt's failure as its origin's.
    /// - Returns: whether the origin did not rest before; nil if it was known to fail.
    mutating func note(_ job: DownloadJob, _ fault: DownloadFault, now: Double, monotonic: Double) -> Bool? {
        var rest = all[job.order.url.origin] ?? Rest(scout: job.id)
        // Others had begun before the first failed.
        guard rest.scout == job.id else { return nil }
        rest.failures += 1 // no trap: each takes a second at least
        // No longer than the failed download itself waits.
        let delay = DownloadJob.delay(after: rest.failures, fault.kind, spread: DownloadJob.longestSpread)
        (rest.until, rest.retryAt, rest.reason, rest.scout) = (monotonic + delay, now + delay, fault.message, nil)
        return all.updateValue(rest, forKey: job.order.url.origin) == nil
    }

    mutating func end(_ origin: String) -> Rest? { all.removeValue(forKey: origin) }

    /// The origins whose time is over.
    func due(_ monotonic: Double) -> [String: Rest] { all.filter { $0.value.until <= monotonic } }
}

extension DownloadQueue {
    mutating func noteOrigin(of job: DownloadJob, _ fault: DownloadFault, now: Double, monotonic: Double) {
        let origin = job.order.url.origin
        guard fault.unreachable.map(job.order.url.isOn) == true else {
            // Another download finds out, or this one's answer has shown that it works.
            if case .busy = fault.kind { endRest(of: origin) }
            if rests[origin]?.scout == job.id { rests[origin]?.scout = nil }
            return
        }
        guard let isNew = rests.note(job, fault, now: now, monotonic: monotonic) else { return }
        if isNew { lines.rest(origin, lines.allReady.compactMap { self[$0] }.filter { $0.order.url.origin == origin }) }
        changes.repainted.formUnion(lines.resting(origin))
    }

    /// The origin works, or is to be tried at once.
    mutating func endRest(of origin: String) {
        guard let rest = rests.end(origin) else { return }
        if let scout = rest.scout { setScout(scout, false) }
        let ids = lines.resting(origin)
        lines.endRest(origin, ids.compactMap { self[$0] })
        changes.repainted.formUnion(ids)
    }

    /// Lets one download of each origin try it whose time is over: the one that has failed least often, as perhaps only
    /// one URL fails, and one that the schedule and the caps let run.
    mutating func sendScouts(monotonic: Double) {
        for (origin, rest) in rests.due(monotonic) {
            if let scout = rest.scout.flatMap({ self[$0] }) {
                guard scout.state != .downloading, !(scout.isScout && mayRun(scout)) else { continue }
                setScout(scout.id, false)
            }
            let waiting = lines.resting(origin).compactMap { self[$0] }
            guard !waiting.isEmpty else {
                endRest(of: origin)
                continue
            }
            let scout = waiting.filter(mayRun).min { $0.failures < $1.failures }
            rests[origin]?.scout = scout?.id
            if let scout { setScout(scout.id, true) }
        }
    }

    private func mayRun(_ job: DownloadJob) -> Bool { allowance.hold(for: job.order.lane) == nil }

    private mutating func setScout(_ id: Int64, _ isScout: Bool) {
        guard var job = self[id], job.isScout != isScout else { return }
        job.isScout = isScout
        put(job, isProgress: true)
    }

    /// Tries again what the network has made fail.
    mutating func networkChanged(now: Double) {
        for var job in lines.delayed.ids.compactMap({ self[$0] }) where job.networkFailures > 0 && job.busyFailures == 0
        {
            job.becomeReady(now: now)
            put(job)
        }
        for origin in rests.all.keys { endRest(of: origin) }
    }
}

extension OriginURL {
    /// The URL of its origin, by which it rests.
    var origin: String { scheme.rawValue + "://" + authority }
}
