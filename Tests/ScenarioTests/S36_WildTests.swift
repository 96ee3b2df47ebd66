import Foundation
import Reelcache
import TestSupport
import Testing

private let film = Media(seed: 36, size: 200_000)

/// What origins really send: `Tests/Fixtures/Wild` has the inputs, and where they come from.
extension Scenarios {
    @Suite struct S36Wild {
        private static let directory = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../Fixtures/Wild/responses")

        /// An answer of an origin, and what a player gets that wants the first two bytes.
        struct Answer: Sendable, CustomTestStringConvertible {
            /// The file that has its head.
            let name: String
            /// How many bytes of the film follow.
            let count: Int64
            /// How many requests the origin gets until the player has them.
            let requests: Int

            init(_ name: String, _ count: Int64, requests: Int = 1) {
                (self.name, self.count, self.requests) = (name, count, requests)
            }

            var testDescription: String { name }

            var bytes: [UInt8] {
                get throws {
                    try [UInt8](Data(contentsOf: directory.appendingPathComponent(name + ".http")))
                        + film.bytes(0..<count)
                }
            }
        }

        /// Whatever comes first, the film is right and cached after it.
        @Test(arguments: [
            Answer("longer-than-asked", 200_000), Answer("ends-later", 100_000),
            Answer("no-last-byte", 200_000, requests: 2), Answer("no-unit", 65_536, requests: 2),
            Answer("unit-with-equals", 65_536, requests: 2), Answer("one-byte-short", 65_535, requests: 2),
            Answer("coding-aws-chunked", 65_536), Answer("coding-none", 65_536), Answer("coding-utf-8", 65_536),
            Answer("name-with-spaces", 200_000),
        ])
        func partIsServedAndKept(_ answer: Answer) async throws {
            let raw = try answer.bytes
            try await scenario { stage in
                stage.origin.serve("/film", film)
                stage.origin.script("/film") { $0.raw = raw }
                for isHit in [false, true] {
                    let part = try stage.get("/film", range: "bytes=0-1")
                    expectPart(part, 0..<2, of: film)
                    #expect(part.isHit == isHit)
                    try stage.catchUp()
                    #expect(stage.origin.requestCount("/film") == answer.requests)
                }
                for isHit in [false, true] {
                    let whole = try stage.get("/film")
                    expectWhole(whole, film)
                    if isHit { #expect(whole.isHit) }
                    try stage.catchUp()
                }
            }
        }

        /// The byte that it lacks comes with the whole.
        @Test func partThatEndsEarlyIsCompleted() async throws {
            let raw = try Answer("one-byte-short-until-close", 65_535).bytes
            try await scenario { stage in
                stage.origin.serve("/film", film)
                stage.origin.script("/film") { $0.raw = raw }
                expectPart(try stage.get("/film", range: "bytes=65500-65535"), 65_500..<65_536, of: film)
                try stage.catchUp()
                expectWhole(try stage.get("/film"), film)
            }
        }

        /// The playlist says that it is media, though its URL does not.
        @Test func pageInThePlaceOfASegmentIsNotStored() async throws {
            try await scenario { stage in
                stage.origin.serve(
                    "/film.m3u8", bytes: Array("#EXTM3U\n#EXTINF:2,\nsegment\n#EXT-X-ENDLIST\n".utf8))
                for path in ["/segment", "/page"] {
                    stage.origin.serve(path, bytes: Array("<!DOCTYPE html><p>Log in".utf8), contentType: "text/html")
                }
                #expect(try stage.get("/film.m3u8").status == 200)
                for isRepeated in [false, true] {
                    #expect(try !stage.get("/segment").isHit)
                    #expect(try stage.get("/page").isHit == isRepeated)
                    try stage.catchUp()
                }
            }
        }

        // MARK: Segments that their origin calls a page

        private static let list = Array(
            "#EXTM3U\n#EXT-X-KEY:METHOD=AES-128,URI=\"key\"\n#EXTINF:2,\nsegment\n#EXT-X-ENDLIST\n".utf8)

        /// What segments begin with, of each kind. The rest is noise, which may be encrypted.
        private static let beginnings: [(name: String, bytes: [UInt8])] = [
            ("MPEG-TS", [0x47, 0x40, 0x11, 0x10, 0x00]), ("MP4", Array("\0\0\0\u{18}stypmsdh".utf8)),
            ("WebM", [0x1A, 0x45, 0xDF, 0xA3]), ("ID3", Array("ID3\u{4}\0".utf8)), ("ADTS", [0xFF, 0xF1, 0x50, 0x80]),
            ("WebVTT", Array("WEBVTT\n\n00:00.000 --> 00:02.000\nHello".utf8)), ("tag", Array("<a".utf8)),
            ("noise", []),
        ]

        @Test(arguments: beginnings, [false, true])
        func segmentThatItsOriginCallsAPageIsKept(_ kind: (name: String, bytes: [UInt8]), isSlow: Bool) async throws {
            let bytes = kind.bytes + (kind.name == "WebVTT" ? [] : film.bytes(0..<20_000))
            try await scenario { stage in
                stage.origin.serve("/film.m3u8", bytes: Self.list)
                stage.origin.serve("/segment", bytes: bytes, contentType: "text/html")
                stage.origin.serve("/key", bytes: film.bytes(0..<16), contentType: "text/html; charset=UTF-8")
                // Too little to tell.
                if isSlow { stage.origin.script("/segment") { $0.stallAfter = 1 } }
                #expect(try stage.get("/film.m3u8").status == 200)
                for isHit in [false, true] {
                    let player = try Background { try stage.get("/segment") }
                    if !isHit, isSlow {
                        try stage.origin.waitUntil("the first byte") { $0.bytesSent("/segment") == 1 }
                        stage.origin.release("/segment")
                    }
                    let response = try player.value()
                    #expect(response.body == bytes && response.headers["Content-Type"] == "text/html")
                    #expect(response.isHit == isHit)
                    #expect(try stage.get("/key").isHit == isHit)
                    try stage.catchUp()
                }
                let part = try stage.get("/segment", range: "bytes=1-9")
                #expect(part.body == Array(bytes[1...9]) && part.isHit)
                // Now it is a page: that is not its next version.
                stage.wait(seconds: 1000)
                stage.origin.serve(
                    "/segment", bytes: Array("<!DOCTYPE html><p>Log in".utf8), etag: nil, contentType: "text/html")
                let later = try stage.get("/segment")
                #expect(later.body == bytes && later.cacheStatus.hasPrefix("reelcache; fwd=stale; ttl="), "\(later)")
            }
        }

        @Test func streamThatItsOriginCallsPagesIsDownloaded() async throws {
            let raw = try Answer("segment-as-page", 200_000).bytes
            try await scenario { stage in
                stage.origin.serve("/film.m3u8", bytes: Self.list, contentType: "text/html")
                stage.origin.script("/segment") { $0.raw = raw }
                stage.origin.serve("/key", bytes: film.bytes(0..<16), contentType: "text/html")
                let progress = try stage.download("/film.m3u8").complete()
                #expect(progress.segments == 1)
                let response = try stage.get("/segment")
                expectWhole(response, film)
                #expect(response.isHit && stage.origin.requestCount("/segment") == 1)
            }
        }

        // MARK: URLs

        @Test func twentyRedirectsAreFollowed() async throws {
            try await scenario { stage in
                stage.origin.serve("/0", film)
                for hop in 1...21 { stage.origin.script("/\(hop)") { $0.redirect = "/\(hop - 1)" } }
                expectWhole(try stage.get("/20"), film)
                let response = try stage.get("/21")
                expectOneLine(response, status: 502)
                #expect(response.text.contains("20 redirects"))
            }
        }

        /// RFC 9110 §7.7: whoever passes a request on does not change path and query. They are different URLs, with a
        /// cache entry each.
        @Test(arguments: ["/e.mp4?", "/e.mp4", "/a/../e.mp4", "/./e.mp4?x", "/e.mp4??", "/%7Ee.mp4?a=%2F&b"])
        func targetReachesItsOriginByteForByte(path: String) async throws {
            try await scenario { stage in
                stage.origin.serve(path, film)
                let absolute = stage.origin.url(path)
                for isHit in [false, true] {
                    #expect(try stage.get(path).isHit == isHit)
                    let response = try RawClient.get(port: stage.proxy.port, path: absolute)
                    expectWhole(response, film)
                    #expect(response.isHit)
                }
                #expect(stage.origin.snapshot.requests.map(\.target) == [path])
            }
        }

        // MARK: Names in other letters than those of DNS

        private static let name = "b\u{FC}cher.localhost", ascii = "xn--bcher-kva.localhost"

        /// All spellings are one resource, and the origin is told its name in the letters of DNS.
        @Test func nameIsReadInEverySpelling() async throws {
            try await scenario { stage in
                stage.origin.serve("/film", film)
                let authority = "\(Self.name):\(stage.origin.port)"
                let encoded = authority.replacing("\u{FC}", with: "%C3%BC")
                let targets = [
                    "/http/\(authority)/film", "/http://\(encoded)/film", "http://\(authority)/film",
                    "http://\(encoded)/film", "http://B\u{DC}CHER.localhost:\(stage.origin.port)/film",
                    "/http%3A%2F%2F\(encoded.replacing(":", with: "%3A"))%2Ffilm",
                    "/http/\(Self.ascii):\(stage.origin.port)/film",
                ]
                for (number, target) in targets.enumerated() {
                    let response = try RawClient.get(port: stage.proxy.port, path: target)
                    expectWhole(response, film)
                    #expect(response.isHit == (number > 0), "\(target)")
                }
                let request = try #require(stage.origin.requests("/film").first)
                #expect(request.headers["Host"] == "\(Self.ascii):\(stage.origin.port)")
            }
        }

        /// Playlists and redirects lead through the proxy to the same name.
        @Test(arguments: [name, name.replacing("\u{FC}", with: "%C3%BC"), ascii])
        func nameInAPlaylistAndInARedirectIsRead(name: String) async throws {
            try await scenario { stage in
                let there = "http://\(name):\(stage.origin.port)"
                stage.origin.serve("/1.ts", film)
                stage.origin.script("/moved") { $0.redirect = "\(there)/1.ts" }
                stage.origin.serve(
                    "/film.m3u8",
                    bytes: Array("#EXTM3U\n#EXTINF:2,\n\(there)/1.ts\n#EXT-X-ENDLIST\n".utf8))
                let own = "http://127.0.0.1:\(stage.proxy.port)/http/\(Self.ascii):\(stage.origin.port)/1.ts"
                #expect(try stage.get("/film.m3u8").text.contains("\n\(own)\n"))
                expectWhole(try stage.get("/moved"), film)
                let request = try #require(stage.origin.requests("/1.ts").last)
                #expect(request.headers["Host"] == "\(Self.ascii):\(stage.origin.port)")
            }
        }
    }
}
