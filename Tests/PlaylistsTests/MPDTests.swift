import CachePolicy
import Testing

@testable import Playlists

extension MPD {
    init(_ text: String, at base: String = "https://cdn.example/d/i.mpd") throws(PlaylistError) {
        try self.init(bytes(text), at: OriginURL(base))
    }

    static let first = RepresentationID(period: 0, adaptationSet: 0, representation: 0)

    /// Of the first representation.
    func firstSegments(at now: Duration? = nil) throws -> RepresentationSegments {
        try segments(of: Self.first, at: now)
    }
}

@Suite struct MPDTests {
    private static func timeline(_ entries: String) -> String {
        "<SegmentTemplate media=\"$Number$\"><SegmentTimeline>\(entries)</SegmentTimeline></SegmentTemplate>"
    }

    @Test func timelineIsEnumerated() throws {
        let mpd = try MPD(MPDSamples.timeline), audio = try mpd.segments(of: mpd.representations[1])
        let video = try mpd.firstSegments()
        #expect(video.all.map(\.url?.pathAndQuery) == (1...3).map { "/d/chunk-stream0-0000\($0).m4s" })
        #expect(
            video.all.map(\.duration) == [.seconds(2), .seconds(2), .seconds(2)]
                && video.all.map(\.number) == [1, 2, 3])
        #expect(video.initializations.map(\.url?.pathAndQuery) == ["/d/init-stream0.m4s"])
        #expect(audio.all.map(\.duration) == [.milliseconds(1920), .milliseconds(2048), .milliseconds(2032)])
        #expect(video.position(of: OriginURL("https://cdn.example/d/chunk-stream0-00003.m4s"), at: nil) == 2)
        #expect(video.position(of: OriginURL("https://cdn.example/d/chunk-stream0-3.m4s"), at: nil) == nil)
        #expect(video.position(of: OriginURL("https://cdn.example/d/chunk-stream0-00004.m4s"), at: nil) == nil)
        #expect(video.position(of: OriginURL("https://cdn.example/d/chunk-stream1-00003.m4s"), at: nil) == nil)
    }

    @Test func numbersAreEnumerated() throws {
        let segments = try MPD(MPDSamples.numbers).firstSegments()
        #expect(segments.all.map(\.url?.pathAndQuery) == (1...3).map { "/d/chunk-stream0-0000\($0).m4s" })
        #expect(segments.initializations.map(\.url?.pathAndQuery) == ["/d/init-stream0.m4s"])
    }

    @Test func partsOfASingleFileAreEnumerated() throws {
        let segments = try MPD(MPDSamples.singleFile).firstSegments(),
            url = OriginURL("https://cdn.example/d/i-stream0.mp4")
        #expect(
            segments.all.map(\.url) == [url, url, url]
                && segments.all.map(\.range) == [812..<13744, 13744..<26838, 26838..<39826])
        #expect(segments.initializations.map(\.url) == [url] && segments.initializations.map(\.range) == [0..<812])
        #expect(
            segments.position(of: url, at: 13743) == 0 && segments.position(of: url, at: 13744) == 1
                && segments.position(of: url, at: 39826) == nil)
    }

    @Test(
        arguments: [
            (MPDSamples.timeline, 1), (MPDSamples.numbers, 1), (MPDSamples.singleFile, 1),
            (MPDSamples.numbers.replacing("startNumber=\"1\"", with: "startNumber=\"7\""), 7),
        ] as [(String, Int64)])
    func segmentsAreFoundByTheirNumbers(text: String, first: Int64) throws {
        let segments = try MPD(text).firstSegments(), places = Array(0..<segments.count), numbers = first..<first + 3
        #expect(
            places.map { segments.number(at: $0) } == Array(numbers) && segments.all.map(\.number) == Array(numbers))
        #expect(numbers.map { segments.position(number: $0) } == places)
        #expect(segments.position(number: first - 1) == nil && segments.position(number: first + 3) == nil)
    }

    @Test func mpdSaysWhatItHas() throws {
        let mpd = try MPD(MPDSamples.timeline), video = try #require(mpd[MPD.first])
        #expect(!mpd.isDynamic && mpd.refreshRule == nil && mpd.periods.map(\.duration) == [.seconds(6)])
        #expect(mpd.periods[0].adaptationSets.map(\.kind) == [.video, .audio])
        #expect(
            video.id == "0" && video.bandwidth == 53197 && video.resolution == Resolution(width: 64, height: 48)
                && video.frameRate == 10)
    }

    @Test func liveMPDSaysWhenItChanges() throws {
        let mpd = try MPD(
            """
            <MPD type="dynamic" minimumUpdatePeriod="PT2S" availabilityStartTime="2026-01-01T00:00:00Z" \
            maxSegmentDuration="PT4S"
             timeShiftBufferDepth="PT1M">
            <ProgramInformation><Title>A &amp; B</Title></ProgramInformation>
            <Period xlink:href="/p.xml" xlink:actuate="onLoad" xmlns:xlink="http://www.w3.org/1999/xlink"/></MPD>
            """)
        #expect(
            mpd.isDynamic && mpd.minimumUpdatePeriod == .seconds(2)
                && mpd.availabilityStartTime == .seconds(1_767_225_600))
        #expect(mpd.timeShiftBufferDepth == .seconds(60) && mpd.title == "A & B")
        #expect(mpd.periods.map(\.remote?.pathAndQuery) == ["/p.xml"])
        #expect(mpd.refreshRule?.freshFor == .seconds(2) && mpd.refreshRule?.silentAfter == .seconds(6))
    }

    @Test(arguments: [
        ("type=\"dynamic\" minimumUpdatePeriod=\"PT0S\"", 1000, 3000),
        ("type=\"dynamic\" minimumUpdatePeriod=\"PT10S\"", 10_000, 15_000),
        ("type=\"dynamic\"", nil, nil), ("type=\"static\" minimumUpdatePeriod=\"PT1S\"", nil, nil),
        ("minimumUpdatePeriod=\"PT1S\"", nil, nil),
        ("type=\"dynamic\" minimumUpdatePeriod=\"P1Y\"", 3_600_000, 5_400_000),
    ])
    func dynamicMPDsAgeByTheirUpdatePeriod(attributes: String, fresh: Int?, silent: Int?) throws {
        let rule = try MPD("<MPD \(attributes)/>").refreshRule
        #expect(
            rule?.freshFor == fresh.map { .milliseconds($0) } && rule?.silentAfter == silent.map { .milliseconds($0) })
    }

    @Test func whatALevelDoesNotSayHoldsFromTheOneAbove() throws {
        let mpd = try MPD(
            """
            <MPD mediaPresentationDuration="PT1M"><BaseURL>https://a.example/x/</BaseURL>
            <Period duration="PT4S"><BaseURL>p1/</BaseURL><SegmentTemplate timescale="10" duration="20" \
            media="$Number$.m4s" startNumber="5"/>
            <AdaptationSet mimeType="audio/mp4" lang="de"><SegmentTemplate initialization="$RepresentationID$-init"/>
            <Representation id="a" bandwidth="1"><BaseURL>a/</BaseURL></Representation>
            <Representation id="b" \
            bandwidth="2"><BaseURL>/b/</BaseURL><BaseURL>https://b.example/b/</BaseURL><SegmentTemplate \
            media="$Bandwidth%04d$/$Time$$$"/>
            </Representation></AdaptationSet></Period>
            <Period><AdaptationSet><Representation \
            id="c"><BaseURL>whole.mp4</BaseURL></Representation></AdaptationSet></Period></MPD>
            """)
        let all = try mpd.representations.map { try mpd.segments(of: $0) }
        #expect(
            all[0].all.map { $0.url?.absolute } == ["https://a.example/x/p1/a/5.m4s", "https://a.example/x/p1/a/6.m4s"])
        #expect(all[0].initializations.map(\.url?.pathAndQuery) == ["/x/p1/a/a-init"])
        #expect(all[1].all.map { $0.url?.absolute } == ["https://a.example/b/0002/0$", "https://a.example/b/0002/20$"])
        #expect(all[1].position(of: OriginURL("https://a.example/b/0002/20$"), at: 7) == 1)
        #expect(mpd.representations.map { mpd[$0]?.baseURLs.count } == [1, 2, 1])
        #expect(
            all[2].all.map { $0.url?.absolute } == ["https://a.example/x/whole.mp4"]
                && all[2].all.map(\.duration) == [.seconds(56)])
        #expect(
            mpd.periods.map(\.start) == [.zero, .seconds(4)]
                && mpd.periods.map(\.duration) == [.seconds(4), .seconds(56)])
        #expect(mpd.periods[0].adaptationSets[0].kind == .audio && mpd.periods[0].adaptationSets[0].language == "de")
    }

    // `r="-1"` goes on to the next entry or the end of the period; `n` starts a new count; a gap is where `t` jumps.
    @Test(arguments: [
        ("<S t=\"0\" d=\"10\" r=\"-1\"/>", [0, 10, 20, 30, 40, 50], [1, 2, 3, 4, 5, 6]),
        ("<S d=\"25\" r=\"-1\"/>", [0, 25, 50], [1, 2, 3]),
        ("<S t=\"5\" d=\"10\" r=\"-1\"/><S t=\"30\" d=\"30\"/>", [5, 15, 25, 30], [1, 2, 3, 4]),
        ("<S d=\"10\"/><S t=\"30\" d=\"20\"/>", [0, 30], [1, 2]),
        ("<S t=\"0\" n=\"7\" d=\"10\" r=\"1\"/><S d=\"30\"/><S n=\"20\" d=\"10\"/>", [0, 10, 20, 50], [7, 8, 9, 20]),
        ("", [], []),
        ("<S t=\"60\" d=\"10\" r=\"-1\"/>", [], []),
    ])
    func timelinesAreRuns(entries: String, times: [Int64], numbers: [Int64]) throws {
        let text = MPDSamples.mpd(
            "<Representation id=\"a\"><SegmentTemplate timescale=\"10\" media=\"$Time$-$Number$\">"
                + "<SegmentTimeline>\(entries)</SegmentTimeline>"
                + "</SegmentTemplate></Representation>")
        let segments = try MPD(text).firstSegments()
        #expect(segments.all.map { $0.url?.pathAndQuery } == zip(times, numbers).map { "/d/\($0)-\($1)" })
        for (position, segment) in segments.all.enumerated() {
            #expect(segments.position(of: try #require(segment.url), at: nil) == position)
        }
    }

    // A live stream by numbers: what has ended by now, and is still in the buffer.
    @Test(arguments: [
        (0, 1, 0), (1, 1, 0), (2, 1, 1), (5, 1, 2), (60, 26, 5), (61, 26, 5), (62, 27, 5),
        (3600 * 24 * 365, 15_767_996, 5), (1_790_000_000, 894_999_996, 5),
    ])
    func liveNumbersAreThoseOfTheWindow(now: Int, first: Int64, count: Int) throws {
        let text = MPDSamples.mpd(
            "<Representation id=\"a\"><SegmentTemplate duration=\"2\" media=\"$Number$\"/></Representation>",
            attributes: "type=\"dynamic\" availabilityStartTime=\"1970-01-01T00:00:00Z\" timeShiftBufferDepth=\"PT10S\""
        )
        let segments = try MPD(text).firstSegments(at: .seconds(now))
        #expect(segments.count == count && (segments.isEmpty || segments[0].number == first))
    }

    /// At 10 MHz, times since 1970 are beyond 2⁵³.
    @Test func timelineCountsFrom1970() throws {
        let text = MPDSamples.mpd(
            "<Representation id=\"a\"><SegmentTemplate media=\"$Time$\" timescale=\"10000000\"><SegmentTimeline>"
                + "<S t=\"17959126160000000\" d=\"20000000\" r=\"1\"/></SegmentTimeline></SegmentTemplate>"
                + "</Representation>",
            attributes: "type=\"dynamic\" availabilityStartTime=\"1970-01-01T00:00:00Z\"")
        let segments = try MPD(text).firstSegments(at: .seconds(1_795_912_700))
        #expect(segments.count == 2 && segments[1].url?.absolute.hasSuffix("/17959126180000000") == true)
    }

    // What ends within the present is not there yet; of a film it is the last segment.
    @Test func liveTimelineGoesOnToNow() throws {
        let text = MPDSamples.mpd(
            "<ContentProtection/><Representation id=\"a\"><SegmentTemplate media=\"$Time$\">"
                + "<SegmentTimeline><S t=\"10\" d=\"4\" r=\"-1\"/></SegmentTimeline></SegmentTemplate>"
                + "</Representation>",
            attributes: "type=\"dynamic\" availabilityStartTime=\"1970-01-01T00:00:00Z\"")
        let mpd = try MPD(text),
            counts = try [10, 13, 14, 17, 18].map { try mpd.firstSegments(at: .seconds($0)).count }
        #expect(counts == [0, 0, 1, 1, 2] && mpd[MPD.first]?.isProtected == true)
        #expect(try mpd.firstSegments().count == 1)
    }

    @Test func liveNumbersWithoutAWindowAreTheLastMillion() throws {
        let text = MPDSamples.mpd(
            "<Representation id=\"a\"><SegmentTemplate duration=\"2\" media=\"$Number$\"/></Representation>",
            attributes: "type=\"dynamic\" availabilityStartTime=\"1970-01-01T00:00:00Z\"")
        let segments = try MPD(text).firstSegments(at: .seconds(100_000_000))
        #expect(segments.count == PlaylistLimits.segments && segments[segments.count - 1].number == 50_000_000)
    }

    @Test func listsHaveAddressesOfTheirOwn() throws {
        let segments = try MPD(
            MPDSamples.mpd(
                """
                <Representation id="a"><SegmentList duration="3"><Initialization sourceURL="i.mp4"/>
                <SegmentURL media="a.mp4"/><SegmentURL media="/b?x=1&amp;y=2"/></SegmentList></Representation>
                """)
        ).firstSegments()
        #expect(
            segments.all.map(\.url?.pathAndQuery) == ["/d/a.mp4", "/b?x=1&y=2"]
                && segments.all.map(\.duration) == [.seconds(3), .seconds(3)])
        #expect(segments.position(of: OriginURL("https://cdn.example/b?x=1&y=2"), at: nil) == 1)
    }

    @Test func indexOfAFileSaysWhatItsSegmentsAre() throws {
        let mpd = try MPD(
            MPDSamples.mpd(
                """
                <Representation id="a"><BaseURL>g.mp4</BaseURL><SegmentBase indexRange="816-891" \
                timescale="10240"><Initialization range="0-815"/></SegmentBase>
                </Representation>
                """))
        let place = try #require(mpd.segmentIndex(of: MPD.first)), url = OriginURL("https://cdn.example/d/g.mp4")
        #expect(place.url == url && place.range == 816..<892)
        let index = try SegmentIndexBox(hexBytes(MPDSamples.segmentIndex), at: 816)
        let segments = try mpd.segments(of: MPD.first, index: index)
        #expect(
            segments.all.map(\.range) == [892..<13772, 13772..<26814, 26814..<39750]
                && segments.all.map(\.duration) == [.seconds(2), .seconds(2), .seconds(2)])
        #expect(segments.initializations.map(\.range) == [0..<816] && segments.position(of: url, at: 13772) == 1)
        let whole = try mpd.firstSegments()
        #expect(whole.all.map(\.range) == [nil] && whole.all.map(\.duration) == [.seconds(6)])
        #expect(whole.initializations.isEmpty, "the file begins with it")
    }

    // Version 1, with 64 bits for times and offsets; an entry of 2 GiB less a byte, and one that is another index.
    @Test func longIndexesAreRead() throws {
        let header = "00000040 73696478 01000000 00000001 00000010 0000000000000000 0000000100000000 00000002"
        let entries = "7fffffff 00000018 90000000 80000010 00000020 00000000"
        let box = hexBytes((header + entries).replacing(" ", with: ""))
        let index = try SegmentIndexBox(box, at: 0), start: Int64 = 64 + (1 << 32)
        #expect(index.entries.map(\.range) == [start..<start + 0x7FFF_FFFF, start + 0x7FFF_FFFF..<start + 0x8000_000F])
        #expect(index.entries.map(\.duration) == [.milliseconds(1500), .seconds(2)])
        #expect(index.entries.map(\.isIndex) == [false, true])
    }

    @Test func brokenIndexesAreErrors() {
        let index = hexBytes(MPDSamples.segmentIndex)
        for length in 0..<index.count {
            #expect(failure { _ = try SegmentIndexBox(Array(index.prefix(length)), at: 0) }?.kind == .malformed)
        }
        #expect(
            (try? SegmentIndexBox(Array("\0\0\0\u{8}free".utf8) + index, at: 808))?.entries.first?.range == 892..<13772)
        #expect(failure { _ = try SegmentIndexBox(index, at: .max) }?.kind == .malformed)
    }

    @Test(
        arguments: [
            ("", .malformed), ("<html></html>", .notAPlaylist), ("<MPD>", .malformed), ("<MPD/><MPD/>", .malformed),
            ("<xMPD/>", .notAPlaylist),
            ("<!DOCTYPE MPD [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;&a;\">]><MPD>&b;</MPD>", .documentType),
            ("<!DOCTYPE MPD SYSTEM \"http://h/x.dtd\"><MPD/>", .documentType), ("<MPD>&b;</MPD>", .malformed),
            ("<?xml version=\"1.0\" encoding=\"EBCDIC-CP-US\"?><MPD/>", .encoding), ("\u{0}<\u{0}M", .encoding),
            ("<MPD a=\"" + String(repeating: "x", count: PlaylistLimits.line * 4) + "\"/>", .tooLarge),
            (String(repeating: "<MPD>", count: 100), .tooLarge),
            ("<MPD>" + String(repeating: "<a>", count: 100), .tooLarge),
            (
                "<MPD><Period>" + timeline("<S d=\"0\"/>") + "</Period></MPD>",
                .malformed
            ),
            ("<MPD><BaseURL>" + String(repeating: "x", count: PlaylistLimits.line + 1) + "</BaseURL></MPD>", .tooLarge),
            ("<MPD>" + String(repeating: "<BaseURL/>", count: PlaylistLimits.elements) + "</MPD>", .tooLarge),
        ] as [(String, PlaylistError.Kind)])
    func whatIsNoMPDSaysWhy(text: String, kind: PlaylistError.Kind) {
        let error = failure { _ = try MPD(text) }
        #expect(error?.kind == kind, "\(String(describing: error))")
    }

    @Test(
        arguments: [
            ("<SegmentTemplate media=\"$Number\" duration=\"1\"/>", .malformed),
            ("<SegmentTemplate media=\"$Name$\" duration=\"1\"/>", .malformed),
            ("<SegmentTemplate media=\"$Number%9d$\" duration=\"1\"/>", .malformed),
            ("<SegmentTemplate media=\"$Number%099d$\" duration=\"1\"/>", .malformed),
            ("<SegmentTemplate duration=\"1\"/>", .malformed),
            ("<SegmentTemplate media=\"$Number$\" timescale=\"4294967296\" duration=\"1\"/>", .tooLarge),
            (
                timeline("<S d=\"1\" r=\"1000000\"/>"),
                .tooLarge
            ),
            (
                timeline("<S d=\"1\" r=\"99999999999999999999\"/>"),
                .tooLarge
            ),
            (
                timeline("<S t=\"72057594037927936\" d=\"72057594037927936\" r=\"5\"/>"),
                .tooLarge
            ),
        ] as [(String, PlaylistError.Kind)])
    func segmentsThatCannotBeToldSayWhy(information: String, kind: PlaylistError.Kind) throws {
        let mpd = try MPD(MPDSamples.mpd("<Representation id=\"a\">\(information)</Representation>"))
        let error = failure { _ = try mpd.firstSegments() }
        #expect(error?.kind == kind, "\(String(describing: error))")
    }

    // The parser is fed in pieces; offsets count from the beginning of the text.
    @Test func placesAreRightBehindALongText() throws {
        let text = MPDSamples.mpd(
            "<!--" + String(repeating: "\u{E9}", count: PlaylistLimits.line / 4) + "-->"
                + "<Unknown>" + String(repeating: "x", count: PlaylistLimits.line * 3) + "</Unknown>"
                + "<Representation id=\"a\"><BaseURL>/a/</BaseURL></Representation>")
        let mpd = try MPD(text), edits = try mpd.edits(for: .local, at: ProxyForm.local(mpd.base))
        let expected = text.replacing("/a/", with: "http://player.lan:7335/https/cdn.example/a/")
        #expect(edits.applied(to: bytes(text)).text == expected)
    }

    @Test func hundredThousandSegmentsAreRead() throws {
        let entries = (0..<100_000).map { "<S d=\"\($0 % 7 + 1)\"/>" }.joined()
        let text = MPDSamples.mpd(
            "<Representation id=\"a\"><SegmentTemplate media=\"s$Time$.m4s\">"
                + "<SegmentTimeline>\(entries)</SegmentTimeline></SegmentTemplate>"
                + "</Representation>")
        let segments = try MPD(text).firstSegments(), last = try #require(segments[99_999].url)
        #expect(segments.count == 100_000 && segments.position(of: last, at: nil) == 99_999)
    }
}

func hexBytes(_ text: String) -> [UInt8] {
    stride(from: 0, to: text.utf8.count, by: 2).map { UInt8(text.dropFirst($0).prefix(2), radix: 16) ?? 0 }
}
