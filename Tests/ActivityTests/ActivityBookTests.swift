import CachePolicy
import Testing

@testable import Activity

@Suite struct ActivityBookTests {
    private var book = ActivityBook()

    private static func moment(_ seconds: Double) -> ActivityBook.Moment {
        .init(instant: nanoseconds(seconds), time: 1_000_000 + Int64(seconds))
    }

    /// The clock of the samples does not begin at zero.
    private static func nanoseconds(_ seconds: Double) -> UInt64 { UInt64((seconds + 1000) * 1e9) }

    private static func play(
        _ path: String = "/film.mp4", player: String = "mpv 0.35.1", from: String = "127.0.0.1", began: Double = 0,
        lastUse: Double? = nil, _ change: (inout PlaySample) -> Void = { _ in }
    ) -> PlaySample {
        let url = "https://example.org" + path
        let key = PlaySample.Key(player: PlayerID(address: from, agent: player), whole: CacheKey(text: url))
        var sample = PlaySample(key, url: url, began: nanoseconds(began), lastUse: nanoseconds(lastUse ?? began))
        sample.requests = 1
        change(&sample)
        return sample
    }

    private static func fetch(_ id: String, began: Double = 0, arrived: Int64 = 0) -> FetchSample {
        FetchSample(
            id: id, key: CacheKey(text: "https://example.org/film.mp4"), whole: nil,
            url: "https://example.org/film.mp4",
            requestedURL: "https://cdn.example.net:8443/film.mp4?token=1", reason: .gap, phase: .receiving,
            purposes: [.play], from: 1000, to: 5000, arrived: 1000 + arrived, began: nanoseconds(began))
    }

    private mutating func look(_ plays: [PlaySample], _ fetches: [FetchSample], at now: ActivityBook.Moment) -> (
        plays: [PlayReport], transfers: [TransferReport], hidden: (plays: Int, transfers: Int)
    ) {
        book.look(ActivitySamples(plays: plays, fetches: fetches), at: now)
    }

    @Test mutating func aPlayOfTwoLoopsIsOne() throws {
        let first = Self.play(began: 1, lastUse: 1) { ($0.fromCache, $0.offsets, $0.length) = (100, [50], 900) }
        let second = Self.play(began: 3, lastUse: 3) { ($0.fromOrigin, $0.offsets) = (7, [500, 20]) }
        let plays = look([first, second], [], at: Self.moment(4)).plays
        let play = try #require(plays.first)
        #expect(plays.count == 1 && play.requests == 2)
        #expect((play.bytesFromCache, play.bytesFromOrigin) == (100, 7))
        #expect(play.position == 500 && play.positions == [500, 20, 50] && play.length == 900)
        #expect(play.since == 1_000_001, "the time at which the first one began")
    }

    @Test mutating func aRequestThatRunsIsThePlaceWhateverHasEndedSince() throws {
        let running = Self.play(began: 1, lastUse: 1) { ($0.offsets, $0.isStarved) = ([500], true) }
        let ended = Self.play(began: 0, lastUse: 2) { ($0.requests, $0.offsets) = (0, [50]) }
        let play = try #require(look([ended, running], [], at: Self.moment(3)).plays.first)
        #expect(play.position == 500 && play.positions == [500] && play.state == .starting)
    }

    @Test mutating func otherPlayersAndOtherFilmsAreOtherPlays() {
        let samples = [
            Self.play(), Self.play(player: "VLC/3"), Self.play(from: "10.0.0.2"), Self.play("/other.mp4"),
        ]
        let plays = look(samples, [], at: Self.moment(1)).plays
        #expect(plays.count == 4 && Set(plays.map(\.id)).count == 4)
    }

    @Test mutating func aPlayKeepsItsNumberAndItsPlace() {
        let (film, other) = (Self.play(began: 1), Self.play("/a.mp4", began: 2))
        let first = look([other, film], [], at: Self.moment(3)).plays
        let second = look([film, other, Self.play("/0.mp4", began: 3)], [], at: Self.moment(4)).plays
        #expect(first.map(\.title) == ["film.mp4", "a.mp4"])
        #expect(second.map(\.title) == ["film.mp4", "a.mp4", "0.mp4"])
        #expect(second.prefix(2).map(\.id) == first.map(\.id))
    }

    @Test mutating func itStaysForAWhileWithoutARequest() {
        let gone = Self.play(lastUse: 0) { $0.requests = 0 }
        #expect(look([gone], [], at: Self.moment(9)).plays.map(\.state) == [.idle])
        #expect(look([gone], [], at: Self.moment(10)).plays.isEmpty)
        let film = Self.play(lastUse: 0) { ($0.requests, $0.isPresentation) = (0, true) }
        #expect(look([film], [], at: Self.moment(29)).plays.count == 1)
        #expect(look([film], [], at: Self.moment(30)).plays.isEmpty)
    }

    // MARK: States and rates

    @Test mutating func theStateTellsWhoWaitsForWhom() {
        func state(_ seconds: Double, _ bytes: Int64, starved: Bool) -> PlayReport.State? {
            look(
                [Self.play { ($0.fromOrigin, $0.isStarved) = (bytes, starved) }], [], at: Self.moment(seconds)
            ).plays.first?.state
        }
        #expect(state(0, 0, starved: true) == .starting)
        #expect(state(4, 0, starved: true) == .starting, "however long it takes")
        #expect(state(4.5, 10, starved: false) == .active)
        #expect(state(6, 10, starved: true) == .active, "for a moment nothing moves")
        #expect(state(6.5, 10, starved: true) == .stalled)
        #expect(state(7, 10, starved: false) == .buffered)
        #expect(state(7.5, 11, starved: false) == .active)
    }

    @Test mutating func theRateIsThatOfTheLastSeconds() {
        func rate(_ seconds: Double, _ bytes: Int64) -> (play: Int64?, transfer: Int64?) {
            let found = look(
                [Self.play { $0.fromCache = bytes }], [Self.fetch("a", arrived: bytes)], at: Self.moment(seconds))
            return (found.plays.first?.rate, found.transfers.first?.rate)
        }
        #expect(rate(0, 1_000_000) == (nil, nil), "what was sent before says nothing")
        #expect(rate(1, 1_001_000) == (1000, 1000))
        #expect(rate(2, 1_002_000) == (1000, 1000))
        // Nobody looked for a while: an average of that time would be no rate of now.
        #expect(rate(60, 9_000_000) == (nil, nil))
        #expect(rate(61, 9_000_500) == (500, 500))
        #expect(rate(62, 9_000_500).play != nil)
        #expect(rate(63, 9_000_500) == (nil, nil), "nothing has moved for a while")
    }

    /// Two looks in quick succession, with a single burst in between, say nothing about the rate.
    @Test mutating func aBurstIsNoRate() {
        func rate(_ seconds: Double, _ bytes: Int64) -> Int64? {
            look([Self.play { $0.fromCache = bytes }], [], at: Self.moment(seconds)).plays.first?.rate
        }
        #expect(rate(0, 1_000_000) == nil)
        #expect(rate(0.01, 1_250_000) == nil)
        #expect(rate(0.02, 1_250_000) == nil)
        #expect(rate(1, 2_000_000) == 1_000_000)
    }

    // MARK: Transfers

    @Test mutating func aTransferTellsWhatItFetches() {
        let found = look(
            [], [Self.fetch("b", began: 2, arrived: 40), Self.fetch("a", began: 1)], at: Self.moment(3))
        #expect(found.transfers.map(\.id) == ["a", "b"])
        #expect(
            found.transfers.last
                == TransferReport(
                    id: "b", urlText: "https://example.org/film.mp4", host: "cdn.example.net:8443", reason: "gap",
                    phase: .receiving, purposes: [.play], from: 1000, to: 5000, received: 40, since: 1_000_002))
    }

    // MARK: Bounds

    @Test mutating func longListsAreCut() {
        let plays = (0..<150).map { Self.play("/\($0).mp4", began: Double($0) / 1000) }
        let fetches = (0..<103).map { Self.fetch("\($0)", began: Double($0) / 1000) }
        let found = look(plays, fetches, at: Self.moment(1))
        #expect(found.plays.count == 100 && found.transfers.count == 100)
        #expect(found.hidden == (50, 3))
        #expect(found.plays.first?.title == "0.mp4")
        var samples = ActivitySamples(plays: plays, fetches: fetches)
        (samples.hiddenPlays, samples.hiddenFetches) = (7, .max)
        #expect(book.look(samples, at: Self.moment(2)).hidden == (57, .max), "and those that a loop left out")
    }

    /// One character can have any number of combining marks.
    @Test mutating func textOfOthersIsShortHoweverFewCharactersItHas() throws {
        let marks = "e" + String(repeating: "\u{301}", count: 100_000)
        let sample = Self.play(player: "m/1 " + marks) {
            $0.title = marks
            $0.segments = [.init(rendition: marks, position: 0, count: 1, requestedAt: 0)]
        }
        let play = try #require(look([sample], [], at: Self.moment(1)).plays.first)
        for text in [play.title, play.player, play.userAgent ?? "", play.segments[0].rendition] {
            #expect(text.unicodeScalars.count <= 200)
        }
        #expect(PlayerName(userAgent: marks).description.unicodeScalars.count == 40)
    }

    /// The name of a file may be a part of the URL that is a secret.
    @Test(
        arguments: [
            ("/hdntl=SECRET/", "hdntl=***"), ("/hdntl%253DSECRET", "hdntl%3D***"), ("/a/token=SECRET", "token=***"),
            ("/film.mp4;jsessionid=SECRET", "film.mp4;jsessionid=***"), ("/film=1.mp4?sig=SECRET", "film=1.mp4"),
        ])
    mutating func titlesHaveNoSecrets(path: String, title: String) {
        #expect(look([Self.play(path)], [], at: Self.moment(1)).plays.first?.title == title)
    }

    @Test(
        arguments: [
            ("/a/Gr%C3%BC%C3%9Fe.mp4?x=1", nil, "Grüße.mp4"), ("/", nil, "example.org"),
            ("/a/", nil, "a"), ("/%FF.mp4", nil, "%FF.mp4"), ("/film.mp4", "A film", "A film"),
            ("/%E2%80%AEgpj.exe", nil, "\\u{202E}gpj.exe"),
            ("/x", "\u{1F468}\u{200D}\u{1F469}\u{2066}", "\u{1F468}\u{200D}\u{1F469}\\u{2066}"),
            ("/x", "<b>\u{1B}[2J</b>\n", "<b>\\u{1B}[2J</b>"),
        ] as [(String, String?, String)])
    mutating func titlesAreOneLineOfPlainText(path: String, title: String?, shown: String) {
        let sample = Self.play(path) { $0.title = title }
        #expect(look([sample], [], at: Self.moment(1)).plays.first?.title == shown)
    }

    @Test mutating func numbersAtTheirLimitsDoNotTrap() {
        let sample = Self.play {
            ($0.fromCache, $0.fromOrigin, $0.offsets, $0.length) = (.max, .max, [.max], .max)
        }
        var fetch = Self.fetch("a")
        (fetch.from, fetch.arrived, fetch.to) = (.min, .max, .max)
        let early = ActivityBook.Moment(instant: 0, time: .min)
        #expect(look([sample, sample], [fetch], at: early).plays.count == 1)
    }

    @Test mutating func ofEachRenditionTheLastSegmentIsShown() {
        let first = Self.play {
            $0.segments = [
                .init(rendition: "1080p", position: 3, count: 10, requestedAt: 5),
                .init(rendition: "audio en", position: 2, count: 10, requestedAt: 6),
            ]
        }
        let second = Self.play { $0.segments = [.init(rendition: "1080p", position: 4, count: 10, requestedAt: 7)] }
        #expect(
            look([first, second], [], at: Self.moment(1)).plays.first?.segments == [
                .init(rendition: "1080p", number: 5, count: 10), .init(rendition: "audio en", number: 3, count: 10),
            ])
    }
}
