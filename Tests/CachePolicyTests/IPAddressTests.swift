import CachePolicy
import Glibc
import TestSupport
import Testing

@Suite struct IPAddressTests {
    @Test(arguments: [
        ("0.0.0.0", "0.0.0.0"), ("255.255.255.255", "255.255.255.255"), ("10.1.2.3", "10.1.2.3"), ("::", "::"),
        ("::1", "::1"),
        ("[::1]", "::1"),
        ("2001:DB8:0:0:1:0:0:1", "2001:db8::1:0:0:1"), ("1:0:0:2:0:0:0:3", "1:0:0:2::3"),
        ("1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8"),
        ("1:0:3:4:5:6:7:8", "1:0:3:4:5:6:7:8"), ("1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"),
        ("::ffff:10.0.0.1", "::ffff:10.0.0.1"),
        ("::FFFF:a00:1", "::ffff:10.0.0.1"), ("64:ff9b::10.0.0.1", "64:ff9b::a00:1"), ("fe80::", "fe80::"),
    ])
    func textIsReadAndWritten(text: String, description: String) throws {
        #expect(try #require(IPAddress(text)).description == description)
    }

    @Test(arguments: [
        "", "1", "1.2.3", "1.2.3.4.5", "256.1.1.1", "01.2.3.4", "1.2.3.04", "1.2.3.", ".1.2.3", "0x7f.0.0.1",
        "+1.2.3.4",
        "1.2.3.4 ", "[1.2.3.4]", "a",
        ":", ":::", "1::2::3", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7:8::", "12345::", "g::", "::1%eth0",
        "::1.2.3",
        "1.2.3.4::",
        "::1.2.3.4:5", "[::1", "::1]", "[]", "1:", ":1", "::+1", "::-1",
    ])
    func badTextIsRefused(text: String) {
        #expect(IPAddress(text) == nil)
    }

    @Test func wordsMakeTheSameAddressAsText() {
        #expect(IPAddress(v4: 0x7F00_0001) == IPAddress("127.0.0.1"))
        #expect(IPAddress(v6: (0x2001_0DB8_0000_0000, 1)) == IPAddress("2001:db8::1"))
        #expect(IPAddress(v6: (0, 0xFFFF_7F00_0001)) != IPAddress("127.0.0.1"))
    }

    @Test func writtenAddressIsWhatTheSystemReads() {
        var random = SplitMix64.forTest("addresses")
        for _ in 0..<5000 {
            let words = (sparse(&random), sparse(&random))
            let address = IPAddress(v6: words)
            #expect(
                systemWords(address.description)?.0 == words.0 && systemWords(address.description)?.1 == words.1,
                "\(address)")
            #expect(IPAddress(address.description) == address)
            let v4 = IPAddress(v4: UInt32.random(in: 0 ... .max, using: &random))
            #expect(IPAddress(v4.description) == v4)
        }
    }

    @Test func randomTextIsAnAddressWhereTheSystemSaysSo() {
        var random = SplitMix64.forTest("addressTexts")
        let pieces = ["::", ":", ":", ".", "0", "1", "ffff", "10", "255", "256", "a", "01", "1.2.3.4", "1:2:3", "g"]
        var accepted = 0
        for _ in 0..<20000 {
            let text = (0..<Int.random(in: 1...9, using: &random)).map { _ in pieces.randomElement(using: &random)! }
                .joined()
            let isAddress = systemWords(text) != nil || isSystemV4(text)
            #expect((IPAddress(text) != nil) == isAddress, "\(text)")
            accepted += isAddress ? 1 : 0
        }
        #expect(accepted > 100)
    }

    /// Words with many zero groups, for the sake of "::".
    private func sparse(_ random: inout SplitMix64) -> UInt64 {
        (0..<4).reduce(0) { word, _ in
            word << 16 | (Bool.random(using: &random) ? 0 : .random(in: 0...0xFFFF, using: &random))
        }
    }

    private func systemWords(_ text: String) -> (UInt64, UInt64)? {
        var address = in6_addr()
        guard inet_pton(AF_INET6, text, &address) == 1 else { return nil }
        return withUnsafeBytes(of: &address) {
            let words = $0.bindMemory(to: (UInt64, UInt64).self)[0]
            return (UInt64(bigEndian: words.0), UInt64(bigEndian: words.1))
        }
    }

    private func isSystemV4(_ text: String) -> Bool {
        var address = in_addr()
        return inet_pton(AF_INET, text, &address) == 1
    }

    @Test func bytesInNetworkOrderAreAnAddress() {
        let address = { (bytes: [UInt8]) in bytes.withUnsafeBytes { IPAddress(networkOrder: $0) } }
        #expect(address([192, 0, 2, 1])?.description == "192.0.2.1")
        #expect(address([0x20, 1, 0x0D, 0xB8] + Array(repeating: 0, count: 11) + [1])?.description == "2001:db8::1")
        for count in [0, 3, 5, 15, 17] { #expect(address(Array(repeating: 1, count: count)) == nil) }
    }
}
