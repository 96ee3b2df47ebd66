import CachePolicy
import DiskCache
import Foundation
import HTTPModel
import Synchronization
import TestSupport
import Testing

/// Playlists lead players through the proxy, whatever form their addresses have.
extension Scenarios {
    @Suite(.serialized) struct S22Playlists {
        private static let type = "application/vnd.apple.mpegurl"

        private static func film(_ stage: Stage, _ segment: String = "https://cdn.example/2.ts") -> String {
            """
            #EXTM3U
            #EXT-X-TARGETDURATION:2
            #EXT-X-UNKNOWN:keep="me"
            #EXTINF:2,
            1.ts
            #EXTINF:2,
            \(segment)
            #EXTINF:2,
            /root/3.ts
            #EXT-X-ENDLIST

            """
        }

        private static func serve(
            _ stage: Stage, _ path: String, _ text: String, type: String? = type, etag: String? = "\"v1\"",
            _ fields: [(String, String)] = []
        ) {
            stage.origin.serve(path, bytes: Array(text.utf8), etag: etag, contentType: type)
            stage.origin.script(path) { $0.headers = fields }
        }

        private static func lines(_ response: RawClient.Response) -> [String] {
            response.text.split(separator: "\n").map(String.init)
        }

        /// As an HLS playlist has it, in the place of what was scripted.
        private static func rewritten(_ stage: Stage, by host: String? = nil, scheme: String = "http") -> String {
            let own = "\(scheme)://\(host ?? "127.0.0.1:\(stage.proxy.port)")"
            return film(stage, "\(own)/https/cdn.example/2.ts")
                .replacing("\n/root/3.ts", with: "\n\(own)/http/127.0.0.1:\(stage.origin.port)/root/3.ts")
        }

        // MARK: What is rewritten

        @Test(arguments: [(type, "/v/film.m3u8"), ("text/plain", "/v/film"), (nil, "/v/film.bin")])
        func whatLeadsPastTheProxyLeadsThroughIt(type: String?, path: String) async throws {
            try await scenario { stage in
                Self.serve(stage, path, Self.film(stage), type: type, [("Cache-Control", "max-age=60")])
                for round in 1...2 {
                    let response = try stage.get(path)
                    #expect(response.status == 200 && response.text == Self.rewritten(stage), "\(round)")
                    #expect(response.isHit == (round == 2))
                    #expect(response.headers["Content-Length"] == "\(response.body.count)")
                    #expect(response.headers["Content-Type"] == type)
                }
                #expect(stage.origin.requestCount(path) == 1)
            }
        }

        /// By the name and the scheme that the client uses.
        @Test func addressesHaveTheNameThatTheClientUses() async throws {
            try await scenario { stage in
                Self.serve(stage, "/v/film.m3u8", Self.film(stage), [("Cache-Control", "max-age=60")])
                let port = stage.proxy.port
                for name in ["127.0.0.1", "localhost", "localhost", "127.0.0.1"] {
                    let named = try stage.get("/v/film.m3u8", headers: [("Host", "\(name):\(port)")])
                    #expect(named.text == Self.rewritten(stage, by: "\(name):\(port)"))
                }
            }
        }

        @Test func whatLeadsThroughTheProxyByItselfStaysTheOriginsOwn() async throws {
            try await scenario { stage in
                let text = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n1.ts\n#EXT-X-ENDLIST\n"
                Self.serve(stage, "/v/film.m3u8", text)
                for _ in 1...2 {
                    let response = try stage.get("/v/film.m3u8")
                    #expect(response.text == text && response.headers["ETag"] == "\"v1\"")
                }
            }
        }

        @Test func behindARedirectAddressesAreThoseOfWhatHasAnswered() async throws {
            try await scenario { stage in
                Self.serve(stage, "/far/film.m3u8", Self.film(stage))
                stage.origin.script("/v/film.m3u8") { $0.redirect = "/far/film.m3u8" }
                let response = try stage.get("/v/film.m3u8")
                let own = "http://127.0.0.1:\(stage.proxy.port)/http/127.0.0.1:\(stage.origin.port)"
                #expect(Self.lines(response).contains("\(own)/far/1.ts"))
                // A client of an HTTP proxy follows the redirect itself.
                let absolute = try stage.ask(stage.absolute("/v/film.m3u8"))
                #expect(absolute.status == 302)
                #expect(absolute.headers["Location"] == stage.origin.url("/far/film.m3u8"))
                try #expect(stage.ask(stage.absolute("/far/film.m3u8")).text == Self.film(stage))
            }
        }

        @Test(arguments: [true, false])
        func belowAMountTheyLeadBelowIt(anyOrigin: Bool) async throws {
            try await mounted(anyOrigin: anyOrigin) { stage in
                let text = "#EXTM3U\n#EXTINF:2,\n/vod/a/1.ts\n#EXTINF:2,\n/other/2.ts\n#EXT-X-ENDLIST\n"
                Self.serve(stage, "/vod/a/film.m3u8", text)
                let own = "http://127.0.0.1:\(stage.proxy.port)"
                let origin = "http://127.0.0.1:\(stage.origin.port)/other/2.ts"
                let other = anyOrigin ? own + "/http/" + origin.dropFirst(7) : origin
                let response = try stage.ask("/tv/a/film.m3u8")
                #expect(Self.lines(response)[2] == "\(own)/tv/a/1.ts" && Self.lines(response)[4] == other)
            }
        }

        @Test func manifestsOfDASHAreRewritten() async throws {
            try await scenario { stage in
                let text = """
                    <?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT4S">
                    <Period><BaseURL>/media/</BaseURL><AdaptationSet mimeType="video/mp4"><Representation id="1" bandwidth="1">
                    <SegmentTemplate duration="2" media="$Number$.m4s"/></Representation></AdaptationSet></Period></MPD>
                    """
                Self.serve(stage, "/v/film", text, type: "application/octet-stream")
                let base = "http://127.0.0.1:\(stage.proxy.port)/http/127.0.0.1:\(stage.origin.port)/media/"
                try #expect(stage.get("/v/film").text == text.replacing("/media/", with: base))
            }
        }

        // MARK: Its own representation

        @Test func theTextHasItsOwnLengthValidatorAndRanges() async throws {
            try await scenario { stage in
                let path = "/v/film.m3u8"
                Self.serve(stage, path, Self.film(stage), [("Cache-Control", "max-age=60")])
                // Nothing is cached: the head is that of what a GET would get.
                let head = try stage.get(path, method: "HEAD")
                let whole = try stage.get(path)
                let tag = try #require(whole.headers["ETag"])
                #expect(head.headers["ETag"] == tag && tag != "\"v1\"")
                #expect(head.headers["Content-Length"] == "\(whole.body.count)" && head.body.isEmpty)
                #expect(whole.headers["Last-Modified"] == nil)
                try #expect(stage.get(path).body == whole.body)

                let part = try stage.get(path, range: "bytes=10-19", headers: [("If-Range", tag)])
                #expect(part.status == 206 && part.body == Array(whole.body[10..<20]))
                #expect(part.headers["Content-Range"] == "bytes 10-19/\(whole.body.count)")
                try #expect(stage.get(path, range: "bytes=0-").body == whole.body)
                try #expect(stage.get(path, range: "bytes=10-19", headers: [("If-Range", "\"v1\"")]).status == 200)
                try #expect(stage.get(path, range: "bytes=100000-").status == 416)

                let same = try stage.get(path, headers: [("If-None-Match", tag)])
                #expect(same.status == 304 && same.headers["ETag"] == tag && same.body.isEmpty)
                try #expect(stage.get(path, headers: [("If-Match", "\"v1\"")]).status == 412)
                #expect(stage.origin.requestCount(path) == 1)
            }
        }

        @Test func aPlaylistThatAHEADFindsIsReadAsAWhole() async throws {
            try await scenario { stage in
                Self.serve(stage, "/play", Self.film(stage), [("Cache-Control", "max-age=60")])
                let head = try stage.get("/play", method: "HEAD"), whole = try stage.get("/play")
                #expect(head.headers["Content-Length"] == "\(whole.body.count)")
                #expect(head.headers["ETag"] == whole.headers["ETag"] && whole.isHit)
            }
        }

        @Test(arguments: ["gzip", "deflate"])
        func whatItsOriginEncodesIsRead(coding: String) async throws {
            try await scenario { stage in
                let path = "/v/film.m3u8", plain = Array(Self.film(stage).utf8)
                let bytes = coding == "gzip" ? Coded.gzip(plain) : Coded.deflate(plain)
                stage.origin.serve(path, bytes: bytes, contentType: Self.type)
                stage.origin.script(path) {
                    $0.headers = [("Content-Encoding", coding), ("Cache-Control", "max-age=60")]
                }
                for _ in 1...2 {
                    let response = try stage.get(path)
                    #expect(response.text == Self.rewritten(stage))
                    #expect(response.headers["Content-Encoding"] == nil)
                }
                #expect(stage.origin.requestCount(path) == 1)
                // In absolute form it is as it came.
                let absolute = try stage.ask(stage.absolute(path))
                #expect(absolute.body == bytes && absolute.headers["Content-Encoding"] == coding)
            }
        }

        @Test func whatMayNotBeStoredIsRewrittenAllTheSame() async throws {
            try await scenario { stage in
                for (path, type) in [("/v/film.m3u8", Self.type), ("/v/film", "text/plain")] {
                    Self.serve(stage, path, Self.film(stage), type: type, [("Cache-Control", "no-store")])
                    for count in 1...2 {
                        try #expect(stage.get(path).text == Self.rewritten(stage))
                        try #expect(stage.get(path, range: "bytes=0-").text == Self.rewritten(stage))
                        #expect(stage.origin.requestCount(path) == 2 * count)
                    }
                }
            }
        }

        @Test func partsOfWhatMayNotBeStoredAreOfTheRewrittenText() async throws {
            try await scenario { stage in
                let lines = String(repeating: "# a comment\n", count: 6000)
                Self.serve(stage, "/v/film", Self.film(stage) + lines, type: Self.type, [("Cache-Control", "no-store")])
                let whole = try stage.get("/v/film").body
                for range in [0..<2, 70_000..<70_010] {
                    let part = try stage.get("/v/film", range: "bytes=\(range.lowerBound)-\(range.upperBound - 1)")
                    #expect(part.status == 206 && part.body == Array(whole[range]))
                }
            }
        }

        @Test func aHeadOfWhatIsCachedSendsNothing() async throws {
            try await scenario { stage in
                Self.serve(stage, "/v/film.m3u8", Self.film(stage), [("Cache-Control", "max-age=600")])
                let length = try stage.get("/v/film.m3u8").body.count, sent = try stage.stats[\.bytesFromCache]
                let head = try stage.get("/v/film.m3u8", method: "HEAD")
                #expect(head.isHit && head.headers["Content-Length"] == "\(length)")
                try #expect(stage.stats[\.bytesFromCache] == sent)
            }
        }

        @Test(arguments: [
            "#EXTM3U\n#EXT-X-DEFINE:NAME=\"a\",VALUE=\"{$b}\"\n/x.ts\n",
            "#EXTM3U\n#EXTINF:2,\n#EXT-X-BYTERANGE:10\n/x.ts\n#EXT-X-ENDLIST\n{$none}\n", "<html>not found</html>",
            "<!DOCTYPE MPD [<!ENTITY a \"b\">]><MPD>&a;</MPD>",
        ])
        func whatCannotBeReadGoesOutAsItCame(text: String) async throws {
            try await scenario { stage in
                Self.serve(stage, "/v/film.m3u8", text)
                for _ in 1...2 {
                    let response = try stage.get("/v/film.m3u8")
                    #expect(response.status == 200 && response.text == text && response.headers["ETag"] == "\"v1\"")
                }
                Self.serve(stage, "/w/film.m3u8", text, [("Cache-Control", "no-store")])
                try #expect(stage.get("/w/film.m3u8").text == text)
                try #expect(stage.get("/w/film.m3u8", headers: [("If-None-Match", "\"v1\"")]).status == 304)
            }
        }

        /// What it imports is not known before the multivariant playlist is, as after a restart; each loop reads it.
        @Test func aPlaylistWhoseVariablesAreNotKnownYetIsRewrittenOnceTheyAre() async throws {
            try await scenario { stage in
                let text = "#EXTM3U\n#EXT-X-DEFINE:IMPORT=\"a\"\n#EXTINF:2,\n/{$a}.ts\n#EXT-X-ENDLIST\n"
                let main = "#EXTM3U\n#EXT-X-DEFINE:NAME=\"a\",VALUE=\"x\"\n#EXT-X-STREAM-INF:BANDWIDTH=1\nfilm.m3u8\n"
                Self.serve(stage, "/v/film.m3u8", text, [("Cache-Control", "max-age=60")])
                Self.serve(stage, "/v/main.m3u8", main, [("Cache-Control", "max-age=60")])
                for _ in 1...6 { try #expect(stage.get("/v/film.m3u8").text == text) }
                try #expect(stage.get("/v/main.m3u8").status == 200)
                let segment = "http://127.0.0.1:\(stage.proxy.port)/http/127.0.0.1:\(stage.origin.port)/x.ts"
                for _ in 1...6 { try #expect(Self.lines(stage.get("/v/film.m3u8")).contains(segment)) }
                #expect(stage.origin.requestCount("/v/film.m3u8") == 1)
            }
        }

        @Test func aPlaylistHasTheValuesThatItsVariablesHaveNow() async throws {
            try await scenario { stage in
                let text = "#EXTM3U\n#EXT-X-DEFINE:IMPORT=\"a\"\n#EXTINF:2,\n/{$a}.ts\n#EXT-X-ENDLIST\n"
                Self.serve(stage, "/v/film.m3u8", text, [("Cache-Control", "max-age=60")])
                for token in ["x", "y"] {
                    let define = "#EXT-X-DEFINE:NAME=\"a\",VALUE=\"\(token)\""
                    let main = "#EXTM3U\n\(define)\n#EXT-X-STREAM-INF:BANDWIDTH=1\nfilm.m3u8\n"
                    Self.serve(stage, "/v/main.m3u8", main, etag: "\"\(token)\"")
                    try #expect(stage.get("/v/main.m3u8").status == 200)
                    let segment = "http://127.0.0.1:\(stage.proxy.port)/http/127.0.0.1:\(stage.origin.port)/\(token).ts"
                    for _ in 1...6 { try #expect(Self.lines(stage.get("/v/film.m3u8")).contains(segment)) }
                }
                #expect(stage.origin.requestCount("/v/film.m3u8") == 1)
            }
        }

        @Test func aPlaylistLongerThanAnyGoesOutAsItCame() async throws {
            try await scenario { stage in
                let line = "#EXTINF:2,\nhttps://cdn.example/\(String(repeating: "x", count: 1000)).ts\n"
                let text = Array("#EXTM3U\n\(String(repeating: line, count: 34_000))".utf8)
                stage.origin.serve("/v/film.m3u8", bytes: text, contentType: Self.type)
                for _ in 1...2 { try #expect(stage.get("/v/film.m3u8").body == text) }
            }
        }

        @Test func theHeadOfAPlaylistThatHasChangedIsThatOfTheNewOne() async throws {
            try await scenario { stage in
                let path = "/v/film.m3u8"
                Self.serve(stage, path, Self.film(stage))
                try #expect(stage.get(path).status == 200)
                Self.serve(stage, path, "#EXTM3U\n#EXTINF:2,\n/x.ts\n#EXT-X-ENDLIST\n", etag: "\"v2\"")
                let before = stage.origin.requestCount(path)
                let head = try stage.get(path, method: "HEAD"), whole = try stage.get(path)
                #expect(head.headers["ETag"] == whole.headers["ETag"] && whole.text.contains("/x.ts"))
                #expect(head.headers["Content-Length"] == "\(whole.body.count)")
                #expect(stage.origin.requestCount(path) <= before + 3)
            }
        }

        @Test func whatWasEncodedAndMayNotBeStoredHasNoCodingAnyMore() async throws {
            try await scenario { stage in
                let text = "#EXTM3U\n#EXTINF:2,\n1.ts\n#EXT-X-ENDLIST\n"
                stage.origin.serve("/v/film.m3u8", bytes: Coded.gzip(Array(text.utf8)), contentType: Self.type)
                stage.origin.script("/v/film.m3u8") {
                    $0.headers = [("Content-Encoding", "gzip"), ("Cache-Control", "no-store")]
                }
                let response = try stage.get("/v/film.m3u8")
                #expect(response.text == text && response.headers["Content-Encoding"] == nil)
            }
        }

        @Test func whatNobodyWaitsForIsNotReadOn() async throws {
            try await scenario { stage in
                Self.serve(stage, "/v/film.m3u8", Self.film(stage))
                stage.origin.script("/v/film.m3u8") { $0.stallAfter = 20 }
                let player = try stage.player()
                try player.send(player.request(stage.target("/v/film.m3u8")))
                try stage.waitForStats("the playlist to come") { $0[\.openFetches] == 1 }
                player.close()
                try stage.catchUp()
            }
        }

        @Test func noOriginIsAskedForARecording() async throws {
            try await scenario { stage in
                Self.serve(stage, "/v/live.m3u8", Self.film(stage))
                expectOneLine(try stage.get("/v/live.m3u8?reelcache-recording=20260101T000000Z"), status: 404)
                #expect(stage.origin.requestCount("/v/live.m3u8") == 0)
            }
        }

        // MARK: What belongs together

        /// Whatever is asked for first.
        @Test(arguments: [["main.m3u8", "film.m3u8", "1.ts"], ["1.ts", "film.m3u8", "1.ts", "main.m3u8"]])
        func aPresentationIsOneThing(names: [String]) async throws {
            try await scenario { stage in
                let fresh = [("Cache-Control", "max-age=60")]
                let main = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nfilm.m3u8\n"
                Self.serve(stage, "/v/main.m3u8", main, fresh)
                Self.serve(stage, "/v/film.m3u8", Self.film(stage), fresh)
                stage.origin.serve("/v/1.ts", Media(seed: 1, size: 100_000), contentType: "video/mp2t")
                for name in names { try #expect(stage.get("/v/\(name)").status == 200) }
                try stage.waitForListing([stage.origin.url("/v/main.m3u8")])
            }
        }

        /// What a player then asks for is there.
        @Test(arguments: [false, true])
        func withoutItsOriginThoseRenditionsAreListedThatAreThere(isOffline: Bool) async throws {
            try await scenario { stage in
                let variant = { (name: String) in "#EXT-X-STREAM-INF:BANDWIDTH=\(name.count)\n\(name).m3u8\n" }
                Self.serve(stage, "/v/main.m3u8", "#EXTM3U\n" + variant("low") + variant("higher"))
                let film = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\nsegment.ts\n#EXT-X-ENDLIST\n"
                Self.serve(stage, "/v/low.m3u8", film)
                Self.serve(stage, "/v/higher.m3u8", film.replacing("segment", with: "other"))
                stage.origin.serve("/v/segment.ts", Media(seed: 1, size: 100_000), contentType: "video/mp2t")
                let names = ["main.m3u8", "higher.m3u8", "low.m3u8", "segment.ts"]
                for name in names { try #expect(stage.get("/v/\(name)").status == 200) }
                try stage.waitForListing([stage.origin.url("/v/main.m3u8")])
                if isOffline { try stage.proxy.cache.reconfigure { $0.isOffline = true } } else { stage.origin.stop() }
                let main = try stage.get("/v/main.m3u8")
                #expect(main.status == 200 && main.text == "#EXTM3U\n" + variant("low"))
                for name in names.dropFirst(2) { try #expect(stage.get("/v/\(name)").status == 200) }
            }
        }

        // MARK: How long it is fresh

        @Test(arguments: [type, "application/rss+xml"])
        func noLifetimeIsGuessed(type: String) async throws {
            try await scenario { stage in
                stage.origin.serve(
                    "/list", bytes: Array(Self.film(stage).utf8), lastModified: "Mon, 01 Jan 2024 00:00:00 GMT",
                    contentType: type)
                for count in 1...3 {
                    try #expect(stage.get("/list").status == 200)
                    #expect(stage.origin.requestCount("/list") == count)
                }
                #expect(stage.origin.requests("/list").last?.headers["If-None-Match"] == "\"v1\"")
            }
        }

        /// It may have been cut, or lead to addresses that are signed for a short time.
        @Test(arguments: ["", "#EXTINF:2,\n/vod/2.ts?token=1\n#EXT-X-ENDLIST\n"])
        func aPlaylistOfTypeVODThatMayNotLastIsValidated(end: String) async throws {
            try await scenario { stage in
                let text = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-PLAYLIST-TYPE:VOD\n#EXTINF:2,\n/vod/1.ts\n" + end
                stage.origin.serve("/film.m3u8", bytes: Array(text.utf8), contentType: Self.type)
                for count in 1...3 {
                    try #expect(!stage.get("/film.m3u8").isHit)
                    #expect(stage.origin.requestCount("/film.m3u8") == count)
                }
            }
        }

        /// RFC 8216 §4.3.3.5: such a playlist must not change.
        @Test func aPlaylistOfTypeVODIsFreshAsAFileIs() async throws {
            try await scenario { stage in
                let film = Self.film(stage).replacing(
                    "#EXT-X-UNKNOWN", with: "#EXT-X-PLAYLIST-TYPE:VOD\n#EXT-X-UNKNOWN")
                stage.origin.serve("/film.m3u8", bytes: Array(film.utf8), contentType: Self.type)
                for round in 1...2 {
                    try #expect(!stage.get("/film.m3u8").isHit)
                    #expect(stage.origin.requestCount("/film.m3u8") == round)
                    try #expect(stage.get("/film.m3u8").isHit)
                    stage.wait(seconds: 590)
                    try #expect(stage.get("/film.m3u8").isHit)
                    stage.wait(seconds: 20)
                }
                // The type is part of the text: another version may be without it.
                stage.origin.serve(
                    "/film.m3u8", bytes: Array(Self.film(stage).utf8), etag: "\"v2\"", contentType: Self.type)
                for round in 3...4 {
                    try #expect(!stage.get("/film.m3u8").isHit)
                    #expect(stage.origin.requestCount("/film.m3u8") == round)
                }
            }
        }
    }
}

extension Stage {
    /// Waits until the cache lists these resources and no others.
    func waitForListing(_ urls: [String]) throws {
        try eventually("a list of \(urls)") {
            try read(ResourceListing.self, "/resources?sort=name").resources.map(\.urlText) == urls.sorted()
        }
    }
}
