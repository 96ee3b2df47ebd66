/// The addresses that the proxy may connect to. Public addresses are always permitted. This host, its networks and
/// special blocks are permitted only where an entry of `allow` names the host or the address: otherwise any web
/// page could read the local network through the proxy.
package struct AddressPolicy: Sendable {
    private let hosts: Set<String>
    private let networks: [IPNetwork]
    /// This machine's networks, as far as they have been determined.
    package var local = LocalNetworks.none
    /// The prefixes by which the network translates IPv6 to IPv4, as far as they have been discovered.
    package var translations: Set<TranslationPrefix> = []

    /// - Parameter allow: host names, IP addresses and CIDR blocks: `nas.local`, `127.0.0.1`, `192.168.1.0/24`,
    ///   `fd00::/8`.
    package init(allow: [String]) throws(InvalidEntry) {
        var hosts: Set<String> = []
        var networks: [IPNetwork] = []
        for entry in allow {
            if let network = IPNetwork(entry) {
                networks.append(network)
            } else if HostName.isOne(entry) {
                hosts.insert(HostName.normalized(entry))
            } else {
                throw InvalidEntry(entry: entry)
            }
        }
        self.hosts = hosts
        self.networks = networks
    }

    /// - Parameters:
    ///   - host: the name in the URL, or in a redirect.
    ///   - address: the address of the connection that is about to be made.
    package func permits(host: String, address: IPAddress) -> Bool {
        isPublic(address) || hosts.contains(HostName.normalized(host)) || holds(address)
    }

    /// Whether an address belongs to the public Internet, and neither to this machine nor to one of its networks. A
    /// translated address is public only if the IPv4 address inside it is public, too.
    package func isPublic(_ address: IPAddress) -> Bool {
        guard !local.contains(address) else { return false }
        let translated = translated(address)
        // Only a name server states that a prefix is used for translation: that claim opens nothing in ranges that
        // could hold anything else.
        guard address.isPublic || !translated.isEmpty && SpecialNetwork.localTranslation.contains(address) else {
            return false
        }
        return translated.allSatisfy { $0.isPublic && !local.contains($0) }
    }

    private func translated(_ address: IPAddress) -> [IPAddress] {
        translations.compactMap { $0.embedded(in: address) }
    }

    /// The same policy for a machine on these networks.
    package func on(_ local: LocalNetworks, _ translations: Set<TranslationPrefix> = []) -> AddressPolicy {
        var policy = self
        (policy.local, policy.translations) = (local, translations)
        return policy
    }

    /// Whether an entry of `allow` names a host, by its name or by the address written in its place.
    package func names(_ host: String) -> Bool {
        if hosts.contains(HostName.normalized(host)) { return true }
        return IPAddress(host).map(holds) ?? false
    }

    private func holds(_ address: IPAddress) -> Bool {
        let meant = [address, address.unwrapped] + translated(address)
        return networks.contains { network in meant.contains(where: network.contains) }
    }
}

extension AddressPolicy {
    /// An entry of `allow` that is not a host name, address or block.
    package struct InvalidEntry: Error, Sendable, Equatable, CustomStringConvertible {
        package let entry: String

        package init(entry: String) { self.entry = entry }

        package var reason: String {
            "\"\(entry)\" in allow is not a host name, IP address or CIDR block: "
                + "write it like nas.local, 192.168.1.5 or 192.168.1.0/24"
        }

        package var description: String { reason }
    }
}
