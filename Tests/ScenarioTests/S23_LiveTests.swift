import CachePolicy
import HTTPModel
import Synchronization
import TestSupport
import Testing

/// Playlists of live streams: as fresh as players need them, at the cost of one request for all of them.
extension Scenarios {
    @Suite(.serialized) struct S23Live {
        private static let path = "/live/main.m3u8"

        /// A clock that never goes back, and stands still until it is moved on.
        private final class Instant: Sendable {
            private let nanoseconds = Atomic<UInt64>(1_000_000_000_000)
            var now: UInt64 { nanoseconds.load(ordering: .relaxed) }
            func pass(_ milliseconds: UInt64) {
                nanoseconds.wrappingAdd(milliseconds * 1_000_000, ordering: .relaxed)
            }
        }

        /// A stream in its state of a moment: three segments of four seconds.
        private static func text(_ first: Int, _ tags: String = "") -> String {
            "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-MEDIA-SEQUENCE:\(first)\n\(tags)"
                + (first..<first + 3).map { "#EXTINF:4,\n\($0).ts\n" }.joined()
        }

        private static func serve(_ stage: Stage, _ first: Int, _ fields: [(String, String)] = [], _ tags: String = "")
        {
            stage.origin.serve(
                path, bytes: Array(text(first, tags).utf8), etag: "\"\(first)\"",
                contentType: "application/vnd.apple.mpegurl")
            stage.origin.script(path) { $0.headers = fields }
        }

        private static func play(_ story: @escaping @Sendable (Stage, Instant) throws -> Void) async throws {
            let instant = Instant()
            try await scenario {
                $0.tuning.fill.clock = { instant.now }
            } _: {
                try story($0, instant)
            }
        }

        private static let fields: [[(String, String)]] = [
            [], [("Cache-Control", "max-age=3600")], [("Cache-Control", "no-cache")],
            [("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")],
        ]

        @Test(arguments: fields)
        func itIsFreshForHalfItsTargetDuration(fields: [(String, String)]) async throws {
            try await Self.play { stage, instant in
                Self.serve(stage, 1, fields)
                try #expect(stage.get(Self.path).text == Self.text(1))
                instant.pass(1_999)
                for _ in 1...3 { try #expect(stage.get(Self.path).text == Self.text(1)) }
                #expect(stage.origin.requestCount(Self.path) == 1)
                // Nothing new: another half from here on.
                instant.pass(1)
                for _ in 1...3 { try #expect(stage.get(Self.path).text == Self.text(1)) }
                #expect(stage.origin.requestCount(Self.path) == 2)
                instant.pass(2_000)
                Self.serve(stage, 2, fields)
                for _ in 1...3 { try #expect(stage.get(Self.path).text == Self.text(2)) }
                #expect(stage.origin.requestCount(Self.path) == 3)
            }
        }

        @Test func withPartsItIsFreshForOne() async throws {
            try await Self.play { stage, instant in
                Self.serve(stage, 1, [], "#EXT-X-PART-INF:PART-TARGET=0.5\n")
                for _ in 1...2 { try #expect(stage.get(Self.path).status == 200) }
                instant.pass(500)
                try #expect(stage.get(Self.path).status == 200)
                #expect(stage.origin.requestCount(Self.path) == 2)
            }
        }

        @Test func aHundredPlayersCostTheOriginOneRequestARefresh() async throws {
            try await Self.play { stage, instant in
                Self.serve(stage, 1)
                try #expect(stage.get(Self.path).status == 200)
                for round in 2...4 {
                    instant.pass(2_000)
                    Self.serve(stage, round)
                    stage.origin.holdHeads(Self.path)
                    let players = try (0..<100).map { _ in try Background { try stage.get(Self.path) } }
                    try stage.origin.waitForRequests(Self.path, count: round)
                    stage.origin.release(Self.path)
                    for player in players { try #expect(player.value().text == Self.text(round)) }
                    #expect(stage.origin.requestCount(Self.path) == round)
                }
            }
        }

        @Test func whenItsOriginFallsSilentPlayersHearOfIt() async throws {
            try await Self.play { stage, instant in
                Self.serve(stage, 1)
                try #expect(stage.get(Self.path).status == 200)
                stage.origin.script(Self.path) { $0.status = 503 }
                instant.pass(5_999)
                try #expect(stage.get(Self.path).text == Self.text(1))
                instant.pass(1)
                let response = try stage.get(Self.path)
                expectOneLine(response, status: 504)
                // It comes back.
                stage.origin.script(Self.path) { $0.status = nil }
                Self.serve(stage, 3)
                try #expect(stage.get(Self.path).text == Self.text(3))
            }
        }

        @Test func aNewProcessKnowsHowOldAStreamIs() async throws {
            try await Self.play { stage, instant in
                Self.serve(stage, 1, [("Cache-Control", "max-age=3600")])
                try #expect(stage.get(Self.path).status == 200)
                try stage.restart()
                stage.wait(seconds: 3)
                Self.serve(stage, 2, [("Cache-Control", "max-age=3600")])
                try #expect(stage.get(Self.path).text == Self.text(2))
                #expect(stage.origin.requestCount(Self.path) == 2)
            }
        }

        private static let mpd = "/live/main.mpd"

        private static func serveMPD(_ stage: Stage, _ template: String, version: Int = 1) {
            let text =
                "<MPD type=\"dynamic\" minimumUpdatePeriod=\"PT1S\" availabilityStartTime=\"1970-01-01T00:00:00Z\" "
                + "publishTime=\"2026-01-01T00:00:0\(version)Z\"><Period start=\"PT0S\"><AdaptationSet>"
                + "<SegmentTemplate media=\"s$Number$.m4s\" startNumber=\"1\"\(template)</SegmentTemplate>"
                + "<Representation id=\"v\" bandwidth=\"1\"/></AdaptationSet></Period></MPD>"
            stage.origin.serve(
                mpd, bytes: Array(text.utf8), etag: "\"\(version)\"", contentType: "application/dash+xml")
        }

        /// Players that run ahead ask again and again; one did 38,000 times in 110 seconds.
        @Test(
            arguments: [" duration=\"4\">", "><SegmentTimeline><S t=\"0\" d=\"4\" r=\"2\"/></SegmentTimeline>"],
            [[], [("Cache-Control", "no-cache")]])
        func aSegmentThatIsYetToComeIsRequestedTwiceInItsDuration(template: String, fields: [(String, String)])
            async throws
        {
            try await Self.play { stage, instant in
                Self.serveMPD(stage, template)
                try #expect(stage.get(Self.mpd).status == 200)
                let number = template.contains("Timeline") ? 4 : stage.clock.now / 4 + 1
                let path = "/live/s\(number).m4s"
                stage.origin.script(path) { ($0.status, $0.headers) = (404, fields) }
                for _ in 1...20 { try #expect(stage.get(path).status == 404) }
                instant.pass(1_999)
                try #expect(stage.get(path).status == 404)
                #expect(stage.origin.requestCount(path) == 1)
                instant.pass(1)
                for _ in 1...20 { try #expect(stage.get(path).status == 404) }
                #expect(stage.origin.requestCount(path) == 2)
                // The next state of the stream.
                Self.serveMPD(stage, template, version: 2)
                try #expect(stage.get(Self.mpd).status == 200)
                stage.origin.script(path) { $0.status = nil }
                stage.origin.serve(path, Media(seed: 1, size: 10_000), contentType: "video/mp4")
                try #expect(stage.get(path).body == Media(seed: 1, size: 10_000).allBytes)
                // What no playlist names may be there at any time.
                for _ in 1...3 { try #expect(stage.get("/live/other.m4s").status == 404) }
                #expect(stage.origin.requestCount("/live/other.m4s") == 3)
            }
        }

        /// nginx's `return 200 "$time_iso8601"` states no lifetime. ISO/IEC 23009-1 §5.8.4.11
        @Test(arguments: ["GET", "HEAD"]) func clockIsReadAtItsOriginEachTime(method: String) async throws {
            try await Self.play { stage, _ in
                let clock = "<UTCTiming schemeIdUri=\"urn:mpeg:dash:utc:http-iso:2014\" value=\"/time?x\"/></MPD>"
                let text = "<MPD type=\"dynamic\" minimumUpdatePeriod=\"PT1H\"><Period/>" + clock
                stage.origin.serve(Self.mpd, bytes: Array(text.utf8), contentType: "application/dash+xml")
                let serve = { (time: String) in
                    stage.origin.serve("/time?x", bytes: Array(time.utf8), etag: nil, contentType: "text/plain")
                }
                serve("2026-01-01T10:00:00Z")
                // Before it is known as a clock.
                try #expect(stage.get("/time?x").text == "2026-01-01T10:00:00Z")
                try #expect(stage.get(Self.mpd).status == 200)
                for (requests, time) in [(2, "2026-01-01T10:08:00Z"), (3, "2026-01-01T10:09:00Z")] {
                    serve(time)
                    let response = try stage.get("/time?x", method: method)
                    #expect(response.status == 200 && (method == "HEAD" || response.text == time))
                    #expect(stage.origin.requestCount("/time?x") == requests)
                }
            }
        }

        @Test func manifestThatIsItsOwnClockIsCached() async throws {
            try await Self.play { stage, _ in
                let clock = "<UTCTiming schemeIdUri=\"urn:mpeg:dash:utc:http-head:2014\" value=\"main.mpd\"/></MPD>"
                stage.origin.serve(
                    Self.mpd, bytes: Array("<MPD><Period/>\(clock)".utf8), contentType: "application/dash+xml")
                stage.origin.script(Self.mpd) { $0.headers = [("Cache-Control", "max-age=60")] }
                try #expect(stage.get(Self.mpd).status == 200)
                stage.origin.stop()
                try #expect(stage.get(Self.mpd).isHit)
            }
        }

        /// The same URL has more of it each time. ISO/IEC 23009-1 §5.15
        @Test func patchOfAManifestIsValidatedEachTime() async throws {
            try await Self.play { stage, _ in
                for (version, patch) in ["<Patch><add/></Patch>", "<Patch><add/><add/></Patch>"].enumerated() {
                    stage.origin.serve(
                        "/live/patch.mpp", bytes: Array(patch.utf8), etag: "\"\(version)\"",
                        contentType: "application/dash-patch+xml")
                    try #expect(stage.get("/live/patch.mpp").text == patch)
                }
            }
        }

        @Test func itsEndEndsThat() async throws {
            try await Self.play { stage, instant in
                Self.serve(stage, 1)
                try #expect(stage.get(Self.path).status == 200)
                instant.pass(2_000)
                let film = Self.text(2) + "#EXT-X-ENDLIST\n"
                stage.origin.serve(
                    Self.path, bytes: Array(film.utf8), contentType: "application/vnd.apple.mpegurl")
                stage.origin.script(Self.path) { $0.headers = [("Cache-Control", "max-age=60")] }
                try #expect(stage.get(Self.path).text == film)
                instant.pass(60_000)
                try #expect(stage.get(Self.path).isHit)
            }
        }

        /// draft-pantos-hls-rfc8216bis §6.2.5.2
        @Test func blockingReloadsGoToTheOriginAndAreShared() async throws {
            try await Self.play { stage, instant in
                Self.serve(stage, 1, [], "#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES\n")
                try #expect(stage.get(Self.path).status == 200)
                let next = "\(Self.path)?_HLS_msn=4"
                stage.origin.serve(
                    next, bytes: Array(Self.text(2).utf8), contentType: "application/vnd.apple.mpegurl")
                stage.origin.holdHeads(next)
                let players = try (0..<10).map { _ in try Background { try stage.get(next) } }
                try stage.origin.waitForRequests(next, count: 1)
                stage.origin.release(next)
                for player in players { try #expect(player.value().text == Self.text(2)) }
                #expect(stage.origin.requestCount(next) == 1 && stage.origin.requestCount(Self.path) == 1)
            }
        }
    }
}
