import ControlAPI
import DiskCache
import TestSupport
import Testing

@testable import Reelcache

extension Scenarios {
    /// The dashboard as HTTP shows it: its files, and who is signed in.
    @Suite struct S28_DashboardTests {
        private static let browser = [("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")]

        /// A request of the dashboard's own scripts.
        private func page(_ stage: Stage, _ more: [(String, String)] = []) -> [(String, String)] {
            [("Sec-Fetch-Site", "same-origin"), ("Origin", "http://127.0.0.1:\(stage.proxy.port)")] + more
        }

        private struct Session {
            let cookie: String
            let key: String

            var fields: [(String, String)] { [("Cookie", "other=1; \(cookie)"), ("Reelcache-Dashboard", key)] }
        }

        private func signIn(_ stage: Stage) throws -> Session {
            let answer = try stage.control(
                "POST", "/dashboard/session", .nothing, headers: page(stage), body: "{\"token\":\"\(stage.token)\"}")
            #expect(answer.status == 201, "\(answer.text)")
            let cookie = try #require(answer.headers["Set-Cookie"])
            #expect(cookie.hasSuffix("; Path=/api/v1; HttpOnly; SameSite=Strict"))
            return Session(
                cookie: String(cookie.prefix { $0 != ";" }), key: try #require(try answer.members["key"] as? String))
        }

        @Test func filesAreSmallAndSayWhatTheyMayDo() async throws {
            #expect(DashboardFile.all.reduce(0) { $0 + $1.bytes.count } < 110_000)
            try await scenario { stage in
                let home = try stage.player().get("/", headers: Self.browser)
                #expect(home.status == 200 && home.headers["Content-Type"] == "text/html; charset=utf-8")
                #expect(home.headers["Vary"] == "Accept")
                for file in DashboardFile.all {
                    let answer = try stage.ask("/api/dashboard/\(file.name)")
                    #expect(answer.status == 200 && answer.body == file.bytes)
                    #expect(answer.headers["Content-Type"] == file.type)
                    let policy = try #require(answer.headers["Content-Security-Policy"])
                    #expect(policy.hasPrefix("default-src 'none'; script-src 'self'; style-src 'self'; connect-src"))
                    #expect(policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"))
                    #expect(answer.headers["Cross-Origin-Resource-Policy"] == "same-origin")
                    #expect(answer.headers["Cross-Origin-Opener-Policy"] == "same-origin")
                    #expect(answer.headers["X-Content-Type-Options"] == "nosniff")
                    #expect(answer.headers["Referrer-Policy"] == "no-referrer")
                    let etag = try #require(answer.headers["ETag"])
                    let again = try stage.player().get(
                        "/api/dashboard/\(file.name)", headers: [("If-None-Match", etag)])
                    #expect(again.status == 304 && again.body.isEmpty)
                }
                #expect(try stage.ask("/api/dashboard/nothing").status == 404)
            }
        }

        /// In each form of target: that of a whole URL is for this proxy whatever its `Host` says.
        @Test func noRequestWithoutATokenEndsTheProxy() async throws {
            try await scenario { stage in
                let own = "http://127.0.0.1:\(stage.proxy.port)"
                for path in Set(S08Endpoints.endpoints.map { "\($0.method.rawValue) \($0.path)" }).sorted() {
                    let words = path.split(separator: " ").map(String.init)
                    for target in [words[1], own + words[1], own + words[1] + "?url="] {
                        for host in ["", ":", "[", "a:", "\u{301}"] {
                            let client = try stage.player()
                            let fields = [
                                ("Host", host), ("Cookie", "; =;reelcache="), ("Reelcache-Dashboard", ""),
                                ("Authorization", ""), ("Sec-Fetch-Site", ""), ("Referer", ""), ("Accept", ";q="),
                            ]
                            try client.send(client.request(target, headers: fields, method: words[0]))
                            // The answer may have no end.
                            #expect(try client.readHead(method: words[0]).status < 500, "\(words[0]) \(target) \(host)")
                        }
                    }
                }
                #expect(try stage.player().get("/healthz").text == "ok\n")
            }
        }

        /// Nothing of the page is anywhere else.
        @Test func filesNameNoOtherPlace() throws {
            for file in DashboardFile.all {
                let text = String(decoding: file.bytes, as: UTF8.self)
                let places = text.matches(of: /https?:\/\/([a-z0-9.]+)/).map { String($0.1) }
                #expect(Set(places).isSubset(of: ["example.org", "www.w3.org"]), "\(file.name): \(places)")
                #expect(!text.contains("innerHTML") && !text.contains("eval("), "\(file.name)")
            }
        }

        @Test func sessionChangesWhatTheTokenDoes() async throws {
            try await scenario { stage in
                let session = try signIn(stage), body = "{\"max_active\": 2}"
                let fields = page(stage, session.fields)
                let changed = try stage.control("PATCH", "/downloads/settings", .nothing, headers: fields, body: body)
                #expect(changed.status == 200, "\(changed.text)")
                #expect(try stage.control("GET", "/resources?secrets=true", .nothing, headers: fields).status == 200)
                for (name, wrong) in [
                    ("no key", page(stage, [session.fields[0]])), ("no cookie", page(stage, [session.fields[1]])),
                    (
                        "wrong key",
                        page(stage, [session.fields[0], ("Reelcache-Dashboard", String(session.key.reversed()))])
                    ),
                    (
                        "other origin",
                        session.fields + [("Origin", "http://127.0.0.1:1"), ("Sec-Fetch-Site", "same-site")]
                    ),
                    (
                        "other site",
                        session.fields + [("Origin", "https://evil.example"), ("Sec-Fetch-Site", "cross-site")]
                    ),
                    ("sandbox", session.fields + [("Origin", "null"), ("Sec-Fetch-Site", "cross-site")]),
                    ("old browser, other origin", session.fields + [("Origin", "https://evil.example")]),
                    ("no origin", session.fields + [("Sec-Fetch-Site", "same-origin")]),
                ] {
                    let refused = try stage.control(
                        "PATCH", "/downloads/settings", .nothing, headers: wrong, body: body)
                    #expect(refused.status == 401, "\(name): \(refused.text)")
                }
                #expect(try stage.control("DELETE", "/dashboard/session", .nothing, headers: fields).status == 204)
                expectRefusal(
                    try stage.control("PATCH", "/downloads/settings", .nothing, headers: fields, body: body), 401)
            }
        }

        /// Entries that differ in nothing but a secret are told apart by whoever may see it; the entries hide it.
        @Test func listsTellTheirURLsToWhoMaySeeThem() async throws {
            try await scenario { stage in
                let paths = ["1", "2"].map { "/film.mp4?token=\($0)secret" }, urls = paths.map { stage.origin.url($0) }
                for (path, size) in zip(paths, [10, 20]) {
                    stage.origin.serve(path, Media(seed: 1, size: Int64(size)))
                    #expect(try stage.get(path).status == 200)
                }
                for list in ["resources?sort=name&urls=true", "feeds?urls=true"] {
                    expectRefusal(try stage.control("GET", "/" + list, .nothing), 401)
                }
                let answer = try stage.control("GET", "/resources?sort=name&urls=true")
                let listing = try answer.decoded(ResourceListing.self)
                let told = try #require(try answer.members["urls"] as? [String])
                #expect(Dictionary(zip(told, listing.resources.map(\.length))) { $1 } == [urls[0]: 10, urls[1]: 20])
                let masked = stage.origin.url("/film.mp4?token=***")
                #expect(listing.resources.map(\.urlText) == [masked, masked])
                #expect(try stage.control("GET", "/feeds?urls=true").members["urls"] as? [String] == [])
                expectRefusal(try stage.control("GET", "/resources?urls=true&url=\(urls[0])"), 400, naming: "urls")
            }
        }

        @Test func linkSignsInOnce() async throws {
            try await scenario { stage in
                #expect(try stage.control("POST", "/dashboard/link", .nothing).status == 401)
                let made = try stage.control("POST", "/dashboard/link").decoded(DashboardSession.Link.self)
                #expect(made.seconds == 60)
                let link = try #require(made.path.wholeMatch(of: /\/api\/#link=([0-9a-f]{32})/)).1
                let body = "{\"link\":\"\(link)\"}"
                let foreign = [("Origin", "https://evil.example"), ("Sec-Fetch-Site", "cross-site")]
                expectRefusal(
                    try stage.control("POST", "/dashboard/session", .nothing, headers: foreign, body: body), 403)
                let answer = try stage.control(
                    "POST", "/dashboard/session", .nothing, headers: page(stage), body: body)
                #expect(answer.status == 201)
                expectRefusal(
                    try stage.control("POST", "/dashboard/session", .nothing, headers: page(stage), body: body), 403,
                    naming: "reelcache dashboard")
            }
        }

        /// The page that the link opens can read it.
        @Test func linkOpensTheDashboardEvenWhereAnOriginHasTheRoot() async throws {
            try await mounted(at: "/", anyOrigin: true) { stage in
                let link = try stage.control("POST", "/dashboard/link").decoded(DashboardSession.Link.self)
                let path = link.path.prefix { $0 != "#" }
                let page = try stage.player().get(String(path), headers: Self.browser)
                #expect(page.status == 200 && page.text.contains("id=\"sign-in\""))
                #expect(stage.origin.requestCount("/vod/") == 0 && stage.origin.requestCount("/vod/api/") == 0)
            }
        }

        /// Servers on other ports of this host can set cookies, which come first if their paths are longer.
        @Test func furtherCookiesDoNotKeepTheOwnerOut() async throws {
            try await scenario { stage in
                let session = try signIn(stage)
                let name = session.cookie.prefix { $0 != "=" }
                for (before, status) in [(1, 200), (15, 200), (16, 401)] {
                    let others = Array(repeating: "\(name)=0123; ", count: before).joined()
                    let fields = [("Cookie", others + session.cookie), ("Reelcache-Dashboard", session.key)]
                    let answer = try stage.control(
                        "PATCH", "/downloads/settings", .nothing, headers: page(stage, fields),
                        body: "{\"max_active\":2}")
                    #expect(answer.status == status, "\(before) others")
                }
            }
        }

        /// However many wrong ones somebody sends, the owner is not locked out.
        @Test func wrongTokensAreSaid() async throws {
            try await scenario { stage in
                let body = "{\"token\":\"\(String(repeating: "0", count: 64))\"}"
                for _ in 0..<20 {
                    expectRefusal(
                        try stage.control("POST", "/dashboard/session", .nothing, headers: page(stage), body: body),
                        403, naming: "control-token")
                }
                expectRefusal(
                    try stage.control("POST", "/dashboard/session", .nothing, headers: page(stage), body: "{}"), 422)
                _ = try signIn(stage)
            }
        }

        @Test func filesAreForReading() async throws {
            try await scenario { stage in
                for method in ["POST", "DELETE"] {
                    let answer = try stage.player().get("/api/dashboard/app.js", method: method)
                    #expect(answer.status == 405 && answer.headers["Allow"] == "GET, HEAD, OPTIONS")
                }
                #expect(try stage.player().get("/api/dashboard/app.js", method: "OPTIONS").status == 204)
            }
        }

        @Test(
            arguments: [
                ("text/html", true), ("text/plain, Text/HTML;q=0.5", true), ("text/html;q=0", false),
                ("text/html ; q=0.000, */*", false), ("*/*", false), ("application/x-text/html", false),
            ])
        func pageIsForThoseWhoAcceptHTML(accept: String, isPage: Bool) async throws {
            try await scenario { stage in
                let answer = try stage.player().get("/", headers: [("Accept", accept)])
                #expect(answer.headers["Content-Type"]?.hasPrefix("text/html") == isPage)
            }
        }

        /// On the loopback the dashboard reads without a session; other pages do not.
        @Test func dashboardReadsFreelyOnThisMachine() async throws {
            try await scenario { stage in
                for path in ["/cache", "/resources", "/now", "/history?span=hour"] {
                    #expect(try stage.control("GET", path, .nothing, headers: page(stage)).status == 200, "\(path)")
                    for site in ["same-site", "cross-site"] {
                        let refused = try stage.control("GET", path, .nothing, headers: [("Sec-Fetch-Site", site)])
                        #expect(refused.status == 401, "\(path) \(site)")
                    }
                }
            }
        }

        @Test func addressOfAMediaURLIsTold() async throws {
            try await scenario { (stage) throws in
                let answer = try stage.control("GET", "/url?" + stage.parameter("/film.mp4?token=secret"), .nothing)
                #expect(
                    try answer.members["path"] as? String
                        == "/http/127.0.0.1:\(stage.origin.port)/film.mp4?token=secret")
                expectRefusal(try stage.control("GET", "/url?url=ftp%3A%2F%2Fexample.org", .nothing), 400)
                expectRefusal(try stage.control("GET", "/url", .nothing), 400, naming: "url")
            }
        }
    }
}
