import CachePolicy
import Testing

@Suite struct AddressPolicyTests {
    private static let special = [
        // First and last of each block
        "0.0.0.0", "0.255.255.255", "10.0.0.0", "10.255.255.255", "100.64.0.0", "100.127.255.255", "127.0.0.1", "127.255.255.255",
        "169.254.0.0",
        "169.254.169.254", "172.16.0.0", "172.31.255.255", "192.0.0.0", "192.0.0.255", "192.168.0.0", "192.168.255.255",
        "198.18.0.0",
        "198.19.255.255", "224.0.0.0", "239.255.255.255", "240.0.0.0", "255.255.255.255",
        "::", "::1", "::10.0.0.1", "::8.8.8.8", "fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "fe80::1", "febf::",
        "fec0::1", "ff02::1",
        // IPv4 in disguise
        "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:a00:1", "64:ff9b::10.0.0.1", "64:ff9b::7f00:1",
        "64:ff9b:1::8.8.8.8", "2002:a00:1::1",
    ]

    private static let ordinary = [
        "1.0.0.0", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0",
        "169.253.255.255",
        "169.255.0.0", "172.15.255.255", "172.32.0.0", "191.255.255.255", "192.0.1.0", "192.167.255.255", "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0", "223.255.255.255", "2606:4700::1", "2a00::", "fbff::", "fe00::", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8",
        "2002:808:808::1", "1::",
    ]

    @Test(arguments: special)
    func specialAddressNeedsToBeAllowed(text: String) throws {
        let address = try #require(IPAddress(text))
        #expect(!address.isPublic)
        #expect(try !AddressPolicy(allow: []).permits(host: "a.example", address: address))
        #expect(try AddressPolicy(allow: [text]).permits(host: "a.example", address: address))
        #expect(try AddressPolicy(allow: ["a.example"]).permits(host: "a.example", address: address))
    }

    @Test(arguments: ordinary)
    func publicAddressIsAlwaysPermitted(text: String) throws {
        let address = try #require(IPAddress(text))
        #expect(address.isPublic)
        #expect(try AddressPolicy(allow: []).permits(host: "a.example", address: address))
    }

    @Test(arguments: [
        ("192.168.1.0/24", "192.168.1.255", true), ("192.168.1.0/24", "192.168.2.0", false),
        ("192.168.1.77/24", "192.168.1.1", true),
        ("10.0.0.0/15", "10.2.0.0", false), ("10.0.0.0/9", "10.128.0.0", false), ("0.0.0.0/0", "10.1.1.1", true),
        ("0.0.0.0/0", "::1", false),
        ("::/0", "::1", true), ("::/0", "10.0.0.1", false), ("::/0", "::ffff:10.0.0.1", true), ("fd00::/8", "fd12::1", true),
        ("fd00::/8", "fc00::1", false),
        ("fd00:0:0:1::/64", "fd00:0:0:1:ffff::", true), ("fd00:0:0:1::/64", "fd00:0:0:2::", false),
        ("fd00::/65", "fd00::8000:0:0:0", false),
        ("fd00::/65", "fd00::7fff:0:0:0", true), ("fd00::1/128", "fd00::1", true), ("fd00::1/128", "fd00::2", false),
        ("[::1]", "::1", true),
        ("127.0.0.1/32", "127.0.0.2", false), ("10.0.0.0/8", "::ffff:10.0.0.1", true), ("10.0.0.0/8", "64:ff9b::10.0.0.1", true),
        ("::ffff:10.0.0.0/104", "10.1.2.3", true), ("::ffff:10.0.0.0/104", "192.168.0.1", false),
        ("::ffff:10.0.0.1", "10.0.0.1", true),
    ])
    func blockAllowsItsAddresses(entry: String, address: String, isPermitted: Bool) throws {
        let address = try #require(IPAddress(address))
        let policy = try AddressPolicy(allow: ["x.example", entry])
        #expect(policy.permits(host: "nas.local", address: address) == isPermitted)
    }

    @Test(arguments: [
        ("nas.local", true), ("NAS.Local", true), ("nas.local.", true), ("x.nas.local", false), ("nas", false), ("", false),
    ])
    func hostIsAllowedByItsWholeNameOnly(host: String, isPermitted: Bool) throws {
        let address = try #require(IPAddress("192.168.1.5"))
        #expect(try AddressPolicy(allow: ["Nas.LOCAL"]).permits(host: host, address: address) == isPermitted)
        #expect(try AddressPolicy(allow: ["nas.local."]).permits(host: host, address: address) == isPermitted)
    }

    @Test(arguments: [
        "", " ", "a b", "*.local", "nas.local:80", "http://nas", "10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0.0/x",
        "10.0.0.0/8/8", "10.0.0", "256.1.1.1",
        "10.0.0.256", "1.2.3.4.", "nas.local/24", "a..b", "b\u{FC}ro.local", "[::1", "fe80::1%eth0", "10.0.0.0/-1", "127.1",
    ])
    func entryThatNamesNothingIsRefused(entry: String) throws {
        let error = try #require(throws: AddressPolicyError.self) { try AddressPolicy(allow: ["ok.example", entry]) }
        #expect(error.entry == entry)
    }
}
