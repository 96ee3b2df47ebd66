import CachePolicy
import Foundation
import HTTPModel
import Reelcache
import TestSupport
import Testing

private let film = Media(seed: 11, size: 700_000)

extension Stage {
    /// What a client of an HTTP proxy asks for.
    func absolute(_ path: String) -> String { origin.url(path) }

    /// Makes one request for a target in any form.
    func ask(
        _ target: String, range: String? = nil, headers: [(String, String)] = [], method: String = "GET",
        version: String = "1.1"
    ) throws -> RawClient.Response {
        try player().get(target, range: range, headers: headers, method: method, version: version)
    }
}

/// Plays a scenario in which `/tv/` of the proxy is `/vod/` of the origin.
func mounted(
    at path: String = "/tv/", anyOrigin: Bool = false, largestBody: Int64? = nil, rules: [Rule] = [],
    configure: @escaping @Sendable (inout ProxyConfiguration) -> Void = { _ in },
    _ story: @escaping @Sendable (Stage) throws -> Void
) async throws {
    // The mount needs the origin's port, which is known when it listens.
    let origin = try ScriptedOrigin()
    defer { origin.stop() }
    var policy = ProxyPolicy()
    policy.mounts = [Mount(path: path, origin: try OriginURL(url: origin.url("/vod/")))]
    policy.servesAnyOrigin = anyOrigin
    // These scenarios are not about lifetimes, which most of their films lack.
    policy.defaultTTL = 600
    policy.largestMountBody = largestBody
    policy.rules = rules
    try await scenario { [policy] setting in
        setting.tuning.policy = policy
        setting.origin = origin
        setting.configure(configure)
    } _: {
        try story($0)
    }
}

extension Scenarios {
    @Suite struct S11Forms {
        // MARK: Absolute form

        @Test func clientOfAnHTTPProxyIsServedFromTheCache() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                expectWhole(try stage.ask(stage.absolute("/film.mp4")), film)
                // The same resource as in path form.
                let again = try stage.get("/film.mp4")
                expectWhole(again, film)
                #expect(again.isHit)
                let part = try stage.ask(stage.absolute("/film.mp4"), range: "bytes=100-199")
                expectPart(part, 100..<200, of: film)
                #expect(part.isHit)
                let head = try stage.ask(stage.absolute("/film.mp4"), method: "HEAD")
                #expect(head.status == 200 && head.headers["Content-Length"] == "700000")
                #expect(stage.origin.requestCount("/film.mp4") == 1)
                #expect(stage.origin.requests("/film.mp4").first?.headers["Host"] == "127.0.0.1:\(stage.origin.port)")
            }
        }

        // RFC 9112 §3.2.2: the target counts, and Host does not. Nor is it DNS rebinding.
        @Test(arguments: ["127.0.0.1", "evil.example", ""])
        func hostOfAnAbsoluteTargetIsItsOwn(host: String) async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                expectWhole(try stage.ask(stage.absolute("/film.mp4"), headers: [("Host", host)]), film)
            }
        }

        // RFC 9112 §3.2.2
        @Test func absoluteTargetThatNamesTheProxyIsReadInOriginForm() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                for host in ["127.0.0.1", "localhost", "LOCALHOST"] {
                    let own = "http://\(host):\(stage.proxy.port)"
                    #expect(try stage.ask(own + "/healthz").text == "ok\n")
                    #expect(try stage.ask(own).text.hasPrefix("Reelcache."))
                    expectWhole(try stage.ask(own + stage.target("/film.mp4")), film)
                    #expect(try stage.ask(own + "/api/v1/resources").status == 200)
                    expectOneLine(try stage.ask(own + "/nothing"), status: 404)
                }
                // The same port of another address is another server.
                expectOneLine(try stage.ask("http://127.0.0.9:\(stage.proxy.port)/healthz"), status: 403)
                #expect(stage.origin.requestCount("/film.mp4") == 1)
            }
        }

        // RFC 9112 §9.3
        @Test func proxyClientOfHTTP10IsNotKept() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                let kept = try stage.player()
                expectWhole(
                    try kept.get(stage.target("/film.mp4"), headers: [("Connection", "keep-alive")], version: "1.0"),
                    film)
                expectWhole(
                    try kept.get(stage.target("/film.mp4"), headers: [("Connection", "keep-alive")], version: "1.0"),
                    film)
                let client = try stage.player()
                let response = try client.get(
                    stage.absolute("/film.mp4"), headers: [("Connection", "keep-alive")], version: "1.0")
                expectWhole(response, film)
                #expect(response.headers["Connection"] == "close")
                #expect(try client.isClosedByPeer())
            }
        }

        // RFC 9110 §9.3.6
        @Test func tunnelIsRefusedWithWhatToDoInstead() async throws {
            try await scenario { stage in
                for (target, instead) in [("example.org:443", "example.org"), ("example.org:8443", "example.org:8443")]
                {
                    let client = try stage.player()
                    let response = try client.get(target, headers: [("Host", target)], method: "CONNECT")
                    expectOneLine(response, status: 405)
                    #expect(
                        response.text.contains("http://127.0.0.1:\(stage.proxy.port)/https/\(instead)/PATH"),
                        "\(response.text)")
                    #expect(response.headers["Allow"] == "GET, HEAD, OPTIONS")
                    #expect(try client.isClosedByPeer())
                }
            }
        }

        @Test(arguments: ["POST", "PUT", "DELETE", "PROPFIND"])
        func unsafeMethodIsForMountsAlone(method: String) async throws {
            try await scenario { stage in
                for target in [stage.target("/film.mp4"), stage.absolute("/film.mp4")] {
                    let response = try stage.ask(target, headers: [("Content-Length", "0")], method: method)
                    expectOneLine(response, status: 405)
                    #expect(response.headers["Allow"] == "GET, HEAD, OPTIONS")
                }
                #expect(stage.origin.snapshot.connectionCount == 0)
            }
        }

        @Test func optionsOfTheServerItselfIsAnswered() async throws {
            try await scenario { stage in
                let response = try stage.ask("*", method: "OPTIONS")
                #expect(response.status == 204 && response.headers["Allow"] == "GET, HEAD, OPTIONS")
                expectOneLine(try stage.ask("*", headers: [("Host", "evil.example")], method: "OPTIONS"), status: 421)
            }
        }

        // MARK: Mounts

        @Test func mountIsServedFromTheCache() async throws {
            try await mounted { stage in
                stage.origin.serve("/vod/film.mp4", film)
                expectWhole(try stage.ask("/tv/film.mp4"), film)
                let part = try stage.ask("/tv/film.mp4", range: "bytes=-1000")
                expectPart(part, film.size - 1000..<film.size, of: film)
                #expect(part.isHit)
                let head = try stage.ask("/tv/film.mp4", method: "HEAD")
                #expect(head.status == 200 && head.headers["Content-Length"] == "700000")
                #expect(stage.origin.requestCount("/vod/film.mp4") == 1)
                #expect(try stage.ask("/tv/nothing.mp4").status == 404)
            }
        }

        @Test func gapOfAMountedFilmIsFetchedAlone() async throws {
            try await mounted { stage in
                stage.origin.serve("/vod/film.mp4", film)
                expectPart(try stage.ask("/tv/film.mp4", range: "bytes=300000-300099"), 300_000..<300_100, of: film)
                expectWhole(try stage.ask("/tv/film.mp4"), film)
                #expect(stage.origin.requests("/vod/film.mp4").first?.range?.lowerBound == 262_144)
            }
        }

        @Test(arguments: [
            "/tv/../secret", "/tv/%2e%2e/secret", "/tv/a/..%2f..%2fsecret", "/tv/..\\secret", "/tv/..;/secret",
        ])
        func nobodyClimbsOutOfAMount(target: String) async throws {
            try await mounted { stage in
                stage.origin.serve("/secret", film)
                for method in ["GET", "HEAD", "DELETE"] {
                    let response = try stage.ask(target, method: method)
                    #expect(response.status == 400)
                    if method == "GET" { expectOneLine(response) }
                }
                #expect(stage.origin.snapshot.connectionCount == 0)
            }
        }

        @Test func mountOfTheRootHidesNothingOfTheProxy() async throws {
            try await mounted(at: "/") { stage in
                stage.origin.serve("/vod/film.mp4", film)
                for path in ["/vod/healthz", "/vod/stats", "/vod/api/v1/cache", "/vod/"] {
                    stage.origin.serve(path, bytes: Array("the origin's".utf8))
                }
                expectWhole(try stage.ask("/film.mp4"), film)
                #expect(try stage.ask("/").text == "the origin's")
                #expect(try stage.ask("/healthz").text == "ok\n")
                #expect(try stage.ask("/stats").text.contains("\"uptime"))
                #expect(try stage.ask("/api/v1/cache").headers["Content-Type"] == "application/json")
                #expect(stage.origin.snapshot.requests.count == 2)
            }
        }

        @Test func mountsAloneMeansNoOtherOrigin() async throws {
            try await mounted { stage in
                stage.origin.serve("/vod/film.mp4", film)
                for target in [
                    stage.target("/vod/film.mp4"), "/http://127.0.0.1:\(stage.origin.port)/vod/film.mp4",
                    stage.absolute("/elsewhere.mp4"),
                ] {
                    let response = try stage.ask(target)
                    expectOneLine(response, status: 403)
                    #expect(response.text.contains("mount"))
                }
                #expect(stage.origin.snapshot.connectionCount == 0)
                expectWhole(try stage.ask("http://localhost:\(stage.proxy.port)/tv/film.mp4"), film)
                // A child of it names the origin.
                expectWhole(try stage.ask(stage.absolute("/vod/film.mp4")), film)
            }
        }

        @Test func mountAndPathFormShareTheCache() async throws {
            try await mounted(anyOrigin: true) { stage in
                stage.origin.serve("/vod/film.mp4", film)
                expectWhole(try stage.get("/vod/film.mp4"), film)
                #expect(try stage.ask("/tv/film.mp4").isHit)
            }
        }

        // MARK: What goes along

        @Test(arguments: [false, true])
        func cookiesGoWhereTheClientMeansTheOrigin(anyOrigin: Bool) async throws {
            try await mounted(anyOrigin: anyOrigin) { stage in
                for name in ["path", "absolute", "mount"] { stage.origin.serve("/vod/\(name)", bytes: [1, 2, 3]) }
                let headers = [("Cookie", "a=1"), ("Origin", "http://page.example")]
                _ = try stage.ask(stage.target("/vod/path"), headers: headers)
                _ = try stage.ask(stage.absolute("/vod/absolute"), headers: headers)
                _ = try stage.ask("/tv/mount", headers: headers)
                // A mount beside other origins has not the host to itself.
                for (name, isSent) in anyOrigin
                    ? [("path", false), ("absolute", true), ("mount", false)] : [("mount", true)]
                {
                    let sent = try #require(stage.origin.requests("/vod/\(name)").first?.headers)
                    #expect(sent["Cookie"] == (isSent ? "a=1" : nil), "\(name)")
                    #expect(sent["Origin"] == (name == "path" ? nil : "http://page.example"), "\(name)")
                }
            }
        }

        @Test(arguments: [false, true])
        func cookiesOfOtherMethodsDoTheSame(anyOrigin: Bool) async throws {
            try await mounted(anyOrigin: anyOrigin) { stage in
                stage.origin.script("/vod/a") { ($0.status, $0.headers) = (200, [("Set-Cookie", "b=2")]) }
                let response = try stage.send("POST", "/tv/a", [1], headers: [("Cookie", "a=1")])
                #expect(response.status == 200)
                #expect(response.headers["Set-Cookie"] == (anyOrigin ? nil : "b=2"))
                #expect(stage.origin.requests("/vod/a").first?.headers["Cookie"] == (anyOrigin ? nil : "a=1"))
            }
        }

        // Two viewers of one mount, of whom each is somebody else to the origin.
        @Test func whatACookieOpenedIsForWhoeverHasIt() async throws {
            try await mounted { stage in
                stage.origin.serve("/vod/film.mp4", film)
                stage.origin.script("/vod/film.mp4") { $0.headers = [("Cache-Control", "max-age=1000")] }
                let viewers = [[("Cookie", "id=1")], [("Cookie", "id=2")], []]
                for headers in viewers {
                    let response = try stage.ask("/tv/film.mp4", headers: headers)
                    expectWhole(response, film)
                    #expect(!response.isHit)
                }
                for headers in viewers { #expect(try stage.ask("/tv/film.mp4", headers: headers).isHit) }
                #expect(stage.origin.requests("/vod/film.mp4").map { $0.headers["Cookie"] } == ["id=1", "id=2", nil])
                // What is public is for both.
                stage.origin.serve("/vod/trailer.mp4", film)
                stage.origin.script("/vod/trailer.mp4") { $0.headers = [("Cache-Control", "public, max-age=1000")] }
                for headers in viewers { expectWhole(try stage.ask("/tv/trailer.mp4", headers: headers), film) }
                #expect(stage.origin.requestCount("/vod/trailer.mp4") == 1)
            }
        }

        @Test func pathFormTellsNoOriginOfThePageOrOfTheWayHere() async throws {
            try await mounted(anyOrigin: true) { stage in
                for name in ["path", "absolute", "mount"] { stage.origin.serve("/vod/\(name)", bytes: [1, 2, 3]) }
                let names = [
                    "Referer", "Forwarded", "X-Forwarded-For", "x-forwarded-host", "X-HTTP-Method-Override",
                    "X-HTTP-Method", "X-Original-URL",
                    "X-Rewrite-URL",
                ]
                let headers = names.map { ($0, "1") } + [("X-Player", "1")]
                _ = try stage.ask(stage.target("/vod/path"), headers: headers)
                _ = try stage.ask(stage.absolute("/vod/absolute"), headers: headers)
                _ = try stage.ask("/tv/mount", headers: headers)
                for name in ["path", "absolute", "mount"] {
                    let sent = try #require(stage.origin.requests("/vod/\(name)").first?.headers)
                    // What Referer says is no URL here: docs/dev/http.md tells what becomes of one.
                    let overrides = ["X-HTTP-Method-Override", "X-HTTP-Method"]
                    let expected = name == "path" ? [] : name == "mount" ? overrides : ["Referer"] + overrides
                    #expect(names.filter { sent[$0] == "1" } == expected)
                    #expect(sent["X-Player"] == "1")
                }
            }
        }

        /// The gap is fetched from where the redirect led, which is no place for the first origin's cookies.
        @Test func cookiesDoNotFollowARedirectToAnotherOrigin() async throws {
            try await scenario { setting in
                setting.allow = ["127.0.0.1", "localhost"]
            } _: { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/moved.mp4") { $0.redirect = stage.origin.url("/film.mp4", host: "localhost") }
                for range in ["bytes=0-99", "bytes=500000-500099"] {
                    let part = try stage.ask(stage.absolute("/moved.mp4"), range: range, headers: [("Cookie", "a=1")])
                    #expect(part.status == 206)
                }
                #expect(stage.origin.requests("/moved.mp4").first?.headers["Cookie"] == "a=1")
                #expect(stage.origin.requestCount("/film.mp4") == 2)
                #expect(stage.origin.requests("/film.mp4").allSatisfy { $0.headers["Cookie"] == nil })
            }
        }

        // RFC 9110 §7.6.3
        @Test func requestTellsTheOriginWhomItPassed() async throws {
            try await mounted(anyOrigin: true) { stage in
                for name in ["path", "absolute", "mount"] { stage.origin.serve("/vod/\(name)", bytes: [1, 2, 3]) }
                let headers = [("Via", "1.0 fred, 1.1 other (x)")]
                let path = try stage.ask(stage.target("/vod/path"), headers: headers)
                let absolute = try stage.ask(stage.absolute("/vod/absolute"), headers: headers)
                _ = try stage.ask("/tv/mount")
                #expect(
                    stage.origin.requests("/vod/path").first?.headers["Via"]?.hasPrefix(
                        "1.0 fred, 1.1 other (x), 1.1 reelcache-") == true)
                #expect(
                    stage.origin.requests("/vod/absolute").first?.headers["Via"]?.hasPrefix(
                        "1.0 fred, 1.1 other (x), 1.1 reelcache-") == true)
                #expect(stage.origin.requests("/vod/mount").first?.headers["Via"]?.hasPrefix("1.1 reelcache-") == true)
                #expect(absolute.headers["Via"]?.hasPrefix("1.1 reelcache-") == true)
                #expect(path.headers["Via"] == nil)
            }
        }

        @Test func requestThatLeadsBackHereIsALoop() async throws {
            try await scenario { stage in
                let own = "/http/127.0.0.1:\(stage.proxy.port)"
                let response = try stage.ask(own + stage.target("/film.mp4"))
                expectOneLine(response, status: 508)
                #expect(response.text.contains("this proxy itself"))
                #expect(stage.origin.snapshot.connectionCount == 0)
            }
        }

        // MARK: Pages and scripts of origins

        private static let site = [
            ("Content-Security-Policy", "script-src *"), ("Service-Worker-Allowed", "/"), ("Clear-Site-Data", "\"*\""),
            ("Alt-Svc", "h3=\":443\""),
            ("Refresh", "0; url=/stats"), ("Strict-Transport-Security", "max-age=1"), ("NEL", "{}"),
            ("Report-To", "{}"), ("Public-Key-Pins", "x"),
            ("X-Content-Type-Options", "none"),
        ]

        /// Of each way to an answer.
        private static func answers(_ stage: Stage, _ target: (String) -> String) throws -> [(
            String, RawClient.Response
        )] {
            for name in ["page", "other", "gone"] {
                stage.origin.serve("/vod/\(name)", film, contentType: "text/html")
                stage.origin.script("/vod/\(name)") { $0.headers = Self.site }
            }
            stage.origin.script("/vod/gone") { ($0.status, $0.body) = (404, Array("<script>".utf8)) }
            let page = target("/vod/page")
            return [
                ("miss", try stage.ask(page)), ("hit", try stage.ask(page)),
                ("part", try stage.ask(page, range: "bytes=5-9")),
                ("parts", try stage.ask(page, range: "bytes=5-9,300-309")),
                ("known", try stage.ask(page, headers: [("If-None-Match", "\"v1\"")])),
                ("head", try stage.ask(page, method: "HEAD")),
                ("origin's head", try stage.ask(target("/vod/other"), method: "HEAD")),
                ("error", try stage.ask(target("/vod/gone"))),
                ("head of the error", try stage.ask(target("/vod/gone"), method: "HEAD")),
            ]
        }

        private static let statuses = [200, 200, 206, 206, 304, 200, 200, 404, 404]

        // A script of any site would otherwise be one of the proxy's own.
        @Test func pathFormConfinesWhatOriginsServe() async throws {
            try await scenario { stage in
                let answers = try Self.answers(stage) { stage.target($0) }
                #expect(answers.map(\.1.status) == Self.statuses)
                for (way, response) in answers {
                    #expect(response.headers.all("Content-Security-Policy") == ["sandbox"], "\(way)")
                    #expect(response.headers.all("X-Content-Type-Options") == ["nosniff"], "\(way)")
                    for (name, _) in Self.site.dropFirst().dropLast() {
                        #expect(response.headers[name] == nil, "\(way): \(name)")
                    }
                }
            }
        }

        @Test func originSpeaksForItsSiteInTheOtherForms() async throws {
            for isMounted in [false, true] {
                try await mounted(anyOrigin: !isMounted) { stage in
                    let answers = try Self.answers(stage) {
                        isMounted ? $0.replacingOccurrences(of: "/vod/", with: "/tv/") : stage.absolute($0)
                    }
                    #expect(answers.map(\.1.status) == Self.statuses)
                    for (way, response) in answers where response.status != 304 {
                        for (name, value) in Self.site {
                            #expect(response.headers.all(name) == [value], "\(way): \(name)")
                        }
                    }
                }
            }
        }

        @Test func noServiceWorkerIsServedInPathForm() async throws {
            try await mounted(anyOrigin: true) { stage in
                stage.origin.serve("/vod/worker.js", film, contentType: "text/javascript")
                let headers = [("Service-Worker", "script")]
                for _ in 0..<2 {
                    expectOneLine(try stage.ask(stage.target("/vod/worker.js"), headers: headers), status: 403)
                    #expect(
                        try stage.ask(stage.target("/vod/worker.js"), headers: headers, method: "HEAD").status == 403)
                    expectWhole(try stage.ask(stage.target("/vod/worker.js")), film)
                }
                expectWhole(try stage.ask("/tv/worker.js", headers: headers), film)
                #expect(stage.origin.requestCount("/vod/worker.js") == 1)
            }
        }

        /// As a rule adds the operator's credentials.
        @Test func pageOfAnotherSiteChangesNothingWhereARuleAddsFields() async throws {
            var rule = ResourceRule(hosts: ["http://127.0.0.1:*"])
            rule.headers = ["Authorization": "Bearer x"]
            for isRuled in [false, true] {
                try await mounted(
                    rules: isRuled ? [try Rule(rule)] : []
                ) { stage in
                    stage.origin.script("/vod/a") { $0.status = 201 }
                    let foreign = [
                        [("Origin", "http://evil.example")], [("Origin", "null")], [("Origin", "http://127.0.0.1:1")],
                        [("Sec-Fetch-Site", "cross-site")],
                        [("Origin", "http://127.0.0.1:\(stage.proxy.port).evil.example")],
                    ]
                    let own = [
                        [("Origin", "http://127.0.0.1:\(stage.proxy.port)"), ("Sec-Fetch-Site", "same-origin")], [],
                    ]
                    for method in ["POST", "DELETE"] {
                        for headers in foreign {
                            let response = try stage.send(method, "/tv/a", [1], headers: headers)
                            #expect(response.status == (isRuled ? 403 : 201), "\(method) \(headers)")
                            if isRuled { expectOneLine(response) }
                        }
                        for headers in own {
                            #expect(try stage.send(method, "/tv/a", [1], headers: headers).status == 201)
                        }
                    }
                    #expect(stage.origin.requestCount("/vod/a") == (isRuled ? 4 : 14))
                }
            }
        }

        // MARK: Who may read it (CORS)

        @Test func privateMediaIsForPagesOfAllowedHosts() async throws {
            try await scenario { setting in
                setting.allow = ["127.0.0.1", "nas.local"]
            } _: { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/film.mp4") {
                    $0.headers = [("Access-Control-Allow-Origin", "*"), ("Access-Control-Allow-Credentials", "true")]
                }
                for origin in ["http://evil.example", "null", "http://127.0.0.1:8000", "http://nas.local"] {
                    let isAllowed = origin.hasPrefix("http://127") || origin.hasPrefix("http://nas")
                    for method in ["GET", "HEAD"] {
                        let response = try stage.ask(
                            stage.target("/film.mp4"), headers: [("Origin", origin)], method: method)
                        #expect(response.status == 200)
                        #expect(
                            response.headers["Access-Control-Allow-Origin"] == (isAllowed ? origin : nil),
                            "\(method) \(origin)")
                        #expect(response.headers["Access-Control-Allow-Credentials"] == nil)
                        #expect(response.headers["Vary"] == "Origin")
                        #expect(response.headers["Cross-Origin-Resource-Policy"] == (isAllowed ? nil : "same-origin"))
                    }
                }
                // Nothing is cached: the same from the origin's own HEAD.
                stage.origin.serve("/other.mp4", film)
                let head = try stage.ask(
                    stage.target("/other.mp4"), headers: [("Origin", "http://evil.example")], method: "HEAD")
                #expect(head.headers["Access-Control-Allow-Origin"] == nil && head.headers["Vary"] == "Origin")
            }
        }

        @Test func originSaysItselfWhoMayReadInTheOtherForms() async throws {
            try await mounted(anyOrigin: true) { stage in
                stage.origin.serve("/vod/film.mp4", film)
                stage.origin.script("/vod/film.mp4") {
                    $0.headers = [
                        ("Access-Control-Allow-Origin", "https://page.example"), ("Timing-Allow-Origin", "*"),
                    ]
                }
                for target in ["/tv/film.mp4", stage.absolute("/vod/film.mp4")] {
                    for method in ["HEAD", "GET", "HEAD"] {
                        let response = try stage.ask(
                            target, headers: [("Origin", "https://page.example")], method: method)
                        #expect(response.headers.all("Access-Control-Allow-Origin") == ["https://page.example"])
                        #expect(response.headers["Timing-Allow-Origin"] == "*")
                    }
                }
            }
        }

        @Test func preflightIsAnsweredByTheProxy() async throws {
            var rule = ResourceRule(hosts: ["paid.example"])
            rule.headers = ["Authorization": "Bearer x"]
            try await mounted(anyOrigin: true, rules: [try Rule(rule)]) { stage in
                let asked = [
                    ("Origin", "https://page.example"), ("Access-Control-Request-Method", "GET"),
                    ("Access-Control-Request-Headers", "range,x-player"),
                    ("Access-Control-Request-Private-Network", "true"),
                ]
                let response = try stage.ask("/https/media.example/film.mp4", headers: asked, method: "OPTIONS")
                #expect(response.status == 204)
                #expect(response.headers["Access-Control-Allow-Origin"] == "*")
                #expect(response.headers["Access-Control-Allow-Methods"] == "GET, HEAD, OPTIONS")
                #expect(response.headers["Access-Control-Allow-Headers"]?.hasPrefix("Range, ") == true)
                #expect(response.headers["Access-Control-Allow-Headers"]?.contains("x-player") == false)
                #expect(response.headers["Access-Control-Allow-Private-Network"] == nil)
                #expect(
                    try stage.ask("/https/media.example/film.mp4", method: "OPTIONS").headers[
                        "Access-Control-Allow-Origin"] == nil)
                for target in [stage.target("/film.mp4"), "/https/paid.example/film.mp4"] {
                    let refused = try stage.ask(target, headers: asked, method: "OPTIONS")
                    #expect(refused.status == 204)
                    #expect(!refused.headers.description.contains("Access-Control-Allow-"), "\(target)")
                    let allowed = try stage.ask(
                        target, headers: [("Origin", "http://127.0.0.1:8000")] + asked.dropFirst(), method: "OPTIONS")
                    #expect(allowed.headers["Access-Control-Allow-Origin"] == "http://127.0.0.1:8000")
                }
                #expect(stage.origin.snapshot.connectionCount == 0)
            }
        }
    }
}
