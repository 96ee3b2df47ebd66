import Testing
import TestSupport

/// A bit more than four chunks of 64 KiB.
private let film = Media(seed: 1, size: 300_000)
private let date = "Sun, 06 Nov 1994 08:49:37 GMT"

extension Scenarios {
    @Suite struct S01Basics {
        // MARK: Whole files

        @Test func wholeFileUnknownIsFetchedAndTellsWhatItIs() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film, lastModified: date)
                let response = try stage.get("/film.mp4")
                expectWhole(response, film)
                #expect(response.headers["Accept-Ranges"] == "bytes")
                #expect(response.headers["ETag"] == "\"v1\"")
                #expect(response.headers["Last-Modified"] == date)
                #expect(response.headers["Content-Type"] == "video/mp4")
                #expect(response.headers["Date"] != nil)
                #expect(response.headers["Age"] == nil)
                #expect(response.cacheStatus == "reelcache; fwd=uri-miss; fwd-status=200; stored")
                #expect(stage.origin.requestCount("/film.mp4") == 1)
            }
        }

        @Test func wholeFileAskedForAgainIsAHit() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film, lastModified: date)
                _ = try stage.get("/film.mp4")
                let again = try stage.get("/film.mp4")
                expectWhole(again, film)
                #expect(again.isHit)
                #expect(Int(again.headers["Age"] ?? "").map { $0 >= 0 } == true)
                #expect(again.headers["ETag"] == "\"v1\"")
                #expect(again.headers["Last-Modified"] == date)
                #expect(again.headers["Content-Type"] == "video/mp4")
                #expect(again.headers["Accept-Ranges"] == "bytes")
                #expect(stage.origin.requestCount("/film.mp4") == 1)
                let stats = try stage.stats
                #expect(stats[\.requests] == 2 && stats[\.hits] == 1 && stats[\.misses] == 1)
                #expect(stats[\.bytesFromCache] == 300_000 && stats[\.bytesFromUpstream] == 300_000)
                #expect(stats[\.upstreamBytes] == 300_000)
            }
        }

        @Test(arguments: [0, 1, 65_535, 65_536, 65_537, 131_072, 4_194_303, 4_194_304, 4_194_305])
        func fileOfAnySizeIsServedFetchedAndCached(size: Int64) async throws {
            try await scenario { stage in
                let film = Media(seed: UInt64(size), size: size)
                stage.origin.serve("/film.mp4", film)
                expectWhole(try stage.get("/film.mp4"), film)
                let again = try stage.get("/film.mp4")
                expectWhole(again, film)
                #expect(again.isHit)
                #expect(stage.origin.requestCount("/film.mp4") == 1)
            }
        }

        @Test(arguments: [1, 65_535, 65_536, 65_537, 4_194_303, 4_194_304, 4_194_305])
        func lastByteOfAFileOfAnySizeIsServedFetchedAndCached(size: Int64) async throws {
            try await scenario { stage in
                let film = Media(seed: UInt64(size), size: size)
                stage.origin.serve("/film.mp4", film)
                for field in ["bytes=\(size - 1)-\(size - 1)", "bytes=-1", "bytes=\(size - 1)-"] {
                    expectPart(try stage.get("/film.mp4", range: field), size - 1..<size, of: film)
                }
                expectWhole(try stage.get("/film.mp4"), film)
            }
        }

        @Test func emptyFileHasNoRangeToAskFor() async throws {
            try await scenario { stage in
                stage.origin.serve("/empty", Media(seed: 1, size: 0))
                for _ in 1...2 {
                    for field in ["bytes=0-0", "bytes=0-", "bytes=5-9"] {
                        let response = try stage.get("/empty", range: field)
                        #expect(response.status == 416)
                        #expect(response.headers["Content-Range"] == "bytes */0")
                    }
                    expectWhole(try stage.get("/empty"), Media(seed: 1, size: 0))
                }
            }
        }

        @Test func filesThatDifferInTheQueryAloneAreTwo() async throws {
            try await scenario { stage in
                let (first, second) = (Media(seed: 1, size: 1000), Media(seed: 2, size: 1000))
                stage.origin.serve("/v?id=1", first)
                stage.origin.serve("/v?id=2", second)
                for _ in 1...2 {
                    expectWhole(try stage.get("/v?id=1"), first)
                    expectWhole(try stage.get("/v?id=2"), second)
                }
                #expect(stage.origin.snapshot.requests.count == 2)
            }
        }

        @Test func urlWithTwoSlashesMeansTheSameFile() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                for form in ["/http/", "/http://", "/http:/"] {
                    expectWhole(
                        try RawClient.get(
                            port: stage.proxy.port, path: "\(form)127.0.0.1:\(stage.origin.port)/film.mp4"), film)
                }
                #expect(stage.origin.requestCount("/film.mp4") == 1)
            }
        }

        @Test(arguments: ["/https/", "/https://"])
        func httpsURLIsNotTheFileOfThatNameOverHTTP(form: String) async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                expectWhole(try stage.get("/film.mp4"), film)
                stage.origin.stop()
                expectOneLine(
                    try RawClient.get(port: stage.proxy.port, path: "\(form)127.0.0.1:\(stage.origin.port)/film.mp4"),
                    status: 502)
            }
        }

        // MARK: HEAD

        @Test func headOfAnUnknownFileIsTheOriginsAndFetchesNothing() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                let response = try stage.get("/film.mp4", method: "HEAD")
                #expect(response.status == 200 && response.body.isEmpty)
                #expect(response.headers["Content-Length"] == "300000")
                #expect(response.headers["ETag"] == "\"v1\"")
                #expect(response.headers["Content-Type"] == "video/mp4")
                #expect(response.cacheStatus.hasPrefix("reelcache; fwd=uri-miss"))
                #expect(stage.origin.requests("/film.mp4").map(\.method) == ["HEAD"])
            }
        }

        @Test func headOfACachedFileIsAHit() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                _ = try stage.get("/film.mp4")
                let response = try stage.get("/film.mp4", method: "HEAD")
                #expect(response.status == 200 && response.body.isEmpty && response.isHit)
                #expect(response.headers["Content-Length"] == "300000")
                #expect(response.headers["Accept-Ranges"] == "bytes")
                #expect(stage.origin.requestCount("/film.mp4") == 1)
            }
        }

        @Test func headWithARangeIsTheHeadOfTheWhole() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                for _ in 1...2 {
                    let response = try stage.get("/film.mp4", range: "bytes=0-9", method: "HEAD")
                    #expect(
                        response.status == 200 && response.headers["Content-Length"] == "300000"
                            && response.headers["Content-Range"] == nil)
                    _ = try stage.get("/film.mp4")
                }
            }
        }

        // MARK: Ranges

        @Test(arguments: CacheState.allCases) func rangeIsAnsweredWithItsBytes(state: CacheState) async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                for (index, (field, range))
                    in ([
                        ("bytes=0-0", 0..<1), ("bytes=0-99999", 0..<100_000),
                        ("bytes=100000-199999", 100_000..<200_000),
                        ("bytes=65535-65536", 65_535..<65_537),
                        ("bytes=131072-196607", 131_072..<196_608), ("bytes=0-", 0..<300_000),
                        ("bytes=100-", 100..<300_000),
                        ("bytes=150000-", 150_000..<300_000),
                        ("bytes=-1", 299_999..<300_000), ("bytes=-100000", 200_000..<300_000),
                        ("bytes=-300000", 0..<300_000),
                        ("bytes=-9999999", 0..<300_000),
                        ("bytes=299999-299999", 299_999..<300_000), ("bytes=299990-999999999", 299_990..<300_000),
                        ("bytes=0-9223372036854775807", 0..<300_000), ("bytes=1-99999999999999999999", 1..<300_000),
                        ("bytes=-99999999999999999999", 0..<300_000),
                        ("Bytes=5-9", 5..<10), ("bytes=, 5-9", 5..<10),
                    ] as [(String, Range<Int64>)]).enumerated()
                {
                    let path = "/film.mp4?\(index)"
                    try state.prepare(stage, path)
                    let response = try stage.get(path, range: field)
                    expectPart(response, range, of: film, "\(field)")
                    #expect(response.headers["Accept-Ranges"] == "bytes" && response.headers["ETag"] == "\"v1\"")
                    switch state {
                    case .uncached:
                        #expect(response.cacheStatus == "reelcache; fwd=uri-miss; fwd-status=206; stored", "\(field)")
                    case .partlyCached where range.clamped(to: 131_072..<196_608) != range:
                        #expect(response.cacheStatus.hasPrefix("reelcache; fwd=partial"), "\(field)")
                    case .partlyCached, .cached: #expect(response.isHit, "\(field)")
                    }
                    expectPart(try stage.get(path, range: field), range, of: film, "\(field)")
                    expectWhole(try stage.get(path), film, "\(field)")
                }
            }
        }

        @Test(arguments: CacheState.allCases) func rangePastTheEndIsRefusedWithTheLength(state: CacheState) async throws
        {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                for (index, field)
                    in ([
                        "bytes=300000-", "bytes=300000-300010", "bytes=400000-", "bytes=-0",
                        "bytes=99999999999999999999-",
                    ] as [String]).enumerated()
                {
                    let path = "/film.mp4?\(index)"
                    try state.prepare(stage, path)
                    let response = try stage.get(path, range: field)
                    #expect(response.status == 416, "\(field)")
                    #expect(response.headers["Content-Range"] == "bytes */300000", "\(field)")
                    expectWhole(try stage.get(path), film, "\(field)")
                }
            }
        }

        @Test func rangePastTheEndOfAPlaylistThatIsNotStoredIsRefused() async throws {
            try await scenario { stage in
                let list = Array("#EXTM3U\n#EXTINF:1,\na.mp4\n".utf8)
                stage.origin.serve("/list.m3u8", bytes: list, contentType: "application/vnd.apple.mpegurl")
                stage.origin.script("/list.m3u8") { $0.headers = [("Cache-Control", "no-store")] }
                let response = try stage.get("/list.m3u8", range: "bytes=5000-")
                #expect(response.status == 416)
                #expect(response.headers["Content-Range"]?.hasPrefix("bytes */") == true)
                #expect(try stage.get("/list.m3u8", range: "bytes=0-3").text == "#EXT")
            }
        }

        @Test func malformedRangeIsABadRequestThatNeverLeaves() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                for field in [
                    "bytes=5-4", "bytes=abc", "bytes", "bytes=", "bytes=--5", "bytes=5", "bytes=1-2-3", "=0-5",
                    "bytes=0x1-5",
                    "bytes=+1-5", "bytes=0-1,x",
                ] as [String] {
                    expectOneLine(try stage.get("/film.mp4", range: field), status: 400, "\(field)")
                    #expect(stage.origin.requestCount("/film.mp4") == 0)
                }
            }
        }

        @Test(arguments: ["seconds=0-9", "seconds=0-9,20-29"], CacheState.allCases)
        func unknownUnitIsAnsweredWithTheWhole(field: String, state: CacheState) async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                try state.prepare(stage)
                expectWhole(try stage.get("/film.mp4", range: field), film)
            }
        }

        @Test func seekToTheEndOfAHugeFileGoesPast32Bits() async throws {
            try await scenario { stage in
                let huge = Media(seed: 7, size: 100_000_000_000)
                stage.origin.serve("/huge.mkv", huge)
                let (tail, middle): (Range<Int64>, Range<Int64>) = (
                    99_999_999_000..<100_000_000_000, 4_294_967_290..<4_294_967_306
                )
                for _ in 1...2 {
                    expectPart(try stage.get("/huge.mkv", range: "bytes=-1000"), tail, of: huge)
                    expectPart(try stage.get("/huge.mkv", range: tail.rangeField), tail, of: huge)
                    expectPart(try stage.get("/huge.mkv", range: middle.rangeField), middle, of: huge)
                }
                #expect(stage.origin.bytesSent("/huge.mkv") < 1_000_000)
                #expect(try stage.stats[\.size] < 1_000_000)
            }
        }

        // MARK: Conditions

        @Test(arguments: CacheState.allCases) func rangeUnderIfRangeIsAPartOnlyOfTheVersionNamed(state: CacheState)
            async throws
        {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film, lastModified: date)
                for (index, (field, holds))
                    in ([
                        ("\"v1\"", true), ("\"v2\"", false), ("W/\"v1\"", false), (date, true),
                        ("Sun, 06 Nov 1994 08:49:38 GMT", false),
                    ] as [(String, Bool)]).enumerated()
                {
                    let path = "/film.mp4?\(index)"
                    try state.prepare(stage, path)
                    let response = try stage.get(
                        path, range: "bytes=1000-1999", headers: [("If-Range", field)])
                    if holds {
                        expectPart(response, 1000..<2000, of: film, "\(field)")
                    } else {
                        expectWhole(response, film, "\(field)")
                    }
                }
            }
        }

        @Test(arguments: CacheState.allCases) func conditionalRequestIsAnsweredByTheProxy(state: CacheState)
            async throws
        {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film, lastModified: date)
                for (index, (name, value, status))
                    in ([
                        ("If-None-Match", "\"v1\"", 304), ("If-None-Match", "W/\"v1\"", 304),
                        ("If-None-Match", "\"v0\", \"v1\"", 304), ("If-None-Match", "*", 304),
                        ("If-None-Match", "\"v2\"", 200), ("If-Modified-Since", date, 304),
                        ("If-Modified-Since", "Sun, 06 Nov 1994 08:49:36 GMT", 200),
                        ("If-Match", "\"v1\"", 200), ("If-Match", "\"v2\"", 412),
                        ("If-Unmodified-Since", "Sun, 06 Nov 1994 08:49:36 GMT", 412),
                    ] as [(String, String, Int)]).enumerated()
                {
                    let path = "/film.mp4?\(index)"
                    try state.prepare(stage, path)
                    let player = try stage.player()
                    let response = try player.get(stage.target(path), headers: [(name, value)])
                    #expect(response.status == status, "\(name): \(value)")
                    if status == 200 {
                        expectWhole(response, film, "\(name): \(value)")
                    } else {
                        #expect(response.body.isEmpty, "\(name): \(value)")
                        #expect(response.headers["ETag"] == "\"v1\"", "\(name): \(value)")
                    }
                    // What is not sent must not be announced: the connection goes on.
                    expectWhole(try player.get(stage.target(path)), film, "\(name): \(value)")
                }
            }
        }

        // MARK: Connections

        @Test func connectionServesOneRequestAfterTheOther() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                let player = try stage.player()
                for method in ["GET", "HEAD", "GET", "HEAD", "GET"] {
                    let response = try player.get(stage.target("/film.mp4"), range: "bytes=5-9", method: method)
                    if method == "GET" {
                        expectPart(response, 5..<10, of: film)
                    } else {
                        #expect(response.status == 200)
                    }
                }
                #expect(try stage.stats[\.acceptedConnections] == 1)
            }
        }

        @Test func twentyPipelinedRequestsAreAnsweredInOrder() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                for _ in 1...2 {
                    let player = try stage.player()
                    // Back and forth, so that some are hits and come sooner than what was asked before them.
                    let ranges = (0..<20).map { index in Int64(index * 7919 % 20) * 15_000 }.map { $0..<$0 + 15_000 }
                    let responses = try player.pipeline(
                        ranges.map { player.request(stage.target("/film.mp4"), range: $0.rangeField) })
                    for (response, range) in zip(responses, ranges) { expectPart(response, range, of: film) }
                }
            }
        }

        @Test func http10ClientGetsItsFileAndTheEndOfTheConnection() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                for _ in 1...2 {
                    let player = try stage.player()
                    expectWhole(try player.get(stage.target("/film.mp4"), version: "1.0"), film)
                    #expect(try player.isClosedByPeer())
                }
            }
        }

        @Test func http10ClientThatAsksForItKeepsItsConnection() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                let player = try stage.player()
                for _ in 1...3 {
                    let response = try player.get(
                        stage.target("/film.mp4"), headers: [("Connection", "keep-alive")], version: "1.0")
                    expectWhole(response, film)
                    #expect(response.headers["Connection"] == "keep-alive")
                }
                #expect(try stage.stats[\.acceptedConnections] == 1)
            }
        }

        @Test func clientThatWantsToCloseIsClosed() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", film)
                let player = try stage.player()
                let response = try player.get(stage.target("/film.mp4"), headers: [("Connection", "close")])
                expectWhole(response, film)
                #expect(response.headers["Connection"] == "close")
                #expect(try player.isClosedByPeer())
            }
        }

        // MARK: What is not media

        @Test func healthStatisticsAndOptionsAreAnswered() async throws {
            try await scenario { stage in
                let player = try stage.player()
                #expect(try player.get("/healthz").text == "ok\n")
                #expect(try player.get("/stats").headers["Content-Type"] == "application/json")
                let options = try player.get(stage.target("/film.mp4"), method: "OPTIONS")
                #expect(options.status == 204 && options.headers["Allow"] == "GET, HEAD, OPTIONS")
                #expect(try player.get("/nothing").status == 404)
                #expect(stage.origin.snapshot.requests.isEmpty)
            }
        }
    }
}
