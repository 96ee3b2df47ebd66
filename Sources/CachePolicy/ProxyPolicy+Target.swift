extension ProxyPolicy {
    /// The target that a player requests from the proxy to get a resource; nil if the resource is not served. If
    /// several mounts cover it, the one with the longest origin path is used.
    package func target(of url: OriginURL) -> String? {
        if servesAnyOrigin { return url.proxyPath }
        let nearest = mounts.filter { $0.holds(url) }.sorted {
            $0.origin.pathAndQuery.count > $1.origin.pathAndQuery.count
        }
        let targets = nearest.map { $0.path + url.pathAndQuery.dropFirst($0.origin.pathAndQuery.count) }
        // Skips targets that lead elsewhere, such as /stats below a mount at /, which the proxy reserves, or a path
        // that another mount covers.
        return targets.first { (try? mounts.url(for: $0)) == url }
    }

    /// The refusal for clients that request another origin although only mounts are served.
    package static let mountsAloneReason =
        "this proxy serves only the origins mounted on it: request a path below a mount"
}

extension Mount {
    /// Whether it stands for a URL, too, among others.
    func holds(_ url: OriginURL) -> Bool {
        (origin.scheme, origin.host, origin.port) == (url.scheme, url.host, url.port)
            && url.pathAndQuery.hasPrefix(origin.pathAndQuery)
    }
}
