import CachePolicy
import Testing

/// RFC 9111 §4.2.1. Stored at 1,000,000 (1970-01-12T13:46:40Z), looked at an hour later.
@Suite struct FreshnessTests {
    private static let stored: Int64 = 1_000_000
    private static let now: Int64 = 1_003_600

    private static func freshness(_ cacheControl: String?, _ expires: String? = nil) -> Freshness {
        Freshness.explicit(cacheControl: cacheControl, expires: expires, storedAt: stored, now: now)
    }

    @Test(arguments: [
        ("max-age=7200", Freshness.fresh(until: 1_007_200)), ("max-age=3600", .stale(since: 1_003_600)), ("max-age=3601", .fresh(until: 1_003_601)),
        ("max-age=0", .stale(since: 1_000_000)), ("public, max-age=60", .stale(since: 1_000_060)), ("max-age=x", .stale(since: 1_000_000)),
        ("max-age=99999999999999999999", .fresh(until: .max)), ("s-maxage=7200", .unstated), ("public", .unstated), ("", .unstated),
        ("no-cache, max-age=7200", .stale(since: 1_000_000)),
    ])
    func cacheControlDecides(field: String, expected: Freshness) {
        #expect(Self.freshness(field) == expected)
    }

    @Test(arguments: [
        ("Mon, 12 Jan 1970 15:46:40 GMT", Freshness.fresh(until: 1_007_200)), ("Mon, 12 Jan 1970 14:00:00 GMT", .stale(since: 1_000_800)),
        ("Thu, 01 Jan 1970 00:00:00 GMT", .stale(since: 1_000_000)), ("0", .stale(since: 1_000_000)), ("-1", .stale(since: 1_000_000)),
    ])
    func elseExpiresDoes(field: String, expected: Freshness) {
        #expect(Self.freshness(nil, field) == expected)
        #expect(Self.freshness("public", field) == expected)
    }

    @Test func maxAgeGoesBeforeExpires() {
        #expect(Self.freshness("max-age=60", "Mon, 12 Jan 1970 15:46:40 GMT") == .stale(since: 1_000_060))
    }

    @Test func withoutEitherNothingIsStated() {
        #expect(Self.freshness(nil) == .unstated)
    }

    @Test(arguments: [
        (Freshness.fresh(until: 1_010_800), "fresh for 2 h more"), (.stale(since: 1_003_540), "stale since 1 min"), (.unstated, "the origin gave no lifetime"),
    ])
    func itIsToldInWords(freshness: Freshness, text: String) {
        #expect(freshness.text(now: Self.now) == text)
    }
}
