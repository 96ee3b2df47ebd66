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
        #expect(loads.place(from: home) != home)
    }

    @Test func onTheOnlyLoopEverythingRuns() {
        var loads = loads(1)
        #expect(loads.place(from: 0) == 0)
        #expect(loads.place(from: 0) == 0)
    }

    @Test func loopsThatAllHaveWorkKeepTheirOwn() {
        var loads = loads(2)
        for _ in 0..<8 {
            _ = loads.place(from: 0)
            _ = loads.place(from: 1)
        }
        let before = loads.loads
        for home in 0..<2 {
            #expect(loads.place(from: home) == home)
            loads.ended(on: home, from: home)
        }
        #expect(loads.loads == before)
    }

    @Test func playersOfOneLoopAreServedByBoth() {
        var loads = loads(2)
        for _ in 0..<30 { _ = loads.place(from: 0) }
        // Sending stays: so two in three are received by the other.
        #expect(loads.loads == [0: 40, 1: 20])
    }
}
