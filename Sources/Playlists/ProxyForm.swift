import CachePolicy

/// The URLs by which a client reaches origins through the proxy, in one of its forms.
package struct ProxyForm: Sendable {
    private let form: @Sendable (OriginURL) -> OriginURL

    /// - Parameter form: the URL by which the client reaches an origin's URL: absolute, with the scheme, host and
    ///   port that the client uses. A URL that cannot be reached through the proxy stays as it is. The form of a
    ///   directory is a directory with the same names below it: `form(d) + x` leads where `form(d + x)` does, for
    ///   each `x` without a slash in its path.
    package init(_ form: @escaping @Sendable (OriginURL) -> OriginURL) { self.form = form }

    package func callAsFunction(_ url: OriginURL) -> OriginURL { form(url) }

    /// `http://proxy/https/host/path`
    /// - Parameter proxy: as the client reaches it; only scheme, host and port count.
    package static func path(at proxy: OriginURL) -> ProxyForm {
        ProxyForm { url in
            // In a path, such a host would be a dot segment.
            url.host == "." || url.host == ".." ? url : proxy.at(url.proxyPath) ?? url
        }
    }

    /// `http://proxy/tv/path` for URLs below a mount.
    /// - Parameters:
    ///   - mounts: if several contain a URL, the one with the longest origin path is used.
    ///   - proxy: as the client reaches it; only scheme, host and port count.
    ///   - otherwise: the form for URLs below no mount; if nil, they stay as they are.
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
    /// A URL of the same origin.
    /// - Parameter target: path and query; begins with "/".
    func at(_ target: String) -> OriginURL? { try? OriginURL(url: scheme.rawValue + "://" + authority + target) }
}

extension Mount {
    /// The target that the proxy maps to this URL, the reverse of what it does with a request; nil if the URL is
    /// not below this mount.
    fileprivate func target(for url: OriginURL) -> String? {
        guard OriginURL.areSameOrigin(url, origin), url.pathAndQuery.hasPrefix(origin.pathAndQuery) else { return nil }
        let target = path + url.pathAndQuery.dropFirst(origin.pathAndQuery.count)
        // With a mount at "/", the target may be a path that the proxy reserves.
        return Mount.isReserved(target) ? nil : target
    }
}
