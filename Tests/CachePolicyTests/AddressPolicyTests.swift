import CachePolicy
import Testing

@Suite struct AddressPolicyTests {
    private static let special = [
        // First and last of each block
        "0.0.0.0", "0.255.255.255", "10.0.0.0", "10.255.255.255", "100.64.0.0", "100.127.255.255", "127.0.0.1",
        "127.255.255.255",
        "169.254.0.0",
        "169.254.169.254", "172.16.0.0", "172.31.255.255", "192.0.0.0", "192.0.0.255", "192.0.2.0", "192.0.2.255",
        "192.88.99.0", "192.88.99.255", "192.168.0.0", "192.168.255.255",
        "198.18.0.0",
        "198.19.255.255", "198.51.100.0", "198.51.100.255", "203.0.113.0", "203.0.113.255", "224.0.0.0",
        "239.255.255.255", "240.0.0.0", "255.255.255.255",
        "::", "::1", "::10.0.0.1", "::8.8.8.8", "fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "fe80::1",
        "febf::",
        "fec0::1", "ff02::1",
        // Outside of global unicast, and blocks in it that are not global
        "100::", "100::ffff:ffff:ffff:ffff", "100:0:0:1::1", "5f00::", "5f00:ffff::1", "1::", "1fff:ffff::", "4000::",
        "fbff::", "fe00::", "64:ff9b:1::1",
        "64:ff9b:1:ffff::", "2001::", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:2::1", "2001:10::1", "2001:20::1",
        "2001:1ff:ffff::1", "2001:db8::",
        "2001:db8:ffff::1", "3fff::", "3fff:fff:ffff::1", "::ffff:0:8.8.8.8",
        // IPv4 in disguise
        "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:a00:1", "64:ff9b::10.0.0.1", "64:ff9b::7f00:1",
        "64:ff9b:1::8.8.8.8", "2002:a00:1::1",
    ]

    private static let ordinary = [
        "1.0.0.0", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255",
        "128.0.0.0",
        "169.253.255.255",
        "169.255.0.0", "172.15.255.255", "172.32.0.0", "191.255.255.255", "192.0.1.0", "192.0.3.0", "192.88.98.255",
        "192.88.100.0", "198.51.99.255", "203.0.114.0", "192.167.255.255", "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0", "223.255.255.255", "2606:4700::1", "2a00::", "2001:200::", "2001:db7:ffff::", "2001:db9::",
        "3ffe::", "3fff:1000::", "2000::", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8",
        "2002:808:808::1",
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
        ("::/0", "::1", true), ("::/0", "10.0.0.1", false), ("::/0", "::ffff:10.0.0.1", true),
        ("fd00::/8", "fd12::1", true),
        ("fd00::/8", "fc00::1", false),
        ("fd00:0:0:1::/64", "fd00:0:0:1:ffff::", true), ("fd00:0:0:1::/64", "fd00:0:0:2::", false),
        ("fd00::/65", "fd00::8000:0:0:0", false),
        ("fd00::/65", "fd00::7fff:0:0:0", true), ("fd00::1/128", "fd00::1", true), ("fd00::1/128", "fd00::2", false),
        ("[::1]", "::1", true),
        ("127.0.0.1/32", "127.0.0.2", false), ("10.0.0.0/8", "::ffff:10.0.0.1", true),
        ("10.0.0.0/8", "64:ff9b::10.0.0.1", true),
        ("::ffff:10.0.0.0/104", "10.1.2.3", true), ("::ffff:10.0.0.0/104", "192.168.0.1", false),
        ("::ffff:10.0.0.1", "10.0.0.1", true),
    ])
    func blockAllowsItsAddresses(entry: String, address: String, isPermitted: Bool) throws {
        let address = try #require(IPAddress(address))
        let policy = try AddressPolicy(allow: ["x.example", entry])
        #expect(policy.permits(host: "nas.local", address: address) == isPermitted)
    }

    @Test(arguments: [
        ("nas.local", true), ("NAS.Local", true), ("nas.local.", true), ("x.nas.local", false), ("nas", false),
        ("", false),
    ])
    func hostIsAllowedByItsWholeNameOnly(host: String, isPermitted: Bool) throws {
        let address = try #require(IPAddress("192.168.1.5"))
        #expect(try AddressPolicy(allow: ["Nas.LOCAL"]).permits(host: host, address: address) == isPermitted)
        #expect(try AddressPolicy(allow: ["nas.local."]).permits(host: host, address: address) == isPermitted)
    }

    @Test(arguments: ["b\u{FC}ro.local", "B\u{DC}RO.local.", "xn--bro-hoa.local"])
    func hostOutsideOfASCIIIsAllowedInEitherSpelling(entry: String) throws {
        let address = try #require(IPAddress("192.168.1.5"))
        #expect(try AddressPolicy(allow: [entry]).permits(host: "xn--bro-hoa.local", address: address))
    }

    @Test(arguments: [
        "", " ", "a b", "*.local", "nas.local:80", "http://nas", "10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0.0/x",
        "10.0.0.0/8/8", "10.0.0", "256.1.1.1",
        "10.0.0.256", "1.2.3.4.", "nas.local/24", "a..b", "\u{2603}.local", "[::1", "fe80::1%eth0", "10.0.0.0/-1",
        "127.1",
    ])
    func entryThatNamesNothingIsRefused(entry: String) throws {
        let error = try #require(throws: AddressPolicy.InvalidEntry.self) { try AddressPolicy(allow: ["ok", entry]) }
        #expect(error.entry == entry)
    }

    // MARK: Where this machine is

    private static let interfaces = [
        ("203.0.112.9", 20), ("2a00:1:2:3::9", 64), ("127.0.0.1", 8), ("45.1.2.3", 32), ("46.1.2.3", 0),
    ].compactMap { text, length in
        IPAddress(text).map { (address: $0, prefixLength: length) }
    }

    @Test(arguments: [
        // Its own addresses, and those of its networks
        ("203.0.112.9", false), ("203.0.112.10", false), ("203.0.127.255", false), ("2a00:1:2:3::9", false),
        ("2a00:1:2:3:ffff::", false), ("45.1.2.3", false),
        ("46.1.2.3", false), ("::ffff:203.0.112.9", false), ("64:ff9b::203.0.112.9", false),
        // Others
        ("203.0.128.0", true), ("203.0.111.255", true), ("2a00:1:2:4::", true), ("45.1.2.4", true), ("46.1.2.4", true),
        ("8.8.8.8", true), ("64:ff9b::8.8.8.8", true),
    ])
    func ownAddressesAndNetworksArePrivate(text: String, isPublic: Bool) throws {
        let address = try #require(IPAddress(text))
        let policy = try AddressPolicy(allow: ["nas.local"]).on(LocalNetworks(Self.interfaces))
        #expect(policy.isPublic(address) == isPublic && policy.permits(host: "a.example", address: address) == isPublic)
        #expect(policy.permits(host: "nas.local", address: address))
        #expect(
            try AddressPolicy(allow: [text]).on(LocalNetworks(Self.interfaces)).permits(
                host: "a.example", address: address))
        #expect(try AddressPolicy(allow: []).isPublic(address), "nobody has looked")
    }

    @Test(arguments: [
        ("255.255.240.0", 20), ("255.255.255.255", 32), ("0.0.0.0", 0), ("ffff:ffff:ffff:ffff::", 64),
        ("ffff:ffff:ffff:ffff:ff00::", 72), ("::", 0),
    ])
    func netmaskIsTheLengthOfAPrefix(mask: String, length: Int) throws {
        #expect(try #require(IPAddress(mask)).leadingOnes == length)
    }
}
