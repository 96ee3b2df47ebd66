import HTTPModel

/// Which addresses the proxy may connect to. Public ones always; this host, its networks and special blocks only where a line of
/// `allow` names the host or the address: otherwise any web page could read the local network through the proxy.
package struct AddressPolicy: Sendable {
    private let hosts: Set<String>
    private let networks: [IPNetwork]

    /// - Parameter allow: host names, IP addresses and CIDR blocks: `nas.local`, `127.0.0.1`, `192.168.1.0/24`, `fd00::/8`.
    package init(allow: [String]) throws(AddressPolicyError) {
        var hosts: Set<String> = []
        var networks: [IPNetwork] = []
        for entry in allow {
            if let network = IPNetwork(entry) {
                networks.append(network)
            } else if Self.isHostName(entry) {
                hosts.insert(Self.normalized(entry))
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
        address.isPublic || hosts.contains(Self.normalized(host)) || holds(address)
    }

    /// Whether a line of `allow` names a host by its name, or by the address that is written in its place.
    package func names(_ host: String) -> Bool {
        if hosts.contains(Self.normalized(host)) { return true }
        return IPAddress(host).map(holds) ?? false
    }

    private func holds(_ address: IPAddress) -> Bool {
        let unwrapped = address.unwrapped
        return networks.contains { $0.contains(unwrapped) || $0.contains(address) }
    }

    /// Lower case, and without the dot that makes a name absolute.
    private static func normalized(_ host: String) -> String {
        let name = ASCII.lowercased(host)
        return name.utf8.last == UInt8(ascii: ".") ? String(name.dropLast()) : name
    }

    /// A name whose last label is a number is an address gone wrong (RFC 3986 §3.2.2, WHATWG URL "ends in a number").
    private static func isHostName(_ text: String) -> Bool {
        let labels = normalized(text).utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard let last = labels.last, !last.allSatisfy(ASCII.isDigit) else { return false }
        return labels.allSatisfy { !$0.isEmpty && $0.allSatisfy(isLabelCharacter) }
    }

    private static func isLabelCharacter(_ byte: UInt8) -> Bool {
        ASCII.isLetter(byte) || ASCII.isDigit(byte) || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
    }
}

/// An entry of `allow` that names nothing.
package struct AddressPolicyError: Error, Sendable, Equatable, CustomStringConvertible {
    package let entry: String

    package init(entry: String) { self.entry = entry }

    package var reason: String {
        "\"\(entry)\" in allow is no host name, IP address or CIDR block: write it like nas.local, 192.168.1.5 or 192.168.1.0/24"
    }

    package var description: String { reason }
}
