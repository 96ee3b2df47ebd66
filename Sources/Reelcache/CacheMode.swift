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
}
