import HTTPModel

/// An ordinary HTTP or SOCKS proxy through which origins are reached: the setting `upstream_proxy`. It looks up names
/// and connects, so the addresses of origins cannot be checked here.
package struct OutgoingProxy: Sendable, Equatable {
    package enum Kind: String, Sendable, CaseIterable {
        case http
        /// SOCKS 5; names go to the proxy.
        case socks5h
    }

    package let kind: Kind
    /// An IPv6 address has brackets.
    package let host: String
    package let port: Int
    package let user: String?
    package let password: String?
    /// Hosts that are reached directly.
    package var exceptions = ProxyExceptions.none

    /// - Parameter text: `http://[user:password@]host:port`, or the same with `socks5h`. User and password are
    ///   percent-encoded.
    package init(_ text: String) throws(RuleError) {
        guard let end = text.firstRange(of: "://"),
            let kind = Kind(rawValue: ASCII.lowercased(String(text[..<end.lowerBound])))
        else { throw Self.malformed }
        let rest = text[end.upperBound...]
        let at = rest.lastIndex(of: "@")
        let address = at.map { rest[rest.index(after: $0)...] } ?? rest
        guard let url = try? OriginURL(url: "http://" + address), url.pathAndQuery == "/",
            address.utf8.contains(where: { $0 == ASCII.colon })
        else { throw Self.malformed }
        (self.kind, host, port) = (kind, url.host, url.port ?? url.scheme.defaultPort)
        (user, password) = try Self.credentials(at.map { rest[..<$0] })
    }

    private static func credentials(_ text: Substring?) throws(RuleError) -> (String?, String?) {
        guard let text else { return (nil, nil) }
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard let user = parts.first, !user.isEmpty, let name = decoded(user),
            let password = decoded(parts.count > 1 ? parts[1] : "")
        else { throw malformed }
        return (name, password)
    }

    /// nil for what cannot stand in a credential.
    private static func decoded(_ text: Substring) -> String? {
        guard let bytes = PercentEncoding.decoded(text.utf8), !bytes.contains(where: { $0 < 0x20 || $0 == 0x7F })
        else { return nil }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The text is left out: it may hold a password.
    private static let malformed = RuleError(
        "is not a proxy's address; write it like http://proxy.example:3128 or socks5h://user:password@127.0.0.1:1080")

    /// Host and port, without the credentials.
    package var address: String { "\(host):\(port)" }

    /// For logs and reports.
    package var masked: String { "\(kind.rawValue)://\(user == nil ? "" : "\(URLMask.replacement)@")\(address)" }

    /// Whether requests to a host go through this proxy.
    /// - Parameter host: with or without the brackets of an IPv6 address.
    package func carries(host: String) -> Bool { !exceptions.contain(host) }
}

/// Hosts that are reached without the upstream proxy: the setting `upstream_proxy_except`.
package struct ProxyExceptions: Sendable, Equatable {
    package static let none = ProxyExceptions()

    /// A name stands for itself and all names below it.
    private var domains: Set<String> = []
    private var networks: [IPNetwork] = []

    private init() {}

    /// - Parameter entries: host names, with or without a leading dot; addresses; networks, such as `10.0.0.0/8`.
    package init(_ entries: [String]) throws(RuleError) {
        for entry in entries {
            let name =
                entry.hasPrefix("*.") ? entry.dropFirst(2) : entry.hasPrefix(".") ? entry.dropFirst() : entry[...]
            if let network = IPNetwork(entry) {
                networks.append(network)
            } else if HostName.isOne(String(name)) {
                domains.insert(HostName.normalized(String(name)))
            } else {
                throw RuleError(
                    "'\(entry)' is not a host, domain or network; write it like nas.local, .example.org or 10.0.0.0/8")
            }
        }
    }

    /// Names are not looked up: networks are for addresses in URLs.
    func contain(_ host: String) -> Bool {
        if let address = IPAddress(host) {
            return networks.contains { $0.contains(address) || $0.contains(address.unwrapped) }
        }
        var name = HostName.normalized(host)[...]
        while !name.isEmpty {
            if domains.contains(String(name)) { return true }
            guard let dot = name.firstIndex(of: ".") else { break }
            name = name[name.index(after: dot)...]
        }
        return false
    }
}
