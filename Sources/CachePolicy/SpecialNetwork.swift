/// A block of addresses that is not part of the public Internet.
struct SpecialNetwork: Sendable {
    let network: IPNetwork
    /// The block's name in the registry.
    let name: String

    private init(_ text: String, _ name: String) {
        guard let network = IPNetwork(text) else { preconditionFailure("\(text) is not a network") }
        (self.network, self.name) = (network, name)
    }

    /// All that is assigned for global use (RFC 4291 §2.4). Outside of it are loopback, link-local, unique local,
    /// multicast, discard (100::/64), segment routing (5f00::/16), local NAT64 (64:ff9b:1::/48) and unassigned
    /// addresses.
    static let globalUnicast = SpecialNetwork("2000::/3", "global unicast").network

    /// Reserved for translation with networks' own prefixes (RFC 8215).
    static let localTranslation = SpecialNetwork("64:ff9b:1::/48", "NAT64, RFC 8215").network

    static let v4 = [
        SpecialNetwork("0.0.0.0/8", "this network, RFC 791"),
        SpecialNetwork("10.0.0.0/8", "private use, RFC 1918"),
        SpecialNetwork("100.64.0.0/10", "shared by carriers, RFC 6598"),
        SpecialNetwork("127.0.0.0/8", "loopback, RFC 1122"),
        // Cloud providers serve credentials here.
        SpecialNetwork("169.254.0.0/16", "link-local, RFC 3927"),
        SpecialNetwork("172.16.0.0/12", "private use, RFC 1918"),
        // Including its two globally reachable anycast addresses: they lead to the network's own servers (RFC 7723,
        // RFC 8155).
        SpecialNetwork("192.0.0.0/24", "protocol assignments, RFC 6890"),
        SpecialNetwork("192.0.2.0/24", "documentation, RFC 5737"),
        SpecialNetwork("192.88.99.0/24", "6to4 relays, deprecated, RFC 7526"),
        SpecialNetwork("192.168.0.0/16", "private use, RFC 1918"),
        SpecialNetwork("198.18.0.0/15", "benchmarks, RFC 2544"),
        SpecialNetwork("198.51.100.0/24", "documentation, RFC 5737"),
        SpecialNetwork("203.0.113.0/24", "documentation, RFC 5737"),
        SpecialNetwork("224.0.0.0/4", "multicast, RFC 5771"),
        SpecialNetwork("240.0.0.0/4", "reserved, RFC 1112, and broadcast, RFC 8190"),
    ]

    static let v6 = [
        // Teredo, benchmarks, ORCHID and anycast; it contains no web servers.
        SpecialNetwork("2001::/23", "protocol assignments, RFC 2928"),
        SpecialNetwork("2001:db8::/32", "documentation, RFC 3849"),
        SpecialNetwork("3fff::/20", "documentation, RFC 9637"),
    ]
}
