extension ProxyPolicy {
    /// How the cache reads responses for a URL. It depends on the URL alone, and not on the form of the request: what is
    /// stored for one user must not be served to another in another form.
    func terms(of url: OriginURL) -> CacheTerms {
        CacheTerms(kind(of: url), targetedFields: targetedFields, defaultTTL: defaultTTL)
    }

    /// For whom the cache stores the responses of a URL: as the mount with the longest origin path states, else as the
    /// setting does. Where only mounts are served, they are for many users.
    private func kind(of url: OriginURL) -> CacheMode {
        let stating = mounts.filter { $0.cache != nil && $0.holds(url) }
        let longest = stating.map { $0.origin.pathAndQuery.utf8.count }.max()
        let kinds = stating.filter { $0.origin.pathAndQuery.utf8.count == longest }.map(\.cache)
        // Two mounts of one place: the stricter one holds for both.
        if kinds.contains(.shared) { return .shared }
        if !kinds.isEmpty { return .private }
        return cache ?? (servesAnyOrigin ? .private : .shared)
    }
}
