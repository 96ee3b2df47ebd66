import CachePolicy
import Testing

@Suite struct FeedRecognitionTests {
    @Test(
        arguments: [
            ("<rss version=\"2.0\">", nil), ("<?xml version=\"1.0\"?>\n<!-- by hand -->\n<RSS>", "text/xml"),
            ("\u{FEFF}\u{FEFF} \n<rss>", "text/plain"),
            ("<!DOCTYPE rss PUBLIC \"-//Netscape//DTD RSS 0.91//EN\" \"x\"><rss>", "text/xml"),
            ("<!DOCTYPE rss [<!ENTITY nbsp \"&#160;\">]><rss>", "text/xml"),
            ("<feed xmlns=\"http://www.w3.org/2005/Atom\">", "application/xml"),
            ("<a:feed xmlns:a='http://purl.org/atom/ns#'>", nil),
            (
                "<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" xmlns=\"http://purl.org/rss/1.0/\">",
                "text/xml"
            ),
            ("<rdf:RDF xmlns=\"http://my.netscape.com/rdf/simple/0.9/\">", "text/xml"),
            ("<playlist version=\"1\" xmlns=\"http://xspf.org/ns/0/\">", "text/xml"),
            ("[Playlist]\nFile1=x", "text/plain"), ("[playlist]", nil),
            ("#EXTINF:5,One\nhttp://h/1.mp3", "audio/x-mpegurl"), ("1.mp3\r\n2.mp3", "AUDIO/MPEGURL; charset=utf-8"),
            ("Warning: x\n<rss>", "application/rss+xml"), ("", "application/atom+xml"), ("x", "audio/x-scpls"),
        ] as [(String, String?)])
    func aFeedIsRecognized(text: String, type: String?) {
        #expect(FeedRecognition.isFeed(Array(text.utf8), type: type) && Listing.begins(Array(text.utf8), type: type))
    }

    @Test(
        arguments: [
            ("<html>", "application/xml"), ("<rss>", "text/html"), ("<rss>", "application/xhtml+xml; charset=utf-8"),
            ("<rssx>", "text/xml"), ("<feedback>", "text/xml"), ("<feed>", "text/xml"), ("<playlist>", "text/xml"),
            ("<rdf:RDF xmlns:foaf=\"http://xmlns.com/foaf/0.1/\">", "text/xml"), ("<!-- <rss> ", "text/xml"),
            ("<?xml version=\"1.0\"", "text/xml"), ("<", "text/xml"), ("", nil), ("", "audio/x-mpegurl"),
            ("[playlists]", nil), ("[1, 2]", "application/json"), ("http://h/1.mp3", "text/plain"),
            ("\u{1}\u{2}\u{3}", "audio/x-mpegurl"), ("<error/>", "audio/x-mpegurl"), ("{}", "audio/x-mpegurl"),
        ] as [(String, String?)])
    func anythingElseIsNot(text: String, type: String?) {
        #expect(!FeedRecognition.isFeed(Array(text.utf8), type: type))
    }

    /// Only the first bytes are examined.
    @Test func aRootBehindALongCommentIsNotFound() {
        let comment = "<!--" + String(repeating: "x", count: 5000) + "-->"
        #expect(!FeedRecognition.isFeed(Array((comment + "<rss>").utf8), type: "text/xml"))
    }

    @Test func typesSayWhatTheyCan() {
        for type in [
            "application/rss+xml", "Application/Atom+XML; charset=utf-8", "audio/x-scpls", "application/xspf+xml",
        ] {
            #expect(Listing.isCertain(type: type) && FeedRecognition.mayBe(type: type) && Listing.isListing(type: type))
        }
        for type in ["text/xml", "application/xml"] {
            #expect(!Listing.isCertain(type: type) && FeedRecognition.mayBe(type: type))
        }
        for type in ["text/html", "application/json", "video/mp4", ""] {
            #expect(!Listing.isCertain(type: type) && !FeedRecognition.mayBe(type: type))
        }
        #expect(Listing.isCertain(type: "audio/x-mpegurl") && !FeedRecognition.isCertain(type: "audio/x-mpegurl"))
    }
}
