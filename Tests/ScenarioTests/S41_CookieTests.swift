import CachePolicy
import Foundation
import HTTPModel
import Reelcache
import TestSupport
import Testing

private let film = Media(seed: 41, size: 300_000)
private let segment = Media(seed: 42, size: 40_000)

/// Origins that let in whom they have given a cookie: where players name them by the proxy, the proxy keeps it.
extension Scenarios {
    @Suite struct S41Cookies {
        private static let type = "application/vnd.apple.mpegurl"

        /// A stream whose playlist sets the cookie that key and segments want.
        private static func serveStream(
            _ stage: Stage, at directory: String = "/live", cookie: String = "token=1", fields: String = "; Path=/"
        ) {
            let text = """
                #EXTM3U
                #EXT-X-TARGETDURATION:2
                #EXT-X-KEY:METHOD=AES-128,URI="key"
                #EXTINF:2,
                1.ts
                #EXTINF:2,
                2.ts
                #EXT-X-ENDLIST

                """
            stage.origin.serve(directory + "/index.m3u8", bytes: Array(text.utf8), contentType: type)
            stage.origin.script(directory + "/index.m3u8") { $0.headers = [("Set-Cookie", cookie + fields)] }
            stage.origin.serve(directory + "/key", bytes: Array(repeating: 7, count: 16))
            for name in ["1.ts", "2.ts"] { stage.origin.serve("\(directory)/\(name)", segment) }
            for name in ["key", "1.ts", "2.ts"] {
                stage.origin.script("\(directory)/\(name)") { $0.gate = (cookie, nil) }
            }
        }

        @Test func whatAPlaylistSetsGoesWithItsParts() async throws {
            try await scenario { stage in
                Self.serveStream(stage)
                // No other way in: the part alone, before its playlist.
                #expect(try stage.get("/live/1.ts").status == 403)
                let playlist = try stage.get("/live/index.m3u8")
                #expect(playlist.status == 200 && playlist.headers["Set-Cookie"] == nil)
                #expect(try stage.get("/live/key").status == 200)
                for name in ["1.ts", "2.ts"] { expectWhole(try stage.get("/live/\(name)"), segment) }
            }
        }

        // RFC 6265bis §5.8.3: elsewhere, below other paths and of other presentations, nobody gets it.
        @Test(arguments: [("/live", "; Path=/live"), ("/live", "; Path=/; Domain=127.0.0.1"), ("/live", "")])
        func cookieStaysWithItsPresentation(directory: String, fields: String) async throws {
            try await scenario { stage in
                Self.serveStream(stage, at: directory, fields: fields)
                stage.origin.serve("/film.mp4", film)
                stage.origin.serve(
                    "/index.m3u8", bytes: Array("#EXTM3U\n#EXTINF:2,\nlive/2.ts\n".utf8), contentType: Self.type)
                #expect(try stage.get("/live/index.m3u8").status == 200)
                expectWhole(try stage.get("/live/1.ts"), segment)
                expectWhole(try stage.get("/film.mp4"), film)
                #expect(try stage.get("/index.m3u8").status == 200)
                for other in ["/film.mp4", "/index.m3u8"] {
                    #expect(stage.origin.requests(other).map { $0.headers["Cookie"] } == [nil])
                }
                #expect(stage.origin.requests("/live/1.ts").allSatisfy { $0.headers["Cookie"] == "token=1" })
            }
        }

        // RFC 6265bis §5.1.4
        @Test func cookieWithoutAPathStaysBelowItsPlaylist() async throws {
            try await scenario { stage in
                let text = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n1.ts\n#EXTINF:2,\n/b/2.ts\n#EXT-X-ENDLIST\n"
                stage.origin.serve("/a/index.m3u8", bytes: Array(text.utf8), contentType: Self.type)
                stage.origin.script("/a/index.m3u8") { $0.headers = [("Set-Cookie", "token=1")] }
                for path in ["/a/1.ts", "/b/2.ts"] { stage.origin.serve(path, segment) }
                #expect(try stage.get("/a/index.m3u8").status == 200)
                for path in ["/a/1.ts", "/b/2.ts"] { expectWhole(try stage.get(path), segment) }
                let sent = ["/a/1.ts", "/b/2.ts"].map { stage.origin.requests($0).map { $0.headers["Cookie"] } }
                #expect(sent == [["token=1"], [nil]])
            }
        }

        @Test func partsOnAnotherHostDoNotGetIt() async throws {
            try await scenario { setting in
                setting.allow.append("localhost")
            } _: { stage in
                let text =
                    "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n\(stage.origin.url("/1.ts", host: "localhost"))\n"
                    + "#EXT-X-ENDLIST\n"
                stage.origin.serve("/index.m3u8", bytes: Array(text.utf8), contentType: Self.type)
                stage.origin.script("/index.m3u8") { $0.headers = [("Set-Cookie", "token=1; Path=/")] }
                stage.origin.serve("/1.ts", segment)
                #expect(try stage.get("/index.m3u8").status == 200)
                expectWhole(try stage.ask("/http/localhost:\(stage.origin.port)/1.ts"), segment)
                #expect(stage.origin.requests("/1.ts").map { $0.headers["Cookie"] } == [nil])
            }
        }

        @Test func cookieOfARedirectOpensWhatItLeadsTo() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/film.mp4") { $0.gate = ("session=a", "/login") }
                stage.origin.script("/login") {
                    ($0.redirect, $0.headers) = ("/film.mp4", [("Set-Cookie", "session=a; Path=/; HttpOnly")])
                }
                expectPart(try stage.get("/film.mp4", range: "bytes=0-99"), 0..<100, of: film)
                // What is lacking needs no second login.
                expectWhole(try stage.get("/film.mp4"), film)
                #expect(stage.origin.requestCount("/login") == 1)
                // In absolute form the client keeps its cookies, but those of one chain lead to its end.
                stage.origin.serve("/other.mp4", film)
                stage.origin.script("/other.mp4") { $0.gate = ("session=a", "/other-login") }
                stage.origin.script("/other-login") {
                    ($0.redirect, $0.headers) = ("/other.mp4", [("Set-Cookie", "session=a; Path=/")])
                }
                expectWhole(
                    try stage.ask(stage.absolute("/other.mp4"), headers: [("Cookie", "session=old; mine=1")]), film)
                let sent = stage.origin.requests("/other.mp4").map { Set($0.cookies) }
                #expect(sent == [["mine=1", "session=old"], ["mine=1", "session=a"]])
            }
        }

        @Test(arguments: [("Origin", "https://page.example"), ("Sec-Fetch-Site", "cross-site")])
        func pagesOfOtherSitesNeitherFillNorUseIt(name: String, value: String) async throws {
            try await scenario { stage in
                Self.serveStream(stage)
                let page = [(name, value)]
                #expect(try stage.get("/live/index.m3u8", headers: page).status == 200)
                #expect(try stage.get("/live/1.ts").status == 403)
                stage.wait(seconds: 700)
                #expect(try stage.get("/live/index.m3u8").status == 200)
                #expect(try stage.get("/live/2.ts", headers: page).status == 403)
                expectWhole(try stage.get("/live/1.ts"), segment)
            }
        }

        @Test func sharedCacheKeepsNone() async throws {
            try await scenario {
                $0.configure { configuration in configuration.cache = .shared }
            } _: { stage in
                Self.serveStream(stage)
                let statuses = try ["/live/index.m3u8", "/live/1.ts"].map { try stage.get($0).status }
                #expect(statuses == [200, 403])
            }
        }

        // Only to the hosts that the file names, and only where the rule applies; what an origin sets comes on top.
        @Test func ruleSendsTheCookiesOfItsFile() async throws {
            let directory = try TemporaryDirectory()
            let file = directory.file("cookies.txt")
            let lines = [
                "# Netscape HTTP Cookie File", "#HttpOnly_127.0.0.1\tFALSE\t/\tFALSE\t0\tsession\ta",
                ".example.org\tTRUE\t/\tFALSE\t0\tother\tb", "127.0.0.1\tFALSE\t/film\tFALSE\t1\told\tc",
            ]
            try lines.joined(separator: "\n").write(toFile: file, atomically: true, encoding: .utf8)
            try await scenario {
                $0.allow.append("localhost")
                $0.configure { $0.rules = [.init(paths: ["/film*"]) { $0.cookies = file }] }
            } _: { stage in
                for path in ["/film.mp4", "/film2.mp4", "/other.mp4"] { stage.origin.serve(path, film) }
                stage.origin.script("/film.mp4") {
                    ($0.gate, $0.headers) = (("session=a", nil), [("Set-Cookie", "more=1")])
                }
                expectPart(try stage.get("/film.mp4", range: "bytes=0-9"), 0..<10, of: film)
                let page = try stage.get("/film2.mp4", headers: [("Origin", "https://page.example")])
                // Nobody else may read what these cookies open.
                #expect(page.status == 200 && page.headers["Access-Control-Allow-Origin"] == nil)
                expectWhole(try stage.get("/other.mp4"), film)
                expectWhole(try stage.ask("/http/localhost:\(stage.origin.port)/film2.mp4"), film)
                func sent(_ path: String) -> [[String]] { stage.origin.requests(path).map { $0.cookies.sorted() } }
                #expect(sent("/film.mp4") == [["session=a"]])
                #expect(sent("/film2.mp4") == [[], []] && sent("/other.mp4") == [[]])
                expectPart(try stage.get("/film.mp4", range: "bytes=290000-290009"), 290000..<290010, of: film)
                #expect(sent("/film.mp4").last == ["more=1", "session=a"])
            }
        }

        @Test func changedAndDeletedCookiesAreSentSo() async throws {
            try await scenario { setting in
                setting.fill(.read)
            } _: { stage in
                stage.origin.serve("/film.mp4", film)
                stage.origin.script("/film.mp4") { $0.headers = [("Set-Cookie", "a=1"), ("Set-Cookie", "b=1")] }
                _ = try stage.get("/film.mp4", range: "bytes=0-9")
                stage.origin.script("/film.mp4") {
                    $0.headers = [("Set-Cookie", "a=2"), ("Set-Cookie", "b=1; Max-Age=0")]
                }
                _ = try stage.get("/film.mp4", range: "bytes=100000-100009")
                _ = try stage.get("/film.mp4", range: "bytes=200000-200009")
                #expect(stage.origin.requests("/film.mp4").map { Set($0.cookies) } == [[], ["a=1", "b=1"], ["a=2"]])
            }
        }

        // A fresh playlist sets nothing: where its parts are refused, it is validated.
        @Test func cookieThatIsOverComesAnew() async throws {
            try await scenario {
                $0.fill(.read)
            } _: { stage in
                Self.serveStream(stage)
                stage.origin.script("/live/index.m3u8") { $0.headers += [("Cache-Control", "max-age=3600")] }
                #expect(try stage.get("/live/index.m3u8").status == 200)
                expectWhole(try stage.get("/live/1.ts"), segment)
                try stage.restart()
                #expect(try stage.get("/live/index.m3u8").isHit)
                #expect(try stage.get("/live/2.ts").status == 403)
                #expect(try stage.get("/live/index.m3u8").status == 200)
                expectWhole(try stage.get("/live/2.ts"), segment)
            }
        }

        @Test func refusalWithoutTheCookieIsForNobodyWhoHasIt() async throws {
            try await scenario {
                $0.fill(.read)
            } _: { stage in
                Self.serveStream(stage)
                stage.origin.script("/live/2.ts") {
                    $0.headers = [("Cache-Control", "max-age=600"), ("Vary", "Cookie")]
                }
                #expect(try stage.get("/live/2.ts").status == 403)
                #expect(try stage.get("/live/index.m3u8").status == 200)
                expectWhole(try stage.get("/live/2.ts"), segment)
            }
        }

        @Test func downloadGetsTheCookieAnew() async throws {
            try await scenario { stage in
                Self.serveStream(stage)
                // The playlist is cached, and fresh, but its cookie has ended with the process.
                #expect(try stage.get("/live/index.m3u8").status == 200)
                try stage.restart()
                #expect(try stage.download("/live/index.m3u8").complete().segments == 2)
                stage.origin.stop()
                expectWhole(try stage.get("/live/2.ts"), segment)
            }
        }

        // Work and memory follow neither their number nor their size.
        @Test func floodOfCookiesIsBounded() async throws {
            try await scenario { setting in
                setting.fill(.read)
            } _: { stage in
                stage.origin.serve("/film.mp4", film)
                for round in 0..<4 {
                    stage.origin.script("/film.mp4") {
                        $0.headers = (0..<40).map {
                            ("Set-Cookie", "c\(round)-\($0)=\(String(repeating: "x", count: 300))")
                        }
                    }
                    _ = try stage.get("/film.mp4", range: "bytes=\(round * 70_000)-\(round * 70_000 + 9)")
                }
                let last = try #require(stage.origin.requests("/film.mp4").last)
                #expect(last.cookies.count <= 64 && last.cookies.contains { $0.hasPrefix("c2-39=") })
                #expect((last.headers["Cookie"] ?? "").utf8.count <= 8190)
                expectWhole(try stage.get("/film.mp4"), film)
            }
        }
    }
}
