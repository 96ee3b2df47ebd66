import HTTPModel

extension HeaderFields {
    /// Removes the fields by which proxies state for whom, and for which URL, they forward a request. Origins build
    /// links and redirects from them, which are then cached for everybody.
    package mutating func removeForwarding() {
        lines.removeAll { line in
            Self.ofForwarding.contains(line.name)
                || ["x-forwarded", "x-original-", "x-envoy-"].contains { ASCII.begins(line.name, with: $0) }
        }
    }

    /// Besides those that begin as above. The files in `config/cluster` name all of them.
    package static let ofForwarding: FieldNames = [
        "cf-connecting-ip", "cf-connecting-ipv6", "cf-visitor", "client-ip", "cloudfront-forwarded-proto",
        "cluster-client-ip", "fastly-client-ip", "forwarded", "forwarded-for", "forwarded-host", "front-end-https",
        "true-client-ip", "x-client-ip", "x-cluster-client-ip",
        "x-forward-for", "x-forwarder-for", "x-host", "x-http-destinationurl", "x-http-host-override", "x-original",
        "x-proxy-url", "x-proxyuser-ip", "x-real-ip", "x-real-port", "x-remote-addr", "x-remote-ip", "x-rewrite-url",
        "x-scheme", "x-script-name", "x-server-name", "x-url-scheme",
    ]
}
