import CachePolicy
import HTTPModel
import TestSupport
import Testing

/// RFC 9111 §4.1
@Suite struct VariantTests {
    private static func variant(
        _ response: HeaderFields, _ request: HeaderFields, _ terms: CacheTerms = .private
    ) -> Variant {
        Variant(response: response, request: request, terms) { "#\($0.utf8.count)" }
    }

    @Test(
        arguments: [
            ([], [], []), ([], ["Accept-Language: de"], []), (["Vary: "], ["Accept-Language: de"], []),
            (["Vary: Accept-Language"], ["accept-language: de"], [("accept-language", "de")]),
            (["Vary: accept-language"], [], [("accept-language", nil)]),
            // In the order of their names, each once, from however many lines.
            (
                ["Vary: X-B, x-a ,X-B", "vary: ,X-C"], ["X-A: 1", "X-B: 2", "X-C: 3"],
                [("x-a", "1"), ("x-b", "2"), ("x-c", "3")]
            ),
            // Empty is not absent.
            (["Vary: X-A, X-B"], ["X-A: "], [("x-a", ""), ("x-b", nil)]),
            // Lists: white space, empty elements and the division into lines do not matter.
            (["Vary: Accept"], ["Accept: a ,b,, c", "Accept: d"], [("accept", "a,b,c,d")]),
            (["Vary: Accept"], ["Accept: a;x=\"1 , 2\" ,b"], [("accept", "a;x=\"1 , 2\" ,b")]),
            // Other fields stay as they are.
            (["Vary: User-Agent"], ["User-Agent: A (B,  C), D "], [("user-agent", "A (B,  C), D")]),
            // What this proxy says itself, alike in all requests, selects nothing.
            (
                ["Vary: Accept-Encoding, Range, If-Range, Host, Connection, Content-Length, Origin"],
                ["Accept-Encoding: identity", "Origin: https://a"],
                [("origin", "https://a")]
            ),
            // Credentials and long values stand as fingerprints.
            (["Vary: Cookie"], ["Cookie: a=b"], [("cookie", " #3")]),
            (
                ["Vary: X-A"], ["X-A: \(String(repeating: "a", count: 256))"],
                [("x-a", String(repeating: "a", count: 256))]
            ),
            (["Vary: X-A"], ["X-A: \(String(repeating: "a", count: 257))"], [("x-a", " #257")]),
            // What credentials opened is for whoever has them, unless it is public.
            ([], ["Authorization: Basic eA=="], [("authorization", " #10")]),
            (["Cache-Control: max-age=5, public"], ["Authorization: Basic eA=="], []),
            (
                ["Cache-Control: public", "Vary: Authorization"], ["Authorization: Basic eA=="],
                [("authorization", " #10")]
            ),
            (["Vary: Authorization"], [], [("authorization", nil)]),
            ([], ["Cookie: a=b"], [("cookie", " #3")]), (["Cache-Control: public"], ["Cookie: a=b"], []),
            ([], ["cookie: a=b", "authorization: x"], [("authorization", " #1"), ("cookie", " #3")]),
        ] as [(HeaderFields, HeaderFields, [(String, String?)])])
    func fieldsThatSelectedAreKept(response: HeaderFields, request: HeaderFields, fields: [(String, String?)]) {
        let variant = Self.variant(response, request)
        #expect(variant == Variant(fields.map { .init(name: $0.0, value: $0.1) }))
        #expect(variant.fields.map(\.name) == fields.map(\.0))
        #expect(variant.fields.isEmpty == fields.isEmpty)
    }

    @Test(
        arguments: [
            (["Accept: a, b", "X-A: 1"], true), (["X-A: 1", "ACCEPT: a", "Accept: b", "X-B: 2"], true),
            (["Accept: a, b"], false), (["Accept: a, b", "X-A: "], false),
            (["Accept: b, a", "X-A: 1"], false), (["Accept: a, b", "X-A: 2"], false),
        ] as [(HeaderFields, Bool)])
    func requestMatchesWithTheSameValues(request: HeaderFields, matches: Bool) {
        let variant = Self.variant(["Vary: Accept, X-A"], ["Accept: a,b", "X-A: 1"])
        #expect((variant.of(request) { "#\($0.utf8.count)" } == variant) == matches)
    }

    // RFC 9111 §3.5: what allows a shared cache to store what credentials opened lets it serve that to all.
    @Test(
        arguments: [
            ([], ["authorization", "cookie"]), (["Cache-Control: public"], []), (["Cache-Control: s-maxage=5"], []),
            (["Cache-Control: must-revalidate"], ["cookie"]),
            (["Cache-Control: proxy-revalidate"], ["authorization", "cookie"]),
            (["CDN-Cache-Control: must-revalidate", "Cache-Control: public"], ["cookie"]),
            (["CDN-Cache-Control: public"], []),
            (["Cache-Control: public", "Vary: Cookie, Authorization"], ["authorization", "cookie"]),
            (["Cache-Control: must-revalidate", "Vary: Authorization"], ["authorization", "cookie"]),
        ] as [(HeaderFields, [String])])
    func sharedResponseIsSelectedByNoCredentials(response: HeaderFields, names: [String]) {
        let request: HeaderFields = ["Authorization: Basic eA==", "Cookie: a=b"]
        #expect(Self.variant(response, request, .shared).fields.map(\.name) == names)
        let isPublic = CacheControl(parsing: response["Cache-Control"]).isPublic && response["Vary"] == nil
        #expect(Self.variant(response, request).fields.map(\.name) == (isPublic ? [] : ["authorization", "cookie"]))
    }

    // RFC 9110 §12.5.4, §12.4.2
    @Test(
        arguments: [
            ("de", "de"), ("DE-de", "de-de"), (" de , en ", "de,en"), ("en,de", "de,en"), ("en, de;q=1", "de,en"),
            ("de;q=1.0,en;q=1.000", "de,en"), ("de;q=1.", "de"), ("de ; Q=0.8", "de;q=0.8"),
            ("en;q=0.80,de;q=0.800", "de;q=0.8,en;q=0.8"), ("fr;q=0.2,en;q=0.9,de", "de,en;q=0.9,fr;q=0.2"),
            ("*;q=0.001, de", "de,*;q=0.001"), ("*;q=0, de", "de,*;q=0"), ("*;q=0.000, de", "de,*;q=0"),
            ("de,,de,DE", "de"), ("de;q=0.05", "de;q=0.05"), ("de;q=0.5,de", "de,de;q=0.5"), ("", ""),
            // What is malformed stays as it is.
            ("EN;q=2,de", "EN;q=2,de"), ("EN;q=1.1,de", "EN;q=1.1,de"), ("EN;q=.5, de", "EN;q=.5,de"),
            ("EN;q=0.1234", "EN;q=0.1234"), ("EN;q", "EN;q"), ("EN;x=1, de", "EN;x=1,de"), ("E_N, de", "E_N,de"),
            ("EN;q=0.5;x=1", "EN;q=0.5;x=1"), ("EN;q=0.x", "EN;q=0.x"), ("\"EN\" ,de", "\"EN\" ,de"), (";q=1", ";q=1"),
        ] as [(String, String)])
    func languagesOfTheSameMeaningSelectTheSame(field: String, normalized: String) {
        let variant = Self.variant(["Vary: Accept-Language"], ["Accept-Language: \(field)"])
        #expect(variant == Variant([.init(name: "accept-language", value: normalized)]))
        #expect(variant == Variant([.init(stored: "accept-language", value: field.isEmpty ? field : normalized)]))
        #expect(variant.of(["Accept-Language: \(normalized)"]) { $0 } == variant)
    }

    /// To put 60 KB in order would keep a loop busy for 30 ms. A long value stands for itself, as a fingerprint.
    @Test func longValueIsNotPutInOrder() {
        func read(_ count: Int) -> (values: [String], variant: Variant, field: String) {
            let field = (0..<count).map { "l\(99_999 - $0);q=0.5" }.joined(separator: " ,")
            var values: [String] = []
            let variant = Variant(
                response: ["Vary: Accept-Language"], request: ["Accept-Language: \(field)"]
            ) {
                values.append($0)
                return "#"
            }
            return (values, variant, field)
        }
        let long = read(4000)
        #expect(long.field.utf8.count > 50_000 && long.values == [long.field])
        #expect(long.variant == Variant([.init(name: "accept-language", value: " #")]))
        let short = read(70)
        #expect(short.field.utf8.count < 1024 && short.values.count == 1 && short.values != [short.field])
    }

    // Other lists mean what their order says.
    @Test func orderOfOtherListsStays() {
        let variant = Self.variant(["Vary: Accept"], ["Accept: b, A"])
        #expect(variant == Variant([.init(name: "accept", value: "b,A")]))
    }

    @Test func storedValueOfAnEarlierVersionIsComparedInTheNewForm() {
        #expect(
            Variant.Field(stored: "accept-language", value: "EN,de;q=1.0")
                == .init(name: "accept-language", value: "de,en"))
        for value in [" #3", nil, "EN;q=2"] as [String?] {
            #expect(
                Variant.Field(stored: "accept-language", value: value) == .init(name: "accept-language", value: value))
        }
        #expect(Variant.Field(stored: "cookie", value: " #3") == .init(name: "cookie", value: " #3"))
    }

    @Test func valuesThatOnlyUnicodeCallsEqualDiffer() {
        #expect(Self.variant(["Vary: X-A"], ["X-A: \u{E9}"]) != Self.variant(["Vary: X-A"], ["X-A: e\u{301}"]))
    }

    @Test(
        arguments: [
            ([], "https://a/b "), ([("accept", "a,b")], "https://a/b accept=a%2Cb"),
            ([("x-a", nil)], "https://a/b x-a"), ([("x-a", "")], "https://a/b x-a="),
            ([("x-b", "=&%20 \u{E9}"), ("x-a", nil)], "https://a/b x-a&x-b=%3D%26%2520%20%C3%A9"),
            ([("a&b=\u{E9}", "1")], "https://a/b a%26b%3D%C3%A9=1"),
        ] as [([(String, String?)], String)])
    func variantKeyIsTheURLAndTheFields(fields: [(String, String?)], key: String) {
        #expect(
            Variant(fields.map { .init(name: $0.0, value: $0.1) }).variantKey(of: CacheKey(text: "https://a/b")).text
                == key)
    }

    @Test func noTwoSelectionsShareAKey() {
        var random = SplitMix64.forTest("variantKeys")
        let names = ["a", "b", "a=", "a&b", "b%3D", "&", "a b"]
        let values: [String?] = [nil, "", "=", "&", "a&b", "&b=", "%26", "b", " ", "\u{E9}"]
        var known: [String: Variant] = [:]
        for _ in 0..<5000 {
            let count = Int.random(in: 0...3, using: &random)
            let fields = Variant(
                names.shuffled(using: &random).prefix(count).map {
                    .init(name: $0, value: values.randomElement(using: &random) ?? nil)
                })
            let key = fields.variantKey(of: CacheKey(text: "https://a/")).text
            #expect(key.utf8.allSatisfy { $0 < 0x80 })
            #expect(known.updateValue(fields, forKey: key) ?? fields == fields, "\(key)")
        }
        #expect(known.count > 500)
    }
}
