import Activity
import CacheFill
import CachePolicy
import FillTestSupport
import Playlists
import Synchronization
import Testing
import TestSupport

@testable import Presentations

/// The next segments on their way: an origin, a cache, and a player that reads nothing but one segment at a time.
@Suite(.timeLimit(.minutes(10))) struct SegmentAheadTests {
    private static let size: Int64 = 100_000

    private static func film(_ number: Int) -> Media { Media(seed: UInt64(number), size: size) }

    /// A stage with a film of ten segments, whose playlist is on the shelf.
    private struct Cinema {
        let stage: FillStage
        let shelf = PlaylistShelf()
        let ahead: SegmentAhead

        init(_ stage: FillStage, name: String = "film") throws {
            self.stage = stage
            ahead = SegmentAhead(shelf)
            try show(name, 0..<10)
        }

        func show(_ name: String, _ numbers: Range<Int>, hasEnd: Bool = true) throws {
            let lines = numbers.flatMap { ["#EXTINF:2,", "\(name)\($0).ts"] } + (hasEnd ? ["#EXT-X-ENDLIST"] : [])
            let head = ["#EXTM3U", "#EXT-X-TARGETDURATION:2", "#EXT-X-MEDIA-SEQUENCE:\(numbers.lowerBound)"]
            for number in numbers {
                stage.origin.serve("/\(name)\(number).ts", SegmentAheadTests.film(number), contentType: "video/mp2t")
            }
            try put("/\(name).m3u8", (head + lines).joined(separator: "\n"))
        }

        func put(_ path: String, _ text: String) throws {
            let url = try stage.url(path)
            shelf.put(try PlaylistDocument(Array(text.utf8), key: url.cacheKey, url: url, base: url), at: .zero)
        }

        /// A player asks for a segment.
        @discardableResult
        func read(_ path: String, at byte: Int64? = nil, _ rule: ResolvedRule = ResolvedRule(), cache: String? = nil)
            throws -> Reading?
        {
            let url = try stage.url(path)
            let membership = try #require(shelf.membership(of: url, at: byte) { .zero })
            return stage.onLoop { [ahead] filler in
                let directives = RequestDirectives(cacheControl: cache, pragma: nil)
                let demand = Demand(url: url, span: nil, request: nil, directives: directives, resolvedRule: rule)
                return ahead.reads(membership, by: PlayerID(address: "a", agent: "player"), demand, on: filler)
            }
        }

        /// Waits until a segment is in the cache.
        func waitFor(_ path: String) throws { try stage.wait(for: path, 0..<SegmentAheadTests.size) }

        /// All that was asked for, in order.
        var requests: [String] { stage.origin.snapshot.requests.map(\.path) }
    }

    private static func with(_ body: (Cinema) throws -> Void) throws {
        try FillStage.with { stage in
            let cinema = try Cinema(stage)
            defer { cinema.ahead.stop() }
            try body(cinema)
        }
    }

    // MARK: -

    @Test func nextThreeComeInOrderAndOnce() throws {
        try Self.with { cinema in
            try cinema.read("/film4.ts")
            try cinema.waitFor("/film7.ts")
            try cinema.read("/film5.ts")
            try cinema.waitFor("/film8.ts")
            #expect(cinema.requests == (4...8).map { "/film\($0).ts" })
        }
    }

    // The first one is held up: nothing overtakes it.
    @Test func whatThePlayerWaitsForGoesFirst() throws {
        try Self.with { cinema in
            cinema.stage.origin.hold("/film4.ts")
            try cinema.read("/film4.ts")
            try cinema.stage.origin.waitForRequests("/film4.ts", count: 1)
            cinema.stage.onLoop { _ in }
            #expect(cinema.requests == ["/film4.ts"])
            cinema.stage.origin.release("/film4.ts")
            try cinema.waitFor("/film7.ts")
        }
    }

    @Test func seekStopsWhatRunsAndGoesOnThere() throws {
        try Self.with { cinema in
            cinema.stage.origin.hold("/film1.ts")
            try cinema.read("/film0.ts")
            try cinema.stage.origin.waitForRequests("/film1.ts", count: 1)
            try cinema.read("/film6.ts")
            try cinema.waitFor("/film9.ts")
            try cinema.stage.origin.waitUntil("the end of what ran") {
                $0.requests("/film1.ts").allSatisfy(\.aborted)
            }
            #expect(cinema.requests == [0, 1, 6, 7, 8, 9].map { "/film\($0).ts" })
        }
    }

    @Test func playerThatHasGoneStopsIt() throws {
        try Self.with { cinema in
            cinema.stage.origin.hold("/film1.ts")
            let reading = try #require(try cinema.read("/film0.ts"))
            try cinema.stage.origin.waitForRequests("/film1.ts", count: 1)
            cinema.ahead.left(reading)
            try cinema.stage.origin.waitUntil("the end of what ran") {
                $0.requests("/film1.ts").allSatisfy(\.aborted)
            }
            #expect(cinema.requests == ["/film0.ts", "/film1.ts"])
        }
    }

    @Test func segmentThatIsNotThereEndsItUntilTheNextRequest() throws {
        try Self.with { cinema in
            cinema.stage.origin.script("/film2.ts") { ($0.status, $0.statusTimes) = (404, 1) }
            try cinema.read("/film0.ts")
            try cinema.stage.origin.waitForRequests("/film2.ts", count: 1)
            try cinema.stage.wait(for: "its end") { cinema.ahead.runningCount == 0 }
            #expect(cinema.requests == [0, 1, 2].map { "/film\($0).ts" })
            try cinema.read("/film1.ts")
            try cinema.waitFor("/film4.ts")
            #expect(cinema.requests == [0, 1, 2, 2, 3, 4].map { "/film\($0).ts" })
        }
    }

    @Test func switchOfQualityStopsTheFormerAndSoundGoesOn() throws {
        try Self.with { cinema in
            let names = ["low", "high", "sound"]
            for name in names { try cinema.show(name, 0..<10) }
            try cinema.put(
                "/main.m3u8",
                """
                #EXTM3U
                #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="a",URI="sound.m3u8"
                #EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO="a"
                low.m3u8
                #EXT-X-STREAM-INF:BANDWIDTH=2,AUDIO="a"
                high.m3u8
                #EXT-X-STREAM-INF:BANDWIDTH=3
                sound.m3u8
                """)
            for name in names { cinema.stage.origin.hold("/\(name)1.ts") }
            for name in ["low", "sound", "high"] {
                try cinema.read("/\(name)0.ts")
                try cinema.stage.origin.waitForRequests("/\(name)1.ts", count: 1)
            }
            try cinema.stage.origin.waitUntil("the end of the former") {
                $0.requests("/low1.ts").allSatisfy(\.aborted)
            }
            #expect(cinema.stage.origin.requests("/sound1.ts").map(\.aborted) == [false])
            cinema.stage.origin.releaseAll()
            for name in ["sound", "high"] { try cinema.waitFor("/\(name)3.ts") }
            #expect(cinema.stage.origin.requestCount("/low2.ts") == 0)
        }
    }

    @Test func liveStreamIsFollowedToItsEdge() throws {
        try Self.with { cinema in
            try cinema.show("live", 4..<7, hasEnd: false)
            try cinema.read("/live5.ts")
            try cinema.waitFor("/live6.ts")
            try cinema.show("live", 5..<8, hasEnd: false)
            cinema.ahead.renewed(try cinema.stage.url("/live.m3u8").cacheKey, at: .zero)
            try cinema.waitFor("/live7.ts")
            #expect(cinema.requests == (5...7).map { "/live\($0).ts" })
        }
    }

    @Test func rangesOfOneFileComeAsRanges() throws {
        try Self.with { cinema in
            cinema.stage.origin.serve("/all.mp4", Media(seed: 7, size: 10 * 65_536))
            let lines = (0..<10).flatMap { ["#EXTINF:2,", "#EXT-X-BYTERANGE:65536@\($0 * 65_536)", "all.mp4"] }
            try cinema.put(
                "/ranges.m3u8",
                (["#EXTM3U", "#EXT-X-TARGETDURATION:2"] + lines + ["#EXT-X-ENDLIST"]).joined(separator: "\n"))
            try cinema.read("/all.mp4", at: 2 * 65_536)
            try cinema.stage.origin.waitUntil("the ranges") {
                $0.requests("/all.mp4").map(\.range) == (2...5).map { Int64($0) * 65_536..<Int64($0 + 1) * 65_536 }
            }
        }
    }

    // The index comes with the player's own request; from then on its segments are known.
    @Test func indexOfAFileIsReadOutOfTheCache() throws {
        try Self.with { cinema in
            let sizes: [UInt32] = [70_000, 80_000, 90_000, 100_000, 110_000]
            let index = Self.index(sizes), start = Int64(index.count)
            let media = [UInt8](repeating: 1, count: sizes.reduce(0) { $0 + Int($1) })
            cinema.stage.origin.serve("/one.mp4", bytes: index + media, contentType: "video/mp4")
            try cinema.put(
                "/one.mpd",
                """
                <MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT10S"><Period>\
                <AdaptationSet><Representation id="1" bandwidth="1"><BaseURL>one.mp4</BaseURL>\
                <SegmentBase indexRange="0-\(index.count - 1)"/></Representation></AdaptationSet></Period></MPD>
                """)
            let url = try cinema.stage.url("/one.mp4")
            let place = try #require(cinema.shelf.membership(of: url, at: 0) { .zero }?.place)
            // Nothing is known of it, and nothing is fetched.
            try cinema.read("/one.mp4", at: 0)
            try cinema.stage.wait(for: "the end") { cinema.ahead.runningCount == 0 }
            #expect(cinema.requests == [])
            #expect(
                try cinema.stage.prefetch(Prefetch.Order(url: url, range: 0..<start, keeps: false)).end.isCompleted)
            try cinema.read("/one.mp4", at: 0)
            try cinema.stage.wait(for: "the index") { cinema.shelf.missingIndex(of: place.rendition) == nil }
            #expect(cinema.shelf.membership(of: url, at: start + 69_999) { .zero }?.place?.position == 0)
            #expect(cinema.shelf.membership(of: url, at: start + 70_000) { .zero }?.place?.position == 1)
            #expect(cinema.shelf.membership(of: url, at: start - 1) { .zero }?.place == nil)
            try cinema.read("/one.mp4", at: start + 70_000)
            try cinema.stage.wait(for: "/one.mp4", start + 70_000..<start + 450_000)
        }
    }

    /// A `sidx` box: ISO/IEC 14496-12 §8.16.3.
    private static func index(_ sizes: [UInt32]) -> [UInt8] {
        func bytes(_ number: UInt32) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) } }
        let entries = sizes.flatMap { bytes($0) + bytes(2) + bytes(0x9000_0000) }
        let body = bytes(0) + bytes(1) + bytes(1) + bytes(0) + bytes(0) + bytes(UInt32(sizes.count)) + entries
        return bytes(UInt32(body.count + 8)) + Array("sidx".utf8) + body
    }

    // MARK: Where nothing is fetched

    private static func rule(_ change: (inout ResolvedRule) -> Void) -> ResolvedRule {
        var rule = ResolvedRule()
        change(&rule)
        return rule
    }

    @Test(
        arguments: [
            (rule { $0.fill = .read }, nil), (rule { $0.isMetered = true }, nil), (rule { $0.bypasses = true }, nil),
            (rule { $0.aheadSegments = 0 }, nil), (ResolvedRule(), "only-if-cached"), (ResolvedRule(), "no-store"),
        ] as [(ResolvedRule, String?)])
    func nothingIsFetchedWhereItIsNotWanted(rule: ResolvedRule, cache: String?) throws {
        try Self.with { cinema in
            let reading = try cinema.read("/film0.ts", rule, cache: cache)
            #expect(reading == nil)
            #expect(cinema.ahead.runningCount == 0)
        }
    }

    @Test func nothingIsFetchedOffline() throws {
        try Self.with { cinema in
            cinema.stage.filler.policy.change { $0.isOffline = true }
            try cinema.read("/film0.ts")
            try cinema.stage.wait(for: "the end") { cinema.ahead.runningCount == 0 }
            #expect(cinema.requests == [])
        }
    }
}
