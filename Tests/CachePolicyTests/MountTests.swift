import CachePolicy
import Testing

@Suite struct MountTests {
    private static func mounts(
        _ pairs: [(String, String)] = [
            ("/tv/", "https://origin.example/vod/"), ("/tv/live/", "http://live.example:8080/"),
        ]
    ) throws -> [Mount] {
        try pairs.map { Mount(path: $0.0, origin: try OriginURL(url: $0.1)) }
    }

    @Test(arguments: [
        ("/tv/film.mp4", "https://origin.example/vod/film.mp4"), ("/tv/", "https://origin.example/vod/"),
        ("/tv/a/b.mp4?x=/../y&z", "https://origin.example/vod/a/b.mp4?x=/../y&z"),
        ("/tv/?q", "https://origin.example/vod/?q"),
        ("/tv/film.mp4#t=10", "https://origin.example/vod/film.mp4"),
        // The longest wins, whole segments only.
        ("/tv/live/1.ts", "http://live.example:8080/1.ts"), ("/tv/live", "https://origin.example/vod/live"),
        ("/tv/lively", "https://origin.example/vod/lively"),
        // Nothing in a path becomes a host.
        ("/tv//evil.example/x", "https://origin.example/vod//evil.example/x"),
        ("/tv/@evil.example/", "https://origin.example/vod/@evil.example/"),
        ("/tv/http://evil.example/", "https://origin.example/vod/http://evil.example/"),
        ("/tv/:80/", "https://origin.example/vod/:80/"),
        // Dots that lead nowhere.
        ("/tv/..a/b..", "https://origin.example/vod/..a/b.."), ("/tv/.../x", "https://origin.example/vod/.../x"),
        ("/tv/100%", "https://origin.example/vod/100%"),
    ])
    func targetBelowAMountMeansTheOriginsPath(target: String, url: String) throws {
        #expect(try Self.mounts().url(for: target)?.absolute == url)
    }

    @Test(arguments: [
        "/", "/tv", "/tv?x", "/TV/film.mp4", "/other/film.mp4", "/%74v/film.mp4", "//tv/film.mp4", "tv/film.mp4", "*",
        "", "http://a/tv/x",
    ])
    func targetBesideTheMountsMeansNothing(target: String) throws {
        #expect(try Self.mounts().url(for: target) == nil)
    }

    @Test(arguments: [
        "/tv/..", "/tv/../secret", "/tv/a/../../secret", "/tv/%2e%2e/secret", "/tv/.%2E/secret", "/tv/%2E./",
        "/tv/a/..?x", "/tv/..%2fsecret",
        "/tv/a%2F..%2F..%2Fsecret", "/tv/..\\secret", "/tv/a%5c..%5c..", "/tv/..;/secret", "/tv/%2e%2e%3bx/secret",
        "/tv/../", "/tv/live/../film.mp4", "/tv/%zz/../x",
        "/tv/..#x",
    ])
    func targetThatClimbsIsRefused(target: String) throws {
        let error = #expect(throws: OriginURLError.self) { try Self.mounts().url(for: target) }
        #expect(error?.reason.contains("..") == true)
    }

    @Test(arguments: [
        "/stats", "/stats?x", "/healthz", "/metrics", "/api/v1/cache", "/api", "/http/a/b", "/https/a/b",
        "/https://a/b", "/https:/a", "/http", "/stats/", "/stats#x",
    ])
    func whatTheProxyKeepsForItselfIsNoMounts(target: String) throws {
        #expect(Mount.isReserved(target))
        #expect(try Self.mounts([("/", "http://a.example/")]).url(for: target) == nil)
    }

    /// What a command prints leads back to what was asked for: below a mount of the root are paths of the proxy's own,
    /// and of other mounts.
    @Test(arguments: [
        ("https://o.example/a", "/a"), ("https://o.example/stats", nil), ("https://o.example/api/x", nil),
        ("https://o.example/https/a/b", nil),
        ("https://o.example/live/a", nil), ("https://o.example/vod/a", "/tv/a"),
        ("https://o.example/vod/stats", "/tv/stats"), ("https://o.example/a/../b", nil),
        ("https://live.example/a?b", "/live/a?b"), ("https://p.example/a", nil),
    ])
    func aTargetMeansTheURLThatItIsFor(url: String, target: String?) throws {
        var policy = ProxyPolicy()
        policy.servesAnyOrigin = false
        policy.mounts = try Self.mounts([
            ("/", "https://o.example/"), ("/live/", "https://live.example/"), ("/tv/", "https://o.example/vod/"),
        ])
        #expect(policy.target(of: try OriginURL(url: url)) == target)
        if let target { #expect(try policy.mounts.url(for: target)?.absolute == url) }
    }

    /// Where the nearest mount cannot say it, another one can.
    @Test func aTargetIsBelowAMountThatLeadsThere() throws {
        var policy = ProxyPolicy()
        policy.servesAnyOrigin = false
        policy.mounts = try Self.mounts([("/", "https://o.example/vod/"), ("/all/", "https://o.example/")])
        #expect(policy.target(of: try OriginURL(url: "https://o.example/vod/a")) == "/a")
        #expect(policy.target(of: try OriginURL(url: "https://o.example/vod/stats")) == "/all/vod/stats")
    }

    @Test(arguments: ["/", "/index.html", "/statsx", "/apis/", "/httpx/", "/healthz.html"])
    func mountOfTheRootTakesTheRest(target: String) throws {
        #expect(!Mount.isReserved(target))
        #expect(try Self.mounts([("/", "http://a.example/")]).url(for: target)?.absolute == "http://a.example" + target)
    }
}
