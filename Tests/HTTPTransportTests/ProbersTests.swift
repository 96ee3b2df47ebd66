import CachePolicy
import Testing

@testable import HTTPTransport

/// When balancers know that a server is draining.
@Suite struct ProbersTests {
    private let second: UInt64 = 1_000_000_000
    private let one = IPAddress(v4: 1), other = IPAddress(v4: 2)

    @Test func eachOneIsToldThreeTimes() {
        var probers = Probers()
        for time in 1...3 {
            for address in [one, other] { probers.answered(address, isDraining: false, now: UInt64(time) * second) }
        }
        #expect(!probers.haveNoticed(now: 3 * second))
        for time in 4...6 {
            probers.answered(one, isDraining: true, now: UInt64(time) * second)
            #expect(!probers.haveNoticed(now: UInt64(time) * second))
        }
        for time in 4...6 {
            #expect(!probers.haveNoticed(now: 6 * second))
            probers.answered(other, isDraining: true, now: UInt64(time) * second)
        }
        #expect(probers.haveNoticed(now: 6 * second))
    }

    @Test func whoHasAskedOnceOrAsksNoLongerIsNotWaitedFor() {
        var probers = Probers()
        #expect(probers.haveNoticed(now: 0))
        probers.answered(one, isDraining: false, now: second)
        #expect(probers.haveNoticed(now: second))
        probers.answered(one, isDraining: false, now: 2 * second)
        #expect(!probers.haveNoticed(now: 12 * second) && probers.haveNoticed(now: 12 * second + 1))
        // Somebody who looks now and then.
        for time in [20, 40, 60] as [UInt64] { probers.answered(other, isDraining: false, now: time * second) }
        #expect(probers.haveNoticed(now: 60 * second))
    }

    @Test func veryManyTakeLittleRoom() {
        var probers = Probers()
        for number in 0..<UInt32(10 * Probers.most) {
            for _ in 0..<2 { probers.answered(IPAddress(v4: 100 + number), isDraining: false, now: second) }
        }
        // Those that have gone make room.
        for _ in 0..<2 { probers.answered(one, isDraining: false, now: 30 * second) }
        #expect(!probers.haveNoticed(now: 30 * second))
        for _ in 0..<3 { probers.answered(one, isDraining: true, now: 31 * second) }
        #expect(probers.haveNoticed(now: 31 * second))
    }

    @Test func serverWaitsForThem() {
        let progress = DrainProgress(began: 0, end: 100 * second, quiet: 2 * second)
        #expect(progress.continues(.init(isNoticed: false), now: 50 * second))
        #expect(!progress.continues(.init(isNoticed: true), now: 50 * second))
        #expect(!progress.continues(.init(isNoticed: false), now: 100 * second))
        let alone = DrainProgress(began: 0, end: 100 * second, quiet: 0)
        #expect(!alone.continues(.init(isNoticed: false), now: 0))
    }
}
