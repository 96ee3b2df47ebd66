/// A prefix with which a network translates IPv6 to IPv4 (NAT64): packets to an address below it arrive at the IPv4
/// address embedded in it.
///
///     bits     0      32      40      48      56      64      72      80      88      96     104    127
///     /32      prefix │ IPv4                          │ u │ suffix
///     /40      prefix         │ IPv4                  │ u │ IPv4 │ suffix
///     /48      prefix                 │ IPv4          │ u │ IPv4        │ suffix
///     /56      prefix                         │ IPv4  │ u │ IPv4               │ suffix
///     /64      prefix                                 │ u │ IPv4                      │ suffix
///     /96      prefix                                                        │ IPv4
///
/// RFC 6052 §2.2; `u` is one octet, 0.
package struct TranslationPrefix: Sendable, Hashable {
    /// The address with zeros after the prefix.
    private let base: IPAddress
    /// In octets.
    private let length: Int

    private static let lengths = [4, 5, 6, 7, 8, 12]
    /// The position of `u`.
    private static let reserved = 8

    /// A name with only two IPv4 addresses, to which name servers of such a network add IPv6 addresses (RFC 7050
    /// §8).
    package static let probe = "ipv4only.arpa"
    private static let probed: Set<IPAddress> = [IPAddress(v4: 0xC000_00AA), IPAddress(v4: 0xC000_00AB)]

    /// The prefixes that an address of the probe reveals (RFC 7050 §3); none if the network does not translate.
    package static func announced(by address: IPAddress) -> [TranslationPrefix] {
        guard address.family == .v6 else { return [] }
        return lengths.map { TranslationPrefix(of: address, length: $0) }.filter { prefix in
            prefix.embedded(in: address).map(probed.contains) == true
                && (prefix.length > reserved || address.octets[reserved] == 0)
        }
    }

    private init(of address: IPAddress, length: Int) {
        (base, self.length) = (
            IPAddress(octets: address.octets.prefix(length) + [UInt8](repeating: 0, count: 16 - length)), length
        )
    }

    /// The IPv4 address at which packets to an address arrive; nil if the address is not below the prefix.
    func embedded(in address: IPAddress) -> IPAddress? {
        guard address.family == .v6 else { return nil }
        let octets = address.octets
        guard octets.prefix(length) == base.octets.prefix(length) else { return nil }
        let places = (length..<16).filter { length > Self.reserved || $0 != Self.reserved }.prefix(4)
        return IPAddress(v4: places.reduce(0) { $0 << 8 | UInt32(octets[$1]) })
    }
}

extension IPAddress {
    /// The 16 octets of an IPv6 address.
    fileprivate var octets: [UInt8] {
        [high, low].flatMap { half in
            // no trap: known numbers
            stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: half >> UInt64($0)) }
        }
    }

    fileprivate init(octets: [UInt8]) {
        let halves = [octets.prefix(8), octets.dropFirst(8)].map { $0.reduce(0) { $0 << 8 | UInt64($1) } }
        self.init(v6: (halves[0], halves[1]))
    }
}
