import CachePolicy
import HTTPModel
import Testing

@Suite struct ReferrerTests {
    private static let own = "http://127.0.0.1:7335"

    private func told(_ value: String, target: String) throws -> Referrer {
        let mounts = [try Mount(parsing: "/tv/=https://vod.example/a/")]
        return Referrer(value, for: try OriginURL(url: target), mounts: mounts) { $0.absolute.hasPrefix(Self.own) }
    }

    // Referrer Policy §3.7
    @Test(
        arguments: [
            // Its own page, in the proxy's form and in its own.
            (own + "/https/a.example/watch?v=1#t", "https://a.example/watch?v=1"),
            (own + "/https://a.example/x", "https://a.example/x"),
            ("https://a.example/watch", "https://a.example/watch"),
            // Another origin's.
            (own + "/https/b.example:8443/secret?token=1", "https://b.example:8443/"),
            ("https://b.example/secret", "https://b.example/"),
            ("http://b.example/secret", "http://b.example/"), ("https://a.example:444/x", "https://a.example:444/"),
            // Below a mount.
            (own + "/tv/page", "https://vod.example/"),
            // The proxy's own, and what is no URL.
            (own + "/", nil), (own + "/api/v1/resources", nil), (own + "/tv/../x", nil), ("about:blank", nil),
            ("1", nil), ("", nil),
            ("https://user:word@b.example/", nil),
        ] as [(String, String?)])
    func originIsToldOfThePage(value: String, expected: String?) throws {
        #expect(try told(value, target: "https://a.example/film.mp4") == expected.map(Referrer.page) ?? .none)
    }

    // What its user gave a program, in full, whatever the schemes; but for pages behind the proxy.
    @Test(arguments: ["https://a.example/film.mp4", "http://cdn.example/1.ts"])
    func programsPageIsNamedInFull(target: String) throws {
        func told(_ value: String) throws -> Referrer {
            Referrer(value, for: try OriginURL(url: target), isOfBrowser: false, mounts: []) {
                $0.absolute.hasPrefix(Self.own)
            }
        }
        #expect(try told("https://b.example/watch?v=1") == .page("https://b.example/watch?v=1"))
        #expect(try told("https://user:word@b.example/") == .none)
        #expect(try told(Self.own + "/api/v1/resources") == .none)
        #expect(try told(Self.own + "/http/b.example/secret") == .page("http://b.example/"))
    }

    @Test func nothingOfAPageThatCameByHTTPSGoesByHTTP() throws {
        #expect(try told(Self.own + "/https/a.example/watch", target: "http://a.example/film.mp4") == .none)
        #expect(
            try told(Self.own + "/http/a.example/watch", target: "http://a.example/film.mp4")
                == .page("http://a.example/watch"))
        #expect(
            try told(Self.own + "/tv/page?x", target: "https://vod.example/b/film.mp4")
                == .page("https://vod.example/a/page?x"))
    }

    @Test func redirectToAnotherOriginLeavesTheOriginAlone() {
        #expect(
            Referrer(redirected: "https://a.example/watch", to: "https://cdn.example/f") == .page("https://a.example/"))
        #expect(Referrer(redirected: "https://a.example/", to: "http://cdn.example/f") == .none)
        #expect(Referrer(redirected: "nonsense", to: "https://cdn.example/f") == .none)
    }
}
