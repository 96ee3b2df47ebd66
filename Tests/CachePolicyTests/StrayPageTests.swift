import CachePolicy
import HTTPModel
import Testing

@Suite struct StrayPageTests {
    @Test(
        arguments: [
            ("text/html", true), ("text/html; charset=utf-8", true), ("TEXT/HTML ;x", true),
            ("application/xhtml+xml", true), ("text/vnd.wap.wml", true),
            ("video/mp4", false), ("text/plain", false), ("application/json", false), ("text/htmlx", false),
            ("", false), (";text/html", false), (nil, false),
        ] as [(String?, Bool)])
    func pageIsToldByItsType(type: String?, isPage: Bool) {
        #expect(
            StrayPage.isPage(type.map { HeaderFields([.init(name: "Content-Type", value: $0)]) } ?? HeaderFields())
                == isPage)
    }

    @Test(arguments: [
        ("/film.mp4", true), ("/a/b/FILM.MP4?x=1", true), ("/show.m3u8", true), ("/s/init.cmfv", true), ("/1.ts", true),
        ("/de.vtt", true), ("/.mkv", true),
        ("/", false), ("/watch", false), ("/watch?v=film.mp4", false), ("/film.mp4/", false), ("/film.mp4.html", false),
        ("/mp4", false), ("/film.", false),
        ("/a.mp4/info", false),
    ])
    func mediaIsToldByItsExtension(path: String, isMedia: Bool) throws {
        #expect(StrayPage.expectsMedia(at: try OriginURL(url: "https://example.org\(path)"), HeaderFields()) == isMedia)
    }

    @Test(arguments: [
        ("video", true), ("Audio", true), ("track", true), ("document", false), ("iframe", false), ("empty", false),
    ])
    func mediaIsToldByTheElementThatItIsFor(destination: String, isMedia: Bool) throws {
        #expect(
            StrayPage.expectsMedia(
                at: try OriginURL(url: "https://example.org/watch"), ["Sec-Fetch-Dest: \(destination)"]) == isMedia)
    }

    @Test(
        arguments: [
            ("video/mp4", true), ("Audio/MPEG; x=1", true), ("image/png", true), ("application/octet-stream", true),
            ("application/vnd.apple.mpegurl", true), ("application/rss+xml; charset=utf-8", true),
            ("application/atom+xml", true), ("text/xml", false),
            ("text/html", false), ("application/json", false), ("text/plain", false), (nil, false),
        ] as [(String?, Bool)])
    func storedMediaIsToldByItsType(type: String?, isMedia: Bool) {
        #expect(
            StrayPage.isMedia(type.map { HeaderFields([.init(name: "Content-Type", value: $0)]) } ?? HeaderFields())
                == isMedia)
    }
}
