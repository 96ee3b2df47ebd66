import CachePolicy
import Testing

@Suite struct OriginURLArgumentTests {
    @Test(arguments: [
        ("https://example.org/a.mp4", "https://example.org/a.mp4"),
        ("http://127.0.0.1:7335/https/example.org/a.mp4?b=1", "https://example.org/a.mp4?b=1"),
        ("http://localhost:7335/http/example.org:81/a", "http://example.org:81/a"),
        ("http://[::1]:7335/https://example.org/a", "https://example.org/a"),
        ("http://127.0.0.2:1/https:/example.org/a", "https://example.org/a"),
        ("http://proxy.lan:7335/https/example.org/a", "https://example.org/a"),
        ("http://127.0.0.1:8000/film.mp4", "http://127.0.0.1:8000/film.mp4"),
        ("http://example.org/https/other.org/a", "http://example.org/https/other.org/a"),
        ("http://proxy.lan:7336/https/example.org/a", "http://proxy.lan:7336/https/example.org/a"),
        ("https://localhost/https/example.org/a", "https://localhost/https/example.org/a"),
        ("http://127.evil.org/https/example.org/a", "http://127.evil.org/https/example.org/a"),
    ])
    func aProxiedURLMeansItsMedia(argument: String, url: String) throws {
        #expect(try OriginURL(argument: argument, at: ProxyPlace(url: "http://proxy.lan:7335")).absolute == url)
    }

    /// A path below a mount may be any origin's: it is read at the proxy alone.
    @Test(arguments: [
        ("http://127.0.0.1:7335/tv/a.mp4?b=1#t", "https://o.example/vod/a.mp4?b=1"),
        ("http://localhost:7335/tv/a.mp4", "https://o.example/vod/a.mp4"),
        ("http://[::1]:7335/tv/a.mp4", "https://o.example/vod/a.mp4"),
        ("http://Tv.example:7335/tv/a.mp4", "https://o.example/vod/a.mp4"),
        ("https://tv.example/tv/a.mp4", "https://o.example/vod/a.mp4"),
        ("https://tv.example/https/p.example/a", "https://p.example/a"),
        ("http://127.0.0.1:7335/radio/a.mp4", "http://127.0.0.1:7335/radio/a.mp4"),
        ("http://127.0.0.1:7335/stats", "http://127.0.0.1:7335/stats"),
        ("http://127.0.0.1:8000/tv/a.mp4", "http://127.0.0.1:8000/tv/a.mp4"),
        ("https://127.0.0.1:7335/tv/a.mp4", "https://127.0.0.1:7335/tv/a.mp4"),
        ("http://nas.local:7335/tv/a.mp4", "http://nas.local:7335/tv/a.mp4"),
        ("https://o.example/tv/a.mp4", "https://o.example/tv/a.mp4"),
    ])
    func aURLBelowAMountMeansItsMedia(argument: String, url: String) throws {
        let mounts = [Mount(path: "/tv/", origin: try OriginURL(url: "https://o.example/vod/"))]
        #expect(
            try OriginURL(
                argument: argument, at: ProxyPlace(url: "http://127.0.0.1:7335", names: ["TV.example."], mounts: mounts)
            ).absolute == url)
    }

    /// The mount is none of other addresses than the proxy's.
    @Test func aProxyElsewhereIsNotThisMachine() throws {
        let mounts = [Mount(path: "/tv/", origin: try OriginURL(url: "https://o.example/vod/"))]
        for place in [ProxyPlace(url: "http://192.168.1.5:7335", mounts: mounts), ProxyPlace(url: nil, mounts: mounts)]
        {
            #expect(
                try OriginURL(argument: "http://127.0.0.1:7335/tv/a", at: place).absolute
                    == "http://127.0.0.1:7335/tv/a")
        }
    }

    @Test(arguments: [
        "", "film.mp4", "ftp://a/b", "http://127.0.0.1:7335/https/", "http://127.0.0.1:7335/https/user:x@h/",
    ]) func whatIsNoURLIsRefused(argument: String) {
        #expect(throws: OriginURLError.self) { try OriginURL(argument: argument, at: ProxyPlace(url: nil)) }
    }
}
