import Foundation

/// Writes the feeds of tests.
struct FeedWriter {
    struct Item {
        var guid: String?
        var file: String
        var title: String
        /// Seconds since 1970.
        var date: Double?
    }

    var title = "Talk"
    var items: [Item] = []
    /// Elements of the channel.
    var more = ""
    var host = "https://media.test/"

    /// Episodes by their numbers, newest first: `e3.mp3` with the GUID `g3`, a day apart.
    static func episodes(_ numbers: [Int], title: String = "Talk", more: String = "", prefix: String = "") -> String {
        var writer = FeedWriter(title: title, more: more)
        writer.items = numbers.map {
            Item(
                guid: "\(prefix)g\($0)", file: "\(prefix)e\($0).mp3", title: "Episode \($0)",
                date: 1_690_000_000 + 86_400 * Double($0))
        }
        return writer.text
    }

    var text: String {
        let items = items.map { item in
            """
            <item><title>\(item.title)</title>\(item.guid.map { "<guid>\($0)</guid>" } ?? "")\
            \(item.date.map { "<pubDate>\(Self.date($0))</pubDate>" } ?? "")\
            <enclosure url="\(host)\(item.file)" length="100" type="audio/mpeg"/></item>
            """
        }
        return """
            <?xml version="1.0"?><rss version="2.0" xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd" \
            xmlns:atom="http://www.w3.org/2005/Atom"><channel><title>\(title)</title>\(more)\(items.joined())</channel></rss>
            """
    }

    /// `Tue, 14 Nov 2023 22:13:20 GMT`
    private static func date(_ seconds: Double) -> String {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(identifier: "GMT")
        formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        return formatter.string(from: Date(timeIntervalSince1970: seconds))
    }
}
