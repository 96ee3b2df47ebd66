import CachePolicy
import Playlists

extension FuzzTarget {
    static let feeds = [
        FuzzTarget(name: "feed", seeds: feedSeeds, run: feed), FuzzTarget(name: "opml", seeds: [opmlSeed], run: opml),
    ]

    private static let feedSeeds = [
        """
        <?xml version="1.0" encoding="utf-8"?><rss version="2.0" xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd" \
        xmlns:media="http://search.yahoo.com/mrss/" xmlns:podcast="https://podcastindex.org/namespace/1.0"><channel>
        <title>A &amp; B</title><image><url>i.png</url></image><itunes:new-feed-url>//n/f</itunes:new-feed-url>
        <item><guid>1</guid><enclosure url="/a.mp3?x=1&amp;y=2" length="5" type="audio/mpeg"/><pubDate>Wed, 02 Oct 2024 \
        10:00:00 GMT</pubDate><itunes:duration>1:02</itunes:duration></item>
        <item><media:group><media:content url='http://m/b.mp4'/><media:thumbnail url=t.jpg></media:group>
        <podcast:alternateEnclosure><podcast:source uri="http://m/b.opus"/></podcast:alternateEnclosure></item>
        <item><link>http://m/c.mp3</link><description><![CDATA[<b>x</b>]]></description></item></channel></rss>
        """,
        """
        <feed xmlns="http://www.w3.org/2005/Atom" xml:base="http://h/b/"><link rel="self" href="f"/><link rel=next href=?2>
        <entry xml:base="c/"><id>1</id><link rel='enclosure' href="d.mp3"/><updated>2024-10-02T10:00:00Z</updated></entry></feed>
        """,
        """
        <playlist version="1" xmlns="http://xspf.org/ns/0/"><trackList><track><location>a b.mp3</location>
        <location>http://m/c.mp3</location><duration>5000</duration></track></trackList></playlist>
        """,
        "#EXTM3U\n#PLAYLIST:P\n#EXTINF:5 a=\"b,c\",T\nhttp://m/a.mp3\r\n\n../b.mp3\n",
        "[playlist]\nFile2=b.mp3\nFile1=http://m/a.mp3\nTitle1=T\nLength1=-1\n",
    ]

    private static let opmlSeed = """
        <opml version="2.0"><head><title>L</title></head><body><outline text="F"><outline text="A" type="rss" \
        xmlUrl="http://h/f?a&amp;b"/></outline><outline url="http://h/g"/></body></opml>
        """

    private static func feed(_ input: [UInt8]) throws {
        let base = try OriginURL(url: "https://origin.example/a/b/feed?q=1"),
            form = ProxyForm.path(at: try OriginURL(url: "http://proxy.example:7335"))
        let budget = WorkBudget(bytes: 1 << 20)
        let types = [nil, "text/xml; charset=koi8-r", "audio/x-mpegurl"]
        for type in types {
            _ = FeedRecognition.isFeed(input, type: type)
            guard let feed = try? Feed(reading: input, at: base, type: type, within: budget) else { continue }
            try hold(feed.items.count <= FeedLimits.items, "\(feed.items.count) items")
            try check(PlaybackOrder(of: feed, within: budget), feed)
            // The client's URL is that of another place, as behind a redirect.
            for client in [form(base), try OriginURL(url: "http://proxy.example:7335/http/other.example/x?q=1")] {
                guard let edits = try? feed.edits(for: form, at: client, within: budget) else { continue }
                try check(edits, input)
                let seen = try Feed(reading: edits.applied(to: input), at: client, type: type, within: budget)
                try hold(seen.kind == feed.kind, "a \(feed.kind) became a \(seen.kind)")
            }
        }
    }

    private static func check(_ edits: [AddressEdit], _ input: [UInt8]) throws {
        var place = 0
        for edit in edits {
            try hold(
                edit.range.lowerBound >= place && edit.range.upperBound <= input.count,
                "an edit outside of the text, or within another")
            place = edit.range.upperBound
        }
    }

    /// Each item is followed by at most one, and nobody plays in a circle.
    private static func check(_ order: PlaybackOrder, _ feed: Feed) throws {
        for item in feed.items.prefix(20) {
            try hold(order.contains(item.enclosure.url, within: .ofMatch), "an item is missing in the order")
            if case .item(let next) = order.next(after: item.enclosure.url, within: .ofMatch) {
                try hold(
                    order.contains(next, within: .ofMatch) && next.normalized != item.enclosure.url.normalized,
                    "a wrong next item")
            }
        }
    }

    private static func opml(_ input: [UInt8]) throws {
        guard let list = try? OPML(reading: input, within: WorkBudget(bytes: input.count)) else { return }
        let again = try OPML(reading: Array(list.text.utf8), within: WorkBudget(bytes: list.text.utf8.count))
        try hold(again.title == list.title && again.feeds == list.feeds, "a written list is read back as another")
    }
}
