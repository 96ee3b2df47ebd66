import Testing

@testable import CacheFill

@Suite struct LoopLoadsTests {
    private func loads(_ loops: Int) -> LoopLoads {
        var loads = LoopLoads()
        for loop in 0..<loops { loads.add(loop) }
        return loads
    }

    @Test(arguments: 0..<3)
    func transferOfOnePlayerRunsOnAnotherLoop(home: Int) {
        var loads = loads(3)
        #expect(loads.place(from: home, isShort: false) != home)
    }

    @Test func onTheOnlyLoopEverythingRuns() {
        var loads = loads(1)
        #expect(loads.place(from: 0, isShort: false) == 0)
        #expect(loads.place(from: 0, isShort: false) == 0)
    }

    @Test func loopsThatAllHaveWorkKeepTheirOwn() {
        var loads = loads(2)
        for _ in 0..<8 {
            _ = loads.place(from: 0, isShort: false)
            _ = loads.place(from: 1, isShort: false)
        }
        let before = loads.loads
        for home in 0..<2 {
            #expect(loads.place(from: home, isShort: false) == home)
            loads.ended(on: home, from: home)
        }
        #expect(loads.loads == before)
    }

    @Test func playersOfOneLoopAreServedByBoth() {
        var loads = loads(2)
        for _ in 0..<30 { _ = loads.place(from: 0, isShort: false) }
        // Sending stays: so two in three are received by the other.
        #expect(loads.loads == [0: 40, 1: 20])
    }

    @Test func shortTransfersStayWhereTheyAreAskedFor() {
        var loads = loads(2)
        for _ in 0..<30 { #expect(loads.place(from: 0, isShort: true) == 0) }
        #expect(loads.loads == [0: 60, 1: 0])
        #expect(loads.place(from: 0, isShort: false) == 1)
    }
}

@Suite struct ExpectedLengthsTests {
    private var lengths = ExpectedLengths()

    @Test mutating func whatAHostSentLastIsExpected() {
        #expect(!lengths.areShort(of: "a"))
        lengths.note(65_536, of: "a")
        #expect(lengths.areShort(of: "a") && !lengths.areShort(of: "a:80") && !lengths.areShort(of: "b"))
        lengths.note(1 << 30, of: "a")
        #expect(!lengths.areShort(of: "a"))
        lengths.note(1 << 20, of: "a")
        #expect(lengths.areShort(of: "a"))
        lengths.note(nil, of: "a")
        #expect(!lengths.areShort(of: "a"))
    }

    /// However many hosts there are, what is known of them is bounded.
    @Test mutating func hostsAreForgottenWhereThereAreMany() {
        for number in 0..<10_000 { lengths.note(1, of: "\(number)") }
        #expect((0..<10_000).count { lengths.areShort(of: "\($0)") } <= 1024)
        #expect(lengths.areShort(of: "9999"))
    }
}
