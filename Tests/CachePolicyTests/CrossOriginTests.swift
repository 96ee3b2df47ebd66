import CachePolicy
import HTTPModel
import Testing

@Suite struct CrossOriginTests {
    private static let allow = ["nas.local", "192.168.1.0/24", "fd00::/8"]
    private static let evil = Requester.foreign("https://evil.example")

    @Test(
        arguments: [
            // Media of public origins anybody's page may read, and nothing else of them.
            (.own, true, true, .everyone), (evil, true, true, .everyone), (.foreign("null"), true, true, .everyone),
            (.foreign(nil), true, true, .everyone),
            (.own, true, false, .nobody(isPrivate: false)), (evil, true, false, .nobody(isPrivate: false)),
            (.foreign("http://nas.local"), true, false, .nobody(isPrivate: false)),
            // Pages that are listed may read all, and see the cache.
            (.trusted("https://p"), true, true, .only("https://p", showsCache: true)),
            (.trusted("https://p"), true, false, .only("https://p", showsCache: true)),
            (.trusted("https://p"), false, false, .only("https://p", showsCache: true)),
            // What is private, only pages of hosts that are allowed themselves.
            (.own, false, true, .nobody(isPrivate: true)), (evil, false, true, .nobody(isPrivate: true)),
            (.foreign("null"), false, true, .nobody(isPrivate: true)),
            (.foreign(nil), false, true, .nobody(isPrivate: true)),
            (.foreign(""), false, true, .nobody(isPrivate: true)),
            (.foreign("http://nas.local"), false, true, .only("http://nas.local", showsCache: false)),
            (.foreign("https://nas.local:8443"), false, false, .only("https://nas.local:8443", showsCache: false)),
            (.foreign("http://192.168.1.9"), false, true, .only("http://192.168.1.9", showsCache: false)),
            (.foreign("http://192.168.2.9"), false, true, .nobody(isPrivate: true)),
            (.foreign("http://[fd00::1]"), false, true, .only("http://[fd00::1]", showsCache: false)),
            (.foreign("http://8.8.8.8"), false, true, .nobody(isPrivate: true)),
            (.foreign("http://nas.local.evil.example"), false, true, .nobody(isPrivate: true)),
            (.foreign("http://evil.example/nas.local"), false, true, .nobody(isPrivate: true)),
            // No browser writes these.
            (.foreign("nas.local"), false, true, .nobody(isPrivate: true)),
            (.foreign("http://nas.local/"), false, true, .nobody(isPrivate: true)),
            (.foreign("http://nas.local, http://evil.example"), false, true, .nobody(isPrivate: true)),
            (.foreign("http://user@nas.local"), false, true, .nobody(isPrivate: true)),
            (.foreign("HTTP://nas.local"), false, true, .nobody(isPrivate: true)),
            (.foreign("ftp://nas.local"), false, true, .nobody(isPrivate: true)),
        ] as [(Requester, Bool, Bool, CrossOrigin)])
    func pageMayReadWhatItsHostMayFetch(requester: Requester, isPublic: Bool, isMedia: Bool, expected: CrossOrigin)
        throws
    {
        let policy = try AddressPolicy(allow: Self.allow)
        #expect(CrossOrigin(requester, isPublic: isPublic, isMedia: isMedia, policy: policy) == expected)
    }

    @Test func answerSaysWhoMayReadIt() {
        let exposed = { (pages: CrossOrigin) in pages.fields["Access-Control-Expose-Headers"] }
        #expect(CrossOrigin.everyone.fields["Access-Control-Allow-Origin"] == "*")
        #expect(CrossOrigin.everyone.fields["Vary"] == nil)
        #expect(
            exposed(.everyone) == "Accept-Ranges, Content-Length, Content-Range, ETag"
                && exposed(.only("http://a", showsCache: false)) == exposed(.everyone))
        #expect(exposed(.only("http://a", showsCache: true))?.hasSuffix(", Age, Cache-Status") == true)
        #expect(
            CrossOrigin.only("http://nas.local", showsCache: true).fields["Access-Control-Allow-Origin"]
                == "http://nas.local")
        #expect(CrossOrigin.only("http://nas.local", showsCache: true).fields["Vary"] == "Origin")
        #expect(CrossOrigin.nobody(isPrivate: false).fields == HeaderFields([.init(name: "Vary", value: "Origin")]))
        #expect(CrossOrigin.nobody(isPrivate: true).fields["Cross-Origin-Resource-Policy"] == "same-origin")
    }

    private static func preflight(
        _ fields: String..., from page: String = "https://page.example", host: String = "media.example",
        isOpen: Bool = true
    ) throws -> HeaderFields? {
        let request = try RequestHead.sample(
            ["Origin: \(page)", "Access-Control-Request-Method: GET"] + fields, method: "OPTIONS")
        return CrossOrigin.preflight(
            request, host: host, isOpen: isOpen, policy: try AddressPolicy(allow: allow),
            try WebOrigins(["https://player.example"]))
    }

    @Test func plainOptionsIsNoPreflight() throws {
        let plain = try RequestHead.sample(["Origin: http://a.example"], method: "OPTIONS")
        #expect(
            CrossOrigin.preflight(
                plain, host: "media.example", isOpen: true, policy: try AddressPolicy(allow: []), .none) == nil)
    }

    // Whatever is asked for.
    @Test(arguments: ["range", "x-a, range", "cookie", "cache-control"])
    func preflightAllowsWhatPlayersSend(asked: String) throws {
        let fields = try #require(try Self.preflight("Access-Control-Request-Headers: \(asked)"))
        #expect(fields["Access-Control-Allow-Origin"] == "*")
        #expect(fields["Access-Control-Allow-Methods"] == "GET, HEAD, OPTIONS")
        #expect(
            fields["Access-Control-Allow-Headers"]
                == "Range, If-Range, If-None-Match, If-Modified-Since, Accept, Authorization, "
                + "CMCD-Request, CMCD-Object, CMCD-Status, CMCD-Session")
        #expect(fields["Access-Control-Max-Age"] != nil)
        #expect(fields["Access-Control-Allow-Private-Network"] == nil)
    }

    @Test(
        arguments: [
            ("https://page.example", "media.example", true, "*"), ("https://page.example", "8.8.8.8", true, "*"),
            ("https://page.example", "[2001:4860::1]", true, "*"),
            // Named in `allow`, private, or opened by what a rule adds.
            ("https://page.example", "nas.local", true, nil), ("https://page.example", "127.0.0.1", true, nil),
            ("https://page.example", "10.0.0.1", true, nil),
            ("https://page.example", "192.168.1.5", true, nil), ("https://page.example", "[::1]", true, nil),
            ("https://page.example", "media.example", false, nil),
            ("null", "nas.local", true, nil), ("http://192.168.1.9", "nas.local", true, "http://192.168.1.9"),
            ("http://nas.local", "10.0.0.1", true, "http://nas.local"),
            ("http://nas.local", "media.example", false, "http://nas.local"),
            ("https://player.example", "nas.local", true, "https://player.example"),
            ("https://player.example", "media.example", false, "https://player.example"),
        ] as [(String, String, Bool, String?)])
    func pageMayAskForWhatItMayRead(page: String, host: String, isOpen: Bool, allowed: String?) throws {
        let fields = try #require(
            try Self.preflight("Access-Control-Request-Private-Network: true", from: page, host: host, isOpen: isOpen))
        #expect(fields["Access-Control-Allow-Origin"] == allowed)
        #expect(fields["Vary"]?.contains("Origin") == true)
        #expect(fields.lines.filter { $0.name.hasPrefix("Access-Control-") }.isEmpty == (allowed == nil))
    }

    /// Others do not reach this machine where a browser asks it first.
    @Test(
        arguments: [
            ("https://player.example", "true", "true"), ("https://player.example", "false", nil),
            ("https://page.example", "true", nil), ("http://nas.local", "true", nil),
        ] as [(String, String, String?)])
    func privateNetworkIsForPagesThatAreListed(page: String, asked: String, allowed: String?) throws {
        let fields = try #require(try Self.preflight("Access-Control-Request-Private-Network: \(asked)", from: page))
        #expect(fields["Access-Control-Allow-Private-Network"] == allowed)
        #expect(
            fields["Access-Control-Allow-Headers"]?.hasSuffix(", Cache-Control") == (page == "https://player.example"))
    }
}
