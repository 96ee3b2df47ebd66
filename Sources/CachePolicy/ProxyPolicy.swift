/// What a proxy serves, and how it handles what it serves. It may become another while the proxy runs.
package struct ProxyPolicy: Sendable, Equatable {
    /// Never asks an origin: what is cached plays, whatever its origin said, and nothing else does.
    package var isOffline = false
    /// Where no rule says otherwise.
    package var fill = FillPolicy.standard

    package init() {}

    /// What a URL is found by, and how it is handled.
    package func resolve(_ url: OriginURL) -> (key: CacheKey, treatment: Treatment) {
        var treatment = Treatment()
        treatment.fill = fill
        return (url.cacheKey, treatment)
    }
}
