import Foundation
import Reelcache
import TestSupport
import Testing

private let film = Media(seed: 12, size: 300_000)

extension Scenarios {
    @Suite struct S08AccessLog {
        private let directory: TemporaryDirectory

        init() throws { directory = try TemporaryDirectory() }

        private var path: String { directory.file("access.log") }

        private func lines() throws -> [[String: Any]] {
            try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n").map {
                try #require(JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
            }
        }

        /// Plays a scenario with a log, and reads it when the proxy has stopped: in no order, since a line is written
        /// when its response has ended, by the loop that served it.
        private func logged(_ story: @escaping @Sendable (Stage) throws -> Void) async throws -> [[String: Any]] {
            let path = path
            try await scenario {
                $0.configure { $0.accessLog = path }
            } _: { stage in
                stage.origin.serve("/film.mp4", film)
                try story(stage)
                try stage.stop()
                try stage.start()
            }
            return try lines()
        }

        @Test func eachRequestHasALine() async throws {
            let lines = try await logged { stage in
                expectWhole(try stage.get("/film.mp4", headers: [("User-Agent", "Player/1")]), film)
                expectPart(try stage.get("/film.mp4", range: "bytes=100-299"), 100..<300, of: film)
                #expect(try stage.ask("/nothing").status == 404)
            }
            try #require(lines.count == 3)
            func line(of status: Int) throws -> [String: Any] {
                try #require(lines.first { $0["status"] as? Int == status })
            }
            let (miss, hit, page) = (try line(of: 200), try line(of: 206), try line(of: 404))
            #expect(
                (miss["url"] as? String)?.hasSuffix("/film.mp4") == true
                    && (miss["url"] as? String)?.hasPrefix("http://127.0.0.1:") == true)
            #expect(miss["method"] as? String == "GET" && miss["status"] as? Int == 200 && miss["range"] == nil)
            #expect(
                miss["bytes"] as? Int == 300_000 && miss["origin_bytes"] as? Int == 300_000
                    && miss["cache_bytes"] as? Int == 0)
            #expect(miss["player"] as? String == "Player/1" && miss["complete"] as? Bool == true)
            #expect((miss["cache_status"] as? String)?.contains("fwd=uri-miss") == true)
            #expect((miss["client"] as? String)?.hasPrefix("127.0.0.1:") == true)
            #expect((miss["time"] as? String)?.wholeMatch(of: /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/) != nil)
            #expect(try #require(miss["first_byte_ms"] as? Double) <= #require(miss["ms"] as? Double))
            #expect(hit["range"] as? String == "bytes=100-299" && hit["status"] as? Int == 206)
            #expect(
                hit["bytes"] as? Int == 200 && hit["origin_bytes"] as? Int == 0 && hit["cache_bytes"] as? Int == 200)
            #expect((hit["cache_status"] as? String)?.contains("hit") == true && hit["player"] == nil)
            #expect(page["url"] as? String == "/nothing" && page["status"] as? Int == 404)
        }

        /// Those of the text that was sent, not of the one that was read for it.
        @Test(arguments: ["application/vnd.apple.mpegurl", "text/plain"], ["/1.ts", "1.ts"])
        func aPlaylistHasItsBytes(type: String, segment: String) async throws {
            let lines = try await logged { stage in
                stage.origin.serve(
                    "/a", bytes: Array("#EXTM3U\n#EXTINF:2,\n\(segment)\n#EXT-X-ENDLIST\n".utf8), etag: "\"1\"",
                    contentType: type)
                stage.origin.script("/a") { $0.headers = [("Cache-Control", "max-age=600")] }
                var sent = (cached: 0, fetched: try stage.get("/a").body.count)
                sent.cached += try stage.get("/a").body.count
                sent.cached += try stage.get("/a", headers: [("Cache-Control", "no-cache")]).body.count
                let stats = try stage.stats
                #expect(stats[\.bytesFromCache] == sent.cached && stats[\.bytesFromUpstream] == sent.fetched)
                // It is read anew.
                try stage.restart()
                let again = try stage.get("/a").body.count
                let later = try stage.stats
                #expect(later[\.bytesFromCache] == again && later[\.bytesFromUpstream] == 0)
            }
            func bytes(_ status: String, _ name: String) -> [Int?] {
                lines.filter { ($0["cache_status"] as? String)?.contains(status) == true }.map { $0[name] as? Int }
            }
            #expect(lines.count == 4 && lines.allSatisfy { $0["bytes"] as? Int ?? 0 > 0 })
            for status in ["hit", "fwd=request"] {
                #expect(bytes(status, "cache_bytes") == bytes(status, "bytes"))
                #expect(bytes(status, "origin_bytes").allSatisfy { $0 == 0 })
            }
            #expect(bytes("fwd=uri-miss", "origin_bytes") == bytes("fwd=uri-miss", "bytes"))
            #expect(bytes("fwd=uri-miss", "cache_bytes") == [0])
        }

        /// What a terminal would obey is shown, and what opens a resource is not.
        @Test func secretsAreMaskedAndControlCharactersEscaped() async throws {
            let lines = try await logged { stage in
                _ = try stage.get(
                    "/film.mp4?token=abc&id=7",
                    headers: [("User-Agent", "a\"\\\u{9B}31m\tb\u{202E}\u{2069}\u{2028}\u{200D}")])
                _ = try stage.ask("/api/v1/resources?url=https%3A%2F%2Fa.example%2Ff%3Ftoken%3Dabc")
            }
            let text = try String(contentsOfFile: path, encoding: .utf8)
            #expect(!text.contains("abc") && text.contains("id=7"))
            #expect(text.contains("a\\\"\\\\\\u009b31m\\u0009b\\u202e\\u2069\\u2028\u{200D}\""))
            let players = lines.compactMap { $0["player"] as? String }
            #expect(players == ["a\"\\\u{9B}31m\tb\u{202E}\u{2069}\u{2028}\u{200D}"])
        }

        @Test func whatThePageRequestsHasALineOnlyIfItFails() async throws {
            let lines = try await logged { stage in
                for (path, status) in [
                    ("/api/v1/resources", 200), ("/api/v1/nothing", 404), ("/", 200), ("/healthz", 200),
                    (stage.target("/film.mp4"), 200),
                ] {
                    let answer = try stage.player().get(path, headers: [("Reelcache-Page", "1")])
                    #expect(answer.status == status)
                }
            }
            // Nobody else says so of what everybody may request.
            let urls = lines.compactMap { $0["url"] as? String }.sorted()
            #expect(
                urls.dropLast() == ["/", "/api/v1/nothing", "/healthz"] && urls.last?.hasSuffix("/film.mp4") == true)
        }

        /// What cannot be read is logged as far as it can be: without parameters, whose secrets nobody could find.
        @Test func whatIsNoRequestHasALineToo() async throws {
            let lines = try await logged { stage in
                for text in [
                    "GET /https/a.example/film.mp4?token=abc HTTP/1.1\r\nno field\r\n\r\n",
                    "\u{16}\u{3}\u{1}\u{1B}[31m\n",
                    "GET /\(String(repeating: "x", count: 70_000))",
                ] {
                    let player = try stage.player()
                    try player.send(text)
                    #expect(try player.readResponse().status >= 400)
                }
            }
            #expect(lines.count == 3 && lines.allSatisfy { $0["method"] as? String == "-" })
            let urls = lines.compactMap { $0["url"] as? String }.sorted { $0.count < $1.count }
            #expect(urls.prefix(2) == ["-", "/https/a.example/film.mp4"] && urls.last?.count ?? 0 < 500)
            #expect(lines.allSatisfy { ($0["status"] as? Int).map { $0 >= 400 } == true && $0["client"] != nil })
            #expect(lines.allSatisfy { $0["complete"] as? Bool == true })
            #expect(try !String(contentsOfFile: path, encoding: .utf8).contains("abc"))
        }

        @Test func answerThatIsCutSaysSo() async throws {
            let lines = try await logged { stage in
                stage.origin.script("/film.mp4") { $0.stallAfter = 100_000 }
                let (player, _) = try stage.playerOf("/film.mp4")
                player.reset()
                try stage.waitForStats("the end of the connection") { $0[\.connections] == 0 }
            }
            #expect(lines.count == 1 && lines[0]["complete"] as? Bool == false && lines[0]["status"] as? Int == 200)
        }
    }
}
