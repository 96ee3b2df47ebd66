import CachePolicy

@testable import Playlists

/// Texts of feeds for tests.
enum FeedSamples {
    static let namespaces =
        "xmlns:itunes=\"http://www.itunes.com/dtds/podcast-1.0.dtd\" xmlns:atom=\"http://www.w3.org/2005/Atom\""
        + " xmlns:media=\"http://search.yahoo.com/mrss/\" xmlns:podcast=\"https://podcastindex.org/namespace/1.0\""
        + " xmlns:sy=\"http://purl.org/rss/1.0/modules/syndication/\""
        + " xmlns:fh=\"http://purl.org/syndication/history/1.0\""

    static func rss(_ items: String, channel: String = "") -> String {
        "<?xml version=\"1.0\"?>\n<rss version=\"2.0\" \(namespaces)><channel><title>P</title>\(channel)"
            + "\(items)</channel></rss>\n"
    }

    /// An item whose media is `http://m/name`.
    static func item(_ name: String, _ more: String = "") -> String {
        "<item><title>\(name)</title><guid>g-\(name)</guid><enclosure url=\"http://m/\(name)\" "
            + "length=\"7\" type=\"audio/mpeg\"/>\(more)</item>"
    }

    static let atom = """
        <?xml version="1.0" encoding="utf-8"?>
        <feed xmlns="http://www.w3.org/2005/Atom" xml:base="http://h/base/"><title>A</title><id>urn:feed</id>
        <link href="http://h/"/><link rel="self" href="/feed.atom"/><link rel="next" href="?page=2"/>
        <logo>logo.png</logo>
        <entry><title type="html">One &amp;amp; two</title><id>urn:1</id><updated>2024-10-02T10:00:00Z</updated>
        <link rel="alternate" href="one.html"/>
        <link rel="enclosure" href="one.mp3" type="audio/mpeg" length="123"/></entry></feed>
        """

    static let everything = rss(
        item("a.mp3", "<itunes:image href='http://i/a.jpg'/><media:thumbnail url=\"http://i/t.jpg?a=1&amp;b=2\"/>")
            + """
            <item><guid isPermaLink="true">http://h/b</guid><link>http://h/b.html</link><media:group>
            <media:content url="http://m/b.mp4" isDefault="true"/><media:content url="http://m/b.webm"/></media:group>
            <podcast:alternateEnclosure type="audio/opus"><podcast:source uri="http://m/b.opus"/>
            <podcast:source uri="ipfs://x"/></podcast:alternateEnclosure></item>
            """,
        channel: """
            <link>http://h/</link><image><url>http://i/c.png</url><link>http://h/</link></image>
            <atom:link rel="self" href="http://h/feed.xml"/><atom:link rel="prev-archive" href="/2023.xml"/>
            <itunes:new-feed-url> http://h/new.xml </itunes:new-feed-url>
            """)
}

extension Feed {
    init(_ text: String, at url: String = "http://h/feed.xml", type: String? = nil) throws(FeedError) {
        try self.init(reading: Array(text.utf8), at: OriginURL(url), type: type)
    }

    /// Titles and addresses of all items.
    var shown: String {
        items.map { "\($0.title ?? "-") \($0.enclosure.url.absolute)" }.joined(separator: "; ")
    }
}

/// Text in which each character is one byte.
func latin(_ text: String) -> [UInt8] { text.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) } }

/// The error that reading ends with; nil where it succeeds.
func feedFailure(_ read: () throws -> Void) -> FeedError? {
    do {
        try read()
        return nil
    } catch { return error as? FeedError }
}
