/// The balancers whose statements about their clients are believed.
package struct TrustedAddresses: Sendable, Equatable {
    package static let none = TrustedAddresses()

    private let networks: [IPNetwork]

    private init() { networks = [] }

    /// - Parameter entries: IP addresses and networks: `192.168.1.5`, `fd00::/8`. Names have no place here: what a
    ///   name leads to may change.
    package init(_ entries: [String]) throws(RuleError) {
        networks = try entries.map { entry throws(RuleError) in
            guard let network = IPNetwork(entry) else {
                throw RuleError(
                    "'\(entry)' is not an IP address or network: write it like 192.168.1.5 or 192.168.1.0/24")
            }
            return network
        }
    }

    package var isEmpty: Bool { networks.isEmpty }

    package func contains(_ address: IPAddress) -> Bool { networks.contains { $0.contains(address.unwrapped) } }
}
