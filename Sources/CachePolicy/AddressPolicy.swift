/// Which addresses the proxy may connect to. Public ones always; this host, its networks and special blocks only where
/// a line of `allow` names the host or the address: otherwise any web page could read the local network through the
/// proxy.
package struct AddressPolicy: Sendable {
    private let hosts: Set<String>
    private let networks: [IPNetwork]
    /// Where this machine is, as far as somebody has looked.
    package var local = LocalNetworks.none
    /// How the network leads IPv6 to IPv4, as far as somebody has asked.
    package var translations: Set<TranslationPrefix> = []

    /// - Parameter allow: host names, IP addresses and CIDR blocks: `nas.local`, `127.0.0.1`, `192.168.1.0/24`,
    ///   `fd00::/8`.
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
    /// What is translated is judged by the IPv4 address in it as well.
    package func isPublic(_ address: IPAddress) -> Bool {
        guard !local.contains(address) else { return false }
        let translated = translated(address)
        // That some prefix is one of translation is the word of a name server: it opens nothing where anything else
        // could be.
        guard address.isPublic || !translated.isEmpty && SpecialNetwork.localTranslation.contains(address) else {
            return false
        }
        return translated.allSatisfy { $0.isPublic && !local.contains($0) }
    }

    private func translated(_ address: IPAddress) -> [IPAddress] {
        translations.compactMap { $0.embedded(in: address) }
    }

    /// The same for a machine on these networks.
    package func on(_ local: LocalNetworks, _ translations: Set<TranslationPrefix> = []) -> AddressPolicy {
        var policy = self
        (policy.local, policy.translations) = (local, translations)
        return policy
    }

    /// Whether a line of `allow` names a host by its name, or by the address that is written in its place.
    package func names(_ host: String) -> Bool {
        if hosts.contains(HostName.normalized(host)) { return true }
        return IPAddress(host).map(holds) ?? false
    }

    private func holds(_ address: IPAddress) -> Bool {
        let meant = [address, address.unwrapped] + translated(address)
        return networks.contains { network in meant.contains(where: network.contains) }
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
