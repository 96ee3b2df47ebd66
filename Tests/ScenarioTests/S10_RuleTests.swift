import CachePolicy
import DiskCache
import Reelcache
import Testing
import TestSupport

private let film = Media(seed: 10, size: 3_000_000)

extension Scenarios {
    @Suite struct S10Rules {
        // MARK: What a resource is found by

        // The token of a link expires each hour; the film stays the same.
        @Test func parametersThatARuleIgnoresMakeNoOtherResource() async throws {
            try await scenario {
                $0.configure { $0.rules = [.init { $0.ignoredQuery = .parameters(["token"]) }] }
            } _: { stage in
                stage.origin.serve("/film.mp4", film)
                expectWhole(try stage.get("/film.mp4?token=1&part=1"), film)
                let again = try stage.get("/film.mp4?part=1&token=2")
                expectWhole(again, film)
                #expect(again.isHit)
                #expect(!(try stage.get("/film.mp4?token=1&part=2")).isHit)
                // The origin is asked with all of them.
                #expect(
                    stage.origin.snapshot.requests.map(\.target) == [
                        "/film.mp4?token=1&part=1", "/film.mp4?token=1&part=2",
                    ])
            }
        }

        // What is missing is asked for with the token of now, as the one of then may have expired.
        @Test func gapIsAskedForAsTheOneWhoAsksDoes() async throws {
            try await scenario {
                $0.configure { $0.rules = [.init { $0.ignoredQuery = .all }] }
            } _: { stage in
                stage.origin.serve("/film.mp4", film)
                expectPart(try stage.get("/film.mp4?token=1", range: "bytes=0-99"), 0..<100, of: film)
                stage.origin.script("/film.mp4?token=1") { $0.status = 403 }
                expectPart(
                    try stage.get("/film.mp4?token=2", range: "bytes=2900000-2999999"), 2_900_000..<3_000_000, of: film)
                // One that is refused is refused: there is no other URL to try.
                stage.origin.script("/film.mp4?token=3") { $0.status = 403 }
                #expect(try stage.get("/film.mp4?token=3", range: "bytes=1000000-1000099").status == 403)
                #expect((1...3).map { stage.origin.requestCount("/film.mp4?token=\($0)") } == [1, 1, 1])
            }
        }

        @Test func severalHostsHaveOneResource() async throws {
            try await scenario {
                $0.allow = ["127.0.0.1", "localhost"]
                $0.configure {
                    $0.rules = [
                        .init(hosts: ["127.0.0.1", "localhost"], paths: ["/vod/*"]) {
                            $0.key = "http://cdn.example{path}"
                        }
                    ]
                }
            } _: { stage in
                let other = "/http/localhost:\(stage.origin.port)"
                for path in ["/vod/film.mp4", "/film.mp4"] { stage.origin.serve(path, film) }
                expectWhole(try stage.get("/vod/film.mp4"), film)
                #expect(try RawClient.get(port: stage.proxy.port, path: other + "/vod/film.mp4").isHit)
                expectWhole(try stage.get("/film.mp4"), film)
                #expect(try !RawClient.get(port: stage.proxy.port, path: other + "/film.mp4").isHit)
            }
        }

        @Test func rulesChangeForConnectionsThatAreOpen() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                let player = try stage.player()
                func get(_ path: String) throws -> RawClient.Response {
                    try player.send(player.request(stage.target(path)))
                    return try player.readResponse()
                }
                _ = try get("/film.mp4?a")
                #expect(try get("/film.mp4?a").isHit)
                // What was asked for before, and is known by another key now.
                try stage.proxy.cache.reconfigure { $0.rules = [.init { $0.ignoredQuery = .all }] }
                let moved = try get("/film.mp4?a")
                #expect(!moved.isHit)
                #expect(try get("/film.mp4?b").isHit)
                #expect(throws: ProxyError.self) {
                    try stage.proxy.cache.reconfigure { $0.rules = [.init { $0.key = "nonsense" }] }
                }
                #expect(try get("/film.mp4?a").isHit)
                try stage.proxy.cache.reconfigure { $0.rules = [] }
                #expect(try get("/film.mp4?a").isHit)
                let other = try get("/film.mp4?b")
                #expect(!other.isHit)
            }
        }

        // MARK: The administration

        // A person names a resource by any of its URLs, or by the key that a list shows.
        @Test(arguments: ["/film.mp4?token=9", "key"])
        func resourceIsNamedByAnyOfItsURLs(name: String) async throws {
            try await scenario {
                $0.configure {
                    $0.rules = [
                        .init {
                            ($0.ignoredQuery, $0.key) = (
                                .parameters(["token"]), "http://all.example/{host}{path}{query}"
                            )
                        }
                    ]
                }
            } _: { stage in
                stage.origin.serve("/film.mp4", film)
                _ = try stage.get("/film.mp4?token=1")
                let key = "http://all.example/127.0.0.1:\(stage.origin.port)/film.mp4"
                #expect(try stage.read(ResourceListing.self, "/resources").resources.map(\.urlText) == [key])
                let parameter = name == "key" ? "url=" + stage.percentEncoded(key) : stage.parameter(name)
                let detail = try stage.read(ResourceDetail.self, "/resources?\(parameter)")
                #expect(detail.resource.urlText == key && detail.resource.isComplete)
                #expect(
                    try stage.control("PATCH", "/resources?\(parameter)", body: "{\"pinned\": true}").decoded(
                        ResourceDetail.self
                    ).resource.isPinned)
                #expect(
                    try stage.control("DELETE", "/resources?\(parameter)").decoded(RemovalReport.self).resources == 1)
                expectRefusal(try stage.control("GET", "/resources?\(parameter)"), 404)
            }
        }

        @Test func importTakesItsKeyFromTheRules() async throws {
            try await scenario {
                $0.configure { $0.rules = [.init { $0.ignoredQuery = .all }] }
            } _: { stage in
                let bytes = film.bytes(0..<film.size)
                #expect(
                    try stage.control("PUT", "/resources?\(stage.parameter("/film.mp4?token=1"))", bytes: bytes).status
                        == 201)
                let response = try stage.get("/film.mp4?token=2")
                expectWhole(response, film)
                #expect(response.isHit && stage.origin.snapshot.requests.isEmpty)
            }
        }

        // MARK: Fields for the origin

        @Test(arguments: ["GET", "HEAD"])
        func fieldsOfARuleReplaceThePlayers(method: String) async throws {
            try await scenario {
                $0.configure {
                    $0.rules = [
                        .init(hosts: ["http://127.0.0.1:*"]) {
                            $0.headers = ["X-Key": "secret", "User-Agent": "rule/1"]
                        }
                    ]
                }
            } _: { stage in
                stage.origin.serve("/film.mp4", film)
                let headers = [("User-Agent", "player/1"), ("x-key", "guess"), ("X-Other", "stays")]
                #expect(try stage.get("/film.mp4", headers: headers, method: method).status == 200)
                let request = try #require(stage.origin.requests("/film.mp4").first)
                #expect(request.method == method)
                #expect(request.headers.all("X-Key") == ["secret"] && request.headers.all("User-Agent") == ["rule/1"])
                #expect(request.headers["X-Other"] == "stays")
            }
        }

        // The player's own would stand beside it, and the origin take either.
        @Test func whatARuleSaysOfCachesGoesAlone() async throws {
            try await scenario {
                $0.configure {
                    $0.rules = [.init(hosts: ["http://127.0.0.1:*"]) { $0.headers = ["Cache-Control": "max-age=60"] }]
                }
            } _: { stage in
                stage.origin.serve("/film.mp4", film)
                expectWhole(
                    try stage.get("/film.mp4", headers: [("cache-control", "no-cache"), ("Pragma", "no-cache")]), film)
                let request = try #require(stage.origin.requests("/film.mp4").first)
                #expect(
                    request.headers.all("Cache-Control") == ["max-age=60"]
                        && request.headers.all("Pragma") == ["no-cache"])
            }
        }

        // A page that has a player ask the same host over http does not learn what is for https.
        @Test func fieldsOfARuleWithoutASchemeDoNotGoOverHTTP() async throws {
            try await scenario {
                $0.configure {
                    $0.rules = [
                        .init(hosts: ["127.0.0.1:*"]) { ($0.headers, $0.ignoredQuery) = (["X-Key": "secret"], .all) }
                    ]
                }
            } _: { stage in
                stage.origin.serve("/film.mp4", film)
                expectWhole(try stage.get("/film.mp4?a"), film)
                #expect(try stage.get("/film.mp4?b").isHit)
                #expect(stage.origin.snapshot.requests.map { $0.headers["X-Key"] } == [nil])
            }
        }

        @Test(arguments: ["GET", "HEAD"])
        func fieldsOfARuleGoAlongNoRedirectToAnotherOrigin(method: String) async throws {
            try await scenario {
                $0.configure { $0.rules = [.init(hosts: ["http://127.0.0.1:*"]) { $0.headers = ["X-Key": "secret"] }] }
            } _: { stage in
                let other = try ScriptedOrigin()
                defer { other.stop() }
                other.serve("/real.mp4", film)
                stage.origin.script("/film.mp4") { $0.redirect = "/next.mp4" }
                stage.origin.script("/next.mp4") { $0.redirect = other.url("/real.mp4") }
                let first = try stage.get(
                    "/film.mp4", range: "bytes=0-99", headers: [("X-Key", "guess")], method: method)
                #expect(first.status == (method == "GET" ? 206 : 200))
                // A gap is asked for at the other one at once.
                if method == "GET" { expectWhole(try stage.get("/film.mp4", headers: [("X-Key", "guess")]), film) }
                #expect(stage.origin.snapshot.requests.map { $0.headers["X-Key"] } == ["secret", "secret"])
                #expect(
                    other.snapshot.requests.map { $0.headers["X-Key"] }
                        == Array(repeating: nil, count: method == "GET" ? 2 : 1))
            }
        }
    }
}
