import CachePolicy
import HTTPModel
import Testing

@Suite struct CrossOriginTests {
    private static let allow = ["nas.local", "192.168.1.0/24", "fd00::/8"]

    @Test(arguments: [
        // What is public, anybody's page may read.
        (nil, true, .everyone), ("https://evil.example", true, .everyone), ("null", true, .everyone),
        // What is private, only pages of hosts that are allowed themselves.
        (nil, false, .nobody), ("https://evil.example", false, .nobody), ("null", false, .nobody), ("", false, .nobody),
        ("http://nas.local", false, .only("http://nas.local")), ("https://nas.local:8443", false, .only("https://nas.local:8443")),
        ("http://192.168.1.9", false, .only("http://192.168.1.9")), ("http://192.168.2.9", false, .nobody), ("http://[fd00::1]", false, .only("http://[fd00::1]")),
        ("http://8.8.8.8", false, .nobody), ("http://nas.local.evil.example", false, .nobody), ("http://evil.example/nas.local", false, .nobody),
        // No browser writes these.
        ("nas.local", false, .nobody), ("http://nas.local/", false, .nobody), ("http://nas.local, http://evil.example", false, .nobody),
        ("http://user@nas.local", false, .nobody), ("HTTP://nas.local", false, .nobody), ("ftp://nas.local", false, .nobody),
    ] as [(String?, Bool, CrossOrigin)])
    func pageMayReadWhatItsHostMayFetch(origin: String?, isPublic: Bool, expected: CrossOrigin) throws {
        #expect(CrossOrigin(origin: origin, isPublic: isPublic, policy: try AddressPolicy(allow: Self.allow)) == expected)
    }

    @Test func answerSaysWhoMayReadIt() {
        #expect(CrossOrigin.everyone.fields["Access-Control-Allow-Origin"] == "*")
        #expect(CrossOrigin.everyone.fields["Vary"] == nil)
        #expect(CrossOrigin.everyone.fields["Access-Control-Expose-Headers"]?.contains("Content-Range") == true)
        #expect(CrossOrigin.only("http://nas.local").fields["Access-Control-Allow-Origin"] == "http://nas.local")
        #expect(CrossOrigin.only("http://nas.local").fields["Vary"] == "Origin")
        #expect(CrossOrigin.nobody.fields == FieldLines([.init(name: "Vary", value: "Origin")]))
    }

    private static func preflight(
        _ fields: (String, String)..., from page: String = "https://page.example", host: String = "media.example", isOpen: Bool = true
    ) throws -> FieldLines? {
        let asked = [("Origin", page), ("Access-Control-Request-Method", "GET")] + fields
        return CrossOrigin.preflight(
            FieldLines(asked.map { .init(name: $0.0, value: $0.1) }), host: host, isOpen: isOpen, policy: try AddressPolicy(allow: allow))
    }

    @Test func plainOptionsIsNoPreflight() throws {
        let plain = FieldLines([.init(name: "Origin", value: "http://a.example")])
        #expect(CrossOrigin.preflight(plain, host: "media.example", isOpen: true, policy: try AddressPolicy(allow: [])) == nil)
    }

    // Whatever is asked for.
    @Test(arguments: ["range", "x-a, range", "cookie", "", "a b"])
    func preflightAllowsWhatPlayersSend(asked: String) throws {
        let fields = try #require(try Self.preflight(("Access-Control-Request-Headers", asked)))
        #expect(fields["Access-Control-Allow-Origin"] == "*")
        #expect(fields["Access-Control-Allow-Methods"] == "GET, HEAD, OPTIONS")
        #expect(
            fields["Access-Control-Allow-Headers"] == "Range, If-Range, If-None-Match, If-Modified-Since, Cache-Control, Accept, Authorization")
        #expect(fields["Access-Control-Max-Age"] != nil)
        #expect(fields["Access-Control-Allow-Private-Network"] == nil)
    }

    @Test(arguments: [
        ("https://page.example", "media.example", true, "*"), ("https://page.example", "8.8.8.8", true, "*"),
        ("https://page.example", "[2001:4860::1]", true, "*"),
        // Named in `allow`, private, or opened by what a rule adds.
        ("https://page.example", "nas.local", true, nil), ("https://page.example", "127.0.0.1", true, nil), ("https://page.example", "10.0.0.1", true, nil),
        ("https://page.example", "192.168.1.5", true, nil), ("https://page.example", "[::1]", true, nil), ("https://page.example", "media.example", false, nil),
        ("null", "nas.local", true, nil), ("http://192.168.1.9", "nas.local", true, "http://192.168.1.9"),
        ("http://nas.local", "10.0.0.1", true, "http://nas.local"),
        ("http://nas.local", "media.example", false, "http://nas.local"),
    ] as [(String, String, Bool, String?)])
    func pageMayAskForWhatItMayRead(page: String, host: String, isOpen: Bool, allowed: String?) throws {
        let fields = try #require(try Self.preflight(("Access-Control-Request-Private-Network", "true"), from: page, host: host, isOpen: isOpen))
        #expect(fields["Access-Control-Allow-Origin"] == allowed)
        #expect(fields["Vary"]?.contains("Origin") == true)
        #expect(fields.lines.filter { $0.name.hasPrefix("Access-Control-") }.isEmpty == (allowed == nil))
        #expect(fields["Access-Control-Allow-Private-Network"] == allowed.map { _ in "true" })
    }

    @Test(arguments: [("true", "true"), ("false", nil)] as [(String, String?)])
    func privateNetworkIsAllowedWhereItIsAskedFor(asked: String, allowed: String?) throws {
        #expect(try Self.preflight(("Access-Control-Request-Private-Network", asked))?["Access-Control-Allow-Private-Network"] == allowed)
    }
}
