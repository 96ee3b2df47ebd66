import Activity
import CachePolicy
import Foundation
import HTTPModel

extension ProxyConfiguration {
    /// The settings that decide about requests.
    /// - Throws: `ProxyError` for the first invalid one.
    package func policy() throws(ProxyError) -> ProxyPolicy {
        var policy = ProxyPolicy()
        policy.isOffline = isOffline
        policy.playsPinned = playsPinned
        policy.servesAnyOrigin = servesAnyOrigin
        policy.tunnelPorts = tunnels ? Set(tunnelPorts) : nil
        if let bytes = largestMountBody, bytes < 0 {
            throw .invalidSetting("max_body: a body has 0 bytes or more, not \(bytes)")
        }
        policy.largestMountBody = largestMountBody
        policy.fill = try Self.parse("fill", fill.checked())
        policy.aheadSegments = try Self.parse("ahead_segments", Rule.checked(aheadSegments: aheadSegments))
        policy.prefetchesNext = prefetchesNext
        policy.ignoresReload = ignoresReload
        policy.mounts = try Self.policy(of: mounts, mountCaches)
        policy.cache = cache
        policy.defaultTTL = try checkedDefaultTTL()
        policy.targetedFields = try Self.parse("targeted_fields", checkedTargetedFields())
        for (index, rule) in rules.enumerated() {
            let name = "rules[\(index)]"
            let cookies = try rule.cookies.map { path throws(ProxyError) in
                try Self.parse("\(name): cookies: \(path)", Rule.cookies(in: Self.text(ofFile: path)))
            }
            policy.rules.append(try Self.parse(name, Rule(rule, cookies: cookies)))
        }
        policy.parents = try Self.parse("parents", ParentProxy.list(parents))
        for (index, resolver) in resolvers.enumerated() {
            policy.resolvers.append(try Self.parse("resolvers[\(index)]", Resolver(resolver)))
        }
        policy.mask = try mask
        policy.webOrigins = try Self.parse("web_origins", WebOrigins(webOrigins))
        return policy
    }

    /// - Throws: what is wrong with the value of a setting, after its name.
    static func parse<Value>(_ name: String, _ value: @autoclosure () throws(RuleError) -> Value) throws(ProxyError)
        -> Value
    {
        do throws(RuleError) { return try value() } catch { throw .invalidSetting("\(name): \(error)") }
    }

    private static func text(ofFile path: String) throws(RuleError) -> String {
        // A pipe would wait for its writer.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), fault = String(errno: errno)
        guard descriptor >= 0 else { throw RuleError("cannot be read (\(fault)); name a readable cookie file") }
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        guard let bytes = try? file.read(upToCount: Rule.longestCookieFile + 1) else {
            throw RuleError("cannot be read; name a readable cookie file")
        }
        guard bytes.count <= Rule.longestCookieFile else {
            throw RuleError(
                "is larger than \(ByteSize(bytes: Int64(Rule.longestCookieFile))); keep the cookies of the rule's hosts"
            )
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private func checkedTargetedFields() throws(RuleError) -> [String] {
        for name in targetedFields { try TargetedField.check(name) }
        guard targetedFields.count <= TargetedField.most else {
            throw RuleError("name at most \(TargetedField.most) fields, not \(targetedFields.count)")
        }
        return targetedFields
    }

    private func checkedDefaultTTL() throws(ProxyError) -> Int64? {
        guard let defaultTTL else { return nil }
        guard Self.defaultTTLRange.contains(defaultTTL) else {
            throw .invalidSetting("default_ttl: a lifetime is 0 s to 10 years, not \(defaultTTL.components.seconds) s")
        }
        return defaultTTL.components.seconds
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
        get throws(ProxyError) { try Self.parse("secret_parameters", URLMask(adding: secretParameters)) }
    }

    /// The proxy through which origins are reached.
    /// - Throws: `ProxyError` for an invalid proxy or exception.
    package func outgoingProxy() throws(ProxyError) -> OutgoingProxy? {
        guard let upstreamProxy else { return nil }
        var proxy = try Self.parse("upstream_proxy", OutgoingProxy(upstreamProxy))
        proxy.exceptions = try Self.parse("upstream_proxy_except", ProxyExceptions(upstreamProxyExceptions))
        return proxy
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
            return min(max(memory / 16, 16_000_000), 24_000_000) // no trap: a part of it
        }
        guard bytes >= ProxyMetrics.Transit.leastLimit else {
            throw .invalidSetting("max_buffered: the limit is 4 MiB or more, not \(bytes) bytes")
        }
        return bytes
    }

    /// How the responses of a URL are handled.
    /// - Throws: `ProxyError` for an invalid rule, mount or size.
    package func rule(of url: OriginURL) throws(ProxyError) -> ResolvedRule { try policy().resolve(url).resolvedRule }

    package static func policy(of mounts: [String: String], _ caches: [String: CacheMode] = [:]) throws(ProxyError)
        -> [Mount]
    {
        if let path = caches.keys.sorted().first(where: { mounts[$0] == nil }) {
            throw .invalidSetting(
                "mounts: '\(path)' is not mounted, so that it has no cache: mount it, or leave it out")
        }
        return try mounts.sorted { $0.key < $1.key }.map { path, url throws(ProxyError) in
            do throws(OriginURLError) { return try Mount(path: path, url: url, cache: caches[path]) } catch {
                throw .invalidSetting("mounts: \(error)")
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
            paths: try resolver.paths.map { text throws(RuleError) in try Glob(path: text) },
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
