import CachePolicy
import TestSupport
import Testing

@testable import Playlists

@Suite struct FeedOPMLTests {
    @Test func listsInTheWildAreRead() throws {
        let list = try OPML(
            reading: bytes(
                """
                <!-- exported --><?xml version="1.0"?><opml version="1.1"><head><title>Mine</title></head><body>
                <outline text="News"><outline text="Tech & more" type="folder">
                <outline type="rss" text="A" title="other" xmlUrl="https://a/feed?x=1&amp;y=2" htmlUrl="http://a/"/>
                </outline><outline title="B" XMLURL="http://b/"/></outline>
                <outline text="C" type="atom" url="http://c/"/><outline text="page" type="link" url="http://page/"/>
                <outline xmlUrl="feed://d/x"/><outline text="dead" xmlUrl=""/><outline text="old" xmlUrl="ftp://x/"/>
                <outline text="again" xmlUrl="http://b/"/><outline text="relative" xmlUrl="/x"/>
                </body></opml>
                """))
        #expect(list.title == "Mine")
        #expect(
            list.feeds == [
                OPMLFeed(title: "A", url: OriginURL("https://a/feed?x=1&y=2"), categories: ["News", "Tech & more"]),
                OPMLFeed(title: "B", url: OriginURL("http://b/"), categories: ["News"]),
                OPMLFeed(title: "C", url: OriginURL("http://c/")), OPMLFeed(title: nil, url: OriginURL("http://d/x")),
            ])
        #expect(list.skipped.map(\.name) == ["dead", "old", "again", "relative"])
        #expect(list.skipped.map(\.reason) == [.noAddress, .scheme("ftp"), .duplicate, .address("/x")])
    }

    @Test func entryWithCredentialsIsSkippedWithTheRuleThatSendsThem() throws {
        let entry = "<outline text='A' xmlUrl='https://u:secret@a/f'/>"
        let list = try OPML(reading: bytes("<opml version='2.0'><body>\(entry)</body></opml>"))
        let line = try #require(list.skipped.first).reason.description
        #expect(
            line.contains("{host: 'https://a', headers: {Authorization: Basic BASE64}}") && !line.contains("secret"))
    }

    @Test func writtenListsAreReadable() {
        let list = OPML(
            title: "T<1>",
            feeds: [
                OPMLFeed(title: "A \"&\" B", url: OriginURL("http://a/?x=1&y"), categories: ["F"]),
                OPMLFeed(title: "C", url: OriginURL("http://c/")),
            ])
        #expect(
            list.text == """
                <?xml version="1.0" encoding="UTF-8"?>
                <opml version="2.0">
                  <head><title>T&lt;1&gt;</title></head>
                  <body>
                    <outline text="F">
                      <outline type="rss" text="A &quot;&amp;&quot; B" title="A &quot;&amp;&quot; B" \
                xmlUrl="http://a/?x=1&amp;y"/>
                    </outline>
                    <outline type="rss" text="C" title="C" xmlUrl="http://c/"/>
                  </body>
                </opml>

                """)
    }

    @Test func writtenListsAreReadBack() throws {
        var random = SplitMix64.forTest("OPML lists")
        let pieces = [
            "a", "&", "<", ">", "\"", "'", "&amp;", "&#65;", "]]>", " ", "\n", "é", "👩\u{200D}🚀",
            "\u{0}", "\u{FFFE}",
            "\u{202E}", "<b>", "\u{A0}",
        ]
        func words() -> String {
            (0..<Int.random(in: 0...6, using: &random)).map { _ in pieces.randomElement(using: &random) ?? "" }.joined()
        }
        for _ in 0..<300 {
            let feeds = (0..<Int.random(in: 0...8, using: &random)).map { number in
                OPMLFeed(
                    title: words(),
                    url: OriginURL("http://h/\(number)?a=1&b='\"<" + (number % 3 == 1 ? "&amp;c&amp;amp;" : "")),
                    categories: (0..<Int.random(in: 0...3, using: &random)).map { _ in words() })
            }
            let list = OPML(title: words(), feeds: feeds)
            #expect(try OPML(reading: bytes(list.text)) == list, "\(list.text)")
        }
    }

    @Test func aLongURLWithoutATitleIsReadBack() throws {
        let url = "http://h.example/" + String(repeating: "g", count: 2000)
        let text = "<opml version=\"2.0\"><body><outline xmlUrl=\"\(url)\"/></body></opml>"
        let list = try OPML(reading: bytes(text))
        #expect(list.feeds.first?.url.absolute == url)
        #expect(try OPML(reading: bytes(list.text)).feeds == list.feeds)
    }

    @Test func foldersWithinFoldersAreBounded() throws {
        let deep =
            String(repeating: "<outline text='x'>", count: 100) + "<outline xmlUrl='http://h/'/>"
            + String(repeating: "</outline>", count: 100)
        #expect(try OPML(reading: bytes("<opml><body>\(deep)</body></opml>")).feeds.first?.categories.count == 16)
        let deeper = String(repeating: "<outline text='x'>", count: 1000)
        #expect(feedFailure { _ = try OPML(reading: bytes("<opml><body>\(deeper)")) }?.kind == .tooDeep)
    }

    @Test(arguments: [
        ("", FeedError.Kind.empty), ("<html>", .page), (FeedSamples.atom, .notAFeed), ("#EXTM3U\n", .notAFeed),
    ])
    func otherTextsAreRefused(text: String, kind: FeedError.Kind) {
        #expect(feedFailure { _ = try OPML(reading: bytes(text)) }?.kind == kind)
    }
}
