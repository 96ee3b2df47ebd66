import CachePolicy
import TestSupport
import Testing

@testable import Playlists

@Suite struct FeedRewritingTests {
    private static let url = "http://h/d/feed.xml"

    private static func rewritten(_ bytes: [UInt8], at url: String = url, asked: String? = nil) throws -> [UInt8] {
        let feed = try Feed(reading: bytes, at: OriginURL(url))
        return try feed.edits(for: .local, at: ProxyForm.local(OriginURL(asked ?? url))).applied(to: bytes)
    }

    private static func rewritten(_ text: String) throws -> String { try rewritten(bytes(text)).text }

    /// An address in the proxy's form.
    private static func proxied(_ rest: String) -> String { "http://player.lan:7335/http/" + rest }

    @Test func eachAddressIsRewrittenAndNothingElse() throws {
        var expected = FeedSamples.everything
        for (context, address) in [
            ("\"http://m/a.mp3\"", "http://m/a.mp3"), ("'http://i/a.jpg'", "http://i/a.jpg"),
            ("\"http://i/t.jpg?a=1&amp;b=2\"", "http://i/t.jpg"), ("\"http://m/b.mp4\"", "http://m/b.mp4"),
            ("\"http://m/b.webm\"", "http://m/b.webm"), ("\"http://m/b.opus\"", "http://m/b.opus"),
            ("<url>http://i/c.png<", "http://i/c.png"), ("href=\"http://h/feed.xml\"", "http://h/feed.xml"),
            ("> http://h/new.xml <", " http://h/new.xml "),
        ] {
            #expect(expected.contains(context), "\(context)")
            let written = Self.proxied(address.filter { $0 != " " }.replacing("http://", with: ""))
            expected = expected.replacing(context, with: context.replacing(address, with: written))
        }
        expected = expected.replacing("\"/2023.xml\"", with: "\"\(Self.proxied("h/2023.xml"))\"")
        #expect(try Self.rewritten(FeedSamples.everything) == expected)
    }

    @Test func linksToPagesAndPermalinksStay() throws {
        let text = FeedSamples.rss(
            """
            <item><link>http://h/1.html</link><guid isPermaLink="true">http://h/1</guid><comments>http://h/c</comments>
            <atom:link href="http://h/1.html"/><media:player url="http://h/p"/></item>
            """,
            channel: "<link>http://h/</link><atom:link rel=\"alternate\" href=\"http://h/\"/><docs>http://d/</docs>")
        #expect(try Self.rewritten(text) == text)
    }

    @Test func relativeAddressesThatAreRightStay() throws {
        let text = FeedSamples.rss("<item><enclosure url=\"a.mp3?x=1&amp;y=2\"/></item>")
        #expect(try Self.rewritten(text) == text)
        let moved = try Self.rewritten(bytes(text), asked: "http://other/x").text
        #expect(moved.contains("url=\"\(Self.proxied("h/d/a.mp3?x=1&amp;y=2"))\""))
    }

    // Some clients look at xml:base, and others do not: both arrive.
    @Test func belowABaseOfItsOwnAllBecomesAbsolute() throws {
        let written = try Self.rewritten(FeedSamples.atom)
        #expect(written.contains("href=\"\(Self.proxied("h/base/one.mp3"))\" type"))
        #expect(written.contains("<logo>\(Self.proxied("h/base/logo.png"))</logo>"))
        #expect(written.contains("xml:base=\"http://h/base/\"") && written.contains("href=\"one.html\""))
    }

    @Test func addressesInCharacterDataAndWithMistakesAreRewrittenInPlace() throws {
        let text = """
            <br>oops <?xml version="1.0"?><rss><channel><title>a & b&nbsp;\u{1}</title><image>
            <url><![CDATA[http://i/x?a&b]]></url>
            </image><item><description><p>x<br></description>
            <enclosure length=5 url="http://m/a?b=1&c=é" type=audio/mpeg></item>
            <item><enclosure url=http://m/b.mp3 /></item></channel>
            """
        let expected = text.replacing("<![CDATA[http://i/x?a&b]]>", with: Self.proxied("i/x?a&amp;b"))
            .replacing("\"http://m/a?b=1&c=é\"", with: "\"\(Self.proxied("m/a?b=1&amp;c=%C3%A9"))\"")
            .replacing("=http://m/b.mp3", with: "=" + Self.proxied("m/b.mp3"))
        #expect(try Self.rewritten(text) == expected)
    }

    /// Where the value has no quotes, the slash of the rewritten address would end the element.
    @Test(arguments: ["url=http://m", "url=\"http://m\"", "url='http://m' "])
    func aHostWithoutAPathDoesNotEndTheElement(attribute: String) throws {
        let text = FeedSamples.rss("<item><enclosure \(attribute)><title>T</title></item>")
        let written = try Self.rewritten(text)
        #expect(written == text.replacing("http://m", with: Self.proxied("m&#47;")))
        let item = try #require(try Feed(written).items.first)
        #expect(item.enclosure.url.absolute == Self.proxied("m/"))
    }

    @Test func aLinkThatCountsAsTheMediaIsRewritten() throws {
        let text = FeedSamples.rss("<item><link>http://m/a.mp3</link></item>")
        #expect(try Self.rewritten(text) == text.replacing("http://m/a.mp3", with: Self.proxied("m/a.mp3")))
        let page = FeedSamples.rss("<item><link>http://m/a.mp3</link><enclosure url=\"http://m/b\"/></item>")
        #expect(try Self.rewritten(page) == page.replacing("http://m/b", with: Self.proxied("m/b")))
    }

    @Test func addressesOfUnknownCharactersStay() throws {
        let text = latin(
            "<?xml version=\"1.0\" encoding=\"Shift_JIS\"?><rss><channel>"
                + "<item><enclosure url=\"http://m/\u{E9}\"/></item><item><enclosure url=\"http://m/a\"/></item></channel></rss>"
        )
        #expect(try Self.rewritten(text) == text.replacing(bytes("http://m/a"), with: bytes(Self.proxied("m/a"))))
    }

    // The element within the address would have to be rewritten as well.
    @Test func anAddressWithoutAPlaceIsNotPassedOver() throws {
        let feed = try Feed(FeedSamples.rss("", channel: "<image><url>http://i/<b>x</b></url></image>"))
        #expect(feedFailure { _ = try feed.edits(for: .local, at: OriginURL("http://other/")) }?.kind == .tooLarge)
    }

    @Test func bytesOfOtherEncodingsStay() throws {
        let text =
            "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><rss><channel><title>\u{E9}\u{FC}</title>"
            + "<item><title>\u{E9}</title><enclosure url=\"http://m/a\"/></item></channel></rss>"
        let expected = text.replacing("http://m/a", with: Self.proxied("m/a"))
        #expect(try Self.rewritten(latin(text)) == latin(expected))
        let damaged = latin(
            "<rss><channel><title>\u{C3}\u{A9}\u{C3}\u{A9} \u{E9}</title><item><enclosure url=\"http://m/a\"/>")
        let written = try Self.rewritten(damaged)
        #expect(written == Array(damaged.dropLast(13)) + latin("\(Self.proxied("m/a"))\"/>"))
    }

    @Test func aFeedInUTF16StaysAsItArrived() throws {
        let text = FeedSamples.everything.utf16.flatMap { [UInt8($0 & 255), UInt8($0 >> 8)] }
        #expect(try Self.rewritten(text) == text)
        #expect(try Feed(reading: text, at: OriginURL(Self.url)).items.count == 2)
    }

    @Test func listsOfFilesAreRewrittenWithoutEscapes() throws {
        #expect(
            try Self.rewritten("#EXTM3U\r\n#EXTINF:1,x\r\nhttp://m/a?b&c \r\n")
                == "#EXTM3U\r\n#EXTINF:1,x\r\n\(Self.proxied("m/a?b&c")) \r\n")
        #expect(
            try Self.rewritten("[playlist]\nFile1 = http://m/a\n") == "[playlist]\nFile1 = \(Self.proxied("m/a"))\n")
    }

    @Test func growthIsBounded() throws {
        let items = String(repeating: "<item><enclosure url=\"a\"/></item>", count: 4300)
        let feed = try Feed(FeedSamples.rss(items), at: "http://h/" + String(repeating: "x", count: 8000) + "/f")
        #expect(feedFailure { _ = try feed.edits(for: .local, at: OriginURL("http://other/")) }?.kind == .tooLarge)
    }

    // MARK: - Properties

    static let samples =
        [FeedSamples.everything, FeedSamples.atom, FeedListTests.xspf].map(bytes) + FeedOddity.all.map(\.text)

    /// The purpose of rewriting: clients arrive at the proxy's form of each address.
    @Test(arguments: ["http://h/d/feed.xml", "https://elsewhere.example/x/y?z"]) func clientsArriveAtTheProxysForm(
        asked: String
    ) throws {
        for sample in Self.samples {
            let base = OriginURL(Self.url), client = ProxyForm.local(OriginURL(asked))
            let feed = try Feed(reading: sample, at: base)
            // Without places in the text, nothing is rewritten.
            if Self.isUTF16(sample) { continue }
            let seen = try Feed(reading: feed.edits(for: .local, at: client).applied(to: sample), at: client)
            let meant = feed.items.flatMap { [$0.enclosure] + $0.alternatives }.map { ProxyForm.local($0.url) }
            #expect(seen.items.flatMap { [$0.enclosure] + $0.alternatives }.map(\.url) == meant)
            #expect(seen.items.map(\.image) == feed.items.map { $0.image.map { ProxyForm.local($0) } })
            #expect(seen.image == feed.image.map { ProxyForm.local($0) })
            if let next = feed.nextPage { #expect(seen.nextPage == ProxyForm.local(next)) }
            #expect(seen.items.map(\.title) == feed.items.map(\.title))
        }
    }

    private static func isUTF16(_ bytes: [UInt8]) -> Bool { !FeedText(bytes, charset: nil).hasPlaces }

    @Test func rewritingChangesAddressesAlone() throws {
        for sample in Self.samples { try Self.checkRewriting(sample) }
    }

    /// Clients arrive at the proxy's form of all media and images, and the bytes between the edits stay. A feed whose
    /// addresses are not all known is not rewritten.
    static func checkRewriting(_ bytes: [UInt8]) throws {
        guard !isUTF16(bytes), let feed = try? Feed(reading: bytes, at: OriginURL(url)) else { return }
        let client = OriginURL("http://elsewhere/")
        guard let edits = try? feed.edits(for: .local, at: client) else { return }
        let written = edits.applied(to: bytes)
        var place = 0, rest = written[...]
        for edit in edits {
            try #require(edit.range.lowerBound >= place && edit.range.upperBound <= bytes.count)
            try #require(rest.starts(with: bytes[place..<edit.range.lowerBound]))
            rest = rest.dropFirst(edit.range.lowerBound - place).dropFirst(edit.replacement.utf8.count)
            place = edit.range.upperBound
        }
        #expect(rest.elementsEqual(bytes[place...]))
        guard let seen = try? Feed(reading: written, at: client) else {
            Issue.record("not read: \(written.text)")
            return
        }
        let meant = feed.items.flatMap { [$0.enclosure] + $0.alternatives }.map { ProxyForm.local($0.url) }
        #expect(seen.items.flatMap { [$0.enclosure] + $0.alternatives }.map(\.url) == meant, "\(bytes.text)")
        #expect(seen.items.map(\.image) == feed.items.map { $0.image.map { ProxyForm.local($0) } }, "\(bytes.text)")
        #expect(seen.image == feed.image.map { ProxyForm.local($0) }, "\(bytes.text)")
    }

    /// The parser accepts each repaired text.
    static func checkRepair(_ bytes: [UInt8]) {
        let feed = try? Feed(reading: bytes, at: OriginURL(url))
        #expect(feed?.cut != .malformed, "\(bytes.text)")
        let text = FeedText(bytes, charset: nil)
        guard let repaired = try? text.repaired(within: .large), !repaired.bytes.isEmpty else { return }
        let tree = FeedTree(repaired, at: FeedElement.Base(OriginURL(url), within: .large), within: .large) { _, _ in }
        tree?.read()
        #expect(tree?.failure?.kind != .malformed, "\(tree?.failure?.reason ?? ""): \(repaired.bytes.text)")
    }

    @Test func mutatedFeedsAreReadOrRefused() throws {
        var random = SplitMix64(seed: 20_241_002)
        let marks = [
            "<", ">", "&", "\"", "'", "]]>", "]", "<b, ", "<?", "foo,bar=\"x\"", "<![CDATA[", "<!--", "</item>",
            "<item>", "\u{0}", "é", "&#x", ";", "=",
            "99999999999999999999",
        ]
        for round in 0..<1000 {
            var text = Self.samples[round % Self.samples.count]
            for _ in 0..<Int.random(in: 1...4, using: &random) where !text.isEmpty {
                let place = Int.random(in: 0..<text.count, using: &random)
                switch Int.random(in: 0..<4, using: &random) {
                case 0: text[place] = UInt8.random(in: 0...255, using: &random)
                case 1: text.removeSubrange(place..<min(text.count, place + Int.random(in: 1...40, using: &random)))
                case 2: text.insert(contentsOf: Array((marks.randomElement(using: &random) ?? "").utf8), at: place)
                default: text.removeSubrange(place...)
                }
            }
            try Self.checkRewriting(text)
            Self.checkRepair(text)
            _ = try? OPML(reading: text)
        }
    }
}
