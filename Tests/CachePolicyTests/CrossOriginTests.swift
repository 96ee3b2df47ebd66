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

    private static func preflight(_ fields: (String, String)...) -> FieldLines? {
        CrossOrigin.preflight(FieldLines([.init(name: "Access-Control-Request-Method", value: "GET")] + fields.map { .init(name: $0.0, value: $0.1) }))
    }

    @Test func plainOptionsIsNoPreflight() {
        #expect(CrossOrigin.preflight(FieldLines([.init(name: "Origin", value: "http://a.example")])) == nil)
    }

    @Test func preflightAllowsWhatPlayersSend() throws {
        let fields = try #require(Self.preflight())
        #expect(fields["Access-Control-Allow-Origin"] == "*")
        #expect(fields["Access-Control-Allow-Methods"] == "GET, HEAD, OPTIONS")
        #expect(fields["Access-Control-Allow-Headers"]?.contains("If-Range") == true)
        #expect(fields["Access-Control-Max-Age"] != nil)
        #expect(fields["Access-Control-Allow-Private-Network"] == nil)
    }

    @Test(arguments: [
        ("range", "range"), ("x-a , X-B,, range", "x-a, X-B, range"), ("", nil), ("a b", nil), ("x-a, b\"c", nil), (",", nil),
    ] as [(String, String?)])
    func preflightAllowsTheFieldsThatAreAskedFor(asked: String, allowed: String?) throws {
        let answer = try #require(Self.preflight(("Access-Control-Request-Headers", asked))?["Access-Control-Allow-Headers"])
        #expect(answer == allowed ?? "Range, If-Range, If-None-Match, If-Modified-Since, Cache-Control")
    }

    @Test(arguments: [("true", "true"), ("false", nil)] as [(String, String?)])
    func privateNetworkIsAllowedWhereItIsAskedFor(asked: String, allowed: String?) {
        #expect(Self.preflight(("Access-Control-Request-Private-Network", asked))?["Access-Control-Allow-Private-Network"] == allowed)
    }
}
