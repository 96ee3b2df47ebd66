// no traps: sums are clamped, differences are not negative, exponents are those of 64 bits

/// What is counted over time.
package struct HistoryCounts: Sendable, Equatable {
    /// Bytes of bodies sent to players: from the cache, and while they arrived from origins.
    package var fromCache, fromOrigins: UInt64
    /// Bytes of bodies received from origins, downloads included.
    package var received: UInt64
    /// Requests for media, and those answered from the cache alone.
    package var requests, hits: UInt64
    /// Failures and other errors, of all kinds.
    package var errors: UInt64
    /// How long players waited for the first byte.
    package var hitTimes, missTimes: HistoryTimes

    /// Nothing.
    package init() {
        (fromCache, fromOrigins, received, requests, hits, errors) = (0, 0, 0, 0, 0, 0)
        (hitTimes, missTimes) = (HistoryTimes(), HistoryTimes())
    }

    /// What was counted since the process started.
    package init(_ metrics: ProxyMetrics) {
        (fromCache, fromOrigins) = (metrics.bytesFromCache.value, metrics.bytesFromUpstream.value)
        received = metrics.upstreamBytes.value
        (requests, hits) = (metrics.requests.value, metrics.hits.value)
        errors = metrics.errors.values.values.reduce(0, &+)
        hitTimes = HistoryTimes(metrics.firstByteOfHits.counts)
        missTimes = HistoryTimes(metrics.firstByteOfMisses.counts)
    }

    /// Combines each count with that of the same name.
    private static func combine(_ a: Self, _ b: Self, _ join: (UInt64, UInt64) -> UInt64) -> Self {
        var result = Self()
        for path in Self.numbers { result[keyPath: path] = join(a[keyPath: path], b[keyPath: path]) }
        for path in [\Self.hitTimes, \.missTimes] {
            result[keyPath: path].counts = zip(a[keyPath: path].counts, b[keyPath: path].counts).map(join)
        }
        return result
    }

    /// The counts that are one number each, in the order in which they are stored.
    static var numbers: [WritableKeyPath<Self, UInt64>] {
        [\.fromCache, \.fromOrigins, \.received, \.requests, \.hits, \.errors]
    }

    /// The sums, clamped to the greatest number.
    static func + (a: Self, b: Self) -> Self {
        combine(a, b) {
            let (sum, isOver) = $0.addingReportingOverflow($1)
            return isOver ? .max : sum
        }
    }

    /// What was counted between two times; 0 where a count is less than before.
    static func - (later: Self, earlier: Self) -> Self { combine(later, earlier) { $0 < $1 ? 0 : $0 - $1 } }
}

/// Durations in few buckets, two for each power of two from 4 µs to 69 s: coarse enough to keep for a month, and fine
/// enough for percentiles on a plot.
package struct HistoryTimes: Sendable, Equatable {
    private static let firstExponent = 12
    static let bucketCount = 48

    /// `bucketCount` counts. The first has all shorter durations too, the last all longer ones.
    var counts: [UInt64]

    /// None.
    package init() { counts = [UInt64](repeating: 0, count: Self.bucketCount) }

    package init(_ fine: LatencyCounts) {
        self.init()
        for (index, count) in fine.buckets.enumerated() where count > 0 {
            counts[Self.bucket(of: LatencyCounts.upperBound(of: index))] &+= count
        }
    }

    package var count: UInt64 { counts.reduce(0, &+) }

    /// A quantile in milliseconds, interpolated within its bucket; nil if there are no durations.
    /// - Parameter quantile: 0...1.
    package func milliseconds(_ quantile: Double) -> Double? {
        let total = Double(count)
        guard total > 0 else { return nil }
        let rank = total * quantile
        var seen = 0.0
        for (index, count) in counts.enumerated() where count > 0 {
            if seen + Double(count) >= rank {
                let (lower, upper) = Self.bounds(of: index)
                return ((lower + (upper - lower) * (rank - seen) / Double(count)) / 1000).rounded() / 1000
            }
            seen += Double(count)
        }
        return nil
    }

    private static func bucket(of nanoseconds: UInt64) -> Int {
        let exponent = 63 - max(1, nanoseconds).leadingZeroBitCount
        guard exponent >= firstExponent else { return 0 }
        // The bit after the leading one selects the half.
        let half = Int(nanoseconds >> UInt64(exponent - 1)) & 1
        return min(2 * (exponent - firstExponent) + half, bucketCount - 1)
    }

    /// In nanoseconds.
    private static func bounds(of bucket: Int) -> (lower: Double, upper: Double) {
        let base = Double(UInt64(1) << UInt64(firstExponent + bucket / 2))
        let (lower, upper) = bucket % 2 == 0 ? (base, base * 1.5) : (base * 1.5, base * 2)
        return (bucket == 0 ? 0 : lower, upper)
    }
}
