import Activity
import Testing

@Suite struct PlayerNameTests {
    @Test(
        arguments: [
            ("mpv 0.35.1", "mpv 0.35.1"), ("mpv/0.37.0", "mpv 0.37.0"), ("libmpv", "mpv"),
            ("VLC/3.0.18 LibVLC/3.0.18", "VLC 3.0.18"), ("Lavf/59.27.100", "FFmpeg 59.27.100"),
            (
                "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36",
                "Chromium 131"
            ),
            (
                "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/131.0.6778.33 Safari/537.36",
                "Chromium 131"
            ),
            ("Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0", "Firefox 128"),
            (
                "Mozilla/5.0 (Macintosh) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.4 Safari/605.1.15",
                "Safari 17"
            ),
            ("gPodder/3.11.4 (+http://gpodder.org/) Linux", "gPodder 3.11.4"), ("curl/8.5.0", "curl 8.5.0"),
            ("MyPlayer/1.2 (comment/3 (nested)) Lib/4", "MyPlayer 1.2"), ("(only a comment)", "unknown player"),
            ("", "unknown player"), (nil, "unknown player"), ("evil\u{1B}[2J/9\u{202E}7", "evil\\u{1B}[2J 9"),
        ] as [(String?, String)])
    func aPlayerHasTheNameThatPeopleKnow(agent: String?, name: String) {
        #expect(PlayerName(userAgent: agent).description == name)
    }

    @Test(
        arguments: [
            ("curl/8.5.0", true), ("Wget/1.21.3", true), ("aria2/1.36.0", true), ("gPodder/3.11.4 (+x) Linux", true),
            ("AntennaPod/3.4.0", true), ("reelcache/0.1", true), ("mpv 0.35.1", false),
            ("VLC/3.0.18 LibVLC/3.0.18", false),
            ("Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0", false), (nil, false),
            ("x/1", false),
        ] as [(String?, Bool)])
    func downloadClientsPlayNothing(agent: String?, isDownloadClient: Bool) {
        #expect(PlayerName(userAgent: agent).isDownloadClient == isDownloadClient)
    }

    @Test func aLongNameIsCut() {
        #expect(PlayerName(userAgent: String(repeating: "x", count: 100_000)).description.count == 40)
    }
}
