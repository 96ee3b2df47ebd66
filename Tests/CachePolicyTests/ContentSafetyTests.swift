import CachePolicy
import HTTPModel
import Testing

@Suite struct ContentSafetyTests {
    @Test(arguments: [
        // Media
        ("video/mp4", true, true), ("Video/MP4; codecs=\"avc1\"", true, true), ("audio/mpeg", true, true),
        ("audio/x-mpegurl", true, true), ("video/x-any", true, true),
        ("application/mp4", true, true), ("application/ogg", true, true),
        // Playlists, subtitles, keys: to be read, and not all of them without scripts.
        ("application/vnd.apple.mpegurl", true, false), ("application/x-mpegURL", true, false),
        ("application/dash+xml", true, false), ("text/vtt", true, false),
        ("application/octet-stream", true, false), ("binary/octet-stream", true, false),
        // Images and fonts
        ("image/png", false, true), ("image/jpeg", false, true), ("font/woff2", false, true),
        // All that can run, or be understood otherwise.
        ("image/svg+xml", false, false), ("image/any", false, false), ("text/html", false, false),
        ("text/plain", false, false), ("application/json", false, false),
        ("application/pdf", false, false), ("video/x+xml", false, false), ("audio/xml", false, false),
        ("text/javascript", false, false), ("font/x+xml", false, false),
        ("multipart/x-mixed-replace; boundary=x", false, false), ("video/mp4, text/html", false, false),
        ("video/mp4 text/html", false, false), ("video/", false, false),
        ("video", false, false), ("", false, false), ("video/mp4/x", false, false),
    ])
    func typeSaysWhatABrowserCanDo(type: String, isMedia: Bool, isInert: Bool) {
        let safety = ContentSafety(HeaderFields([.init(name: "content-TYPE", value: type)]))
        #expect(safety.isMedia == isMedia && safety.isInert == isInert)
    }

    @Test func noTypeAndSeveralAreAnything() {
        let film = HeaderFields.Line(name: "Content-Type", value: "video/mp4")
        for fields in [
            HeaderFields(), HeaderFields([film, film]),
            HeaderFields([film, .init(name: "Content-type", value: "text/html")]),
        ] {
            let safety = ContentSafety(fields)
            #expect(!safety.isMedia && !safety.isInert)
        }
    }
}
