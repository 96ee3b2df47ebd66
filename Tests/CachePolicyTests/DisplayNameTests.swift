import CachePolicy
import Testing

@Suite struct DisplayNameTests {
    private static let url = "https://cdn.example/v/a%20b.mp4?t=1"

    @Test(
        arguments: [
            ("Episode 7: Bridges", "e7.mp3", "Episode 7: Bridges"), (nil, "e7.mp3", "e7.mp3"), (nil, nil, "a b.mp4"),
            // What is empty names nothing; what goes over lines is one line.
            (" \n", "  ", "a b.mp4"), ("two\n\tlines ", nil, "two lines"), (nil, "/tmp/../x.mp3", "x.mp3"),
            // Terminals obey none of it, and letters stay in their order.
            ("a\u{1B}[2Jb", nil, "a\\u{1B}[2Jb"), ("\u{202E}gpj.exe", nil, "\\u{202E}gpj.exe"), ("שלום", nil, "שלום"),
        ] as [(String?, String?, String)])
    func titleComesBeforeFileNameAndURL(title: String?, fileName: String?, name: String) {
        #expect(DisplayName(title: title, fileName: fileName, url: Self.url).description == name)
    }

    @Test(arguments: [
        ("https://a/film/master.m3u8", "film/master.m3u8"),
        ("https://a/other/hls/master.m3u8?t=1", "other/master.m3u8"),
        ("https://a/master.m3u8", "a/master.m3u8"), ("https://a/x/Film.mpd", "Film.mpd"),
        ("https://a/media.mp3?id=7f", "media.mp3?id=7f"), ("https://a/b/media.mp3", "b/media.mp3"),
        ("https://a/b/film.mp4?id=7", "film.mp4"), ("https://a/", "a"), ("https://a/Gr%C3%BC%C3%9Fe.mp4", "Grüße.mp4"),
        ("https://a/%FF.mp4", "%FF.mp4"), ("no URL", "no URL"),
    ])
    func urlsOfOneNameAreToldApart(url: String, name: String) {
        #expect(DisplayName(title: nil, url: url).description == name)
    }

    @Test func longTitleIsCut() {
        #expect(DisplayName(title: String(repeating: "x", count: 9000), url: Self.url).description.count == 500)
    }
}
