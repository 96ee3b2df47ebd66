import HTTPModel
import Testing

@testable import CachePolicy

/// What an origin's answer says of bytes that are stored, or of a resource of which nothing is.
@Suite struct OriginAnswerTests {
    private static let tagged: HeaderFields = ["ETag: \"v1\""]
    private static let other: HeaderFields = ["ETag: \"v2\""]
    private static let encoded: HeaderFields = ["ETag: \"v1\"", "Content-Encoding: gzip"]
    private static let dated: HeaderFields = ["Last-Modified: Sat, 01 Jan 2000 00:00:00 GMT"]
    private static let untold: HeaderFields = []

    private static func answer(
        _ status: Int, _ fields: HeaderFields, length: Int64? = nil, range: String? = nil,
        scope: AddressScope = .public
    ) -> OriginAnswer {
        OriginAnswer(
            status: status, fields: fields, contentLength: length,
            contentRange: range.flatMap { ContentRange(parsing: "bytes " + $0) }, scope: scope)
    }

    private static func known(_ fields: HeaderFields, length: Int64? = 100, isPublic: Bool = true) -> KnownVersion {
        KnownVersion(
            fields: fields, length: length, condition: Combining.condition(for: fields), isPublic: isPublic)
    }

    // MARK: More of a known version

    @Test(
        arguments: [
            // RFC 9110 §15.3.7: the part that was asked for, or less of it.
            (answer(206, tagged, length: 60, range: "40-99/100"), .part(40..<100)),
            (answer(206, tagged, length: 10, range: "40-49/100"), .part(40..<50)),
            // §14.4: the length of the whole, and that of the body, may be left out.
            (answer(206, tagged, range: "40-99/100"), .part(40..<100)),
            (answer(206, tagged, length: 60, range: "40-99/*"), .part(40..<100)),
            (
                answer(206, tagged, length: 59, range: "40-99/100"),
                .unusable("a 206 whose Content-Length contradicts its Content-Range")
            ),
            // §15.3.7.1
            (answer(206, tagged, length: 60), .unusable("a 206 without a usable Content-Range")),
            (answer(206, tagged, length: 60, range: "*/100"), .unusable("a 206 without a usable Content-Range")),
            (answer(206, tagged, range: "41-99/100"), .unusable("it answers from byte 41 instead of 40")),
            (answer(206, tagged, range: "0-99/100"), .unusable("it answers from byte 0 instead of 40")),
            // §8.4
            (answer(206, encoded, range: "40-99/100"), .unusable("the part is encoded")),
            // §15.3.7.3, §8.8.3
            (answer(206, other, range: "40-99/100"), .anotherVersion),
            (answer(206, untold, range: "40-99/100"), .anotherVersion),
            (answer(206, tagged, range: "40-100/101"), .anotherVersion),
            // A version is looked at before its place.
            (answer(206, other, range: "0-99/100"), .anotherVersion),
            // §13.1.5, §14.2: the whole, as the origin sends no ranges.
            (answer(200, tagged, length: 100), .whole), (answer(200, tagged, length: 99), .anotherVersion),
            (answer(200, other, length: 100), .anotherVersion),
            // §8.8.1: a chunked body of the same strong validator is as long.
            (answer(200, tagged), .whole), (answer(200, other), .anotherVersion),
            (answer(200, untold), .anotherVersion),
            (answer(200, encoded, length: 100), .anotherVersion),
            // §15.5.17
            (answer(416, untold, range: "*/10"), .anotherVersion), (answer(416, untold), .anotherVersion),
            // What is none of these says nothing of the version.
            (answer(404, untold), .status), (answer(503, untold), .status), (answer(304, tagged), .status),
        ] as [(OriginAnswer, Combining.Delivery)])
    func answerBringsBytesOfTheKnownVersionOnly(answer: OriginAnswer, delivered: Combining.Delivery) {
        #expect(Combining.delivered(by: answer, of: Self.known(Self.tagged), from: 40) == delivered)
    }

    /// What the same resource may leave out, another URL has to say.
    @Test(
        arguments: [
            (tagged, 206, tagged, "40-99/100", true), (dated, 206, dated, "40-99/100", true),
            (tagged, 206, tagged, "40-99/*", false), (dated, 206, untold, "40-99/100", false),
            (dated, 206, untold, "40-99/*", false), (dated, 206, dated, "40-99/*", false),
        ] as [(HeaderFields, Int, HeaderFields, String, Bool)])
    func answerFromAnotherURLNamesItsVersionAndLength(
        stored: HeaderFields, status: Int, fields: HeaderFields, range: String, isSame: Bool
    ) {
        let answer = Self.answer(status, fields, range: range), known = Self.known(stored)
        #expect(Combining.delivered(by: answer, of: known, from: 40) == .part(40..<100))
        #expect(
            Combining.delivered(by: answer, of: known, from: 40, isElsewhere: true)
                == (isSame ? .part(40..<100) : .anotherVersion))
    }

    @Test(
        arguments: [
            (true, .public, .part(40..<100)), (false, .public, .part(40..<100)), (false, .private, .part(40..<100)),
            (true, .unknown, .part(40..<100)), (true, .private, .anotherVersion),
        ] as [(Bool, AddressScope, Combining.Delivery)])
    func whatPagesMayReadIsNotAddedToFromAPrivateAddress(
        isKnownPublic: Bool, scope: AddressScope, delivered: Combining.Delivery
    ) {
        let answer = Self.answer(206, Self.tagged, range: "40-99/100", scope: scope)
        let known = Self.known(Self.tagged, isPublic: isKnownPublic)
        #expect(Combining.delivered(by: answer, of: known, from: 40) == delivered)
    }

    /// RFC 9110 §15.3.7.3: what no strong validator tells from other versions is joined with nothing.
    @Test(arguments: [answer(206, untold, range: "40-99/100"), answer(200, untold, length: 100)])
    func nothingIsAddedToWhatHasNoValidator(answer: OriginAnswer) {
        #expect(Combining.delivered(by: answer, of: Self.known(Self.untold), from: 40) == .anotherVersion)
    }

    // MARK: Whether it still holds

    @Test(
        arguments: [
            // RFC 9111 §4.3.4
            (answer(304, tagged), true, .holds), (answer(304, untold), true, .holds),
            (answer(304, other), true, .isAboutAnother),
            // RFC 9110 §15.4.5
            (answer(304, tagged), false, .unusable("it answers 304 to a request without a condition")),
            // RFC 9111 §4.3.3: a whole answer takes the place of what is stored, unless it is just that.
            (answer(200, tagged, length: 100), true, .holds), (answer(200, tagged, length: 99), true, .another),
            (answer(200, tagged), true, .another), (answer(200, other, length: 100), true, .another),
            (answer(200, untold, length: 100), true, .another),
            (answer(206, tagged, length: 10, range: "0-9/100"), true, .holds),
            (answer(206, tagged, length: 10, range: "0-9/99"), true, .another),
            (answer(206, tagged, length: 100), true, .another),
            // §4.3.3: an error leaves what is stored as it was.
            (answer(500, untold), true, .error), (answer(503, untold), true, .error),
            (answer(429, untold), true, .error), (answer(408, untold), true, .error),
            // RFC 9110 §15.5.5, §15.5.11; §15.5.17
            (answer(404, untold), true, .gone), (answer(410, untold), true, .gone), (answer(416, untold), true, .gone),
            // What an origin says to the one who asks is nothing about what is stored.
            (answer(403, untold), true, .another), (answer(401, untold), true, .another),
        ] as [(OriginAnswer, Bool, Freshening.Verdict)])
    func originSaysWhetherWhatIsStoredHolds(
        answer: OriginAnswer, isConditional: Bool, verdict: Freshening.Verdict
    ) {
        #expect(
            Freshening.verdict(of: answer, on: Self.known(Self.tagged), isConditional: isConditional) == verdict)
    }

    /// RFC 9110 §8.8.1: equal lengths are no validator.
    @Test func wholeAnswerWithoutAValidatorIsAnotherVersion() {
        let answer = Self.answer(200, Self.untold, length: 100)
        #expect(Freshening.verdict(of: answer, on: Self.known(Self.untold), isConditional: true) == .another)
    }

    /// Tags are bytes: that two of them mean the same text does not make them one.
    @Test func tagOfOtherBytesIsThatOfAnotherVersion() {
        let answer = Self.answer(200, ["ETag: \"e\u{301}\""], length: 100)
        let known = Self.known(["ETag: \"\u{E9}\""])
        #expect(Freshening.verdict(of: answer, on: known, isConditional: true) == .another)
    }
}
