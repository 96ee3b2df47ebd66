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
        #expect(loads.loads == [0: 16, 1: 16])
        let before = loads.loads
        let chosen = loads.place(from: 0)
        loads.ended(on: chosen, from: 0)
        #expect(loads.loads == before)
    }

    @Test func playersOfOneLoopAreServedByBoth() {
        var loads = loads(2)
        let chosen = (0..<30).map { _ in loads.place(from: 0) }
        // Sending stays: so receiving goes to the other until both have the same.
        #expect(chosen.allSatisfy { $0 == 1 })
        #expect(loads.loads == [0: 30, 1: 30])
    }
}
