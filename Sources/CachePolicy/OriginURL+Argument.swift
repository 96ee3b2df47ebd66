/// The address at which players reach a proxy, and the mounts below it.
package struct ProxyPlace: Sendable {
    private let url: OriginURL?
    private let names: Set<String>
    let mounts: [Mount]

    /// - Parameters:
    ///   - url: the URL at which it listens: `http://host:port`; nil if the port is unknown.
    ///   - names: host names that lead to it, at any port.
    package init(url: String?, names: [String] = [], mounts: [Mount] = []) {
        self.url = url.flatMap { try? OriginURL(url: $0) }
        self.names = Set(names.map(HostName.normalized))
        self.mounts = mounts
    }

    /// Whether a URL points to the proxy. If the proxy listens on one address of this machine, they all count.
    func has(_ other: OriginURL) -> Bool {
        if names.contains(HostName.normalized(other.host)) { return true }
        guard let url, url.scheme == other.scheme, url.port == other.port else { return false }
        return url.host == other.host || url.isOfThisMachine && other.isOfThisMachine
    }
}

extension OriginURL {
    /// Reads an argument of a command: a media URL, or the proxy's URL for it, such as
    /// `http://127.0.0.1:7335/https/host/path`, or `http://127.0.0.1:7335/tv/path` below a mount.
    ///
    /// The proxy's form is recognised only at the proxy's address, or with `/https/` on this machine: elsewhere,
    /// the path may belong to an origin.
    /// - Parameter place: the address of the running proxy, or else where it would run.
    package init(argument: String, at place: ProxyPlace) throws(OriginURLError) {
        // Users paste file names. A space in a host is still an error.
        self = try OriginURL(url: argument.replacing(" ", with: "%20")).origin(at: place)
    }

    /// The media URL for which a proxy's URL stands; otherwise this one. See `init(argument:at:)`.
    package func origin(at place: ProxyPlace) throws(OriginURLError) -> OriginURL {
        let isProxied = place.has(self)
        if isProxied || scheme == .http && isOfThisMachine, OriginURL.isTarget(pathAndQuery) {
            return try OriginURL(target: pathAndQuery)
        }
        return isProxied ? try place.mounts.url(for: pathAndQuery) ?? self : self
    }

    fileprivate var isOfThisMachine: Bool {
        host == "localhost" || host == "[::1]" || host.hasPrefix("127.") && IPAddress(host) != nil
    }
}
