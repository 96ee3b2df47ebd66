import Activity
import CachePolicy
import Playlists
import Testing

@testable import Presentations

/// What is fetched ahead of players: events go in, and the tests follow what is started and stopped.
@Suite struct PlayheadsTests {
    private static let second: UInt64 = 1_000_000_000

    /// The segments of a film, by their numbers.
    private static func segments(_ lines: [String], first: Int = 0, hasEnd: Bool = true) throws -> MediaPlaylistSegments
    {
        let head = ["#EXTM3U", "#EXT-X-TARGETDURATION:2", "#EXT-X-MEDIA-SEQUENCE:\(first)"]
        let text = (head + lines + (hasEnd ? ["#EXT-X-ENDLIST"] : [])).joined(separator: "\n")
        let url = try OriginURL(url: "https://a.example/film.m3u8")
        return try #require(try HLSPlaylist(Array(text.utf8), at: url, within: .ofMatch).segments(within: .ofMatch))
    }

    private static func film(_ numbers: Range<Int>) throws -> MediaPlaylistSegments {
        try segments(numbers.flatMap { ["#EXTINF:2,", "\($0).ts"] }, first: numbers.lowerBound)
    }

    /// Playheads, and what they have had started that has not ended.
    private struct Desk {
        var heads = Playheads<String>()
        var running: [Playheads<String>.RunID: AheadPiece] = [:]
        /// All that was started, in order.
        var started: [String] = []
        var now: UInt64 = PlayheadsTests.second
        var readings: [Reading] = []

        mutating func act(_ actions: [Playheads<String>.Action]) {
            for action in actions {
                switch action {
                case .start(let run, let piece, let asker):
                    running[run] = piece
                    started.append(asker + piece.name)
                case .stop(let run): running[run] = nil
                }
            }
        }

        /// - Returns: what runs now.
        @discardableResult
        mutating func read(
            _ number: Int, of segments: MediaPlaylistSegments, _ rendition: String = "film", by player: String = "",
            ahead: Int = 3, role: RenditionRole? = nil
        ) throws -> [String] {
            let id = RenditionID(playlist: CacheKey(text: rendition))
            let position = try #require(segments.position(number: Int64(number)))
            let place = SegmentPlace(rendition: id, segments: segments, position: position)
            let (reading, actions) = heads.read(
                place, by: PlayerID(address: "a", agent: player), player, ahead: ahead, at: now
            ) { role }
            readings.append(reading)
            act(actions)
            return runs
        }

        var runs: [String] { running.values.map(\.name).sorted() }

        /// The one that runs is there.
        @discardableResult
        mutating func complete(_ name: String, isThere: Bool = true) throws -> [String] {
            let run = try #require(running.first { $0.value.name == name }?.key)
            running[run] = nil
            act(heads.ended(run, isThere: isThere))
            return runs
        }

        mutating func completeAll() throws {
            while let name = runs.first { try complete(name) }
        }
    }

    // MARK: In order

    @Test func nextSegmentsComeOneAfterTheOther() throws {
        var desk = Desk()
        let film = try Self.film(0..<10)
        #expect(try desk.read(2, of: film) == ["2.ts"])
        #expect(try desk.complete("2.ts") == ["3.ts"])
        // The player goes on: nothing stops, and nothing is begun beside it.
        #expect(try desk.read(3, of: film) == ["3.ts"])
        try desk.completeAll()
        #expect(desk.started == ["2.ts", "3.ts", "4.ts", "5.ts", "6.ts"])
        #expect(try desk.read(4, of: film) == ["7.ts"])
    }

    @Test(arguments: [(1, ["8.ts", "9.ts"]), (5, ["8.ts", "9.ts"])] as [(Int, [String])])
    func itEndsWithTheFilmOrBefore(ahead: Int, started: [String]) throws {
        var desk = Desk()
        try desk.read(8, of: try Self.film(0..<10), ahead: ahead)
        try desk.completeAll()
        #expect(desk.started == started)
    }

    // A whole film that is one segment is the player's own affair.
    @Test func nothingComesWhereNothingFollows() throws {
        var desk = Desk()
        try desk.read(9, of: try Self.film(0..<10))
        #expect(desk.started == [])
    }

    @Test func whatIsKnownToBeThereIsNotLookedAtAgain() throws {
        var desk = Desk()
        let film = try Self.film(0..<1000)
        for number in 0..<1000 {
            try desk.read(number, of: film)
            try desk.completeAll()
        }
        #expect(desk.started.count == 1000 && Set(desk.started).count == 1000)
    }

    @Test func rangesKeysAndInitializationSectionsComeWhereTheyChange() throws {
        let film = try Self.segments([
            "#EXT-X-MAP:URI=\"a.mp4\"", "#EXT-X-KEY:METHOD=AES-128,URI=\"a.key\"",
            "#EXTINF:2,", "#EXT-X-BYTERANGE:10@0", "all.mp4", "#EXTINF:2,", "#EXT-X-BYTERANGE:10", "all.mp4",
            "#EXT-X-MAP:URI=\"b.mp4\"", "#EXT-X-KEY:METHOD=AES-128,URI=\"b.key\"",
            "#EXTINF:2,", "#EXT-X-GAP", "none.mp4", "#EXTINF:2,", "#EXT-X-BYTERANGE:10@20", "all.mp4",
            "#EXT-X-KEY:METHOD=SAMPLE-AES,URI=\"skd://c\",KEYFORMAT=\"com.apple.streamingkeydelivery\"",
            "#EXTINF:2,", "#EXT-X-BYTERANGE:10", "all.mp4",
        ])
        var desk = Desk()
        try desk.read(0, of: film, ahead: 4)
        try desk.completeAll()
        let names = ["all.mp4[0..<10]", "all.mp4[10..<20]", "b.key", "b.mp4", "all.mp4[20..<30]", "all.mp4[30..<40]"]
        #expect(desk.started == names)
    }

    // MARK: Elsewhere

    @Test func seekTurnsToTheNewPlaceAtOnce() throws {
        var desk = Desk()
        let film = try Self.film(0..<100)
        try desk.read(2, of: film)
        try desk.complete("2.ts")
        #expect(try desk.read(50, of: film) == ["50.ts"])
        #expect(try desk.complete("50.ts") == ["51.ts"])
        #expect(try desk.read(10, of: film) == ["10.ts"])
        #expect(desk.heads.entries.count == 1)
    }

    @Test func stepBackIntoWhatIsThereStopsNothing() throws {
        var desk = Desk()
        let film = try Self.film(0..<100)
        for number in 10...12 { try desk.read(number, of: film) }
        try desk.complete("10.ts")
        try desk.complete("12.ts")
        #expect(desk.runs == ["13.ts"])
        #expect(try desk.read(11, of: film) == ["13.ts"])
        #expect(try desk.complete("13.ts") == ["14.ts"])
        try desk.completeAll()
        #expect(desk.started.last == "14.ts")
    }

    @Test func playerThatIsQuickerIsFollowed() throws {
        var desk = Desk()
        let film = try Self.film(0..<100)
        try desk.read(0, of: film)
        // It is within reach: what runs goes on, and what it has passed is not fetched any more.
        #expect(try desk.read(4, of: film) == ["0.ts"])
        #expect(try desk.complete("0.ts") == ["4.ts"])
        #expect(try desk.complete("4.ts") == ["5.ts"])
        // A seek, one segment further than that.
        #expect(try desk.read(9, of: film) == ["9.ts"])
    }

    @Test(
        arguments: [
            (.variant(CacheKey(text: "main")), .variant(CacheKey(text: "main")), false),
            (.variant(CacheKey(text: "main")), .alternative(CacheKey(text: "main"), .audio), true),
            (.variant(CacheKey(text: "main")), .variant(CacheKey(text: "other")), true), (nil, nil, true),
            (
                .adaptationSet(CacheKey(text: "mpd"), period: 0, set: 0),
                .adaptationSet(CacheKey(text: "mpd"), period: 0, set: 1), true
            ),
        ] as [(RenditionRole?, RenditionRole?, Bool)])
    func otherRenditionTakesThePlaceOfOneInItsRole(first: RenditionRole?, second: RenditionRole?, areBoth: Bool) throws
    {
        var desk = Desk()
        let (film, sound) = (try Self.film(0..<10), try Self.film(20..<30))
        try desk.read(2, of: film, "film", role: first)
        #expect(try desk.read(22, of: sound, "sound", role: second) == (areBoth ? ["2.ts", "22.ts"] : ["22.ts"]))
        // Of another player it takes nothing.
        #expect(try desk.read(3, of: film, "film", by: "other", role: second).contains("22.ts"))
    }

    // MARK: Who has gone

    @Test func playerThatHasGoneStopsIt() throws {
        var desk = Desk()
        let film = try Self.film(0..<10)
        try desk.read(2, of: film)
        try desk.read(3, of: film)
        desk.act(desk.heads.left(desk.readings[0]))
        #expect(desk.runs == ["2.ts"], "it has asked for another one since")
        desk.act(desk.heads.left(desk.readings[1]))
        #expect(desk.runs == [] && desk.heads.entries.count == 0)
    }

    @Test func whatIsStoppedHasNoSay() throws {
        var desk = Desk()
        let film = try Self.film(0..<100)
        try desk.read(2, of: film)
        let run = try #require(desk.running.keys.first)
        try desk.read(50, of: film)
        #expect(!desk.heads.isRunning(run))
        desk.act(desk.heads.ended(run, isThere: true))
        #expect(desk.runs == ["50.ts"])
    }

    @Test func whatCannotBeHadEndsItUntilTheNextRequest() throws {
        var desk = Desk()
        let film = try Self.film(0..<10)
        try desk.read(2, of: film)
        try desk.complete("2.ts")
        #expect(try desk.complete("3.ts", isThere: false) == [])
        #expect(try desk.read(3, of: film) == ["3.ts"])
    }

    @Test func playheadsAreBoundedAndForgotten() throws {
        var desk = Desk()
        let film = try Self.film(0..<10)
        for number in 0..<300 {
            desk.now += Self.second
            try desk.read(2, of: film, by: "\(number)")
        }
        #expect(desk.heads.entries.count == Playheads<String>.most && desk.running.count == Playheads<String>.most)
        desk.now += 301 * Self.second
        try desk.read(2, of: film, by: "late")
        #expect(desk.heads.entries.count == 1 && desk.running.count == 1)
    }

    // MARK: Live

    @Test func newerPlaylistLeadsOn() throws {
        var desk = Desk()
        try desk.read(5, of: try Self.film(0..<7))
        try desk.completeAll()
        #expect(desk.started == ["5.ts", "6.ts"])
        for (numbers, rendition, runs) in [
            (1..<9, "other", []), (1..<8, "film", ["7.ts"]), (3..<20, "film", ["7.ts"]),
        ] as [(Range<Int>, String, [String])] {
            let newer = try Self.film(numbers)
            desk.act(desk.heads.renewed(CacheKey(text: rendition)) { _ in newer })
            #expect(desk.runs == runs)
        }
        try desk.completeAll()
        // No further than it would be in a film.
        #expect(desk.started == ["5.ts", "6.ts", "7.ts", "8.ts"])
    }

    /// As in DASH without `startNumber`, or HLS without a media sequence number.
    @Test func newerPlaylistWhoseNumbersCountFromItsBeginningLeadsOn() throws {
        let window = { try Self.segments(($0 as Range<Int>).flatMap { ["#EXTINF:2,", "\($0).ts"] }, hasEnd: false) }
        var desk = Desk()
        try desk.read(2, of: window(10..<15))
        try desk.completeAll()
        for (numbers, runs) in [(10..<15, []), (11..<16, ["15.ts"]), (12..<17, ["15.ts"])] as [(Range<Int>, [String])] {
            let newer = try window(numbers)
            desk.act(desk.heads.renewed(CacheKey(text: "film")) { _ in newer })
            #expect(desk.runs == runs)
        }
        try desk.completeAll()
        // No further than it would be in a film.
        #expect(desk.started == ["12.ts", "13.ts", "14.ts", "15.ts"])
        #expect(try desk.read(1, of: window(12..<17)) == ["16.ts"])
    }

    @Test func windowThatHasMovedPastItIsCaughtUpWith() throws {
        var desk = Desk()
        try desk.read(5, of: try Self.film(0..<8))
        let newer = try Self.film(50..<60)
        desk.act(desk.heads.renewed(CacheKey(text: "film")) { _ in newer })
        #expect(try desk.complete("5.ts") == [])
        #expect(try desk.read(52, of: newer) == ["52.ts"])
    }
}

extension AheadPiece {
    /// The last part of its path, and its range.
    fileprivate var name: String {
        (url.pathAndQuery.split(separator: "/").last.map(String.init) ?? "") + (range.map { "[\($0)]" } ?? "")
    }
}
