import TestSupport

/// Writes feeds whose episodes an origin serves.
enum FeedText {
    /// Episodes by their numbers, a day apart: `/e3.mp3`.
    static func rss(_ numbers: [Int], at origin: ScriptedOrigin, title: String = "Talk") -> [UInt8] {
        let items = numbers.map {
            """
            <item><title>Episode \($0)</title><guid>g\($0)</guid><pubDate>\($0) Jan 2024 10:00:00 GMT</pubDate>\
            <enclosure url="\(origin.url("/e\($0).mp3"))" length="100" type="audio/mpeg"/></item>
            """
        }
        let text =
            "<?xml version=\"1.0\"?><rss version=\"2.0\"><channel><title>\(title)</title>\(items.joined())</channel></rss>"
        return Array(text.utf8)
    }
}

extension ScriptedOrigin {
    /// Serves a feed at `/feed.xml`, and its episodes of 100,000 bytes.
    func serveFeed(_ numbers: [Int], etag: String? = nil) {
        serve("/feed.xml", bytes: FeedText.rss(numbers, at: self), etag: etag, contentType: "application/rss+xml")
        for number in numbers {
            serve("/e\(number).mp3", Media(seed: UInt64(number), size: 100_000), contentType: "audio/mpeg")
        }
    }
}
