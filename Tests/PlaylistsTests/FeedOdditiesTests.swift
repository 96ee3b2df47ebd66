import CachePolicy
import Testing

@testable import Playlists

/// Mistakes of feeds in the wild, and the values that are read nevertheless.
@Suite struct FeedOdditiesTests {
    @Test(arguments: FeedOddity.all) func isReadAllTheSame(oddity: FeedOddity) throws {
        let feed = try Feed(reading: oddity.text, at: OriginURL("http://h/d/feed.xml"), type: oddity.type)
        #expect(oddity.seen(feed) == oddity.expected)
    }

    @Test func eachHasANameOfItsOwn() {
        #expect(Set(FeedOddity.all.map(\.name)).count == FeedOddity.all.count && FeedOddity.all.count >= 40)
    }
}

struct FeedOddity: CustomTestStringConvertible, Sendable {
    let name: String
    let text: [UInt8]
    var type: String?
    let expected: String
    let seen: @Sendable (Feed) -> String

    init(
        _ name: String, _ text: String, type: String? = nil, _ expected: String,
        _ seen: @escaping @Sendable (Feed) -> String = { $0.shown }
    ) {
        self.init(name, bytes: Array(text.utf8), type: type, expected, seen)
    }

    init(
        _ name: String, bytes: [UInt8], type: String? = nil, _ expected: String,
        _ seen: @escaping @Sendable (Feed) -> String = { $0.shown }
    ) {
        (self.name, self.text, self.type, self.expected, self.seen) = (name, bytes, type, expected, seen)
    }

    var testDescription: String { name }

    static let all = prologs + encodings + markup + items + addresses + fields + roots

    private static func rss(_ items: String, channel: String = "") -> String {
        FeedSamples.rss(items, channel: channel)
    }

    private static func item(_ name: String, _ more: String = "") -> String { FeedSamples.item(name, more) }

    private static let one = rss(item("a.mp3")), shown = "a.mp3 http://m/a.mp3"

    /// A feed with one item that has this title.
    private static func titled(_ title: String) -> String {
        rss("<item><title>\(title)</title><enclosure url=\"http://m/a\"/></item>")
    }

    private static let prologs = [
        FeedOddity("white space before the declaration", "\n\n  " + one, shown),
        FeedOddity("a byte order mark", "\u{FEFF}" + one, shown),
        FeedOddity("a byte order mark after white space, and twice", "\n\u{FEFF}\u{FEFF} " + one, shown),
        FeedOddity(
            "a warning of the server's before the declaration", "<br />\n<b>Warning</b>: x in /a.php\n" + one, shown),
        FeedOddity(
            "a warning of the server's, and no declaration",
            "<br />\n<b>Warning</b>: x in /a.php\n" + String(one.dropFirst(22)), shown),
        FeedOddity(
            "a declaration without its second question mark",
            one.replacing("\"?>", with: "\">").replacing("</channel>", with: "<?x ?></channel>"), shown),
        FeedOddity("a comment before the declaration", "<!-- made by x -->" + one, shown),
        FeedOddity("text after the end", one + "<!-- 0.3 s --><script>x</script> bye & bye", shown),
        FeedOddity("the media type of a web page", one, type: "text/html; charset=iso-8859-1", shown),
        FeedOddity("no declaration at all", String(one.dropFirst(22)), shown),
        FeedOddity("XML 1.1", one.replacing("version=\"1.0\"", with: "version=\"1.1\""), shown),
        FeedOddity(
            "a document type with an external part",
            one.replacing(
                "<rss", with: "<!DOCTYPE rss PUBLIC \"-//Netscape//DTD RSS 0.91//EN\" \"http://x/rss-0.91.dtd\"><rss"),
            shown),
        FeedOddity(
            "a document type that defines nbsp",
            titled("a&nbsp;b").replacing("<rss", with: "<!DOCTYPE rss [<!ENTITY nbsp \"&#160;\">]><rss"),
            "a b http://m/a"),
    ]

    private static func declared(_ encoding: String, _ title: String) -> String {
        titled(title).replacing("\"1.0\"?>", with: "\"1.0\" encoding=\"\(encoding)\"?>")
    }

    private static let encodings = [
        FeedOddity("ISO-8859-1", bytes: latin(declared("ISO-8859-1", "é")), "é http://m/a"),
        FeedOddity(
            "windows-1252 that is declared as UTF-8", bytes: latin(declared("UTF-8", "é \u{93}x\u{94}")),
            "é “x” http://m/a"),
        FeedOddity(
            "windows-1252 that is declared as ISO-8859-1", bytes: latin(declared("iso-8859-1", "\u{80}")),
            "€ http://m/a"),
        FeedOddity("UTF-8 that is declared as ISO-8859-1", declared("ISO-8859-1", "é"), "é http://m/a"),
        FeedOddity(
            "UTF-8 with a wrong byte that is declared as ISO-8859-1",
            bytes: Array(declared("ISO-8859-1", "éàü ").utf8).replacing(Array("ü ".utf8), with: [0xE9, 0x20]),
            "éàé http://m/a"),
        FeedOddity(
            "windows-1252 that is declared as UTF-16",
            bytes: Array(declared("utf-16", "é ").utf8).replacing(Array("é ".utf8), with: [0xE9, 0x20]),
            "é http://m/a"),
        FeedOddity("windows-1251", bytes: latin(declared("windows-1251", "\u{CC}\u{E8}\u{F0}")), "Мир http://m/a"),
        FeedOddity(
            "koi8-r by the response's charset alone", bytes: latin(titled("\u{ED}\u{C9}\u{D2}")),
            type: "text/xml; charset=\"KOI8-R\"", "Мир http://m/a"),
        FeedOddity(
            "an encoding that is not known", bytes: latin(declared("x-none", "a\u{E9}")), "a\u{FFFD} http://m/a"),
        FeedOddity(
            "UTF-8 that was cut within a character",
            bytes: Array(titled("éàü ").utf8).replacing(Array("ü ".utf8), with: [0xC3, 0x20]), "éàÃ http://m/a"),
        FeedOddity(
            "UTF-16 with a byte order mark",
            bytes: [0xFF, 0xFE] + declared("utf-16", "é").utf16.flatMap { [UInt8($0 & 255), UInt8($0 >> 8)] },
            "é http://m/a"),
        FeedOddity(
            "UTF-16 without one",
            bytes: titled("é").utf16.flatMap { [UInt8($0 >> 8), UInt8($0 & 255)] }, "é http://m/a"
        ),
    ]

    private static let markup = [
        FeedOddity("an ampersand by itself", titled("Q & A"), "Q & A http://m/a"),
        FeedOddity(
            "an ampersand in an address", rss("<item><enclosure url=\"http://m/a?b=1&c=2&copy=3\"/></item>"),
            "- http://m/a?b=1&c=2&copy=3"),
        FeedOddity("entities of HTML", titled("caf&eacute;&nbsp;&hellip; &unknown;"), "café … &unknown; http://m/a"),
        FeedOddity("control characters", titled("a\u{8}b\u{0}c"), "a b c http://m/a"),
        FeedOddity(
            "numbers of characters that do not exist", titled("a&#0;b&#x1F;c&#xFFFFFFFFFF;d&#146;"),
            "a b c d’ http://m/a"),
        FeedOddity(
            "an e-mail address in angle brackets",
            rss(item("a"), channel: "<managingEditor>Jo <jo@example.com></managingEditor>"), "a http://m/a"),
        FeedOddity(
            "words that begin like tags", rss(item("a", "<description>a<b, c <don't></description>") + item("b")),
            "a http://m/a; b http://m/b"),
        FeedOddity(
            "attributes with names that XML does not allow",
            rss("<item><enclosure foo,bar=\"x\" url=\"http://m/a\"/></item>"), "- http://m/a"),
        FeedOddity(
            "instructions of word processors",
            titled("a<?xml:namespace prefix = o ns = \"x\" />b").replacing("</channel>", with: item("b", "<?y ?>")),
            "ab http://m/a; b http://m/b"),
        FeedOddity("a less-than sign in text", titled("1 < 2 <3"), "1 < 2 <3 http://m/a"),
        FeedOddity(
            "tags of HTML that are not closed",
            rss(
                "<item><description>a<br>b<p>c<img src=x></description><enclosure url=\"http://m/a\"/></item>"
                    + item("b")), "- http://m/a; b http://m/b"),
        FeedOddity(
            "end tags without a beginning", rss("<item></b><enclosure url=\"http://m/a\"/></font></item>"),
            "- http://m/a"),
        FeedOddity(
            "an item that is not closed", rss(item("a").replacing("</item>", with: "") + item("b")),
            "a http://m/a; b http://m/b"),
        FeedOddity(
            "attributes without quotes", rss("<item><enclosure url=http://m/a.mp3 length=5 type=audio/mpeg/></item>"),
            "- http://m/a.mp3 audio/mpeg"
        ) { "\($0.shown) \($0.items.first?.enclosure.type ?? "")" },
        FeedOddity(
            "an attribute twice", rss("<item><enclosure url=\"http://m/a\" url='http://m/b'/></item>"), "- http://m/a"),
        FeedOddity(
            "attributes without white space between", rss("<item><enclosure url=\"http://m/a\"length=\"1\"/></item>"),
            "- http://m/a"),
        FeedOddity("comments with two hyphens", rss("<!-- a -- b --->" + item("a")), "a http://m/a"),
        FeedOddity("the end of CDATA in text", titled("a ]]> b"), "a ]]> b http://m/a"),
        FeedOddity(
            "end tags in another case", rss("<item><Title>t</title><enclosure url=\"http://m/a\"/></ITEM>"),
            "t http://m/a"),
        FeedOddity(
            "a text that ends within an item", String(rss(item("a") + item("b")).dropLast(50)),
            "a http://m/a endsEarly 1"
        ) { "\($0.shown) \($0.cut?.rawValue ?? "") \($0.skipped.count)" },
        FeedOddity(
            "prefixes that are not declared",
            """
            <rss><channel><item><itunes:episode>61</itunes:episode><media:content url=\"http://m/a\"/></item>\
            </channel></rss>
            """,
            "- http://m/a 61"
        ) { "\($0.shown) \($0.items.first?.episode ?? 0)" },
        FeedOddity(
            "other prefixes",
            """
            <rss xmlns:x=\"HTTP://Search.Yahoo.com/mrss\"><channel><item><x:content url=\"http://m/a\"/></item>\
            </channel></rss>
            """,
            "- http://m/a"),
        FeedOddity(
            "names in upper case",
            "<RSS><Channel><ITEM><TITLE>t</TITLE><Enclosure URL=\"http://m/a\"/></ITEM></Channel></RSS>", "t http://m/a"
        ),
    ]

    private static func skipped(_ feed: Feed) -> String {
        feed.shown + " / " + feed.skipped.map { "\($0.name): \($0.reason)" }.joined(separator: "; ")
    }

    private static func identities(_ feed: Feed) -> String { feed.items.map(\.identity).joined(separator: "; ") }

    private static let items = [
        FeedOddity(
            "an item without media", rss("<item><title>t</title></item>" + item("b")),
            "b http://m/b / t: it has no media file", skipped),
        FeedOddity(
            "an item without anything", rss("<item/>" + item("b")), "b http://m/b / item 1: it has no media file",
            skipped),
        FeedOddity(
            "an empty address", rss("<item><enclosure url=\" \" type=\"audio/mpeg\"/></item>"),
            " / item 1: it has no media file", skipped),
        FeedOddity(
            "a file on the author's disk",
            rss("<item><guid>g</guid><enclosure url=\"C:\\Podcast\\1.mp3\"/></item>" + item("b")),
            "b http://m/b / g: its address is a path on a disk", skipped),
        FeedOddity(
            "an address of another scheme", rss("<item><enclosure url=\"ftp://m/a\"/></item>"),
            " / item 1: its address is one of ftp: only http and https can be fetched", skipped),
        FeedOddity(
            "a picture as the enclosure", rss("<item><enclosure url=\"http://m/a.jpg\" type=\"image/jpeg\"/></item>"),
            " / item 1: it has no media file but image/jpeg", skipped),
        FeedOddity(
            "a picture first, and then the media",
            rss("<item><enclosure url=\"http://m/a.jpg\"/><enclosure url=\"http://m/a.mp3\"/></item>"),
            "- http://m/a.mp3"),
        FeedOddity(
            "the file as the item's link", rss("<item><link>http://m/a.mp3?x</link></item>"), "- http://m/a.mp3?x"),
        FeedOddity(
            "the same item twice", rss(item("a") + item("a")),
            """
            a http://m/a / a: an earlier item is the same
            """, skipped),
        FeedOddity(
            "one GUID for all items",
            rss(
                """
                <item><guid>x</guid><enclosure url=\"http://m/1.mp3?t=1\"/></item><item><guid>x</guid><enclosure \
                url=\"http://m/2.mp3?t=1\"/></item>
                """
            ), "http://m/1.mp3; http://m/2.mp3", identities),
        FeedOddity(
            "one GUID and a script",
            rss(
                """
                <item><guid>x</guid><enclosure url=\"http://m/get?id=1\"/></item><item><guid>x</guid><enclosure \
                url=\"http://m/get?id=2\"/></item>
                """
            ), "http://m/get?id=1; http://m/get?id=2", identities),
        FeedOddity(
            "no GUID, and a signature in the address",
            rss("<item><guid/><enclosure url=\"http://m/1.mp3?sig=1\"/></item>"), "http://m/1.mp3", identities),
        FeedOddity(
            "no GUID, and a script that sends all files",
            rss(
                "<item><enclosure url=\"http://m/get?id=1\"/></item><item><enclosure url=\"http://m/get?id=2\"/></item>"
            ), "http://m/get?id=1; http://m/get?id=2", identities),
        FeedOddity(
            "white space in the GUID", rss("<item><guid>\n  x y\n</guid><enclosure url=\"http://m/a\"/></item>"), "x y",
            identities),
        FeedOddity(
            "several enclosures",
            rss("<item><enclosure url=\"http://m/a.ogg\"/><enclosure url=\"http://m/a.mp3\"/></item>"),
            "- http://m/a.ogg + http://m/a.mp3"
        ) { "\($0.shown) + \($0.items.first?.alternatives.first?.url.absolute ?? "")" },
    ]

    private static func enclosure(_ attributes: String) -> String { rss("<item><enclosure \(attributes)/></item>") }

    private static func length(_ feed: Feed) -> String { feed.items.first?.enclosure.length.map(String.init) ?? "-" }

    private static let addresses = [
        FeedOddity("a space in the address", enclosure("url=\"http://m/a b.mp3\""), "- http://m/a%20b.mp3"),
        FeedOddity(
            "letters outside of ASCII in the address", enclosure("url=\"http://m/ä.mp3\""), "- http://m/%C3%A4.mp3"),
        FeedOddity(
            """
            line breaks in and around the address
            """, enclosure("url=\"\n http://m/&#10;a.mp3 \n\""), "- http://m/a.mp3"),
        FeedOddity(
            "an address that is escaped twice",
            enclosure(
                """
                url=\"http://m/a?b=1&amp;amp;c=2\"
                """), "- http://m/a?b=1&c=2"),
        FeedOddity("a relative address", enclosure("url=\"../a.mp3\""), "- http://h/a.mp3"),
        FeedOddity("an address without a scheme", enclosure("url=\"//m/a.mp3\""), "- http://m/a.mp3"),
        FeedOddity(
            "an address in an encoding that is not known",
            bytes: latin(declared("gb2312", "t").replacing("m/a", with: "m/\u{E9}\u{E8}.mp3")),
            " / t: its address cannot be used: http://m/%EF%BF%BD%EF%BF%BD.mp3", skipped),
        FeedOddity("a length of zero", enclosure("url=\"http://m/a\" length=\"0\""), "-", length),
        FeedOddity("a length in words", enclosure("url=\"http://m/a\" length=\"12 MB\""), "-", length),
        FeedOddity(
            "a length beyond all files", enclosure("url=\"http://m/a\" length=\"99999999999999999999\""), "-", length),
        FeedOddity(
            "a media type with parameters and in upper case", enclosure("url=\"http://m/a\" type=\"Audio/MPEG; x=y\""),
            "audio/mpeg"
        ) { $0.items.first?.enclosure.type ?? "-" },
    ]

    private static func field(_ xml: String) -> String { rss(item("a", xml)) }

    private static func seconds(_ feed: Feed) -> String { "\(feed.items.first?.published?.components.seconds ?? -1)" }

    private static let fields = [
        FeedOddity("a title that is escaped twice", titled("A &amp;amp;amp; B &amp;lt;3"), "A & B <3 http://m/a"),
        FeedOddity("tags in the title", titled("&lt;b&gt;x&lt;/b&gt;&lt;br/&gt;y"), "x y http://m/a"),
        FeedOddity("CDATA and line breaks in the title", titled("<![CDATA[ Q & A\n\t 1 ]]>"), "Q & A 1 http://m/a"),
        FeedOddity("elements in the title", titled("a <b>c</b>"), "a c http://m/a"),
        FeedOddity("characters that reverse the order of text", titled("a\u{202E}b\u{2066}c"), "abc http://m/a"),
        FeedOddity(
            "an Atom title as XHTML",
            """
            <feed xmlns=\"http://www.w3.org/2005/Atom\"><entry><title type=\"xhtml\"><div \
            xmlns=\"http://www.w3.org/1999/xhtml\">x <i>y</i></div></title><link rel=\"enclosure\" \
            href=\"http://m/a\"/></entry></feed>
            """,
            "x y http://m/a"),
        FeedOddity(
            "the wrong weekday, and a zone by its name", field("<pubDate>Fri, 2 Oct 2002 08:00 EST</pubDate>"),
            "1033563600", seconds),
        FeedOddity(
            "a date that does not exist",
            field("<pubDate>Mon, 31 Feb 2024 00:00:00 GMT</pubDate><dc:date>2024-10-02</dc:date>"), "1727827200",
            seconds),
        FeedOddity("an image with the wrong attribute", field("<itunes:image url=\"http://i/x\"/>"), "http://i/x") {
            $0.items.first?.image?.absolute ?? "-"
        },
        FeedOddity("an image as text", field("<itunes:image>http://i/x</itunes:image>"), "http://i/x") {
            $0.items.first?.image?.absolute ?? "-"
        },
        FeedOddity(
            "words in season and episode",
            field("<itunes:season>Season 2</itunes:season><itunes:episode>S02E05</itunes:episode>"), "2 5"
        ) { "\($0.items.first?.season ?? 0) \($0.items.first?.episode ?? 0)" },
        FeedOddity("a ttl of nothing", rss(item("a"), channel: "<ttl>0</ttl><ttl>soon</ttl>"), "-") {
            $0.lifetime.map { "\($0)" } ?? "-"
        },
        FeedOddity(
            "a feed that has moved to where it is",
            rss(item("a"), channel: "<itunes:new-feed-url>http://h/d/feed.xml</itunes:new-feed-url>"), "-"
        ) { $0.newAddress?.absolute ?? "-" },
        FeedOddity(
            "a feed that follows itself", rss(item("a"), channel: "<atom:link rel=\"next\" href=\"feed.xml\"/>"), "-"
        ) { $0.nextPage?.absolute ?? "-" },
    ]

    private static let roots = [
        FeedOddity(
            "RSS 1.0, with items beside the channel",
            """
            <rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" \
            xmlns=\"http://purl.org/rss/1.0/\" xmlns:enc=\"http://purl.oclc.org/net/rss_2.0/enc#\"><channel>\
            <title>T</title></channel><item><title>t</title><enc:enclosure rdf:resource=\"http://m/a\"/></item>\
            </rdf:RDF>
            """,
            "T t http://m/a"
        ) { "\($0.title ?? "-") \($0.shown)" },
        FeedOddity(
            "a namespace by default on RSS",
            """
            <rss xmlns=\"http://backend.userland.com/rss2\"><channel><item><enclosure url=\"http://m/a\"/>\
            </item></channel></rss>
            """,
            "- http://m/a"),
        FeedOddity(
            "a channel without rss around it", "<channel><item><enclosure url=\"http://m/a\"/></item></channel>",
            "- http://m/a"),
        FeedOddity(
            "Atom 0.3",
            """
            <feed version=\"0.3\" xmlns=\"http://purl.org/atom/ns#\"><entry><issued>\
            2004-01-01T00:00:00Z</issued><link rel=\"enclosure\" href=\"http://m/a\"/></entry></feed>
            """,
            "1072915200", seconds),
        FeedOddity("a feed without items", rss(""), "rss 0") { "\($0.kind.rawValue) \($0.items.count)" },
    ]
}
