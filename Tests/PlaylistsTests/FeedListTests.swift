import CachePolicy
import Testing

@testable import Playlists

@Suite struct FeedListTests {
    @Test func m3uIsRead() throws {
        let feed = try Feed(
            """
            \u{FEFF}#EXTM3U\r
            #PLAYLIST:My list\r
            #EXTINF:123,An Artist - A Title\r
            a%20b.mp3\r
            # a comment\r

            #EXTINF:-1 tvg-name="x, y" group-title="z",Channel 1\r
            http://m/live?x=1&y=2\r
            ../ü c.ogg
            """, at: "http://h/d/l.m3u")
        #expect(feed.kind == .m3u && feed.title == "My list")
        #expect(
            feed.shown
                == "An Artist - A Title http://h/d/a%20b.mp3; Channel 1 http://m/live?x=1&y=2; "
                + "- http://h/%C3%BC%20c.ogg"
        )
    }

    @Test func m3uMayBeLatinAndHavePathsOfADisk() throws {
        let text = "#EXTINF:1,caf\u{E9}\rhttp://m/a.mp3\rC:\\Music\\a.mp3\r\\\\server\\b.mp3\rfile:///c.mp3\r"
        let feed = try Feed(reading: latin(text), at: OriginURL("http://h/l.m3u"), type: "text/plain")
        #expect(feed.shown == "café http://m/a.mp3")
        #expect(feed.skipped.map(\.reason) == [.localFile, .localFile, .scheme("file")])
    }

    @Test(arguments: ["audio/x-mpegurl", "application/vnd.apple.mpegurl; charset=utf-8"]) func m3uIsRecognizedByItsType(
        type: String
    ) throws {
        #expect(try Feed("http://m/a\nhttp://m/b", at: "http://h/list", type: type).items.count == 2)
    }

    @Test func plsIsReadInTheOrderOfItsNumbers() throws {
        let feed = try Feed(
            """
            [Playlist]
            NumberOfEntries=99
            TITLE10=Ten
            file10 = http://m/10
            File2=http://m/2
            Length2=61
            File2=http://m/other
            Title3=no file
            File99999999999999999999=http://m/no
            Length10=-1
            """, at: "http://h/l.pls", type: "audio/x-scpls")
        #expect(feed.kind == .pls && feed.shown == "- http://m/2; Ten http://m/10")
    }

    @Test func listsBeyondTheLimitAreRewrittenAllTheSame() throws {
        let count = FeedLimits.items + 5
        let m3u = try Feed("#EXTM3U\n" + (0..<count).map { "http://m/\($0)\n" }.joined(), at: "http://h/l.m3u")
        let pls = try Feed("[playlist]\n" + (0..<count).map { "File\($0)=http://m/\($0)\n" }.joined())
        for feed in [m3u, pls] {
            #expect(feed.cut == .tooManyItems && feed.items.count == FeedLimits.items)
            #expect(feed.addresses.all.count == count && feed.addresses.isComplete)
        }
        let long = "http://h/" + String(repeating: "x", count: 60_000) + "/"
        #expect(try Feed("#EXTM3U\n" + String(repeating: "a\n", count: 300), at: long).addresses.all.count == 300)
    }

    @Test func linesAreFoundWhenTheyAreNeeded() {
        let text = bytes("#EXTM3U\n#EXT-X-VERSION:3\na\na\n")
        #expect(feedFailure { _ = try Feed(reading: text, at: OriginURL("http://h/l")) }?.kind == .stream)
        #expect(Array(FileList.lines(of: bytes("\u{FEFF} a b \r\n\n \n c"))) == [4..<7, 14..<15])
    }

    @Test func straysInAListAreReadAsInAFeed() throws {
        let damaged = bytes("#EXTM3U\n#EXTINF:1,ééé") + latin(" \u{E9}\nhttp://m/\u{E9}.mp3\n")
        let feed = try Feed(reading: damaged, at: OriginURL("http://h/l.m3u"))
        #expect(feed.shown == "ééé é http://m/%C3%A9.mp3")
    }

    static let xspf = """
        <?xml version="1.0"?><playlist version="1" xmlns="http://xspf.org/ns/0/" xml:base="http://b/x/"><title>L</title>
        <image>cover.png</image><trackList><track><location>file:///a.mp3</location><location>a.mp3</location>
        <location>http://m/a.ogg</location><title>A</title><duration>61500</duration>
        <identifier>id-a</identifier></track>
        <track><title>B</title></track></trackList></playlist>
        """

    @Test func xspfIsRead() throws {
        let feed = try Feed(Self.xspf)
        #expect(feed.kind == .xspf && feed.title == "L" && feed.image == OriginURL("http://b/x/cover.png"))
        let item = try #require(feed.items.first)
        #expect(feed.items.count == 1 && item.identity == "id-a")
        #expect(
            item.enclosure.url == OriginURL("http://b/x/a.mp3")
                && item.alternatives.map(\.url) == [OriginURL("http://m/a.ogg")])
        #expect(feed.skipped.map(\.reason) == [.noEnclosure])
    }

    @Test(arguments: ["#EXTM3U\n", "[playlist]\n", "<playlist/>"]) func anEmptyListIsAList(text: String) throws {
        #expect(try Feed(text).items.isEmpty)
    }
}
