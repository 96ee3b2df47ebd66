import CachePolicy
import Testing

@testable import Playlists

@Suite struct MediaPlaylistTests {
    private static func segments(_ text: String) throws -> MediaPlaylistSegments {
        try #require(try HLSPlaylist("#EXTM3U\n#EXT-X-TARGETDURATION:10\n" + text, at: "https://h/v/x.m3u8").segments)
    }

    // RFC 8216 §4.3.2.2: without an offset, a range follows the one before, of the same file.
    @Test func byteRangesFollowEachOther() throws {
        let segments = try Self.segments(
            """
            #EXT-X-MAP:URI="f.mp4",BYTERANGE="700@0"
            #EXTINF:2,
            #EXT-X-BYTERANGE:100@700
            f.mp4
            #EXTINF:2,
            #EXT-X-BYTERANGE:50
            f.mp4
            #EXTINF:2,
            #EXT-X-BYTERANGE:10@5
            g.mp4
            #EXTINF:2,
            h.mp4
            """)
        #expect(segments.all.map(\.range) == [700..<800, 800..<850, 5..<15, nil])
        #expect(segments.initializations.map(\.range) == [0..<700])
    }

    @Test(arguments: [
        "#EXT-X-BYTERANGE:1@0\na\n#EXT-X-BYTERANGE:1\nb", "a\n#EXT-X-BYTERANGE:1\na",
        "#EXT-X-PART:DURATION=1,URI=\"a\",BYTERANGE=\"5@0\"\n#EXT-X-PART:DURATION=1,URI=\"b\",BYTERANGE=\"5\"",
    ])
    func byteRangeThatFollowsNoneIsAnError(text: String) {
        #expect(failure { _ = try Self.segments(text) }?.kind == .malformed)
    }

    @Test func partsHaveRangesThatFollowEachOther() throws {
        let playlist = try HLSPlaylist(
            """
            #EXTM3U
            #EXT-X-PART:DURATION=1,URI="a",BYTERANGE="5@3"
            #EXT-X-PART:DURATION=1,URI="a",BYTERANGE="4",GAP=YES
            #EXTINF:2,
            a
            """)
        #expect(
            playlist.media?.segments.map { $0.parts.map(\.range) } == [[3..<8, 8..<12]]
                && playlist.media?.segments[0].parts[1].isGap == true)
    }

    // RFC 8216 §4.3.2.4 and §4.3.2.5: both hold until another comes.
    @Test func keysAndInitializationSectionsHoldUntilOthersCome() throws {
        let segments = try Self.segments(
            """
            a
            #EXT-X-KEY:METHOD=AES-128,URI="k1"
            #EXT-X-KEY:METHOD=SAMPLE-AES,URI="skd://x",KEYFORMAT="com.apple"
            #EXT-X-MAP:URI="i1"
            b
            #EXT-X-KEY:METHOD=AES-128,URI="k2"
            c
            #EXT-X-KEY:METHOD=NONE
            #EXT-X-MAP:URI="i2"
            d
            #EXT-X-KEY:METHOD=AES-128,URI="k2"
            e
            #EXT-X-KEY:METHOD=AES-128,URI="k2"
            f
            """)
        #expect(
            segments.all.map { $0.keys.map { $0.url?.pathAndQuery } } == [
                [], ["/v/k1", nil], [nil, "/v/k2"], [], ["/v/k2"], ["/v/k2"],
            ])
        #expect(
            segments.all.map { $0.initialization?.url?.pathAndQuery } == [
                nil, "/v/i1", "/v/i1", "/v/i2", "/v/i2", "/v/i2",
            ])
        #expect(segments.keys.compactMap(\.url).map(\.pathAndQuery) == ["/v/k1", "/v/k2"])
    }

    @Test func tagsOfASegmentAreThatSegmentsAlone() throws {
        let segments = try Self.segments(
            "#EXT-X-MEDIA-SEQUENCE:7\n#EXT-X-DISCONTINUITY\n#EXTINF:9.5,\na\n#EXT-X-GAP\n#EXTINF:1,\nb\n#EXTINF:x,\nc")
        #expect(
            segments.all.map(\.isDiscontinuity) == [true, false, false]
                && segments.all.map(\.isGap) == [false, true, false])
        #expect(
            segments.all.map(\.duration) == [.milliseconds(9500), .seconds(1), .zero]
                && segments.all.map(\.number) == [7, 8, 9])
    }

    // draft-pantos-hls-rfc8216bis §4.4.5.2: the first that is listed follows those that are skipped.
    @Test func segmentsAreFoundByTheirNumbers() throws {
        let segments = try Self.segments(
            "#EXT-X-MEDIA-SEQUENCE:7\n#EXT-X-SKIP:SKIPPED-SEGMENTS=3\n#EXTINF:1,\na\n#EXTINF:1,\nb")
        #expect(segments.number(at: 1) == 11 && segments.all.map(\.number) == [10, 11])
        #expect((9...12).map { segments.position(number: $0) } == [nil, 0, 1, nil])
    }

    @Test func placeOfAnAddressIsFound() throws {
        let segments = try Self.segments(
            "a%2d/1.ts\nb/1.ts\nhttps://other/v/b/1.ts\n#EXT-X-GAP\nc/1.ts\ndata:x\nd/1.ts?x#y")
        func place(_ url: String) -> Int? { segments.position(of: OriginURL(url), at: nil) }
        #expect(
            place("https://h/v/a-/1.ts") == 0 && place("https://h/v/a%2D/1.ts") == 0 && place("https://h/v/b/1.ts") == 1
        )
        #expect(place("https://other/v/b/1.ts") == 2 && place("https://h/v/d/1.ts?x") == 5)
        #expect(
            place("https://h/v/d/1.ts") == nil && place("http://h/v/b/1.ts") == nil
                && place("https://h/v/x/1.ts") == nil)
    }

    @Test func placeInASingleFileIsFoundByItsByte() throws {
        let segments = try Self.segments(
            (0..<1000).map { "#EXT-X-BYTERANGE:10@\($0 * 10 + 5)\nf.ts\n" }.joined() + "#EXT-X-BYTERANGE:10@5\nf.ts\n")
        let url = OriginURL("https://h/v/f.ts")
        #expect(
            segments.position(of: url, at: 5) == 0 && segments.position(of: url, at: 14) == 0
                && segments.position(of: url, at: 15) == 1)
        #expect(
            segments.position(of: url, at: 10_004) == 999 && segments.position(of: url, at: 10_005) == nil
                && segments.position(of: url, at: 4) == nil)
    }

    // Half the target duration, never more than a part; an error after one and a half.
    @Test(arguments: [
        ("#EXT-X-TARGETDURATION:6", 3000, 9000), ("#EXT-X-TARGETDURATION:5", 2500, 7500),
        ("#EXT-X-TARGETDURATION:4\n#EXT-X-PART-INF:PART-TARGET=0.5", 500, 6000),
        ("#EXT-X-TARGETDURATION:4\n#EXT-X-PART-INF:PART-TARGET=100", 2000, 6000),
        ("#EXT-X-TARGETDURATION:4\n#EXT-X-PLAYLIST-TYPE:EVENT", 2000, 6000),
        ("#EXT-X-TARGETDURATION:999999999", 3_600_000, 5_400_000),
        ("#EXT-X-TARGETDURATION:4\n#EXT-X-ENDLIST", nil, nil), ("#EXT-X-TARGETDURATION:0", nil, nil),
        ("#EXT-X-TARGETDURATION:4\n#EXT-X-PLAYLIST-TYPE:VOD", nil, nil), ("#EXT-X-MEDIA-SEQUENCE:4", nil, nil),
    ])
    func livePlaylistsAgeByTheirTargetDuration(text: String, fresh: Int?, silent: Int?) throws {
        let rule = try HLSPlaylist("#EXTM3U\n" + text).media?.refreshRule
        #expect(
            rule?.freshFor == fresh.map { .milliseconds($0) } && rule?.silentAfter == silent.map { .milliseconds($0) })
    }

    @Test func hundredThousandSegmentsAreRead() throws {
        let text =
            "#EXTM3U\n#EXT-X-TARGETDURATION:2\n" + (0..<100_000).map { "#EXTINF:2.000,\nseg-\($0).ts\n" }.joined()
        let playlist = try HLSPlaylist(text), segments = try #require(playlist.segments)
        #expect(
            segments.count == 100_000
                && segments.position(of: OriginURL("https://cdn.example/v/seg-99999.ts"), at: nil) == 99_999)
        #expect(try playlist.edits(for: .local, at: ProxyForm.local(playlist.base)) == [])
        #expect(try playlist.edits(for: .local, at: ProxyForm.local(OriginURL("https://h/"))).count == 100_000)
    }

    @Test func sizesAreBounded() {
        #expect(
            failure {
                _ = try HLSPlaylist(
                    [UInt8](repeating: 0x0A, count: PlaylistLimits.bytes + 1), at: OriginURL("https://h/"))
            }?.kind == .tooLarge)
        let line = "#EXTM3U\n" + String(repeating: "x", count: PlaylistLimits.line + 1)
        #expect(failure { _ = try HLSPlaylist(line) }?.kind == .tooLarge)
        let formats = (0...16).map { "#EXT-X-KEY:METHOD=X,URI=\"k\",KEYFORMAT=\"\($0)\"\n" }.joined()
        #expect(failure { _ = try HLSPlaylist("#EXTM3U\n" + formats) }?.kind == .tooLarge)
    }

    @Test(arguments: [
        ("a\n", PlaylistLimits.listedSegments + 1), ("#EXT-X-MEDIA:URI=\"a\"\n", PlaylistLimits.renditions + 1),
        ("#EXT-X-STREAM-INF:\na\n", PlaylistLimits.renditions + 1),
    ])
    func countsAreBounded(line: String, count: Int) {
        #expect(failure { _ = try HLSPlaylist("#EXTM3U\n" + String(repeating: line, count: count)) }?.kind == .tooLarge)
    }

    // A base of 8 KiB written before each of many short references.
    @Test func rewrittenTextIsBounded() throws {
        let base = "https://h/" + String(repeating: "x", count: 8000) + "/"
        let playlist = try HLSPlaylist("#EXTM3U\n" + String(repeating: "a\n", count: 4500), at: base)
        #expect(failure { _ = try playlist.edits(for: .local, at: OriginURL("https://other/")) }?.kind == .tooLarge)
    }
}
