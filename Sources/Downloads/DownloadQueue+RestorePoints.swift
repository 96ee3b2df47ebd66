import CachePolicy
import DiskCache

/// Restore points: a cancelled download leaves only what was cached before, and what other downloads want.
extension DownloadQueue {
    /// Records what was cached before the first byte.
    mutating func setRestorePoint(_ id: Int64, _ restorePoint: RestorePoint) {
        guard var job = self[id] else { return }
        if let former = job.key, former != restorePoint.key { job.forgetBytes() }
        (job.restorePoint, job.key) = (restorePoint, restorePoint.key)
        put(job)
    }

    /// Puts a download back that was about to begin, because its restore point could not be saved.
    mutating func holdBack(_ id: Int64, _ reason: String) {
        guard var job = self[id], job.state == .downloading else { return }
        (job.state, job.restorePoint, job.message) = (.waiting, nil, reason)
        put(job)
    }

    mutating func dropRestorePoint(_ id: Int64) {
        guard var job = self[id], job.restorePoint != nil else { return }
        job.restorePoint = nil
        put(job)
    }

    /// - Returns: the restore point to return to, which the caller then drops. Nil if there is none, or if other
    ///   downloads want these bytes: these inherit the restore point, and it is dropped.
    mutating func release(_ id: Int64) -> RestorePoint? {
        guard let restorePoint = self[id]?.restorePoint else { return nil }
        let others = others(sharing: restorePoint, with: id)
        guard !others.isEmpty else { return restorePoint }
        for var other in others where other.state != .completed {
            other.restorePoint = other.restorePoint?.intersection(restorePoint) ?? restorePoint
            other.key = restorePoint.key
            put(other)
        }
        dropRestorePoint(id)
        return nil
    }

    private func others(sharing restorePoint: RestorePoint, with id: Int64) -> [DownloadJob] {
        guard let url = self[id]?.url else { return [] }
        let found = jobs(sharing: restorePoint.key) + (url == restorePoint.key ? [] : jobs(sharing: url))
        return found.filter { $0.id != id && $0.wants(restorePoint, of: url, since: self[id]?.started ?? 0) }
    }
}

extension DownloadJob {
    /// What to record before it begins; nil if that is known. If its page has turned out to have media that is cached
    /// under another key, it lets go of what it has brought under the former one; not of what it has recorded of a
    /// stream, which cannot be fetched again.
    func lackingRestorePoint(_ key: (OriginURL) -> String) -> OriginURL? {
        let url = dated.subject, isKnown = restorePoint.map { order.recordFor != nil || $0.key == key(url) } ?? false
        return isKnown ? nil : url
    }

    /// Whether it wants the bytes that a download of a URL has fetched since a time. One that was complete before is in
    /// the restore point. One whose key is not known yet, but whose URL is the same, will have the same key.
    func wants(_ restorePoint: RestorePoint, of other: String, since started: Double) -> Bool {
        (state != .completed || finished ?? 0 >= started) && (key.map { $0 == restorePoint.key } ?? (url == other))
    }
}
