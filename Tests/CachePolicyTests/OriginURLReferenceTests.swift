import TestSupport
import Testing

@testable import CachePolicy

@Suite struct OriginURLReferenceTests {
    // RFC 3986 §5.4.1 and §5.4.2, with a base that can be fetched, and without fragments.
    @Test(arguments: [
        ("g:h", nil), ("g", "http://a/b/c/g"), ("./g", "http://a/b/c/g"), ("g/", "http://a/b/c/g/"),
        ("/g", "http://a/g"), ("//g", "http://g/"),
        ("?y", "http://a/b/c/d;p?y"), ("g?y", "http://a/b/c/g?y"), ("#s", "http://a/b/c/d;p?q"),
        ("g#s", "http://a/b/c/g"), ("g?y#s", "http://a/b/c/g?y"),
        (";x", "http://a/b/c/;x"), ("g;x", "http://a/b/c/g;x"), ("g;x?y#s", "http://a/b/c/g;x?y"),
        ("", "http://a/b/c/d;p?q"), (".", "http://a/b/c/"),
        ("./", "http://a/b/c/"), ("..", "http://a/b/"), ("../", "http://a/b/"), ("../g", "http://a/b/g"),
        ("../..", "http://a/"), ("../../", "http://a/"),
        ("../../g", "http://a/g"), ("../../../g", "http://a/g"), ("../../../../g", "http://a/g"),
        ("/./g", "http://a/g"), ("/../g", "http://a/g"),
        ("g.", "http://a/b/c/g."), (".g", "http://a/b/c/.g"), ("g..", "http://a/b/c/g.."), ("..g", "http://a/b/c/..g"),
        ("./../g", "http://a/b/g"),
        ("./g/.", "http://a/b/c/g/"), ("g/./h", "http://a/b/c/g/h"), ("g/../h", "http://a/b/c/h"),
        ("g;x=1/./y", "http://a/b/c/g;x=1/y"),
        ("g;x=1/../y", "http://a/b/c/y"), ("g?y/./x", "http://a/b/c/g?y/./x"), ("g?y/../x", "http://a/b/c/g?y/../x"),
        ("g#s/../x", "http://a/b/c/g"),
        ("http:g", nil),
        // Beyond the RFC's list.
        ("https://b:8443/x/../y?z", "https://b:8443/y?z"), ("HTTP://b", "http://b/"), ("//b:80/x", "http://b/x"),
        ("/a//b/../c", "http://a/a//c"), ("//", nil),
        ("/x:y", "http://a/x:y"), ("x?y:z", "http://a/b/c/x?y:z"), ("./x:y", "http://a/b/c/x:y"),
        (" g ", "http://a/b/c/g"), ("a b", nil), ("\u{E9}", "http://a/b/c/%C3%A9"),
        ("/\u{301}", "http://a/%CC%81"), ("http://u@b/", nil), ("..?y", "http://a/b/?y"), ("?", "http://a/b/c/d;p?"),
    ])
    func referencesAreResolved(reference: String, url: String?) throws {
        #expect(try OriginURL(url: "http://a/b/c/d;p?q").resolving(reference)?.absolute == url)
    }

    @Test func baseWithoutAPathIsItsRoot() throws {
        #expect(try OriginURL(url: "http://a").resolving("g")?.absolute == "http://a/g")
        #expect(try OriginURL(url: "http://a?x/y").resolving("g")?.absolute == "http://a/g")
    }

    // What is plain is joined, all else parsed: both have to come to the same.
    @Test(arguments: [1, 2, 3] as [UInt64])
    func referencesThatNeedNoParsingMeanTheSameParsed(seed: UInt64) throws {
        var dice = SplitMix64(seed: seed)
        let pieces = [
            "a", "s1.ts", ".", "..", "/", "/", "?", "=", "&", "#", ":", "%41", "~", "_-", ";", " ", "é", "//",
        ]
        func text(_ most: Int) -> String {
            (0..<Int.random(in: 0...most, using: &dice)).map { _ in pieces.randomElement(using: &dice) ?? "" }.joined()
        }
        for _ in 0..<1000 {
            let host = ["a", "a:80", "a:8080", "[::1]:81"].randomElement(using: &dice) ?? ""
            guard let base = try? OriginURL(url: "http://\(host)/" + text(7)) else { continue }
            let reference = text(7)
            #expect(base.resolving(reference) == base.resolvingAny(reference), "seed \(seed): \(base) \(reference)")
            let written = [reference, "http://\(host)/" + text(3), "http://\(host)" + reference]
            for other in written.compactMap({ try? OriginURL(url: $0) }) where base.leads(by: reference, to: other) {
                #expect(base.resolving(reference) == other, "seed \(seed): \(base) \(reference)")
            }
        }
    }

    @Test(arguments: [
        ("s.ts?x=1", "http://a/b/s.ts?x=1", true), ("d/s.ts", "http://a/b/d/s.ts", true),
        ("/s.ts", "http://a/s.ts", true),
        ("https://h:81/s;1", "https://h:81/s;1", true), ("s.ts", "http://a/b/t.ts", false),
        ("s.ts", "http://a/s.ts", false), ("s.ts", "https://a/b/s.ts", false), ("/s.ts", "http://b/s.ts", false),
        ("//a/s.ts", "http://a/a/s.ts", false), ("/x/../s.ts", "http://a/x/../s.ts", false),
        ("http://a/./s", "http://a/./s", false), ("http:/s", "http://a/b/http:/s", false),
    ])
    func usualReferencesAreComparedWithoutResolvingThem(reference: String, url: String, leads: Bool) throws {
        let base = try OriginURL(url: "http://a/b/c?q")
        #expect(try base.leads(by: reference, to: OriginURL(url: url)) == leads)
    }
}
