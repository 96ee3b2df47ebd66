import CachePolicy
import Testing
import TestSupport

private let text = Array("a film of few words\n".utf8)

/// What an origin encodes although nobody asked for it is stored as it came (RFC 9110 §8.4).
extension Scenarios {
    @Suite struct S34Encoded {
        private static let film = Media(seed: 341, size: 700_000)

        @Test func encodedFileIsStoredAsItCame() async throws {
            try await scenario { stage in
                let bytes = Coded.gzip(text)
                stage.origin.serve("/notes.bin", bytes: bytes)
                stage.origin.script("/notes.bin") { ($0.gzipEncoded, $0.chunkedEncoding) = (true, true) }
                let first = try stage.get("/notes.bin")
                #expect(first.cacheStatus == "reelcache; fwd=uri-miss; fwd-status=200; stored")
                try stage.catchUp()
                for headers in [[], [("Accept-Encoding", "gzip")], [("Accept-Encoding", "identity")]] {
                    let again = try stage.get("/notes.bin", headers: headers)
                    #expect(again.isHit && again.body == bytes && again.headers["Content-Encoding"] == "gzip")
                }
                #expect(try stage.get("/notes.bin", method: "HEAD").headers["Content-Encoding"] == "gzip")
                #expect(stage.origin.requestCount("/notes.bin") == 1)
                #expect(stage.origin.requests("/notes.bin").first?.headers["Accept-Encoding"] == "identity")
            }
        }

        // RFC 9110 §14: of the selected representation, which is the encoded one.
        @Test func rangesCountItsBytes() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", Self.film)
                stage.origin.script("/film.mp4") { ($0.gzipEncoded, $0.ignoresRange) = (true, true) }
                // Its end: no transfer could complete it later, so it is not kept if it ends with its client before.
                let part = try stage.get("/film.mp4", range: "bytes=699900-699999")
                expectPart(part, 699_900..<700_000, of: Self.film)
                #expect(part.headers["Content-Encoding"] == "gzip")
                try stage.catchUp()
                let hit = try stage.get("/film.mp4", range: "bytes=100-199")
                expectPart(hit, 100..<200, of: Self.film)
                #expect(hit.isHit && hit.headers["Content-Encoding"] == "gzip", "\(hit.cacheStatus)")
                #expect(stage.origin.requestCount("/film.mp4") == 1)
            }
        }

        @Test func itPlaysAfterItsOriginIsGoneAndAfterARestart() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", Self.film)
                stage.origin.script("/film.mp4") {
                    ($0.gzipEncoded, $0.headers) = (true, [("Cache-Control", "max-age=60")])
                }
                expectWhole(try stage.get("/film.mp4"), Self.film)
                try stage.catchUp()
                try stage.restart()
                let fresh = try stage.get("/film.mp4")
                expectWhole(fresh, Self.film)
                #expect(fresh.isHit && fresh.headers["Content-Encoding"] == "gzip")
                stage.wait(seconds: 61)
                expectWhole(try stage.get("/film.mp4"), Self.film)
                #expect(stage.origin.requests("/film.mp4").last?.headers["If-None-Match"] == "\"v1\"")
                stage.origin.stop()
                stage.wait(seconds: 61)
                expectWhole(try stage.get("/film.mp4"), Self.film)
            }
        }

        /// Each answer may be encoded anew, so that one cannot continue another.
        @Test func brokenTransferOfItIsNotContinued() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", Self.film)
                stage.origin.script("/film.mp4") {
                    ($0.gzipEncoded, $0.cutAfter, $0.cutTimes) = (true, 300_000, 1)
                }
                #expect(throws: RawClient.ResponseError.self) { _ = try stage.get("/film.mp4") }
                #expect(stage.origin.requestCount("/film.mp4") == 1)
                expectWhole(try stage.get("/film.mp4"), Self.film)
                #expect(stage.origin.requests("/film.mp4").allSatisfy { $0.headers["Range"] == nil })
            }
        }

        @Test func encodedPartPasses() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", Self.film)
                stage.origin.script("/film.mp4") { $0.gzipEncoded = true }
                for count in 1...2 {
                    let part = try stage.get("/film.mp4", range: "bytes=65536-131071")
                    expectPart(part, 65_536..<131_072, of: Self.film)
                    #expect(part.cacheStatus.contains("detail=\"encoded\""))
                    #expect(stage.origin.requestCount("/film.mp4") == count)
                }
                #expect(stage.dataFiles.isEmpty)
            }
        }

        @Test func downloadWithSeveralConnectionsTakesItAsAWhole() async throws {
            try await scenario { stage in
                let long = Media(seed: 342, size: 6_000_000)
                stage.origin.serve("/long.mp4", long)
                stage.origin.script("/long.mp4") { $0.gzipEncoded = true }
                _ = try stage.download("/long.mp4", connections: 4).complete()
                let played = try stage.get("/long.mp4")
                expectWhole(played, long)
                #expect(played.isHit && played.headers["Content-Encoding"] == "gzip")
            }
        }

        @Test func playlistInACodingThatCannotBeReadPasses() async throws {
            try await scenario { stage in
                stage.origin.serve(
                    "/film.m3u8", bytes: [1, 2, 3], contentType: "application/vnd.apple.mpegurl")
                stage.origin.script("/film.m3u8") { $0.headers = [("Content-Encoding", "br")] }
                for count in 1...2 {
                    let answer = try stage.get("/film.m3u8")
                    #expect(answer.body == [1, 2, 3] && answer.headers["Content-Encoding"] == "br")
                    #expect(stage.origin.requestCount("/film.m3u8") >= count)
                }
                #expect(stage.dataFiles.isEmpty)
            }
        }
    }
}
