import CachePolicy
import Testing

@testable import Playlists

@Suite struct FeedLimitTests {
    @Test func aFeedOf200MegabytesIsRefusedUnread() {
        let failure = feedFailure {
            _ = try Feed(reading: Array(repeating: 0x3C, count: 200 << 20), at: OriginURL("http://h/"))
        }
        #expect(failure?.kind == .tooLarge)
    }

    @Test func tenThousandItemsAreRead() throws {
        let items = (0..<10_000).map { "<item><guid>\($0)</guid><enclosure url=\"http://m/\($0).mp3\"/></item>" }
        let feed = try Feed(FeedSamples.rss(items.joined()))
        #expect(feed.items.count == 10_000 && feed.items.last?.identity == "9999" && feed.cut == nil)
    }

    @Test func itemsBeyondTheLimitAreLeftOutAndRewrittenAllTheSame() throws {
        let item = "<item><enclosure url=\"http://m/a\"/></item>"
        let text = FeedSamples.rss(String(repeating: item, count: FeedLimits.items + 5))
        let feed = try Feed(text)
        #expect(feed.cut == .tooManyItems && feed.items.count + feed.skipped.count == FeedLimits.items)
        #expect(feed.addresses.all.count == FeedLimits.items + 5)
    }

    private static let laughs = """
        <!DOCTYPE rss [<!ENTITY a "lollollollol"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">
        <!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">]>
        """

    @Test(arguments: [
        laughs + "<rss><channel><title>&c;</title></channel></rss>",
        laughs + "<rss><channel><item><enclosure url=\"&c;\"/></item></channel></rss>",
        "<!DOCTYPE rss [<!ENTITY a \"&b;\"><!ENTITY b \"&a;\">]><rss><channel><title>&a;</title></channel></rss>",
    ]) func entitiesThatExpandAreRefused(text: String) {
        #expect(feedFailure { _ = try Feed(text) }?.kind == .entities)
    }

    /// libexpat adds each default to each element: n bytes would be work for n².
    @Test(arguments: [
        "<!ATTLIST item a CDATA \"x\">", "<!ELEMENT item ANY><!ATTLIST item a CDATA #IMPLIED b ID #REQUIRED>",
        "<!ATTLIST outline a CDATA \"x\">",
    ]) func attributesOfTheDocumentTypeAreRefused(declaration: String) {
        let type = "<!DOCTYPE rss [\(declaration)]>"
        let rss = type + "<rss><channel><item><enclosure url=\"http://m/a.mp3\"/></item></channel></rss>"
        let opml = type + "<opml><body><outline xmlUrl=\"http://h/feed\"/></body></opml>"
        #expect(feedFailure { _ = try Feed(rss) }?.reason.contains("ATTLIST") == true)
        #expect(feedFailure { _ = try OPML(reading: Array(opml.utf8)) }?.reason.contains("ATTLIST") == true)
    }

    @Test func filesAreNotReadByEntities() throws {
        let feed = try Feed(
            """
            <!DOCTYPE rss [<!ENTITY x SYSTEM "file:///etc/passwd"><!ENTITY % y SYSTEM "http://h/y"> %y;]>
            <rss><channel><title>a&x;b</title></channel></rss>
            """)
        #expect(feed.title == "a&x;b")
    }

    // Items are closed before the next one, so they nest no deeper.
    @Test(arguments: [
        ("<a>", FeedError.Kind.tooDeep), ("<item>", nil), ("<media:group>", .tooDeep), ("<b x='", .tooDeep),
    ]) func depthAndSizeAreBounded(text: String, kind: FeedError.Kind?) {
        let failure = feedFailure { _ = try Feed("<rss><channel>" + String(repeating: text, count: 200_000)) }
        #expect(failure?.kind == kind)
    }

    @Test func aTagIsBounded() {
        let text =
            "<rss><channel><item><enclosure url=\"http://m/" + String(repeating: "x", count: 2 << 20)
            + "\"/></item></channel></rss>"
        #expect(feedFailure { _ = try Feed(text) }?.kind == .tooLarge)
    }

    @Test func anAddressOrAnIdentityThatIsTooLongIsNotUsed() throws {
        let long = String(repeating: "x", count: 100_000)
        let feed = try Feed(
            FeedSamples.rss(
                "<item><guid>\(long)</guid><enclosure url=\"http://m/a.mp3\"/>"
                    + "<enclosure url=\"http://m/\(long)\"/></item>"
            ))
        #expect(feed.items.map(\.identity) == ["http://m/a.mp3"] && feed.items.first?.alternatives.isEmpty == true)
    }

    @Test func elementsOfAnItemAreBounded() throws {
        let contents = String(repeating: "<media:content url=\"http://m/a\"/>", count: 5000)
        let many = (0..<500).map { "<media:content url=\"http://m/\($0)\"/>" }.joined()
        let feed = try Feed(FeedSamples.rss("<item>\(contents)</item><item>\(many)</item>"))
        #expect(feed.items.map(\.alternatives.count) == [0, FeedLimits.alternatives])
        #expect(feed.addresses.all.count == FeedLimits.elementsOfItem + 500)
        // The other 4,000 would lead clients past the proxy.
        #expect(feedFailure { _ = try feed.edits(for: .local, at: OriginURL("http://h/")) }?.kind == .tooLarge)
    }

    @Test func itemsWithinAnItemDoNotExtendIt() throws {
        let inner = "<item/>" + String(repeating: "<media:content url=\"http://m/a\"/>", count: 20)
        let feed = try Feed(FeedSamples.rss("<item>" + String(repeating: inner, count: 200) + "</item>"))
        #expect(feed.addresses.all.count < FeedLimits.elementsOfItem && !feed.addresses.isComplete)
    }

    @Test func aFeedOfManyElementsWithOneMistakeIsRepaired() throws {
        let item = "<item><title>a</title>" + String(repeating: "<x>y</x>", count: 50) + "</item>"
        let text = FeedSamples.rss(String(repeating: item, count: 6000) + FeedSamples.item("b"), channel: "<x>&</x>")
        let feed = try Feed(text)
        #expect(feed.isRepaired && feed.cut == nil && feed.shown == "b http://m/b")
    }

    @Test func withTooManyMistakesTheItemsBeforeThemCount() throws {
        let text = FeedSamples.rss(FeedSamples.item("a") + String(repeating: "&", count: FeedLimits.repairs + 10))
        let feed = try Feed(text)
        #expect(feed.cut == .malformed && feed.shown == "a http://m/a")
        #expect(feedFailure { _ = try feed.edits(for: .local, at: OriginURL("http://h/")) }?.kind == .tooLarge)
    }

    @Test func aLongCommentIsLeftOut() throws {
        let comment = "<!-- " + String(repeating: "x", count: FeedLimits.tag * 4) + " -->"
        let feed = try Feed(FeedSamples.rss(FeedSamples.item("a") + comment + FeedSamples.item("b")))
        #expect(feed.shown == "a http://m/a; b http://m/b" && feed.cut == nil)
    }

    // A base of 8,000 bytes would make 24 GB of three million short references.
    @Test func addressesTakeNoMoreThanTheirTextAllows() throws {
        let media = (0..<60).map { "<enclosure url='\($0)'/>" }.joined()
        let base = "http://h/" + String(repeating: "x", count: 8000) + "/"
        let feed = try Feed(FeedSamples.rss(String(repeating: "<item>\(media)</item>", count: 6)), at: base)
        #expect(feed.cut == .tooManyItems && feed.items.count + feed.skipped.count == 1)
        let list = String(repeating: "a\n", count: 300)
        #expect(try Feed("#EXTM3U\n" + list, at: base).cut == .tooManyItems)
        let text = FeedSamples.rss("<item xml:base='/\(String(repeating: "y", count: 3000))/'>\(media)</item>")
        #expect(try Feed(text).items.first?.enclosure.url == OriginURL("http://h/0"))
    }

    /// The proxy takes no longer URL from players.
    @Test func anAddressThatNoPlayerCanRequestIsNone() throws {
        let long = "http://m/" + String(repeating: "x", count: FeedLimits.enclosure)
        let feed = try Feed(FeedSamples.rss("<item><enclosure url='\(long)'/></item>" + FeedSamples.item("a")))
        #expect(feed.shown == "a http://m/a" && feed.skipped.map(\.reason) == [.address("it is longer than 8 KiB")])
    }

    @Test func aTextOfMistakesAloneIsRefused() {
        let text = "<rss><channel><title>" + String(repeating: "&", count: FeedLimits.repairs + 10)
        let failure = feedFailure { _ = try Feed(text) }
        #expect(failure?.kind == .tooLarge)
    }

    @Test func itemsAndTagsOfHTMLThatAreNotClosedDoNotAddUp() throws {
        let items = (0..<300).map { "<item><enclosure url=\"http://m/\($0)\"/>" }
        #expect(try Feed(FeedSamples.rss(items.joined())).items.count == 300)
        let notes = String(repeating: "<p>a<br><img src=x><li>b<li>c</p>", count: 300)
        let text = FeedSamples.rss("<item><description>\(notes)</description><enclosure url=\"http://m/a\"/></item>")
        #expect(try Feed(text).shown == "- http://m/a")
    }

    @Test func itemsBeforeTheEndCount() throws {
        let whole = FeedSamples.rss((0..<5).map { FeedSamples.item("\($0)") }.joined())
        var most = 0
        for count in stride(from: 0, to: whole.count, by: 3) {
            guard let feed = try? Feed(String(whole.prefix(count))) else { continue }
            #expect(feed.cut == .endsEarly || count >= whole.count - 1, "after \(count)")
            #expect(feed.items.count >= most && feed.items.count + feed.skipped.count <= 5, "after \(count)")
            most = feed.items.count
        }
        #expect(most == 5)
    }
}
