import CachePolicy
import Logging

/// What can be changed while it is open.
extension MediaCache {
    /// Changes how much the cache takes on the disk, in bytes. What is too much by then is evicted before this returns,
    /// as far as nobody is reading it. Blocks.
    /// - Parameters:
    ///   - maxSize: as in `ProxyConfiguration`; nil leaves it as it is.
    ///   - minFree: likewise.
    /// - Throws: `ProxyError`: a limit that cannot work, a disk that fails; `CacheError.closed`.
    public func setLimits(maxSize: Int64? = nil, minFree: Int64? = nil) throws {
        try checkOpen()
        do { try engine.store.setLimits(maxSize: maxSize, minFree: minFree) } catch { throw ProxyError(error) }
    }

    /// Changes which private origins may be fetched from: `allow` of `ProxyConfiguration`, as a whole. Transfers that
    /// are running go on.
    /// - Throws: `ProxyError` where an entry is no host name, address or network, `CacheError.closed`; then nothing
    ///   changes.
    public func setAllow(_ allow: [String]) throws {
        try checkOpen()
        do {
            let policy = try AddressPolicy(allow: allow)
            engine.addresses.change { $0 = policy.on($0.local, $0.translations) }
        } catch {
            throw ProxyError(error)
        }
    }

    /// Changes where requests are logged: `accessLog` of `ProxyConfiguration`. A file of that name that is there
    /// already goes on.
    /// - Throws: `ProxyError` where it cannot be written, `CacheError.closed`; then nothing changes.
    public func setAccessLog(_ path: String?) throws {
        try checkOpen()
        try engine.accessLog.open(path)
    }

    /// Goes on in a new file of the same name, after the access log's was renamed.
    package func reopenAccessLog() throws {
        try checkOpen()
        try engine.accessLog.reopen()
    }

    /// A logger that says nothing which the log of this cache would not say.
    package func guarded(_ logger: Logger) -> Logger { logger.guarded(by: engine.policy) }

    /// Changes how resources are handled: `rules` of `ProxyConfiguration`, as a whole. What is cached stays under the
    /// key it has.
    /// - Throws: `ProxyError` where a rule cannot work, `CacheError.closed`; then nothing changes.
    public func setRules(_ rules: [ResourceRule]) throws {
        try checkOpen()
        let rules = try ProxyConfiguration.policy(of: rules)
        engine.policy.change { $0.rules = rules }
    }

    /// Changes what is served at places of the proxy's own: `mounts` of `ProxyConfiguration`, as a whole.
    /// - Throws: `ProxyError` where a mount cannot work, `CacheError.closed`; then nothing changes.
    public func setMounts(_ mounts: [String: String]) throws {
        try checkOpen()
        let mounts = try ProxyConfiguration.policy(of: mounts)
        engine.policy.change { $0.mounts = mounts }
    }

    /// Changes whether players may name any origin: `servesAnyOrigin` of `ProxyConfiguration`. Answers that are running
    /// go on.
    public func setServesAnyOrigin(_ servesAnyOrigin: Bool) {
        engine.policy.change { $0.servesAnyOrigin = servesAnyOrigin }
        proxy?.warnOfStrangers()
    }

    /// Changes how many bytes the body of a request through a mount may have: `largestMountBody` of
    /// `ProxyConfiguration`. Requests that are running go on.
    /// - Throws: `ProxyError` for less than 0, `CacheError.closed`; then nothing changes.
    public func setLargestMountBody(_ bytes: Int64?) throws {
        try checkOpen()
        let bytes = try ProxyConfiguration.checked(largestMountBody: bytes)
        engine.policy.change { $0.largestMountBody = bytes }
    }

    /// Changes whether origins are asked at all: `isOffline` of `ProxyConfiguration`. Transfers that are running go on
    /// until they end or break.
    public func setOffline(_ isOffline: Bool) {
        engine.policy.change { $0.isOffline = isOffline }
    }

    /// Changes whether what is pinned or was downloaded plays whatever its origin said: `playsPinned` of
    /// `ProxyConfiguration`.
    public func setPlaysPinned(_ playsPinned: Bool) {
        engine.policy.change { $0.playsPinned = playsPinned }
    }

    /// Changes how much is fetched beyond what is asked for: `fill` of `ProxyConfiguration`.
    /// - Throws: `ProxyError` for a distance that cannot work, `CacheError.closed`; then nothing changes.
    public func setFill(_ fill: FillMode) throws {
        try checkOpen()
        let fill = try ProxyConfiguration.policy(of: fill)
        engine.policy.change { $0.fill = fill }
    }

    /// Changes how many segments of a stream are fetched before they are asked for: `aheadSegments` of
    /// `ProxyConfiguration`.
    /// - Throws: `ProxyError` for a number that is not from 0 to 20, `CacheError.closed`; then nothing changes.
    public func setAheadSegments(_ count: Int) throws {
        try checkOpen()
        let count = try ProxyConfiguration.checked(aheadSegments: count)
        engine.policy.change { $0.aheadSegments = count }
    }

    /// Changes whether players get what is fresh although they want it to be asked for again: `ignoresReload` of
    /// `ProxyConfiguration`.
    public func setIgnoresReload(_ ignoresReload: Bool?) {
        engine.policy.change { $0.ignoresReload = ignoresReload }
    }

    /// Changes all that decides about requests, in one step: nothing is served meanwhile by a part of it. Answers that
    /// are running go on.
    /// - Throws: `ProxyError` for the first of it that cannot work, `CacheError.closed`; then nothing changes.
    public func setPolicy(as configuration: ProxyConfiguration) throws {
        try checkOpen()
        let servedAnyOrigin = engine.policy.value.servesAnyOrigin
        engine.policy.value = try configuration.policy()
        if configuration.servesAnyOrigin && !servedAnyOrigin { proxy?.warnOfStrangers() }
    }
}
