import CachePolicy
import Testing

@testable import Playlists

@Suite struct PlaybackOrderTests {
    private static func item(_ name: String, _ fields: String = "") -> String { FeedSamples.item(name, fields) }

    private static func date(_ day: Int) -> String {
        "<pubDate>\(day < 10 ? "0" : "")\(day) Oct 2024 10:00:00 GMT</pubDate>"
    }

    /// The items in the order of playback, from the first to the last.
    private static func order(_ text: String, from first: String) throws -> String {
        let order = PlaybackOrder(of: try Feed(text))
        var (names, url) = ([first], try OriginURL(url: "http://m/\(first)"))
        while case .item(let next) = order.next(after: url), names.count < 20 {
            names.append(String(next.pathAndQuery.dropFirst()))
            url = next
        }
        return names.joined(separator: " ")
    }

    private static let podcasts: [(items: [String], order: String)] = [
        // Newest first, as podcasts are.
        ([item("3", date(3)), item("2", date(2)), item("1", date(1))], "1 2 3"),
        // The dates decide, and not the order of the text.
        ([item("1", date(1)), item("3", date(3)), item("2", date(2))], "1 2 3"),
        // Of one day, the numbers do.
        (
            [item("1", date(1) + number(1, 1)), item("3", date(1) + number(2, 1)), item("2", date(1) + number(1, 2))],
            "1 2 3"
        ),
        // Without either, the text begins with the newest.
        ([item("3"), item("2"), item("1")], "1 2 3"), ([item("1", number(1, 1)), item("2", number(1, 2))], "1 2"),
        // One without a date is as old as those around it.
        ([item("3", date(3)), item("2"), item("1", date(1))], "1 2 3"), ([item("2"), item("1", date(1))], "1 2"),
        ([item("1")], "1"),
    ]

    private static func number(_ season: Int, _ episode: Int) -> String {
        "<itunes:season>\(season)</itunes:season><itunes:episode>\(episode)</itunes:episode>"
    }

    @Test(arguments: podcasts)
    func podcastsArePlayedFromTheOldestToTheNewest(items: [String], expected: String) throws {
        #expect(try Self.order(FeedSamples.rss(items.joined()), from: "1") == expected)
    }

    @Test(arguments: [
        "#EXTM3U\nhttp://m/1\nhttp://m/2\nhttp://m/3\n",
        "[playlist]\nFile3=http://m/3\nFile1=http://m/1\nFile2=http://m/2\n",
        "<playlist xmlns=\"http://xspf.org/ns/0/\"><trackList><track><location>http://m/1</location></track>"
            + "<track><location>http://m/2</location></track><track><location>http://m/3</location></track></trackList></playlist>",
    ])
    func listsArePlayedAsTheyStand(text: String) throws { #expect(try Self.order(text, from: "1") == "1 2 3") }

    @Test func theNextItemHasTheFormThatWasPlayed() throws {
        let forms = { (name: String) in
            Self.item(
                name + ".mp3",
                "<podcast:alternateEnclosure type=\"audio/opus\"><podcast:source uri=\"http://m/\(name).opus\"/></podcast:alternateEnclosure>"
            )
        }
        let order = PlaybackOrder(of: try Feed(FeedSamples.rss(Self.item("3.mp3") + forms("2") + forms("1"))))
        #expect(order.next(after: OriginURL("http://m/1.mp3")) == .item(OriginURL("http://m/2.mp3")))
        #expect(order.next(after: OriginURL("http://m/1.opus")) == .item(OriginURL("http://m/2.opus")))
        // The next one has none of that form.
        #expect(order.next(after: OriginURL("http://m/2.opus")) == .item(OriginURL("http://m/3.mp3")))
    }

    @Test func theEndAndAForeignURLAreToldApart() throws {
        let order = PlaybackOrder(ofList: [OriginURL("http://m/a%2Db"), OriginURL("http://m/c")])
        // As a player may write it.
        #expect(order.next(after: OriginURL("http://m/a-b")) == .item(OriginURL("http://m/c")))
        #expect(order.next(after: OriginURL("http://m/c")) == .nothing && order.contains(OriginURL("http://m/c")))
        #expect(order.next(after: OriginURL("http://m/d")) == .unknown && !order.contains(OriginURL("http://m/d")))
        #expect(PlaybackOrder(ofList: []).forms.isEmpty)
    }

    @Test func aFileThatIsListedTwiceIsNotItsOwnNext() {
        let (a, b) = (OriginURL("http://m/a"), OriginURL("http://m/b"))
        #expect(PlaybackOrder(ofList: [a, a, b, a]).next(after: a) == .item(b))
        #expect(PlaybackOrder(ofList: [a, a]).next(after: a) == .nothing)
    }
}
