import Activity
import CachePolicy
import Playlists
import Testing

@testable import Presentations

@Suite struct LiveWindowTests {
    private func segments(_ numbers: Range<Int>, seconds: Int = 4) throws -> any SegmentSequence {
        let lines =
            ["#EXTM3U", "#EXT-X-TARGETDURATION:\(seconds)", "#EXT-X-MEDIA-SEQUENCE:\(numbers.lowerBound)"]
            + numbers.flatMap { ["#EXTINF:\(seconds),", "\($0).ts"] }
        return try #require(
            try PlaylistDocument(lines.joined(separator: "\n"), at: "https://a.example/live.m3u8").media)
    }

    private func left(_ former: Range<Int>, _ newer: Range<Int>, seconds: Int = 4) throws -> [Int64] {
        let newer = try segments(newer, seconds: seconds), former = try segments(former, seconds: seconds)
        return try PlaylistDocument.LiveWindow.left(by: newer, since: former, within: .ofMatch).map(\.number)
    }

    @Test func whatIsNotListedAnyMoreIsLeft() throws {
        #expect(try left(3..<6, 3..<7) == [])
        #expect(try left(3..<6, 5..<8) == [3, 4])
        #expect(try left(3..<6, 9..<12) == [3, 4, 5])
        // It has begun anew.
        #expect(try left(30..<33, 0..<3) == [])
    }

    /// The segments of a timeline without `startNumber`: their numbers count from its beginning.
    private func times(_ numbers: Range<Int>) throws -> any SegmentSequence {
        let template = """
            <SegmentTemplate media="$Time$.m4s"><SegmentTimeline>\
            <S t="\(numbers.lowerBound * 4)" d="4" r="\(numbers.count - 1)"/></SegmentTimeline></SegmentTemplate>
            """
        let document = try PlaylistDocument(Self.live(template))
        return try #require(try document.renditions(at: .seconds(900), within: .ofMatch).first).segments
    }

    @Test func whereNumbersCountFromTheBeginningAddressesTell() throws {
        for (former, newer, expected) in [(3..<6, 3..<7, []), (3..<6, 5..<8, ["12", "16"])]
            as [(Range<Int>, Range<Int>, [String])]
        {
            let left = try PlaylistDocument.LiveWindow.left(by: times(newer), since: times(former), within: .ofMatch)
            #expect(left.compactMap { $0.url?.pathAndQuery } == expected.map { "/v/\($0).m4s" }, "\(former) \(newer)")
        }
    }

    /// 150 segments of four seconds are ten minutes.
    @Test func ofAWindowThatGrowsWhatIsTenMinutesOldIsLeftOnce() throws {
        #expect(try left(0..<149, 0..<150) == [])
        #expect(try left(0..<150, 0..<151) == [0])
        #expect(try left(0..<151, 0..<153) == [1, 2])
    }

    /// A rule describes up to a million segments. Those that are neither at the end nor leave are not even made.
    @Test func ofALongWindowOnlyItsEndIsLookedAt() throws {
        let made = Counter()
        let long = CountedSegments(segments: try segments(0..<100_000), made: made)
        let newer = CountedSegments(segments: try segments(0..<100_001), made: made)
        #expect(
            try PlaylistDocument.LiveWindow.left(by: newer, since: long, within: .ofMatch).map(\.number) == [99_850])
        #expect(made.value < 1000)
    }

    private static func live(_ template: String, _ representations: String = "<Representation id=\"a\"/>") -> String {
        """
        <MPD type="dynamic" minimumUpdatePeriod="PT1S" availabilityStartTime="1970-01-01T00:00:00Z"><Period>
        <AdaptationSet>\(template)\(representations)</AdaptationSet></Period></MPD>
        """
    }

    /// The same as a walk from the end, in a number of steps that does not depend on the numbers in the text.
    @Test func ofARuleNothingIsWalked() throws {
        for entries in ["<S t=\"0\" d=\"1\" r=\"-1\"/>", "<S t=\"0\" d=\"7\" r=\"90000\"/><S d=\"3\" r=\"-1\"/>"] {
            let template = "<SegmentTemplate timescale=\"1000\" media=\"$Number$\"><SegmentTimeline>\(entries)"
            let text = Self.live(template + "</SegmentTimeline></SegmentTemplate>")
            let former = try PlaylistDocument(text), newer = try PlaylistDocument(text)
            let made = Counter(), budget = WorkBudget(bytes: text.utf8.count)
            #expect(try newer.left(since: former, at: .seconds(900), within: budget).isEmpty && budget.steps < 1000)
            let segments = try #require(try newer.renditions(at: .seconds(900), within: budget).first?.segments)
            let counted = CountedSegments(segments: segments, made: made)
            for seconds in [0, 1, 299, 600, 10_000] {
                #expect(
                    try segments.position(within: .seconds(seconds), .ofMatch)
                        == counted.position(within: .seconds(seconds), WorkBudget(bytes: 1 << 20)))
            }
        }
    }

    /// Each rendition is compared with the same one of the earlier state, without a search among all.
    @Test func stepsGrowWithTheRenditions() throws {
        let steps = try [200, 400].map { count in
            let sets = (0..<count).map { "<Representation id=\"\($0)\"/>" }.joined()
            let text = Self.live("<SegmentTemplate duration=\"2\" media=\"$RepresentationID$/$Number$\"/>", sets)
            let budget = WorkBudget(bytes: text.utf8.count), url = OriginURL("https://cdn.example/v/main.mpd")
            let documents = try (0..<2).map { _ in
                try PlaylistDocument(Array(text.utf8), key: url.cacheKey, url: url, base: url, within: budget)
            }
            _ = try documents[1].left(since: documents[0], at: .seconds(60), within: budget)
            return budget.steps
        }
        #expect(steps[1] < steps[0] * 5 / 2, "\(steps)")
    }

    /// Of all renditions together.
    @Test func aStepOfManyRenditionsIsBounded() throws {
        let mpd = { (first: Int) in
            """
            <MPD type="dynamic" minimumUpdatePeriod="PT1S"><Period><AdaptationSet><SegmentTemplate media="$Number$" \
            startNumber="\(first)"><SegmentTimeline><S t="0" d="2" r="299"/></SegmentTimeline></SegmentTemplate>
            """ + (0..<20).map { "<Representation id=\"\($0)\"/>" }.joined() + "</AdaptationSet></Period></MPD>"
        }
        let left = try PlaylistDocument(mpd(5000)).left(
            since: try PlaylistDocument(mpd(0)), at: .zero, within: WorkBudget(bytes: 0))
        #expect(left.count == PlaylistDocument.LiveWindow.most)
    }

    @Test func aLongStepIsBounded() throws {
        #expect(try left(0..<3000, 5000..<5003, seconds: 0).count == PlaylistDocument.LiveWindow.most)
    }
}

/// Segments that are counted as they are made.
private struct CountedSegments: SegmentSequence {
    let segments: any SegmentSequence
    let made: Counter

    var count: Int { segments.count }
    subscript(position: Int) -> MediaSegment {
        made.add()
        return segments[position]
    }
    func number(at position: Int) -> Int64 { segments.number(at: position) }
    func position(of url: OriginURL, at byte: Int64?, within budget: WorkBudget) throws(PlaylistError) -> Int? {
        try segments.position(of: url, at: byte, within: budget)
    }
}
