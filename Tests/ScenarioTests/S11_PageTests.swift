import CachePolicy
import Foundation
import Reelcache
import TestSupport
import Testing

private let film = Media(seed: 1112, size: 100_000)

extension Scenarios {
    /// What pages in a browser can do with the proxy, and what they cannot.
    @Suite struct S11_PageTests {
        private static let foreign = [
            [("Origin", "https://evil.example")], [("Sec-Fetch-Site", "cross-site")], [("Sec-Fetch-Site", "same-site")],
            [("Origin", "null")],
            [("Origin", "https://player.example.evil.example")],
        ]
        private static let trusted = [
            [("Origin", "https://player.example"), ("Sec-Fetch-Site", "cross-site")],
            [("Sec-Fetch-Site", "cross-site"), ("Referer", "https://player.example/a")],
        ]

        /// Whether the cache alone could answer is what was watched.
        @Test func pageOfAnotherSiteDoesNotLearnWhatWasWatched() async throws {
            try await scenario { setting in
                setting.configure { $0.webOrigins = ["https://player.example"] }
            } _: { stage in
                for name in ["seen", "unseen"] { stage.origin.serve("/\(name).mp4", film) }
                expectWhole(try stage.get("/seen.mp4"), film)
                let only = [("Cache-Control", "only-if-cached")]
                for method in ["GET", "HEAD"] {
                    for page in Self.foreign {
                        let (seen, unseen) = (
                            try stage.get("/seen.mp4", headers: only + page, method: method),
                            try stage.get("/unseen.mp4", headers: only + page, method: method)
                        )
                        #expect(
                            seen.status == 403 && unseen.status == 403 && seen.body == unseen.body, "\(method) \(page)")
                        #expect(seen.headers["Cache-Status"] == nil && seen.headers["Age"] == nil)
                    }
                    for page in Self.trusted + [[], [("Sec-Fetch-Site", "none")]] {
                        #expect(
                            try stage.get("/seen.mp4", headers: only + page, method: method).status == 200,
                            "\(method) \(page)")
                        #expect(
                            try stage.get("/unseen.mp4", headers: only + page, method: method).status == 504,
                            "\(method) \(page)")
                    }
                }
                #expect(stage.origin.requestCount("/unseen.mp4") == 0)
            }
        }

        /// There every request asks the cache alone.
        @Test func offlineAPageOfAnotherSiteGetsNothing() async throws {
            try await scenario { setting in
                setting.configure { $0.webOrigins = ["https://player.example"] }
            } _: { stage in
                stage.origin.serve("/film.mp4", film)
                expectWhole(try stage.get("/film.mp4"), film)
                try stage.proxy.cache.reconfigure { $0.isOffline = true }
                for page in Self.foreign { expectOneLine(try stage.get("/film.mp4", headers: page), status: 403) }
                for page in Self.trusted + [[]] { expectWhole(try stage.get("/film.mp4", headers: page), film) }
            }
        }

        @Test func pagesThatAreListedReadPrivateMediaAndSeeTheCache() async throws {
            try await scenario { setting in
                setting.configure { $0.webOrigins = ["https://player.example"] }
            } _: { stage in
                stage.origin.serve("/film.mp4", film)
                for _ in 0..<2 {
                    let response = try stage.get("/film.mp4", headers: [("Origin", "https://player.example")])
                    #expect(
                        response.headers["Access-Control-Allow-Origin"] == "https://player.example"
                            && response.headers["Vary"] == "Origin")
                    #expect(response.headers["Access-Control-Expose-Headers"]?.hasSuffix(", Age, Cache-Status") == true)
                    #expect(response.headers["Cross-Origin-Resource-Policy"] == nil)
                }
                // Embedded, a page says where it is by its address alone.
                #expect(
                    try stage.get("/film.mp4", headers: Self.trusted[1]).headers["Cross-Origin-Resource-Policy"] == nil)
                #expect(
                    try stage.get("/film.mp4", headers: Self.foreign[1]).headers["Cross-Origin-Resource-Policy"]
                        == "same-origin")
                let asked = [
                    ("Origin", "https://player.example"), ("Access-Control-Request-Method", "GET"),
                    ("Access-Control-Request-Private-Network", "true"),
                ]
                #expect(
                    try stage.get("/film.mp4", headers: asked, method: "OPTIONS").headers[
                        "Access-Control-Allow-Private-Network"] == "true")
            }
        }

        /// A browser does not play what is in a sandbox in a tab of its own.
        @Test func whatCannotRunIsInNoSandbox() async throws {
            try await scenario { stage in
                for (name, type, isConfined) in [
                    ("a.mp4", "video/mp4", false), ("a.mp3", "audio/mpeg", false), ("a.png", "image/png", false),
                    ("a.svg", "image/svg+xml", true),
                    ("a.html", "text/html", true), ("a.pdf", "application/pdf", true), ("a", "", true),
                ] {
                    stage.origin.serve("/\(name)", film, contentType: type)
                    stage.origin.script("/\(name)") { $0.headers = [("Content-Disposition", "inline; filename=\"x\"")] }
                    for _ in 0..<2 {
                        let response = try stage.get("/\(name)")
                        #expect(
                            response.headers.all("Content-Security-Policy") == (isConfined ? ["sandbox"] : []),
                            "\(name)")
                        #expect(response.headers.all("X-Content-Type-Options") == ["nosniff"], "\(name)")
                        #expect(response.headers["Content-Disposition"] == "inline; filename=\"x\"")
                    }
                }
            }
        }

        /// A page of a mount would otherwise read other mounts, `/https/` and `/api`.
        @Test func pageBelowAMountIsNoPageOfTheProxyWhereThatServesMore() async throws {
            for anyOrigin in [false, true] {
                try await mounted(anyOrigin: anyOrigin) { stage in
                    stage.origin.serve("/vod/page.html", film, contentType: "text/html")
                    stage.origin.serve("/vod/film.mp4", film)
                    stage.origin.script("/vod/post") {
                        ($0.status, $0.headers) = (200, [("Content-Type", "text/html")])
                    }
                    for _ in 0..<2 {
                        let policies = try stage.ask("/tv/page.html").headers.all("Content-Security-Policy")
                        #expect(
                            policies
                                == (anyOrigin
                                    ? ["sandbox allow-downloads allow-forms allow-modals allow-popups allow-scripts"]
                                    : []))
                        #expect(try stage.ask("/tv/film.mp4").headers["Content-Security-Policy"] == nil)
                    }
                    #expect(
                        try stage.send("POST", "/tv/post", [1]).headers.all("Content-Security-Policy").isEmpty
                            == !anyOrigin)
                }
            }
        }

        /// A browser would send the credentials to the next origin that names the same realm.
        @Test func challengeReachesNoBrowserInPathForm() async throws {
            try await mounted(anyOrigin: true) { stage in
                let challenge = "Basic realm=\"films\""
                stage.origin.script("/vod/secret.mp4") {
                    ($0.status, $0.headers) = (401, [("WWW-Authenticate", challenge)])
                }
                for method in ["GET", "HEAD"] {
                    let path = try stage.ask(stage.target("/vod/secret.mp4"), method: method)
                    #expect(path.status == 401 && path.headers["WWW-Authenticate"] == nil)
                    for target in ["/tv/secret.mp4", stage.absolute("/vod/secret.mp4")] {
                        #expect(
                            try stage.ask(target, method: method).headers["WWW-Authenticate"] == challenge, "\(target)")
                    }
                }
                // Who knows them sends them at once.
                #expect(
                    try stage.ask(stage.target("/vod/secret.mp4"), headers: [("Authorization", "Basic eA==")]).status
                        == 401)
                #expect(stage.origin.requests("/vod/secret.mp4").last?.headers["Authorization"] == "Basic eA==")
            }
        }

        // MARK: The control interface

        private static let places = [
            "/stats", "/metrics", "/api/v1/history", "/api/v1/resources", "/api/v1/downloads", "/api/v1/cache",
            "/api/v1/downloads/history",
            "/api/v1/downloads/settings",
        ]

        @Test func controlInterfaceIsForNoPage() async throws {
            try await scenario { stage in
                for place in Self.places + ["/", "/healthz", "/nothing", "/api/v1/nothing"] {
                    let response = try stage.ask(place)
                    #expect(response.headers.all("Cross-Origin-Resource-Policy") == ["same-origin"], "\(place)")
                    #expect(
                        response.headers["X-Content-Type-Options"] == "nosniff"
                            && response.headers["Access-Control-Allow-Origin"] == nil, "\(place)")
                }
                for place in Self.places {
                    // A page of another port, a page of another site, and one that the proxy serves in a sandbox.
                    for page in [
                        [("Sec-Fetch-Site", "same-site"), ("Sec-Fetch-Mode", "cors")],
                        [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "no-cors")],
                        [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "cors"), ("Origin", "null")],
                    ] {
                        #expect(try stage.ask(place, headers: page).status == 401, "\(place) \(page)")
                        #expect(
                            try stage.ask(place, headers: page + stage.authorization()).status == 200,
                            "\(place) \(page)")
                    }
                    // The dashboard's script, and people.
                    for visit in [
                        [("Sec-Fetch-Site", "same-origin"), ("Sec-Fetch-Mode", "cors")],
                        [("Sec-Fetch-Site", "none"), ("Sec-Fetch-Mode", "navigate")],
                        [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate")],
                    ] {
                        #expect(try stage.ask(place, headers: visit).status == 200, "\(place) \(visit)")
                    }
                }
            }
        }

        // Its pages have the proxy's origin.
        @Test func controlInterfaceIsForNoPageOfTheOneSiteThatIsServed() async throws {
            try await mounted { stage in
                for place in Self.places {
                    let page = [("Sec-Fetch-Site", "same-origin"), ("Sec-Fetch-Mode", "cors")]
                    let (refused, answered) = (
                        try stage.ask(place, headers: page),
                        try stage.ask(place, headers: page + stage.authorization())
                    )
                    #expect(refused.status == 401 && answered.status == 200, "\(place)")
                }
            }
        }

        @Test func beyondTheLoopbackReadingNeedsAToken() async throws {
            try await scenario { setting in
                setting.configure { $0.listen = "0.0.0.0:0" }
            } _: { stage in
                let path = "\(stage.cache)/control-token-read"
                #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o600)
                let reading = [
                    (
                        "Authorization",
                        "Bearer \(try String(contentsOfFile: path, encoding: .utf8).trimmingCharacters(in: .newlines))"
                    )
                ]
                for place in Self.places {
                    let refusal = try stage.ask(place)
                    #expect(refusal.status == 401 && refusal.text.contains("control-token-read"), "\(place)")
                    // Other machines need not know where this one keeps its cache.
                    #expect(!refusal.text.contains(stage.cache), "\(place)")
                    #expect(try stage.ask(place, headers: stage.authorization(.wrong)).status == 401, "\(place)")
                    #expect(try stage.ask(place, headers: reading).status == 200, "\(place)")
                    #expect(try stage.ask(place, headers: stage.authorization()).status == 200, "\(place)")
                }
                let wrong = try stage.control(
                    "POST", "/dashboard/session", .nothing,
                    headers: [("Sec-Fetch-Site", "same-origin"), ("Origin", "http://127.0.0.1:\(stage.proxy.port)")],
                    body: "{\"token\":\"0123\"}")
                #expect(wrong.status == 403 && wrong.text.contains("control-token in the cache directory"))
                // It reads, and tells no secrets.
                #expect(try stage.ask("/api/v1/resources?all=true", headers: reading, method: "DELETE").status == 401)
                #expect(try stage.ask("/api/v1/resources?secrets=true", headers: reading).status == 401)
                #expect(try stage.ask("/api/v1/resources?secrets=true", headers: stage.authorization()).status == 200)
                for open in ["/healthz", "/"] { #expect(try stage.ask(open).status == 200) }
                #expect(try RunningProxy(cacheDirectory: stage.cache)?.get("/stats").isEmpty == false)
            }
        }
    }
}
