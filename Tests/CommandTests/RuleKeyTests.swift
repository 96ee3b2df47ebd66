import Foundation
import TestSupport
import Testing

/// Commands name a resource by any URL that the rules give its key.
@Suite struct RuleKeyTests {
    private static let rules = """
        rules:
          - host: [127.0.0.1, elsewhere.example]
            path: /vod/*
            ignore_query: [token]
            key: http://all.example/{path}{query}
            ttl: 2d
        """

    private func shelf(_ ownership: Ownership = .running) throws -> Shelf {
        try Shelf(ownership, whole: ["/vod/a.mp4?token=1", "/vod/b.mp4?token=1"], configuration: Self.rules)
    }

    @Test func showTakesAnyURLOfAResourceAndItsKey() throws {
        let shelf = try shelf()
        let key = "http://all.example/vod/a.mp4"
        #expect(try shelf.names == [key, "http://all.example/vod/b.mp4"])
        for url in [
            key, shelf.origin.url("/vod/a.mp4"), shelf.origin.url("/vod/a.mp4?token=2"),
            "http://elsewhere.example/vod/a.mp4?token",
        ] {
            let shown = try shelf.say("show", url)
            #expect(shown.contains("url         \(key)\n"), "\(url)")
            // The key itself is no URL of the rule.
            #expect(shown.contains("(by a rule)") == (url != key), "\(shown)")
        }
        let other = shelf.origin.url("/vod/a.mp4?part=2")
        #expect(try shelf.run("show", other).stderr.contains(other))
    }

    @Test(arguments: Ownership.allCases) func theOthersDoSoToo(ownership: Ownership) throws {
        let shelf = try shelf(ownership)
        let (a, b) = (shelf.origin.url("/vod/a.mp4?token=2"), "http://all.example/vod/b.mp4")
        for url in [a, b] {
            #expect(try shelf.say("pin", url).hasPrefix("pinned "))
            #expect(try shelf.say("show", url).contains("pinned      yes\n"))
        }
        let file = shelf.cache.path + "-a.mp4"
        defer { try? FileManager.default.removeItem(atPath: file) }
        _ = try shelf.say("export", a, "-o", file)
        #expect(try shelf.json("rm", a)["resources"] as? Int == 1)
        #expect(try shelf.names == [b])
        _ = try shelf.say("import", file, "--as", a)
        #expect(try shelf.names == ["http://all.example/vod/a.mp4", b])
        #expect(try shelf.json("rm", b)["resources"] as? Int == 1)
        #expect(try shelf.plays("/vod/a.mp4?token=3"))
    }
}
