import ControlAPI
import DiskCache
import Downloads
import HTTPModel
import Playlists
import Testing
import TestSupport

/// Playlists that are downloaded: all comes that it takes to play them, as one.
extension Scenarios {
    @Suite struct S18Presentation {
        /// A film of an origin's: two qualities, sound in two languages, encrypted.
        private struct Film {
            let stage: Stage
            static let main = "/v/main.m3u8"
            static let segments = 6
            static let media = (0..<100).map { Media(seed: 180 + UInt64($0), size: 150_000) }

            init(_ stage: Stage) {
                self.stage = stage
                stage.origin.serve(
                    Self.main,
                    bytes: Array(
                        """
                        #EXTM3U
                        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="English",LANGUAGE="en",DEFAULT=YES,URI="en.m3u8"
                        #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="Deutsch",LANGUAGE="de",URI="de.m3u8"
                        #EXT-X-STREAM-INF:BANDWIDTH=4000000,RESOLUTION=1920x1080,AUDIO="a"
                        high.m3u8
                        #EXT-X-STREAM-INF:BANDWIDTH=800000,RESOLUTION=640x360,AUDIO="a"
                        low.m3u8
                        """.utf8), contentType: "application/vnd.apple.mpegurl")
                for (place, name) in ["high", "low", "en", "de"].enumerated() { serve(name, place) }
                for name in ["high", "low", "en", "de"] {
                    stage.origin.serve("/v/\(name).key", bytes: Array("0123456789abcdef".utf8))
                }
            }

            private func serve(_ name: String, _ place: Int) {
                let lines = (0..<Self.segments).map { "#EXTINF:4,\n\(name)\($0).ts" }.joined(separator: "\n")
                let text = """
                    #EXTM3U
                    #EXT-X-TARGETDURATION:4
                    #EXT-X-KEY:METHOD=AES-128,URI="\(name).key"
                    \(lines)
                    #EXT-X-ENDLIST
                    """
                stage.origin.serve("/v/\(name).m3u8", bytes: Array(text.utf8), contentType: "text/plain")
                for number in 0..<Self.segments {
                    stage.origin.serve("/v/\(name)\(number).ts", Self.media(place, number), contentType: "video/mp2t")
                }
            }

            static func media(_ place: Int, _ number: Int) -> Media { media[place * 10 + number] }

            /// All that plays without the origin, of these renditions.
            func paths(_ names: [String]) -> [String] {
                [Self.main]
                    + names.flatMap { name in
                        ["/v/\(name).m3u8", "/v/\(name).key"] + (0..<Self.segments).map { "/v/\(name)\($0).ts" }
                    }
            }

            func requests(_ names: [String]) -> [Int] { paths(names).map { stage.origin.requestCount($0) } }
        }

        // What a rule leaves out, no player takes, and no download of the best either.
        @Test func ruleLimitsWhatIsOffered() async throws {
            try await scenario {
                $0.configure { $0.rules = [.init { $0.maxHeight = 720 }] }
            } _: { stage in
                let film = Film(stage)
                for round in 0..<2 {
                    let text = try stage.get(Film.main).text
                    #expect(text.contains("low.m3u8") && !text.contains("high.m3u8"), "\(round)")
                    #expect(text.contains("en.m3u8") && text.contains("de.m3u8"))
                }
                _ = try stage.download(Film.main).complete()
                #expect(stage.origin.requestCount("/v/high.m3u8") == 0)
                try expectPlays(film, ["low", "en"])
                #expect(try stage.get(Film.main).text.contains("low.m3u8"))
            }
        }

        // dash.js, Shaka and others report in the query (CTA-5004): the same segment, and its playlist knows it.
        @Test func reportOfAPlayerSelectsNothing() async throws {
            try await scenario { stage in
                let film = Film(stage)
                _ = (try stage.get("/v/low.m3u8"), film)
                for (round, report) in ["?CMCD=br%3D1", "?CMCD=br%3D2%2Csid%3D%22a%22", ""].enumerated() {
                    let answer = try stage.get("/v/low0.ts" + report)
                    expectWhole(answer, Film.media(1, 0))
                    #expect(answer.isHit == (round > 0))
                }
                // A person may give such a URL, too.
                let shown = try stage.control("GET", "/resources?" + stage.parameter("/v/low0.ts?CMCD=br"))
                #expect(shown.status == 200)
                // The origin gets it as it was sent, and the next segments are fetched ahead.
                #expect(stage.origin.requests("/v/low0.ts").map(\.target) == ["/v/low0.ts?CMCD=br%3D1"])
                try stage.origin.waitForRequests("/v/low1.ts", count: 1)
                #expect(stage.origin.requests("/v/low1.ts").first?.target == "/v/low1.ts")
            }
        }

        /// Everything answers with the origin gone, each byte as it was.
        private func expectPlays(_ film: Film, _ names: [String]) throws {
            let stage = film.stage
            for path in film.paths(names) {
                stage.origin.script(path) {
                    $0.closesBeforeHead = true; $0.cutTimes = .max
                }
            }
            for path in film.paths(names) { #expect(try stage.get(path).status == 200, "\(path)") }
            for (place, name) in ["high", "low", "en", "de"].enumerated() where names.contains(name) {
                for number in 0..<Film.segments {
                    expectWhole(try stage.get("/v/\(name)\(number).ts"), Film.media(place, number))
                }
            }
        }

        private func choice(_ change: (inout RenditionChoice) -> Void) -> RenditionChoice {
            var choice = RenditionChoice()
            change(&choice)
            return choice
        }

        private func isCached(_ stage: Stage, _ path: String) throws -> Bool {
            try stage.control("GET", "/resources?" + stage.parameter(path)).status == 200
        }

        // MARK: What comes

        @Test func theBestPictureAndItsSoundComeAndPlayWithoutTheOrigin() async throws {
            try await scenario { stage in
                let film = Film(stage)
                let progress = try stage.download(Film.main, connections: 4).complete()
                #expect((progress.segments, progress.totalSegments) == (12, 12))
                #expect(progress.note == "1080p 4.0 Mbit/s, audio en")
                #expect(progress.bytes == progress.total && progress.bytes > 12 * 150_000)
                #expect(film.requests(["high", "en"]).allSatisfy { $0 == 1 })
                #expect(film.requests(["low", "de"]).dropFirst().allSatisfy { $0 == 0 })
                try expectPlays(film, ["high", "en"])
            }
        }

        @Test func whatIsChosenComes() async throws {
            try await scenario { stage in
                let film = Film(stage)
                let wanted = choice { ($0.quality, $0.audio) = (.lines(480), .only(["de", "fr"])) }
                let progress = try stage.download(Film.main, renditions: wanted).complete()
                #expect(progress.note == "360p 800 kbit/s, audio de; nothing is available in fr")
                #expect(film.requests(["high", "en"]).dropFirst().allSatisfy { $0 == 0 })
                try expectPlays(film, ["low", "de"])
            }
        }

        @Test func itIsOneResourceThatIsPinnedAsAWhole() async throws {
            try await scenario { stage in
                _ = Film(stage)
                // One part was there already, by itself.
                _ = try stage.get("/v/high3.ts")
                _ = try stage.download(Film.main).complete()
                let listing = try stage.read(ResourceListing.self, "/resources")
                #expect(listing.resources.map(\.urlText) == [stage.origin.url(Film.main)])
                #expect(listing.resources.first?.isPinned == true)
                #expect(listing.resources.first?.parts == 16)
                #expect(stage.origin.requestCount("/v/high3.ts") == 1)
                #expect(try stage.control("DELETE", "/resources?" + stage.parameter(Film.main)).status == 200)
                #expect(try !isCached(stage, "/v/high3.ts"))
            }
        }

        @Test func segmentsAreListedWhileTheyAreSent() async throws {
            try await scenario { stage in
                let lines = (1...1000).map { "#EXTINF:4,\n\($0).ts\n" }.joined()
                let text = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n\(lines)#EXT-X-ENDLIST\n"
                stage.origin.serve("/film.m3u8", bytes: Array(text.utf8), contentType: "application/vnd.apple.mpegurl")
                stage.origin.serve("/7.ts", Media(seed: 7, size: 1000), contentType: "video/mp2t")
                for path in ["/film.m3u8", "/7.ts"] { try #expect(stage.get(path).status == 200) }
                try stage.catchUp()
                let query =
                    "/resources?segments=true&url=" + PercentEncoding.encodingReserved(stage.origin.url("/film.m3u8"))
                let answer = try stage.control("GET", query, .nothing)
                #expect(answer.status == 200 && answer.headers["Transfer-Encoding"] == "chunked")
                let detail = try ControlJSON.decode(ResourceDetail.self, from: answer.body)
                #expect(try ControlJSON.line(detail) == answer.body)
                let list = try #require(detail.resource.presentation?.renditions.first?.segmentList)
                #expect(list.map(\.url) == (1...1000).map { stage.origin.url("/\($0).ts") })
                #expect(list.filter(\.isCached).map(\.number) == [6] && list[6].cached == 1000)
            }
        }

        /// Each keeps the playlist for as long as it is sent.
        @Test func fourListsOfSegmentsAreSentAtATime() async throws {
            try await scenario { stage in
                let lines = (1...8000).map { "#EXTINF:4,\na-name-that-is-rather-long-\($0).ts\n" }.joined()
                let text = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n\(lines)#EXT-X-ENDLIST\n"
                stage.origin.serve("/film.m3u8", bytes: Array(text.utf8), contentType: "application/vnd.apple.mpegurl")
                try #expect(stage.get("/film.m3u8").status == 200)
                try stage.catchUp()
                let query =
                    "/resources?segments=true&url=" + PercentEncoding.encodingReserved(stage.origin.url("/film.m3u8"))
                let readers = try (0..<4).map { _ in
                    let reader = try stage.player(receiveBuffer: 4096)
                    try reader.send(reader.request("/api/v1" + query))
                    return reader
                }
                for reader in readers { try #expect(reader.readHead().status == 200) }
                let refused = try stage.control("GET", query, .nothing)
                #expect(refused.status == 429 && refused.text.contains("4 lists of segments"))
                try #expect(stage.control("GET", query.replacing("segments=true&", with: ""), .nothing).status == 200)
                readers[0].close()
                // A piece may still be written for it.
                try stage.waitForStats("a turn") { _ in
                    (try? stage.control("HEAD", query, .nothing).status) == 200
                }
            }
        }

        /// A page that shows a list for hours needs a title, and not how many segments of each rendition there are.
        @Test func aBriefListHasTheTitleAndLooksAtNoSegment() async throws {
            try await scenario { stage in
                let text = """
                    #EXTM3U
                    #EXT-X-SESSION-DATA:DATA-ID="com.apple.hls.title",VALUE="Silent Reels"
                    #EXT-X-STREAM-INF:BANDWIDTH=4000000,RESOLUTION=1920x1080
                    high.m3u8
                    """
                _ = Film(stage)
                stage.origin.serve(
                    Film.main, bytes: Array(text.utf8), contentType: "application/vnd.apple.mpegurl")
                _ = try stage.download(Film.main).complete()
                let whole = try stage.read(ResourceListing.self, "/resources").resources[0]
                let brief = try stage.read(ResourceListing.self, "/resources?brief=true").resources[0]
                #expect(
                    whole.presentation?.title == "Silent Reels" && whole.title == "Silent Reels" && whole.isComplete)
                #expect(brief.presentation == nil && brief.title == "Silent Reels")
                #expect(brief.cachedBytes == whole.cachedBytes && brief.parts == whole.parts)
                expectRefusal(
                    try stage.control("GET", "/resources?brief=true&" + stage.parameter(Film.main)), 400,
                    naming: "brief")
            }
        }

        @Test func segmentsOfOneFileComeInFewRequests() async throws {
            let file = Media(seed: 189, size: 1_000_000)
            try await scenario { stage in
                // The last range extends beyond the file.
                let lines = (0..<10).map {
                    "#EXTINF:4,\n#EXT-X-BYTERANGE:\($0 < 9 ? 100_000 : 100_010)@\($0 * 100_000)\nf.mp4"
                }
                let text = ["#EXTM3U", "#EXT-X-TARGETDURATION:4"] + lines + ["#EXT-X-ENDLIST"]
                stage.origin.serve("/v/film.m3u8", bytes: Array(text.joined(separator: "\n").utf8))
                stage.origin.serve("/v/f.mp4", file)
                let progress = try stage.download("/v/film.m3u8").complete()
                #expect((progress.segments, progress.totalSegments) == (10, 10))
                #expect(stage.origin.requestCount("/v/f.mp4") == 1)
                expectWhole(try stage.get("/v/f.mp4"), file)
            }
        }

        /// Sound is often a little longer than the picture: a segment more would begin there.
        @Test(arguments: ["PT6S", "PT6.5S"]) func aDASHPresentationComes(duration: String) async throws {
            let (file, parts) = (
                Media(seed: 188, size: 300_000), (1...3).map { Media(seed: 200 + UInt64($0), size: 99_999) }
            )
            try await scenario { stage in
                let text = """
                    <MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="\(duration)"><Period>
                    <AdaptationSet contentType="video"><SegmentTemplate media="v$Number$.m4s" initialization="v.mp4"
                    timescale="1000" duration="2000"/>
                    <Representation id="1" bandwidth="4000000" width="1280" height="720"/></AdaptationSet>
                    <AdaptationSet contentType="audio" lang="en"><Representation id="2" bandwidth="128000">
                    <BaseURL>a.mp4</BaseURL></Representation></AdaptationSet></Period></MPD>
                    """
                stage.origin.serve("/v/main.mpd", bytes: Array(text.utf8), contentType: "application/dash+xml")
                stage.origin.serve("/v/v.mp4", bytes: [1, 2, 3])
                stage.origin.serve("/v/a.mp4", file)
                for (number, part) in parts.enumerated() { stage.origin.serve("/v/v\(number + 1).m4s", part) }
                let progress = try stage.download("/v/main.mpd", connections: 2).complete()
                #expect((progress.segments, progress.note) == (4, "720p 4.0 Mbit/s, audio en"))
                #expect(progress.totalSegments == 4)
                let report = try stage.read(ResourceDetail.self, "/resources?\(stage.parameter("/v/main.mpd"))")
                    .resource
                #expect(report.isComplete && report.presentation?.segments == 4, "\(report)")
                for (number, part) in parts.enumerated() {
                    let response = try stage.get("/v/v\(number + 1).m4s")
                    #expect(response.isHit)
                    expectWhole(response, part)
                }
                #expect(try stage.get("/v/a.mp4").isHit && stage.get("/v/v.mp4").isHit)
            }
        }

        /// A period shorter than half a segment has one all the same.
        @Test func theOnlySegmentOfDASHIsNeeded() async throws {
            try await scenario { stage in
                let text = """
                    <MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT2S"><Period>
                    <AdaptationSet contentType="video"><SegmentTemplate media="v$Number$.m4s" timescale="1000"
                    duration="10000"/><Representation id="1" bandwidth="4000000"/></AdaptationSet></Period></MPD>
                    """
                stage.origin.serve("/v/main.mpd", bytes: Array(text.utf8), contentType: "application/dash+xml")
                let fault = try #require(try stage.download("/v/main.mpd").fault())
                #expect(fault.kind == .final && fault.message.contains("segment 1 of 1"), "\(fault)")
            }
        }

        @Test func aListOfChannelsIsAFile() async throws {
            try await scenario { stage in
                stage.origin.serve("/list.m3u", bytes: Array("#EXTM3U\n#EXTINF:-1,One\nhttp://127.0.0.1:1/one\n".utf8))
                let progress = try stage.download("/list.m3u").complete()
                #expect(progress.segments == nil && progress.total == progress.bytes)
            }
        }

        // MARK: What goes wrong

        @Test func aSegmentThatIsNotThereIsNamedAndARetryGoesOn() async throws {
            try await scenario { stage in
                let film = Film(stage)
                stage.origin.script("/v/high3.ts") { ($0.status, $0.body) = (404, []) }
                let fault = try #require(try stage.download(Film.main).fault())
                #expect(fault.kind == .final)
                #expect(
                    fault.message
                        == "segment 7 of 12, \(stage.origin.url("/v/high3.ts")): the origin answered 404: there is nothing at this URL"
                )
                #expect(try isCached(stage, "/v/high2.ts"), "what has come stays")
                stage.origin.script("/v/high3.ts") { $0.status = nil }
                stage.origin.serve("/v/high3.ts", Film.media(0, 3))
                _ = try stage.download(Film.main).complete()
                #expect(stage.origin.requestCount("/v/high2.ts") == 1)
                try expectPlays(film, ["high", "en"])
            }
        }

        @Test func aLiveStreamIsRefusedWithoutATime() async throws {
            try await scenario { stage in
                stage.origin.serve(
                    "/live.m3u8", bytes: Array("#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n0.ts".utf8))
                let fault = try #require(try stage.download("/live.m3u8").fault())
                #expect(fault.message.contains("--for 30m") && fault.kind == .final, "\(fault.message)")
                #expect(stage.origin.requestCount("/0.ts") == 0)
            }
        }

        // What was cached while it went on is no reason to refuse it.
        @Test func aStreamThatIsOverByNowComes() async throws {
            try await scenario { stage in
                let text = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n0.ts\n"
                stage.origin.serve("/live.m3u8", bytes: Array(text.utf8), etag: "\"1\"")
                stage.origin.serve("/0.ts", Film.media(0, 0))
                _ = try stage.get("/live.m3u8")
                stage.origin.serve("/live.m3u8", bytes: Array((text + "#EXT-X-ENDLIST\n").utf8), etag: "\"2\"")
                #expect(try stage.download("/live.m3u8").complete().segments == 1)
            }
        }

        @Test func theFirstBytesOfAPlaylistAreRefused() async throws {
            try await scenario { stage in
                _ = Film(stage)
                let fault = try #require(try stage.download(Film.main, first: 20).fault())
                #expect(fault.message.contains("--first"), "\(fault.message)")
            }
        }

        // MARK: Pausing, killing, cancelling

        @Test func whatWasStoppedGoesOnInTheNextProcess() async throws {
            try await scenario { stage in
                let film = Film(stage)
                stage.origin.hold("/v/high4.ts")
                let first = try stage.download(Film.main)
                try stage.origin.waitForRequests("/v/high4.ts", count: 1)
                #expect(first.progress.segments == 8 && first.progress.totalSegments == 12)
                first.stop()
                try stage.restart()
                stage.origin.script("/v/high4.ts") { $0.holdBody = false }
                _ = try stage.download(Film.main).complete()
                #expect(film.requests(["high", "en"]).reduce(0, +) == film.paths(["high", "en"]).count + 1)
                try expectPlays(film, ["high", "en"])
            }
        }

        @Test func aCancelledOneLeavesWhatWasThereBefore() async throws {
            try await scenario { stage in
                _ = Film(stage)
                _ = try stage.get("/v/high1.ts")
                _ = try stage.get("/other.mp4")
                stage.origin.hold("/v/high4.ts")
                let body = "{\"downloads\": [{\"url\": \"\(stage.origin.url(Film.main))\", \"quality\": \"best\"}]}"
                #expect(try stage.control("POST", "/downloads", body: body).status == 201)
                try stage.origin.waitForRequests("/v/high4.ts", count: 1)
                #expect(try stage.control("PATCH", "/downloads?id=1", body: "{\"action\": \"cancel\"}").status == 200)
                for path in [Film.main, "/v/high.m3u8", "/v/high.key", "/v/high0.ts", "/v/en0.ts"] {
                    #expect(try !isCached(stage, path), "\(path)")
                }
                #expect(try stage.control("GET", "/downloads?id=1").text.contains("cancelled"))
            }
        }

        // MARK: Recording

        private static func live(_ numbers: Range<Int>, ends: Bool = false) -> [UInt8] {
            let lines = numbers.map { "#EXTINF:1,\n\($0).ts" }.joined(separator: "\n")
            let text = "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXT-X-MEDIA-SEQUENCE:\(numbers.lowerBound)\n\(lines)\n"
            return Array((text + (ends ? "#EXT-X-ENDLIST\n" : "")).utf8)
        }

        private func serve(_ stage: Stage, _ numbers: Range<Int>, ends: Bool = false) {
            for number in numbers { stage.origin.serve("/\(number).ts", Film.media(0, number % 10)) }
            stage.origin.serve(
                "/live.m3u8", bytes: Self.live(numbers, ends: ends), etag: "\"\(numbers)\(ends)\"",
                contentType: "application/vnd.apple.mpegurl")
        }

        @Test func aLiveStreamIsRecordedUntilItEnds() async throws {
            try await scenario { stage in
                serve(stage, 0..<4)
                let recording = try stage.download("/live.m3u8", recordFor: 3600)
                try stage.origin.waitForRequests("/3.ts", count: 1)
                serve(stage, 2..<7)
                try stage.origin.waitForRequests("/6.ts", count: 1)
                serve(stage, 4..<8, ends: true)
                let progress = try recording.complete()
                #expect(stage.origin.requestCount("/0.ts") == 0 && stage.origin.requestCount("/1.ts") == 1)
                #expect(progress.segments == 7)
                let path = try #require(recordingPath(progress))
                let text = try stage.get(path).text
                #expect(text.contains("#EXT-X-ENDLIST") && text.contains("7.ts"), "\(text)")
                #expect(try stage.get("/5.ts").isHit)
                let whole = try stage.read(ResourceListing.self, "/resources").resources.first { $0.parts == 7 }
                #expect(whole?.isPinned == true)
            }
        }

        @Test func aRecordingEndsWithItsTime() async throws {
            try await scenario { stage in
                serve(stage, 0..<4)
                let recording = try stage.download("/live.m3u8", recordFor: 60)
                try stage.origin.waitForRequests("/3.ts", count: 1)
                stage.wait(seconds: 61)
                #expect(try recording.complete().segments == 3)
            }
        }

        /// Under a rule for tokens, as stations have them.
        @Test func aRecordingLeavesTheStreamAsItIsWhateverARuleIgnores() async throws {
            try await scenario {
                $0.configure { $0.rules = [.init { $0.ignoredQuery = .all }] }
            } _: { stage in
                serve(stage, 0..<4)
                let recording = try stage.download("/live.m3u8", recordFor: 60)
                try stage.origin.waitForRequests("/3.ts", count: 1)
                stage.wait(seconds: 61)
                let path = try #require(recordingPath(try recording.complete()))
                #expect(try stage.get("/live.m3u8").body == Self.live(0..<4))
                #expect(try stage.get(path).text.contains("#EXT-X-ENDLIST"))
            }
        }

        /// Each begins three segments before the live edge, and so with what the former ended with.
        @Test(arguments: [true, false]) func recordingsThatFollowEachOtherAreBothWhole(removesFirst: Bool) async throws
        {
            try await scenario { stage in
                var paths: [String] = []
                for (numbers, last) in [(0..<4, 3), (1..<6, 5)] {
                    serve(stage, numbers)
                    let recording = try stage.download("/live.m3u8", recordFor: 60)
                    try stage.origin.waitForRequests("/\(last).ts", count: 1)
                    stage.wait(seconds: 61)
                    paths.append(try #require(recordingPath(try recording.complete())))
                }
                stage.origin.stop()
                let removed = paths.remove(at: removesFirst ? 0 : 1)
                #expect(try stage.control("DELETE", "/resources?\(stage.parameter(removed))").status == 200)
                let text = try stage.get(paths[0]).text
                let segments = text.split(separator: "\n").filter { $0.hasSuffix(".ts") }
                #expect(segments.count == 3 && segments.contains { $0.hasSuffix("3.ts") }, "\(text)")
                for number in removesFirst ? 3..<6 : 1..<4 { #expect(try stage.get("/\(number).ts").isHit) }
                let other = try stage.get(removesFirst ? "/2.ts" : "/4.ts")
                #expect(other.status == 502)
            }
        }

        /// A recording of a minute whose process ends before it does.
        /// - Returns: when it began.
        private func breakOffRecording(_ stage: Stage) throws -> Int64 {
            serve(stage, 0..<4)
            let began = stage.clock.now
            let recording = try stage.download("/live.m3u8", recordFor: 60, recordedFrom: began)
            // The first writing pins it; the stream is requested meanwhile.
            try eventually("a recording that is written") {
                try stage.read(ResourceListing.self, "/resources").resources.contains { $0.parts == 3 && $0.isPinned }
            }
            recording.stop()
            return began
        }

        @Test func anotherProcessGoesOnWithARecording() async throws {
            try await scenario { stage in
                let began = try breakOffRecording(stage)
                try stage.restart()
                serve(stage, 2..<6)
                let second = try stage.download("/live.m3u8", recordFor: 60, recordedFrom: began)
                try stage.origin.waitForRequests("/5.ts", count: 1)
                stage.wait(seconds: 61)
                let progress = try second.complete()
                #expect(progress.segments == 5 && progress.bytes >= 5 * Film.media(0, 0).size, "\(progress)")
                let text = try stage.get(try #require(recordingPath(progress))).text
                #expect(text.contains("1.ts") && text.contains("5.ts") && !text.contains("DISCONTINUITY"), "\(text)")
                #expect(stage.origin.requestCount("/2.ts") == 1)
            }
        }

        /// As when another client's request replaces it while it is read, or an origin cuts it.
        @Test func aListThatCannotBeReadIsRequestedAgain() async throws {
            try await scenario { stage in
                serve(stage, 0..<4)
                let recording = try stage.download("/live.m3u8", recordFor: 60)
                try stage.origin.waitForRequests("/3.ts", count: 1)
                let text = "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXT-X-BYTERANGE:5\n#EXTINF:1,\nx"
                let count = stage.origin.requestCount("/live.m3u8")
                stage.origin.serve("/live.m3u8", bytes: Array(text.utf8), etag: "\"cut\"")
                try stage.origin.waitForRequests("/live.m3u8", count: count + 2)
                serve(stage, 1..<6)
                try stage.origin.waitForRequests("/5.ts", count: 1)
                stage.wait(seconds: 61)
                #expect(try recording.complete().segments == 5)
            }
        }

        /// An encoder that restarts, for longer than one attempt waits.
        @Test func aStreamThatIsAwayForAWhileIsRecordedAgain() async throws {
            try await scenario { stage in
                serve(stage, 0..<4)
                let recording = try stage.download("/live.m3u8", recordFor: 600)
                try stage.origin.waitForRequests("/3.ts", count: 1)
                stage.origin.script("/live.m3u8") { ($0.status, $0.body) = (404, []) }
                let count = stage.origin.requestCount("/live.m3u8")
                // The first failure is known by then.
                try stage.origin.waitForRequests("/live.m3u8", count: count + 2)
                stage.wait(seconds: 31)
                let fault = try #require(try recording.fault())
                #expect(fault.kind == .network && fault.message.contains("404"), "\(fault)")
            }
        }

        // It is kept, whatever has become of the stream.
        @Test func aRecordingWhoseTimePassesWithoutAProcessIsWhatHasCome() async throws {
            try await scenario { stage in
                let began = try breakOffRecording(stage)
                try stage.stop()
                stage.wait(seconds: 61)
                try stage.start()
                stage.origin.script("/live.m3u8") { ($0.status, $0.body) = (404, []) }
                let progress = try stage.download("/live.m3u8", recordFor: 60, recordedFrom: began).complete()
                let text = try stage.get(try #require(recordingPath(progress))).text
                #expect(text.contains("1.ts") && text.contains("3.ts"), "\(text)")
                let never = try #require(
                    try stage.download("/live.m3u8", recordFor: 1, recordedFrom: began - 1000).fault())
                #expect(never.message == "no segment of the stream arrived during the recording")
            }
        }

        @Test func whatIsNotLiveIsNotRecorded() async throws {
            try await scenario { stage in
                _ = Film(stage)
                for path in [Film.main, "/v/high.m3u8", "/v/high0.ts"] {
                    let fault = try #require(try stage.download(path, recordFor: 60).fault())
                    #expect(fault.message.contains("--for") && fault.kind == .final, "\(fault.message)")
                }
            }
        }

        /// Where a recording plays, as its end says.
        private func recordingPath(_ progress: DownloadProgress) -> String? {
            progress.note?.split(separator: " ").last.flatMap { url in
                url.split(separator: "/", maxSplits: 2).last.map { "/" + $0 }
            }
        }
    }
}
