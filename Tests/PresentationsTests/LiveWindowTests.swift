import CachePolicy
import Metrics
import Playlists
import Testing

@testable import Presentations

@Suite struct LiveWindowTests {
    private func segments(_ numbers: Range<Int>, seconds: Int = 4) throws -> any SegmentSequence {
        let lines =
            ["#EXTM3U", "#EXT-X-TARGETDURATION:\(seconds)", "#EXT-X-MEDIA-SEQUENCE:\(numbers.lowerBound)"]
            + numbers.flatMap { ["#EXTINF:\(seconds),", "\($0).ts"] }
        let playlist = try HLSPlaylist(
            Array(lines.joined(separator: "\n").utf8), at: try OriginURL(url: "https://a.example/live.m3u8"))
        return try #require(playlist.segments)
    }

    private func left(_ former: Range<Int>, _ newer: Range<Int>, seconds: Int = 4) throws -> [Int64] {
        LiveWindow.left(by: try segments(newer, seconds: seconds), since: try segments(former, seconds: seconds))
            .map(\.number)
    }

    @Test func whatIsNotListedAnyMoreIsLeft() throws {
        #expect(try left(3..<6, 3..<7) == [])
        #expect(try left(3..<6, 5..<8) == [3, 4])
        #expect(try left(3..<6, 9..<12) == [3, 4, 5])
        // It has begun anew.
        #expect(try left(30..<33, 0..<3) == [])
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
        #expect(LiveWindow.left(by: newer, since: long).map(\.number) == [99_850])
        #expect(made.value < 1000)
    }

    @Test func aLongStepIsBounded() throws {
        #expect(try left(0..<3000, 5000..<5003, seconds: 0).count == LiveWindow.most)
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
    func position(of url: OriginURL, at byte: Int64?) -> Int? { segments.position(of: url, at: byte) }
    var hosts: Set<String> { segments.hosts }
}
