@testable import DiskCache
import Downloads
import Testing

/// What goes wrong with transfers, and when they are tried again.
@Suite struct FailureTests {
    /// Seconds until the next attempt; nil where there is none. Time passes until then.
    private func delay(_ desk: Desk, _ name: String = "a") throws -> Double? {
        guard let retryAt = desk[name].retryDate?.seconds else { return nil }
        let delay = Double(retryAt) - desk.clock.now
        let attempts = desk.begun.count
        desk.pass(delay - 1)
        #expect(desk.begun.count == attempts, "it is not tried before")
        desk.pass(1)
        return delay
    }

    @Test(
        arguments: [
            (
                [(nil, nil), ("B", nil)],
                "; read longest ago: \"0'.mp3\" (100 bytes), \"B\" (100 bytes); reelcache rm 'https://a/0'\\''.mp3' 'https://a/1'\\''.mp3' removes them"
            ),
            (
                [("A", 5), ("B", nil)], "; played: \"A\" (100 bytes); reelcache rm 'https://a/0'\\''.mp3' removes it"
            ),
            ([], ""),
        ] as [([(String?, Int64?)], String)])
    func lackOfRoomNamesWhatCouldGo(pinned: [(String?, Int64?)], words: String) throws {
        let desk = try Desk()
        desk.restorePoints.hasPinned(
            pinned.enumerated().map { number, resource in
                var report = CachedResource(urlText: "https://a/\(number)'.mp3", length: 100, cachedBytes: 100)
                (report.title, report.played) = resource
                return report
            })
        try desk.add("a")
        try desk.transfer("a").fail(.final, "there is no room", lacksRoom: true)
        #expect(desk["a"].state == .failed && desk["a"].message == "there is no room" + words)
    }

    @Test func titleIsKeptWithTheDownloadAndItsResource() throws {
        let desk = try Desk()
        var order = Desk.order("a")
        order.title = "A title"
        _ = try desk.add([order])
        // Who orders it again without a title does not take it away.
        try desk.add("a")
        #expect(desk["a"].title == "A title")
        try desk.transfer("a").complete(100)
        #expect(desk["a"].state == .completed)
        #expect(desk.restorePoints.titles == [Desk.url("a"): "A title"])
        desk.manager.perform { $0.stop() }
        #expect(try Desk(after: desk)["a"].title == "A title")
    }

    /// What waits for tonight's network is there in the morning.
    @Test func threeFailuresHoldADownload() throws {
        let desk = try Desk()
        try desk.add("a")
        var delays: [Double?] = []
        for attempt in 1...7 {
            try desk.transfer("a").fail(.network, "no route")
            #expect(desk["a"].state == .waiting && desk["a"].failures == attempt && desk["a"].message == "no route")
            #expect(desk["a"].isHeld == (attempt >= 3 ? true : nil), "\(attempt)")
            delays.append(try delay(desk))
            #expect(desk["a"].state == .downloading && desk["a"].retryDate == nil)
        }
        #expect(delays[..<2] == [1, 4])
        for (delay, longest) in zip(delays[2...], [60.0, 240, 960, 3600, 3600]) {
            #expect(delay.map { longest * 3 / 4...longest ~= $0 } == true, "\(String(describing: delay))")
        }
        #expect(desk.log.lines(.warning).count == 1, "it is logged once: \(desk.log.lines(.warning))")
    }

    /// Whoever waited has got the error: now it is tried as if it had been ordered to stay.
    @Test func awaitedDownloadThatIsRetriedIsHeldAfterThreeFailures() throws {
        let desk = try Desk()
        try desk.manager.perform { _ = try $0.add([Desk.order("a")], waits: true) }
        for state in [Download.State.failed, .waiting] {
            for _ in 1...3 {
                try desk.transfer("a").fail(.network)
                if desk["a"].retryDate != nil, desk["a"].failures < 3 { _ = try delay(desk) }
            }
            #expect(desk["a"].state == state)
            if state == .failed { try desk.act(.retry, "a") }
        }
    }

    @Test(arguments: [(7 * 86400, false), (0, false), (7 * 86400, true)] as [(Int64, Bool)])
    func inTheEndItFailsForGood(retryFor: Int64, awaited: Bool) throws {
        var desk = try Desk()
        desk.set { $0.retryFor = retryFor }
        try desk.manager.perform { _ = try $0.add([Desk.order("a")], waits: awaited) }
        var attempts = 0
        let begun = desk.clock.now
        while desk["a"].state != .failed, attempts < 1000 {
            attempts += 1
            try desk.transfer("a").fail(attempts.isMultiple(of: 2) ? .network : .busy(retryAfter: nil), "no route")
            guard desk["a"].state == .waiting else { break }
            _ = try delay(desk)
            // Time counts on in the next process.
            guard attempts == 20 else { continue }
            desk.manager.perform { $0.stop() }
            desk = try Desk(after: desk)
        }
        #expect(desk["a"].state == .failed && desk["a"].message == "no route")
        let isHeld = retryFor > 0 && !awaited
        #expect(isHeld ? (150...300).contains(attempts) : attempts == 3, "\(attempts)")
        #expect(!isHeld || (6.9 * 86400...7 * 86400).contains(desk.clock.now - begun))
        #expect(desk.log.lines(.warning).last == "could not download https://example.org/a: no route")
        #expect(!desk.clock.isTicking)
    }

    @Test func aBusyOriginIsAskedEverLessOften() throws {
        let desk = try Desk()
        try desk.add("a")
        var delays: [Double?] = []
        for seconds in [nil, nil, 1800.0, 1] {
            try desk.transfer("a").fail(.busy(retryAfter: seconds))
            delays.append(try delay(desk))
        }
        #expect(delays[..<2] == [2, 4])
        #expect(delays[2] == 1800 && delays[3].map { 180...240 ~= $0 } == true)
    }

    @Test func anOriginMaySayWhen() throws {
        for (seconds, expected) in [(30.0, 30.0), (1, 2), (86400, 3600), (.infinity, 3600), (-.infinity, 2), (.nan, 2)]
        {
            let desk = try Desk()
            try desk.add("a")
            try desk.transfer("a").fail(.busy(retryAfter: seconds))
            // Whoever waits for it need not stay that long.
            #expect(desk["a"].isHeld == (expected >= 60 ? true : nil))
            #expect(try delay(desk) == expected, "\(seconds)")
        }
    }

    @Test func whatIsInVainFailsAtOnce() throws {
        let desk = try Desk()
        try desk.add("a")
        try desk.transfer("a").has(30, of: 100)
        try desk.transfer("a").fail(.final, "the disk is full: make room")
        #expect(desk["a"].state == .failed)
        #expect(desk["a"].message == "the disk is full: make room")
        #expect(desk["a"].bytes == 30)
        #expect(try desk.saved("bytes") == ["a": 30])
        #expect(desk.restorePoints.released == [], "partial data survives a failure")
        #expect(!desk.clock.isTicking)
    }

    @Test func progressMakesUpForFailures() throws {
        let desk = try Desk()
        try desk.add("a")
        for step in 1...20 {
            try desk.transfer("a").has(Int64(step), of: 100)
            try desk.transfer("a").fail(.network)
            #expect(desk["a"].failures == 1)
            desk.pass(1)
        }
        #expect(desk["a"].message != nil)
        try desk.transfer("a").has(21, of: 100)
        desk.pass(0.25)
        #expect(desk["a"].failures == 0)
        #expect(desk["a"].message == nil, "it goes well again")
    }

    @Test func bytesThatWereThereBeforeAreNoProgress() throws {
        let desk = try Desk()
        try desk.add("a")
        try desk.transfer("a").has(50, of: 100)
        for expected in [1, 2, 3] {
            try desk.transfer("a").fail(.network)
            #expect(desk["a"].failures == expected)
            desk.pass(4)
            // The content changed, and comes up to the same point again.
            try desk.transfer("a").has(1, of: 200)
            desk.pass(0.25)
            try desk.transfer("a").has(50, of: 200)
        }
        #expect(desk["a"].isHeld == true)
    }

    @Test func othersGoBeforeOneThatWaitsForItsNextAttempt() throws {
        let desk = try Desk(maxActive: 1)
        try desk.addElsewhere("a", "b", "c", "d")
        try desk.transfer("a").fail(.network)
        #expect(desk.running == ["b"])
        #expect(desk.waiting == ["a", "c", "d"], "it has kept its place")
        desk.pass(1)
        #expect(desk["a"].retryDate == nil)
        #expect(desk.running == ["b"])
        try desk.transfer("b").complete()
        #expect(desk.running == ["a"])
    }

    @Test func oneThatWaitsForItsNextAttemptCanBeChanged() throws {
        let desk = try Desk(maxActive: 1)
        try desk.addElsewhere("a", "b", "c")
        for name in ["a", "b", "c"] { try desk.transfer(name).fail(.busy(retryAfter: 100)) }
        try desk.change(.ids([desk["c"].id]), DownloadChange(position: 0))
        #expect(desk.waiting == ["c", "a", "b"])
        try desk.act(.pause, "a")
        #expect(desk["a"].retryDate == nil)
        try desk.act(.cancel, "b")
        try desk.act(.retry, "c")
        #expect(desk.running == ["c"], "who asks for it has it tried at once")
    }

    @Test func offlineNothingIsBegunAndNothingCounts() throws {
        let desk = try Desk(maxActive: 1)
        try desk.add("a", "b")
        desk.source.isOffline = true
        try desk.transfer("a").fail(.offline, "offline")
        #expect(desk["a"].failures == 0)
        #expect(desk.summary.isOffline)
        for _ in 0..<50 { desk.pass(0.25) }
        #expect(desk.running == [])
        #expect(desk.waiting == ["a", "b"])
        #expect(desk.clock.isTicking)

        desk.source.isOffline = false
        desk.pass(0.25)
        #expect(desk.running == ["a"])
        #expect(!desk.summary.isOffline)
        desk.source.isOffline = true
        desk.pass(0.25)
        #expect(desk.running == ["a"] && desk.summary.isOffline)
        #expect(try Desk(after: desk, hasSource: false).summary.isOffline == false)
    }

    /// Else whoever waits for all of them would wait for the one that tries their host.
    @Test func whatTriesARestingHostForAllIsHeldAsTheyAre() throws {
        let desk = try Desk(maxActive: 1)
        try desk.add("a", "b", "c", "d")
        for attempt in 1...3 {
            let name = try #require(desk.running.first)
            try desk.transfer(name).fail(.network, "no route")
            let isHeld = desk.waiting.map { desk[$0].isHeld == true }
            #expect(isHeld == [Bool](repeating: attempt == 3, count: 4), "\(attempt): \(isHeld)")
            if attempt < 3 { for _ in 0..<5 { desk.pass(1) } }
        }
    }

    /// What it misses does not come again.
    @Test func aRecordingIsTriedSoonUntilItsTimeIsOver() throws {
        let desk = try Desk(maxActive: 2)
        _ = try desk.add([DownloadOrder(url: Desk.origin("live"), options: .init { $0.recordFor = 7200 })])
        for attempt in 1...50 {
            try desk.transfer("live").fail(attempt == 25 ? .busy(retryAfter: 3600) : .network)
            if attempt == 25 {
                #expect(try delay(desk, "live") == 60)
                continue
            }
            #expect(desk["live"].state == .waiting && desk["live"].isHeld == nil)
            #expect(try #require(try delay(desk, "live")) <= 5)
        }
    }

    /// It was not tried in vain for so long.
    @Test func timeInWhichItMayNotBeTriedDoesNotCount() throws {
        let desk = try Desk()
        try desk.add("a")
        for _ in 1...3 {
            try desk.transfer("a").fail(.network)
            _ = try delay(desk)
        }
        try desk.transfer("a").fail(.network)
        desk.source.isOffline = true
        for seconds in [3600, 8 * 86_400.0] { desk.pass(seconds) }
        #expect(desk.waiting == ["a"] && desk["a"].retryDate == nil)
        desk.source.isOffline = false
        desk.pass(0.25)
        try desk.transfer("a").fail(.network)
        #expect(desk["a"].state == .waiting && desk["a"].isHeld == true)
    }

    /// Else it would be begun again and again without a pause.
    @Test func aSourceThatIsOfflineForOneOnlyIsLeftAloneForAWhile() throws {
        let desk = try Desk()
        desk.source.onBegin { if $0.name == "a" { $0.fail(.offline) } }
        try desk.add("a", "b")
        for _ in 0..<3 { desk.pass(0.25) }
        #expect(desk.begun == ["a", "b"])
        desk.pass(0.25)
        #expect(desk.begun == ["a", "b", "a"])
    }

    /// Its bytes went when it was cancelled: what comes now is more than there was.
    @Test func aCancelledOneThatIsRetriedBeginsAnew() throws {
        let desk = try Desk()
        try desk.add("a")
        try desk.transfer("a").has(900, of: 1000)
        desk.pass(0.25)
        try desk.act(.cancel, "a")
        try desk.act(.retry, "a")
        #expect(desk["a"].bytes == 0)
        for attempt in 1...5 {
            let transfer = try desk.transfer("a")
            transfer.has(Int64(attempt) * 10, of: 1000)
            transfer.fail(.network)
            #expect(desk["a"].state == .waiting && desk["a"].failures == 1, "\(attempt)")
            for _ in 0..<5 { desk.pass(0.25) }
        }
    }

    @Test func whatIsCachedCannotBeSeenSoNothingIsFetched() throws {
        let desk = try Desk()
        desk.restorePoints.failure = .init(description: "input/output error")
        try desk.add("a")
        #expect(desk.begun == [])
        #expect(desk["a"].state == .waiting && desk["a"].failures == 1)
        #expect(desk["a"].message == "cannot find out what is cached of it: input/output error")
        for _ in 0..<24 { desk.pass(0.25) }
        #expect(desk.begun == [] && desk["a"].isHeld == true)
    }
}
