import Synchronization
import Testing

@testable import CacheFill

/// Not the one that the modules under test count in debug builds.
typealias Mutex = Synchronization.Mutex

private final class ManualTime: Sendable {
    private let time = Atomic<UInt64>(5_000_000_000)
    private let playing = Atomic(false)

    var now: UInt64 { time.load(ordering: .relaxed) }
    var isPlaying: Bool { playing.load(ordering: .relaxed) }

    func advance(byMilliseconds count: UInt64) { time.wrappingAdd(count * 1_000_000, ordering: .relaxed) }
    func play(_ isPlaying: Bool) { playing.store(isPlaying, ordering: .relaxed) }
}

@Suite struct FillPaceTests {
    private let time = ManualTime()
    private let line: DownloadLine

    init() {
        let time = time
        line = DownloadLine(nanoseconds: { time.now }, isPlaying: { time.isPlaying })
    }

    @Test func withoutLimitsAllIsInTime() {
        #expect(FillPace(line, rate: nil).take(1 << 40) == 1 << 40)
    }

    @Test func rateIsOneOfEachDownload() {
        let (slow, quick) = (FillPace(line, rate: 1000), FillPace(line, rate: 5000))
        _ = (slow.take(1 << 20), quick.take(1 << 20))
        time.advance(byMilliseconds: 100)
        #expect(slow.take(1 << 20) == 100 && quick.take(1 << 20) == 500)
        #expect(slow.take(1 << 20) == 0)
        time.advance(byMilliseconds: 50)
        #expect(slow.take(20) == 20 && slow.take(1 << 20) == 30)
    }

    @Test func unusedTimeCountsForAQuarterOfASecond() {
        let pace = FillPace(line, rate: 1000)
        _ = pace.take(1)
        time.advance(byMilliseconds: 60_000)
        #expect(pace.take(1 << 20) == 250)
    }

    @Test func rateOfAllIsShared() {
        let (one, other) = (FillPace(line, rate: nil), FillPace(line, rate: nil))
        line.limit(to: 1000)
        time.advance(byMilliseconds: 100)
        #expect(one.take(60) == 60)
        #expect(other.take(1 << 20) == 40 && one.take(1) == 0)
        line.limit(to: nil)
        #expect(one.take(1 << 30) == 1 << 30)
    }

    @Test func theSmallerOfBothRatesHolds() {
        let pace = FillPace(line, rate: 1000)
        line.limit(to: 200)
        _ = pace.take(1)
        time.advance(byMilliseconds: 100)
        #expect(pace.take(1 << 20) == 20)
        line.limit(to: 1_000_000)
        time.advance(byMilliseconds: 100)
        // What the other limit has kept back is not lost.
        #expect(pace.take(1 << 20) == 180)
    }

    @Test func besideAPlayerATrickleIsLeftForAll() {
        let (one, other) = (FillPace(line, rate: nil), FillPace(line, rate: nil))
        time.play(true)
        _ = one.take(1 << 20)
        time.advance(byMilliseconds: 100)
        let granted = one.take(1 << 20) + other.take(1 << 20)
        #expect(granted == DownloadLine.trickle / 10)
        time.play(false)
        // It is not looked at each time.
        #expect(other.take(1 << 20) == 0)
        time.advance(byMilliseconds: 50)
        #expect(other.take(1 << 20) == 1 << 20)
    }

    /// Who is asked whether something plays looks at what all transfers do, under locks of its own: nothing is locked
    /// here meanwhile.
    @Test func nothingIsLockedWhileOthersAreAsked() {
        let pace = Mutex<FillPace?>(nil)
        let looks = Atomic(0)
        let line = DownloadLine(nanoseconds: {
            pace.withLock { $0 }.map { _ = $0.rate } ?? (); return 1
        }) {
            _ = pace.withLock { $0 }?.rate
            return looks.add(1, ordering: .relaxed).newValue > 0
        }
        pace.withLock { $0 = FillPace(line, rate: 1000) }
        pace.withLock { $0 }?.limit(to: 2000)
        _ = pace.withLock { $0 }?.take(1)
        _ = pace.withLock { $0 }?.reserve(1)
        #expect(looks.load(ordering: .relaxed) == 1)
        pace.withLock { $0 = nil }
    }

    @Test func whatCameTooEarlyIsWaitedForByWhatComesNext() {
        let (one, other) = (FillPace(line, rate: nil), FillPace(line, rate: nil))
        line.limit(to: 1000)
        one.owe(300)
        time.advance(byMilliseconds: 200)
        #expect(other.take(1) == 0)
        time.advance(byMilliseconds: 200)
        #expect(other.take(1 << 20) == 100)
    }

    @Test func transferBeginsWhenWhatCameBeforeIsPaidFor() {
        let (one, other) = (FillPace(line, rate: nil), FillPace(line, rate: nil))
        line.limit(to: 1000)
        #expect(one.reserve(300))
        #expect(!one.reserve(300) && !other.reserve(300) && other.take(1) == 0)
        time.advance(byMilliseconds: 200)
        #expect(!other.reserve(300))
        // What was reserved and has not come is nobody's debt.
        one.owe(-100)
        #expect(other.reserve(300))
        line.limit(to: nil)
        #expect(one.reserve(1 << 40) && one.reserve(1 << 40))
    }

    @Test(
        arguments: [
            (nil, 16, 1 << 20), (1, 1, 128 << 10), (2 << 20, 2, 128 << 10), (8 << 20, 8, 512 << 10),
            (1 << 30, 16, 1 << 20), (.max, 16, 1 << 20),
        ] as [(Int64?, Int, Int64)])
    func whatComesOverAndAboveIsAPartOfASecond(rate: Int64?, connections: Int, window: Int64) {
        line.limit(to: rate)
        let pace = FillPace(line, rate: nil)
        #expect(pace.connections(of: 16) == connections && pace.window == window)
    }

    @Test func numbersAtTheEdgeTrapNowhere() {
        let pace = FillPace(line, rate: .max)
        line.limit(to: .max)
        for bytes in [Int64.max, .min, 0, -1] {
            _ = (pace.take(bytes), pace.reserve(bytes))
            pace.owe(bytes)
            time.advance(byMilliseconds: 1 << 40)
        }
    }

    @Test func lowestRateIsOneBytePerSecond() {
        let pace = FillPace(line, rate: 1)
        _ = pace.take(1)
        time.advance(byMilliseconds: 900)
        #expect(pace.take(1 << 20) == 0)
        time.advance(byMilliseconds: 100)
        #expect(pace.take(1 << 20) == 1)
        time.advance(byMilliseconds: 60_000)
        #expect(pace.take(1 << 20) == 1)
    }

    @Test func changedRateHoldsAtOnce() {
        let pace = FillPace(line, rate: 1000)
        _ = pace.take(1)
        pace.limit(to: 100)
        time.advance(byMilliseconds: 100)
        #expect(pace.take(1 << 20) == 10)
        pace.limit(to: nil)
        #expect(pace.take(1 << 20) == 1 << 20)
    }
}
