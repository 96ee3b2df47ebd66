import HTTPModel

/// An IPv4 or IPv6 address.
package struct IPAddress: Sendable, Hashable, CustomStringConvertible {
    enum Family: Sendable { case v4, v6 }

    let family: Family
    /// The first 64 bits of an IPv6 address; 0 for IPv4.
    let high: UInt64
    /// The last 64 bits; an IPv4 address in the last 32 of them.
    let low: UInt64

    /// - Parameter v4: in host order, 127.0.0.1 being 0x7F000001.
    package init(v4: UInt32) {
        family = .v4
        high = 0
        low = UInt64(v4)
    }

    /// - Parameter v6: the first and the last 64 bits, in host order.
    package init(v6: (UInt64, UInt64)) {
        family = .v6
        (high, low) = v6
    }

    /// - Parameter bytes: in network order, as the kernel and protocols have them: 4 for IPv4, 16 for IPv6. Nil for any
    ///   other number of bytes.
    package init?(networkOrder bytes: UnsafeRawBufferPointer) {
        let number = { (place: Int) in UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: place, as: UInt64.self)) }
        switch bytes.count {
        case 4: self.init(v4: UInt32(bigEndian: bytes.loadUnaligned(as: UInt32.self)))
        case 16: self.init(v6: (number(0), number(8)))
        default: return nil
        }
    }

    /// The address as the initializers take it.
    package enum Number {
        case v4(UInt32)
        case v6(high: UInt64, low: UInt64)
    }

    package var number: Number {
        switch family {
        case .v4: .v4(UInt32(truncatingIfNeeded: low))
        case .v6: .v6(high: high, low: low)
        }
    }

    /// Parses four decimal numbers, or the forms of RFC 4291 §2.2, with or without brackets; nil for anything else.
    /// It rejects numbers with leading zeros (which some parsers take for octal), zones, and the short forms of
    /// inet_aton.
    package init?(_ text: String) {
        var bytes = text.utf8[...]
        let isBracketed = bytes.first == UInt8(ascii: "[") && bytes.last == UInt8(ascii: "]")
        if isBracketed { bytes = bytes.dropFirst().dropLast() }
        if !isBracketed, let v4 = Self.parseV4(bytes) {
            self.init(v4: v4)
        } else if let v6 = Self.parseV6(bytes) {
            self.init(v6: v6)
        } else {
            return nil
        }
    }

    package var description: String {
        switch family {
        case .v4: Self.dotted(UInt32(truncatingIfNeeded: low))
        case .v6: isMapped ? "::ffff:" + Self.dotted(UInt32(truncatingIfNeeded: low)) : colonSeparated
        }
    }
}

// MARK: - Text

extension IPAddress {
    private static func dotted(_ v4: UInt32) -> String {
        String(unsafeUninitializedCapacity: 15) { text in
            var count = 0
            // no trap: at most four numbers of three digits
            func add(_ byte: UInt32) { (text[count], count) = (UInt8(truncatingIfNeeded: byte), count + 1) }
            for shift: UInt32 in [24, 16, 8, 0] {
                let number = v4 >> shift & 0xFF
                if number > 99 { add(0x30 &+ number / 100) }
                if number > 9 { add(0x30 &+ number / 10 % 10) }
                add(0x30 &+ number % 10)
                if shift > 0 { add(0x2E) }
            }
            return count
        }
    }

    /// RFC 5952 §4: `::` replaces the first of the longest runs of two or more zero groups.
    private var colonSeparated: String {
        // no trap: known numbers
        let groups = [high, low].flatMap { half in [48, 32, 16, 0].map { half >> UInt64($0) & 0xFFFF } }
        let hex = { (part: ArraySlice<UInt64>) in part.map { String($0, radix: 16) }.joined(separator: ":") }
        guard let gap = Self.longestZeroRun(groups) else { return hex(groups[...]) }
        return hex(groups[..<gap.lowerBound]) + "::" + hex(groups[gap.upperBound...])
    }

    private static func longestZeroRun(_ groups: [UInt64]) -> Range<Int>? {
        var longest = 0..<1
        var start = 0
        for (index, group) in groups.enumerated() {
            if group != 0 { start = index + 1 }
            if index + 1 - start > longest.count { longest = start..<index + 1 }
        }
        return longest.count >= 2 ? longest : nil
    }

    private static func parseV4(_ text: Substring.UTF8View) -> UInt32? {
        var (address, octet, digits, dots) = (UInt32(0), UInt32(0), 0, 0)
        for byte in text {
            if ASCII.isDigit(byte), digits == 0 || octet > 0 {
                (octet, digits) = (octet *| 10 +| UInt32(byte &- 0x30), digits +| 1)
                guard octet <= 255 else { return nil }
            } else if byte == UInt8(ascii: "."), digits > 0, dots < 3 {
                (address, octet, digits, dots) = (address << 8 | octet, 0, 0, dots +| 1)
            } else {
                return nil
            }
        }
        return dots == 3 && digits > 0 ? address << 8 | octet : nil
    }

    private static func parseV6(_ text: Substring.UTF8View) -> (UInt64, UInt64)? {
        guard let gap = firstGap(text) else { return words(groups(text)) }
        let after = text.index(gap, offsetBy: 2)
        guard let head = groups(text[..<gap], isHead: true), let tail = groups(text[after...]) else { return nil }
        let missing = 8 - head.count - tail.count
        // RFC 4291 §2.2: "::" stands for one or more groups.
        return missing >= 1 ? words(head + Array(repeating: 0, count: missing) + tail) : nil
    }

    private static func firstGap(_ text: Substring.UTF8View) -> Substring.UTF8View.Index? {
        zip(text.indices, text.indices.dropFirst()).first {
            text[$0] == UInt8(ascii: ":") && text[$1] == UInt8(ascii: ":")
        }?.0
    }

    /// Groups of 16 bits; in a whole text, an IPv4 address may replace the last two. An empty text has no groups.
    private static func groups(_ text: Substring.UTF8View, isHead: Bool = false) -> [UInt64]? {
        if text.isEmpty { return [] }
        var groups: [UInt64] = []
        let parts = text.split(separator: UInt8(ascii: ":"), maxSplits: 8, omittingEmptySubsequences: false)
        for (index, part) in parts.enumerated() {
            if let group = parseGroup(part) {
                groups.append(group)
            } else if !isHead, index == parts.count - 1, let v4 = parseV4(part) {
                groups += [UInt64(v4 >> 16), UInt64(v4 & 0xFFFF)]
            } else {
                return nil
            }
        }
        return groups
    }

    private static func parseGroup(_ text: Substring.UTF8View) -> UInt64? {
        guard 1...4 ~= text.count, text.first != UInt8(ascii: "+"), text.first != UInt8(ascii: "-") else { return nil }
        return UInt64(Substring(text), radix: 16)
    }

    private static func words(_ groups: [UInt64]?) -> (UInt64, UInt64)? {
        guard let groups, groups.count == 8 else { return nil }
        return (groups[..<4].reduce(0) { $0 << 16 | $1 }, groups[4...].reduce(0) { $0 << 16 | $1 })
    }
}

// MARK: - Reach

extension IPAddress {
    /// Whether the address belongs to the public Internet, as opposed to this host, its networks, and blocks
    /// reserved for special uses: those that the registries of special-purpose addresses (RFC 6890,
    /// https://www.iana.org/assignments/iana-ipv4-special-registry and .../iana-ipv6-special-registry) do not list
    /// as globally reachable. An IPv6 address that stands for an IPv4 address is judged as the latter.
    ///
    /// Only `AddressPolicy` decides whether it is an address of this machine.
    package var isPublic: Bool {
        let address = unwrapped
        switch address.family {
        case .v4: return !SpecialNetwork.v4.contains { $0.network.contains(address) }
        case .v6:
            guard SpecialNetwork.globalUnicast.contains(address),
                !SpecialNetwork.v6.contains(where: { $0.network.contains(address) })
            else { return false }
            return address.embeddedIn6to4?.isPublic ?? true
        }
    }

    /// The number of leading bits that are set: for a netmask, the length of the prefix.
    package var leadingOnes: Int {
        switch family {
        case .v4: (~UInt32(truncatingIfNeeded: low)).leadingZeroBitCount
        case .v6: high == .max ? 64 + (~low).leadingZeroBitCount : (~high).leadingZeroBitCount
        }
    }

    /// Loopback and fe80::/10 (RFC 4291 §2.5): packets from these addresses do not leave this machine, or its link.
    var staysOnLink: Bool { family == .v6 && (high == 0 && low == 1 || high >> 54 == 0x3FA) }

    /// ::ffff:0:0/96 (RFC 4291 §2.5.5.2)
    var isMapped: Bool { family == .v6 && high == 0 && low >> 32 == 0xFFFF }

    /// 64:ff9b::/96, the prefix of NAT64 (RFC 6052 §2.1)
    private var isTranslated: Bool { family == .v6 && high == 0x0064_FF9B_0000_0000 && low >> 32 == 0 }

    /// For a mapped or translated address, the IPv4 address at which packets arrive; otherwise the address itself.
    package var unwrapped: IPAddress {
        isMapped || isTranslated ? IPAddress(v4: UInt32(truncatingIfNeeded: low)) : self
    }

    /// 2002::/16 (RFC 3056 §2)
    private var embeddedIn6to4: IPAddress? {
        family == .v6 && high >> 48 == 0x2002 ? IPAddress(v4: UInt32(truncatingIfNeeded: high >> 16)) : nil
    }
}
