import CachePolicy
import Logging

/// Settings that can be changed while the cache is open.
extension MediaCache {
    /// Changes the limits on disk space, in bytes. Before this returns, the excess is evicted as far as it is not
    /// being read. Blocks.
    /// - Parameters:
    ///   - maxSize: as in `ProxyConfiguration`; nil leaves it unchanged.
    ///   - minFree: likewise.
    /// - Throws: `ProxyError`: an invalid limit, a failing disk; `CacheError.closed`.
    public func setLimits(maxSize: Int64? = nil, minFree: Int64? = nil) throws {
        try checkOpen()
        do { try engine.store.setLimits(maxSize: maxSize, minFree: minFree) } catch { throw ProxyError(error) }
    }

    /// Changes the proxy through which origins are reached: `upstreamProxy` and `upstreamProxyExceptions` of
    /// `ProxyConfiguration`. Running transfers continue.
    /// - Throws: `ProxyError` for an invalid proxy or exception, `CacheError.closed`; then nothing changes.
    public func setUpstreamProxy(_ proxy: String?, except exceptions: [String] = []) throws {
        try checkOpen()
        var configuration = ProxyConfiguration()
        (configuration.upstreamProxy, configuration.upstreamProxyExceptions) = (proxy, exceptions)
        let proxy = try configuration.outgoingProxy()
        guard proxy != engine.outgoing.value else { return }
        engine.outgoing.value = proxy
        engine.noteOutgoingProxy()
    }

    /// Changes the most memory for responses that are not media: `maxShortResponses` of `ProxyConfiguration`. The excess
    /// is dropped.
    /// - Throws: `ProxyError` for less than 0, `CacheError.closed`; then nothing changes.
    public func setMaxShortResponses(_ bytes: Int64) throws {
        try checkOpen()
        engine.filler.shortResponses.setLimit(Int(try ProxyConfiguration.checked(maxShortResponses: bytes)))
    }

    /// Changes the most memory for bytes in transit: `maxBuffered` of `ProxyConfiguration`. What is held stays until it
    /// has been sent.
    /// - Throws: `ProxyError` for less than 4 MiB, `CacheError.closed`; then nothing changes.
    public func setMaxBuffered(_ bytes: Int64?) throws {
        try checkOpen()
        engine.metrics.transit.setLimit(try ProxyConfiguration.checked(maxBuffered: bytes))
    }

    /// Changes which private origins may be fetched from: the whole list `allow` of `ProxyConfiguration`. Running
    /// transfers continue.
    /// - Throws: `ProxyError` if an entry is not a host name, an address or a network, `CacheError.closed`; then
    ///   nothing changes.
    public func setAllow(_ allow: [String]) throws {
        try checkOpen()
        do {
            let policy = try AddressPolicy(allow: allow)
            engine.addresses.change { $0 = policy.on($0.local, $0.translations) }
        } catch {
            throw ProxyError(error)
        }
    }

    /// Changes where requests are logged: `accessLog` of `ProxyConfiguration`. An existing file is appended to.
    /// - Throws: `ProxyError` if it cannot be written, `CacheError.closed`; then nothing changes.
    public func setAccessLog(_ path: String?) throws {
        try checkOpen()
        try engine.accessLog.open(path)
    }

    /// Changes the form of the lines of the access log: `accessLogFormat` of `ProxyConfiguration`. Lines that were
    /// written stay as they are.
    /// - Throws: `CacheError.closed`.
    public func setAccessLogFormat(_ format: AccessLogFormat) throws {
        try checkOpen()
        engine.accessLog.format.value = format
    }

    /// Changes how much each client may do: `maxConnections`, `maxConnectionsPerClient` and `maxRequestsPerClient` of
    /// `ProxyConfiguration`. Connections that are open stay.
    /// - Throws: `ProxyError` for a limit that is out of range, `CacheError.closed`; then nothing changes.
    public func setClientLimits(as configuration: ProxyConfiguration) throws {
        try checkOpen()
        clientLimits.value = try configuration.clientLimits().bounded(by: engine.descriptors, logger)
    }

    /// Reopens the access log under its name, after the file was renamed.
    package func reopenAccessLog() throws {
        try checkOpen()
        try engine.accessLog.reopen()
    }

    /// A logger that masks and escapes what the log of this cache masks and escapes.
    package func guarded(_ logger: Logger) -> Logger { logger.guarded(by: engine.policy) }

    /// Changes how resources are handled: the whole list `rules` of `ProxyConfiguration`. Cached resources keep
    /// their keys.
    /// - Throws: `ProxyError` for an invalid rule, `CacheError.closed`; then nothing changes.
    public func setRules(_ rules: [ResourceRule]) throws {
        try checkOpen()
        let rules = try ProxyConfiguration.policy(of: rules)
        engine.policy.change { $0.rules = rules }
    }

    /// Changes which programs find the media behind pages: the whole list `resolvers` of `ProxyConfiguration`. What was
    /// found with a former command is found again.
    /// - Throws: `ProxyError` for an invalid resolver, `CacheError.closed`; then nothing changes.
    public func setResolvers(_ resolvers: [MediaResolver]) throws {
        try checkOpen()
        let resolvers = try ProxyConfiguration.policy(of: resolvers)
        engine.policy.change { $0.resolvers = resolvers }
    }

    /// Changes the mounts: the whole of `mounts` and `mountCaches` of `ProxyConfiguration`.
    /// - Throws: `ProxyError` for an invalid mount, `CacheError.closed`; then nothing changes.
    public func setMounts(_ mounts: [String: String], caches: [String: CacheMode] = [:]) throws {
        try checkOpen()
        let mounts = try ProxyConfiguration.policy(of: mounts, caches)
        engine.policy.change { $0.mounts = mounts }
    }

    /// Changes for whom the cache stores responses: `cache` of `ProxyConfiguration`. In a shared cache, what was stored
    /// for one user answers no request any more: it is fetched again, unless it is pinned, and then passed on.
    /// - Throws: `CacheError.closed`.
    public func setCache(_ mode: CacheMode?) throws {
        try checkOpen()
        engine.policy.change { $0.cache = mode?.kind }
    }

    /// Changes how long responses are fresh whose origin states no lifetime: `defaultTTL` of `ProxyConfiguration`.
    /// - Throws: `ProxyError` for less than 0 s or more than ten years, `CacheError.closed`; then nothing changes.
    public func setDefaultTTL(_ ttl: Duration?) throws {
        try checkOpen()
        let seconds = try ProxyConfiguration.checked(defaultTTL: ttl)
        engine.policy.change { $0.defaultTTL = seconds }
    }

    /// Changes which fields a shared cache obeys in place of `Cache-Control`: `targetedFields` of `ProxyConfiguration`.
    /// - Throws: `ProxyError` for a name that does not end with `-Cache-Control`, `CacheError.closed`; then nothing
    ///   changes.
    public func setTargetedFields(_ names: [String]) throws {
        try checkOpen()
        let names = try ProxyConfiguration.checked(targetedFields: names)
        engine.policy.change { $0.targetedFields = names }
    }

    /// Changes whether players may name any origin: `servesAnyOrigin` of `ProxyConfiguration`. Running responses
    /// continue.
    public func setServesAnyOrigin(_ servesAnyOrigin: Bool) {
        engine.policy.change { $0.servesAnyOrigin = servesAnyOrigin }
        proxy?.warnOfStrangers()
    }

    /// Changes the largest body of a request through a mount, in bytes: `largestMountBody` of `ProxyConfiguration`.
    /// Running requests continue.
    /// - Throws: `ProxyError` for less than 0, `CacheError.closed`; then nothing changes.
    public func setLargestMountBody(_ bytes: Int64?) throws {
        try checkOpen()
        let bytes = try ProxyConfiguration.checked(largestMountBody: bytes)
        engine.policy.change { $0.largestMountBody = bytes }
    }

    /// Changes whether origins are contacted at all: `isOffline` of `ProxyConfiguration`. Running transfers continue
    /// until they end or break.
    public func setOffline(_ isOffline: Bool) {
        engine.policy.change { $0.isOffline = isOffline }
    }

    /// Changes whether pinned and downloaded resources play even if their origin forbids it: `playsPinned` of
    /// `ProxyConfiguration`.
    public func setPlaysPinned(_ playsPinned: Bool) {
        engine.policy.change { $0.playsPinned = playsPinned }
    }

    /// Changes how much is fetched beyond the bytes that players request: `fill` of `ProxyConfiguration`.
    /// - Throws: `ProxyError` for an invalid distance, `CacheError.closed`; then nothing changes.
    public func setFill(_ fill: FillMode) throws {
        try checkOpen()
        let fill = try ProxyConfiguration.policy(of: fill)
        engine.policy.change { $0.fill = fill }
    }

    /// Changes how many segments of a stream are prefetched: `aheadSegments` of `ProxyConfiguration`.
    /// - Throws: `ProxyError` for a number outside 0 to 20, `CacheError.closed`; then nothing changes.
    public func setAheadSegments(_ count: Int) throws {
        try checkOpen()
        let count = try ProxyConfiguration.checked(aheadSegments: count)
        engine.policy.change { $0.aheadSegments = count }
    }

    /// Changes whether the next item of a feed, list or series is downloaded: `prefetchesNext` of `ProxyConfiguration`.
    public func setPrefetchesNext(_ prefetchesNext: Bool) {
        engine.policy.change { $0.prefetchesNext = prefetchesNext }
    }

    /// Changes whether fresh responses are served from the cache even if the player asks to revalidate them:
    /// `ignoresReload` of `ProxyConfiguration`.
    public func setIgnoresReload(_ ignoresReload: Bool?) {
        engine.policy.change { $0.ignoresReload = ignoresReload }
    }

    /// Changes the whole policy in one step: no request meets only a part of it. Running responses continue.
    /// - Throws: `ProxyError` for the first invalid part, `CacheError.closed`; then nothing changes.
    public func setPolicy(as configuration: ProxyConfiguration) throws {
        try checkOpen()
        let servedAnyOrigin = engine.policy.value.servesAnyOrigin
        let policy = try configuration.policy()
        engine.policy.change {
            // Learnt, not configured.
            let aliases = $0.aliases
            $0 = policy
            $0.aliases = aliases
        }
        if configuration.servesAnyOrigin && !servedAnyOrigin { proxy?.warnOfStrangers() }
    }
}
