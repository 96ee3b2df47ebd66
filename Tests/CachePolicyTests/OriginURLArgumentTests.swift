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
        #expect(try OriginURL(argument: argument, proxy: "http://proxy.lan:7335").absolute == url)
    }

    @Test(arguments: ["", "film.mp4", "ftp://a/b", "http://127.0.0.1:7335/https/", "http://127.0.0.1:7335/https/user:x@h/"]) func whatIsNoURLIsRefused(argument: String) {
        #expect(throws: OriginURLError.self) { try OriginURL(argument: argument, proxy: nil) }
    }
}
