import HTTPModel
import Testing

@Suite struct TimeSpanTests {
    @Test(
        arguments: [
            ("0s", 0), ("45s", 45), ("90m", 5400), ("90min", 5400), ("12h", 43200), ("30d", 2_592_000),
            ("2w", 1_209_600), ("1.5 h", 5400), ("12H", 43200),
            (".5d", 43200), ("1000d", 86_400_000),
        ] as [(String, Int64)])
    func spanIsReadAsPeopleWriteIt(text: String, seconds: Int64) {
        #expect(TimeSpan(text)?.seconds == seconds)
    }

    @Test(arguments: [
        "", "30", "d", "-1d", "+1d", "1y", "1d12h", "1,5h", "1e3s", "inf", "nans", "٣d", "ten d", "400000000d",
        "1.2.3d", "30 days",
    ])
    func whatIsNoSpanIsRefused(text: String) {
        #expect(TimeSpan(text) == nil)
    }

    @Test(
        arguments: [
            (-5, "0 s"), (0, "0 s"), (59, "59 s"), (60, "1 min"), (3599, "59 min"), (3600, "1 h"),
            (48 * 3600 - 1, "47 h"), (48 * 3600, "2 d"),
            (400 * 86400, "400 d"),
        ] as [(Int64, String)])
    func spanPrintsOneNumber(seconds: Int64, text: String) {
        #expect(TimeSpan(seconds: seconds).description == text)
    }

    @Test(
        arguments: [(1000, 1000, "just now"), (1001, 1000, "just now"), (999, 1000, "1 s ago"), (0, 7200, "2 h ago")]
            as [(Int64, Int64, String)])
    func theTimeSinceIsToldAtAFixedNow(time: Int64, now: Int64, text: String) {
        #expect(TimeSpan.ago(time, now: now) == text)
    }
}
