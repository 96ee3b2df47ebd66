import Synchronization

/// Durations in buckets whose width grows with the value: eight buckets for each power of two, so that a quantile
/// is accurate to 12.5 %. Safe to use from any thread.
package final class LatencyHistogram: Sendable {
    private static let subBucketBits = 3
    private let buckets: [Counter] = (0..<(61 << LatencyHistogram.subBucketBits)).map { _ in Counter() }

    package init() {}

    package func record(nanoseconds: UInt64) {
        buckets[Self.bucket(of: nanoseconds)].add()
    }

    package var count: UInt64 { buckets.reduce(0) { $0 + $1.value } }

    /// The upper bound, in nanoseconds, of the bucket that contains the quantile; nil if nothing was recorded.
    /// - Parameter quantile: 0...1.
    package func quantile(_ quantile: Double) -> UInt64? {
        let counts = buckets.map(\.value)
        let total = counts.reduce(0, +)
        guard total > 0 else { return nil }
        let rank = UInt64((Double(total) * quantile).rounded(.up))
        var seen: UInt64 = 0
        for (index, count) in counts.enumerated() {
            seen += count
            if seen >= max(rank, 1) { return Self.upperBound(of: index) }
        }
        return nil
    }

    /// Values below 8 have a bucket each; above, the three bits after the leading one select one of eight buckets.
    static func bucket(of value: UInt64) -> Int {
        guard value >= 1 << subBucketBits else { return Int(value) }
        let exponent = 63 - value.leadingZeroBitCount
        let sub = Int(value >> UInt64(exponent - subBucketBits)) & ((1 << subBucketBits) - 1)
        return min((exponent - subBucketBits + 1) << subBucketBits | sub, (61 << subBucketBits) - 1)
    }

    static func upperBound(of bucket: Int) -> UInt64 {
        guard bucket >= 1 << subBucketBits else { return UInt64(bucket) }
        let shift = (bucket >> subBucketBits) - 1
        let base = UInt64((1 << subBucketBits) | (bucket & ((1 << subBucketBits) - 1)))
        return ((base + 1) << UInt64(shift)) - 1
    }
}
