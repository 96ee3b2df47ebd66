import HTTPModel
import Testing

@Suite struct ConditionalTests {
    private static let date = "Sun, 06 Nov 1994 08:49:37 GMT"
    private static let earlier = "Sun, 06 Nov 1994 08:49:36 GMT"
    private static let later = "Sun, 06 Nov 1994 08:49:38 GMT"
    private static let strong = RepresentationValidators(etag: EntityTag(parsing: "\"v1\""), lastModified: 784_111_777)
    private static let weak = RepresentationValidators(etag: EntityTag(parsing: "W/\"v1\""), lastModified: 784_111_777)
    private static let nothing = RepresentationValidators()

    @Test(
        arguments: [
            ([], .proceed),
            // §13.1.2
            (["If-None-Match: \"v1\""], .notModified), (["If-None-Match: W/\"v1\""], .notModified),
            (["If-None-Match: \"v2\""], .proceed),
            (["If-None-Match: \"v2\", \"v1\""], .notModified),
            (["If-None-Match: \"v2\"", "If-None-Match: \"v1\""], .notModified),
            (["If-None-Match: *"], .notModified), (["If-None-Match: v1"], .proceed),
            // §13.1.3
            (["If-Modified-Since: \(date)"], .notModified), (["If-Modified-Since: \(later)"], .notModified),
            (["If-Modified-Since: \(earlier)"], .proceed),
            (["If-Modified-Since: yesterday"], .proceed),
            // An If-None-Match that fails to match makes If-Modified-Since count for nothing, also when the date would
            // match.
            (["If-None-Match: \"v2\"", "If-Modified-Since: \(date)"], .proceed),
            (
                [
                    "If-None-Match: \"v1\"",
                    "If-Modified-Since: \(earlier)",
                ], .notModified
            ),
            // §13.1.1
            (["If-Match: \"v1\""], .proceed), (["If-Match: *"], .proceed), (["If-Match: \"v2\""], .failed),
            (["If-Match: W/\"v1\""], .failed),
            (["If-Match: garbage"], .failed), (["If-Match: \"v2\", \"v1\""], .proceed),
            // §13.1.4
            (["If-Unmodified-Since: \(date)"], .proceed), (["If-Unmodified-Since: \(earlier)"], .failed),
            (["If-Unmodified-Since: never"], .proceed),
            // §13.2.2: the order
            (["If-Match: \"v1\"", "If-Unmodified-Since: \(earlier)"], .proceed),
            (
                [
                    "If-Match: \"v2\"",
                    "If-None-Match: \"v1\"",
                ], .failed
            ),
            (["If-Match: \"v1\"", "If-None-Match: \"v1\""], .notModified),
            (
                [
                    "If-Unmodified-Since: \(earlier)",
                    "If-Modified-Since: \(date)",
                ], .failed
            ),
        ] as [([String], Conditional.Precondition)])
    func preconditionsOfGetAreDecided(fields: [String], decision: Conditional.Precondition) throws {
        #expect(Conditional.evaluate(try request("GET", fields), against: Self.strong) == decision)
        #expect(Conditional.evaluate(try request("HEAD", fields), against: Self.strong) == decision)
        #expect(Conditional.evaluate(try request("OPTIONS", fields), against: Self.strong) == .proceed)
    }

    @Test func otherMethodsFailWhereReadsAreNotModified() throws {
        #expect(Conditional.evaluate(try request("PUT", ["If-None-Match: *"]), against: Self.strong) == .failed)
        #expect(
            Conditional.evaluate(try request("PUT", ["If-Modified-Since: \(Self.date)"]), against: Self.strong)
                == .proceed)
    }

    @Test func weakValidatorSavesTransfersButFailsIfMatch() throws {
        #expect(Conditional.evaluate(try request("GET", ["If-None-Match: \"v1\""]), against: Self.weak) == .notModified)
        #expect(Conditional.evaluate(try request("GET", ["If-Match: \"v1\""]), against: Self.weak) == .failed)
    }

    @Test(
        arguments: [
            ("If-None-Match: \"v1\"", .proceed), ("If-None-Match: *", .notModified),
            ("If-Modified-Since: \(date)", .proceed),
            ("If-Match: \"v1\"", .failed), ("If-Match: *", .proceed), ("If-Unmodified-Since: \(earlier)", .proceed),
        ] as [(String, Conditional.Precondition)])
    func representationWithoutValidatorsMatchesOnlyStar(field: String, decision: Conditional.Precondition) throws {
        #expect(Conditional.evaluate(try request("GET", [field]), against: Self.nothing) == decision)
    }

    @Test(
        arguments: [
            (nil, true, true, true), ("\"v1\"", true, false, false), ("\"v2\"", false, false, false),
            ("W/\"v1\"", false, false, false),
            (date, true, true, false), (earlier, false, false, false), (later, false, false, false),
            ("garbage", false, false, false),
            ("*", false, false, false), ("", false, false, false),
        ] as [(String?, Bool, Bool, Bool)])
    func rangeAppliesToTheSameBytesOnly(field: String?, strong: Bool, weak: Bool, nothing: Bool) throws {
        let request = try request("GET", field.map { ["If-Range: \($0)"] } ?? [])
        #expect(Conditional.rangeApplies(request, against: Self.strong, isDateStrong: true) == strong)
        #expect(Conditional.rangeApplies(request, against: Self.weak, isDateStrong: true) == weak)
        #expect(Conditional.rangeApplies(request, against: Self.nothing, isDateStrong: true) == nothing)
    }

    /// RFC 9110 §13.1.5, step 1: a file that was modified in the second of the answer may have changed after it.
    @Test func rangeAppliesToNoWeakDate() throws {
        let request = try request("GET", ["If-Range: \(Self.date)"])
        let stored = RepresentationValidators(lastModified: HTTPDate.parse(Self.date))
        #expect(Conditional.rangeApplies(request, against: stored, isDateStrong: true))
        #expect(!Conditional.rangeApplies(request, against: stored, isDateStrong: false))
    }

    private func request(_ method: String, _ fields: [String]) throws -> RequestHead {
        try SampleRequest.head("\(method) / HTTP/1.1\r\nHost: a\r\n" + fields.map { $0 + "\r\n" }.joined() + "\r\n")
    }
}
