import CachePolicy
import Playlists
import Testing

@testable import Presentations

/// What of a presentation is fetched, and in which order.
@Suite struct PresentationPlanTests {
    private static let main = """
        #EXTM3U
        #EXT-X-SESSION-KEY:METHOD=AES-128,URI="session.key"
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="English",LANGUAGE="en",DEFAULT=YES,URI="en.m3u8"
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="Deutsch",LANGUAGE="de",URI="de.m3u8"
        #EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="s",NAME="English",LANGUAGE="en",URI="sub.m3u8"
        #EXT-X-STREAM-INF:BANDWIDTH=800000,RESOLUTION=640x360,AUDIO="a",SUBTITLES="s"
        low.m3u8
        #EXT-X-STREAM-INF:BANDWIDTH=4200000,RESOLUTION=1920x1080,AUDIO="a",SUBTITLES="s"
        high.m3u8
        #EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=100000,URI="frames.m3u8"
        """

    private static func choice(_ change: (inout RenditionChoice) -> Void) -> RenditionChoice {
        var choice = RenditionChoice()
        change(&choice)
        return choice
    }

    private static func media(_ lines: String...) -> String {
        (["#EXTM3U", "#EXT-X-TARGETDURATION:4"] + lines + ["#EXT-X-ENDLIST"]).joined(separator: "\n")
    }

    private func items(_ text: String) throws -> [String] {
        try PresentationPlan(try PlaylistDocument(text), RenditionChoice()).items().map(\.text)
    }

    @Test(arguments: [
        (RenditionChoice(), ["high", "en"], "1080p 4.2 Mbit/s, audio en"),
        (choice { $0.quality = .worst }, ["low", "en"], "360p 800 kbit/s, audio en"),
        (
            choice { ($0.audio, $0.subtitles) = (.all, .only(["en", "fr"])) }, ["high", "en", "de", "sub"],
            "1080p 4.2 Mbit/s, audio en, audio de, subtitles en; nothing is available in fr"
        ),
        (
            choice { $0.isEverything = true }, ["low", "high", "en", "de", "sub", "frames"],
            "360p 800 kbit/s, 1080p 4.2 Mbit/s, audio en, audio de, subtitles en"
        ),
    ])
    func theChosenPlaylistsAreFetched(choice: RenditionChoice, names: [String], note: String) throws {
        let plan = try PresentationPlan(try PlaylistDocument(Self.main), choice)
        #expect(plan.playlists.map(\.pathAndQuery) == names.map { "/v/\($0).m3u8" })
        #expect(plan.note() == note)
    }

    @Test func renditionsComeSideBySideInTheOrderInWhichTheyArePlayed() throws {
        let main = try PlaylistDocument(Self.main)
        let plan = try PresentationPlan(main, RenditionChoice())
        let (high, english) = (plan.playlists[0], plan.playlists[1])
        let documents = [
            high: try PlaylistDocument(
                Self.media("#EXTINF:4,", "v0.ts", "#EXTINF:4,", "v1.ts"), at: high.absolute),
            english: try PlaylistDocument(
                Self.media(
                    "#EXT-X-MAP:URI=\"a.mp4\"", "#EXTINF:3,", "a0.m4s", "#EXTINF:3,", "a1.m4s", "#EXTINF:2,", "a2.m4s"),
                at: english.absolute),
        ]
        let items = try plan.items(documents)
        #expect(
            items.map(\.text) == [
                "key session.key", "segment v0.ts", "initialization section a.mp4", "segment a0.m4s", "segment a1.m4s",
                "segment v1.ts", "segment a2.m4s",
            ])
        #expect(items.filter { $0.kind == .segment }.map(\.number) == [1, 2, 3, 4, 5])
    }

    @Test func eachThingComesOnce() throws {
        let text = Self.media(
            "#EXT-X-KEY:METHOD=AES-128,URI=\"1.key\"", "#EXTINF:2,", "ad.ts", "#EXTINF:2,", "0.ts",
            "#EXT-X-KEY:METHOD=AES-128,URI=\"2.key\"", "#EXTINF:2,", "1.ts",
            "#EXT-X-KEY:METHOD=AES-128,URI=\"1.key\"", "#EXTINF:2,", "ad.ts")
        #expect(
            try items(text) == ["key 1.key", "segment ad.ts", "segment 0.ts", "key 2.key", "segment 1.ts"])
    }

    @Test func whatIsMissingAtTheOriginAndWhatIsNowhereIsPassedOver() throws {
        let text = Self.media(
            "#EXTINF:2,", "0.ts", "#EXT-X-GAP", "#EXTINF:2,", "1.ts", "#EXTINF:2,", "data:video/mp2t,x", "#EXTINF:2,",
            "3.ts")
        #expect(try items(text) == ["segment 0.ts", "segment 3.ts"])
    }

    @Test func segmentsInARowOfOneFileAreFetchedTogether() throws {
        let text = Self.media(
            "#EXT-X-MAP:URI=\"f.mp4\",BYTERANGE=\"100@0\"", "#EXTINF:2,", "#EXT-X-BYTERANGE:200@100", "f.mp4",
            "#EXTINF:2,", "#EXT-X-BYTERANGE:300", "f.mp4", "#EXTINF:2,", "#EXT-X-BYTERANGE:50@700", "f.mp4",
            "#EXTINF:2,", "#EXT-X-BYTERANGE:4194304@750", "f.mp4")
        #expect(
            try items(text) == [
                "initialization section f.mp4 0..<100", "segment f.mp4 100..<600 x2", "segment f.mp4 700..<750",
                "segment f.mp4 750..<4195054",
            ])
    }

    @Test(arguments: [
        ("#EXT-X-KEY:METHOD=SAMPLE-AES,URI=\"skd://1\",KEYFORMAT=\"com.apple.streamingkeydelivery\"", true),
        ("#EXT-X-KEY:METHOD=SAMPLE-AES,URI=\"https://licence.example/1\",KEYFORMAT=\"com.widevine\"", true),
        ("#EXT-X-KEY:METHOD=AES-128,URI=\"1.key\"", false),
        ("#EXT-X-KEY:METHOD=AES-128,URI=\"data:text/plain;base64,AAECAwQFBgcICQoLDA0ODw==\"", false),
        ("#EXT-X-KEY:METHOD=NONE", false),
    ])
    func whatNeedsALicenceIsSaid(key: String, isSaid: Bool) throws {
        let document = try PlaylistDocument(Self.media(key, "#EXTINF:2,", "0.ts"))
        let plan = try PresentationPlan(document, RenditionChoice())
        #expect((plan.note()?.contains("DRM") ?? false) == isSaid)
        #expect(try !plan.items().contains { $0.url.host == "licence.example" })
    }

    // MARK: DASH

    private static func mpd(_ sets: String, _ attributes: String = "mediaPresentationDuration=\"PT6S\"") -> String {
        "<MPD xmlns=\"urn:mpeg:dash:schema:mpd:2011\" \(attributes)><Period>\(sets)</Period></MPD>"
    }

    @Test func segmentsOfTemplatesAreEnumerated() throws {
        let sets = """
            <AdaptationSet contentType="video"><SegmentTemplate media="v$Number$.m4s" initialization="v.mp4" duration="2"/>
            <Representation id="1" bandwidth="4000000" width="1280" height="720"/></AdaptationSet>
            <AdaptationSet contentType="audio" lang="en"><SegmentTemplate media="a$Number$.m4s" duration="3"/>
            <Representation id="2" bandwidth="128000"/></AdaptationSet>
            """
        let document = try PlaylistDocument(Self.mpd(sets), at: "https://cdn.example/v/main.mpd")
        let plan = try PresentationPlan(document, RenditionChoice())
        #expect(plan.note() == "720p 4.0 Mbit/s, audio en")
        #expect(plan.playlists.isEmpty && plan.indexes.isEmpty)
        #expect(
            try plan.items().map(\.text) == [
                "initialization section v.mp4", "segment v1.m4s", "segment a1.m4s", "segment v2.m4s", "segment a2.m4s",
                "segment v3.m4s",
            ])
    }

    private static let file = mpd(
        "<AdaptationSet contentType=\"video\"><Representation id=\"1\" bandwidth=\"1\"><BaseURL>f.mp4</BaseURL>"
            + "<SegmentBase indexRange=\"100-143\"><Initialization range=\"0-99\"/></SegmentBase>"
            + "</Representation></AdaptationSet>")

    /// A `sidx` box with two segments of 1,000 and 500 bytes.
    private static func index(isNested: Bool = false) -> [UInt8] {
        func number(_ value: Int, _ count: Int = 4) -> [UInt8] {
            (0..<count).reversed().map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) }
        }
        let entries = [1000, 500].flatMap { number($0 | (isNested ? 1 << 31 : 0)) + number(2) + number(0) }
        let body = number(0) + number(1) + number(1) + number(0) + number(0) + number(2) + entries
        return number(body.count + 8) + Array("sidx".utf8) + body
    }

    @Test func theIndexOfAFileSaysWhichSegmentsItHas() throws {
        let document = try PlaylistDocument(Self.file, at: "https://cdn.example/v/main.mpd")
        let plan = try PresentationPlan(document, RenditionChoice())
        let index = try #require(plan.indexes.first)
        #expect(index.item.text == "segment index f.mp4 100..<144")
        let box = try SegmentIndexBox(Self.index(), at: 100)
        let items = try plan.items([:], [index.id: box])
        #expect(items.map(\.text).suffix(2) == ["initialization section f.mp4 0..<100", items.map(\.text)[2]])
        #expect(items.reduce(0) { $0 + $1.segments } == 2)
        let segments = items.filter { $0.kind == .segment }
        #expect(segments.map { $0.range?.count } == [1500])
    }

    @Test func aFileWhoseIndexIsNotUnderstoodComesAsAWhole() throws {
        let document = try PlaylistDocument(Self.file, at: "https://cdn.example/v/main.mpd")
        let plan = try PresentationPlan(document, RenditionChoice())
        let id = try #require(plan.indexes.first?.id)
        #expect(try plan.items().map(\.text).last == "segment f.mp4")
        let nested = try SegmentIndexBox(Self.index(isNested: true), at: 100)
        #expect(try plan.items([:], [id: nested]).map(\.text).last == "segment f.mp4")
    }

    @Test func whatCannotBeFetchedIsRefused() throws {
        let remote = try PlaylistDocument(
            Self.mpd("<AdaptationSet xlink:href=\"x.xml\" xmlns:xlink=\"http://www.w3.org/1999/xlink\"/>"))
        #expect(throws: PresentationFault.self) { try PresentationPlan(remote, RenditionChoice()) }
        let nowhere = try PlaylistDocument("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\ndata:,x")
        #expect(throws: PresentationFault.self) { try PresentationPlan(nowhere, RenditionChoice()) }
    }

    // Items are made one after the other: memory is the playlist's, not theirs.
    @Test func aHundredThousandSegmentsAreEnumerated() throws {
        let lines = (0..<100_000).map { "#EXTINF:2,\n\($0).ts" }.joined(separator: "\n")
        let items = try PresentationPlan(try PlaylistDocument(Self.media(lines)), RenditionChoice()).items()
        #expect(items.reduce(0) { $0 + $1.segments } == 100_000)
    }

    /// The sum of what each entry may state is beyond any clock.
    @Test func longestSegmentsAreEnumerated() throws {
        let entry = "<S t=\"0\" d=\"9007199254740992\" r=\"1\"/>"
        let text =
            "<MPD><Period><AdaptationSet><SegmentTemplate media=\"$Number$\"><SegmentTimeline>"
            + String(repeating: entry, count: 10_000)
            + "</SegmentTimeline></SegmentTemplate><Representation id=\"a\"/></AdaptationSet></Period></MPD>"
        let items = try PresentationPlan(try PlaylistDocument(text), RenditionChoice()).items()
        #expect(items.reduce(0) { $0 + $1.segments } == 20_000)
    }
}
