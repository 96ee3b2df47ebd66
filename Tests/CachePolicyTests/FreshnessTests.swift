import CachePolicy
import HTTPModel
import Testing

/// RFC 9111 §4.2.1 and §4.2.2. Received at 1,000,000 (Mon, 12 Jan 1970 13:46:40 GMT), 10 s old then, looked at an hour
/// later.
@Suite struct FreshnessTests {
    private static let times = ResponseTimes(validatedAt: 1_000_000, initialAge: 10)
    private static let age: Int64 = 3610

    private static func freshness(_ fields: HeaderFields, ttl: Int64? = nil, _ terms: CacheTerms = .private)
        -> Freshness
    {
        .of(fields, times, ttl: ttl, terms: terms, now: 1_003_600)
    }

    @Test(
        arguments: [
            (["Cache-Control: max-age=7200"], 7200), (["Cache-Control: public, MAX-AGE=60"], 60),
            (["Cache-Control: max-age=0"], 0),
            // §1.2.2: too great a number is long enough. §4.2.1: one that is none is stale.
            (["Cache-Control: max-age=99999999999999999999"], .max), (["Cache-Control: max-age=x"], 0),
            (["Cache-Control: max-age=-1"], 0),
            // §4.2.1: of several the strictest, in one line or in more.
            (["Cache-Control: max-age=60, max-age=30"], 30),
            (["Cache-Control: max-age=30", "Cache-Control: max-age=60"], 30),
            // §5.3: max-age goes before Expires, whichever is longer.
            (["Cache-Control: max-age=60", "Expires: Mon, 12 Jan 1970 15:46:40 GMT"], 60),
            (["Cache-Control: max-age=60", "Expires: 0"], 60),
            // §5.2.2.10: s-maxage is for shared caches.
            (["Cache-Control: s-maxage=5, max-age=7200"], 7200),
            (["Cache-Control: s-maxage=5", "Expires: Mon, 12 Jan 1970 15:46:40 GMT"], 7200),
            // Expires without Date: from the receipt.
            (["Expires: Mon, 12 Jan 1970 15:46:40 GMT"], 7200),
            (["Expires: Mon, 12 Jan 1970 15:46:40 GMT", "Date: never"], 7200),
            // Both are of the origin's clock, however wrong that goes.
            (["Expires: Mon, 12 Jan 1970 15:46:40 GMT", "Date: Mon, 12 Jan 1970 15:45:40 GMT"], 60),
            (["Expires: Thu, 01 Jan 2026 00:01:00 GMT", "Date: Thu, 01 Jan 2026 00:00:00 GMT"], 60),
            (["Expires: Mon, 12 Jan 1970 13:46:40 GMT"], 0), (["Expires: Thu, 01 Jan 1970 00:00:00 GMT"], 0),
            (["Expires: Sat, 01 Jan 0000 00:00:00 GMT", "Date: Fri, 31 Dec 9999 23:59:59 GMT"], 0),
            // §5.3: what is no date has expired.
            (["Expires: 0"], 0), (["Expires: -1"], 0), (["Expires: "], 0), (["Expires: 1003600"], 0),
            // Of several lines the soonest, an invalid one above all.
            (["Expires: Mon, 12 Jan 1970 15:46:40 GMT", "Expires: Mon, 12 Jan 1970 13:47:40 GMT"], 60),
            (["Expires: Mon, 12 Jan 1970 15:46:40 GMT", "Expires: 0"], 0),
        ] as [(HeaderFields, Int64)])
    func originSaysHowLong(fields: HeaderFields, lifetime: Int64) {
        #expect(Self.freshness(fields) == Freshness(lifetime: lifetime, age: Self.age, source: .explicit))
    }

    @Test(
        arguments: [
            ([], 600), (["Cache-Control: public"], 600), (["Cache-Control: s-maxage=60"], 600),
            (["Cache-Control: immutable"], 600),
            // A tenth of 100,000 s: from Sun, 11 Jan 1970 10:00:00 GMT to the receipt.
            (["Last-Modified: Sun, 11 Jan 1970 10:00:00 GMT"], 10_000),
            // To the Date, where there is one.
            (["Last-Modified: Sun, 11 Jan 1970 10:00:00 GMT", "Date: Sun, 11 Jan 1970 15:33:20 GMT"], 2000),
            (["Last-Modified: Sun, 11 Jan 1970 10:00:00 GMT", "Date: Sun, 11 Jan 1970 10:00:00 GMT"], 600),
            (["Last-Modified: Sun, 11 Jan 1970 10:00:00 GMT", "Date: Sat, 10 Jan 1970 10:00:00 GMT"], 600),
            (["Last-Modified: Thu, 01 Jan 1970 00:00:00 GMT", "Date: Thu, 01 Jan 2026 00:00:00 GMT"], 604_800),
            (["Last-Modified: Sat, 01 Jan 0000 00:00:00 GMT"], 604_800), (["Last-Modified: x"], 600),
        ] as [(HeaderFields, Int64)])
    func whereItSaysNothingATenthOfTheTimeUnchangedCounts(fields: HeaderFields, lifetime: Int64) {
        #expect(Self.freshness(fields) == Freshness(lifetime: lifetime, age: Self.age, source: .heuristic))
    }

    // §4.2.1, §5.2.2.10; RFC 9213 §2.2
    @Test(
        arguments: [
            (["Cache-Control: s-maxage=5, max-age=7200"], 5), (["Cache-Control: max-age=5, s-maxage=7200"], 7200),
            (["Cache-Control: s-maxage=60", "Expires: 0"], 60), (["Cache-Control: s-maxage=x, max-age=60"], 0),
            (["Cache-Control: max-age=60"], 60), (["Expires: Mon, 12 Jan 1970 15:46:40 GMT"], 7200),
            (["expires: mon, 12 jan 1970 15:46:40 gmt"], 7200),
            (["CDN-Cache-Control: max-age=30", "Cache-Control: s-maxage=60"], 30),
            (["CDN-Cache-Control: max-age=30, s-maxage=20", "Cache-Control: max-age=60"], 20),
            (["CDN-Cache-Control: max-age=\"30\"", "Cache-Control: max-age=60"], 0),
            (["CDN-Cache-Control: max-age=30", "CDN-Cache-Control: public"], 30),
            // What is malformed or empty is as if it were absent.
            (["CDN-Cache-Control: max-age=30,", "Cache-Control: max-age=60"], 60),
            (["CDN-Cache-Control: ", "Expires: Mon, 12 Jan 1970 15:46:40 GMT"], 7200),
            (["Edge-Cache-Control: max-age=30", "Cache-Control: max-age=60"], 60),
        ] as [(HeaderFields, Int64)])
    func sharedCacheReadsWhatIsMeantForIt(fields: HeaderFields, lifetime: Int64) {
        #expect(Self.freshness(fields, .shared) == Freshness(lifetime: lifetime, age: Self.age, source: .explicit))
    }

    @Test(
        arguments: [
            (["CDN-Cache-Control: max-age=10", "Edge-Cache-Control: max-age=20"], 20),
            (["CDN-Cache-Control: max-age=10", "edge-cache-control: max-age=20,"], 10),
            (["CDN-Cache-Control: x y", "Edge-Cache-Control: x y", "Cache-Control: max-age=30"], 30),
        ] as [(HeaderFields, Int64)])
    func firstValidOfTheTargetedFieldsCounts(fields: HeaderFields, lifetime: Int64) {
        let terms = CacheTerms(.shared, targetedFields: ["Edge-Cache-Control", "CDN-Cache-Control"])
        #expect(Self.freshness(fields, terms).lifetime == lifetime)
        let none = CacheTerms(.private, targetedFields: ["Edge-Cache-Control", "CDN-Cache-Control"])
        #expect(none == .private)
        #expect(Self.freshness(fields, none).lifetime == (fields["Cache-Control"] == nil ? 600 : 30))
    }

    // A targeted field is in the place of Expires, too: without max-age in it, the origin gave no lifetime.
    @Test func targetedFieldWithoutALifetimeLeavesItToTheDefault() {
        let fields: HeaderFields = [
            "CDN-Cache-Control: must-revalidate", "Cache-Control: max-age=60", "Expires: Mon, 12 Jan 1970 15:46:40 GMT",
        ]
        #expect(Self.freshness(fields, .shared) == Freshness(lifetime: 0, age: Self.age, source: .heuristic))
        #expect(Self.freshness(["CDN-Cache-Control: no-cache, max-age=9999"], .shared).isValidatedEachTime)
    }

    @Test(
        arguments: [
            ([], nil, 600, 0), ([], 0, 0, 0), ([], 60, 60, 60), ([], 1_000_000, 1_000_000, 1_000_000), ([], -5, 0, 0),
            // A tenth of 100,000 s, but no less.
            (["Last-Modified: Sun, 11 Jan 1970 10:00:00 GMT"], nil, 10_000, 10_000),
            (["Last-Modified: Sun, 11 Jan 1970 10:00:00 GMT"], 20_000, 20_000, 20_000),
            (["Last-Modified: Mon, 12 Jan 1970 13:46:30 GMT"], nil, 600, 1),
            (["Last-Modified: Mon, 12 Jan 1970 13:46:30 GMT"], 60, 60, 60),
            // A week at most, if the setting is no longer.
            (["Last-Modified: Sat, 01 Jan 0000 00:00:00 GMT"], 0, 604_800, 604_800),
            (["Last-Modified: Sat, 01 Jan 0000 00:00:00 GMT"], 1_000_000, 1_000_000, 1_000_000),
            (["Last-Modified: Mon, 12 Jan 1970 15:46:40 GMT"], 0, 0, 0),
        ] as [(HeaderFields, Int64?, Int64, Int64)])
    func settingSaysHowLongWhereTheOriginDoesNot(
        fields: HeaderFields, setting: Int64?, lifetime: Int64, shared: Int64
    ) {
        for (kind, lifetime) in [(CacheMode.private, lifetime), (.shared, shared)] {
            let freshness = Self.freshness(fields, CacheTerms(kind, defaultTTL: setting))
            #expect(freshness == Freshness(lifetime: lifetime, age: Self.age, source: .heuristic))
        }
        #expect(Self.freshness(["Cache-Control: max-age=5"], CacheTerms(.shared, defaultTTL: setting)).lifetime == 5)
    }

    @Test(
        arguments: [(7200, 7210, 3600), (3600, 3610, 0), (0, 10, -3600), (-5, 10, -3600), (.max, .max, .max - 3610)]
            as [(Int64, Int64, Int64)])
    func aRuleCountsFromTheReceiptWhateverTheOriginSays(ttl: Int64, lifetime: Int64, remaining: Int64) {
        for fields in [[], ["Cache-Control: max-age=1, no-cache"], ["Expires: 0"]] as [HeaderFields] {
            let freshness = Self.freshness(fields, ttl: ttl)
            #expect(freshness == Freshness(lifetime: lifetime, age: Self.age, source: .rule))
            #expect(freshness.remaining == remaining)
        }
    }

    /// What a HEAD has put in doubt is stale without bound, so that no `stale-while-revalidate` covers it.
    @Test func noRuleMakesUpForAnAgeWithoutBound() {
        let times = ResponseTimes(validatedAt: 1, initialAge: .max)
        #expect(Freshness.of([], times, ttl: 3600, now: 1_003_600).staleness == .max)
    }

    @Test(
        arguments: [
            (60, 59, 1, 0, true), (60, 60, 0, 0, false), (60, 61, -1, 1, false), (0, 0, 0, 0, false),
            (0, .max, -.max, .max, false), (.max, 0, .max, 0, true),
            (.max, .max, 0, 0, false), (-5, .max, .min, .max, false),
        ] as [(Int64, Int64, Int64, Int64, Bool)])
    func freshAsLongAsTheLifetimeExceedsTheAge(
        lifetime: Int64, age: Int64, remaining: Int64, staleness: Int64, isFresh: Bool
    ) {
        let freshness = Freshness(lifetime: lifetime, age: age, source: .explicit)
        #expect(freshness.remaining == remaining)
        #expect(freshness.staleness == staleness)
        #expect(freshness.isFresh == isFresh)
    }

    @Test(
        arguments: [
            (["Cache-Control: max-age=10810"], nil, "fresh for 2 h more"),
            (["Cache-Control: max-age=3550"], nil, "stale for 1 min"),
            (["Cache-Control: max-age=3610"], nil, "stale for 0 s"),
            ([], nil, "stale for 50 min (the origin gave no lifetime)"),
            (["Last-Modified: Sun, 11 Jan 1970 10:00:00 GMT"], nil, "fresh for 1 h more (the origin gave no lifetime)"),
            (["Cache-Control: max-age=99999999999999999999"], nil, "fresh for over 1000 years more"),
            (["Cache-Control: max-age=99999999999, no-cache"], nil, "revalidated on every request (no-cache)"),
            (["Cache-Control: no-cache"], 7200, "fresh for 1 h more (by a rule)"),
            (["Cache-Control: max-age=9999"], 60, "stale for 59 min (by a rule)"),
        ] as [(HeaderFields, Int64?, String)])
    func itIsToldInWords(fields: HeaderFields, ttl: Int64?, text: String) {
        #expect(Self.freshness(fields, ttl: ttl).text == text)
    }
}
