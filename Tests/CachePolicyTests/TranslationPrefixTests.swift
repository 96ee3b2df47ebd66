import CachePolicy
import Testing

/// Prefixes by which networks lead IPv6 to IPv4.
@Suite struct TranslationPrefixTests {
    /// Each length of RFC 6052 §2.2, with an address of the probe below it, and 10.0.0.1 and 8.8.4.4 (here 192.0.2.33,
    /// as in §2.4, would be private).
    private static let networks = [
        ("2a00:db8:c000:aa::", "2a00:db8:a00:1::", "2a00:db8:808:404::"),
        ("2a00:db8:1c0:0:aa::", "2a00:db8:10a:0:1::", "2a00:db8:108:804:4::"),
        ("2a00:db8:122:c000:0:aa00::", "2a00:db8:122:a00:0:100::", "2a00:db8:122:808:4:400::"),
        ("2a00:db8:122:3c0:0:aa::", "2a00:db8:122:30a:0:1::", "2a00:db8:122:308:8:404::"),
        ("2a00:db8:122:344:c0:0:aa00:0", "2a00:db8:122:344:a:0:100:0", "2a00:db8:122:344:8:804:400:0"),
        ("2a00:db8:122:344::c000:aa", "2a00:db8:122:344::a00:1", "2a00:db8:122:344::808:404"),
    ]

    private func policy(_ answers: String..., allow: [String] = [], interfaces: [(String, Int)] = []) throws
        -> AddressPolicy
    {
        let prefixes = try answers.flatMap { TranslationPrefix.announced(by: try #require(IPAddress($0))) }
        #expect(prefixes.count == answers.count, "\(answers)")
        let local = LocalNetworks(try interfaces.map { (try #require(IPAddress($0.0)), $0.1) })
        return try AddressPolicy(allow: allow).on(local, Set(prefixes))
    }

    @Test(arguments: networks) func whatIsTranslatedIsJudgedByTheAddressInIt(
        probe: String, inside: String, outside: String
    ) throws {
        let (inside, outside) = (try #require(IPAddress(inside)), try #require(IPAddress(outside)))
        let policy = try policy(probe)
        #expect(!policy.isPublic(inside) && policy.isPublic(outside))
        #expect(try AddressPolicy(allow: []).isPublic(inside), "nobody has asked")
        #expect(try self.policy(probe, allow: ["10.0.0.0/8"]).permits(host: "a.example", address: inside))
        #expect(try !self.policy(probe, interfaces: [("8.8.4.4", 32)]).isPublic(outside), "this machine's own")
    }

    @Test func eitherAddressOfTheProbeTellsTheSamePrefix() throws {
        let announced = try ["2a00:db8:122:344::c000:aa", "2a00:db8:122:344::c000:ab"].map {
            TranslationPrefix.announced(by: try #require(IPAddress($0)))
        }
        #expect(announced[0] == announced[1] && announced[0].count == 1)
    }

    @Test(arguments: [
        // What the probe is where nothing is translated, and what is none of it
        "192.0.0.170", "2a00:db8:122:344::c000:a9", "2a00:db8:122:344::a00:1", "::",
        // Bits 64 to 71 are 0 in all but the longest.
        "2a00:db8:122:344:1c0:0:aa00:0",
    ])
    func whatIsNoAddressOfTheProbeTellsNothing(answer: String) throws {
        #expect(TranslationPrefix.announced(by: try #require(IPAddress(answer))).isEmpty)
    }

    /// Who answers for the probe may lie: only the block that is for translation alone opens.
    @Test func privatePrefixStaysPrivateUnlessItIsForTranslationAlone() throws {
        #expect(try !policy("fd00:1:2:3::c000:aa").isPublic(#require(IPAddress("fd00:1:2:3::808:808"))))
        let own = try policy("64:ff9b:1::c000:aa")
        #expect(
            try own.isPublic(#require(IPAddress("64:ff9b:1::808:808")))
                && !own.isPublic(#require(IPAddress("64:ff9b:1::a00:1"))))
        #expect(try !own.isPublic(#require(IPAddress("64:ff9b:1:0:1::808:808"))), "another prefix")
        #expect(try !AddressPolicy(allow: []).isPublic(#require(IPAddress("64:ff9b:1::808:808"))))
    }
}
