import CachePolicy
import TestSupport
import Testing

extension Scenarios {
    /// Hot-link protection: origins that send their media to their own pages alone.
    @Suite struct S11Referrer {
        @Test func pageBehindTheProxyIsNamedToItsOrigin() async throws {
            try await mounted(anyOrigin: true) { (stage) throws in
                for name in ["own", "foreign", "proxy", "mount", "none"] {
                    stage.origin.serve("/vod/\(name)", bytes: [1, 2, 3])
                }
                let own = "http://127.0.0.1:\(stage.proxy.port)"
                func sent(_ name: String, _ referrer: String?, target: String? = nil) throws -> String? {
                    _ = try stage.ask(
                        target ?? stage.target("/vod/\(name)"), headers: referrer.map { [("Referer", $0)] } ?? [])
                    return try #require(stage.origin.requests("/vod/\(name)").last).headers["Referer"]
                }
                #expect(try sent("own", own + stage.target("/watch?v=1")) == stage.absolute("/watch?v=1"))
                #expect(try sent("foreign", own + "/http/other.example/secret?token=1") == "http://other.example/")
                #expect(try sent("proxy", own + "/stats") == nil)
                #expect(
                    try sent("mount", own + "/tv/index.html", target: "/tv/mount") == stage.absolute("/vod/index.html"))
                #expect(try sent("none", nil) == nil)
            }
        }

        // Origins check the whole of it: `mpv --referrer`, `yt-dlp --referer`. A browser's page stays with its own.
        @Test(arguments: [(nil, true), ("Sec-Fetch-Site", false), ("Sec-Fetch-Mode", false), ("Origin", false)])
        func programsPageIsNamedInFull(ofBrowser: String?, isInFull: Bool) async throws {
            try await scenario { stage in
                stage.origin.serve("/film", bytes: [1, 2, 3])
                let page = "http://site.example/watch?v=1"
                _ = try stage.get("/film", headers: [("Referer", page)] + (ofBrowser.map { [($0, "none")] } ?? []))
                #expect(
                    stage.origin.requests("/film").map { $0.headers["Referer"] }
                        == [isInFull ? page : "http://site.example/"])
            }
        }

        /// The rule says what the origin wants to hear, whatever the player is on.
        @Test func ruleOverridesThePage() async throws {
            try await scenario {
                $0.configure {
                    $0.rules = [
                        .init(hosts: ["http://127.0.0.1:*"]) { $0.headers = ["Referer": "https://site.example/"] }
                    ]
                }
            } _: { stage in
                stage.origin.serve("/film", bytes: [1, 2, 3])
                _ = try stage.get("/film", headers: [("Referer", "https://b.example/x")])
                #expect(stage.origin.requests("/film").first?.headers["Referer"] == "https://site.example/")
            }
        }

        /// Another origin is told no more of the page than a browser would tell it.
        @Test func redirectToAnotherOriginHearsOfTheOriginAlone() async throws {
            try await scenario { setting in
                setting.allow = ["127.0.0.1", "localhost"]
            } _: { stage in
                stage.origin.serve("/film", bytes: [1, 2, 3])
                stage.origin.script("/moved") { $0.redirect = stage.origin.url("/film", host: "localhost") }
                let page = "http://127.0.0.1:\(stage.proxy.port)" + stage.target("/watch?v=1")
                _ = try stage.ask(stage.target("/moved"), headers: [("Referer", page)])
                #expect(stage.origin.requests("/moved").first?.headers["Referer"] == stage.absolute("/watch?v=1"))
                #expect(stage.origin.requests("/film").first?.headers["Referer"] == stage.absolute("/"))
            }
        }
    }
}
