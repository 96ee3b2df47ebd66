import CachePolicy
import HTTPModel
import Testing

@testable import Upstream

private let now: Int64 = 1_800_000_000

/// What programs print, and what it means.
@Suite struct ResolverOutputTests {
    private func read(_ text: String) throws(ResolverOutput.Problem) -> MediaLocation {
        try ResolverOutput.read(Array(text.utf8), at: now)
    }

    @Test(
        arguments: [
            "https://cdn.example/a.mp4", "https://cdn.example/a.mp4\n", "\n  https://cdn.example/a.mp4 \r\n\n",
            #"{"url": "https://cdn.example/a.mp4"}"#, "{\n  \"url\": \"https://cdn.example/a.mp4\"\n}\n",
            "{\"url\": \"https://cdn.example/a.mp4\", \"formats\": [{\"url\": \"https://cdn.example/b\"}]}\n{\"url\": \"https://x.example/\"}\n",
            #"{"url": "https://cdn.example/a.mp4", "headers": null, "expires": null, "key": 5, "title": []}"#,
        ]) func urlIsReadFromALineOrFromJSON(text: String) throws
    {
        #expect(try read(text) == MediaLocation(url: try OriginURL(url: "https://cdn.example/a.mp4")))
    }

    @Test(
        arguments: [
            ("", "printed nothing; let it print a URL or JSON"),
            ("\n \n", "printed nothing; let it print a URL or JSON"),
            ("NA\n", "printed no URL of http or https"), ("ftp://h/a", "printed no URL of http or https"),
            ("--exec=sh", "printed no URL of http or https"), ("http://", "printed no URL of http or https"),
            ("https://h/a\nhttps://h/b", "printed 2 lines instead of one with a URL"),
            ("{\"url\": \"https://h/a\"", "printed JSON that is malformed"), ("{}", "printed JSON without a url"),
            ("{\"url\": [\"https://h/a\"]}", "printed JSON without a url"),
            ("{\"url\": \"javascript:1\"}", "printed no URL of http or https"),
            ("{\"requested_formats\": [{}, {}]}", "chose two files"),
            ("{\"_type\": \"playlist\"}", "printed a list of media"),
            ("{\"entries\": []}", "printed a list of media"),
            ("https://h/" + String(repeating: "a", count: 20_000), "printed a URL that is too long"),
        ]) func badOutputIsRefusedInOneLine(text: String, reason: String)
    {
        let problem = #expect(throws: ResolverOutput.Problem.self) { try read(text) }
        #expect(
            problem?.reason.hasPrefix(reason) == true && problem?.reason.contains("\n") == false, "\(problem as Any)")
    }

    @Test func textThatIsNotUTF8IsRefused() {
        #expect(throws: ResolverOutput.Problem.self) { try ResolverOutput.read([0x68, 0xFF, 0xFE], at: now) }
    }

    @Test func deepJSONIsRefused() {
        let deep = "{\"url\": " + String(repeating: "[", count: 100_000) + String(repeating: "]", count: 100_000) + "}"
        #expect(throws: ResolverOutput.Problem.self) { try read(deep) }
    }

    /// A single character may have any number of combining marks.
    @Test func titleIsBoundedInScalars() throws {
        let title = "a" + String(repeating: "\u{0301}", count: 20_000)
        let name = try read("{\"url\": \"https://h/a\", \"title\": \"\(title)\"}").fileName
        #expect(name?.unicodeScalars.count == 120)
    }

    // MARK: Fields

    @Test func fieldsThatTheProxySetsAndMalformedOnesAreLeftOut() throws {
        let location = try read(
            #"""
            {"url": "https://h/a", "http_headers": {"User-Agent": "x", "Referer": "https://h/", "Host": "evil", "Range": "bytes=0-",
             "Connection": "close", "X-Split": "a\r\nEvil: b", "Bad Name": "a", "Empty": "", "Number": 5, "Accept-Encoding": "gzip"}}
            """#)
        #expect(
            location.headers
                == HeaderFields([.init(name: "Referer", value: "https://h/"), .init(name: "User-Agent", value: "x")]))
        #expect(location.confined == [])
    }

    @Test func ownNameOfTheFieldsWins() throws {
        let location = try read(#"{"url": "https://h/a", "headers": {"X-Own": "1"}, "http_headers": {"X-Other": "2"}}"#)
        #expect(location.headers == HeaderFields([.init(name: "X-Own", value: "1")]))
        #expect(location.confined == ["X-Own"])
    }

    @Test func tooManyFieldsAreRefused() {
        let many = (0..<65).map { "\"X-\($0)\": \"a\"" }.joined(separator: ", ")
        let long = "\"X-Long\": \"\(String(repeating: "a", count: 16_384))\""
        // So many that comparing each with all others would take hours.
        let flood = (0..<200_000).map { "\"h\($0)\": \"a\"" }.joined(separator: ", ")
        for fields in [many, long, flood] {
            #expect(throws: ResolverOutput.Problem(reason: "printed too many header fields")) {
                try read("{\"url\": \"https://h/a\", \"headers\": {\(fields)}}")
            }
        }
    }

    @Test func fieldsOfAnotherOriginAreThoseThatSayNothing() throws {
        let location = try read(#"{"url": "https://h/a", "headers": {"X-Right": "1", "User-Agent": "x"}}"#)
        for (url, names) in [
            ("https://h/a", ["A", "User-Agent", "X-Right"]), ("https://h/b", ["A", "User-Agent", "X-Right"]),
            ("https://other/a", ["A", "User-Agent"]), ("http://h/a", ["A", "User-Agent"]),
        ] {
            var fields = HeaderFields([.init(name: "A", value: "b"), .init(name: "User-Agent", value: "player")])
            location.addHeaders(to: &fields, for: url)
            #expect(fields.lines.map(\.name) == names && fields["User-Agent"] == "x", "\(url)")
        }
    }

    // MARK: Expiry

    @Test(
        arguments: [
            (#"{"url": "https://h/a", "expires": 1800000060}"#, now + 60),
            (#"{"url": "https://h/a", "expires": "1800000060"}"#, now + 60),
            (#"{"url": "https://h/a", "expires": 1800000060.9}"#, now + 60),
            (#"{"url": "https://h/a", "expires_in": 90}"#, now + 90),
            (#"{"url": "https://h/a", "expires": 1e300}"#, Int64.max),
            (#"{"url": "https://h/a", "expires_in": 1e300}"#, Int64.max),
            (#"{"url": "https://h/a", "expires": 5, "expires_in": 90}"#, 5),
            ("https://h/a?expire=1800000100&sig=x", now + 100), ("https://h/a?sig=x&Expires=1800000100", now + 100),
            // Lengths of time, milliseconds, and times that have passed.
            ("https://h/a?expires=3600", nil), ("https://h/a?expires=1800000100000", nil),
            ("https://h/a?expires=1700000000", nil), ("https://h/a?expires=", nil), ("https://h/a?x=1800000100", nil),
            ("https://h/a", nil),
        ] as [(String, Int64?)]) func expiryIsStatedOrReadFromASignedURL(text: String, expires: Int64?) throws
    {
        #expect(try read(text).expires == expires)
    }

    // MARK: Names

    @Test(
        arguments: [
            (#""title": "A film", "ext": "mp4""#, "A film.mp4"), (#""title": "A film""#, "A film"),
            (#""title": "a/b\\c", "ext": "mp4""#, "a-b-c.mp4"), (#""title": "..", "ext": "mp4""#, nil),
            (#""title": " ", "ext": "mp4""#, nil), (#""title": "a", "ext": "../x""#, "a"), (#""ext": "mp4""#, nil),
            (#""title": "a\nb""#, "a b"),
        ] as [(String, String?)]) func titleIsTheNameOfAFile(members: String, name: String?) throws
    {
        #expect(try read("{\"url\": \"https://h/a\", \(members)}").fileName == name)
    }

    @Test func keyIsTheProgramsOwnWord() throws {
        #expect(try read(#"{"url": "https://h/a", "key": "v1", "id": "x"}"#).key == "v1")
        // An identifier of yt-dlp's may be that of another site's page, too.
        #expect(try read(#"{"url": "https://h/a", "id": "x", "extractor": "generic"}"#).key == nil)
        #expect(try read("{\"url\": \"https://h/a\", \"key\": \"\(String(repeating: "k", count: 513))\"}").key == nil)
    }
}
