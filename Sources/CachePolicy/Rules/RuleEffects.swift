import HTTPModel

/// What rules say of a resource. What is nil is left to the next rule that matches.
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
    package var headers: FieldLines?
    package var pins: Bool?
    package var storesPages: Bool?
    /// Bytes.
    package var largestStored: Int64?

    package init() {}

    /// Takes from another rule what this one says nothing of.
    mutating func complete(with other: RuleEffects) {
        bypasses = bypasses ?? other.bypasses
        ttl = ttl ?? other.ttl
        ignoresNoStore = ignoresNoStore ?? other.ignoresNoStore
        playsStale = playsStale ?? other.playsStale
        ignoredQuery = ignoredQuery ?? other.ignoredQuery
        key = key ?? other.key
        fill = fill ?? other.fill
        isMetered = isMetered ?? other.isMetered
        headers = headers ?? other.headers
        pins = pins ?? other.pins
        storesPages = storesPages ?? other.storesPages
        largestStored = largestStored ?? other.largestStored
    }

    func key(of url: OriginURL) -> CacheKey {
        guard key != nil || ignoredQuery != nil else { return url.cacheKey }
        let query = (ignoredQuery ?? .nothing).removed(from: url.query)
        if let key { return key.key(of: url, query: query) }
        return OriginURL(scheme: url.scheme, host: url.host, port: url.port, pathAndQuery: String(url.path) + query).cacheKey
    }

    /// - Parameter policy: what holds where no rule says otherwise.
    func treatment(under policy: ProxyPolicy) -> Treatment {
        var treatment = Treatment()
        treatment.bypasses = bypasses ?? false
        treatment.ttl = ttl
        treatment.ignoresNoStore = ignoresNoStore ?? false
        treatment.stalePlay = playsStale.map { $0 ? .everything : .nothing } ?? (policy.playsPinned ? .kept : .nothing)
        treatment.fill = fill ?? policy.fill
        treatment.isMetered = isMetered ?? false
        treatment.headers = headers ?? FieldLines()
        treatment.pins = pins ?? false
        treatment.storesPages = storesPages ?? false
        treatment.largestStored = largestStored
        return treatment
    }
}
