import ControlAPI
import DiskCache
import Reelcache
import Testing
import TestSupport

private let film = Media(seed: 201, size: 3_000_000)
private let path = "/film.mp4"

/// How somebody comes to keep a film.
enum WayToKeep: CaseIterable {
    case download, downloadWithoutPin, pin
}

extension Stage {
    /// Serves a film whose origin wants to be asked each time, has it cached, and lets it become stale.
    fileprivate func keep(_ way: WayToKeep?, _ cacheControl: String = "no-cache", noValidators: Bool = false) throws {
        origin.serve(path, film)
        origin.script(path) { ($0.headers, $0.noValidators) = ([("Cache-Control", cacheControl)], noValidators) }
        switch way {
        case .download: _ = try download(path).complete()
        case .downloadWithoutPin: _ = try download(path, isPinned: false).complete()
        case .pin, nil:
            expectWhole(try get(path), film)
            if way == .pin { try setPinned(true) }
        }
        wait(seconds: 1000)
    }

    fileprivate func setPinned(_ isPinned: Bool) throws {
        #expect(try control("PATCH", "/resources?\(parameter(path))", body: "{\"pinned\": \(isPinned)}").status == 200)
    }
}

/// What somebody has pinned or downloaded plays while its origin cannot be reached (RFC 9111 §5.2.2.2 set aside on
/// purpose).
extension Scenarios {
    @Suite struct S20Kept {
        private func expectStale(
            _ response: RawClient.Response, status: Int? = nil, sourceLocation: SourceLocation = #_sourceLocation
        ) {
            let beginning = "reelcache; fwd=stale; " + (status.map { "fwd-status=\($0); " } ?? "") + "ttl=-"
            #expect(
                response.cacheStatus.hasPrefix(beginning), "\(response.cacheStatus)", sourceLocation: sourceLocation)
        }

        @Test(arguments: WayToKeep.allCases, ["no-cache", "max-age=60, must-revalidate"])
        func whatIsKeptPlaysWithoutItsOrigin(way: WayToKeep, cacheControl: String) async throws {
            try await scenario { stage in
                try stage.keep(way, cacheControl)
                stage.origin.stop()
                // Also after a restart: the index remembers.
                for _ in 0..<2 {
                    let whole = try stage.get(path)
                    expectWhole(whole, film)
                    expectStale(whole)
                    let part = try stage.get(path, range: "bytes=1000-1999")
                    expectPart(part, 1000..<2000, of: film)
                    expectStale(part)
                    let head = try stage.get(path, method: "HEAD")
                    #expect(head.status == 200)
                    expectStale(head)
                    try stage.restart()
                }
            }
        }

        // Podcast hosts name User-Agent; what was downloaded tonight plays in any player tomorrow.
        @Test(arguments: [("User-Agent", true), ("Accept-Language", false), ("Accept", false), ("Cookie", false)])
        func whatIsKeptPlaysWhateverSelectedIt(field: String, playsOnline: Bool) async throws {
            try await scenario { stage in
                stage.origin.serve(path, film)
                stage.origin.script(path) { $0.headers = [("Cache-Control", "max-age=9999"), ("Vary", field)] }
                _ = try stage.download(path).complete()
                let before = stage.origin.requestCount(path)
                let fields = [(field, "another")]
                if playsOnline {
                    let answer = try stage.get(path, headers: fields)
                    expectWhole(answer, film)
                    #expect(answer.isHit && stage.origin.requestCount(path) == before)
                }
                stage.origin.stop()
                expectWhole(try stage.get(path, headers: fields), film)
                expectWhole(try stage.get(path), film)
            }
        }

        @Test func whatIsKeptPlaysWhileItsOriginHasErrors() async throws {
            try await scenario { stage in
                try stage.keep(.download)
                stage.origin.script(path) { $0.status = 503 }
                let response = try stage.get(path)
                expectWhole(response, film)
                expectStale(response, status: 503)
            }
        }

        /// Streams drop what was recorded of them, and episodes go: that is what it was kept for.
        // Links and logins expire, too.
        @Test(arguments: WayToKeep.allCases, [401, 403, 404, 410, 451])
        func whatIsKeptPlaysWhenItsOriginNoLongerHasIt(way: WayToKeep, status: Int) async throws {
            try await scenario { stage in
                try stage.keep(way)
                stage.origin.script(path) { $0.status = status }
                for method in ["HEAD", "GET", "GET"] {
                    let response = try stage.get(path, method: method)
                    #expect(response.status == 200)
                    if method == "GET" { expectWhole(response, film) }
                    expectStale(response, status: status)
                }
                try stage.restart()
                expectPart(try stage.get(path, range: "bytes=1000-1999"), 1000..<2000, of: film)
            }
        }

        @Test func newVersionOfWhatIsKeptIsKeptToo() async throws {
            let remake = Media(seed: 202, size: 2_000_000)
            try await scenario { stage in
                try stage.keep(.pin)
                stage.origin.serve(path, remake, etag: "\"v2\"")
                expectWhole(try stage.get(path), remake)
                // The index is told of it by whoever asks.
                _ = try stage.read(ResourceListing.self, "/resources")
                stage.wait(seconds: 1000)
                stage.origin.stop()
                expectWhole(try stage.get(path), remake)
            }
        }

        /// Its bytes may never come: the player leaves, or the line breaks.
        @Test(arguments: WayToKeep.allCases, [nil, "W/\"2\"", "\"v2\""])
        func whatIsKeptStaysUntilItsNewVersionIsWhole(way: WayToKeep, etag: String?) async throws {
            try await scenario { stage in
                try stage.keep(way)
                stage.origin.serve(path, Media(seed: 202, size: 2_000_000), etag: etag)
                stage.origin.script(path) {
                    ($0.noValidators, $0.stallAfter) = (etag == nil, 1_000_000)
                    $0.headers = [("Cache-Control", "no-cache")]
                }
                let (player, head) = try stage.playerOf(path)
                #expect(head.status == 200 && head.headers["Content-Length"] == "2000000")
                _ = try player.readBody(exactly: 500_000)
                player.close()
                stage.origin.stop()
                // As long as its player is there, it plays on.
                try stage.catchUp()
                for _ in 0..<2 {
                    expectWhole(try stage.get(path), film)
                    expectStale(try stage.get(path))
                    try stage.restart()
                }
            }
        }

        /// One that is not whole gives way to the next, without validators as well.
        @Test(arguments: [false, true]) func newVersionOfANewVersionIsKept(noValidators: Bool) async throws {
            let versions = (1...3).map { Media(seed: 210 + UInt64($0), size: 2_000_000) }
            try await scenario { stage in
                try stage.keep(.pin, noValidators: noValidators)
                for (number, media) in versions.enumerated() {
                    stage.origin.serve(path, media, etag: "\"v\(number + 2)\"")
                    stage.origin.script(path) {
                        ($0.headers, $0.noValidators) = ([("Cache-Control", "no-cache")], noValidators)
                    }
                    if number < 2 {
                        expectPart(try stage.get(path, range: "bytes=0-299999"), 0..<300_000, of: media)
                    } else {
                        expectWhole(try stage.get(path), media)
                    }
                }
                stage.origin.stop()
                for _ in 0..<2 {
                    expectWhole(try stage.get(path), versions[2])
                    try stage.restart()
                }
            }
        }

        /// It is fresh, so that nothing else returns to the former.
        @Test func whatIsKeptPlaysWhenItsFreshNewVersionBreaksOff() async throws {
            try await scenario { stage in
                try stage.keep(.pin)
                stage.origin.serve(path, Media(seed: 202, size: 2_000_000), etag: "\"v2\"")
                stage.origin.script(path) { $0.headers = [("Cache-Control", "max-age=1000")] }
                #expect(try stage.get(path, range: "bytes=0-299999").status == 206)
                stage.origin.stop()
                expectPart(try stage.get(path, range: "bytes=1500000-1500999"), 1_500_000..<1_501_000, of: film)
                expectWhole(try stage.get(path), film)
            }
        }

        /// An origin's program has an error, and says 200.
        @Test(arguments: [("application/json", "{\"error\": 1}"), ("text/plain", "expired"), ("video/mp4", "")])
        func whatIsNoFilmDoesNotTakeItsPlace(type: String, text: String) async throws {
            try await scenario { stage in
                try stage.keep(.pin)
                stage.origin.serve(path, bytes: Array(text.utf8), etag: "\"v2\"", contentType: type)
                for method in ["HEAD", "GET", "GET"] {
                    let answer = try stage.get(path, method: method)
                    #expect(answer.status == 200 && answer.headers["Content-Length"] == "\(film.size)")
                }
                stage.origin.stop()
                expectWhole(try stage.get(path), film)
                try stage.restart()
                expectWhole(try stage.get(path), film)
            }
        }

        /// A film of six segments, in versions.
        private struct Stream {
            let stage: Stage
            /// Whether each version's segments have names of their own.
            let hasNewNames: Bool
            static let path = "/v/film.m3u8"

            func name(_ version: Int, _ number: Int) -> String {
                "/v/\(hasNewNames ? "v\(version)-" : "s")\(number).ts"
            }

            private func media(_ version: Int, _ number: Int) -> Media {
                Media(seed: UInt64(300 + version * 10 + number), size: 90_000)
            }

            func serve(_ version: Int) {
                let lines = (0..<6).map { "#EXTINF:2,\n\(name(version, $0))" }.joined(separator: "\n")
                let text = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n\(lines)\n#EXT-X-ENDLIST\n#\(version)\n"
                stage.origin.serve(
                    Self.path, bytes: Array(text.utf8), etag: "\"\(version)\"",
                    contentType: "application/vnd.apple.mpegurl")
                for number in 0..<6 {
                    stage.origin.serve(name(version, number), media(version, number), etag: "\"\(version)\"")
                }
            }

            /// The first version was downloaded, and its origin has the second.
            static func kept(on stage: Stage, hasNewNames: Bool) throws -> Stream {
                let stream = Stream(stage: stage, hasNewNames: hasNewNames)
                stream.serve(1)
                #expect(try stage.download(path).complete().segments == 6)
                stage.wait(seconds: 1000)
                stream.serve(2)
                return stream
            }

            func expect(_ version: Int, _ number: Int) throws {
                expectWhole(try stage.get(name(version, number)), media(version, number))
            }

            /// All of a version plays, without its origin.
            func expectAll(_ version: Int) throws {
                #expect(try stage.get(Self.path).text.hasSuffix("#\(version)\n"))
                for number in 0..<6 { try expect(version, number) }
            }
        }

        /// A player looks at it meanwhile, and what it lists is other than it was at the beginning.
        @Test func downloadHasWhatItsPlaylistListsAtItsEnd() async throws {
            try await scenario {
                $0.fill(.read)
            } _: { stage in
                let stream = Stream(stage: stage, hasNewNames: true)
                stream.serve(1)
                stage.origin.hold(stream.name(1, 5))
                let download = try stage.download(Stream.path)
                try stage.origin.waitForRequests(stream.name(1, 5), count: 1)
                stage.wait(seconds: 1000)
                stream.serve(2)
                #expect(try stage.get(Stream.path).text.hasSuffix("#2\n"))
                stage.origin.release(stream.name(1, 5))
                _ = try download.complete()
                stage.origin.stop()
                // That of the beginning if it was kept before the player came.
                try stream.expectAll(try stage.get(Stream.path).text.hasSuffix("#1\n") ? 1 : 2)
            }
        }

        /// A playlist is whole at once, and one segment soon: neither is the film.
        @Test(arguments: [true, false]) func lookAtANewPresentationLeavesTheKeptOne(hasNewNames: Bool) async throws {
            try await scenario {
                $0.fill(.read)
            } _: { stage in
                let stream = try Stream.kept(on: stage, hasNewNames: hasNewNames)
                let text = try stage.get("/v/film.m3u8").text
                #expect(text.hasSuffix("#2\n"))
                for number in 0..<2 { try stream.expect(2, number) }
                stage.origin.stop()
                try stream.expectAll(1)
                try stage.restart()
                try stream.expectAll(1)
            }
        }

        // What a download has brought is of one version, also if players have met another since.
        @Test(arguments: [0, 2, 6]) func downloadAgainLeavesItWhole(seen: Int) async throws {
            try await scenario {
                $0.fill(.read)
            } _: { stage in
                let stream = try Stream.kept(on: stage, hasNewNames: false)
                if seen > 0 { #expect(try stage.get(Stream.path).text.hasSuffix("#2\n")) }
                for number in 0..<seen { try stream.expect(2, number) }
                _ = try stage.download(Stream.path).complete()
                stage.origin.stop()
                try stream.expectAll(1)
            }
        }

        // Whoever pins by rule keeps what was played last.
        @Test func ruleRenewsAPresentation() async throws {
            try await scenario {
                $0.fill(.read)
                $0.configure { $0.rules = [.init { $0.pin = true }] }
            } _: { stage in
                let stream = Stream(stage: stage, hasNewNames: false)
                for version in 1...2 {
                    stream.serve(version)
                    try stream.expectAll(version)
                    try stage.catchUp()
                    _ = try stage.read(ResourceListing.self, "/resources")
                    stage.wait(seconds: 1000)
                }
                stage.origin.stop()
                try stream.expectAll(2)
            }
        }

        // What is whole of a new version is not requested for each reading, and goes with the film.
        @Test func newVersionOfAPartIsFetchedOnce() async throws {
            try await scenario {
                $0.fill(.read)
            } _: { stage in
                let stream = try Stream.kept(on: stage, hasNewNames: false)
                _ = try stage.get(Stream.path)
                let before = stage.origin.requestCount(stream.name(2, 0))
                for _ in 0..<3 { try stream.expect(2, 0) }
                #expect(stage.origin.requestCount(stream.name(2, 0)) == before + 1)
                #expect(
                    try stage.control("DELETE", "/resources?\(stage.parameter(Stream.path))&include_pinned=true").status
                        == 200)
                let rest = try stage.get(stream.name(2, 0), headers: [("Cache-Control", "only-if-cached")])
                #expect(rest.status == 504)
            }
        }

        // A client that may log in gets the challenge.
        @Test func refusalOfWhatIsKeptInPartIsForItsClient() async throws {
            try await scenario {
                $0.fill(.read)
                $0.configure { $0.rules = [.init { $0.pin = true }] }
            } _: { stage in
                stage.origin.serve(path, film)
                expectPart(try stage.get(path, range: "bytes=0-99999"), 0..<100_000, of: film)
                try stage.catchUp()
                stage.wait(seconds: 1000)
                stage.origin.script(path) {
                    ($0.status, $0.headers) = (401, [("WWW-Authenticate", "Basic realm=\"x\"")])
                }
                let answer = try stage.ask(stage.absolute(path))
                #expect(answer.status == 401 && answer.headers["WWW-Authenticate"] == "Basic realm=\"x\"")
            }
        }

        // What is read ahead of a player is what it would read next, and no more.
        @Test func newVersionOfAFileOfSegmentsIsFetchedAsItIsRead() async throws {
            try await scenario { stage in
                let (first, next) = (Media(seed: 210, size: 8_000_000), Media(seed: 211, size: 8_000_000))
                let lines = (0..<40).map { "#EXTINF:2,\n#EXT-X-BYTERANGE:200000@\($0 * 200_000)\nall.ts" }
                let text = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n\(lines.joined(separator: "\n"))\n#EXT-X-ENDLIST\n"
                stage.origin.serve(
                    "/v/film.m3u8", bytes: Array(text.utf8), contentType: "application/vnd.apple.mpegurl")
                stage.origin.serve("/v/all.ts", first)
                _ = try stage.download("/v/film.m3u8").complete()
                stage.wait(seconds: 1000)
                stage.origin.serve("/v/all.ts", next, etag: "\"v2\"")
                let before = stage.origin.bytesSent("/v/all.ts")
                _ = try stage.get("/v/film.m3u8")
                for number in 0..<3 {
                    let range = Int64(number * 200_000)..<Int64((number + 1) * 200_000)
                    let part = try stage.get(
                        "/v/all.ts", range: "bytes=\(range.lowerBound)-\(range.upperBound - 1)")
                    expectPart(part, range, of: next)
                }
                try stage.waitForStats("all fetches to end") { $0[\.openFetches] == 0 }
                #expect(stage.origin.bytesSent("/v/all.ts") - before < 4_000_000)
                stage.origin.stop()
                expectPart(try stage.get("/v/all.ts", range: "bytes=200000-200999"), 200_000..<201_000, of: first)
            }
        }

        // RFC 9111 §4.4: it is validated, and plays if that is impossible.
        @Test func whatIsKeptStaysWhenItsOriginChangesIt() async throws {
            try await mounted { stage in
                stage.origin.serve("/vod/film.mp4", film)
                stage.origin.script("/vod/film.mp4") { $0.headers = [("Cache-Control", "max-age=1000")] }
                expectWhole(try stage.ask("/tv/film.mp4"), film)
                #expect(
                    try stage.control(
                        "PATCH", "/resources?\(stage.parameter("/vod/film.mp4"))", body: "{\"pinned\": true}"
                    ).status == 200)
                stage.origin.script("/vod/film.mp4") { $0.status = 200 }
                #expect(try stage.send("POST", "/tv/film.mp4", [1]).status == 200)
                stage.origin.script("/vod/film.mp4") { $0.status = nil }
                let before = stage.origin.requestCount("/vod/film.mp4")
                expectWhole(try stage.ask("/tv/film.mp4"), film)
                #expect(stage.origin.requestCount("/vod/film.mp4") == before + 1)
                stage.origin.script("/vod/film.mp4") { $0.status = 200 }
                #expect(try stage.send("POST", "/tv/film.mp4", [1]).status == 200)
                stage.origin.stop()
                expectWhole(try stage.ask("/tv/film.mp4"), film)
            }
        }

        /// Nor do its players notice that their origin had errors.
        @Test func seekWhileItsOriginFailsLeavesThePlay() async throws {
            let remake = Media(seed: 202, size: 4_000_000)
            try await scenario {
                $0.fill(.read)
            } _: { stage in
                try stage.keep(.pin)
                stage.origin.serve(path, remake, etag: "\"v2\"")
                stage.origin.script(path) { $0.headers = [("Cache-Control", "no-cache")] }
                let (player, head) = try stage.playerOf(path, receiveBuffer: 16_384)
                #expect(head.status == 200)
                let beginning = try player.readBody(exactly: 500_000)
                stage.origin.script(path) { $0.status = 503 }
                expectPart(try stage.get(path, range: "bytes=0-999"), 0..<1000, of: remake)
                stage.origin.script(path) { $0.status = nil }
                let rest = try player.readBody(exactly: Int(remake.size) - beginning.count)
                #expect(remake.difference(beginning + rest, from: 0..<remake.size) == nil)
            }
        }

        @Test func whatIsRemovedDuringItsNewVersionStaysAway() async throws {
            try await scenario { stage in
                try stage.keep(.pin)
                stage.origin.serve(path, Media(seed: 202, size: 2_000_000), etag: "\"v2\"")
                #expect(try stage.get(path, range: "bytes=0-299999").status == 206)
                #expect(
                    try stage.control("DELETE", "/resources?\(stage.parameter(path))&include_pinned=true").status == 200
                )
                try stage.catchUp()
                #expect(try stage.read(ResourceListing.self, "/resources").resources.isEmpty)
                // What had come of it went, too.
                #expect(try stage.get(path, range: "bytes=300000-").status == 206)
                try stage.catchUp()
                let left = try stage.read(ResourceListing.self, "/resources").resources
                #expect(left.map { $0.isComplete || $0.isPinned } == [false], "\(left)")
            }
        }

        /// A download of a part of it is one of the whole: what is kept was whole.
        @Test func partOfANewVersionThatIsDownloadedIsTheWhole() async throws {
            let remake = Media(seed: 202, size: 2_000_000)
            try await scenario { stage in
                try stage.keep(.pin)
                stage.origin.serve(path, remake, etag: "\"v2\"")
                #expect(try stage.get(path, range: "bytes=0-99999").status == 206)
                _ = try stage.download(path, first: 500_000).complete()
                stage.origin.stop()
                expectWhole(try stage.get(path), remake)
            }
        }

        @Test(arguments: WayToKeep.allCases)
        func newVersionMayComeInParts(way: WayToKeep) async throws {
            let remake = Media(seed: 202, size: 2_000_000)
            try await scenario { stage in
                try stage.keep(way)
                stage.origin.serve(path, remake, etag: "\"v2\"")
                expectPart(try stage.get(path, range: "bytes=1000000-"), 1_000_000..<2_000_000, of: remake)
                expectPart(try stage.get(path, range: "bytes=0-999999"), 0..<1_000_000, of: remake)
                stage.origin.stop()
                for _ in 0..<2 {
                    expectWhole(try stage.get(path), remake)
                    stage.wait(seconds: 1000)
                    try stage.restart()
                }
            }
        }

        /// An origin that heeds ranges first answers 416, which says nothing of what is stored.
        @Test(arguments: WayToKeep.allCases, [false, true])
        func rangeBeyondTheEndLeavesWhatIsKept(way: WayToKeep, noValidators: Bool) async throws {
            try await scenario { stage in
                try stage.keep(way, noValidators: noValidators)
                let response = try stage.get(path, range: "bytes=5000000-")
                #expect(response.status == 416 && response.headers["Content-Range"] == "bytes */3000000")
                #expect(stage.origin.requests(path).last?.headers["Range"]?.hasPrefix("bytes=0-") == true)
                stage.origin.script(path) { $0.status = 416 }
                expectPart(try stage.get(path, range: "bytes=0-999"), 0..<1000, of: film)
                stage.origin.stop()
                expectWhole(try stage.get(path), film)
            }
        }

        @Test func restIsRefusedAndTheAnswerSaysWhatHelps() async throws {
            try await scenario { stage in
                try stage.keep(nil)
                stage.origin.stop()
                let response = try stage.get(path)
                expectOneLine(response, status: 504)
                for words in ["it is cached", "(Cache-Control: no-cache)", "pin it", "play_stale: true", "--offline"] {
                    #expect(response.text.contains(words), "\(response.text)")
                }
                try stage.setPinned(true)
                expectWhole(try stage.get(path), film)
                try stage.setPinned(false)
                #expect(try stage.get(path).status == 504)
            }
        }

        @Test(arguments: [true, false])
        func whoeverWantsItOtherwiseSaysSo(byRule: Bool) async throws {
            try await scenario {
                $0.configure { configuration in
                    guard byRule else { return configuration.playsPinned = false }
                    var rule = ResourceRule()
                    rule.playsStale = false
                    configuration.rules = [rule]
                }
            } _: { stage in
                try stage.keep(.download)
                stage.origin.stop()
                let response = try stage.get(path)
                expectOneLine(response, status: 504)
                #expect(response.text.contains("it is cached") && !response.text.contains("pin it"), "\(response.text)")
            }
        }

        @Test func playerThatWantsNothingThatStaleIsHeard() async throws {
            try await scenario { stage in
                try stage.keep(.download)
                stage.origin.stop()
                let response = try stage.get(path, headers: [("Cache-Control", "stale-if-error=10")])
                expectOneLine(response, status: 504)
                #expect(response.text.contains("stale-if-error"))
            }
        }
    }
}
