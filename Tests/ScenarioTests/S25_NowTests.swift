import Activity
import ControlAPI
import Foundation
import HTTPModel
import Testing
import TestSupport

@testable import Reelcache

/// What happens can be seen while it happens.
extension Scenarios {
    @Suite(.serialized) struct S25Now {
        private static let film = Media(seed: 25, size: 2_000_000)
        private static let half: Int64 = 1_000_000

        /// The origin sends half of the film, and then waits.
        private static func serveHalf(_ stage: Stage, _ path: String = "/film.mp4") {
            stage.origin.serve(path, film)
            stage.origin.script(path) { $0.stallAfter = half }
        }

        private static func patient(_ setting: inout Stage.Setting) { setting.tuning.upstream.stallTimeout = 3600 }

        // MARK: Plays

        @Test func aPlayIsShownFromItsFirstByteToItsLast() async throws {
            try await scenario(Self.patient) { stage in
                Self.serveHalf(stage)
                let player = try stage.playing("/film.mp4", as: "mpv 0.35.1")
                _ = try player.readBody(exactly: Int(Self.half / 2))
                let play = try stage.waitForPlay("that has begun") { $0.position ?? 0 >= Self.half / 2 }
                #expect(play.title == "film.mp4" && play.player == "mpv 0.35.1" && play.client == "127.0.0.1")
                #expect(play.urlText == stage.origin.url("/film.mp4") && play.length == Self.film.size)
                #expect(play.state == .active && play.requests == 1 && play.bytesFromCache == 0)

                stage.origin.release("/film.mp4")
                _ = try player.readBody(exactly: Int(Self.film.size - Self.half / 2))
                let end = try stage.waitForPlay("that has read everything") { $0.requests == 0 }
                #expect(end.id == play.id && end.position == Self.film.size && end.state == .idle)
                #expect(end.bytesFromOrigin + end.bytesFromCache == Self.film.size)

                // A second reading is served from the cache, and continues the play.
                _ = try stage.get("/film.mp4", headers: [("User-Agent", "mpv 0.35.1")])
                let again = try stage.waitForPlay("that has read it twice") {
                    $0.requests == 0 && $0.bytesFromOrigin + $0.bytesFromCache == 2 * Self.film.size
                }
                #expect(again.id == play.id && again.bytesFromCache >= Self.film.size)
            }
        }

        @Test func aPlayWithoutABytesYetIsStarting() async throws {
            try await scenario(Self.patient) { stage in
                stage.origin.serve("/film.mp4", Self.film)
                stage.origin.holdHeads("/film.mp4")
                let player = try stage.player()
                try player.send(player.request(stage.target("/film.mp4")))
                let play = try stage.waitForPlay("that begins") { _ in true }
                #expect(play.state == .starting && play.position == nil && play.rate == nil)
                stage.origin.release("/film.mp4")
                _ = try player.readResponse()
            }
        }

        @Test func tenPlayersAreTenPlays() async throws {
            try await scenario(Self.patient) { stage in
                Self.serveHalf(stage)
                let players = try (0..<10).map { try stage.playing("/film.mp4", as: "player/\($0)") }
                for player in players { _ = try player.readBody(exactly: 1000) }
                let now = try stage.waitForNow("ten plays") { $0.plays.filter { $0.position ?? 0 > 0 }.count == 10 }
                #expect(Set(now.plays.map(\.player)) == Set((0..<10).map { "player \($0)" }))
                #expect(Set(now.plays.map(\.id)).count == 10)
                #expect(now.transfers.count == 1, "all of them share one transfer")
            }
        }

        @Test func aSeekContinuesThePlay() async throws {
            try await scenario(Self.patient) { stage in
                Self.serveHalf(stage)
                let first = try stage.playing("/film.mp4", as: "VLC/3.0.18 LibVLC/3.0.18")
                _ = try first.readBody(exactly: 1000)
                first.close()
                let second = try stage.playing("/film.mp4", as: "VLC/3.0.18 LibVLC/3.0.18", range: "bytes=500000-")
                _ = try second.readBody(exactly: 1000)
                let now = try stage.waitForNow("a play at its second place") {
                    $0.plays.first.map { $0.position ?? 0 > 500_000 && $0.requests == 1 } == true
                }
                #expect(now.plays.count == 1)
            }
        }

        /// Nothing is played by a request that fails.
        @Test(arguments: [404, 503]) func aRequestThatFailsIsNoPlay(status: Int) async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", Media(seed: 1, size: 10_000))
                stage.origin.script("/missing.mp4") { $0.status = status }
                try #expect(stage.get("/missing.mp4").status >= 400)
                try #expect(stage.get("/film.mp4").status == 200)
                let now = try stage.waitForNow("a play that is over") { $0.plays.contains { $0.state == .idle } }
                #expect(now.plays.map(\.title) == ["film.mp4"])
            }
        }

        /// Before the first of several ranges has ended, its bytes count.
        @Test func severalRangesAreShownWhileTheyAreSent() async throws {
            try await scenario(Self.patient) { stage in
                Self.serveHalf(stage)
                let player = try stage.playing("/film.mp4", as: "mpv 0.35.1", range: "bytes=0-1499999,1900000-1999999")
                _ = try player.readBody(exactly: 500_000)
                let play = try stage.waitForPlay("of the first range") { $0.position ?? 0 >= 400_000 }
                #expect(
                    play.bytesFromOrigin + play.bytesFromCache >= 400_000 && play.requests == 1
                        && play.state != .starting)
                stage.origin.release("/film.mp4")
                _ = try player.readBody(exactly: 1_050_000)
                _ = try stage.waitForPlay("of the second range") { $0.position ?? 0 >= 1_950_000 }
            }
        }

        @Test func aSegmentedFilmIsOnePlay() async throws {
            try await scenario { stage in
                stage.origin.serve(
                    "/v/film.m3u8",
                    bytes: Array("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=4500000,RESOLUTION=1920x1080\n1080.m3u8\n".utf8),
                    contentType: "application/vnd.apple.mpegurl")
                let lines = (1...5).map { "#EXTINF:2,\n\($0).ts\n" }.joined()
                stage.origin.serve(
                    "/v/1080.m3u8", bytes: Array("#EXTM3U\n#EXT-X-TARGETDURATION:2\n\(lines)#EXT-X-ENDLIST\n".utf8),
                    contentType: "application/vnd.apple.mpegurl")
                for number in 1...5 {
                    stage.origin.serve(
                        "/v/\(number).ts", Media(seed: UInt64(number), size: 10_000), contentType: "video/mp2t")
                }
                for name in ["film.m3u8", "1080.m3u8", "1.ts", "2.ts"] {
                    try #expect(stage.get("/v/\(name)").status == 200)
                }
                let play = try stage.waitForPlay("of segments") { !$0.segments.isEmpty }
                #expect(
                    play.title == "film.m3u8" && play.urlText == stage.origin.url("/v/film.m3u8") && play.isPresentation
                )
                #expect(play.segments == [.init(rendition: "1080p 4.5 Mbit/s", number: 2, count: 5)])

                try stage.catchUp()
                let report = try stage.read(
                    CoverageReport.self, "/resources/coverage?" + stage.parameter("/v/film.m3u8"))
                let strip = try #require(report.strips.first)
                #expect(report.strips.count == 1 && strip.name == "1080p 4.5 Mbit/s" && strip.unit == .segments)
                #expect(strip.length == 5 && strip.cells.count == 5 && strip.cells.prefix(2) == [100, 100])
                #expect(strip.readers.map(\.at) == [1])
            }
        }

        // MARK: Transfers

        @Test func aCheckOfAFeedIsATransferToo() async throws {
            try await scenario(Self.patient) { stage in
                let feed = Array("<rss version=\"2.0\"><channel><title>Reels</title></channel></rss>".utf8)
                stage.origin.serve("/feed.xml", bytes: feed, contentType: "application/rss+xml")
                stage.origin.holdHeads("/feed.xml")
                let body = "{\"url\": \"\(stage.origin.url("/feed.xml"))\"}"
                let client = try stage.player()
                let fields = try stage.authorization() + [("Content-Length", "\(body.utf8.count)")]
                try client.send(client.request("/api/v1/feeds", headers: fields, method: "POST") + body)
                let transfer = try stage.waitForTransfer("of the feed") { $0.phase == .requested }
                #expect(transfer.reason == "feed" && transfer.purposes == [.subscription])
                #expect(
                    transfer.urlText == stage.origin.url("/feed.xml") && transfer.received == 0 && transfer.to == nil)
                stage.origin.release("/feed.xml")
                #expect(try client.readResponse(method: "POST").status == 201)
                _ = try stage.waitForNow("the end of the check") { $0.transfers.isEmpty }
            }
        }

        @Test func aTransferTellsWhyItRunsAndForWhom() async throws {
            try await scenario(Self.patient) { stage in
                Self.serveHalf(stage)
                let player = try stage.playing("/film.mp4", as: "mpv 0.35.1")
                _ = try player.readBody(exactly: Int(Self.half))
                let first = try stage.waitForTransfer("of the whole") { $0.received == Self.half }
                #expect(first.reason == "uri-miss" && first.purposes == [.play] && first.phase == .receiving)
                #expect(
                    first.host == "127.0.0.1:\(stage.origin.port)" && first.urlText == stage.origin.url("/film.mp4"))
                #expect(first.from == 0 && first.to == Self.film.size)

                // What the origin holds back never comes: the gap begins at the half.
                player.close()
                try stage.catchUp()
                stage.origin.release("/film.mp4")
                stage.origin.script("/film.mp4") { $0.holdHead = true }
                let seeking = try stage.player()
                try seeking.send(seeking.request(stage.target("/film.mp4"), range: "bytes=1900000-"))
                let gap = try stage.waitForTransfer("of a gap") { $0.phase == .requested }
                #expect(gap.reason == "gap" && gap.received == 0 && gap.from <= 1_900_000 && gap.id != first.id)
            }
        }

        // MARK: Coverage

        @Test func theStripGrowsWhileAFilmArrives() async throws {
            try await scenario(Self.patient) { stage in
                Self.serveHalf(stage)
                let player = try stage.playing("/film.mp4", as: "mpv 0.35.1")
                _ = try player.readBody(exactly: Int(Self.half) - 100_000)
                let path = "/resources/coverage?buckets=10&" + stage.parameter("/film.mp4")
                let strip = try stage.waitForStrip(path, "half of it") { $0.cells.prefix(4) == [100, 100, 100, 100] }
                #expect(strip.cells.count == 10 && strip.cells.suffix(5) == [0, 0, 0, 0, 0])
                #expect(strip.length == Self.film.size && strip.unit == .bytes && strip.name == nil)
                let arrival = try #require(strip.arriving.first)
                #expect(strip.arriving.count == 1 && arrival.from == 0 && arrival.to == Self.film.size)
                #expect((Self.half - 200_000...Self.half).contains(arrival.at))
                let reader = try #require(strip.readers.first)
                #expect(strip.readers.count == 1 && reader.player == "mpv 0.35.1" && reader.at >= Self.half - 100_000)

                let chunk = try #require(strip.chunkSize)
                let zoomed = try stage.read(CoverageReport.self, path + "&from=\(chunk)&to=\(3 * chunk)").strips[0]
                #expect(
                    zoomed.from == chunk && zoomed.to == 3 * chunk && zoomed.cells == Array(repeating: 100, count: 10))

                stage.origin.release("/film.mp4")
                _ = try player.readBody(exactly: Int(Self.film.size - Self.half) + 100_000)
                try stage.catchUp()
                let whole = try stage.read(CoverageReport.self, path).strips[0]
                #expect(whole.cells == Array(repeating: 100, count: 10) && whole.arriving.isEmpty)
            }
        }

        @Test func whatIsNotCachedOrMakesNoSenseIsRefused() async throws {
            try await scenario { stage in
                stage.origin.serve("/film.mp4", Media(seed: 1, size: 10_000))
                _ = try stage.get("/film.mp4")
                let film = "/resources/coverage?" + stage.parameter("/film.mp4")
                expectRefusal(try stage.control("GET", "/resources/coverage", .nothing), 400, naming: "url")
                expectRefusal(
                    try stage.control("GET", "/resources/coverage?" + stage.parameter("/other.mp4"), .nothing), 404,
                    naming: "other.mp4")
                for bad in ["buckets=0", "buckets=1000000", "buckets=many", "from=-1", "to=x"] {
                    expectRefusal(try stage.control("GET", film + "&" + bad, .nothing), 400, naming: "number")
                }
                for name in ["from", "to"] {
                    let bad = film + "&\(name)=\(Int64.max)"
                    expectRefusal(
                        try stage.control("GET", bad, .nothing), 400, naming: "from 0 to \(ByteNumber.greatest)")
                }
                expectRefusal(try stage.control("GET", "/now?url=x", .nothing), 400, naming: "parameter")
                expectRefusal(try stage.control("POST", "/now"), 405, naming: "GET")
            }
        }

        // MARK: Events

        @Test func eventsHaveTheWholeStateWheneverItChanges() async throws {
            try await scenario(Self.patient) { stage in
                Self.serveHalf(stage)
                let listener = try stage.listener(of: "/api/v1/now/events")
                #expect(listener.head.headers["Content-Type"] == "text/event-stream")
                let first = try listener.event()
                #expect(try first.name == "now" && first.decoded(NowReport.self).plays.isEmpty)
                let player = try stage.playing("/film.mp4", as: "mpv 0.35.1")
                _ = try player.readBody(exactly: 1000)
                let shown = try listener.report { $0.plays.first?.position ?? 0 > 0 }
                #expect(shown.plays.count == 1 && shown.transfers.count == 1)
                player.close()
                let ended = try listener.report { $0.plays.first?.requests == 0 }
                #expect(ended.plays.first?.id == shown.plays.first?.id)
            }
        }

        /// Ten pages that read nothing do not keep the eleventh from its events, and each has the present when it
        /// reads again.
        @Test func slowReadersMissStatesAndGetTheLast() async throws {
            try await scenario(Self.patient) { stage in
                Self.serveHalf(stage)
                let slow = try (0..<10).map { _ in try stage.listener(of: "/api/v1/now/events", receiveBuffer: 2048) }
                let quick = try stage.listener(of: "/api/v1/now/events")
                // A long state, so that the kernel cannot keep all of them for who does not read.
                let path = String(repeating: "x", count: 3500)
                var players: [RawClient] = []
                var seen = 0
                for number in 0..<10 {
                    Self.serveHalf(stage, "/\(number)/\(path).mp4")
                    let player = try stage.playing("/\(number)/\(path).mp4", as: "player/\(number)")
                    _ = try player.readBody(exactly: 1000)
                    players.append(player)
                    _ = try quick.report { $0.plays.count == number + 1 }
                    seen += 1
                }
                stage.origin.serve("/small.mp4", Media(seed: 1, size: 10_000))
                var (bytes, served): (Int64, UInt64) = (0, 0)
                for _ in 0..<40 {
                    _ = try stage.get("/small.mp4")
                    _ = try quick.report { report in
                        let play = report.plays.first { $0.title == "small.mp4" }
                        guard let play, play.bytesFromCache + play.bytesFromOrigin > bytes else { return false }
                        bytes = play.bytesFromCache + play.bytesFromOrigin
                        served = report.served.fromCache + report.served.fromOrigin
                        return true
                    }
                    seen += 1
                }
                for listener in slow {
                    var events = 0
                    _ = try listener.report { report in
                        events += 1
                        return report.served.fromCache + report.served.fromOrigin >= served
                    }
                    #expect(events < seen, "some of them were skipped")
                }
            }
        }

        @Test func eventsEndWithTheProxy() async throws {
            try await scenario { stage in
                let listener = try stage.listener(of: "/api/v1/now/events")
                _ = try listener.event()
                try stage.stop()
                #expect(throws: (any Error).self) { while true { _ = try listener.event() } }
            }
        }

        @Test func aLookWhileTheProxyStopsIsAnswered() async throws {
            try await scenario { stage in
                let live = stage.proxy.cache.live
                try stage.stop()
                let answers = Monitor(0)
                live.look { look in answers.update { $0 += look == nil ? 1 : 100 } }
                #expect(try answers.wait(for: "an answer") { $0 > 0 ? $0 : nil } == 1)
            }
        }

        // MARK: Secrets

        @Test func secretsAreMaskedUnlessTheTokenIsShown() async throws {
            try await scenario(Self.patient) { stage in
                Self.serveHalf(stage, "/film.mp4?token=geheim")
                let player = try stage.playing("/film.mp4?token=geheim", as: "mpv 0.35.1")
                _ = try player.readBody(exactly: 1000)
                _ = try stage.waitForPlay("with a secret") { $0.position ?? 0 > 0 }
                let masked = try stage.control("GET", "/now", .nothing).text
                #expect(masked.contains("token=***") && !masked.contains("geheim"))
                #expect(try stage.control("GET", "/now?secrets=true").text.contains("token=geheim"))
                expectRefusal(try stage.control("GET", "/now?secrets=true", .nothing), 401)
                let events = try stage.listener(of: "/api/v1/now/events")
                #expect(try !events.event().data.contains("geheim"))
            }
        }
    }
}

extension Stage {
    /// A player that has the head of the answer.
    fileprivate func playing(_ path: String, as agent: String, range: String? = nil) throws -> RawClient {
        let player = try player()
        try player.send(player.request(target(path), range: range, headers: [("User-Agent", agent)]))
        _ = try player.readHead()
        return player
    }

    /// Waits until the live state is as wanted.
    fileprivate func waitForNow(_ what: String, _ isWanted: (NowReport) -> Bool) throws -> NowReport {
        try waitForReport(NowReport.self, "/now", what, isWanted)
    }

    fileprivate func waitForPlay(_ what: String, _ isWanted: (PlayReport) -> Bool) throws -> PlayReport {
        let now = try waitForNow("a play \(what)") { $0.plays.contains { isWanted($0) } }
        let found = now.plays.filter { isWanted($0) }
        return try #require(found.first)
    }

    fileprivate func waitForTransfer(_ what: String, _ isWanted: (TransferReport) -> Bool) throws -> TransferReport {
        let now = try waitForNow("a transfer \(what)") { $0.transfers.contains { isWanted($0) } }
        let found = now.transfers.filter { isWanted($0) }
        return try #require(found.first)
    }

    fileprivate func waitForStrip(_ path: String, _ what: String, _ isWanted: (CoverageStrip) -> Bool) throws
        -> CoverageStrip
    {
        try waitForReport(CoverageReport.self, path, what) { $0.strips.first.map(isWanted) == true }.strips[0]
    }

    private func waitForReport<Report: Decodable>(
        _ type: Report.Type, _ path: String, _ what: String, _ isWanted: (Report) -> Bool
    ) throws -> Report {
        try eventually(what, instead: "\(try read(type, path))") {
            let report = try read(type, path)
            return isWanted(report) ? report : nil
        }
    }
}

extension EventListener {
    /// Reads until a state is as wanted.
    fileprivate func report(where isWanted: (NowReport) -> Bool) throws -> NowReport {
        while true {
            let report = try event().decoded(NowReport.self)
            if isWanted(report) { return report }
        }
    }
}
