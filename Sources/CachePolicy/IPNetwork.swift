import HTTPModel

/// A block of addresses that share their first bits: CIDR (RFC 4632 §3.1). A single address is a block of one.
struct IPNetwork: Sendable, Hashable {
    private let base: IPAddress
    private let prefixLength: Int

    /// - Parameter prefixLength: clamped to the address's own length; nil for that length.
    init(base: IPAddress, prefixLength: Int? = nil) {
        let width = base.family == .v4 ? 32 : 128
        self.base = base
        self.prefixLength = min(max(prefixLength ?? width, 0), width)
    }

    /// Whether it contains all addresses of a family: not a network, but a default route, as some tunnels have it.
    var isEverything: Bool { prefixLength == 0 }

    /// Parses `address` or `address/bits`; bits of the address beyond the prefix are ignored. A block of mapped
    /// IPv4 addresses becomes the block of those IPv4 addresses, just as single addresses are unwrapped before they
    /// are judged.
    init?(_ text: String) {
        let parts = text.utf8.split(separator: UInt8(ascii: "/"), maxSplits: 1, omittingEmptySubsequences: false)
        guard let address = IPAddress(String(Substring(parts[0]))) else { return nil }
        let width = address.family == .v4 ? 32 : 128
        let bits = parts.count == 2 ? ASCII.decimal(parts[1]) : Int64(width)
        guard let bits, bits <= width else { return nil }
        let isWrapped = address.unwrapped != address && bits >= 96
        self.init(base: isWrapped ? address.unwrapped : address, prefixLength: isWrapped ? Int(bits) - 96 : Int(bits))
    }

    func contains(_ address: IPAddress) -> Bool {
        guard address.family == base.family else { return false }
        // Shifting a word by its width or more yields 0, so bits beyond the prefix are dropped, and with /0 all of
        // them are.
        switch base.family {
        case .v4: return (address.low ^ base.low) >> UInt64(32 - prefixLength) == 0 // no trap: at most 32
        // no trap: at most 64
        case .v6 where prefixLength <= 64: return (address.high ^ base.high) >> UInt64(64 - prefixLength) == 0
        // no trap: at most 128
        case .v6: return address.high == base.high && (address.low ^ base.low) >> UInt64(128 - prefixLength) == 0
        }
    }
}
