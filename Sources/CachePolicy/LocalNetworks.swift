/// The addresses of this machine and its networks. Whatever their range, these addresses are private: a service on
/// a public address of this machine may trust clients that connect from here, and so may a neighbour on its
/// network.
package struct LocalNetworks: Sendable, Equatable {
    private let networks: Set<IPNetwork>
    /// Whether this machine has an IPv6 address that reaches beyond its link.
    package let hasIPv6: Bool

    /// The value before the interfaces have been read: no networks.
    package static let none = LocalNetworks([])

    /// - Parameter interfaces: the addresses of this machine, each with the length of its network's prefix.
    package init(_ interfaces: [(address: IPAddress, prefixLength: Int)]) {
        networks = Set(
            interfaces.map { IPNetwork(base: $0.address, prefixLength: $0.prefixLength) }.filter { !$0.isEverything }
        )
        .union(interfaces.map { IPNetwork(base: $0.address) })
        hasIPv6 = interfaces.contains { $0.address.family == .v6 && !$0.address.staysOnLink }
    }

    func contains(_ address: IPAddress) -> Bool {
        let unwrapped = address.unwrapped
        return networks.contains { $0.contains(unwrapped) || $0.contains(address) }
    }
}
