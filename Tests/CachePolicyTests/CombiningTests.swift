import CachePolicy
import HTTPModel
import Testing

/// RFC 9110 §15.3.7.3
@Suite struct CombiningTests {
    private static let modified = "Sun, 06 Nov 1994 08:49:37 GMT"

    @Test(arguments: [
        (["ETag: \"v1\""], "\"v1\""), (["ETag:  \"v1\" "], "\"v1\""), (["ETag: \"\""], "\"\""), (["ETag: \"v1\"", "Last-Modified: \(modified)"], "\"v1\""),
        // §13.1.5: a weak tag never, and a date only where there is no tag.
        (["ETag: W/\"v1\""], nil), (["ETag: W/\"v1\"", "Last-Modified: \(modified)"], nil),
        // What is no entity tag is none.
        (["ETag: v1"], nil), (["ETag: v1", "Last-Modified: \(modified)"], "\(modified)"),
        // §8.8.2.2
        (["Last-Modified: \(modified)", "Date: Sun, 06 Nov 1994 08:49:38 GMT"], "\(modified)"), (["Last-Modified: \(modified)", "Date: \(modified)"], nil),
        (["Last-Modified: \(modified)", "Date: Sun, 06 Nov 1994 08:49:36 GMT"], nil), (["Last-Modified: \(modified)"], "\(modified)"),
        (["Last-Modified: \(modified)", "Date: never"], "\(modified)"), (["Last-Modified: yesterday", "Date: \(modified)"], nil), ([], nil),
    ] as [(FieldLines, String?)])
    func onlyStrongValidatorsJoinParts(fields: FieldLines, condition: String?) {
        #expect(Combining.condition(for: fields) == condition)
    }

    @Test func freshenedResponseWithAWeakTagIsNotJoinedByItsDate() {
        let fields = Freshening.updated(["ETag: W/\"v1\""], with: ["ETag: W/\"v1\"", "Last-Modified: \(Self.modified)"])
        #expect(Combining.condition(for: fields) == nil)
    }
}
