import Synchronization

/// Durations in buckets whose width grows with the value: eight buckets for each power of two, so that a quantile
/// is accurate to 12.5 %. Safe to use from any thread.
package final class LatencyHistogram: Sendable {
    private let buckets: [Counter] = (0..<LatencyCounts.bucketCount).map { _ in Counter() }
    private let total = Counter()

    package init() {}

    package func record(nanoseconds: UInt64) {
        buckets[LatencyCounts.bucket(of: nanoseconds)].add()
        total.add(Int64(clamping: nanoseconds))
    }

    /// What was recorded so far. Durations recorded meanwhile may be in the total and not yet in the counts.
    package var counts: LatencyCounts {
        LatencyCounts(buckets: buckets.map(\.value), totalNanoseconds: total.value)
    }
}

/// The content of a `LatencyHistogram` at one moment.
package struct LatencyCounts: Sendable, Equatable {
    private static let subBucketBits = 3
    /// The number of buckets.
    static let bucketCount = 61 << subBucketBits

    /// How many durations each bucket has; `bucketCount` of them.
    let buckets: [UInt64]
    /// The sum of all durations.
    let totalNanoseconds: UInt64

    var count: UInt64 { buckets.reduce(0, &+) }

    /// The upper bound, in nanoseconds, of the bucket that contains the quantile; nil if nothing was recorded.
    /// - Parameter quantile: 0...1.
    func quantile(_ quantile: Double) -> UInt64? {
        let total = count
        guard total > 0 else { return nil }
        let rank = UInt64((Double(total) * quantile).rounded(.up))
        var seen: UInt64 = 0
        for (index, count) in buckets.enumerated() {
            seen += count
            if seen >= max(rank, 1) { return Self.upperBound(of: index) }
        }
        return nil
    }

    /// The number of durations shorter than 2^`exponent` nanoseconds, exactly.
    /// - Parameter exponent: 3...62.
    func count(belowPowerOfTwo exponent: Int) -> UInt64 {
        buckets[..<Self.bucket(of: 1 << UInt64(exponent))].reduce(0, &+)
    }

    /// Values below 8 have a bucket each; above, the three bits after the leading one select one of eight buckets.
    static func bucket(of value: UInt64) -> Int {
        guard value >= 1 << subBucketBits else { return Int(value) }
        let exponent = 63 - value.leadingZeroBitCount
        let sub = Int(value >> UInt64(exponent - subBucketBits)) & ((1 << subBucketBits) - 1)
        return min((exponent - subBucketBits + 1) << subBucketBits | sub, bucketCount - 1)
    }

    static func upperBound(of bucket: Int) -> UInt64 {
        guard bucket >= 1 << subBucketBits else { return UInt64(bucket) }
        let shift = (bucket >> subBucketBits) - 1
        let base = UInt64((1 << subBucketBits) | (bucket & ((1 << subBucketBits) - 1)))
        return ((base + 1) << UInt64(shift)) - 1
    }
}
