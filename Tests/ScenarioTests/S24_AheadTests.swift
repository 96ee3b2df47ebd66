import CachePolicy
import HTTPModel
import TestSupport
import Testing

/// The next segments come before they are asked for.
extension Scenarios {
    @Suite(.serialized) struct S24Ahead {
        private static let count = 9

        private static func media(_ number: Int) -> Media { Media(seed: UInt64(number), size: 60_000) }

        private static func serve(_ stage: Stage, key: Bool = false) {
            let tag = key ? "#EXT-X-KEY:METHOD=AES-128,URI=\"key\"\n" : ""
            let lines = (1...count).map { "\($0 == 3 ? tag : "")#EXTINF:2,\n\($0).ts\n" }.joined()
            stage.origin.serve(
                "/v/film.m3u8", bytes: Array("#EXTM3U\n#EXT-X-TARGETDURATION:2\n\(lines)#EXT-X-ENDLIST\n".utf8),
                contentType: "application/vnd.apple.mpegurl")
            for number in 1...count { stage.origin.serve("/v/\(number).ts", media(number), contentType: "video/mp2t") }
        }

        private static func requests(_ stage: Stage) -> [Int] {
            (1...count).map { stage.origin.requestCount("/v/\($0).ts") }
        }

        /// Also from segments that are there, and so short that they are sent at once.
        @Test func whoReadsOnFindsTheNextOnesThere() async throws {
            try await scenario { stage in
                Self.serve(stage)
                try #expect(stage.get("/v/film.m3u8").status == 200)
                for number in 1...Self.count {
                    let response = try stage.get("/v/\(number).ts", headers: [("Cache-Control", "no-cache")])
                    expectWhole(response, Self.media(number))
                    #expect(response.isHit == (number > 1))
                    let last = min(number + 3, Self.count)
                    for next in number..<last { try stage.origin.waitForRequests("/v/\(next + 1).ts", count: 1) }
                    try stage.catchUp()
                    let wanted = (1...Self.count).map { $0 <= last ? 1 : 0 }
                    #expect(Self.requests(stage) == wanted, "after \(number)")
                }
            }
        }

        /// The origin's time to answer passes meanwhile.
        @Test func theNextOneIsAskedForWhileTheLastBytesCome() async throws {
            // The first one does not break off while it stands still.
            try await scenario {
                $0.tuning.upstream.stallTimeout = 3600
            } _: { stage in
                Self.serve(stage)
                try #expect(stage.get("/v/film.m3u8").status == 200)
                let first = Media(seed: 1, size: 1_000_000)
                stage.origin.serve("/v/1.ts", first, contentType: "video/mp2t")
                stage.origin.script("/v/1.ts") {
                    $0.latency = .seconds(1)
                    $0.stallAfter = 990_000
                }
                let player = try Background { try stage.get("/v/1.ts") }
                try stage.origin.waitForRequests("/v/2.ts", count: 1)
                stage.origin.release("/v/1.ts")
                expectWhole(try player.value(), first)
            }
        }

        @Test func whereOnlyWhatIsReadIsFetchedNothingIs() async throws {
            try await scenario {
                $0.fill(.read)
            } _: { stage in
                Self.serve(stage)
                try #expect(stage.get("/v/film.m3u8").status == 200)
                for number in 1...2 { try #expect(stage.get("/v/\(number).ts").status == 200) }
                try stage.catchUp()
                #expect(Self.requests(stage) == [1, 1] + Array(repeating: 0, count: Self.count - 2))
            }
        }

        /// Keys may not be stored, as a rule.
        @Test func aKeyThatMayNotBeStoredEndsNothing() async throws {
            try await scenario { stage in
                Self.serve(stage, key: true)
                stage.origin.serve("/v/key", bytes: Array(repeating: 7, count: 16))
                stage.origin.script("/v/key") { $0.headers = [("Cache-Control", "no-store")] }
                for name in ["film.m3u8", "1.ts"] { try #expect(stage.get("/v/\(name)").status == 200) }
                try stage.origin.waitForRequests("/v/4.ts", count: 1)
                #expect(stage.origin.requestCount("/v/key") == 1)
            }
        }

        @Test func belowMountsNothingElseIsFetched() async throws {
            try await mounted { stage in
                let text = "#EXTM3U\n#EXTINF:2,\n1.ts\n#EXTINF:2,\n/other/2.ts\n#EXTINF:2,\n3.ts\n#EXT-X-ENDLIST\n"
                stage.origin.serve(
                    "/vod/film.m3u8", bytes: Array(text.utf8), contentType: "application/vnd.apple.mpegurl")
                for path in ["/vod/1.ts", "/other/2.ts", "/vod/3.ts"] {
                    stage.origin.serve(path, Self.media(1), contentType: "video/mp2t")
                }
                for name in ["film.m3u8", "1.ts"] { try #expect(stage.ask("/tv/\(name)").status == 200) }
                try #expect(stage.ask("/tv/3.ts").status == 200)
                try stage.catchUp()
                #expect(stage.origin.requestCount("/other/2.ts") == 0)
            }
        }
    }
}
