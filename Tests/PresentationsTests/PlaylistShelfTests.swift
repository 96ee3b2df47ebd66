import CachePolicy
import Playlists
import Testing

@testable import Presentations

@Suite struct PlaylistShelfTests {
    private let shelf = PlaylistShelf()

    private func url(_ text: String) throws -> OriginURL { try OriginURL(url: text) }

    private func document(_ address: String, _ lines: String...) throws -> PlaylistDocument {
        let url = try url(address)
        return try PlaylistDocument(
            Array((["#EXTM3U"] + lines).joined(separator: "\n").utf8), key: url.cacheKey, url: url, base: url)
    }

    private func film(_ address: String) throws -> PlaylistDocument {
        try document(
            address, "#EXT-X-TARGETDURATION:2", "#EXT-X-MAP:URI=\"init.mp4\"", "#EXT-X-KEY:METHOD=AES-128,URI=\"key\"",
            "#EXTINF:2,", "1.ts", "#EXTINF:2,", "https://cdn.example/2.ts", "#EXT-X-ENDLIST")
    }

    private func membership(_ address: String) throws -> Membership? {
        shelf.membership(of: try url(address), at: nil) { .zero }
    }

    @Test func segmentsAreFoundWhereverTheyAre() throws {
        shelf.put(try film("https://a.example/v/film.m3u8"), at: .zero)
        let second = try #require(try membership("https://cdn.example/2.ts"))
        #expect(second.place?.position == 1)
        #expect(second.place?.segments.count == 2)
        #expect(second.whole.text == "https://a.example/v/film.m3u8")
        #expect(try membership("https://a.example/v/1.ts")?.place?.segment.number == 0)
        #expect(try membership("https://a.example/v/3.ts") == nil)
        #expect(try membership("https://b.example/v/1.ts") == nil)
    }

    /// Of very many hosts, each is looked up in the document.
    @Test func segmentsOnManyHostsAreFound() throws {
        let lines = (0..<100).map { "#EXTINF:2,\nhttps://h\($0).example/\($0).ts" }
        shelf.put(
            try document(
                "https://a.example/v/film.m3u8", (["#EXT-X-TARGETDURATION:2"] + lines).joined(separator: "\n")),
            at: .zero)
        #expect(try membership("https://h77.example/77.ts")?.place?.position == 77)
        #expect(try membership("https://h77.example/78.ts") == nil)
        var hosts = NamedHosts()
        for number in 0..<100 { hosts.insert("h\(number)") }
        #expect(hosts.names == [NamedHosts.any])
    }

    /// Boxes of a manifest with many files would take any memory.
    @Test func indexesStayWithinTheLimit() throws {
        let text =
            "<MPD><Period><AdaptationSet>"
            + (0..<60).map {
                "<Representation id='\($0)'><BaseURL>f\($0)</BaseURL><SegmentBase indexRange='0-99'/></Representation>"
            }.joined() + "</AdaptationSet></Period></MPD>"
        let url = try url("https://a.example/film.mpd")
        let document = try PlaylistDocument(Array(text.utf8), key: url.cacheKey, url: url, base: url)
        shelf.put(document, at: .zero)
        let bytes = { (value: Int) in (0..<4).reversed().map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) } }
        let head = Array("sidx".utf8) + bytes(0) + bytes(1) + bytes(1000) + bytes(0) + bytes(0) + bytes(30_000)
        let entries = (0..<30_000).flatMap { _ in bytes(100) + bytes(2000) + bytes(0) }
        let box = try SegmentIndexBox(bytes(head.count + entries.count + 4) + head + entries, at: 0)
        for set in 0..<60 {
            let id = MPD.RepresentationID(period: 0, adaptationSet: 0, representation: set)
            shelf.learn(box, of: RenditionID(playlist: document.key, representation: id))
        }
        #expect(shelf.weight < 48 << 20 && shelf.document(document.key) === document)
    }

    @Test func keysAndInitializationSectionsBelongToIt() throws {
        shelf.put(try film("https://a.example/v/film.m3u8"), at: .zero)
        for name in ["init.mp4", "key"] {
            let found = try #require(try membership("https://a.example/v/\(name)"))
            #expect(found.place == nil)
        }
    }

    @Test(arguments: [true, false])
    func mediaPlaylistsBelongToTheMultivariantOneWhicheverComesFirst(isFirst: Bool) throws {
        let main = try document(
            "https://a.example/v/main.m3u8", "#EXT-X-STREAM-INF:BANDWIDTH=1", "film.m3u8?token=1")
        let film = try film("https://a.example/v/film.m3u8?token=1&_HLS_msn=4")
        let whole = main.key
        if isFirst { shelf.put(main, at: .zero) }
        #expect(shelf.put(film, at: .zero).whole == (isFirst ? whole : film.key))
        if !isFirst { #expect(shelf.put(main, at: .zero).joined == [film.key]) }
        #expect(try membership("https://a.example/v/1.ts")?.whole == whole)
        #expect(try membership("https://a.example/v/film.m3u8?token=1&_HLS_msn=5")?.whole == whole)
        #expect(shelf.parent(of: film.url) === main)
    }

    /// What is read of a media playlist contains the values that it imports.
    @Test func newValuesOfVariablesTakeWhatImportsThemOffTheShelf() throws {
        func main(_ token: String) throws -> PlaylistDocument {
            try document(
                "https://a.example/v/main.m3u8", "#EXT-X-DEFINE:NAME=\"tok\",VALUE=\"\(token)\"",
                "#EXT-X-DEFINE:NAME=\"other\",VALUE=\"\(token)\"", "#EXT-X-STREAM-INF:BANDWIDTH=1", "film.m3u8",
                "#EXT-X-STREAM-INF:BANDWIDTH=2", "plain.m3u8")
        }
        let text = "#EXTM3U\n#EXT-X-DEFINE:IMPORT=\"tok\"\n#EXTINF:2,\n{$tok}.ts\n#EXT-X-ENDLIST\n"
        let plain = try film("https://a.example/v/plain.m3u8")
        shelf.put(plain, at: .zero)
        shelf.put(try main("abc"), at: .zero)
        let film = try PlaylistDocument(
            text, at: "https://a.example/v/film.m3u8", importing: ["tok": "abc", "other": "abc"])
        shelf.put(film, at: .zero)
        shelf.put(try main("abc"), at: .zero)
        #expect(shelf.document(film.key) === film)
        shelf.put(try main("def"), at: .zero)
        #expect(shelf.document(film.key) == nil && shelf.document(plain.key) === plain)
        #expect(try membership("https://a.example/v/abc.ts") == nil)
    }

    /// By which a listing and a player's place in it are joined.
    @Test func renditionsOfOneNameAreToldApart() throws {
        let main = try document(
            "https://a.example/v/main.m3u8", "#EXT-X-STREAM-INF:BANDWIDTH=800000,AUDIO=\"a\"", "film.m3u8",
            "#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"one\",LANGUAGE=\"en\",URI=\"one.m3u8\"",
            "#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"two\",LANGUAGE=\"en\",URI=\"two.m3u8\"")
        shelf.put(main, at: .zero)
        for (name, shown) in [("film", "800 kbit/s"), ("one", "audio en"), ("two", "audio en (2)")] {
            let media = try film("https://a.example/v/\(name).m3u8")
            shelf.put(media, at: .zero)
            #expect(shelf.name(of: RenditionID(playlist: media.key))?.hasSuffix(shown) == true)
        }
        #expect(shelf.name(of: RenditionID(playlist: try film("https://a.example/v/three.m3u8").key)) == nil)
    }

    @Test func theNextVersionTakesThePlaceOfTheOneBefore() throws {
        let address = "https://a.example/live.m3u8"
        let lines = { (first: Int) in
            ["#EXT-X-TARGETDURATION:2", "#EXT-X-MEDIA-SEQUENCE:\(first)"]
                + (first..<first + 3).flatMap { ["#EXTINF:2,", "\($0).ts"] }
        }
        for first in [4, 5] {
            let url = try url(address)
            let text = (["#EXTM3U"] + lines(first)).joined(separator: "\n")
            shelf.put(
                try PlaylistDocument(Array(text.utf8), key: url.cacheKey, url: url, base: url), at: .zero)
        }
        #expect(try membership("https://a.example/4.ts") == nil)
        let last = try #require(try membership("https://a.example/7.ts"))
        let place = try #require(last.place)
        #expect(place.segments.position(number: 7) == 2)
        #expect(place.segments.position(number: 4) == nil)
        #expect(place.segments.position(number: 8) == nil)
        #expect(shelf.segments(of: place.rendition, at: .zero)?.count == 3)
    }

    @Test func noMoreAreKeptThanItsLimits() throws {
        for number in 0..<70 { shelf.put(try film("https://host\(number).example/film.m3u8"), at: .zero) }
        #expect(try membership("https://host0.example/1.ts") == nil)
        #expect(try membership("https://host69.example/1.ts") != nil)
    }
}
