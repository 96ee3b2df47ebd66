import CachePolicy
import HTTPModel
import Testing

@Suite struct FresheningTests {
    private static let modified = "Sun, 06 Nov 1994 08:49:37 GMT"
    private static let later = "Sun, 06 Nov 1994 08:49:38 GMT"

    // RFC 9111 §4.3.1
    @Test(
        arguments: [
            (["ETag: \"v1\""], ["If-None-Match: \"v1\""]), (["ETag: W/\"v1\""], ["If-None-Match: W/\"v1\""]),
            (
                ["ETag: \"v1\"", "Last-Modified: \(modified)"],
                ["If-None-Match: \"v1\"", "If-Modified-Since: \(modified)"]
            ),
            (["Last-Modified: \(modified)"], ["If-Modified-Since: \(modified)"]),
            (["Last-Modified: \(modified)", "Date: \(later)"], ["If-Modified-Since: \(modified)"]),
            // RFC 9110 §8.8.2.2: a weak date asks for nothing alone.
            (["Last-Modified: \(modified)", "Date: \(modified)"], nil),
            (["Last-Modified: \(later)", "Date: \(modified)"], nil),
            (
                ["ETag: W/\"v1\"", "Last-Modified: \(modified)", "Date: \(modified)"],
                ["If-None-Match: W/\"v1\"", "If-Modified-Since: \(modified)"]
            ),
            ([], nil), (["ETag: v1"], nil), (["Last-Modified: yesterday"], nil),
            (["ETag: v1", "Last-Modified: \(modified)"], ["If-Modified-Since: \(modified)"]),
        ] as [(HeaderFields, HeaderFields?)])
    func questionNamesTheValidators(stored: HeaderFields, conditions: HeaderFields?) {
        #expect(Freshening.conditions(for: stored) == conditions)
    }

    // §4.3.4
    @Test(
        arguments: [
            (["ETag: \"v1\""], ["ETag: \"v1\""], true), (["ETag: \"v2\""], ["ETag: \"v1\""], false),
            (["ETag: W/\"v1\""], ["ETag: \"v1\""], true),
            // A strong validator identifies only the same strong one.
            (["ETag: \"v1\""], ["ETag: W/\"v1\""], false), (["ETag: W/\"v1\""], ["ETag: W/\"v1\""], true),
            (["ETag: W/\"v2\""], ["ETag: W/\"v1\""], false),
            // The tag decides where both have one, whatever the dates.
            (["ETag: \"v1\"", "Last-Modified: \(later)"], ["ETag: \"v1\"", "Last-Modified: \(modified)"], true),
            (["ETag: \"v2\"", "Last-Modified: \(modified)"], ["ETag: \"v1\"", "Last-Modified: \(modified)"], false),
            // Else the date does.
            (["Last-Modified: \(modified)"], ["Last-Modified: \(modified)"], true),
            (["Last-Modified: \(later)"], ["Last-Modified: \(modified)"], false),
            (["Last-Modified: Sunday, 06-Nov-94 08:49:37 GMT"], ["Last-Modified: \(modified)"], true),
            (["Last-Modified: \(modified)"], ["ETag: \"v1\""], false),
            (["ETag: \"v1\"", "Last-Modified: \(modified)"], ["Last-Modified: \(modified)"], true),
            (["ETag: \"v1\""], ["Last-Modified: \(modified)"], false),
            (["Last-Modified: \(later)"], ["ETag: \"v1\"", "Last-Modified: \(modified)"], false),
            // Without any it answers the question that was asked.
            ([], ["ETag: \"v1\""], true), ([], ["Last-Modified: \(modified)"], true), ([], [], true),
            (["ETag: v2"], ["ETag: \"v1\""], true),
        ] as [(HeaderFields, HeaderFields, Bool)])
    func notModifiedIsAboutWhatItNames(notModified: HeaderFields, stored: HeaderFields, isAbout: Bool) {
        #expect(Freshening.isAbout(notModified, stored: stored) == isAbout)
    }

    // §4.3.5
    @Test(
        arguments: [
            (["ETag: \"v1\""], 5, ["ETag: \"v1\""], 5, true), (["ETag: \"v1\""], 5, ["ETag: \"v1\""], 6, false),
            (["ETag: \"v1\""], nil, ["ETag: \"v1\""], 6, true),
            (["ETag: \"v1\""], 5, ["ETag: \"v1\""], nil, true), (["ETag: \"v2\""], 5, ["ETag: \"v1\""], 5, false),
            // A strong tag tells alone.
            (["ETag: \"v1\"", "Last-Modified: \(later)"], 5, ["ETag: \"v1\"", "Last-Modified: \(modified)"], 5, true),
            (
                ["ETag: \"v2\"", "Last-Modified: \(modified)"], 5, ["ETag: \"v1\"", "Last-Modified: \(modified)"], 5,
                false
            ),
            // Weak ones have to match as they are, and the date with them.
            (["ETag: W/\"v1\""], 5, ["ETag: W/\"v1\""], 5, true), (["ETag: W/\"v1\""], 5, ["ETag: \"v1\""], 5, false),
            (["ETag: \"v1\""], 5, ["ETag: W/\"v1\""], 5, false),
            (
                ["ETag: W/\"v1\"", "Last-Modified: \(later)"], 5, ["ETag: W/\"v1\"", "Last-Modified: \(modified)"], 5,
                false
            ),
            (
                ["ETag: W/\"v1\"", "Last-Modified: \(modified)"], 5, ["ETag: W/\"v1\"", "Last-Modified: \(modified)"],
                5, true
            ),
            (["ETag: W/\"v2\""], 5, ["ETag: W/\"v1\""], 5, false),
            // One with a tag and one without are not compared.
            (["Last-Modified: \(modified)"], 5, ["ETag: \"v1\"", "Last-Modified: \(modified)"], 5, false),
            (["ETag: \"v1\"", "Last-Modified: \(modified)"], 5, ["Last-Modified: \(modified)"], 5, false),
            (["Last-Modified: \(modified)"], 5, ["Last-Modified: \(modified)"], 5, true),
            (["Last-Modified: \(later)"], 5, ["Last-Modified: \(modified)"], 5, false),
            (["Last-Modified: \(modified)"], 5, ["Last-Modified: \(modified)", "Date: \(later)"], 5, true),
            (["Last-Modified: \(modified)"], 5, ["Last-Modified: \(modified)", "Date: \(modified)"], 5, false),
            (["Last-Modified: x"], 5, ["Last-Modified: x"], 5, false), ([], 5, [], 5, false),
            ([], 5, ["ETag: \"v1\""], 5, false),
        ] as [(HeaderFields, Int64?, HeaderFields, Int64?, Bool)])
    func sameVersionHasTheSameValidatorAndLength(
        fields: HeaderFields, length: Int64?, stored: HeaderFields, storedLength: Int64?, isSame: Bool
    ) {
        #expect(Freshening.isSameVersion(fields, length: length, stored: stored, storedLength: storedLength) == isSame)
    }

    // §3.2
    @Test(
        arguments: [
            ([], ["X-A: 1", "X-B: 2"], ["X-A: 1", "X-B: 2"]),
            (["x-a: 2"], ["X-A: 1", "X-B: 2"], ["X-B: 2", "x-a: 2"]), (["X-C: 3"], ["X-A: 1"], ["X-A: 1", "X-C: 3"]),
            // All lines of a name go for all new ones.
            (
                ["Cache-Control: max-age=5", "cache-control: public"],
                ["Cache-Control: no-cache", "X-A: 1", "Cache-Control: private"],
                ["X-A: 1", "Cache-Control: max-age=5", "cache-control: public"]
            ),
            // What describes the stored bytes stays.
            (
                [
                    "Content-Length: 0", "Content-Encoding: gzip", "Content-Type: text/html",
                    "Content-Range: bytes 0-0/1", "ETag: W/\"v1\"", "Vary: *",
                ],
                ["Content-Type: video/mp4", "ETag: \"v1\""], ["Content-Type: video/mp4", "ETag: \"v1\""]
            ),
            (["ETag: \"v1\""], ["Last-Modified: \(modified)"], ["Last-Modified: \(modified)"]),
            // A date of the origin's is taken only where a strong tag vouches for the bytes.
            (
                ["Last-Modified: \(later)"], ["ETag: \"v1\"", "Last-Modified: \(modified)"],
                ["ETag: \"v1\"", "Last-Modified: \(later)"]
            ),
            (
                ["Last-Modified: \(later)"], ["ETag: W/\"v1\"", "Last-Modified: \(modified)"],
                ["ETag: W/\"v1\"", "Last-Modified: \(modified)"]
            ),
            (["Last-Modified: \(modified)"], [], []),
            // The earlier answer's time is no longer of interest.
            (["Expires: \(later)"], ["Date: \(modified)", "Age: 7", "Expires: \(modified)"], ["Expires: \(later)"]),
            (["Date: \(later)", "Age: 1"], ["Date: \(modified)", "Age: 7"], ["Date: \(later)", "Age: 1"]),
        ] as [(HeaderFields, HeaderFields, HeaderFields)])
    func newerFieldsTakeThePlaceOfStoredOnes(newer: HeaderFields, stored: HeaderFields, updated: HeaderFields) {
        #expect(Freshening.updated(stored, with: newer) == updated)
    }

    @Test func freshenedResponseThatGotNoDateCountsFromItsReceipt() {
        let stored: HeaderFields = [
            "Date: Mon, 12 Jan 1970 13:46:40 GMT", "Expires: Mon, 12 Jan 1970 13:47:40 GMT",
            "Last-Modified: \(Self.modified)",
        ]
        let fields = Freshening.updated(stored, with: ["Expires: Tue, 13 Jan 1970 13:47:40 GMT"])
        let times = ResponseTimes(
            ["Expires: Tue, 13 Jan 1970 13:47:40 GMT"], requestedAt: 1_086_400, receivedAt: 1_086_400)
        #expect(Freshness.of(fields, times, ttl: nil, now: 1_086_400).remaining == 60)
    }
}
