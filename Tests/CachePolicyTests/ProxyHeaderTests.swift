import CachePolicy
import Testing

/// The PROXY protocol, versions 1 and 2.
@Suite struct ProxyHeaderTests {
    private static func parse(_ bytes: [UInt8]) -> ProxyHeader.ParseResult {
        bytes.withUnsafeBytes { ProxyHeader.parse($0) }
    }

    private static func parse(_ text: String) -> ProxyHeader.ParseResult { parse(Array(text.utf8)) }

    private static let signature: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A, 0, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A]

    private static func binary(_ command: UInt8, _ family: UInt8, _ rest: [UInt8], length: Int? = nil) -> [UInt8] {
        let length = length ?? rest.count
        return signature + [command, family, UInt8(length >> 8), UInt8(length & 0xFF)] + rest
    }

    private static let v4: [UInt8] = [192, 0, 2, 1, 198, 51, 100, 2, 0x12, 0x34, 0x01, 0xBB]
    private static let v6: [UInt8] =
        [0x20, 0x01, 0x0D, 0xB8] + Array(repeating: 0, count: 11) + [1] + [0x20, 0x01, 0x0D, 0xB8]
        + Array(repeating: 0, count: 11) + [2] + [0x12, 0x34, 0x01, 0xBB]
    private static let overTLS: [UInt8] = [0x20, 0, 8, 1, 0, 0, 0, 0, 0x21, 0, 0]

    /// The ends that it names: client, server.
    private static func ends(_ bytes: [UInt8]) -> [String]? {
        guard case .complete(let header, let consumed) = parse(bytes), consumed == bytes.count else { return nil }
        return [header.client, header.server].compactMap { $0?.description } + (header.isSecure ? ["TLS"] : [])
    }

    @Test(arguments: [
        ("PROXY TCP4 192.0.2.1 198.51.100.2 4660 443\r\n", ["192.0.2.1:4660", "198.51.100.2:443"]),
        ("PROXY TCP6 2001:db8::1 2001:db8::2 4660 443\r\n", ["[2001:db8::1]:4660", "[2001:db8::2]:443"]),
        ("PROXY TCP6 ::ffff:192.0.2.1 ::1 0 65535\r\n", ["192.0.2.1:0", "[::1]:65535"]),
        ("PROXY UNKNOWN\r\n", []), ("PROXY UNKNOWN ffff:f... anything 65535\r\n", []),
    ])
    func lineIsRead(text: String, ends: [String]) {
        #expect(Self.ends(Array(text.utf8)) == ends)
    }

    @Test(arguments: [
        (binary(0x21, 0x11, v4), ["192.0.2.1:4660", "198.51.100.2:443"]),
        (binary(0x21, 0x21, v6), ["[2001:db8::1]:4660", "[2001:db8::2]:443"]),
        // A health check of the balancer's own.
        (binary(0x20, 0x00, []), []), (binary(0x20, 0x11, v4), []),
        (binary(0x21, 0x00, [1, 2, 3]), []), (binary(0x21, 0x31, Array(repeating: 0, count: 216)), []),
        (binary(0x21, 0x11, v4 + overTLS), ["192.0.2.1:4660", "198.51.100.2:443", "TLS"]),
        (
            binary(0x21, 0x11, v4 + [4, 0, 1, 9] + [0x20, 0, 5, 0, 0, 0, 0, 0]), ["192.0.2.1:4660", "198.51.100.2:443"]
        ),
    ])
    func binaryHeaderIsRead(bytes: [UInt8], ends: [String]) {
        #expect(Self.ends(bytes) == ends)
    }

    /// Whoever withholds the client does not speak for itself.
    @Test(arguments: [
        (binary(0x20, 0x00, []), true), (binary(0x20, 0x11, v4), true), (binary(0x21, 0x00, []), false),
        (binary(0x21, 0x31, Array(repeating: 0, count: 216)), false), (binary(0x21, 0x11, v4), false),
        (Array("PROXY UNKNOWN\r\n".utf8), false),
    ])
    func balancerThatSpeaksForItselfIsToldFromOneThatDoesNotKnow(bytes: [UInt8], isLocal: Bool) {
        guard case .complete(let header, _) = Self.parse(bytes) else {
            Issue.record("not complete")
            return
        }
        #expect(header.isLocal == isLocal)
    }

    @Test(arguments: [
        "PROXY TCP4 192.0.2.1 198.51.100.2 4660 443\n", "PROXY TCP4 192.0.2.1 198.51.100.2 4660\r\n",
        "PROXY TCP4 2001:db8::1 2001:db8::2 1 2\r\n", "PROXY TCP6 192.0.2.1 192.0.2.2 1 2\r\n",
        "PROXY TCP6 [2001:db8::1] ::1 1 2\r\n", "PROXY TCP4 192.0.2.1 198.51.100.2 65536 443\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.2 -1 443\r\n", "PROXY TCP4  192.0.2.1 198.51.100.2 1 443\r\n",
        "PROXY TCP4 192.0.2.01 198.51.100.2 1 443\r\n", "PROXY UDP4 192.0.2.1 198.51.100.2 1 443\r\n", "PROXY \r\n",
        "PROXY UNKNOWN" + String(repeating: "x", count: 107), "GET / HTTP/1.1\r\n", "PROXI", "proxy UNKNOWN\r\n",
    ])
    func badLineIsInvalid(text: String) {
        guard case .invalid(let fault) = Self.parse(text) else {
            Issue.record("\(Self.parse(text))")
            return
        }
        #expect(fault.status == 400 && !fault.reason.contains("\n"))
    }

    @Test(arguments: [
        binary(0x11, 0x11, v4), binary(0x22, 0x11, v4), binary(0x21, 0x12, v4),
        binary(0x21, 0x11, Array(v4.dropLast())),
        binary(0x21, 0x21, v4), binary(0x21, 0x11, v4 + [0x20, 0]), binary(0x21, 0x11, v4 + [0x20, 0, 9, 1]),
        binary(0x21, 0x00, [], length: 4097), binary(0x20, 0x00, [], length: 65535),
    ])
    func badBinaryHeaderIsInvalid(bytes: [UInt8]) {
        guard case .invalid = Self.parse(bytes) else {
            Issue.record("\(Self.parse(bytes))")
            return
        }
    }

    /// However it is cut, and whatever follows.
    @Test(arguments: [
        Array("PROXY TCP4 192.0.2.1 198.51.100.2 4660 443\r\n".utf8), binary(0x21, 0x11, v4 + overTLS),
        binary(0x21, 0x21, v6),
    ])
    func headerInPiecesIsIncompleteUntilItsEnd(bytes: [UInt8]) {
        for count in 0..<bytes.count { #expect(Self.parse(Array(bytes[..<count])) == .incomplete, "\(count)") }
        guard case .complete(let header, let consumed) = Self.parse(bytes + Array("GET / HTTP/1.1\r\n".utf8)) else {
            Issue.record("not complete")
            return
        }
        #expect(consumed == bytes.count && header.client != nil)
    }

    @Test func beginningOfAHeaderIsToldFromARequest() {
        let begins = { (text: String) in Array(text.utf8).withUnsafeBytes { ProxyHeader.isBegun(by: $0) } }
        #expect(begins("PROXY TCP4 ") && begins("\r\n\r\n\0") && begins("PROXY"))
        #expect(!begins("GET / HTTP") && !begins("\r\n\r\n") && !begins("PRO") && !begins("PROXYING"))
    }
}
