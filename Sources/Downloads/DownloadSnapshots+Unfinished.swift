import CachePolicy

extension DownloadSnapshots {
    /// A download of a resource that has not ended: what it has brought is not to be removed under its feet.
    /// - Parameter policy: says which URLs are of one resource.
    package func unfinished(of url: OriginURL, under policy: ProxyPolicy) -> DownloadReport? {
        if let report = downloads(of: url).first(where: { !$0.state.hasEnded }) { return report }
        // Without rules nothing else has the same key.
        guard !policy.rules.isEmpty else { return nil }
        let keys = [policy.resolve(url).key, url.cacheKey]
        return first { report, other in !report.state.hasEnded && keys.contains(policy.resolve(other).key) }
    }
}
