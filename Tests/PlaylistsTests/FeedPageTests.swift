import CachePolicy
import Testing

@testable import Playlists

/// Items whose media is behind a page that a resolver knows.
@Suite struct FeedPageTests {
    private static func media(of item: String, isAtom: Bool = false) throws -> [String?] {
        let text =
            isAtom
            ? "<feed xmlns='http://www.w3.org/2005/Atom' xmlns:media='http://search.yahoo.com/mrss/'><entry>\(item)</entry></feed>"
            : "<rss version='2.0'><channel><item>\(item)</item></channel></rss>"
        let feed = try Feed(reading: Array(text.utf8), at: OriginURL("https://site.example/feed")) {
            $0.host == "site.example" && $0.pathAndQuery.hasPrefix("/watch")
        }
        return feed.items.map(\.enclosure.url.absolute) + feed.skipped.map { _ in nil }
    }

    @Test func linkToAPageIsTheMediaOfAnItemWithoutAny() throws {
        #expect(
            try Self.media(of: "<title>A</title><link>https://site.example/watch?v=1</link>")
                == ["https://site.example/watch?v=1"])
        #expect(try Self.media(of: "<title>A</title><link>https://site.example/about</link>") == [nil])
    }

    /// As the feed of a channel has it.
    @Test func aPlayerInFlashIsNoMedia() throws {
        let item = """
            <id>yt:video:1</id><link rel="alternate" href="https://site.example/watch?v=1"/>
            <media:group><media:content url="https://site.example/v/1" type="application/x-shockwave-flash"/>
            <media:thumbnail url="https://site.example/1.jpg"/></media:group>
            """
        #expect(try Self.media(of: item, isAtom: true) == ["https://site.example/watch?v=1"])
    }

    @Test(arguments: ["self", "replies", "related", "alternate preview"])
    func otherLinksAreNot(relation: String) throws {
        let item = "<link rel='\(relation)' href='https://site.example/watch?v=1'/>"
        #expect(try Self.media(of: item, isAtom: true) == [nil])
    }

    @Test func anEnclosureComesFirst() throws {
        let item = """
            <link>https://site.example/watch?v=1</link><enclosure url="https://cdn.example/1.mp3" type="audio/mpeg"/>
            """
        #expect(try Self.media(of: item) == ["https://cdn.example/1.mp3"])
    }
}
