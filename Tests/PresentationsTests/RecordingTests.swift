import CachePolicy
import Playlists
import Testing

@testable import Presentations

/// What a recording writes, and which segments it takes.
@Suite struct RecordingTests {
    private static let address = "https://cdn.example/live/index.m3u8"

    private static func window(_ numbers: Range<Int>, _ lines: String...) -> String {
        (["#EXTM3U", "#EXT-X-TARGETDURATION:2", "#EXT-X-MEDIA-SEQUENCE:\(numbers.lowerBound)"] + lines
            + numbers.flatMap { ["#EXTINF:2,", "\($0).ts"] }).joined(separator: "\n")
    }

    private static func segments(_ text: String, at address: String = address) throws -> MediaPlaylistSegments {
        guard let segments = try PlaylistDocument(text, at: address).media else {
            throw PlaylistError(.notAPlaylist, "no media playlist")
        }
        return segments
    }

    private func names(_ rendition: RecordedRendition) -> [String] {
        rendition.segments.map { segment in
            (segment.isDiscontinuity ? "|" : "") + (segment.url?.pathAndQuery.split(separator: "/").last ?? "")
        }
    }

    // MARK: Names

    @Test(arguments: [
        ("https://a.example/l.m3u8", "https://a.example/l.m3u8?reelcache-recording=20261123T052147Z"),
        ("https://a.example/l.m3u8?t=1", "https://a.example/l.m3u8?t=1&reelcache-recording=20261123T052147Z"),
    ])
    func aRecordingIsNamedByItsBeginning(stream: String, recording: String) {
        #expect(RecordingName(began: 1_795_411_307).url(of: OriginURL(stream)).absolute == recording)
    }

    @Test(arguments: [Int64.min, -1, 0, .max]) func anyTimeMakesAName(time: Int64) {
        #expect(RecordingName(began: time).text.count == 16)
    }

    // MARK: Which segments

    @Test func itBeginsThreeSegmentsBeforeTheEndAndGoesOn() throws {
        var rendition = RecordedRendition(OriginURL(Self.address))
        #expect(rendition.take(try Self.segments(Self.window(10..<16))).map(\.number) == [13, 14, 15])
        #expect(rendition.take(try Self.segments(Self.window(10..<16))).isEmpty)
        #expect(rendition.take(try Self.segments(Self.window(12..<18))).map(\.number) == [16, 17])
        #expect(names(rendition) == ["13.ts", "14.ts", "15.ts", "16.ts", "17.ts"])
    }

    @Test func whatTheStreamHasDroppedMeanwhileIsADiscontinuity() throws {
        var rendition = RecordedRendition(OriginURL(Self.address))
        _ = rendition.take(try Self.segments(Self.window(10..<13)))
        _ = rendition.take(try Self.segments(Self.window(20..<22)))
        #expect(names(rendition) == ["10.ts", "11.ts", "12.ts", "|20.ts", "21.ts"])
    }

    @Test func aStreamThatCountsAnewGoesOn() throws {
        var rendition = RecordedRendition(OriginURL(Self.address))
        _ = rendition.take(try Self.segments(Self.window(1000..<1003)))
        _ = rendition.take(try Self.segments(Self.window(0..<4)))
        #expect(names(rendition) == ["1000.ts", "1001.ts", "1002.ts", "|1.ts", "2.ts", "3.ts"])
    }

    // Behind one name there may be several servers.
    @Test func anOlderStateOfThePlaylistChangesNothing() throws {
        var rendition = RecordedRendition(OriginURL(Self.address))
        _ = rendition.take(try Self.segments(Self.window(10..<16)))
        #expect(rendition.take(try Self.segments(Self.window(8..<14))).isEmpty)
        #expect(rendition.take(try Self.segments(Self.window(11..<17))).map(\.number) == [16])
        #expect(rendition.segments.allSatisfy { !$0.isDiscontinuity })
    }

    @Test func anEmptyWindowIsWaitedFor() throws {
        var rendition = RecordedRendition(OriginURL(Self.address))
        #expect(rendition.take(try Self.segments(Self.window(5..<5))).isEmpty)
        #expect(rendition.take(try Self.segments(Self.window(5..<6))).count == 1)
    }

    @Test(arguments: [
        (12..<16, ["10.ts", "11.ts", "12.ts", "13.ts", "14.ts", "15.ts"]),
        (30..<34, ["10.ts", "11.ts", "12.ts", "|31.ts", "32.ts", "33.ts"]),
    ])
    func anotherProcessGoesOnAfterTheLastThatWasRecorded(window: Range<Int>, expected: [String]) throws {
        var first = RecordedRendition(OriginURL(Self.address))
        _ = first.take(try Self.segments(Self.window(10..<13)))
        let text = String(decoding: try RecordingText.media(first.segments), as: UTF8.self)
        var second = RecordedRendition(first.url, continuingAfter: Array(try Self.segments(text).all))
        _ = second.take(try Self.segments(Self.window(window)))
        #expect(names(second) == expected)
    }

    /// What was written says what follows, whatever the stream calls its segments by now.
    @Test(arguments: [
        (12..<16, "", ["10.ts", "11.ts", "12.ts", "13.ts", "14.ts", "15.ts"]),
        (11..<15, "?token=2", ["10.ts", "11.ts", "12.ts", "|13.ts?token=2", "14.ts?token=2"]),
        (20..<26, "", ["10.ts", "11.ts", "12.ts", "|20.ts", "21.ts", "22.ts", "23.ts", "24.ts", "25.ts"]),
        (8..<12, "", ["10.ts", "11.ts", "12.ts"]),
    ])
    func anotherAttemptTakesAllThatIsNew(window: Range<Int>, token: String, expected: [String]) throws {
        var first = RecordedRendition(OriginURL(Self.address))
        _ = first.take(try Self.segments(Self.window(8..<13)))
        let written = try RecordingText.media(first.segments, next: first.next)
        var second = RecordedRendition(
            first.url, continuingAfter: Array(try Self.segments(String(decoding: written, as: UTF8.self)).all),
            next: RecordingText.next(in: written))
        let text = Self.window(window).replacing(".ts", with: ".ts" + token)
        _ = second.take(try Self.segments(text))
        #expect(names(second) == expected)
    }

    /// What was made parts of the recording stays counted, but for what follows a lost segment.
    @Test func aLostSegmentTakesTheCountOfCommittedOnesBack() throws {
        var rendition = RecordedRendition(OriginURL(Self.address))
        let new = rendition.take(try Self.segments(Self.window(0..<3)))
        rendition.committed = 3
        _ = rendition.take(try Self.segments(Self.window(0..<5)))
        #expect(rendition.committed == 3)
        let lost = try #require(new[1].url)
        rendition.lose(PresentationItem(kind: .segment, url: lost, segments: 1))
        #expect(rendition.committed == 1)
    }

    @Test func whatLacksAtTheEndIsNewToAnotherAttempt() throws {
        var rendition = RecordedRendition(OriginURL(Self.address))
        let new = rendition.take(try Self.segments(Self.window(0..<6)))
        let items = new.compactMap(\.url).map { PresentationItem(kind: .segment, url: $0, segments: 1) }
        #expect(rendition.without([items[1], items[2]]).next == 4)
        #expect(rendition.without([items[0]]).next == 6)
        #expect(rendition.next == 6)
    }

    /// Early, its numbers look like those of an older state.
    @Test func aStreamThatCountsAnewSoonAfterItsStartGoesOn() throws {
        var rendition = RecordedRendition(OriginURL(Self.address))
        _ = rendition.take(try Self.segments(Self.window(5..<15)))
        _ = rendition.take(try Self.segments(Self.window(0..<9)))
        #expect(names(rendition) == ["12.ts", "13.ts", "14.ts", "|6.ts", "7.ts", "8.ts"])
        // An older state lists what was recorded.
        #expect(rendition.take(try Self.segments(Self.window(0..<8))).isEmpty)
    }

    @Test func whatCannotBeHadLeavesAGap() throws {
        var rendition = RecordedRendition(OriginURL(Self.address))
        let new = rendition.take(try Self.segments(Self.window(0..<3)))
        let items = new.compactMap(\.url).map { PresentationItem(kind: .segment, url: $0, segments: 1) }
        rendition.lose(items[1])
        #expect(names(rendition) == ["0.ts", "|2.ts"])
        rendition.lose(items[2])
        _ = rendition.take(try Self.segments(Self.window(0..<4)))
        #expect(names(rendition) == ["0.ts", "|3.ts"])
    }

    @Test(arguments: ["#EXT-X-MAP:URI=\"i.mp4\"", "#EXT-X-KEY:METHOD=AES-128,URI=\"1.key\""])
    func withoutAKeyOrAnInitializationSectionNoSegmentThatNeedsItIsListed(line: String) throws {
        var rendition = RecordedRendition(OriginURL(Self.address))
        let new = rendition.take(try Self.segments(Self.window(0..<3, line)))
        let other = "#EXT-X-KEY:METHOD=NONE\n#EXT-X-MAP:URI=\"other.mp4\"\n#EXTINF:2,\n3.ts"
        _ = rendition.take(try Self.segments(Self.window(0..<3, line) + "\n" + other))
        rendition.lose(try #require(new[0].companions.first))
        #expect(names(rendition) == ["|3.ts"])

        _ = rendition.take(try Self.segments(Self.window(4..<6, line)))
        rendition.lose(try #require(new[0].companions.first))
        #expect(names(rendition) == ["|3.ts"])
        _ = rendition.take(try Self.segments(Self.window(6..<7, "#EXT-X-MAP:URI=\"other.mp4\"")))
        #expect(names(rendition) == ["|3.ts", "|6.ts"])
    }

    // MARK: What is written

    @Test(arguments: [
        window(7..<9),
        window(7..<9, "#EXT-X-MAP:URI=\"i.mp4\",BYTERANGE=\"10@5\""),
        window(7..<9, "#EXT-X-KEY:METHOD=AES-128,URI=\"1.key\",IV=0x0000000000000000000000000000000A"),
        window(7..<9, "#EXT-X-KEY:METHOD=AES-128,URI=\"1.key\"") + "\n#EXT-X-KEY:METHOD=NONE\n#EXTINF:1.5,\n9.ts",
        window(
            7..<9, "#EXT-X-MAP:URI=\"i.mp4\"", "#EXT-X-KEY:METHOD=AES-128,URI=\"1.key\"",
            "#EXT-X-KEY:METHOD=AES-128,URI=\"2.key\",IV=0x00000000000000000000000000000002"),
        window(
            7..<9, "#EXT-X-KEY:METHOD=AES-128,URI=\"1.key\",IV=0x00000000000000000000000000000001",
            "#EXT-X-MAP:URI=\"i.mp4\"", "#EXT-X-KEY:METHOD=AES-128,URI=\"2.key\""),
        window(7..<8) + "\n#EXT-X-DISCONTINUITY\n#EXTINF:2.002002002,\n#EXT-X-BYTERANGE:7@3\n9.ts",
    ])
    func whatIsWrittenSaysTheSame(text: String) throws {
        let segments = try Self.segments(text)
        let written = String(decoding: try RecordingText.media(Array(segments.all)), as: UTF8.self)
        let read = try Self.segments(written, at: "https://elsewhere.example/x.m3u8")
        #expect(read.count == segments.count)
        for (a, b) in zip(read.all, segments.all) {
            #expect((a.number, a.url, a.range, a.duration) == (b.number, b.url, b.range, b.duration))
            #expect(
                (a.initialization?.url, a.initialization?.range, a.isDiscontinuity)
                    == (b.initialization?.url, b.initialization?.range, b.isDiscontinuity))
            #expect(a.keys.map(\.url) == b.keys.map(\.url))
            // A section is read with the keys that were stated before it (RFC 8216 §4.3.2.4).
            #expect(a.initialization?.keys.map(\.url) == b.initialization?.keys.map(\.url))
            #expect(a.companions.map(\.url) == b.companions.map(\.url))
        }
        let document = try PlaylistDocument(written)
        #expect(!document.isLive)
        // What it says once more is the same.
        #expect(String(decoding: try RecordingText.media(Array(read.all)), as: UTF8.self) == written)
    }

    @Test func aSectionIsReadWithTheKeysThatWereStatedBeforeIt() throws {
        func key(_ number: Int) -> String { "#EXT-X-KEY:METHOD=AES-128,URI=\"\(number).key\"" }
        let map = "#EXT-X-MAP:URI=\"i.mp4\""
        for (lines, expected) in [
            ([map, key(1)], ["/live/1.key", "/live/i.mp4"]),
            ([key(1), map, key(2)], ["/live/1.key", "/live/2.key", "/live/i.mp4"]),
        ] {
            let segment = try Self.segments(Self.window(7..<8, lines.joined(separator: "\n")))[0]
            #expect(segment.companions.map(\.url.pathAndQuery) == expected)
            let text = String(decoding: try RecordingText.media([segment]), as: UTF8.self)
            let written = text.split(separator: "\n").filter { $0.contains("URI=") }
            #expect(written.map { $0.prefix(10) } == lines.map { $0.prefix(10) }, "\(text)")
        }
    }

    @Test func aListIsFullBeforeItIsTooLongToBeRead() throws {
        let segment = try Self.segments(Self.window(7..<8))[0], line = [UInt8](repeating: 0x61, count: 1 << 20)
        #expect(!RecordingText.isFull(try RecordingText.media([segment]), segments: 1))
        #expect(RecordingText.isFull(Array([[UInt8]](repeating: line, count: 29).joined()), segments: 1))
        #expect(RecordingText.isFull([], segments: 450_000))
        #expect(
            RecordingText.isFull(Array(String(repeating: "\n#EXT-X-KEY:METHOD=NONE", count: 220_000).utf8), segments: 1)
        )
    }

    // RFC 8216 §5.2: without a vector the number is it, and numbers shift where segments are missing.
    @Test(arguments: ["AES-128", "SAMPLE-AES"]) func aKeyWithoutAVectorGetsTheNumberOfItsSegment(method: String) throws
    {
        let segments = try Self.segments(Self.window(255..<257, "#EXT-X-KEY:METHOD=\(method),URI=\"1.key\""))
        let read = try Self.segments(
            String(decoding: try RecordingText.media([segments[0], segments[1]].reversed()), as: UTF8.self))
        #expect(
            read.all.map { $0.keys.first?.initializationVector } == [
                "0x00000000000000000000000000000100", "0x000000000000000000000000000000FF",
            ])
    }

    // draft-pantos-hls-rfc8216bis §4.4.4.4: it must not have one.
    @Test func aKeyForCounterModeGetsNoVector() throws {
        let key = "#EXT-X-KEY:METHOD=SAMPLE-AES-CTR,URI=\"https://cdn.example/1.key\"\n"
        let segments = Array(try Self.segments(Self.window(7..<9, key)).all)
        #expect(String(decoding: try RecordingText.media(segments), as: UTF8.self).contains(key))
    }

    @Test func aKeyInThePlaylistIsRecordedWithIt() throws {
        let key = "#EXT-X-KEY:METHOD=AES-128,URI=\"data:;base64,AAECAwQFBgcICQoLDA0ODw==\""
        let segments = Array(try Self.segments(Self.window(7..<9, key)).all)
        let text = String(decoding: try RecordingText.media(segments), as: UTF8.self)
        #expect(text.contains(key + ",IV=0x00000000000000000000000000000007\n"))
    }

    @Test(arguments: [
        window(7..<9, "#EXT-X-MAP:URI=\"data:video/mp4,x\""),
        window(7..<9, "#EXT-X-KEY:METHOD=SAMPLE-AES,URI=\"skd://1\",KEYFORMAT=\"com.apple.streamingkeydelivery\""),
    ])
    func whatIsInNoFileCannotBeRecorded(text: String) throws {
        let segments = Array(try Self.segments(text).all)
        #expect(throws: PresentationFault.self) { try RecordingText.media(segments) }
    }

    @Test func theMultivariantPlaylistLeadsToWhatIsRecorded() throws {
        let main = """
            #EXTM3U
            #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="English",URI="en.m3u8"
            #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="Deutsch",URI="de.m3u8"
            #EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO="a"
            low.m3u8
            #EXT-X-STREAM-INF:BANDWIDTH=2,AUDIO="a"
            high.m3u8
            """
        let document = try PlaylistDocument(main, at: "https://cdn.example/live/main.m3u8")
        let name = RecordingName(began: 0)
        let kept = ["high", "de"].map { OriginURL("https://cdn.example/live/\($0).m3u8") }
        let text = try #require(RecordingText.multivariant(document, keeping: Set(kept), at: document.url, name))
        let read = try PlaylistDocument(String(decoding: text, as: UTF8.self), at: "https://other.example/x.m3u8")
        guard case .hls(let playlist) = read.content else { return }
        #expect(Set(playlist.multivariant?.playlists ?? []) == Set(kept.map(name.url)))
        #expect(RecordingText.multivariant(document, keeping: Set([kept[1]]), at: document.url, name) == nil)
    }

    /// The URL of the recording is that of the stream, without what a redirect has added.
    @Test func theMultivariantPlaylistHasTheValuesOfTheURLThatAnswered() throws {
        let main = "#EXTM3U\n#EXT-X-DEFINE:QUERYPARAM=\"tok\"\n#EXT-X-STREAM-INF:BANDWIDTH=1\nlow.m3u8?t={$tok}\n"
        let url = OriginURL("https://s.example/live.m3u8"), base = OriginURL("https://cdn.example/live.m3u8?tok=1")
        let document = try PlaylistDocument(Array(main.utf8), key: url.cacheKey, url: url, base: base)
        let name = RecordingName(began: 0), kept = OriginURL("https://cdn.example/low.m3u8?t=1")
        let text = try #require(RecordingText.multivariant(document, keeping: [kept], at: url, name))
        let read = try PlaylistDocument(String(decoding: text, as: UTF8.self), at: name.url(of: url).absolute)
        guard case .hls(let playlist) = read.content else { return }
        #expect(playlist.multivariant?.playlists == [name.url(of: kept)])
    }
}
