/// Hosts that nothing is begun from for a while, as an attempt has just failed there: what waits for its turn would
/// fail as well. When the time is over, one download, the scout, tries for all.
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

    private(set) var all: [String: Rest] = [:]

    subscript(host: String) -> Rest? {
        get { all[host] }
        set { all[host] = newValue }
    }

    /// Takes an attempt's failure as its host's.
    /// - Returns: whether the host did not rest before; nil if it was known to fail.
    mutating func note(_ job: DownloadJob, _ fault: DownloadFault, now: Double, monotonic: Double) -> Bool? {
        var rest = all[job.order.url.host] ?? Rest(scout: job.id)
        // Others had begun before the first failed.
        guard rest.scout == job.id else { return nil }
        rest.failures += 1 // no trap: each takes a second at least
        // Ends before the failed download's own time, so that another one is tried: perhaps only this URL fails.
        let delay = DownloadJob.delay(after: rest.failures, fault.kind) * 0.7
        (rest.until, rest.retryAt, rest.reason, rest.scout) = (monotonic + delay, now + delay, fault.message, nil)
        return all.updateValue(rest, forKey: job.order.url.host) == nil
    }

    mutating func end(_ host: String) -> Rest? { all.removeValue(forKey: host) }

    /// The hosts whose time is over.
    func due(_ monotonic: Double) -> [String: Rest] { all.filter { $0.value.until <= monotonic } }
}

extension DownloadQueue {
    mutating func noteHost(of job: DownloadJob, _ fault: DownloadFault, now: Double, monotonic: Double) {
        let host = job.order.url.host
        switch fault.kind {
        // It answers.
        case .final: return endRest(of: host)
        // Another download may find out.
        case .offline: rests[host]?.scout = nil
        case .network, .busy:
            guard let isNew = rests.note(job, fault, now: now, monotonic: monotonic) else { return }
            if isNew { lines.rest(host, lines.allReady.compactMap { self[$0] }.filter { $0.order.url.host == host }) }
            changes.repainted.formUnion(lines.resting(host))
        }
    }

    /// The host works, or is to be tried at once.
    mutating func endRest(of host: String) {
        guard let rest = rests.end(host) else { return }
        if var scout = rest.scout.flatMap({ self[$0] }), scout.isScout {
            scout.isScout = false
            put(scout, isProgress: true)
        }
        let ids = lines.resting(host)
        lines.endRest(host, ids.compactMap { self[$0] })
        changes.repainted.formUnion(ids)
    }

    /// Lets one download of each host try it whose time is over.
    mutating func sendScouts(monotonic: Double) {
        for (host, rest) in rests.due(monotonic) {
            if let scout = rest.scout.flatMap({ self[$0] }), scout.isScout || scout.state == .downloading { continue }
            guard let id = lines.resting(host).first, var scout = self[id] else {
                endRest(of: host)
                continue
            }
            scout.isScout = true
            put(scout, isProgress: true)
            rests[host]?.scout = id
        }
    }

    /// Gives up what has waited as long for the same host.
    mutating func giveUp(behind failed: DownloadJob, _ fault: DownloadFault, now: Double) {
        guard fault.kind != .final else { return }
        for var job in lines.resting(failed.order.url.host).compactMap({ self[$0] })
        where now - job.added >= Double(settings.retryFor) {
            job.message = fault.message
            end(job, as: .failed, now: now)
        }
    }

    /// Tries again what the network has made fail.
    mutating func networkChanged() {
        for var job in lines.delayed.ids.compactMap({ self[$0] }) where job.networkFailures > 0 && job.busyFailures == 0
        {
            (job.due, job.retryAt) = (nil, nil)
            put(job)
        }
        for host in rests.all.keys { endRest(of: host) }
    }
}
