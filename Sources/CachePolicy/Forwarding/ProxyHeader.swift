import HTTPModel

/// The header of the PROXY protocol, in which a balancer names the ends of the connection that it forwards. It comes
/// before the first byte of HTTP.
/// Source: https://www.haproxy.org/download/2.9/doc/proxy-protocol.txt §2
package struct ProxyHeader: Sendable, Equatable {
    /// Where the client connected from and to; nil if the balancer speaks for itself, or does not know (`UNKNOWN`, an
    /// unspecified family, a Unix socket): then the addresses of its own connection count.
    package var client: IPEndpoint?
    package var server: IPEndpoint?
    /// Whether the balancer speaks for itself, as in health checks (`LOCAL`, version 2 only). Otherwise the bytes after
    /// the header are a client's, whether it is named or not.
    package var isLocal = false
    /// Whether the client's connection was encrypted, as far as the balancer says (version 2 only).
    package var isSecure = false

    package enum ParseResult: Sendable, Equatable {
        /// Valid so far, but not complete.
        case incomplete
        /// The header, and how many bytes of the input it consumed.
        case complete(ProxyHeader, consumed: Int)
        case invalid(RequestFault)
    }

    /// - Parameter bytes: all bytes of a connection until now.
    package static func parse(_ bytes: UnsafeRawBufferPointer) -> ParseResult {
        if agrees(bytes, with: signature1) { return parse1(bytes) }
        if agrees(bytes, with: signature2) { return parse2(bytes) }
        return .invalid(.noProxyHeader)
    }

    /// Whether bytes that are not a request are the beginning of a header, in either version.
    package static func isBegun(by bytes: UnsafeRawBufferPointer) -> Bool {
        bytes.count >= leastRecognized && (agrees(bytes, with: signature1) || agrees(bytes, with: signature2))
    }

    /// As many bytes are in no request: `\r\n\r\n\0`, `PROXY`.
    private static let leastRecognized = 5
    private static let signature1 = Array("PROXY ".utf8)
    private static let signature2 = Array("\r\n\r\n\0\r\nQUIT\n".utf8)

    private static func agrees(_ bytes: UnsafeRawBufferPointer, with signature: [UInt8]) -> Bool {
        zip(bytes, signature).allSatisfy(==)
    }

    // MARK: - Version 1: a line of text

    /// §2.1: a receiver must be prepared for 107 bytes, line end included, and a longer line is invalid.
    private static let maxLineBytes = 107

    private static func parse1(_ bytes: UnsafeRawBufferPointer) -> ParseResult {
        let first = bytes.prefix(maxLineBytes)
        guard let end = first.firstIndex(of: ASCII.lineFeed) else {
            return bytes.count < maxLineBytes ? .incomplete : .invalid(.badProxyHeader)
        }
        guard end > 0, bytes[end - 1] == ASCII.carriageReturn else { return .invalid(.badProxyHeader) }
        let line = String(decoding: bytes[..<(end - 1)], as: UTF8.self)
        guard let header = ProxyHeader(line: line) else { return .invalid(.badProxyHeader) }
        return .complete(header, consumed: end + 1)
    }

    private init(isLocal: Bool) { self.isLocal = isLocal }

    private init?(line: String) {
        let parts = line.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
        guard parts.count >= 2 else { return nil }
        switch parts[1] {
        // The rest of the line must be ignored.
        case "UNKNOWN": return
        case "TCP4", "TCP6":
            let family: IPAddress.Family = parts[1] == "TCP4" ? .v4 : .v6
            guard parts.count == 6, let client = Self.endpoint(family, parts[2], parts[4]),
                let server = Self.endpoint(family, parts[3], parts[5])
            else { return nil }
            (self.client, self.server) = (client, server)
        default: return nil
        }
    }

    private static func endpoint(_ family: IPAddress.Family, _ address: String, _ port: String) -> IPEndpoint? {
        guard address.utf8.first != UInt8(ascii: "["), let address = IPAddress(address), address.family == family,
            port.utf8.count <= 5, let port = ASCII.decimal(port.utf8, upTo: 65535)
        else { return nil }
        return IPEndpoint(address, port: UInt16(port)) // no trap: at most 65535
    }

    // MARK: - Version 2: binary

    private static let fixedBytes = 16
    /// Bytes after the fixed part: the addresses (at most 216), and extensions such as the client's certificate.
    private static let maxRestBytes = 4096

    private static func parse2(_ bytes: UnsafeRawBufferPointer) -> ParseResult {
        guard bytes.count >= fixedBytes else { return .incomplete }
        guard bytes[12] >> 4 == 2, bytes[12] & 0xF <= 1 else { return .invalid(.badProxyHeader) }
        let length = Int(bytes[14]) << 8 | Int(bytes[15])
        guard length <= maxRestBytes else { return .invalid(.longProxyHeader(maxRestBytes)) }
        guard bytes.count >= fixedBytes + length else { return .incomplete }
        let consumed = fixedBytes + length
        // LOCAL
        guard bytes[12] & 0xF == 1 else { return .complete(ProxyHeader(isLocal: true), consumed: consumed) }
        guard let header = ProxyHeader(family: bytes[13], Array(bytes[fixedBytes..<consumed])) else {
            return .invalid(.badProxyHeader)
        }
        return .complete(header, consumed: consumed)
    }

    /// - Parameter family: §2.2: unspecified, TCP over IPv4, TCP over IPv6, a stream of a Unix socket. The others are
    ///   datagrams.
    private init?(family: UInt8, _ rest: [UInt8]) {
        let addressBytes: Int
        switch family {
        case 0x00: return
        case 0x11: addressBytes = 12
        case 0x21: addressBytes = 36
        case 0x31: addressBytes = 216
        default: return nil
        }
        guard rest.count >= addressBytes else { return nil }
        switch family {
        case 0x11: (client, server) = (Self.end(rest[..<4], rest[8..<10]), Self.end(rest[4..<8], rest[10..<12]))
        case 0x21: (client, server) = (Self.end(rest[..<16], rest[32..<34]), Self.end(rest[16..<32], rest[34..<36]))
        default: break
        }
        guard let isSecure = Self.isSecure(rest[addressBytes...]) else { return nil }
        self.isSecure = isSecure
    }

    private static func end(_ address: ArraySlice<UInt8>, _ port: ArraySlice<UInt8>) -> IPEndpoint? {
        address.withUnsafeBytes { IPAddress(networkOrder: $0) }.map {
            IPEndpoint($0, port: UInt16(truncatingIfNeeded: number(port)))
        }
    }

    private static func number(_ bytes: ArraySlice<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }

    /// §2.2.6: the extension PP2_TYPE_SSL begins with a byte whose lowest bit says that the client used TLS.
    /// - Returns: nil if an extension exceeds the header.
    private static func isSecure(_ extensions: ArraySlice<UInt8>) -> Bool? {
        var rest = extensions
        var isSecure = false
        while !rest.isEmpty {
            guard rest.count >= 3 else { return nil }
            let length = Int(number(rest.dropFirst().prefix(2))) // no trap: two bytes
            let value = rest.dropFirst(3).prefix(length)
            guard value.count == length else { return nil }
            if rest.first == 0x20, let flags = value.first { isSecure = flags & 1 == 1 }
            rest = rest.dropFirst(3 + length)
        }
        return isSecure
    }
}

extension RequestFault {
    fileprivate static let noProxyHeader = RequestFault(
        status: 400,
        reason:
            "a connection from a trusted address begins with a PROXY header, because proxy_protocol is true: send one, or take the address out of trusted"
    )
    fileprivate static let badProxyHeader = RequestFault(
        status: 400, reason: "the PROXY header is malformed: send version 1 or 2 as HAProxy does")

    fileprivate static func longProxyHeader(_ limit: Int) -> RequestFault {
        RequestFault(status: 400, reason: "the PROXY header is longer than \(limit) bytes: leave out its extensions")
    }

    /// A header where none is accepted.
    package static func strayProxyHeader(expectsSome: Bool, from address: IPAddress) -> RequestFault {
        RequestFault(
            status: 400,
            reason: expectsSome
                ? "a PROXY header is accepted from trusted addresses alone: add \(address) to trusted, or send HTTP"
                : "a PROXY header is not accepted here: set proxy_protocol to true and add \(address) to trusted, or send HTTP"
        )
    }
}
