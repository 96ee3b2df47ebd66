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
