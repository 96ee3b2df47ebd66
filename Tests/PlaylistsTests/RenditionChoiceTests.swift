import CachePolicy
import Testing

@testable import Playlists

@Suite struct RenditionChoiceTests {
    static let multivariant = """
        #EXTM3U
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="English",LANGUAGE="en",AUTOSELECT=YES,URI="en.m3u8"
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="Deutsch",LANGUAGE="de-AT",DEFAULT=YES,URI="de.m3u8"
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="Muxed",LANGUAGE="fr"
        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="b",NAME="English",LANGUAGE="en",URI="other.m3u8"
        #EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="s",NAME="English",LANGUAGE="en",URI="sub.m3u8"
        #EXT-X-STREAM-INF:BANDWIDTH=3000000,RESOLUTION=1280x720,AUDIO="a",SUBTITLES="s"
        720.m3u8
        #EXT-X-STREAM-INF:BANDWIDTH=5000000,RESOLUTION=1920x800,AUDIO="a",SUBTITLES="s"
        1080.m3u8
        #EXT-X-STREAM-INF:BANDWIDTH=9000000,RESOLUTION=2560x1066,AUDIO="b"
        1440.m3u8
        #EXT-X-STREAM-INF:BANDWIDTH=900000,RESOLUTION=640x360,AUDIO="a",SUBTITLES="s"
        360.m3u8
        #EXT-X-STREAM-INF:BANDWIDTH=64000,CODECS="mp4a.40.2",AUDIO="a"
        audio.m3u8
        #EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=1,URI="i.m3u8"

        """

    private static func playlist() throws -> MultivariantPlaylist {
        try #require(try HLSPlaylist(multivariant).multivariant)
    }

    private static func names(_ playlists: [OriginURL]) -> [String] {
        playlists.map { String($0.pathAndQuery.dropFirst(3).dropLast(5)) }
    }

    @Test(arguments: [
        ("best", ["1440", "other"]), ("worst", ["360", "de"]), ("1080p", ["1080", "de"]), ("1079p", ["720", "de"]),
        ("200p", ["360", "de"]), ("4M", ["720", "de"]),
        ("5M", ["1080", "de"]), ("800k", ["360", "de"]), ("0.95M", ["360", "de"]),
    ])
    func qualityChoosesAVariantWithItsSound(text: String, names: [String]) throws {
        let quality = try #require(RenditionChoice.Quality(text))
        #expect(Self.names(try Self.playlist().choose(RenditionChoice(quality: quality)).playlists) == names)
    }

    @Test(arguments: [
        "", "p", "0p", "70000p", "-1M", "M", "1e6", "4 M", "inf", "nan", "99999999999999999999G", "1.2.3M", "good",
    ])
    func whatIsNoQualityIsRefused(text: String) {
        #expect(RenditionChoice.Quality(text) == nil)
    }

    @Test(arguments: [
        ("en", "en", ["1080", "en", "sub"], []), ("all", "all", ["1080", "en", "de", "sub"], []),
        ("de,en", "", ["1080", "en", "de"], []),
        ("EN, pt", "de", ["1080", "en"], ["pt", "de"]), ("pt", "", ["1080", "de"], ["pt"]), ("fr", "", ["1080"], []),
    ])
    func languagesChooseRenditions(audio: String, subtitles: String, names: [String], missing: [String]) throws {
        let choice = RenditionChoice(
            quality: .lines(1080), audio: try #require(.init(audio)), subtitles: .init(subtitles) ?? .none)
        let chosen = try Self.playlist().choose(choice)
        #expect(Self.names(chosen.playlists) == names && chosen.missingLanguages == missing)
    }

    @Test func everythingIsAllButPreviews() throws {
        let chosen = try Self.playlist().choose(RenditionChoice(isEverything: true))
        #expect(Self.names(chosen.playlists) == ["720", "1080", "1440", "360", "audio", "en", "de", "other", "sub"])
    }

    // A newer codec needs less for a better picture.
    @Test func pictureCountsBeforeTheRate() throws {
        let text = """
            #EXTM3U
            #EXT-X-STREAM-INF:BANDWIDTH=5000000,RESOLUTION=1280x720
            avc.m3u8
            #EXT-X-STREAM-INF:BANDWIDTH=4000000,RESOLUTION=1920x1080,FRAME-RATE=25
            hevc.m3u8
            #EXT-X-STREAM-INF:BANDWIDTH=3900000,RESOLUTION=1920x1080,FRAME-RATE=50
            av1.m3u8
            """
        let playlist = try #require(try HLSPlaylist(text).multivariant)
        #expect(Self.names(playlist.choose(RenditionChoice()).playlists) == ["av1"])
        #expect(Self.names(playlist.choose(RenditionChoice(quality: .bitsPerSecond(4_500_000))).playlists) == ["av1"])
        #expect(Self.names(playlist.choose(RenditionChoice(quality: .worst)).playlists) == ["avc"])
    }

    @Test func soundAloneIsChosenAmongVariantsWithoutPictures() throws {
        let text =
            "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=64000,CODECS=\"mp4a.40.2\"\nlow.m3u8\n"
            + "#EXT-X-STREAM-INF:BANDWIDTH=128000,CODECS=\"mp4a.40.2\"\nhigh.m3u8\n"
        let playlist = try #require(try HLSPlaylist(text).multivariant)
        #expect(Self.names(playlist.choose(RenditionChoice()).playlists) == ["high"])
        #expect(Self.names(playlist.choose(RenditionChoice(quality: .lines(1080))).playlists) == ["low"])
    }

    // MARK: - Of what is kept

    private static func filtered(_ kept: [String]) throws -> String? {
        let playlist = try playlist()
        return try playlist.edits(keeping: Set(kept.map { OriginURL("https://cdn.example/v/\($0).m3u8") }))?.applied(
            to: bytes(multivariant)
        ).text
    }

    @Test func renditionsThatAreNotKeptAreRemoved() throws {
        #expect(
            try Self.filtered(["720", "de"]) == """
                #EXTM3U
                #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="Deutsch",LANGUAGE="de-AT",DEFAULT=YES,URI="de.m3u8"
                #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="Muxed",LANGUAGE="fr"
                #EXT-X-STREAM-INF:BANDWIDTH=3000000,RESOLUTION=1280x720,AUDIO="a"
                720.m3u8

                """)
        #expect(
            try Self.filtered(["720", "en", "de", "1080", "1440", "other", "360", "audio", "sub", "i"])
                == Self.multivariant)
    }

    // A variant whose sound is not there cannot be played.
    @Test func variantsGoWithTheLastRenditionOfAGroupTheyNeed() throws {
        #expect(try Self.filtered(["1440"]) == nil && Self.filtered([]) == nil && Self.filtered(["other"]) == nil)
        #expect(try Self.filtered(["1440", "other"])?.contains("1440.m3u8") == true)
    }

    @Test func removingAndRewritingGoTogether() throws {
        let text = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n/a.m3u8\n#EXT-X-STREAM-INF:BANDWIDTH=2\n/b.m3u8\n",
            playlist = try HLSPlaylist(text)
        let removed = try #require(try playlist.multivariant?.edits(keeping: [OriginURL("https://cdn.example/b.m3u8")]))
        let edits = try playlist.edits(for: .local, at: ProxyForm.local(playlist.base)) + removed
        #expect(
            edits.applied(to: bytes(text)).text
                == "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=2\nhttp://player.lan:7335/https/cdn.example/b.m3u8\n")
    }

    // MARK: - Under a limit

    @Test(arguments: [
        (ResolvedRule.QualityLimit(lines: 1440), nil), (ResolvedRule.QualityLimit(), nil),
        (ResolvedRule.QualityLimit(bitsPerSecond: 9_000_000), nil),
        (ResolvedRule.QualityLimit(lines: 1080), ["1080", "360", "720"]),
        (ResolvedRule.QualityLimit(lines: 1079), ["360", "720"]),
        (ResolvedRule.QualityLimit(lines: 1080, bitsPerSecond: 4_000_000), ["360", "720"]),
        // What is lowest stays; sound alone is no picture.
        (ResolvedRule.QualityLimit(lines: 100), ["360"]), (ResolvedRule.QualityLimit(bitsPerSecond: 1), ["360"]),
    ])
    func picturesAboveALimitGo(limit: ResolvedRule.QualityLimit, names: [String]?) throws {
        let playlist = try Self.playlist()
        let left = playlist.edits(within: limit).applied(to: bytes(Self.multivariant)).text
        let all = Set(["1440", "1080", "720", "360"]), stays = Set(names ?? Array(all))
        for name in all { #expect(left.contains("\n\(name).m3u8\n") == stays.contains(name), "\(name)") }
        for name in ["audio", "de", "en", "other", "sub"] { #expect(left.contains("\(name).m3u8")) }
        #expect(left.contains("i.m3u8") == (limit.bitsPerSecond != 0))
        // A download of the best takes the best of these, and one that is chosen otherwise any.
        var best = RenditionChoice(), chosen = RenditionChoice(quality: .lines(1440))
        (best.limit, chosen.limit) = (limit, limit)
        let greatest = names.map { $0.contains("1080") ? "1080" : $0.contains("720") ? "720" : "360" } ?? "1440"
        #expect(Self.names(playlist.choose(best).playlists).first == greatest)
        #expect(Self.names(playlist.choose(chosen).playlists).first == "1440")
    }

    @Test func representationsAboveALimitGo() throws {
        let text = """
            <MPD><Period><AdaptationSet contentType="video"><Representation id="360" bandwidth="900000" width="640" \
            height="360"/><Representation id="1080" bandwidth="5000000" width="1920" height="1080"/></AdaptationSet>
            <AdaptationSet contentType="video"><EssentialProperty \
            schemeIdUri="http://dashif.org/guidelines/trickmode" value="1"/>
            <Representation id="trick" bandwidth="9000000" width="3840" height="2160"/></AdaptationSet>
            <AdaptationSet contentType="audio"><Representation id="sound" bandwidth="9000000"/></AdaptationSet></Period>
            <Period><AdaptationSet contentType="video"><Representation id="2160" bandwidth="9" width="3840" \
            height="2160"/><Representation id="unknown"/></AdaptationSet></Period></MPD>
            """
        let mpd = try MPD(text)
        func left(_ limit: ResolvedRule.QualityLimit) throws -> Set<String> {
            let text = try mpd.edits(within: limit, WorkBudget(bytes: 1 << 20)).applied(to: bytes(text)).text
            let rest = try MPD(text)
            return Set(rest.representations.compactMap { rest[$0]?.id })
        }
        #expect(try left(ResolvedRule.QualityLimit(lines: 2160)).count == 6)
        #expect(try left(ResolvedRule.QualityLimit(lines: 720)) == ["360", "trick", "sound", "unknown"])
        #expect(
            try left(ResolvedRule.QualityLimit(bitsPerSecond: 1_000_000)) == [
                "360", "trick", "sound", "2160", "unknown",
            ])
        var best = RenditionChoice()
        best.limit.lines = 720
        #expect(mpd.choose(best).representations.compactMap { mpd[$0]?.id } == ["360", "sound", "unknown"])
    }

    // MARK: - DASH

    @Test func representationsAreChosenInEachPeriod() throws {
        let mpd = try MPD(
            """
            <MPD><Period><AdaptationSet contentType="video"><Representation id="360" bandwidth="900000" width="640" \
            height="360"/>
            <Representation id="1080" bandwidth="5000000" width="1920" height="1080"/></AdaptationSet>
            <AdaptationSet mimeType="video/mp4"><Representation id="1080-av1" bandwidth="3000000" width="1920" \
            height="1080"/></AdaptationSet>
            <AdaptationSet contentType="video"><EssentialProperty \
            schemeIdUri="http://dashif.org/guidelines/trickmode" value="1"/>
            <Representation id="trick" bandwidth="9000000" width="3840" height="2160"/></AdaptationSet>
            <AdaptationSet lang="en"><Representation id="en-low" codecs="mp4a.40.2" \
            bandwidth="64000"/><Representation id="en" bandwidth="128000"/></AdaptationSet>
            <AdaptationSet contentType="audio" lang="de"><Representation id="de" bandwidth="64000"/></AdaptationSet>
            <AdaptationSet mimeType="application/mp4" lang="en"><Representation id="sub" codecs="stpp" \
            bandwidth="100"/></AdaptationSet></Period>
            <Period><AdaptationSet contentType="video"><Representation id="2" \
            bandwidth="1"/></AdaptationSet></Period></MPD>
            """)
        func chosen(_ choice: RenditionChoice) -> [String] {
            mpd.choose(choice).representations.compactMap { mpd[$0]?.id }
        }
        #expect(chosen(RenditionChoice()) == ["1080", "en", "2"])
        #expect(
            chosen(RenditionChoice(quality: .worst, audio: .all, subtitles: .all)) == [
                "360", "en-low", "de", "sub", "2",
            ])
        #expect(
            chosen(RenditionChoice(quality: .bitsPerSecond(3_000_000), audio: .only(["de"]))) == [
                "1080-av1", "de", "2",
            ])
        #expect(chosen(RenditionChoice(quality: .lines(720), audio: .none)) == ["360", "2"])
        #expect(chosen(RenditionChoice(isEverything: true)).count == 9)
        #expect(mpd.choose(RenditionChoice(audio: .only(["pt", "de"]))).missingLanguages == ["pt"])
    }
}
