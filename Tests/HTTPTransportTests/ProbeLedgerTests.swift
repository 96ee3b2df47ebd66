import CachePolicy
import Testing

@testable import HTTPTransport

/// Balancers that check a server, and when each has heard often enough that it drains.
@Suite struct ProbeLedgerTests {
    private let second: UInt64 = 1_000_000_000
    private let one = IPAddress(v4: 1), other = IPAddress(v4: 2)

    private func ledger(_ probes: [(IPAddress, isDraining: Bool, second: UInt64)]) -> ProbeLedger {
        var ledger = ProbeLedger()
        for (address, isDraining, time) in probes {
            ledger.note(from: address, isDraining: isDraining, now: time * second)
        }
        return ledger
    }

    @Test func threeChecksInARowHaveToFail() {
        let serving = [(one, false, UInt64(1)), (one, false, 3), (one, false, 5)]
        let draining = [(one, true, UInt64(7)), (one, true, 9), (one, true, 11)]
        for count in 0..<3 {
            #expect(ledger(serving + draining[..<count]).awaitsMore(now: 11 * second), "\(count)")
        }
        #expect(!ledger(serving + draining).awaitsMore(now: 11 * second))
    }

    @Test func eachBalancerHasToNotice() {
        let both = (1...3).flatMap { [(one, true, UInt64($0)), (other, false, UInt64($0))] }
        #expect(ledger(both).awaitsMore(now: 3 * second))
        #expect(!ledger(both + (4...6).map { (other, true, UInt64($0)) }).awaitsMore(now: 6 * second))
    }

    @Test func whoeverHasStoppedOrAsksRarelyIsNotAwaited() {
        let regular = [(one, false, UInt64(1)), (one, false, 3), (one, false, 5)]
        #expect(ledger(regular).awaitsMore(now: 15 * second) && !ledger(regular).awaitsMore(now: 16 * second))
        #expect(!ledger((1...9).map { (one, false, UInt64($0) * 30) }).awaitsMore(now: 270 * second))
        #expect(!ledger([(one, false, 1), (one, true, 2)]).awaitsMore(now: 2 * second))
        #expect(!ledger([]).awaitsMore(now: 0))
    }

    @Test func fewAreRemembered() {
        var ledger = ProbeLedger()
        for number in 0..<UInt32(10 * ProbeLedger.most) {
            ledger.note(from: IPAddress(v4: number), isDraining: false, now: second)
        }
        #expect(ledger.entries.count == ProbeLedger.most)
        ledger.note(from: IPAddress(v4: .max), isDraining: false, now: 100 * second)
        #expect(ledger.entries.count == 1)
    }
}
