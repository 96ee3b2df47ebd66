import CachePolicy
import HTTPModel
import Testing

@Suite struct SiteFieldsTests {
    @Test(arguments: [
        ("Content-Security-Policy", true), ("content-security-policy-report-only", true),
        ("Service-Worker-Allowed", true), ("Clear-Site-Data", true),
        ("Alt-Svc", true), ("Refresh", true), ("Strict-Transport-Security", true), ("NEL", true), ("Report-To", true),
        ("Public-Key-Pins", true),
        ("WWW-Authenticate", true), ("Authentication-Info", true), ("Timing-Allow-Origin", true),
        ("Cross-Origin-Resource-Policy", true),
        ("Set-Cookie", true), ("X-Content-Type-Options", true), ("Access-Control-Allow-Origin", true),
        ("ACCESS-CONTROL-X", true),
        ("Content-Type", false), ("ETag", false), ("Vary", false), ("X-Access-Control-Allow-Origin", false),
        ("", false),
    ])
    func originSpeaksForItsSite(name: String, isOfSite: Bool) {
        #expect(SiteFields.isOfOrigin(name) == isOfSite)
    }

    @Test(arguments: [
        ("Origin", true), ("Referer", true), ("Forwarded", true), ("X-Forwarded-For", true),
        ("x-forwarded-PROTO", true), ("X-HTTP-Method", true),
        ("X-HTTP-Method-Override", true), ("X-Method-Override", true), ("X-Original-URL", true),
        ("X-Rewrite-URL", true), ("User-Agent", false),
        ("Accept", false), ("X-Forwarded", false), ("Authorization", false),
    ])
    func clientTellsOfThePage(name: String, isOfClient: Bool) {
        #expect(SiteFields.isOfClient(name) == isOfClient)
    }

    @Test(arguments: [
        CrossOrigin.everyone, .only("http://nas.local", showsCache: true), .nobody(isPrivate: true),
        .nobody(isPrivate: false),
    ])
    func pathFormConfinesWhatCanRunWhoeverMayReadIt(pages: CrossOrigin) {
        for (type, isConfined) in [
            ("text/html", true), ("image/svg+xml", true), ("video/mp4", false), ("image/png", false),
        ] {
            let fields = SiteFields.inPathForm(
                ContentSafety(HeaderFields([.init(name: "Content-Type", value: type)])), readableBy: pages)
            #expect(
                fields["Content-Security-Policy"] == (isConfined ? "sandbox" : nil)
                    && fields["X-Content-Type-Options"] == "nosniff")
            #expect(fields.lines.dropFirst(isConfined ? 2 : 1) == pages.fields.lines[...])
        }
    }

    @Test(arguments: [
        (["https://a/x/"], false, true), (["https://a/x/", "https://a/y/"], false, true),
        (["https://a/x/"], true, false), ([], false, false),
        (["https://a/", "https://b/"], false, false), (["https://a/", "http://a/"], false, false),
        (["https://a/", "https://a:8443/"], false, false),
    ])
    func mountsOfOneOriginAreOneSite(origins: [String], anyOrigin: Bool, isOneSite: Bool) throws {
        var policy = ProxyPolicy()
        policy.servesAnyOrigin = anyOrigin
        policy.mounts = try origins.enumerated().map { Mount(path: "/\($0)/", origin: try OriginURL(url: $1)) }
        #expect(policy.isOneSite == isOneSite)
    }

    @Test(
        arguments: [
            ([], .own), (["Origin: http://127.0.0.1:7335"], .own), (["Origin: HTTPS://127.0.0.1:7335"], .own),
            (["Sec-Fetch-Site: same-origin"], .own),
            (["Sec-Fetch-Site: none"], .own), (["Referer: https://evil.example/"], .own),
            (["Origin: null"], .foreign("null")), (["Origin: http://127.0.0.1"], .foreign("http://127.0.0.1")),
            (["Origin: http://127.0.0.1:7336"], .foreign("http://127.0.0.1:7336")),
            (["Origin: http://localhost:7335"], .foreign("http://localhost:7335")),
            (["Origin: "], .foreign("")), (["Sec-Fetch-Site: cross-site"], .foreign(nil)),
            (["Sec-Fetch-Site: same-site"], .foreign(nil)),
            (["Origin: http://127.0.0.1:7335", "Sec-Fetch-Site: cross-site"], .foreign("http://127.0.0.1:7335")),
            (["Sec-Fetch-Site: cross-site", "Referer: https://a.example/x?y"], .foreign("https://a.example")),
            (["Origin: https://player.example", "Sec-Fetch-Site: cross-site"], .trusted("https://player.example")),
            (["Origin: https://player.example"], .trusted("https://player.example")),
            (["Origin: http://player.example"], .foreign("http://player.example")),
            (["Sec-Fetch-Site: cross-site", "Referer: https://player.example/x"], .trusted("https://player.example")),
            (["Origin: null", "Sec-Fetch-Site: cross-site", "Referer: https://player.example/x"], .foreign("null")),
        ] as [([String], Requester)])
    func requesterIsWhoTheBrowserSays(fields: [String], expected: Requester) throws {
        #expect(Requester(try RequestHead.sample(fields), try WebOrigins(["https://player.example"])) == expected)
    }

    @Test func originsOfPagesAreReadAsTheyAreWritten() throws {
        for text in ["https://player.example", "https://PLAYER.example/", "https://player.example:443"] {
            #expect(
                Requester(try RequestHead.sample(["Origin: https://player.example"]), try WebOrigins([text]))
                    == .trusted("https://player.example"), "\(text)")
        }
        for text in [
            "", "*", "null", "player.example", "https://player.example/path", "https://a@player.example",
            "ftp://player.example",
        ] {
            #expect(throws: RuleError.self, "\(text)") { try WebOrigins([text]) }
        }
    }
}

extension RequestHead {
    /// Of a request to 127.0.0.1:7335.
    static func sample(_ fields: [String], method: String = "GET") throws -> RequestHead {
        let bytes = Array(
            (["\(method) / HTTP/1.1", "Host: 127.0.0.1:7335"] + fields + ["", ""]).joined(separator: "\r\n").utf8)
        guard case .complete(let head, _) = bytes.withUnsafeBytes({ RequestParser.parse($0, limits: RequestLimits()) })
        else { throw BadSample() }
        return head
    }

    struct BadSample: Error {}
}
