import CachePolicy
import TestSupport
import Testing

extension Scenarios {
    /// What the proxy says of itself is what it does.
    @Suite struct S11_OwnPageTests {
        @Test func pageNamesMountsWhereNothingElseIsServed() async throws {
            try await mounted { stage in
                let page = try stage.ask("/").text
                #expect(
                    page.hasPrefix("Reelcache.") && page.contains("Mounted here: /tv/.") && !page.contains("/https/"))
                #expect(
                    try stage.ask("/nothing").text
                        == "there is nothing at /nothing; media is at /tv/; statistics are at /stats\n")
            }
        }

        @Test func pageOfAProxyThatServesAnyOriginSaysHow() async throws {
            try await scenario { (stage) throws in
                #expect(try stage.ask("/").text.contains("/https/example.org/film.mp4"))
                #expect(try stage.ask("/nothing").text.contains("media is at /https/HOST/PATH and /http/HOST/PATH;"))
            }
        }

        @Test func pageIsThereBesideAMountAtTheTop() async throws {
            try await mounted(at: "/") { (stage) throws in
                stage.origin.serve("/vod/", bytes: Array("<p>of the origin</p>".utf8))
                #expect(try stage.ask("/").text == "<p>of the origin</p>")
                for path in ["/api/", "/api"] {
                    #expect(try stage.ask(path).text.hasPrefix("Reelcache.\nMounted here: /."))
                }
            }
        }

        @Test func encodedURLIsServedAsItsPathForm() async throws {
            try await scenario { stage in
                let film = Media(seed: 7, size: 1000)
                stage.origin.serve("/film.mp4", film)
                let host = "127.0.0.1:\(stage.origin.port)"
                expectWhole(try stage.ask("/http%3A%2F%2F\(host)/film.mp4"), film)
                let again = try stage.ask("/http%3A%2F%2F\(host)%2Ffilm.mp4")
                expectWhole(again, film)
                #expect(again.isHit)
            }
        }
    }
}
