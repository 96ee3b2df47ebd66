import TestSupport
import Testing

/// Commands take the URL that a player opens below a mount.
@Suite struct MountURLTests {
    @Test(arguments: Ownership.allCases) func aURLBelowAMountNamesItsMedia(ownership: Ownership) throws {
        let shelf = try Shelf(ownership, whole: ["/vod/a.mp4"])
        let base = shelf.proxy?.baseURL ?? "http://127.0.0.1:7335", url = base + "/tv/a.mp4"
        let mounts: [String: String?] = [
            "REELCACHE_MOUNTS": "/tv/=\(shelf.origin.url("/vod/"))", "REELCACHE_NAMES": "tv.example",
        ]
        #expect(try shelf.run("show", url).failureLine?.contains(url) == true)
        #expect(
            try shelf.say("show", url, environment: mounts).contains("url         \(shelf.origin.url("/vod/a.mp4"))\n"))
        #expect(
            try shelf.say("pin", "http://tv.example/tv/a.mp4", environment: mounts).hasPrefix(
                "pinned \(shelf.origin.url("/vod/a.mp4")),"))
        let missing = try shelf.run("show", base + "/tv/b.mp4", environment: mounts)
        #expect(missing.failureLine?.contains(shelf.origin.url("/vod/b.mp4")) == true, "\(missing)")
        #expect(try shelf.say("rm", url, environment: mounts).hasPrefix("removed 1 resource"))
    }
}
