import CachePolicy
import Playlists
import Testing

@testable import Presentations

@Suite struct FeedShelfTests {
    private let shelf = FeedShelf(mostBytes: 4 << 20)

    /// A feed of short addresses below a long one: 60 KB that name 2 MB of URLs.
    private static func feed(_ number: Int, base: String) throws -> PlaylistDocument {
        let url = OriginURL("https://feeds.example/\(number).xml")
        let items = (1...2000).map { "<item><enclosure url=\"a\($0)\"/></item>" }
        return try PlaylistDocument(
            feed: Array("<rss xml:base=\"\(base)\"><channel>\(items.joined())</channel></rss>".utf8),
            type: "application/rss+xml", key: url.cacheKey, url: url, base: url)
    }

    private static func form(_ document: PlaylistDocument) -> PlaylistForm {
        PlaylistForm(client: OriginURL("http://127.0.0.1:7335/https/feeds.example/1.xml"), style: .path)
    }

    @Test func whatFeedsBecomeCounts() throws {
        let base = "https://m.example/" + String(repeating: "x", count: 1000) + "/"
        let feeds = try (1...12).map { try Self.feed($0, base: base) }
        for feed in feeds {
            shelf.put(feed)
            #expect(shelf.bytes <= 4 << 20)
        }
        let kept = feeds.filter { shelf.document($0.key) === $0 }
        #expect((2...9).contains(kept.count), "\(kept.count) are kept")
        #expect(kept.last === feeds.last)
        #expect(shelf.contains(OriginURL(base + "a7")))
    }

    @Test func aTextThatIsMuchLongerIsGeneratedAgain() throws {
        let long = try Self.feed(1, base: "https://m.example/" + String(repeating: "x", count: 1000) + "/")
        let first = try long.text(for: Self.form(long), within: .init(bytes: long.text.count))
        #expect(first.bytes.count > 2_000_000 && !first.isOriginal)
        #expect(long.knownText(for: Self.form(long)) == nil)
        #expect(try long.text(for: Self.form(long), within: .init(bytes: long.text.count)).etag == first.etag)
        // As most feeds are.
        let usual = try Self.feed(1, base: "https://m.example/")
        _ = try usual.text(for: Self.form(usual), within: .init(bytes: usual.text.count))
        #expect(usual.knownText(for: Self.form(usual)) != nil)
    }
}
