import CachePolicy

/// For whom a cache stores responses (RFC 9111 §1).
public enum CacheMode: String, Sendable, CaseIterable {
    /// For several users. What an origin meant for one of them (`private`, or opened by `Authorization`) is passed on
    /// and not stored, and what it states for shared caches (`s-maxage`, `proxy-revalidate`) counts.
    case shared
    /// For one user, or for several who trust each other.
    case `private`

    var kind: CacheKind {
        switch self {
        case .shared: .shared
        case .private: .private
        }
    }
}

/// A mount as it is configured.
package struct ConfiguredMount: Sendable, Equatable {
    package let url: String
    package let cache: CacheMode?

    package init(url: String, cache: CacheMode?) { (self.url, self.cache) = (url, cache) }
}

extension ProxyConfiguration {
    /// The mounts and for whom they store, by path.
    package var configuredMounts: [String: ConfiguredMount] {
        get {
            Dictionary(
                uniqueKeysWithValues: mounts.map { path, url in
                    (path, ConfiguredMount(url: url, cache: mountCaches[path]))
                })
        }
        set {
            mounts = newValue.mapValues(\.url)
            mountCaches = newValue.compactMapValues(\.cache)
        }
    }

    /// - Throws: `ProxyError` for a lifetime or a name that is out of bounds.
    func addTerms(to policy: inout ProxyPolicy) throws(ProxyError) {
        policy.cache = cache?.kind
        policy.defaultTTL = try Self.checked(defaultTTL: defaultTTL)
        policy.targetedFields = try Self.checked(targetedFields: targetedFields)
    }

    static func checked(defaultTTL ttl: Duration?) throws(ProxyError) -> Int64? {
        guard let ttl else { return nil }
        guard defaultTTLRange.contains(ttl) else {
            throw .invalidSetting("default_ttl: a lifetime is 0 s to 10 years, not \(ttl.components.seconds) s")
        }
        return ttl.components.seconds
    }

    static func checked(targetedFields names: [String]) throws(ProxyError) -> [String] {
        do throws(RuleError) {
            for name in names { try TargetedField.check(name) }
        } catch { throw .invalidSetting("targeted_fields: \(error)") }
        guard names.count <= TargetedField.most else {
            throw .invalidSetting("targeted_fields: name at most \(TargetedField.most) fields, not \(names.count)")
        }
        return names
    }
}
