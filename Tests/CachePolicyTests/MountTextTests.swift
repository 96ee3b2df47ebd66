import Testing

@testable import CachePolicy

/// How a mount is written.
@Suite struct MountTextTests {
    @Test(arguments: [
        ("/tv/=https://origin.example/vod/", "/tv/", "https://origin.example/vod/"),
        ("/a/b.c/=http://o:81", "/a/b.c/", "http://o:81/"),
        ("/=https://o/", "/", "https://o/"), ("/x/=https://o/a=b/", "/x/", "https://o/a=b/"),
    ])
    func aMountIsRead(text: String, path: String, origin: String) throws {
        let mount = try Mount(parsing: text)
        #expect(mount.path == path && mount.origin.absolute == origin)
        #expect(try Mount(parsing: mount.text) == mount)
    }

    @Test(arguments: [("shared", .shared), ("private", .private)] as [(String, CacheMode)])
    func aMountMaySayForWhomItStores(word: String, kind: CacheMode) throws {
        let mount = try Mount(parsing: "/tv/=https://o.example/vod/ " + word)
        #expect(mount.cache == kind && mount.origin.absolute == "https://o.example/vod/")
        #expect(mount.text == "/tv/=https://o.example/vod/ " + word)
        #expect(try Mount(parsing: mount.text) == mount)
    }

    @Test(arguments: [
        ("/tv/", "'/tv/' does not name the origin to mount; write it like /tv/=https://origin.example/vod/"),
        ("tv=https://o/", "'tv' is not a mount path: begin and end it with /, such as /tv/"),
        ("/tv=https://o/", "'/tv' is not a mount path: begin and end it with /, such as /tv/"),
        ("=https://o/", "'' is not a mount path: begin and end it with /"),
        (
            "//=https://o/",
            "'//' is not a mount path: write each part with letters, digits, -, . and _, such as /tv/"
        ),
        (
            "/a/../=https://o/",
            "'/a/../' is not a mount path: write each part with letters, digits, -, . and _, such as /tv/"
        ),
        (
            "/a?/=https://o/",
            "'/a?/' is not a mount path: write each part with letters, digits, -, . and _, such as /tv/"
        ),
        ("/http/=https://o/", "'/http/' is reserved for the proxy: mount at another path, such as /tv/"),
        ("/api/v1/=https://o/", "'/api/v1/' is reserved for the proxy: mount at another path, such as /tv/"),
        ("/tv/=o/", "'o/' cannot be mounted: the URL has no scheme: write https:// before it, as in https://o/"),
        ("/tv/=https://o/vod", "'https://o/vod' cannot be mounted: write https://o/vod/"),
        ("/tv/=https://o/?a=/", "'https://o/?a=/' cannot be mounted: remove the query"),
    ])
    func aMountThatCannotWorkIsNamed(text: String, reason: String) {
        #expect(throws: OriginURLError(reason: reason)) { try Mount(parsing: text) }
    }

    @Test(arguments: [
        "/http/", "/https/", "/https/o.example/", "/api/", "/api/v1/", "/healthz/", "/metrics/", "/stats/", "/stats/x/",
    ])
    func whatTheProxyKeepsForItselfIsNoPlace(path: String) {
        #expect(
            throws: OriginURLError(reason: "'\(path)' is reserved for the proxy: mount at another path, such as /tv/")
        ) {
            try Mount(path: path, url: "https://o.example/")
        }
    }

    @Test(arguments: ["/", "/apis/", "/statsx/", "/httpx/", "/tv/api/"])
    func whatTheProxyDoesNotKeepIsAPlace(path: String) throws {
        #expect(try Mount(path: path, url: "https://o.example/").path == path)
    }
}
