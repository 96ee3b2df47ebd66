import Activity
import CachePolicy
import Foundation
import HTTPModel

extension ProxyConfiguration {
    /// The settings that may change while the proxy runs, apart from limits and addresses.
    /// - Throws: `ProxyError` for the first invalid rule, mount or size.
    package func policy() throws(ProxyError) -> ProxyPolicy {
        var policy = ProxyPolicy()
        policy.isOffline = isOffline
        policy.playsPinned = playsPinned
        policy.servesAnyOrigin = servesAnyOrigin
        policy.tunnelPorts = tunnels ? Set(tunnelPorts) : nil
        policy.largestMountBody = try Self.checked(largestMountBody: largestMountBody)
        policy.fill = try Self.policy(of: fill)
        policy.aheadSegments = try Self.checked(aheadSegments: aheadSegments)
        policy.prefetchesNext = prefetchesNext
        policy.ignoresReload = ignoresReload
        policy.mounts = try Self.policy(of: mounts, mountCaches)
        try addTerms(to: &policy)
        policy.rules = try Self.policy(of: rules)
        do throws(RuleError) { policy.parents = try ParentProxy.list(parents) } catch {
            throw .invalidSetting("parents: \(error)")
        }
        policy.resolvers = try Self.policy(of: resolvers)
        policy.mask = try mask
        do throws(RuleError) { policy.webOrigins = try WebOrigins(webOrigins) } catch {
            throw .invalidSetting("web_origins: \(error)")
        }
        return policy
    }

    /// The URL that a player opens for a media URL, through a proxy with this configuration that is reached at
    /// `baseURL`.
    /// - Throws: `ProxyError` if it is not an http or https URL, or is not served.
    package func url(for url: String, through baseURL: String) throws -> String {
        try policy().url(for: url, through: baseURL)
    }

    /// Masks secrets in the URLs of logs and listings.
    /// - Throws: `ProxyError` for an invalid parameter name.
    package var mask: URLMask {
        get throws(ProxyError) {
            do throws(RuleError) { return try URLMask(adding: secretParameters) } catch {
                throw .invalidSetting("secret_parameters: \(error)")
            }
        }
    }

    /// The proxy through which origins are reached.
    /// - Throws: `ProxyError` for an invalid proxy or exception.
    package func outgoingProxy() throws(ProxyError) -> OutgoingProxy? {
        guard let upstreamProxy else { return nil }
        var proxy: OutgoingProxy
        do throws(RuleError) { proxy = try OutgoingProxy(upstreamProxy) } catch {
            throw .invalidSetting("upstream_proxy: \(error)")
        }
        do throws(RuleError) { proxy.exceptions = try ProxyExceptions(upstreamProxyExceptions) } catch {
            throw .invalidSetting("upstream_proxy_except: \(error)")
        }
        return proxy
    }

    static func checked(largestMountBody bytes: Int64?) throws(ProxyError) -> Int64? {
        if let bytes, bytes < 0 { throw .invalidSetting("max_body: a body has 0 bytes or more, not \(bytes)") }
        return bytes
    }

    static func checked(maxShortResponses bytes: Int64) throws(ProxyError) -> Int64 {
        guard bytes >= 0 else {
            throw .invalidSetting("max_short_responses: the limit is 0 bytes or more, not \(bytes)")
        }
        return bytes
    }

    /// - Parameter bytes: nil for a sixteenth of the memory of the machine, or of the container.
    static func checked(maxBuffered bytes: Int64?) throws(ProxyError) -> Int64 {
        guard let bytes else {
            let limit = try? String(contentsOfFile: "/sys/fs/cgroup/memory.max", encoding: .utf8)
            let ofContainer = limit.flatMap { Int64($0.trimmingCharacters(in: .whitespacesAndNewlines)) } ?? .max
            let memory = min(ofContainer, Int64(clamping: ProcessInfo.processInfo.physicalMemory))
            return min(max(memory / 16, 16_000_000), 48_000_000) // no trap: a part of it
        }
        guard bytes >= ProxyMetrics.Transit.leastLimit else {
            throw .invalidSetting("max_buffered: the limit is 4 MiB or more, not \(bytes) bytes")
        }
        return bytes
    }

    static func checked(aheadSegments count: Int) throws(ProxyError) -> Int {
        do throws(RuleError) { return try Rule.checked(aheadSegments: count) } catch {
            throw .invalidSetting("ahead_segments: \(error)")
        }
    }

    /// How the responses of a URL are handled.
    /// - Throws: `ProxyError` for an invalid rule, mount or size.
    package func rule(of url: OriginURL) throws(ProxyError) -> ResolvedRule { try policy().resolve(url).resolvedRule }

    static func policy(of fill: FillMode) throws(ProxyError) -> FillPolicy {
        do throws(RuleError) { return try FillPolicy(fill) } catch { throw .invalidSetting("fill: \(error)") }
    }

    package static func policy(of mounts: [String: String], _ caches: [String: CacheMode] = [:]) throws(ProxyError)
        -> [Mount]
    {
        if let path = caches.keys.sorted().first(where: { mounts[$0] == nil }) {
            throw .invalidSetting(
                "mounts: '\(path)' is not mounted, so that it has no cache: mount it, or leave it out")
        }
        return try mounts.sorted { $0.key < $1.key }.map { path, url throws(ProxyError) in
            do throws(OriginURLError) { return try Mount(path: path, url: url, cache: caches[path]?.kind) } catch {
                throw .invalidSetting("mounts: \(error)")
            }
        }
    }

    static func policy(of rules: [ResourceRule]) throws(ProxyError) -> [Rule] {
        try rules.enumerated().map { index, rule throws(ProxyError) in
            do throws(RuleError) { return try Rule(rule) } catch { throw .invalidSetting("rules[\(index)]: \(error)") }
        }
    }

    static func policy(of resolvers: [MediaResolver]) throws(ProxyError) -> [Resolver] {
        try resolvers.enumerated().map { index, resolver throws(ProxyError) in
            do throws(RuleError) { return try Resolver(resolver) } catch {
                throw .invalidSetting("resolvers[\(index)]: \(error)")
            }
        }
    }
}

extension Resolver {
    package init(_ resolver: MediaResolver) throws(RuleError) {
        let range = MediaResolver.timeoutRange
        guard range.contains(resolver.timeout) else {
            throw RuleError(
                // no trap: constants
                "a timeout is \(Int(range.lowerBound.inSeconds)) s to \(Int(range.upperBound.inSeconds)) s, not \(resolver.timeout.inSeconds) s",
                key: "timeout")
        }
        try self.init(
            hosts: try resolver.hosts.map { text throws(RuleError) in try HostPattern(text) },
            paths: try resolver.paths.map { text throws(RuleError) in try PathPattern(text) },
            command: resolver.command, timeout: resolver.timeout.inSeconds)
    }
}

extension ProxyPolicy {
    func url(for text: String, through baseURL: String) throws(ProxyError) -> String {
        let url: OriginURL
        do throws(OriginURLError) { url = try OriginURL(url: text) } catch { throw .unsupportedURL("\(error.reason)") }
        guard let target = target(of: url) else {
            throw .notServed(
                "\(text) is not below a mounted URL, and any_origin is false: mount it, or set any_origin to true")
        }
        return baseURL + target
    }
}

extension Rule {
    package init(_ rule: ResourceRule) throws(RuleError) {
        var effects = RuleEffects()
        effects.bypasses = rule.bypass
        effects.ttl = try rule.ttl.map { ttl throws(RuleError) in
            guard ttl >= .zero else { throw RuleError("a ttl is 0 s or longer, not \(ttl.components.seconds) s") }
            return ttl.components.seconds
        }
        effects.ignoresNoStore = rule.ignoresNoStore
        effects.playsStale = rule.playsStale
        effects.ignoredQuery = try rule.ignoredQuery.map { ignored throws(RuleError) in try IgnoredQuery(ignored) }
        effects.key = try rule.key.map { text throws(RuleError) in try KeyTemplate(text) }
        effects.fill = try rule.fill.map { fill throws(RuleError) in try FillPolicy(fill) }
        effects.isMetered = rule.isMetered
        effects.aheadSegments = try rule.aheadSegments.map { count throws(RuleError) in
            try Self.checked(aheadSegments: count)
        }
        effects.prefetchesNext = rule.prefetchesNext
        effects.ignoresReload = rule.ignoresReload
        effects.headers = try rule.headers.map { headers throws(RuleError) in try HeaderFields(configured: headers) }
        effects.pins = rule.pin
        effects.storesPages = rule.storesPages
        effects.largestStored = try rule.maxObject.map { size throws(RuleError) in
            guard size >= 0 else { throw RuleError("max_object is 0 bytes or more, not \(size)") }
            return size
        }
        effects.parents = try rule.parents.map { texts throws(RuleError) in try ParentProxy.list(texts) }
        effects.storesHeuristically = rule.heuristic
        effects.refresh = try rule.refresh.map { text throws(RuleError) in try RefreshTemplate(text) }
        self.init(
            hosts: try rule.hosts.map { text throws(RuleError) in try HostPattern(text) },
            paths: try rule.paths.map { text throws(RuleError) in try PathPattern(text) }, effects: effects)
        try checkReach()
    }

    fileprivate static func checked(aheadSegments count: Int) throws(RuleError) -> Int {
        let range = ProxyConfiguration.aheadSegmentsRange
        guard range.contains(count) else {
            throw RuleError(
                "the number of segments to fetch ahead is \(range.lowerBound) to \(range.upperBound), not \(count)")
        }
        return count
    }
}

private extension IgnoredQuery {
    init(_ ignored: IgnoredParameters) throws(RuleError) {
        switch ignored {
        case .nothing: self = .nothing
        case .all: self = .all
        case .parameters(let names):
            self = .parameters(try names.map { name throws(RuleError) in try ParameterPattern(name) })
        }
    }
}

private extension FillPolicy {
    init(_ fill: FillMode) throws(RuleError) {
        switch fill {
        case .read: self = .read
        case .ahead(let bytes):
            try Self.check(distance: bytes)
            self = .ahead(bytes)
        case .end: self = .end
        case .whole: self = .whole
        }
    }
}

private extension HeaderFields {
    /// Ordered by name.
    init(configured fields: [String: String]) throws(RuleError) {
        self.init()
        for (name, value) in fields.sorted(by: { $0.key < $1.key }) {
            try ConfiguredField.check(name: name, value: value)
            replace(name, value)
        }
    }
}

extension FillMode {
    package init(_ fill: FillPolicy) {
        switch fill {
        case .read: self = .read
        case .ahead(let bytes): self = .ahead(bytes: bytes)
        case .end: self = .end
        case .whole: self = .whole
        }
    }

    /// The setting's text.
    package var text: String {
        switch self {
        case .read: "read"
        case .ahead(let bytes): "ahead \(ByteSize.exactText(bytes))"
        case .end: "end"
        case .whole: "whole"
        }
    }
}
