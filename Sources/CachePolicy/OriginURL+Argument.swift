extension OriginURL {
    /// From what people give a command: a media URL, or the one that a player opens for it, such as
    /// `http://127.0.0.1:7335/https/host/path`.
    ///
    /// The latter only on this machine or at `proxy`: elsewhere a path may begin with `/https/` and be an origin's own.
    /// - Parameter proxy: where the proxy can be reached, if one runs: `http://host:port`.
    package init(argument: String, proxy: String?) throws(OriginURLError) {
        let url = try OriginURL(url: argument)
        let isProxied = url.isOfThisMachine || proxy.map { OriginURL.areSameOrigin($0 + "/", argument) } ?? false
        guard isProxied, url.scheme == .http, Self.targetPrefixes.contains(where: url.pathAndQuery.hasPrefix) else {
            self = url
            return
        }
        self = try OriginURL(target: url.pathAndQuery)
    }

    private static let targetPrefixes = ["/http/", "/https/", "/http:/", "/https:/"]

    private var isOfThisMachine: Bool { host == "localhost" || host == "[::1]" || host.hasPrefix("127.") && IPAddress(host) != nil }
}
