@testable import Activity
import TestSupport
import Testing

@Suite struct LatencyHistogramTests {
    @Test func emptyHistogramHasNoQuantile() {
        let histogram = LatencyHistogram()
        #expect(histogram.counts.count == 0)
        #expect(histogram.counts.quantile(0.5) == nil)
    }

    // Below 16 each value has a bucket of its own.
    @Test(arguments: 0...15 as ClosedRange<UInt64>)
    func smallValuesAreExact(value: UInt64) {
        let histogram = LatencyHistogram()
        histogram.record(nanoseconds: value)
        for quantile in [0, 0.5, 1] { #expect(histogram.counts.quantile(quantile) == value) }
    }

    /// A power of two begins a bucket, whose upper bound is an eighth away.
    @Test(arguments: 4...61)
    func powersOfTwoBeginABucket(exponent: Int) {
        let power: UInt64 = 1 << UInt64(exponent)
        #expect(Self.bound(of: power - 1) == power - 1)
        #expect(Self.bound(of: power) == power + power / 8 - 1)
    }

    @Test func largestDurationsAreCounted() {
        let histogram = LatencyHistogram()
        histogram.record(nanoseconds: .max)
        histogram.record(nanoseconds: 1 << 62)
        #expect(histogram.counts.count == 2)
        #expect(histogram.counts.quantile(1) != nil)
    }

    @Test func quantilesAreWithinAnEighthAboveThoseOfASortedArray() {
        var random = SplitMix64.forTest("quantilesAreWithinAnEighthAboveThoseOfASortedArray")
        for _ in 0..<30 {
            let values = Self.durations(&random)
            let histogram = LatencyHistogram()
            for value in values { histogram.record(nanoseconds: value) }
            let sorted = values.sorted()
            #expect(histogram.counts.count == UInt64(values.count))
            for quantile in [0, 0.01, 0.25, 0.5, 0.9, 0.99, 0.999, 1, Double.random(in: 0...1, using: &random)] {
                let rank = max(Int((Double(values.count) * quantile).rounded(.up)), 1)
                let truth = sorted[rank - 1]
                guard let found = histogram.counts.quantile(quantile) else {
                    Issue.record("no quantile \(quantile) of \(values.count) values")
                    continue
                }
                #expect(
                    found >= truth && Double(found) <= Double(truth) * 1.125,
                    "quantile \(quantile) of \(values.count) values")
            }
        }
    }

    @Test func quantilesGrowWithTheirRank() {
        var random = SplitMix64.forTest("quantilesGrowWithTheirRank")
        let histogram = LatencyHistogram()
        for value in Self.durations(&random) { histogram.record(nanoseconds: value) }
        let quantiles = (0...100).compactMap { histogram.counts.quantile(Double($0) / 100) }
        #expect(quantiles == quantiles.sorted())
    }

    @Test func recordsOfSeveralThreadsAreAllCounted() throws {
        let histogram = LatencyHistogram()
        _ = try concurrently(8) { thread in
            for value in 0..<10_000 { histogram.record(nanoseconds: UInt64(value * (thread + 1))) }
        }
        #expect(histogram.counts.count == 80_000)
    }

    private static func bound(of value: UInt64) -> UInt64? {
        let histogram = LatencyHistogram()
        histogram.record(nanoseconds: value)
        return histogram.counts.quantile(0.5)
    }

    /// Of all orders of magnitude, as latencies are.
    private static func durations(_ random: inout SplitMix64) -> [UInt64] {
        (0..<Int.random(in: 1...2000, using: &random)).map { _ in
            UInt64.random(in: 0..<(1 << UInt64.random(in: 1...50, using: &random)), using: &random)
        }
    }
}
