import CachePolicy

extension DownloadSnapshots {
    /// An unfinished download of a resource, whose bytes must not be removed while it runs.
    /// - Parameter policy: decides which URLs belong to one resource.
    package func unfinished(of url: OriginURL, under policy: ProxyPolicy) -> Download? {
        if let report = downloads(of: url).first(where: { !$0.state.hasEnded }) { return report }
        // Without rules, no other URL has the same key.
        guard !policy.rules.isEmpty else { return nil }
        let keys = [policy.resolve(url).key, url.cacheKey]
        return first { report, other in !report.state.hasEnded && keys.contains(policy.resolve(other).key) }
    }
}
