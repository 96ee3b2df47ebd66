import CachePolicy
import TestSupport
import Testing

@testable import Playlists

@Suite struct FeedRewritingTests {
    private static let url = "http://h/d/feed.xml"

    private static func rewritten(_ bytes: [UInt8], at url: String = url, asked: String? = nil) throws -> [UInt8] {
        let feed = try Feed(reading: bytes, at: OriginURL(url))
        return try feed.rewritten(bytes, for: .local, at: ProxyForm.local(OriginURL(asked ?? url)))
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

    /// What rewriting is for: clients arrive at the proxy's form of what is meant.
    @Test(arguments: ["http://h/d/feed.xml", "https://elsewhere.example/x/y?z"]) func clientsArriveAtTheProxysForm(
        asked: String
    ) throws {
        for sample in Self.samples {
            let base = OriginURL(Self.url), client = ProxyForm.local(OriginURL(asked))
            let feed = try Feed(reading: sample, at: base)
            // Without places in the text, nothing is rewritten.
            guard !feed.addresses.all.isEmpty else { continue }
            let seen = try Feed(reading: feed.rewritten(sample, for: .local, at: client), at: client)
            let meant = feed.items.flatMap { [$0.enclosure] + $0.alternatives }.map { ProxyForm.local($0.url) }
            #expect(seen.items.flatMap { [$0.enclosure] + $0.alternatives }.map(\.url) == meant)
            #expect(seen.items.map(\.image) == feed.items.map { $0.image.map { ProxyForm.local($0) } })
            #expect(seen.image == feed.image.map { ProxyForm.local($0) })
            if let next = feed.nextPage { #expect(seen.nextPage == ProxyForm.local(next)) }
            #expect(seen.items.map(\.title) == feed.items.map(\.title))
        }
    }

    @Test func undoneEditsGiveTheOriginal() throws {
        for sample in Self.samples { try Self.checkUndo(sample) }
    }

    static func checkUndo(_ bytes: [UInt8]) throws {
        guard let feed = try? Feed(reading: bytes, at: OriginURL(url)) else { return }
        let edits = try feed.edits(for: .local, at: OriginURL("http://elsewhere/"))
        var shift = 0, place = 0, undo: [AddressEdit] = []
        for edit in edits {
            try #require(edit.range.lowerBound >= place && edit.range.upperBound <= bytes.count)
            place = edit.range.upperBound
            let count = edit.replacement.utf8.count, start = edit.range.lowerBound + shift
            undo.append(AddressEdit(range: start..<(start + count), replacement: ""))
            shift += count - edit.range.count
        }
        // The original bytes may be of any encoding: they are put back as bytes.
        var restored: [UInt8] = [], written = edits.applied(to: bytes)[...]
        for (edit, undone) in zip(edits, undo) {
            restored += written[written.startIndex..<undone.range.lowerBound]
            restored += bytes[edit.range]
            written = written[undone.range.upperBound...]
        }
        #expect(restored + written == bytes)
    }

    @Test func mutatedFeedsAreReadOrRefused() throws {
        var random = SplitMix64(seed: 20_241_002)
        let marks = [
            "<", ">", "&", "\"", "'", "]]>", "<![CDATA[", "<!--", "</item>", "<item>", "\u{0}", "é", "&#x", ";", "=",
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
            try Self.checkUndo(text)
            _ = try? OPML(reading: text)
        }
    }
}
