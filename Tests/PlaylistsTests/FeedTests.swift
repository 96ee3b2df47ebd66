import CachePolicy
import Testing

@testable import Playlists

@Suite struct FeedTests {
    @Test func rssIsRead() throws {
        let feed = try Feed(
            FeedSamples.rss(
                """
                <item><title>One</title><guid isPermaLink="false">g1</guid>
                <pubDate>Wed, 02 Oct 2002 13:00:00 GMT</pubDate>
                <enclosure url="http://m/1.mp3" length="123" type="audio/mpeg"/>
                <itunes:duration>1:02:03</itunes:duration>
                <itunes:season>2</itunes:season><itunes:episode>5</itunes:episode><itunes:image href="/1.jpg"/></item>
                """,
                channel: """
                    <link>http://site/</link><image><title>no</title><url>http://i/c.png</url></image><ttl>30</ttl>
                    <fh:complete/><description>x</description>
                    """))
        #expect(feed.kind == .rss && feed.title == "P" && feed.isComplete && !feed.isArchive && !feed.isRepaired)
        #expect(feed.homePage == OriginURL("http://site/") && feed.image == OriginURL("http://i/c.png"))
        #expect(feed.lifetime == .seconds(1800) && feed.skipped.isEmpty && feed.cut == nil)
        let enclosure = Enclosure(url: OriginURL("http://m/1.mp3"), length: 123, type: "audio/mpeg")
        #expect(
            feed.items == [
                FeedItem(
                    guid: "g1", file: "http://m/1.mp3", title: "One", published: .seconds(1_033_563_600),
                    enclosure: enclosure,
                    season: 2, episode: 5, image: OriginURL("http://h/1.jpg"))
            ])
    }

    @Test func atomIsRead() throws {
        let feed = try Feed(FeedSamples.atom)
        #expect(feed.kind == .atom && feed.title == "A" && feed.homePage == OriginURL("http://h/"))
        #expect(
            feed.nextPage == OriginURL("http://h/base/?page=2") && feed.image == OriginURL("http://h/base/logo.png"))
        let item = try #require(feed.items.first)
        #expect(item.identity == "urn:1" && item.title == "One & two" && item.published == .seconds(1_727_863_200))
        #expect(
            item.enclosure
                == Enclosure(url: OriginURL("http://h/base/one.mp3"), length: 123, type: "audio/mpeg"))
    }

    @Test func mediaRSSAndPodcasting20GiveAlternatives() throws {
        let feed = try Feed(FeedSamples.everything)
        let item = try #require(feed.items.last)
        #expect(item.identity == "http://h/b" && item.enclosure.url == OriginURL("http://m/b.mp4"))
        #expect(item.enclosure.isDefault)
        #expect(
            item.alternatives == [
                Enclosure(url: OriginURL("http://m/b.webm")),
                Enclosure(url: OriginURL("http://m/b.opus"), type: "audio/opus"),
            ])
        #expect(
            feed.items.first?.image == OriginURL("http://i/a.jpg") && feed.newAddress == OriginURL("http://h/new.xml"))
        #expect(feed.previousArchive == OriginURL("http://h/2023.xml") && feed.nextPage == nil)
    }

    @Test func defaultsOfMediaGroupsComeFirst() throws {
        let feed = try Feed(
            FeedSamples.rss(
                """
                <item><media:group><media:content url="http://m/small" fileSize="5" duration="65"/>
                <media:content url="http://m/best" isDefault="true"/>
                <media:content url="http://m/cover" medium="image"/></media:group>
                <podcast:alternateEnclosure default="true" type="audio/mpeg" length="9">
                <podcast:source uri="http://m/alt"
                contentType="audio/aac"/></podcast:alternateEnclosure></item>
                """))
        let item = try #require(feed.items.first)
        #expect(item.enclosure == Enclosure(url: OriginURL("http://m/best"), isDefault: true))
        #expect(
            item.alternatives == [
                Enclosure(url: OriginURL("http://m/small"), length: 5),
                Enclosure(url: OriginURL("http://m/alt"), length: 9, type: "audio/aac", isDefault: true),
            ])
    }

    @Test func archivesAreRecognized() throws {
        let feed = try Feed(
            """
            <feed xmlns="http://www.w3.org/2005/Atom" xmlns:f="http://purl.org/syndication/history/1.0"><f:archive/>
            <link rel="http://www.iana.org/assignments/relation/prev-archive self" href="2"/></feed>
            """)
        #expect(feed.isArchive && !feed.isComplete && feed.previousArchive == OriginURL("http://h/2"))
    }

    // Elements of other vocabularies have the same names as those that count.
    @Test func elementsWithinOthersAreNotTheItems() throws {
        let feed = try Feed(
            """
            <feed xmlns="http://www.w3.org/2005/Atom"><author><title>no</title><id>no</id></author><entry>
            <source><title>no</title><id>no</id><link rel="enclosure" href="http://no/"/></source><title>t</title>
            <id>yes</id><link rel="enclosure" href="http://m/a"/></entry></feed>
            """)
        #expect(feed.shown == "t http://m/a" && feed.items.first?.identity == "yes" && feed.title == nil)
    }

    @Test func identitiesStayWhenAddressesChange() throws {
        let first = try Feed(FeedSamples.rss("<item><guid>g</guid><enclosure url=\"http://m/a.mp3?s=1\"/></item>"))
        let later = try Feed(FeedSamples.rss("<item><guid>g</guid><enclosure url=\"https://n/b.mp3\"/></item>"))
        #expect(first.items.map(\.identity) == later.items.map(\.identity))
    }

    /// The items of a feed whose items contain this.
    private static func items(_ contents: String...) throws -> [FeedItem] {
        try Feed(FeedSamples.rss(contents.map { "<item>\($0)</item>" }.joined())).items
    }

    private static func item(_ address: String, _ more: String = "") -> String {
        "<enclosure url=\"http://m/\(address)\"/>" + more
    }

    // The older item keeps its file, and so is found although its GUID is no longer its own.
    @Test func anItemIsFoundAgainWhenAnotherTakesItsGUID() throws {
        let guid = "<guid>g</guid>"
        let before = try Self.items(Self.item("a.mp3", guid))
        let after = try Self.items(Self.item("a-v2.mp3", guid), Self.item("a.mp3", guid))
        #expect(before.map(\.guid) == ["g"] && after.map(\.guid) == [nil, nil])
        #expect(after.map(\.file) == ["http://m/a-v2.mp3", before[0].file])
    }

    // A feed of one item each time must not give the same identity to all episodes.
    @Test(arguments: ["play.mp3?id=", "get?id=", "get?sig=x&amp;id="]) func filesOfAScriptHaveIdentitiesOfTheirOwn(
        script: String
    ) throws {
        let one = Self.item(script + "1", "<pubDate>2024-01-01</pubDate>")
        let two = Self.item(script + "2", "<pubDate>2024-01-08</pubDate>")
        let both = try Self.items(one, two).map(\.identity)
        #expect(Set(both).count == 2)
        #expect(try Self.items(one).map(\.identity) + Self.items(two).map(\.identity) == both)
        let page = "<link>http://h/1</link>"
        let linked = try Self.items(Self.item(script + "1", page)),
            again = try Self.items(Self.item(script + "9", page))
        #expect(linked.map(\.identity) == ["http://h/1"] && again.map(\.identity) == ["http://h/1"])
    }

    @Test func aSignatureThatChangesDoesNotChangeTheIdentity() throws {
        let date = "<pubDate>2024-01-01</pubDate>"
        let first = try Self.items(Self.item("get?id=1&amp;sig=1", date))
        let later = try Self.items(Self.item("get?id=1&amp;sig=2", date))
        #expect(first.map(\.identity) == later.map(\.identity))
        // Two files with the date of one day.
        let two = try Self.items(Self.item("get?id=1", date), Self.item("get?id=2", date))
        #expect(two.map(\.identity) == ["http://m/get?id=1", "http://m/get?id=2"])
    }

    @Test func linksToTheFeedsOwnPageDoNotDistinguishItems() throws {
        let item = "<item><link>http://h/</link><enclosure url=\"http://m/get?id=1\"/></item>"
        let feed = try Feed(FeedSamples.rss(item, channel: "<link>http://h/</link>"))
        #expect(feed.items.map(\.identity) == ["http://m/get?id=1"])
    }

    @Test func anItemInWhichTheTextEndsDoesNotChangeOtherIdentities() throws {
        let text = FeedSamples.rss(
            "<item><guid>g</guid>\(Self.item("a.mp3"))</item><item><guid>g</guid>\(Self.item("b.mp3"))</item>")
        let feed = try Feed(String(text.dropLast(20)))
        #expect(feed.cut == .endsEarly && feed.items.map(\.identity) == ["g"])
    }

    @Test(arguments: [
        ("", FeedError.Kind.empty), (" \n\t", .empty), ("<!DOCTYPE html><html></html>", .page),
        ("<HTML><body>", .page), ("<?xml version='1.0'?><html xmlns=\"http://www.w3.org/1999/xhtml\"/>", .page),
        ("<p>x & y<html>", .notAFeed), ("{\"version\": 1}", .notAFeed), ("hello", .notAFeed),
        ("\u{1}\u{2}\u{3}", .notAFeed),
        ("<urlset><url/></urlset>", .notAFeed), ("<opml><body/></opml>", .notAFeed), ("<", .malformed),
        ("#EXTM3U\n#EXT-X-TARGETDURATION:4\na.ts", .stream),
    ]) func otherTextsAreRefused(text: String, kind: FeedError.Kind) {
        let failure = feedFailure { _ = try Feed(text) }
        #expect(failure?.kind == kind)
        #expect(failure?.description.contains("\n") == false)
    }
}
