import Downloads
import Testing

/// Whose turn it is.
@Suite struct TurnTests {
    @Test func threeRunAtOnceInTheOrderOfTheirOrders() throws {
        let desk = try Desk()
        try desk.add("a", "b", "c", "d", "e")
        #expect(desk.running == ["a", "b", "c"])
        #expect(desk.waiting == ["d", "e"])

        try desk.transfer("b").complete()
        #expect(desk.running == ["a", "c", "d"])
        try desk.transfer("a").complete()
        try desk.transfer("c").complete()
        #expect(desk.running == ["d", "e"])
        #expect(desk.summary.downloading == 2)
    }

    @Test func neverMoreThanThreeHoweverManyComeAndGo() throws {
        let desk = try Desk()
        for index in 0..<40 { try desk.add("\(index)") }
        var most = 0
        while let next = desk.source.running.first {
            most = max(most, desk.running.count)
            next.complete()
            desk.catchUp()
        }
        #expect(most == 3)
        #expect(desk.begun == (0..<40).map(String.init))
    }

    @Test func whatEndsWhileItIsBegunMakesRoom() throws {
        let desk = try Desk(maxActive: 1)
        desk.source.onBegin { $0.complete() }
        try desk.add("a", "b", "c")
        #expect(desk.listing.allSatisfy { $0.state == .completed })
    }

    @Test func moreMayRunWhileSomeRun() throws {
        let desk = try Desk(maxActive: 1)
        try desk.add("a", "b", "c", "d")
        desk.set { $0.maxActive = 3 }
        #expect(desk.running == ["a", "b", "c"])
        #expect(desk.summary.settings.maxActive == 3)
    }

    @Test func whenFewerMayRunTheLatestGoBackToTheirPlaces() throws {
        let desk = try Desk(maxActive: 3)
        try desk.add("a", "b", "c", "d")
        try desk.transfer("b").has(50, of: 100)

        desk.set { $0.maxActive = 1 }

        #expect(desk.running == ["a"])
        #expect(try desk.transfer("c").isStopped)
        #expect(desk.waiting == ["b", "c", "d"])
        #expect(desk["b"].bytes == 50, "what has come stays")
        desk.set { $0.maxActive = 2 }
        #expect(desk.running == ["a", "b"])
    }

    @Test(arguments: [(-5, 1), (0, 1), (65, 64), (.max, 64)]) func howManyMayRunIsBounded(wanted: Int, expected: Int)
        throws
    {
        let desk = try Desk()
        desk.set { $0.maxActive = wanted }
        #expect(desk.summary.settings.maxActive == expected)
    }

    @Test func theHigherPriorityGoesFirstAndInterruptsNothing() throws {
        let desk = try Desk(maxActive: 1)
        try desk.add("running", "normal")
        try desk.add("low", priority: .low)
        try desk.add("high", priority: .high)
        #expect(desk.running == ["running"])
        #expect(desk.waiting == ["high", "normal", "low"])

        for name in ["running", "high", "normal", "low"] { try desk.transfer(name).complete() }
        #expect(desk.begun == ["running", "high", "normal", "low"])
    }

    @Test func whoGetsAnotherPriorityGoesToItsEnd() throws {
        let desk = try Desk(maxActive: 1)
        try desk.add("running", "a", "b")
        try desk.add("h", priority: .high)
        try desk.change(.ids([desk["a"].id]), DownloadChange(priority: .high))
        #expect(desk.waiting == ["h", "a", "b"])
        try desk.change(.ids([desk["h"].id]), DownloadChange(priority: .normal))
        #expect(desk.waiting == ["a", "b", "h"])
        #expect(desk.running == ["running"])
    }

    @Test(arguments: [
        (0, ["d", "a", "b", "c"]), (1, ["a", "d", "b", "c"]), (2, ["a", "b", "d", "c"]), (3, ["a", "b", "c", "d"]),
        (99, ["a", "b", "c", "d"]),
    ])
    func oneIsMovedAmongThoseThatWait(position: Int, expected: [String]) throws {
        let desk = try Desk(maxActive: 1)
        try desk.add("running", "a", "b", "c", "d")
        try desk.add("other", priority: .low)
        try desk.change(.ids([desk["d"].id]), DownloadChange(position: position))
        #expect(desk.waiting == expected + ["other"])
        try desk.add("e")
        #expect(desk.waiting == expected + ["e", "other"])
    }

    /// Each time the place between two neighbours is halved: after some fifty times there is no number left between
    /// them.
    @Test func theOrderHoldsHoweverOftenOneIsMoved() throws {
        let desk = try Desk(maxActive: 1)
        try desk.add("running", "a", "b", "c", "p")
        try desk.act(.pause, "p")
        var expected = ["a", "b", "c"]
        for _ in 0..<200 {
            try desk.change(.ids([desk[expected[2]].id]), DownloadChange(position: 1))
            expected = [expected[0], expected[2], expected[1]]
            #expect(desk.waiting == expected)
        }
        try desk.act(.resume, "p")
        #expect(desk.waiting == expected + ["p"], "what was paused has kept its place")
    }

    @Test func ofSeveralChangesAtOnceAllAreMade() throws {
        let desk = try Desk(maxActive: 1)
        try desk.add("running", "a", "b", "p")
        try desk.act(.pause, "p")
        let changed = try desk.change(
            .ids([desk["p"].id]), DownloadChange(action: .resume, priority: .high, position: 0, limitRate: 5000))
        #expect(desk.waiting == ["p", "a", "b"])
        #expect(changed == [desk["p"]])
        #expect(changed[0].limitRate == 5000)
        #expect(changed[0].priority == .high)
    }

    @Test func withoutASourceOrdersAreKept() throws {
        let desk = try Desk(hasSource: false)
        try desk.add("a", "b")
        try desk.act(.pause, "b")
        #expect(desk["a"].state == .waiting)
        #expect(try desk.saved("state") == ["a": "waiting", "b": "paused"])
        #expect(!desk.clock.isTicking)
    }

    @Test func nothingBeginsBeforeTheStart() throws {
        let desk = try Desk(isStarted: false)
        try desk.add("a")
        #expect(desk.running == [])
        desk.manager.perform { $0.start() }
        #expect(desk.running == ["a"])
    }

    @Test func limitsReachTheSource() throws {
        let desk = try Desk(limitRate: 1000)
        #expect(desk.source.limits == [1000])
        desk.set { $0.limitRate = nil }
        desk.set { $0.maxActive = 2 }
        #expect(desk.source.limits == [1000, nil])

        var order = Desk.order("a")
        order.bytesPerSecond = 700
        _ = try desk.add([order])
        #expect(try desk.transfer("a").order.bytesPerSecond == 700)
        try desk.change(.ids([1]), DownloadChange(limitRate: 800))
        #expect(try desk.transfer("a").limit == .some(800))
        try desk.change(.all, DownloadChange(limitRate: 0))
        #expect(try desk.transfer("a").limit == .some(nil))
        #expect(desk["a"].limitRate == nil)
    }
}
