/// Where players reach a proxy, and what is below its own paths there.
package struct ProxyPlace: Sendable {
    private let url: OriginURL?
    private let names: Set<String>
    let mounts: [Mount]

    /// - Parameters:
    ///   - url: where it listens: `http://host:port`; nil where nobody knows the port.
    ///   - names: hosts that lead to it, at whatever port.
    package init(url: String?, names: [String] = [], mounts: [Mount] = []) {
        self.url = url.flatMap { try? OriginURL(url: $0) }
        self.names = Set(names.map(HostName.normalized))
        self.mounts = mounts
    }

    /// Whether a URL is the proxy's own. All addresses of this machine are where one of them is.
    func has(_ other: OriginURL) -> Bool {
        if names.contains(HostName.normalized(other.host)) { return true }
        guard let url, url.scheme == other.scheme, url.port == other.port else { return false }
        return url.host == other.host || url.isOfThisMachine && other.isOfThisMachine
    }
}

extension OriginURL {
    /// From what people give a command: a media URL, or the one that a player opens for it, such as
    /// `http://127.0.0.1:7335/https/host/path`, or `http://127.0.0.1:7335/tv/path` below a mount.
    ///
    /// The latter only at the proxy, or with `/https/` on this machine: elsewhere such a path may be an origin's own.
    /// - Parameter place: of the proxy, if one runs, else where it would be.
    package init(argument: String, at place: ProxyPlace) throws(OriginURLError) {
        // People copy names of files. In a host a space stays wrong.
        let url = try OriginURL(url: argument.replacing(" ", with: "%20"))
        let isProxied = place.has(url)
        if isProxied || url.scheme == .http && url.isOfThisMachine, OriginURL.isTarget(url.pathAndQuery) {
            self = try OriginURL(target: url.pathAndQuery)
        } else {
            self = isProxied ? try place.mounts.url(for: url.pathAndQuery) ?? url : url
        }
    }

    fileprivate var isOfThisMachine: Bool {
        host == "localhost" || host == "[::1]" || host.hasPrefix("127.") && IPAddress(host) != nil
    }
}
