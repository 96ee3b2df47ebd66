/// What cancelled downloads leave: nothing but what was there before, and what others want.
extension DownloadQueue {
    /// Notes what was cached before its first byte.
    mutating func setClaim(_ id: Int64, _ claim: DownloadClaim) {
        guard var job = jobs[id] else { return }
        (job.claim, job.key) = (claim, claim.key)
        put(job)
    }

    /// It was to be begun, but what was cached before could not be noted.
    mutating func holdBack(_ id: Int64, _ reason: String) {
        guard var job = jobs[id], job.state == .downloading else { return }
        (job.state, job.claim, job.message) = (.waiting, nil, reason)
        put(job)
    }

    mutating func dropClaim(_ id: Int64) {
        guard var job = jobs[id], job.claim != nil else { return }
        job.claim = nil
        put(job)
    }

    /// - Returns: what is to be released, and the claim then dropped; nil where nothing is, because there is no claim, or because others want
    ///   these bytes: these know from now on what was there before either, and the claim is dropped.
    mutating func release(_ id: Int64) -> DownloadClaim? {
        guard let claim = jobs[id]?.claim else { return nil }
        let others = others(sharing: claim, with: id)
        guard !others.isEmpty else { return claim }
        for var other in others where other.state != .completed {
            other.claim = other.claim?.intersection(claim) ?? claim
            other.key = claim.key
            put(other)
        }
        dropClaim(id)
        return nil
    }

    private func others(sharing claim: DownloadClaim, with id: Int64) -> [DownloadJob] {
        guard let url = jobs[id]?.url else { return [] }
        let found = jobs(sharing: claim.key) + (url == claim.key ? [] : jobs(sharing: url))
        return found.filter { other in
            // What was complete before this one began is in its claim. One whose key is not known yet will have the same, as it has the same URL.
            other.id != id && (other.state != .completed || other.finished ?? 0 >= jobs[id]?.started ?? 0) && (other.key.map { $0 == claim.key } ?? (other.url == url))
        }
    }
}
