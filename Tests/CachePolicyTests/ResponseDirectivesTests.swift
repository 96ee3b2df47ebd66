import CachePolicy
import HTTPModel
import Testing

/// RFC 9111 §5.2.2, for shared and for private caches.
@Suite struct ResponseDirectivesTests {
    private static let fresh = Freshness(lifetime: 100, age: 40, source: .explicit)
    private static let stale = Freshness(lifetime: 10, age: 40, source: .explicit)

    private static func reuse(
        _ fields: HeaderFields, _ terms: CacheTerms, request: String? = nil, _ freshness: Freshness
    ) -> Reuse {
        .decide(
            RequestDirectives(cacheControl: request, pragma: nil), response: ResponseDirectives(fields, terms).obeyed,
            freshness, isOffline: false)
    }

    // §5.2.2.8, §5.2.2.10: neither the client nor stale-while-revalidate makes it play stale.
    @Test(
        arguments: [
            (["Cache-Control: proxy-revalidate"], "Cache-Control: proxy-revalidate"),
            (["Cache-Control: proxy-revalidate, stale-while-revalidate=100"], "Cache-Control: proxy-revalidate"),
            (["Cache-Control: s-maxage=10"], "Cache-Control: s-maxage"),
            (["Cache-Control: s-maxage=10, stale-while-revalidate=100, stale-if-error=100"], "Cache-Control: s-maxage"),
            (
                ["CDN-Cache-Control: proxy-revalidate", "Cache-Control: max-age=5"],
                "CDN-Cache-Control: proxy-revalidate"
            ),
        ] as [(HeaderFields, String)])
    func sharedCacheDoesNotPlayStaleWhatMustBeRevalidated(fields: HeaderFields, rule: String) {
        #expect(Self.reuse(fields, .shared, request: "max-stale", Self.stale) == .validate(.stale))
        #expect(Self.reuse(fields, .shared, Self.stale) == .validate(.stale))
        #expect(Self.reuse(fields, .shared, Self.fresh) == .fresh)
        #expect(Self.reuse(fields, .private, request: "max-stale", Self.stale) == .stale(revalidates: false))
        #expect(ResponseDirectives(fields, .shared).ruleAgainstStale == rule)
        #expect(ResponseDirectives(fields, .private).ruleAgainstStale == nil)
        for (terms, use) in [(CacheTerms.shared, Reuse.OnError.refusedByOrigin), (.private, .serve)] {
            #expect(
                Reuse.onError(
                    RequestDirectives(), response: ResponseDirectives(fields, terms).obeyed, Self.stale,
                    isDisconnected: true, .nothing, isKept: false) == use)
        }
    }

    @Test(
        arguments: [
            (["Cache-Control: no-cache, must-revalidate"], "Cache-Control: no-cache"),
            (["Cache-Control: must-revalidate"], "Cache-Control: must-revalidate"), (["Cache-Control: max-age=5"], nil),
            ([], nil),
        ] as [(HeaderFields, String?)])
    func bothKindsObeyWhatIsForAllCaches(fields: HeaderFields, rule: String?) {
        for terms in [CacheTerms.private, .shared] {
            #expect(ResponseDirectives(fields, terms).ruleAgainstStale == rule)
            #expect(ResponseDirectives(fields, terms).obeyed == ResponseDirectives(fields, terms).stated)
        }
    }

    // RFC 9213 §2.2: with a targeted field, Cache-Control does not count at all.
    @Test func targetedFieldTakesThePlaceOfCacheControl() {
        let fields: HeaderFields = ["CDN-Cache-Control: max-age=60", "Cache-Control: no-cache, must-revalidate"]
        #expect(Self.reuse(fields, .shared, request: "max-stale", Self.stale) == .stale(revalidates: false))
        #expect(Self.reuse(fields, .private, Self.fresh) == .validate(.stale))
        #expect(ResponseDirectives(fields, .shared).isTargeted)
        #expect(!ResponseDirectives(fields, .private).isTargeted)
    }

    // What was stored while the cache was private.
    @Test(
        arguments: [
            ([], [], false, true), (["Cache-Control: private"], [], false, false),
            (["Cache-Control: private"], [], true, false),
            // A 304 may add the directive to a stored response.
            (["CDN-Cache-Control: private", "Cache-Control: public"], [], false, false),
            (["CDN-Cache-Control: public", "Cache-Control: private"], [], false, true),
            // Fields that should not have been stored.
            (["Cache-Control: private=\"X-User\"", "X-User: anna"], [], false, false),
            (["Cache-Control: private=\"X-User\""], [], false, true),
            // §3.5: no later request, not even of the same user.
            ([], [("authorization", " #1")], true, false),
            (["Cache-Control: max-age=5"], [("authorization", " #1")], true, false),
            (["Cache-Control: public"], [("authorization", " #1")], true, true),
            (["Cache-Control: must-revalidate"], [("authorization", " #1")], true, true),
            (["Cache-Control: proxy-revalidate"], [("authorization", " #1")], true, false),
            // A rule sent them, for all.
            ([], [("authorization", " #1")], false, true),
            // No credentials opened it.
            ([], [("authorization", nil)], true, true), ([], [], true, true), ([], [("cookie", " #1")], true, true),
        ] as [(HeaderFields, [(String, String?)], Bool, Bool)])
    func storedResponseAnswersOnlyWhatASharedCacheMay(
        fields: HeaderFields, selecting: [(String, String?)], isAuthorized: Bool, may: Bool
    ) {
        let variant = Variant(selecting.map { .init(name: $0.0, value: $0.1) })
        func permits(_ terms: CacheTerms) -> Bool {
            ResponseDirectives(fields, terms).permitsUse(of: fields, variant, isAuthorized: isAuthorized)
        }
        #expect(permits(.shared) == may)
        #expect(permits(.private))
    }

    @Test func namedFieldsAreNotStoredInASharedCache() {
        let fields: HeaderFields = [
            "Cache-Control: private=\"x-user, X-TOKEN\", max-age=60", "X-User: anna", "x-token: 1", "X-Other: 2",
        ]
        #expect(fields.storable(under: .shared).lines.map(\.name) == ["Cache-Control", "X-Other"])
        #expect(fields.storable(under: .private) == fields)
    }

    // Stored whatever the settings are now: they may change.
    @Test func targetedFieldsAreAmongTheStored() {
        let much = (0..<100).map { HeaderFields.Line(name: "X-\($0)", value: String(repeating: "a", count: 200)) }
        let fields = HeaderFields(much + [.init(name: "Other-CDN-cache-control", value: "max-age=5")])
        #expect(fields.worthKeeping["Other-CDN-Cache-Control"] == "max-age=5")
        #expect(fields.targeted == ["Other-CDN-cache-control": "max-age=5"])
        let long = HeaderFields([.init(name: "CDN-Cache-Control", value: String(repeating: "a", count: 9000))])
        #expect(!long.canBeKept)
    }

    @Test(arguments: ["CDN-Cache-Control", "a-cache-control", "My-CDN-CACHE-CONTROL"])
    func targetedFieldIsNamed(name: String) throws { try TargetedField.check(name) }

    @Test(arguments: [
        "", "Cache-Control", "-Cache-Control", "Surrogate-Control", "CDN Cache-Control", "CDN-Cache-Control:",
    ])
    func nameOfAnotherFieldIsRefused(name: String) {
        #expect(throws: RuleError.self) { try TargetedField.check(name) }
    }
}
