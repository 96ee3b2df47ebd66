import CachePolicy
import HTTPModel
import Testing

/// RFC 9111 §3 for what is not media.
@Suite struct ShortStoringTests {
    private static func isStorable(
        _ status: Int, _ fields: HeaderFields, length: Int64? = 10, request: String? = nil,
        change: (inout ResolvedRule) -> Void = { _ in }
    ) -> Bool {
        var resolvedRule = ResolvedRule()
        change(&resolvedRule)
        let freshness = Freshness.of(fields, ResponseTimes(validatedAt: 1000), ttl: nil, now: 1000)
        return ShortStoring.isStorable(
            status: status, fields: fields, length: length, freshness,
            .init(RequestDirectives(cacheControl: request, pragma: nil)), resolvedRule)
    }

    /// 200 and 206 are media; 304, 412 and 416 are about the request, and those of RFC 6585 about the client or the
    /// network; 1xx is not final.
    @Test func anyFinalStatusWithALifetimeIsStored() {
        for status in 100..<700 {
            let isStored =
                (200..<600).contains(status) && ![200, 206, 304, 412, 416, 428, 429, 431, 511].contains(status)
            #expect(Self.isStorable(status, ["Cache-Control: max-age=10"]) == isStored, "\(status)")
        }
    }

    @Test(
        arguments: [
            // §4.2.1
            (["Cache-Control: max-age=10"], true), (["Cache-Control: max-age=0"], false),
            (["Expires: Thu, 01 Jan 1970 01:00:00 GMT"], true), (["Expires: 0"], false), ([], false),
            (["Cache-Control: public"], false),
            // §4.2.2: what media gets without a lifetime is not for errors.
            (["Last-Modified: Thu, 01 Jan 1970 00:00:00 GMT"], false),
            // §5.2.2.4, §5.2.2.5
            (["Cache-Control: max-age=10, no-cache"], false), (["Cache-Control: max-age=10, no-store"], false),
            // §4.1
            (["Cache-Control: max-age=10", "Vary: *"], false), (["Cache-Control: max-age=10", "Vary: Accept"], true),
            (["Cache-Control: max-age=10", "Content-Encoding: gzip"], true),
        ] as [(HeaderFields, Bool)])
    func itsOriginDecides(fields: HeaderFields, isStored: Bool) {
        #expect(Self.isStorable(404, fields) == isStored)
    }

    // RFC 9110 §15.1
    @Test func ruleBelievesWhatIsCacheableByDefault() {
        let believed = (200..<600).filter { Self.isStorable($0, []) { $0.storesHeuristically = true } }
        #expect(believed == [203, 204, 300, 301, 308, 404, 405, 410, 414, 501])
        #expect(!Self.isStorable(404, ["Cache-Control: no-store"]) { $0.storesHeuristically = true })
    }

    // §5.2.2.3
    @Test(arguments: [(404, true), (418, false), (499, false), (503, true)])
    func whatMustBeUnderstoodIs(status: Int, isStored: Bool) {
        #expect(Self.isStorable(status, ["Cache-Control: max-age=10, must-understand, no-store"]) == isStored)
    }

    @Test func othersMayForbidIt() {
        let fresh: HeaderFields = ["Cache-Control: max-age=10"]
        #expect(!Self.isStorable(404, fresh, request: "no-store"))
        #expect(Self.isStorable(404, fresh, request: "no-cache"))
        #expect(!Self.isStorable(404, fresh) { $0.bypasses = true })
        #expect(!Self.isStorable(404, fresh) { $0.largestStored = 9 })
        #expect(Self.isStorable(404, fresh, length: nil) && Self.isStorable(404, fresh, length: 65_536))
        #expect(!Self.isStorable(404, fresh, length: 65_537))
    }

    /// A rule that changes meanwhile counts.
    @Test func ruleOfTheMomentCounts() {
        let guessed = Freshness(lifetime: 10, age: 0, source: .heuristic)
        var rule = ResolvedRule()
        #expect(!ShortStoring.isReusable(status: 404, guessed, rule))
        rule.storesHeuristically = true
        #expect(ShortStoring.isReusable(status: 404, guessed, rule))
        #expect(!ShortStoring.isReusable(status: 500, guessed, rule))
        rule.bypasses = true
        #expect(!ShortStoring.isReusable(status: 404, guessed, rule))
    }

    @Test(
        arguments: [
            // Without `public`, credentials tell clients apart, those that have none included.
            (404, [], [], ["authorization", "cookie", "proxy-authorization"]),
            (404, ["Cache-Control: public"], [], []),
            (404, ["Cache-Control: public", "Vary: Accept, Cookie"], [], ["accept", "cookie"]),
            (401, ["Cache-Control: public"], [], ["authorization", "cookie", "proxy-authorization"]),
            (302, ["Vary: Accept"], ["Cookie: a"], ["accept", "authorization", "cookie", "proxy-authorization"]),
        ] as [(Int, HeaderFields, HeaderFields, [String])])
    func clientsWithOtherCredentialsAreOthers(
        status: Int, response: HeaderFields, request: HeaderFields, names: [String]
    ) {
        let variant = Variant(ofShort: response, status: status, request: request) { "#" + $0 }
        #expect(variant.fields.map(\.name) == names)
        #expect(variant.of(request) { "#" + $0 } == variant)
        if names.contains("authorization") {
            #expect(variant.of(["Authorization: x"]) { "#" + $0 } != variant)
        }
    }
}
