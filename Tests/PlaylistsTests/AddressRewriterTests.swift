import CachePolicy
import TestSupport
import Testing

@testable import Playlists

/// What rewriting is for: a client that resolves what it finds against its own URL arrives at the proxy's form of
/// what was meant.
@Suite struct AddressRewriterTests {
    /// RFC 3986 §5.4.1 and §5.4.2, and what goes beyond the root, to other hosts, into queries, and nowhere.
    static let references = [
        "g:h", "g", "./g", "g/", "/g", "//g", "?y", "g?y", "#s", "g#s", "g?y#s", ";x", "g;x", "g;x?y#s", "", ".", "./",
        "..", "../", "../g", "../..",
        "../../", "../../g", "../../../g", "../../../../g", "/./g", "/../g", "g.", ".g", "g..", "..g", "./../g",
        "./g/.", "g/./h", "g/../h", "g;x=1/./y",
        "g;x=1/../y", "g?y/./x", "g?y/../x", "g#s/../x", "//host/x", "//host:8443/x?q#f",
        "https://other.example/a/../b?c", "HTTP://Other.Example:80/x",
        "/a//b/../c", "a//b", "//", "x?y:z", "./x:y", "/x:y", "..?y", "?", "?a/../b", "/https/h/x",
        "../../../https/h/x", "%2e%2e/x", "a%2Fb", "a/%zz",
        "seg-$Number%05d$.m4s", "{name}/x.ts", "/$RepresentationID$/$$", "a/b/../../../../../../c", "data:text/plain,x",
        "skd://key", "urn:x:y", "mailto:a@b",
        "http://user:secret@host/x", "http:g", "localhost:8000/x", "#", "/",
    ]
    static let bases = [
        "http://a/b/c/d;p?q", "https://cdn.example/", "https://cdn.example/index.m3u8?token=a/b",
        "https://cdn.example:8443/a/b/", "http://[2001:db8::1]/x/y/z",
        "http://a/b/x.m3u8",
    ]
    static let mounted = ProxyForm.mounts(
        [
            Mount(path: "/tv/", origin: OriginURL("http://a/b/")),
            Mount(path: "/", origin: OriginURL("https://cdn.example/")),
        ], at: ProxyForm.proxy,
        otherwise: .local)
    static let mountedAlone = ProxyForm.mounts(
        [Mount(path: "/tv/", origin: OriginURL("http://a/b/c/"))], at: ProxyForm.proxy)

    @Test(arguments: bases) func clientsArriveAtTheProxysForm(base: String) throws {
        for form in [ProxyForm.local, Self.mounted, Self.mountedAlone] {
            // Asked for directly, behind a redirect within the origin, and behind one from elsewhere.
            for asked in [base, "https://cdn.example/other/index.m3u8", "http://elsewhere.example/x?y"] {
                for reference in Self.references {
                    try Self.check(reference, base: OriginURL(base), client: form(OriginURL(asked)), form)
                }
            }
        }
    }

    @Test func clientsArriveThereWithRandomReferences() throws {
        var random = SplitMix64.forTest("random references")
        let pieces = [
            "/", "//", ".", "..", "../", "./", "a", "b.ts", "?", "#", ":", "%41", "$Number$", "{$x}", "http://h",
            "https:", "\"", "&", ";", "=", "é", " ", "@", "\\",
        ]
        for _ in 0..<4000 {
            let reference = (0..<Int.random(in: 0...6, using: &random)).map { _ in
                pieces.randomElement(using: &random) ?? ""
            }.joined()
            let base = OriginURL(Self.bases.randomElement(using: &random) ?? ""),
                asked = OriginURL(Self.bases.randomElement(using: &random) ?? "")
            let form = [ProxyForm.local, Self.mounted].randomElement(using: &random) ?? .local
            try Self.check(Reference.text(Array(reference.utf8)), base: base, client: form(asked), form)
        }
    }

    /// Resolves both by the letter of the RFC.
    static func check(_ reference: String, base: OriginURL, client: OriginURL, _ form: ProxyForm) throws {
        var rewriter = AddressRewriter(AddressRewriter.Scope(origin: base, client: client), form: form, within: .large)
        let written = try rewriter.replacement(for: reference) ?? reference
        let meant = StrictURL(base.absolute).resolving(reference), found = StrictURL(client.absolute).resolving(written)
        guard let target = base.resolving(reference) else {
            #expect(written == reference, "what cannot be fetched stays: \(reference)")
            return
        }
        // The same resource, in the spelling that the proxy has for all URLs.
        #expect(try OriginURL(url: meant.text) == target, "\(reference) at \(base.absolute)")
        #expect(
            try OriginURL(url: found.text) == form(target),
            "\(reference) at \(base.absolute), written \(written) at \(client.absolute)")
        #expect(meant.fragment == found.fragment, "\(reference)")
    }

    private static func written(_ reference: String) -> String? {
        let base = OriginURL("http://a/b/c/d;p?q")
        var rewriter = AddressRewriter(
            AddressRewriter.Scope(origin: base, client: ProxyForm.local(base)), form: .local, within: .large)
        return (try? rewriter.replacement(for: reference)).flatMap(\.self)
    }

    @Test(arguments: ["g", "a/b.ts?x=1", "../c/g", "?y", "", "#s", "seg-$Number%05d$.m4s"])
    func whatIsRightStays(reference: String) {
        #expect(Self.written(reference) == nil)
    }

    @Test(arguments: [
        ("/g", "http://player.lan:7335/http/a/g"), ("//h/x#f", "http://player.lan:7335/http/h/x#f"),
        ("../../../g", "http://player.lan:7335/http/a/g"),
        ("https://h:8443/x?y=&z", "http://player.lan:7335/https/h:8443/x?y=&z"),
        ("/$Number%05d$", "http://player.lan:7335/http/a/$Number%05d$"),
        ("/{x}", "http://player.lan:7335/http/a/{x}"),
    ])
    func whatLeadsPastTheProxyIsWrittenInItsForm(reference: String, written: String) {
        #expect(Self.written(reference) == written)
    }

    // A mount that has the origin's path is the proxy's form; what it does not have stays the origin's own without
    // another form.
    @Test(arguments: [
        ("http://a/b/c/x", "http://player.lan:7335/tv/x"), ("http://a/b/x", "http://a/b/x"),
        ("https://a/b/c/x", "https://a/b/c/x"),
    ])
    func mountsHaveWhatLiesBelowThem(url: String, form: String) {
        #expect(Self.mountedAlone(OriginURL(url)).absolute == form)
    }

    @Test func mountAtTheRootNeverMeansThePathsOfTheProxyItself() {
        #expect(
            Self.mounted(OriginURL("https://cdn.example/https/h/x")).absolute
                == "http://player.lan:7335/https/cdn.example/https/h/x")
        #expect(Self.mounted(OriginURL("https://cdn.example/x")).absolute == "http://player.lan:7335/x")
    }
}
