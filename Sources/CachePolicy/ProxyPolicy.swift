/// What a proxy serves, and how it handles what it serves. It may become another while the proxy runs.
package struct ProxyPolicy: Sendable, Equatable {
    /// Never asks an origin: what is cached plays, whatever its origin said, and nothing else does.
    package var isOffline = false
    /// Where no rule says otherwise.
    package var fill = FillPolicy.standard
    /// Paths of the proxy behind which origins are.
    package var mounts: [Mount] = []
    /// Whether URLs of any origin are served (`/https/host/path`, and as an HTTP proxy), or mounts alone.
    package var servesAnyOrigin = true
    /// Bytes that a request's body may have on its way through a mount; nil for any number. It streams through, so that it costs neither
    /// memory nor disk, however long it is.
    package var largestMountBody: Int64?

    package init() {}

    /// What a URL is found by, and how it is handled.
    package func resolve(_ url: OriginURL) -> (key: CacheKey, treatment: Treatment) {
        var treatment = Treatment()
        treatment.fill = fill
        return (url.cacheKey, treatment)
    }
}
