import HTTPModel

/// The settings that rules make for a resource. A nil value is left to the next rule that matches.
package struct RuleEffects: Sendable, Equatable {
    package var bypasses: Bool?
    /// Seconds.
    package var ttl: Int64?
    package var ignoresNoStore: Bool?
    package var playsStale: Bool?
    package var ignoredQuery: IgnoredQuery?
    package var key: KeyTemplate?
    package var fill: FillPolicy?
    package var isMetered: Bool?
    package var aheadSegments: Int?
    package var prefetchesNext: Bool?
    package var ignoresReload: Bool?
    package var headers: HeaderFields?
    package var pins: Bool?
    package var storesPages: Bool?
    /// Bytes.
    package var largestStored: Int64?
    package var refresh: RefreshTemplate?
    /// Empty to ask none.
    package var parents: [ParentProxy]?
    package var storesHeuristically: Bool?

    package init() {}

    /// Takes the values that this one leaves nil from another rule.
    mutating func complete(with other: RuleEffects) {
        bypasses = bypasses ?? other.bypasses
        ttl = ttl ?? other.ttl
        ignoresNoStore = ignoresNoStore ?? other.ignoresNoStore
        playsStale = playsStale ?? other.playsStale
        ignoredQuery = ignoredQuery ?? other.ignoredQuery
        key = key ?? other.key
        fill = fill ?? other.fill
        isMetered = isMetered ?? other.isMetered
        aheadSegments = aheadSegments ?? other.aheadSegments
        prefetchesNext = prefetchesNext ?? other.prefetchesNext
        ignoresReload = ignoresReload ?? other.ignoresReload
        headers = headers ?? other.headers
        pins = pins ?? other.pins
        storesPages = storesPages ?? other.storesPages
        largestStored = largestStored ?? other.largestStored
        refresh = refresh ?? other.refresh
        parents = parents ?? other.parents
        storesHeuristically = storesHeuristically ?? other.storesHeuristically
    }

    func key(of url: OriginURL) -> CacheKey {
        guard key != nil || ignoredQuery != nil else { return url.cacheKey }
        let query = (ignoredQuery ?? .nothing).removed(from: url.query)
        if let key { return key.key(of: url, query: query) }
        return OriginURL(scheme: url.scheme, host: url.host, port: url.port, pathAndQuery: String(url.path) + query)
            .cacheKey
    }

    /// - Parameter policy: the defaults for values that no rule sets.
    func resolvedRule(under policy: ProxyPolicy) -> ResolvedRule {
        var resolvedRule = ResolvedRule()
        resolvedRule.bypasses = bypasses ?? false
        resolvedRule.ttl = ttl
        resolvedRule.ignoresNoStore = ignoresNoStore ?? false
        resolvedRule.stalePlay =
            playsStale.map { $0 ? .everything : .nothing } ?? (policy.playsPinned ? .kept : .nothing)
        resolvedRule.fill = fill ?? policy.fill
        resolvedRule.isMetered = isMetered ?? false
        resolvedRule.aheadSegments = min(max(0, aheadSegments ?? policy.aheadSegments), ResolvedRule.mostAheadSegments)
        resolvedRule.prefetchesNext =
            (prefetchesNext ?? policy.prefetchesNext) && !resolvedRule.isMetered && !resolvedRule.bypasses
        resolvedRule.ignoresReload = ignoresReload ?? policy.ignoresReload
        resolvedRule.headers = headers ?? HeaderFields()
        resolvedRule.pins = pins ?? false
        resolvedRule.storesPages = storesPages ?? false
        resolvedRule.largestStored = largestStored
        resolvedRule.parents = resolvedRule.bypasses ? [] : parents ?? policy.parents
        resolvedRule.storesHeuristically = storesHeuristically ?? false
        return resolvedRule
    }
}
