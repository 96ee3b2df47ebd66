import CachePolicy
import Foundation
import HTTPModel
import TestSupport
import Testing

/// A feed or list of files and what its origin calls it.
struct ServedFeed: Sendable, CustomTestStringConvertible {
    let name: String
    let type: String?
    /// With MEDIA where the address of the media stands, and SELF for its own.
    let text: String

    var testDescription: String { "\(name) as \(type ?? "nothing")" }

    func text(media: String, at own: String) -> String {
        text.replacing("MEDIA", with: media).replacing("SELF", with: own)
    }

    static let rss = """
        <?xml version="1.0"?>
        <rss version="2.0"><channel><title>P</title><link>http://site.example/</link>
        <item><title>One &amp; two</title><guid>http://site.example/1</guid>
        <enclosure url="MEDIA" length="7" type="audio/mpeg"/></item></channel></rss>

        """
    static let atom = """
        <!-- made by hand --><feed xmlns="http://www.w3.org/2005/Atom"><title>A</title>
        <link rel="self" href="SELF"/><link href="http://site.example/"/>
        <entry><id>1</id><link rel="enclosure" href='MEDIA'/></entry></feed>
        """
    static let rdf = """
        <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"
        xmlns:enc="http://purl.oclc.org/net/rss_2.0/enc#"><channel><title>P</title></channel>
        <item><title>1</title><enc:enclosure rdf:resource="MEDIA"/></item></rdf:RDF>
        """
    static let xspf = """
        <?xml version="1.0"?><playlist version="1" xmlns="http://xspf.org/ns/0/"><trackList>
        <track><location>MEDIA</location></track></trackList></playlist>
        """
    static let pls = "[playlist]\r\nFile1=MEDIA\r\nTitle1=One\r\nNumberOfEntries=1\r\n"

    static let all = [
        ServedFeed(name: "RSS", type: "application/rss+xml; charset=utf-8", text: rss),
        ServedFeed(name: "RSS", type: "text/xml", text: rss),
        ServedFeed(name: "RSS with a mark", type: nil, text: "\u{FEFF}\n" + rss),
        ServedFeed(
            name: "RSS with a type", type: "application/xml", text: "<!DOCTYPE rss SYSTEM \"x\">" + rss.dropFirst(22)),
        ServedFeed(name: "Atom", type: "application/atom+xml", text: atom),
        ServedFeed(name: "Atom", type: "text/plain", text: atom),
        ServedFeed(name: "RSS 1.0", type: "application/rdf+xml", text: rdf),
        ServedFeed(name: "RSS 1.0", type: "text/xml", text: rdf),
        ServedFeed(name: "XSPF", type: "application/xspf+xml", text: xspf),
        ServedFeed(name: "XSPF", type: "application/octet-stream", text: xspf),
        ServedFeed(name: "PLS", type: "audio/x-scpls", text: pls),
        ServedFeed(name: "PLS", type: "text/plain", text: pls),
        ServedFeed(name: "M3U", type: "audio/x-mpegurl", text: "#EXTM3U\n#EXTINF:7,One\nMEDIA\n"),
        ServedFeed(name: "M3U without a header", type: "audio/x-mpegurl", text: "#EXTINF:7,One\nMEDIA\n"),
    ]
}

/// Feeds and lists of files lead players through the proxy.
extension Scenarios {
    @Suite(.serialized) struct S25ServedFeeds {
        private static let media = "http://media.example/a%20b.mp3?x=1"
        private static let path = "/podcast"

        private static func serve(
            _ stage: Stage, _ text: String, at path: String = path, type: String? = "application/rss+xml",
            _ fields: [(String, String)] = [("Cache-Control", "max-age=60")]
        ) {
            stage.origin.serve(path, bytes: Array(text.utf8), contentType: type)
            stage.origin.script(path) { $0.headers = fields }
        }

        /// The proxy's form of an origin's URL.
        private static func proxied(_ stage: Stage, _ url: String) -> String {
            "http://127.0.0.1:\(stage.proxy.port)/" + url.replacing("://", with: "/")
        }

        private static func origin(_ stage: Stage, _ feed: ServedFeed) -> String {
            feed.text(media: media, at: stage.origin.url(path))
        }

        private static func rewritten(_ stage: Stage, _ feed: ServedFeed) -> String {
            feed.text(media: proxied(stage, media), at: proxied(stage, stage.origin.url(path)))
        }

        // MARK: What is rewritten

        @Test(arguments: ServedFeed.all)
        func mediaOfAFeedLeadsThroughTheProxy(feed: ServedFeed) async throws {
            try await scenario { stage in
                Self.serve(stage, Self.origin(stage, feed), type: feed.type)
                for round in 1...2 {
                    let response = try stage.get(Self.path)
                    #expect(response.status == 200 && response.text == Self.rewritten(stage, feed), "\(round)")
                    #expect(response.isHit == (round == 2))
                    #expect(response.headers["Content-Length"] == "\(response.body.count)")
                    #expect(response.headers["Content-Type"] == feed.type)
                }
                #expect(stage.origin.requestCount(Self.path) == 1)
            }
        }

        @Test(arguments: ServedFeed.all.prefix(1) + ServedFeed.all.suffix(4))
        func belowAMountItLeadsBelowIt(feed: ServedFeed) async throws {
            try await mounted { stage in
                let text = feed.text(media: "/vod/1.mp3", at: "")
                stage.origin.serve("/vod/feed", bytes: Array(text.utf8), contentType: feed.type)
                let own = "http://127.0.0.1:\(stage.proxy.port)/tv/1.mp3"
                try #expect(stage.ask("/tv/feed").text == feed.text(media: own, at: ""))
            }
        }

        @Test(arguments: ServedFeed.all)
        func aClientOfTheHTTPProxyGetsTheOriginsOwnText(feed: ServedFeed) async throws {
            try await scenario { stage in
                let text = Self.origin(stage, feed)
                Self.serve(stage, text, type: feed.type)
                for _ in 1...2 {
                    let response = try stage.ask(stage.absolute(Self.path))
                    #expect(response.status == 200 && response.text == text && response.headers["ETag"] == "\"v1\"")
                }
            }
        }

        /// Below an `xml:base` all references become absolute, but not for such a client.
        @Test func aBaseOfItsOwnChangesNothingForAClientOfTheHTTPProxy() async throws {
            try await scenario { stage in
                let text = "<rss xml:base=\"http://h.example/\"><item><enclosure url=\"a.mp3\"/></item></rss>"
                Self.serve(stage, text)
                try #expect(stage.ask(stage.absolute(Self.path)).text == text)
                try #expect(stage.get(Self.path).text.contains(Self.proxied(stage, "http://h.example/a.mp3")))
            }
        }

        @Test func behindARedirectAddressesAreThoseOfWhatHasAnswered() async throws {
            try await scenario { stage in
                Self.serve(stage, "<rss><item><enclosure url=\"a.mp3\"/></item></rss>", at: "/far/feed")
                stage.origin.script(Self.path) { $0.redirect = "/far/feed" }
                let media = Self.proxied(stage, stage.origin.url("/far/a.mp3"))
                try #expect(stage.get(Self.path).text == "<rss><item><enclosure url=\"\(media)\"/></item></rss>")
                let absolute = try stage.ask(stage.absolute(Self.path))
                #expect(absolute.status == 302 && absolute.headers["Location"] == stage.origin.url("/far/feed"))
            }
        }

        @Test func aFeedWithMistakesIsRewrittenWithItsMistakes() async throws {
            try await scenario { stage in
                let text = { (media: String) in
                    "\n<?xml version=\"1.0\"?><rss><channel><title>Rock & Roll <br></title><item><guid>1</guid>"
                        + "<enclosure url=\"\(media)?a=1&b=2\" type=audio/mpeg></item></chanel></rss>"
                }
                Self.serve(stage, text("http://media.example/1.mp3"), type: "text/xml")
                let expected = text(Self.proxied(stage, "http://media.example/1.mp3")).replacing(
                    "&b=2", with: "&amp;b=2")
                try #expect(stage.get(Self.path).text == expected)
            }
        }

        @Test func aFeedInAnotherEncodingStaysInIt() async throws {
            try await scenario { stage in
                let text = { (media: String) in
                    Array("<?xml version=\"1.0\" encoding=\"windows-1251\"?><rss><channel><title>".utf8)
                        + [0xCF, 0xF0, 0xE8, 0xE2, 0xE5, 0xF2]
                        + Array("</title><item><enclosure url=\"\(media)\"/></item></channel></rss>".utf8)
                }
                stage.origin.serve(Self.path, bytes: text(Self.media), contentType: "text/xml; charset=windows-1251")
                try #expect(stage.get(Self.path).body == text(Self.proxied(stage, Self.media)))
            }
        }

        // MARK: Its own representation

        @Test(arguments: [("application/rss+xml", "/podcast"), ("text/xml", "/podcast"), ("text/xml", "/feed.xml")])
        func theTextHasItsOwnLengthValidatorAndRanges(type: String, path: String) async throws {
            try await scenario { stage in
                let feed = ServedFeed(name: "", type: type, text: ServedFeed.rss)
                Self.serve(stage, Self.origin(stage, feed), at: path, type: type)
                // Nothing is cached: the head is that of what a GET would get.
                let head = try stage.get(path, method: "HEAD"), whole = try stage.get(path)
                let tag = try #require(whole.headers["ETag"])
                #expect(whole.text == Self.rewritten(stage, feed) && tag != "\"v1\"")
                #expect(head.headers["ETag"] == tag && head.headers["Content-Length"] == "\(whole.body.count)")
                #expect(whole.headers["Last-Modified"] == nil)

                let part = try stage.get(path, range: "bytes=10-19", headers: [("If-Range", tag)])
                #expect(part.status == 206 && part.body == Array(whole.body[10..<20]))
                #expect(part.headers["Content-Range"] == "bytes 10-19/\(whole.body.count)")
                try #expect(stage.get(path, range: "bytes=10-19", headers: [("If-Range", "\"v1\"")]).status == 200)
                let same = try stage.get(path, headers: [("If-None-Match", tag)])
                #expect(same.status == 304 && same.headers["ETag"] == tag && same.body.isEmpty)
            }
        }

        /// Nothing was cached before.
        @Test(arguments: ["application/rss+xml", "text/xml"])
        func aPartOfAFeedIsOneOfItsText(type: String) async throws {
            try await scenario { stage in
                let feed = ServedFeed(name: "", type: type, text: ServedFeed.rss)
                Self.serve(stage, Self.origin(stage, feed), type: type)
                let whole = Array(Self.rewritten(stage, feed).utf8)
                let part = try stage.get(Self.path, range: "bytes=200-229")
                #expect(part.status == 206 && part.body == Array(whole[200..<230]))
            }
        }

        /// File systems in memory cannot read without waiting.
        @Test(arguments: ["/dev/shm", nil])
        func aFeedIsOneInItsHeadAndItsParts(directory: String?) async throws {
            try await scenario {
                $0.directory = directory
            } _: { stage in
                for (number, feed) in ServedFeed.all.enumerated() {
                    let path = "/\(number)"
                    Self.serve(
                        stage, feed.text(media: Self.media, at: stage.origin.url(path)), at: path, type: feed.type)
                    for isOpenedAgain in [false, true] {
                        if isOpenedAgain { try stage.restart() } else { _ = try stage.get(path) }
                        let head = try stage.get(path, method: "HEAD")
                        let part = try stage.get(path, range: "bytes=20-39")
                        let whole = try stage.get(path)
                        #expect(whole.text.contains(Self.proxied(stage, Self.media)))
                        #expect(part.body == Array(whole.body[20..<40]), "\(feed) \(isOpenedAgain)")
                        for response in [head, part] { #expect(response.headers["ETag"] == whole.headers["ETag"]) }
                    }
                    #expect(stage.origin.requestCount(path) == 1)
                }
            }
        }

        @Test func whoHasItAlreadyIsToldSo() async throws {
            try await scenario { stage in
                let feed = ServedFeed.all[1]
                Self.serve(stage, Self.origin(stage, feed), type: feed.type)
                let tag = try #require(try stage.get(Self.path).headers["ETag"])
                try #expect(stage.control("DELETE", "/resources?" + stage.parameter(Self.path)).status == 200)
                try #expect(stage.get(Self.path, headers: [("If-None-Match", tag)]).status == 304)
            }
        }

        @Test func whatItsOriginEncodesIsRead() async throws {
            try await scenario { stage in
                for (path, type) in [("/a", "application/rss+xml"), ("/b", "text/xml")] {
                    let plain = Self.origin(stage, ServedFeed.all[0])
                    stage.origin.serve(path, bytes: Coded.gzip(Array(plain.utf8)), contentType: type)
                    stage.origin.script(path) {
                        $0.headers = [("Content-Encoding", "gzip"), ("Cache-Control", "max-age=60")]
                    }
                    for _ in 1...2 {
                        let response = try stage.get(path)
                        #expect(response.text == Self.rewritten(stage, ServedFeed.all[0]))
                        #expect(response.headers["Content-Encoding"] == nil)
                    }
                    #expect(stage.origin.requestCount(path) == 1)
                }
            }
        }

        @Test func whatMayNotBeStoredIsRewrittenAllTheSame() async throws {
            try await scenario { stage in
                for feed in [ServedFeed.all[0], ServedFeed.all[1]] {
                    Self.serve(stage, Self.origin(stage, feed), type: feed.type, [("Cache-Control", "no-store")])
                    try #expect(stage.get(Self.path).text == Self.rewritten(stage, feed))
                }
            }
        }

        // MARK: Freshness

        /// Where the origin states no lifetime, none is guessed.
        @Test(arguments: ["application/rss+xml", "text/plain"])
        func eachRequestForAFeedWithoutALifetimeValidatesIt(type: String) async throws {
            try await scenario { stage in
                let feed = ServedFeed(name: "", type: type, text: ServedFeed.rss)
                Self.serve(stage, Self.origin(stage, feed), type: type, [])
                stage.origin.script(Self.path) { $0.lastModified = "Sun, 06 Nov 1994 08:49:37 GMT" }
                for count in 1...3 {
                    try #expect(stage.get(Self.path).text == Self.rewritten(stage, feed))
                    #expect(stage.origin.requestCount(Self.path) == count)
                }
                let news = feed.text.replacing("<title>P<", with: "<title>Q<")
                Self.serve(stage, news.replacing("MEDIA", with: Self.media), type: type, [])
                stage.origin.script(Self.path) { $0.etag = "\"v2\"" }
                try #expect(stage.get(Self.path).text.contains("<title>Q<"))
            }
        }

        // MARK: What is not rewritten

        @Test(
            arguments: [
                ("text/xml", "<?xml version=\"1.0\"?><catalog><enclosure url=\"http://m.example/1.mp3\"/></catalog>"),
                ("application/xml", "<feedback><url>http://m.example/</url></feedback>"),
                ("text/xml", "<feed><link rel=\"enclosure\" href=\"http://m.example/1.mp3\"/></feed>"),
                ("text/xml", "<playlist><location>http://m.example/1.mp3</location></playlist>"),
                (
                    "application/rdf+xml",
                    "<rdf:RDF xmlns:f=\"http://xmlns.com/foaf/0.1/\"><f:img>http://m.example/</f:img></rdf:RDF>"
                ),
                ("text/html", "<rss><item><enclosure url=\"http://m.example/1.mp3\"/></item></rss>"),
                ("application/rss+xml", "<!doctype html><html><img src=\"http://m.example/1.png\"></html>"),
                ("application/rss+xml", "<rss><channel><item><enclosure url=\"http://m.example/1"),
                ("application/json", "[\"http://m.example/1.mp3\"]"), ("text/plain", "http://m.example/1.mp3\n"),
                ("text/plain", "[playlists]\nFile1=http://m.example/1.mp3\n"),
                ("audio/x-mpegurl", "http://m.example/1.mp3\n\u{1}\u{2}"),
                ("audio/x-mpegurl", "{\"url\": \"http://m.example/\"}"),
                ("text/xml", ""), ("text/xml", "<"), ("text/xml", "<!-- never ends <rss>"),
                (nil, "<?xml version=\"1.0\"?>"),
            ] as [(String?, String)])
        func anythingElseGoesOutAsItCame(type: String?, text: String) async throws {
            try await scenario { stage in
                for (path, control) in [("/a", "max-age=60"), ("/b", "no-store")] {
                    Self.serve(stage, text, at: path, type: type, [("Cache-Control", control)])
                    for _ in 1...2 {
                        let response = try stage.get(path)
                        #expect(response.status == 200 && response.text == text && response.headers["ETag"] == "\"v1\"")
                    }
                    if text.utf8.count > 20 {
                        try #expect(stage.get(path, range: "bytes=5-9").body == Array(Array(text.utf8)[5..<10]))
                    }
                    try #expect(stage.get(path, method: "HEAD").headers["Content-Length"] == "\(text.utf8.count)")
                }
            }
        }

        @Test func aFeedInUTF16GoesOutAsItCame() async throws {
            try await scenario { stage in
                let text = "\u{FEFF}" + Self.origin(stage, ServedFeed.all[0])
                let bytes = text.utf16.flatMap { [UInt8(truncatingIfNeeded: $0 >> 8), UInt8(truncatingIfNeeded: $0)] }
                stage.origin.serve(Self.path, bytes: bytes, contentType: "application/rss+xml")
                for _ in 1...2 { try #expect(stage.get(Self.path).body == bytes) }
            }
        }

        /// With a length and without one, stored and not.
        @Test(arguments: ["max-age=60", "no-store"], [false, true])
        func aFeedLongerThanAnyGoesOutAsItCame(control: String, chunked: Bool) async throws {
            try await scenario { stage in
                let item = "<item><enclosure url=\"http://m.example/\(String(repeating: "x", count: 1000))\"/></item>"
                let bytes = Array("<rss><channel>\(String(repeating: item, count: 33_000))".utf8)
                stage.origin.serve(Self.path, bytes: bytes, contentType: "application/rss+xml")
                stage.origin.script(Self.path) {
                    ($0.headers, $0.chunkedEncoding) = ([("Cache-Control", control)], chunked)
                }
                for _ in 1...2 { try #expect(stage.get(Self.path).body == bytes) }
            }
        }

        /// It is fresh for as long as its origin says, although its type is that of a feed.
        @Test func aFeedLongerThanAnyHasTheLifetimeThatItStates() async throws {
            try await scenario { stage in
                let feed = Media(seed: 25, size: 40_000_000)
                stage.origin.serve(Self.path, feed, contentType: "application/rss+xml")
                stage.origin.script(Self.path) { $0.headers = [("Cache-Control", "max-age=60")] }
                expectWhole(try stage.get(Self.path), feed)
                try stage.catchUp()
                let sent = stage.origin.bytesSent(Self.path)
                stage.wait(seconds: 30)
                let again = try stage.get(Self.path)
                expectWhole(again, feed)
                #expect(again.isHit && stage.origin.bytesSent(Self.path) == sent)
            }
        }

        /// Names of feeds are those of other XML, too.
        @Test func ofALongXMLFileOnlyWhatIsRequestedIsFetched() async throws {
            try await scenario { stage in
                let dump = Media(seed: 26, size: 40_000_000)
                stage.origin.serve("/dump.xml", dump, contentType: "application/xml")
                let head = try stage.get("/dump.xml", method: "HEAD")
                #expect(head.status == 200 && head.headers["Content-Length"] == "40000000")
                #expect(stage.origin.requests("/dump.xml").map(\.method) == ["HEAD"])
                try #expect(stage.get("/dump.xml", range: "bytes=39000000-39000009").status == 206)
                try stage.catchUp()
                let requests = stage.origin.requests("/dump.xml")
                #expect(requests.count == 2 && requests.last?.headers["Range"]?.hasPrefix("bytes=38") == true)
            }
        }

        /// A hotel's page does not take the place of a feed, unless the origin forbids serving that stale.
        @Test(arguments: ["max-age=0", "no-cache"])
        func aPageInPlaceOfAFeedIsNotItsNextVersion(control: String) async throws {
            try await scenario { stage in
                let feed = ServedFeed.all[0], fields = [("Cache-Control", control)]
                Self.serve(stage, Self.origin(stage, feed), fields)
                try #expect(stage.get(Self.path).text == Self.rewritten(stage, feed))
                let page = "<html><img src=\"http://m.example/1.png\"></html>"
                Self.serve(stage, page, type: "text/html", fields)
                stage.origin.script(Self.path) { $0.etag = "\"v2\"" }
                let answer = try stage.get(Self.path)
                if control == "max-age=0" {
                    #expect(answer.text == Self.rewritten(stage, feed) && answer.cacheStatus.contains("fwd=stale"))
                } else {
                    #expect(answer.text != Self.rewritten(stage, feed))
                }
                Self.serve(stage, Self.origin(stage, feed), fields)
                let again = try stage.get(Self.path)
                #expect(again.text == Self.rewritten(stage, feed))
                #expect(again.cacheStatus.contains("fwd-status=304"), "\(again.cacheStatus)")
            }
        }
    }
}
