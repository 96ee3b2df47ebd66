import Downloads
import Testing

/// What goes wrong with transfers, and when they are tried again.
@Suite struct FailureTests {
    /// Seconds until the next attempt; nil where there is none. Time passes until then.
    private func delay(_ desk: Desk, _ name: String = "a") throws -> Double? {
        guard let retryAt = desk[name].retryDate?.seconds else { return nil }
        let delay = Double(retryAt) - desk.clock.now
        let attempts = desk.begun.count
        desk.pass(delay - 0.25)
        #expect(desk.begun.count == attempts, "it is not tried before")
        desk.pass(0.25)
        return delay
    }

    @Test func networkErrorsGetThreeAttempts() throws {
        let desk = try Desk()
        try desk.add("a")
        for (attempt, expected) in [1.0, 4].enumerated() {
            try desk.transfer("a").fail(.network, "no route")
            #expect(desk["a"].state == .waiting)
            #expect(desk["a"].failures == attempt + 1)
            #expect(desk["a"].message == "no route")
            #expect(try delay(desk) == expected)
            #expect(desk["a"].state == .downloading)
            #expect(desk["a"].retryDate == nil)
        }
        try desk.transfer("a").fail(.network, "still no route")
        #expect(desk["a"].state == .failed)
        #expect(desk["a"].failures == 3)
        #expect(desk["a"].message == "still no route")
        desk.pass(10_000)
        #expect(desk.begun.count == 3)
        #expect(!desk.clock.isTicking)
    }

    @Test func aBusyOriginIsAskedEverLessOften() throws {
        let desk = try Desk()
        try desk.add("a")
        var delays: [Double?] = []
        for _ in 0..<10 {
            try desk.transfer("a").fail(.busy(retryAfter: nil))
            delays.append(try delay(desk))
        }
        #expect(delays == [2, 4, 8, 16, 32, 64, 128, 256, 300, nil])
        #expect(desk["a"].state == .failed)
        #expect(desk["a"].failures == 10)
    }

    @Test func anOriginMaySayWhen() throws {
        let desk = try Desk()
        try desk.add("a")
        var delays: [Double?] = []
        for seconds in [30.0, 1, 86400, .infinity, -.infinity, .nan] {
            try desk.transfer("a").fail(.busy(retryAfter: seconds))
            delays.append(try delay(desk))
        }
        #expect(delays == [30, 4, 3600, 3600, 32, 64])
    }

    @Test func errorsOfTwoKindsCountApart() throws {
        let desk = try Desk()
        try desk.add("a")
        for _ in 0..<2 {
            try desk.transfer("a").fail(.busy(retryAfter: nil))
            _ = try delay(desk)
        }
        try desk.transfer("a").fail(.network)
        #expect(try delay(desk) == 1)
        #expect(desk["a"].failures == 3)
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
        #expect(desk["a"].state == .failed)
    }

    @Test func othersGoBeforeOneThatWaitsForItsNextAttempt() throws {
        let desk = try Desk(maxActive: 1)
        try desk.add("a", "b", "c", "d")
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
        try desk.add("a", "b", "c")
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
        #expect(desk.begun == [] && desk["a"].state == .failed)
    }
}
