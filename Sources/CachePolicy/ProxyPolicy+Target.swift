extension ProxyPolicy {
    /// What a player asks the proxy for, to get a resource; nil for one that is not served. Where it is mounted more
    /// than once, the mount that says most of its URL.
    package func target(of url: OriginURL) -> String? {
        if servesAnyOrigin { return url.proxyPath }
        let nearest = mounts.filter { $0.holds(url) }.sorted {
            $0.origin.pathAndQuery.count > $1.origin.pathAndQuery.count
        }
        let targets = nearest.map { $0.path + url.pathAndQuery.dropFirst($0.origin.pathAndQuery.count) }
        // Such as /stats below a mount at /, which is the proxy's own, or what another mount has there.
        return targets.first { (try? mounts.url(for: $0)) == url }
    }

    /// What a client hears that asks for any other where only what is mounted is served.
    package static let mountsAloneReason =
        "this proxy serves what is mounted on it and no other origin: ask for a path below a mount"
}

private extension Mount {
    func holds(_ url: OriginURL) -> Bool {
        (origin.scheme, origin.host, origin.port) == (url.scheme, url.host, url.port)
            && url.pathAndQuery.hasPrefix(origin.pathAndQuery)
    }
}
