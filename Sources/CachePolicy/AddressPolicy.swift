/// Which addresses the proxy may connect to. Public ones always; this host, its networks and special blocks only where a line of
/// `allow` names the host or the address: otherwise any web page could read the local network through the proxy.
package struct AddressPolicy: Sendable {
    private let hosts: Set<String>
    private let networks: [IPNetwork]
    /// Where this machine is, as far as somebody has looked.
    package var local = LocalNetworks.none

    /// - Parameter allow: host names, IP addresses and CIDR blocks: `nas.local`, `127.0.0.1`, `192.168.1.0/24`, `fd00::/8`.
    package init(allow: [String]) throws(AddressPolicyError) {
        var hosts: Set<String> = []
        var networks: [IPNetwork] = []
        for entry in allow {
            if let network = IPNetwork(entry) {
                networks.append(network)
            } else if HostName.isOne(entry) {
                hosts.insert(HostName.normalized(entry))
            } else {
                throw AddressPolicyError(entry: entry)
            }
        }
        self.hosts = hosts
        self.networks = networks
    }

    /// - Parameters:
    ///   - host: the name in the URL, or at which a redirect points.
    ///   - address: what the connection is really about to be made to.
    package func permits(host: String, address: IPAddress) -> Bool {
        isPublic(address) || hosts.contains(HostName.normalized(host)) || holds(address)
    }

    /// Whether an address belongs to the Internet at large, and neither to this machine nor to a network that it is on.
    package func isPublic(_ address: IPAddress) -> Bool { address.isPublic && !local.contains(address) }

    /// The same for a machine on these networks.
    package func on(_ local: LocalNetworks) -> AddressPolicy {
        var policy = self
        policy.local = local
        return policy
    }

    /// Whether a line of `allow` names a host by its name, or by the address that is written in its place.
    package func names(_ host: String) -> Bool {
        if hosts.contains(HostName.normalized(host)) { return true }
        return IPAddress(host).map(holds) ?? false
    }

    private func holds(_ address: IPAddress) -> Bool {
        let unwrapped = address.unwrapped
        return networks.contains { $0.contains(unwrapped) || $0.contains(address) }
    }
}

/// An entry of `allow` that names nothing.
package struct AddressPolicyError: Error, Sendable, Equatable, CustomStringConvertible {
    package let entry: String

    package init(entry: String) { self.entry = entry }

    package var reason: String {
        "\"\(entry)\" in allow is not a host name, IP address or CIDR block: write it like nas.local, 192.168.1.5 or 192.168.1.0/24"
    }

    package var description: String { reason }
}
