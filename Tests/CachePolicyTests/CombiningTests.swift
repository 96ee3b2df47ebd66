import CachePolicy
import HTTPModel
import Testing

/// RFC 9110 §15.3.7.3
@Suite struct CombiningTests {
    private static let modified = "Sun, 06 Nov 1994 08:49:37 GMT"

    @Test(
        arguments: [
            (["ETag: \"v1\""], "\"v1\""), (["ETag:  \"v1\" "], "\"v1\""), (["ETag: \"\""], "\"\""),
            (["ETag: \"v1\"", "Last-Modified: \(modified)"], "\"v1\""),
            // §13.1.5: a weak tag never, and a date only where there is no tag.
            (["ETag: W/\"v1\""], nil), (["ETag: W/\"v1\"", "Last-Modified: \(modified)"], nil),
            // What is no entity tag is none.
            (["ETag: v1"], nil), (["ETag: v1", "Last-Modified: \(modified)"], "\(modified)"),
            // §8.8.2.2
            (["Last-Modified: \(modified)", "Date: Sun, 06 Nov 1994 08:49:38 GMT"], "\(modified)"),
            (["Last-Modified: \(modified)", "Date: \(modified)"], nil),
            (["Last-Modified: \(modified)", "Date: Sun, 06 Nov 1994 08:49:36 GMT"], nil),
            (["Last-Modified: \(modified)"], "\(modified)"),
            (["Last-Modified: \(modified)", "Date: never"], "\(modified)"),
            (["Last-Modified: yesterday", "Date: \(modified)"], nil), ([], nil),
        ] as [(HeaderFields, String?)])
    func onlyStrongValidatorsJoinParts(fields: HeaderFields, condition: String?) {
        #expect(Combining.condition(for: fields) == condition)
    }

    private static let later = "Mon, 07 Nov 1994 08:49:37 GMT"

    // What is missing in an answer is as telling as what differs.
    @Test(
        arguments: [
            // Stored, the answer, whether it is of the same version as a 206, and as a 200.
            (["ETag: \"v1\""], ["ETag: \"v1\""], true, true), (["ETag: \"v1\""], ["ETag: \"v2\""], false, false),
            (["ETag: \"v1\""], ["ETag: W/\"v1\""], false, false), (["ETag: \"v1\""], ["ETag: v1"], false, false),
            (["ETag: \"v1\""], [], false, false), (["ETag: \"v1\""], ["Last-Modified: \(later)"], false, false),
            (["ETag: \"v1\"", "Last-Modified: \(modified)"], ["Last-Modified: \(modified)"], false, false),
            (["ETag: \"v1\"", "Last-Modified: \(modified)"], ["ETag: \"v1\""], true, true),
            (
                ["ETag: \"v1\"", "Last-Modified: \(modified)"], ["ETag: \"v1\"", "Last-Modified: \(modified)"], true,
                true
            ),
            (
                ["ETag: \"v1\"", "Last-Modified: \(modified)"], ["ETag: \"v1\"", "Last-Modified: \(later)"], false,
                false
            ),
            (["ETag: \"v1\""], ["ETag: \"v1\"", "Last-Modified: \(later)"], true, true),
            (["Last-Modified: \(modified)"], ["Last-Modified: \(modified)"], true, true),
            // The same time in an older form.
            (["Last-Modified: \(modified)"], ["Last-Modified: Sunday, 06-Nov-94 08:49:37 GMT"], true, true),
            (["Last-Modified: \(modified)"], ["Last-Modified: \(later)"], false, false),
            (["Last-Modified: \(modified)"], ["Last-Modified: lately"], false, false),
            (["Last-Modified: \(modified)"], [], true, false),
            (["Last-Modified: \(modified)"], ["ETag: \"v2\""], false, false),
            (["Last-Modified: \(modified)"], ["ETag: \"v2\"", "Last-Modified: \(modified)"], true, true),
            // Under what is no tag at all, a date tells versions apart; but what differs there differs.
            (["ETag: v1", "Last-Modified: \(modified)"], ["ETag: v1"], true, true),
            (["ETag: v1", "Last-Modified: \(modified)"], ["ETag: v2", "Last-Modified: \(modified)"], false, false),
            // Nothing strong joins anything.
            (["ETag: W/\"v1\""], ["ETag: W/\"v1\""], false, false), ([], [], false, false),
            (["Last-Modified: \(modified)", "Date: \(modified)"], ["Last-Modified: \(modified)"], false, false),
        ] as [(HeaderFields, HeaderFields, Bool, Bool)])
    func answerIsOfTheStoredVersionWhereAllThatItSaysAgrees(
        stored: HeaderFields, answer: HeaderFields, asPart: Bool, asWhole: Bool
    ) {
        #expect(Combining.isSameVersion(answer, isPart: true, stored: stored) == asPart)
        #expect(Combining.isSameVersion(answer, isPart: false, stored: stored) == asWhole)
    }

    @Test func freshenedResponseWithAWeakTagIsNotJoinedByItsDate() {
        let fields = Freshening.updated(
            ["ETag: W/\"v1\""], with: ["ETag: W/\"v1\"", "Last-Modified: \(Self.modified)"])
        #expect(Combining.condition(for: fields) == nil)
    }
}
