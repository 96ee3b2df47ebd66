import CacheFill
import Foundation
import HTTPModel
import Reelcache
import TestSupport
import Testing
import Upstream

private let film = Media(seed: 30, size: 100_000)

extension Scenarios {
    /// A proxy behind a balancer or web server: for whom it takes its clients.
    @Suite struct S30Balancer {
        private static let playlist = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n/b/1.ts\n#EXT-X-ENDLIST\n"

        private func balanced(
            trusted: [String] = ["127.0.0.1"],
            _ change: @escaping @Sendable (inout ProxyConfiguration) -> Void = { _ in },
            _ story: @escaping @Sendable (Stage) throws -> Void
        ) async throws {
            try await scenario { setting in
                setting.configure {
                    $0.trusted = trusted
                    $0.names = ["tv.example"]
                    change(&$0)
                }
            } _: { stage in
                stage.origin.serve(
                    "/a/film.m3u8", bytes: Array(Self.playlist.utf8), contentType: "application/vnd.apple.mpegurl")
                stage.origin.serve("/film.mp4", film)
                try story(stage)
            }
        }

        /// The address that the playlist has for its segment.
        private static func address(_ stage: Stage, _ headers: [(String, String)]) throws -> String? {
            let response = try stage.get("/a/film.m3u8", headers: headers)
            return response.text.split(separator: "\n").first { $0.hasSuffix("1.ts") }.map(String.init)
        }

        private static func expected(_ stage: Stage, _ own: String) -> String {
            "\(own)/http/127.0.0.1:\(stage.origin.port)/b/1.ts"
        }

        @Test func playlistsHaveTheSchemeHostAndPortThatTheClientUsed() async throws {
            try await balanced { stage in
                let host = ("Host", "tv.example"), own = "https://tv.example"
                for (fields, expected) in [
                    ([host, ("X-Forwarded-Proto", "https")], own),
                    ([host, ("Forwarded", "for=10.0.0.1;proto=https")], own),
                    ([host], "http://tv.example"),
                    ([host, ("X-Forwarded-Proto", "https"), ("X-Forwarded-Port", "443")], own),
                    ([host, ("X-Forwarded-Proto", "https"), ("X-Forwarded-Port", "8443")], own + ":8443"),
                    ([("Host", "tv.example:80"), ("X-Forwarded-Port", "8080")], "http://tv.example"),
                    ([("X-Forwarded-Proto", "https"), ("X-Forwarded-Host", "tv.example")], own),
                    ([("X-Forwarded-Host", "tv.example:8080")], own.replacing("https", with: "http") + ":8080"),
                    ([("Forwarded", "for=10.0.0.1;proto=https;host=\"tv.example:8443\"")], own + ":8443"),
                    ([("Forwarded", "proto=https;host=\"[2001:db8::1]:8443\"")], "https://[2001:db8::1]:8443"),
                ] {
                    try #expect(Self.address(stage, fields) == Self.expected(stage, expected), "\(fields)")
                }
            }
        }

        @Test func fieldsOfAnybodyElseMeanNothing() async throws {
            try await balanced(trusted: ["192.0.2.1"]) { stage in
                let fields = [
                    ("Host", "tv.example"), ("X-Forwarded-Proto", "https"), ("X-Forwarded-Host", "evil.example"),
                    ("X-Forwarded-Port", "9"), ("Forwarded", "proto=https;for=\"_"),
                ]
                try #expect(Self.address(stage, fields) == Self.expected(stage, "http://tv.example"))
            }
        }

        /// Its origin would build links from them, and those be cached for everybody.
        @Test(arguments: [true, false])
        func originGetsThemFromATrustedProxyAlone(isTrusted: Bool) async throws {
            let fields = [
                ("Forwarded", "for=192.0.2.7;proto=https"), ("X-Forwarded-For", "192.0.2.7"),
                ("X-Forwarded-Host", "tv.example"),
                ("X-Forwarded-Prefix", "/x"), ("X-Original-URL", "/admin"), ("X-Rewrite-URL", "/admin"),
                ("X-Real-IP", "192.0.2.7"), ("True-Client-IP", "192.0.2.7"), ("X-Host", "tv.example"),
                ("X-Emby-Token", "1"),
            ]
            let origin = try ScriptedOrigin()
            defer { origin.stop() }
            let site = origin.url("/")
            try await scenario { setting in
                setting.origin = origin
                setting.configure {
                    ($0.trusted, $0.names, $0.mounts) = (
                        [isTrusted ? "127.0.0.1" : "192.0.2.1"], ["tv.example"], ["/": site]
                    )
                }
            } _: { stage in
                stage.origin.serve("/film.mp4", film)
                let absolute = stage.origin.url("/film.mp4")
                let client = try stage.player()
                for (method, target) in [
                    ("HEAD", "/film.mp4"), ("GET", "/film.mp4"), ("GET", absolute + "?a"), ("OPTIONS", "/film.mp4"),
                    ("POST", "/film.mp4"),
                ] {
                    let body = method == "POST" ? [("Content-Length", "1")] : []
                    try client.send(
                        client.request(target, headers: fields + body, method: method) + (body.isEmpty ? "" : "x"))
                    _ = try client.readResponse(method: method)
                    let asked = try #require(stage.origin.requests("/film.mp4").last)
                    #expect(asked.method == method)
                    for (name, value) in fields {
                        let isPassed = isTrusted || name == "X-Emby-Token"
                        #expect(asked.headers[name] == (isPassed ? value : nil), "\(method) \(target): \(name)")
                    }
                }
            }
        }

        /// A node trusts its balancers: what they leave in reaches the origin.
        @Test(arguments: ["haproxy.cfg", "nginx.conf"])
        func balancersOfAClusterRemoveThemAll(file: String) throws {
            let path = URL(fileURLWithPath: #filePath + "/../../../config/cluster/\(file)").standardized.path
            let text = try String(contentsOfFile: path, encoding: .utf8).lowercased()
            let words = Set(text.components(separatedBy: CharacterSet(charactersIn: " \n()|")))
            for name in HeaderFields.ofForwarding.all { #expect(words.contains(name), "\(name)") }
        }

        /// A page whose own name leads here could state any field (DNS rebinding).
        @Test func bothNamesHaveToBeTheProxysOwn() async throws {
            try await balanced { stage in
                for fields in [
                    [("Host", "evil.example"), ("X-Forwarded-Host", "tv.example")],
                    [("Host", "tv.example"), ("X-Forwarded-Host", "evil.example")],
                    [("Host", "tv.example"), ("Forwarded", "host=\"tv.example/../\"")],
                    [("Forwarded", "host=evil.example")],
                    [("Host", "tv.example"), ("X-Forwarded-Host", "evil.example#.localhost")],
                ] {
                    try #expect(stage.get("/a/film.m3u8", headers: fields).status == 421, "\(fields)")
                }
            }
        }

        @Test func forgedFieldIsRefusedInOneLineAndNobodyElseIsAffected() async throws {
            try await balanced { stage in
                let client = try stage.player()
                let forged = [("Forwarded", "for=127.0.0.1"), ("X-Forwarded-For", "192.0.2.1")]
                let refused = try client.get(stage.target("/film.mp4"), headers: forged)
                #expect(refused.status == 400 && refused.text.filter { $0 == "\n" }.count == 1)
                expectWhole(
                    try client.get(stage.target("/film.mp4"), headers: [("X-Forwarded-For", "192.0.2.2")]), film)
            }
        }

        @Test func logNamesTheClient() async throws {
            let directory = try TemporaryDirectory()
            let path = directory.file("access.log")
            try await balanced(trusted: ["127.0.0.1"]) {
                $0.accessLog = path
                $0.expectsProxyHeader = true
                $0.maxRequestsPerClient = "2/h"
            } _: { stage in
                let client = try stage.player()
                let request = client.request(stage.target("/film.mp4"))
                try client.send("PROXY TCP6 2001:db8::1 2001:db8::2 4660 80\r\n" + request + request + request)
                for status in [200, 200, 429] { try #expect(client.readResponse().status == status) }
                let other = try stage.player()
                // A further balancer between, which speaks HTTP.
                let forwarded = other.request(stage.target("/film.mp4"), headers: [("X-Forwarded-For", "192.0.2.7")])
                try other.send("PROXY TCP4 127.0.0.1 127.0.0.1 1 80\r\n" + forwarded)
                try #expect(other.readResponse().status == 200)
                try stage.stop()
                try stage.start()
            }
            let lines = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n").map {
                try #require(JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
            }
            // What a limit refuses has no line.
            #expect(
                lines.compactMap { $0["client"] as? String }.sorted()
                    == ["192.0.2.7", "[2001:db8::1]:4660", "[2001:db8::1]:4660"])
        }

        /// An IPv4 client arrives as `::ffff:127.0.0.1` at a socket of both families.
        @Test func clientsOfBothFamiliesAreWhoTheyAre() async throws {
            let directory = try TemporaryDirectory()
            let path = directory.file("access.log")
            try await balanced {
                ($0.listen, $0.accessLog) = (":0", path)
            } _: { stage in
                for host in ["127.0.0.1", "[::1]"] {
                    var request = BlockingFetch("http://\(host):\(stage.proxy.port)/nothing")
                    request.fields.append("X-Forwarded-For", "192.0.2.7")
                    try #expect(request.bytes().status == 404)
                }
                // Without `Host`, a playlist has the address that the client connected to.
                let client = try stage.player()
                try client.send("GET \(stage.target("/a/film.m3u8")) HTTP/1.0\r\n\r\n")
                try #expect(client.readResponse().text.contains("\nhttp://127.0.0.1:\(stage.proxy.port)/http/"))
                try stage.stop()
                try stage.start()
            }
            let clients = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n").map {
                let line = try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any]
                return try #require(line?["client"] as? String).replacing(/:\d+$/, with: "")
            }
            #expect(clients.sorted() == ["127.0.0.1", "192.0.2.7", "[::1]"])
        }

        // MARK: The control interface

        @Test func behindABalancerReadingNeedsTheToken() async throws {
            try await balanced { stage in
                for fields in [[], [("X-Forwarded-For", "127.0.0.1")], [("Forwarded", "for=192.0.2.1")]] {
                    for place in ["/stats", "/metrics", "/api/v1/cache"] {
                        try #expect(stage.ask(place, headers: fields).status == 401, "\(place) \(fields)")
                        try #expect(stage.ask(place, headers: fields + stage.authorization()).status == 200)
                    }
                }
                try #expect(stage.ask("/healthz").text == "ok\n")
                try #expect(RunningProxy(cacheDirectory: stage.cache)?.get("/stats").isEmpty == false)
            }
        }

        /// One that nobody has configured: its clients may be anywhere.
        @Test func forwardedRequestIsNotOneOfThisMachine() async throws {
            try await scenario { stage in
                try #expect(stage.ask("/stats").status == 200)
                for field in [("X-Forwarded-For", "127.0.0.1"), ("Forwarded", "proto=https")] {
                    try #expect(stage.ask("/stats", headers: [field]).status == 401)
                }
            }
        }

        @Test func expectingHeadersFromNobodyIsRefusedAtTheStart() async throws {
            do {
                try await scenario {
                    $0.configure { $0.expectsProxyHeader = true }
                } _: { _ in
                }
                Issue.record("it started")
            } catch let error as ProxyError {
                #expect(error.description.contains("add the balancer's address to trusted"))
            }
        }

        // MARK: Draining

        @Test func healthCheckSaysThatTheProxyDrainsWhileItStillServes() async throws {
            try await balanced { stage in
                stage.origin.script("/film.mp4") { $0.stallAfter = 50_000 }
                let (player, _) = try stage.playerOf("/film.mp4")
                var received = try player.readBody(exactly: 50_000)
                try #expect(stage.ask("/healthz/balancer").text == "ok\n")
                let proxy = stage.proxy
                let stopping = try Background { try proxy.stop(grace: .seconds(600), quiet: .zero) }
                try Self.waitUntilDraining(stage)
                let health = try stage.ask("/healthz")
                #expect(health.status == 503 && health.text == "draining\n")
                // HAProxy must not take it for one that is down: it would end its sessions.
                #expect(try stage.ask("/healthz/balancer").status == 404)
                let part = try stage.get("/film.mp4", range: "bytes=0-9")
                expectPart(part, 0..<10, of: film)
                #expect(part.headers["Connection"] == "close" && !stopping.isFinished)
                stage.origin.release("/film.mp4")
                received += try player.readBody(exactly: 50_000)
                #expect(film.difference(received, from: 0..<film.size) == nil)
                try stopping.value()
            }
        }

        private static func waitUntilDraining(_ stage: Stage) throws {
            try eventually("draining") { try stage.ask("/healthz").status == 503 }
        }
    }
}
