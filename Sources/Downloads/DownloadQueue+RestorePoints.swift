/// What cancelled downloads leave: nothing but what was there before, and what others want.
extension DownloadQueue {
    /// Notes what was cached before its first byte.
    mutating func setRestorePoint(_ id: Int64, _ restorePoint: RestorePoint) {
        guard var job = jobs[id] else { return }
        (job.restorePoint, job.key) = (restorePoint, restorePoint.key)
        put(job)
    }

    /// It was to be begun, but what was cached before could not be noted.
    mutating func holdBack(_ id: Int64, _ reason: String) {
        guard var job = jobs[id], job.state == .downloading else { return }
        (job.state, job.restorePoint, job.message) = (.waiting, nil, reason)
        put(job)
    }

    mutating func dropRestorePoint(_ id: Int64) {
        guard var job = jobs[id], job.restorePoint != nil else { return }
        job.restorePoint = nil
        put(job)
    }

    /// - Returns: what is to be released, and the restore point then dropped; nil where nothing is, because there is no
    ///   restore point, or because others want these bytes: these know from now on what was there before either, and
    ///   the restore point is dropped.
    mutating func release(_ id: Int64) -> RestorePoint? {
        guard let restorePoint = jobs[id]?.restorePoint else { return nil }
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
        guard let url = jobs[id]?.url else { return [] }
        let found = jobs(sharing: restorePoint.key) + (url == restorePoint.key ? [] : jobs(sharing: url))
        return found.filter { other in
            // What was complete before this one began is in its restore point. One whose key is not known yet will have
            // the same, as it has the same URL.
            other.id != id && (other.state != .completed || other.finished ?? 0 >= jobs[id]?.started ?? 0)
                && (other.key.map { $0 == restorePoint.key } ?? (other.url == url))
        }
    }
}
