import TestSupport
import Testing

@testable import Activity

/// The rings of the history, driven by samples.
@Suite struct HistoryTests {
    private var history = History()
    private var totals = HistoryCounts()

    /// Counts requests and takes a sample.
    private mutating func sample(at time: Int64, requests: UInt64 = 0, elapsed: Int64 = 10_000, size: Int64 = 7) {
        totals.requests += requests
        history.add(HistorySample(time: time, elapsed: elapsed, totals: totals, size: size, limit: 9))
    }

    /// The starts and requests of an hour's periods.
    private func hour(at now: Int64) -> [String] {
        history.periods(of: .hour, now: now).map { "\($0.start): \($0.counts.requests)" }
    }

    @Test func sampleAtTheEndOfAPeriodBelongsToIt() {
        var my = self
        my.sample(at: 1000, requests: 3)
        my.sample(at: 1010, requests: 4)
        // A little late, and a little early
        my.sample(at: 1022, requests: 5, elapsed: 12_000)
        my.sample(at: 1029, requests: 6, elapsed: 7000)
        #expect(my.hour(at: 1030) == ["990: 3", "1000: 4", "1010: 5", "1020: 6"])
        let periods = my.history.periods(of: .hour, now: 1030)
        #expect(periods.map(\.milliseconds) == [10_000, 10_000, 10_000, 7000])
        #expect(periods.allSatisfy { $0.size == 7 && $0.limit == 9 })
    }

    @Test func samplesOfOnePeriodAreAdded() {
        var my = self
        my.sample(at: 1003, requests: 1, elapsed: 3000)
        my.sample(at: 1006, requests: 2, elapsed: 3000, size: 8)
        my.sample(at: 1010, requests: 4, elapsed: 4000)
        #expect(my.hour(at: 1010) == ["1000: 7"])
        #expect(my.history.periods(of: .hour, now: 1010).first?.milliseconds == 10_000)
        #expect(my.history.periods(of: .day, now: 1010).map(\.counts.requests) == [7])
        #expect(my.history.periods(of: .month, now: 1010).map(\.start) == [0])
    }

    @Test func whatWasNotCountedIsAGapAndNotZero() {
        var my = self
        my.sample(at: 1010, requests: 1)
        my.sample(at: 1020)
        my.sample(at: 1100, requests: 1)
        #expect(my.hour(at: 1100) == ["1000: 1", "1010: 0", "1090: 1"])
    }

    @Test func ringsForgetTheOldest() {
        var my = self
        for time in stride(from: Int64(10), through: 4000, by: 10) { my.sample(at: time, requests: 1) }
        let periods = my.history.periods(of: .hour, now: 4000)
        // The period that has just begun has no sample yet.
        #expect(periods.count == 359 && periods.first?.start == 410 && periods.last?.start == 3990)
        #expect(my.history.periods(of: .day, now: 4000).map(\.counts.requests).reduce(0, +) == 400)
        // Nothing for an hour: the slots are still there, but no longer of the last hour.
        #expect(my.hour(at: 7590) == [] && my.hour(at: 7580) == ["3990: 1"])
    }

    @Test func clockThatWasSetBackCountsAgainAndHidesTheFuture() {
        var my = self
        my.sample(at: 5010, requests: 1)
        my.sample(at: 5020, requests: 2)
        my.sample(at: 5010, requests: 4)
        #expect(my.hour(at: 5009) == ["5000: 5"])
        #expect(my.hour(at: 5020) == ["5000: 5", "5010: 2"])
        // Far: the slot of another hour is taken over.
        my.sample(at: 5010 - 3600, requests: 8)
        #expect(my.hour(at: 1410) == ["1400: 8"])
        #expect(my.hour(at: 5020) == ["5010: 2"])
    }

    @Test(arguments: [Int64.min, -1, 0, .max]) func noClockTraps(time: Int64) {
        var my = self
        my.sample(at: time, requests: 1, elapsed: .max)
        my.sample(at: time, requests: 1, elapsed: .min)
        for span in HistorySpan.allCases {
            #expect(my.history.periods(of: span, now: time).map(\.counts.requests).reduce(0, +) == 2)
            let report = HistoryReport(my.history, span, now: time)
            #expect(report.from <= report.to && report.periods.count <= 2)
        }
    }

    @Test func restartContinuesFromWhatWasStored() {
        var my = self
        my.sample(at: 1010, requests: 5)
        var next = History(my.history.slots)
        #expect(next.periods(of: .hour, now: 1010) == my.history.periods(of: .hour, now: 1010))
        // Another process counts from zero again.
        var totals = HistoryCounts()
        totals.requests = 2
        next.add(HistorySample(time: 1012, elapsed: 2000, totals: totals, size: 1, limit: 2))
        #expect(next.periods(of: .day, now: 1012).map(\.counts.requests) == [7])
    }

    @Test func changedSlotsAreTakenOnce() {
        var my = self
        my.sample(at: 1010, requests: 5)
        let taken = my.history.takeChanged()
        #expect(taken.count == 3 && my.history.takeChanged().isEmpty)
        my.history.unsaved(taken.keys)
        #expect(my.history.takeChanged() == taken)
    }

    @Test func periodsFitTheirOwnSlotAlone() {
        var my = self
        my.sample(at: 1_795_453_757, requests: 5)
        for (slot, period) in my.history.slots {
            #expect(History.fits(period, slot))
            #expect(!History.fits(period, slot + 1) && !History.fits(period, -1))
            var tooLong = period
            tooLong.milliseconds = 7_200_001
            #expect(!History.fits(tooLong, slot))
        }
        #expect(!History.fits(HistoryPeriod(start: 5), 0) && !History.fits(HistoryPeriod(start: -10), 0))
        #expect(!History.fits(HistoryPeriod(start: 0), History.slotCount))
        #expect(
            History([0: HistoryPeriod(start: 10), 1: HistoryPeriod(start: 10)]).slots == [1: HistoryPeriod(start: 10)])
    }

    // MARK: Times

    @Test func percentilesAreInterpolatedWithinTheirBucket() throws {
        let histogram = LatencyHistogram()
        #expect(HistoryTimes(histogram.counts).milliseconds(0.5) == nil)
        for number in 1...1000 { histogram.record(nanoseconds: UInt64(number) * 1_000_000) }
        let times = HistoryTimes(histogram.counts)
        #expect(times.count == 1000)
        for quantile in [0.1, 0.5, 0.9] {
            let found = try #require(times.milliseconds(quantile))
            #expect(abs(found - quantile * 1000) < quantile * 150, "\(quantile): \(found) ms")
        }
    }

    @Test func shortestAndLongestTimesAreCounted() {
        let histogram = LatencyHistogram()
        for value: UInt64 in [0, 1, 4095, 4096, .max] { histogram.record(nanoseconds: value) }
        let times = HistoryTimes(histogram.counts)
        #expect(times.counts.first == 4 && times.counts.last == 1 && times.count == 5)
    }

    // MARK: Slots

    private static func period(_ random: inout SplitMix64) -> HistoryPeriod {
        var period = HistoryPeriod(start: Int64.random(in: 0...Int64.max, using: &random))
        period.milliseconds = Int64.random(in: 0...10_000, using: &random)
        for path in HistoryCounts.numbers { period.counts[keyPath: path] = random.next() }
        for bucket in 0..<HistoryTimes.bucketCount {
            period.counts.hitTimes.counts[bucket] = UInt64(UInt32(truncatingIfNeeded: random.next()))
            period.counts.missTimes.counts[bucket] = UInt64(UInt32(truncatingIfNeeded: random.next()))
        }
        (period.size, period.limit) = (.max, 0)
        return period
    }

    @Test func slotReadsBackAndEachChangedByteIsDamage() {
        var random = SplitMix64.forTest("slotReadsBackAndEachChangedByteIsDamage")
        let period = Self.period(&random), bytes = HistorySlot.bytes(period)
        #expect(bytes.count == HistorySlot.length && HistorySlot.read(bytes[...]) == .period(period))
        for index in bytes.indices {
            var damaged = bytes
            damaged[index] ^= 1 << UInt8(random.next() % 8)
            #expect(HistorySlot.read(damaged[...]) == .damaged, "byte \(index)")
        }
        #expect(HistorySlot.read(bytes.dropLast()) == .damaged)
    }

    @Test func unwrittenSlotIsEmpty() {
        #expect(HistorySlot.read([UInt8](repeating: 0, count: HistorySlot.length)[...]) == .empty)
    }

    @Test func countsTooGreatForTheirPlaceAreClamped() {
        var period = HistoryPeriod(start: 10)
        period.counts.hitTimes.counts[3] = .max
        guard case .period(let read) = HistorySlot.read(HistorySlot.bytes(period)[...]) else {
            Issue.record("it does not read back")
            return
        }
        #expect(read.counts.hitTimes.counts[3] == UInt64(UInt32.max))
        var (a, b) = (HistoryCounts(), HistoryCounts())
        (a.requests, b.requests) = (.max, 2)
        #expect((a + b).requests == .max && (b - a).requests == 0)
    }
}
