import CachePolicy
import Testing

@testable import Playlists

@Suite struct HLSPlaylistTests {
    /// One of each address that HLS has, none of which leads through the proxy by itself.
    static let everyAddress = """
        #EXTM3U
        #EXT-X-VERSION:12
        #EXT-X-DEFINE:NAME="p",VALUE="/paths"
        #EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=1.5,CAN-SKIP-UNTIL=24.0,HOLD-BACK=12
        #EXT-X-TARGETDURATION:4
        #EXT-X-PART-INF:PART-TARGET=0.5
        #EXT-X-MEDIA-SEQUENCE:100
        #EXT-X-SKIP:SKIPPED-SEGMENTS=3
        #EXT-X-KEY:METHOD=AES-128,URI="/key,1",IV=0x01
        #EXT-X-MAP:URI="https://other.example/init.mp4",BYTERANGE="800@0"
        # a comment with /a/path
        #EXT-X-DATERANGE:ID="a",CLASS="com.apple.hls.interstitial",X-ASSET-URI="/ad.m3u8",X-COM-URI="/mine"
        #EXT-X-DATERANGE:ID="b",X-ASSET-LIST="/ads.json"
        #EXTINF:4.004,The title, with a comma
        {$p}/a.m4s
        #EXT-X-PART:DURATION=0.5,URI="/b.m4s?part=0",INDEPENDENT=YES
        #EXT-X-PRELOAD-HINT:TYPE=PART,URI="/b.m4s?part=1",BYTERANGE-START=5
        #EXT-X-RENDITION-REPORT:URI="/low/index.m3u8",LAST-MSN=104,LAST-PART=1
        #EXT-X-UNKNOWN:URI="/unknown"

        """

    @Test func eachAddressIsRewrittenAndNothingElse() throws {
        let playlist = try HLSPlaylist(Self.everyAddress)
        let rewritten = try playlist.edits(for: .local, at: ProxyForm.local(playlist.base)).applied(
            to: bytes(Self.everyAddress)
        ).text
        var expected = Self.everyAddress
        for (from, to) in [
            ("\"/key,1\"", "\"P/https/cdn.example/key,1\""),
            ("\"https://other.example/init.mp4\"", "\"P/https/other.example/init.mp4\""),
            ("X-ASSET-URI=\"/ad", "X-ASSET-URI=\"P/https/cdn.example/ad"),
            ("X-ASSET-LIST=\"/ads", "X-ASSET-LIST=\"P/https/cdn.example/ads"),
            ("\n{$p}/a.m4s", "\nP/https/cdn.example/paths/a.m4s"),
            ("\"/b.m4s?part=0", "\"P/https/cdn.example/b.m4s?part=0"),
            ("\"/b.m4s?part=1", "\"P/https/cdn.example/b.m4s?part=1"), ("\"/low/", "\"P/https/cdn.example/low/"),
        ] { expected = expected.replacing(from, with: to.replacing("P", with: "http://player.lan:7335")) }
        #expect(rewritten == expected)
    }

    @Test func mediaPlaylistSaysWhatItHas() throws {
        let playlist = try HLSPlaylist(Self.everyAddress)
        let media = try #require(playlist.media), segments = try #require(playlist.segments)
        #expect(media.targetDuration == .seconds(4) && media.partTarget == .milliseconds(500) && !media.hasEnd)
        #expect(
            media.renditionReports.map(\.url?.absolute) == ["https://cdn.example/low/index.m3u8"])
        #expect(media.preloadHints.map(\.start) == [5] && media.trailingParts.map(\.duration) == [.milliseconds(500)])
        let segment = segments[0]
        #expect(
            segment.number == 103 && segment.url?.absolute == "https://cdn.example/paths/a.m4s"
                && segment.duration == .milliseconds(4004))
        #expect(
            segment.initialization?.url == OriginURL("https://other.example/init.mp4")
                && segment.initialization?.range == 0..<800)
        #expect(
            segment.keys.map(\.url?.absolute) == ["https://cdn.example/key,1"]
                && segment.keys.map(\.initializationVector) == ["0x01"])
        let named = try playlist.companions(within: .large)
        #expect(try named.contains(OriginURL("https://cdn.example/b.m4s?part=0"), within: .ofMatch))
        #expect(try !named.contains(OriginURL("https://cdn.example/c.m4s?part=0"), within: .ofMatch))
    }

    static let multivariant = """
        #EXTM3U\r
        #EXT-X-INDEPENDENT-SEGMENTS\r
        #EXT-X-CONTENT-STEERING:SERVER-URI="/steer?x={a}",PATHWAY-ID="A"\r
        #EXT-X-SESSION-DATA:DATA-ID="com.apple.hls.title",VALUE="A film, with a comma"\r
        #EXT-X-SESSION-DATA:DATA-ID="x",URI="/data.json"\r
        #EXT-X-SESSION-KEY:METHOD=SAMPLE-AES,URI="skd://key",KEYFORMAT="com.apple.streamingkeydelivery"\r
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="aac",NAME="English",LANGUAGE="en",DEFAULT=YES,AUTOSELECT=YES,\
        URI="/a/en.m3u8"\r
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="aac",NAME="Deutsch",LANGUAGE="de-AT",AUTOSELECT=YES,URI="a/de.m3u8"\r
        #EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="subs",NAME="English",LANGUAGE="en",URI="s/en.m3u8"\r
        #EXT-X-MEDIA:TYPE=CLOSED-CAPTIONS,GROUP-ID="cc",NAME="English",INSTREAM-ID="CC1"\r
        #EXT-X-STREAM-INF:BANDWIDTH=2000000,AVERAGE-BANDWIDTH=1500000,RESOLUTION=1280x720,FRAME-RATE=29.97,\
        CODECS="avc1.64001f,mp4a.40.2",AUDIO="aac",SUBTITLES="subs",CLOSED-CAPTIONS="cc"\r
        v/720.m3u8\r
        #EXT-X-STREAM-INF:BANDWIDTH=5000000,RESOLUTION=1920x800,FRAME-RATE=59.94,\
        CODECS="avc1.64001f,mp4a.40.2",AUDIO="aac",SUBTITLES="subs"\r
        # between\r
        https://fast.example/v/1080.m3u8?token=1\r
        #EXT-X-STREAM-INF:BANDWIDTH=100000,CODECS="mp4a.40.2"\r
        v/audio.m3u8\r
        #EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=90000,RESOLUTION=1280x720,URI="/v/iframes.m3u8"\r

        """

    @Test func multivariantPlaylistSaysWhatItHas() throws {
        let playlist = try #require(try HLSPlaylist(Self.multivariant).multivariant)
        #expect(
            playlist.variants.map(\.bandwidth) == [2_000_000, 5_000_000, 100_000]
                && playlist.variants.map(\.hasVideo) == [true, true, false])
        #expect(
            playlist.variants[0].resolution == Resolution(width: 1280, height: 720)
                && playlist.variants[0].frameRate == 29.97)
        #expect(
            playlist.variants[0].codecs == ["avc1.64001f", "mp4a.40.2"] && playlist.variants[0].audioGroup == "aac")
        #expect(
            playlist.renditions.map(\.language) == ["en", "de-AT", "en", nil]
                && playlist.renditions.map(\.isDefault) == [true, false, false, false])
        #expect(
            playlist.title == "A film, with a comma"
                && playlist.steering?.url?.absolute == "https://cdn.example/steer?x={a}"
        )
        #expect(
            playlist.sessionData.map(\.url?.absolute) == ["https://cdn.example/data.json"]
                && playlist.sessionKeys.map(\.url) == [nil])
        #expect(
            playlist.playlists.map(\.pathAndQuery) == [
                "/v/v/720.m3u8", "/v/1080.m3u8?token=1", "/v/v/audio.m3u8", "/a/en.m3u8", "/v/a/de.m3u8",
                "/v/s/en.m3u8", "/v/iframes.m3u8",
            ])
    }

    @Test func multivariantPlaylistIsRewrittenByteForByte() throws {
        let playlist = try HLSPlaylist(Self.multivariant)
        let rewritten = try playlist.edits(for: .local, at: ProxyForm.local(playlist.base)).applied(
            to: bytes(Self.multivariant)
        ).text
        let expected = Self.multivariant.replacing(
            "https://fast.example/", with: "http://player.lan:7335/https/fast.example/"
        )
        .replacing("=\"/", with: "=\"http://player.lan:7335/https/cdn.example/")
        #expect(rewritten == expected)
    }

    @Test func referencesBehindARedirectAreThoseOfTheURLThatAnswered() throws {
        let text = "#EXTM3U\n#EXTINF:2,\na.ts\n",
            playlist = try HLSPlaylist(text, at: "https://edge.example/x/index.m3u8")
        let edits = try playlist.edits(for: .local, at: ProxyForm.local(OriginURL("https://cdn.example/index.m3u8")))
        #expect(
            edits.applied(to: bytes(text)).text
                == "#EXTM3U\n#EXTINF:2,\nhttp://player.lan:7335/https/edge.example/x/a.ts\n")
        #expect(try playlist.edits(for: .local, at: ProxyForm.local(playlist.base)) == [])
    }

    // What is around an address stays: the byte order mark, line ends of both kinds, blanks, a last line without an
    // end.
    @Test(arguments: [
        ("\u{FEFF}#EXTM3U\n#EXTINF:2,\n/a.ts", "\u{FEFF}#EXTM3U\n#EXTINF:2,\nP/https/cdn.example/a.ts"),
        (
            "#EXTM3U\r\n\r\n#EXTINF:2,\r\n  /a.ts \t\r\n",
            "#EXTM3U\r\n\r\n#EXTINF:2,\r\n  P/https/cdn.example/a.ts \t\r\n"
        ),
        (
            "#EXTM3U\n#EXTINF:2,\n/a b/\u{E9}.ts\nc d.ts",
            "#EXTM3U\n#EXTINF:2,\nP/https/cdn.example/a%20b/%C3%A9.ts\nc d.ts"
        ),
        (
            "#EXTM3U\n#EXT-X-KEY:METHOD=AES-128,URI=/k\n",
            "#EXTM3U\n#EXT-X-KEY:METHOD=AES-128,URI=P/https/cdn.example/k\n"
        ),
        (
            "#EXTM3U\n#EXT-X-KEY:METHOD=AES-128 , URI=\"/k\", IV=0x1\n",
            "#EXTM3U\n#EXT-X-KEY:METHOD=AES-128 , URI=\"P/https/cdn.example/k\", IV=0x1\n"
        ),
        ("#EXTM3U\n#EXT-X-MAP:URI=\"\"\n", "#EXTM3U\n#EXT-X-MAP:URI=\"\"\n"), ("#EXTM3U", "#EXTM3U"),
    ])
    func whatIsAroundAnAddressStays(text: String, rewritten: String) throws {
        let playlist = try HLSPlaylist(text)
        let edits = try playlist.edits(for: .local, at: ProxyForm.local(playlist.base))
        #expect(edits.applied(to: bytes(text)).text == rewritten.replacing("P/", with: "http://player.lan:7335/"))
    }

    @Test func bytesThatAreNoTextKeepTheirAddress() throws {
        let text = bytes("#EXTM3U\n/") + [0xE9] + bytes(".ts\n")
        let playlist = try HLSPlaylist(text, at: OriginURL("https://h/"))
        #expect(playlist.addresses.map(\.reference) == ["/%E9.ts"])
    }

    // A quote in the base's path would end the attribute that the absolute form is written into.
    @Test func writtenAddressesCannotEndTheirQuotes() throws {
        let text = "#EXTM3U\n#EXT-X-MAP:URI=\"i.mp4\"\n",
            playlist = try HLSPlaylist(text, at: "https://h/a\"b{$c}/x.m3u8")
        let edits = try playlist.edits(for: .local, at: ProxyForm.local(OriginURL("https://other/")))
        #expect(edits.map(\.replacement) == ["http://player.lan:7335/https/h/a%22b%7B$c}/i.mp4"])
    }

    @Test(
        arguments: [
            ("", .notAPlaylist, nil), ("<html>", .notAPlaylist, nil), ("#EXTM3U8\n", .notAPlaylist, nil),
            ("#EXTINF:2,\na.ts", .notAPlaylist, nil),
            ("#EXTM3U\n#EXT-X-KEY:METHOD=NONE,URI=\"a\n", .malformed, 2),
            ("#EXTM3U\n#EXT-X-MEDIA-SEQUENCE:-1\n", .malformed, 2),
            ("#EXTM3U\n#EXT-X-MEDIA-SEQUENCE:99999999999999999999\n", .malformed, 2),
            ("#EXTM3U\n#EXT-X-BYTERANGE:5\na.ts\n", .malformed, 3),
            ("#EXTM3U\n#EXT-X-BYTERANGE:5@x\na.ts\n", .malformed, 2),
            ("#EXTM3U\n#EXT-X-BYTERANGE:1152921504606846976@1\na.ts\n", .malformed, 3),
            ("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nx\n#EXT-X-TARGETDURATION:2\na.ts\n", .malformed, nil),
        ] as [(String, PlaylistError.Kind, Int?)])
    func whatIsNoPlaylistSaysWhy(text: String, kind: PlaylistError.Kind, line: Int?) {
        let error = failure { _ = try HLSPlaylist(text) }
        #expect(error?.kind == kind && error?.line == line, "\(String(describing: error))")
    }

    /// Some packagers write them, and players don't mind.
    @Test(arguments: ["ENDLIST", "TARGETDURATION:4", "PLAYLIST-TYPE:VOD", "MEDIA-SEQUENCE:0", "DISCONTINUITY"])
    func variantsAmongTagsOfMediaPlaylistsAreRead(tag: String) throws {
        let variant = "#EXT-X-STREAM-INF:BANDWIDTH=1\n/a/v.m3u8\n"
        for text in ["#EXT-X-\(tag)\n\(variant)", "\(variant)#EXT-X-\(tag)\n"] {
            let playlist = try HLSPlaylist("#EXTM3U\n\(text)")
            #expect(playlist.multivariant?.playlists.map(\.pathAndQuery) == ["/a/v.m3u8"] && playlist.media == nil)
        }
    }

    @Test(arguments: ["\n", " \r\n\t", "\u{FEFF}", "\n\u{FEFF}\n", "\u{FEFF}\u{FEFF} "], ["\n", "\r\n", "\r"])
    func blanksAndLineEndsOfAnyKindAreRead(blank: String, end: String) throws {
        let lines = ["#EXTM3U", "#EXTINF:2,a", "/a.ts", "", "\u{FEFF}#EXTINF:2,b", "/b.ts", "#EXT-X-ENDLIST"]
        let text = blank + lines.joined(separator: end)
        #expect(PlaylistKind.sniff(bytes(text)) == .hls && Listing.mayBegin(with: bytes(text)[0]))
        let playlist = try HLSPlaylist(text)
        #expect(playlist.segments?.all.compactMap(\.url?.pathAndQuery) == ["/a.ts", "/b.ts"])
        #expect(playlist.media?.hasEnd == true)
        #expect(
            playlist.addresses.map { bytes(text)[$0.range].map { $0 } } == [bytes("/a.ts"), bytes("/b.ts")],
            "an address is exactly that part of the text")
    }

    @Test func linesEndWithTheFirstOfTheirEnds() {
        let text = bytes("a\r\nb\rc\n\r\r\nd\r")
        let lines = HLSLines(text).map { (String(decoding: text[$0.content], as: UTF8.self), $0.whole) }
        #expect(lines.map(\.0) == ["a", "b", "c", "", "", "d"])
        #expect(lines.map(\.1) == [0..<3, 3..<5, 5..<7, 7..<8, 8..<10, 10..<12])
    }

    @Test func textsInUTF16AreRefused() {
        #expect(
            failure {
                _ = try HLSPlaylist(
                    [0xFF, 0xFE] + "#EXTM3U".utf16.flatMap { [UInt8($0), 0] }, at: OriginURL("https://h/"))
            }?.kind == .encoding)
    }

    @Test func listOfChannelsIsNoRendition() throws {
        let playlist = try HLSPlaylist(
            "#EXTM3U\n#EXTINF:-1 tvg-id=\"a\",One\nhttp://one.example/live.m3u8\n#EXTINF:-1,Two\n/two.m3u8\n")
        #expect(
            playlist.media == nil && playlist.multivariant == nil && playlist.segments == nil
                && playlist.media?.refreshRule == nil)
        #expect(playlist.addresses.map(\.role) == [.entry, .entry])
        #expect(
            playlist.addresses.compactMap(playlist.url).map(\.absolute) == [
                "http://one.example/live.m3u8", "https://cdn.example/two.m3u8",
            ])
    }
}
