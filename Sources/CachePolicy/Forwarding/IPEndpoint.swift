import HTTPModel

/// An IP address with a port: one end of a connection.
package struct IPEndpoint: Sendable, Hashable, CustomStringConvertible {
    package let address: IPAddress
    /// Nil if it is not known.
    package let port: UInt16?

    /// - Parameter address: an IPv4 address in an IPv6 address counts as the former.
    package init(_ address: IPAddress, port: UInt16?) {
        self.address = address.unwrapped
        self.port = port
    }

    /// Parses an address with or without a port, as proxies write it: `192.0.2.1`, `192.0.2.1:443`, `2001:db8::1`,
    /// `[2001:db8::1]`, `[2001:db8::1]:443`. A port that is not a number (RFC 7239 §6 permits names) is left out.
    package init?(_ text: String) {
        if let address = IPAddress(text) {
            self.init(address, port: nil)
        } else {
            guard let colon = text.utf8.lastIndex(of: ASCII.colon), let address = IPAddress(String(text[..<colon])),
                address.family == .v4 || text.utf8.first == UInt8(ascii: "[")
            else { return nil }
            self.init(address, port: UInt16(text[text.index(after: colon)...]))
        }
    }

    /// As in URLs: `192.0.2.1:443`, `[2001:db8::1]:443`, without the colon if the port is unknown.
    package var description: String {
        let host = address.family == .v6 ? "[\(address)]" : "\(address)"
        return port.map { "\(host):\($0)" } ?? host
    }
}

extension IPAddress {
    /// The address by which a client is counted. An IPv6 client has a network of 2⁶⁴ addresses and may use any of
    /// them (RFC 4291 §2.5.4): these count together.
    package var ofClient: IPAddress { family == .v6 ? IPAddress(v6: (high, 0)) : self }
}
