import CachePolicy

/// How a client reaches addresses of origins: through the proxy, in one of its forms.
package struct ProxyForm: Sendable {
    private let form: @Sendable (OriginURL) -> OriginURL

    /// - Parameter form: the URL by which the client reaches an origin's: absolute, with the scheme, host and port
    ///   that the client uses. What cannot be reached through the proxy stays the origin's own. The form of a
    ///   directory is a directory, in which all has the same name: `form(d) + x` leads where `form(d + x)` does, for
    ///   each `x` without a slash in its path.
    package init(_ form: @escaping @Sendable (OriginURL) -> OriginURL) { self.form = form }

    package func callAsFunction(_ url: OriginURL) -> OriginURL { form(url) }

    /// `http://proxy/https/host/path`
    /// - Parameter proxy: as the client reaches it; of this only scheme, host and port count.
    package static func path(at proxy: OriginURL) -> ProxyForm {
        ProxyForm { url in
            // In a path, such a host would be a dot segment.
            url.host == "." || url.host == ".." ? url : proxy.at(url.proxyPath) ?? url
        }
    }

    /// `http://proxy/tv/path` for what lies below a mount.
    /// - Parameters:
    ///   - mounts: where several have it, the one with the longest path of the origin.
    ///   - proxy: as the client reaches it; of this only scheme, host and port count.
    ///   - otherwise: for what lies below none; without it, such addresses stay the origin's own.
    package static func mounts(_ mounts: [Mount], at proxy: OriginURL, otherwise: ProxyForm? = nil) -> ProxyForm {
        let longestFirst = mounts.sorted { $0.origin.pathAndQuery.utf8.count > $1.origin.pathAndQuery.utf8.count }
        return ProxyForm { url in
            for mount in longestFirst {
                if let target = mount.target(for: url), let mounted = proxy.at(target) { return mounted }
            }
            return otherwise?(url) ?? url
        }
    }
}

extension OriginURL {
    /// Another resource of the same origin.
    /// - Parameter target: path and query; begins with "/".
    func at(_ target: String) -> OriginURL? { try? OriginURL(url: scheme.rawValue + "://" + authority + target) }
}

extension Mount {
    /// The target by which the proxy reads this URL, the reverse of what it does with a request; nil where the URL is
    /// not below this mount.
    fileprivate func target(for url: OriginURL) -> String? {
        guard OriginURL.areSameOrigin(url, origin), url.pathAndQuery.hasPrefix(origin.pathAndQuery) else { return nil }
        let target = path + url.pathAndQuery.dropFirst(origin.pathAndQuery.count)
        // With a mount at "/", the target may be one of the proxy's own.
        return Mount.isReserved(target) ? nil : target
    }
}
