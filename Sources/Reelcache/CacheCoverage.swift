import DiskCache
import HTTPModel

/// What of a resource is cached at a moment.
public struct CacheCoverage: Sendable, Equatable {
    /// The resource's bytes.
    public let length: Int64
    /// What of them is cached: half-open ranges of bytes, in order, that do not meet.
    public let ranges: [Range<Int64>]
    /// Whether it is kept from being evicted.
    public let isPinned: Bool

    /// For tests of programs that show what is cached. The ranges are in order, within the length, and apart from each
    /// other.
    public init(length: Int64, ranges: [Range<Int64>], isPinned: Bool) {
        self.length = length
        self.ranges = ranges
        self.isPinned = isPinned
    }

    init(_ coverage: ResourceCoverage) {
        self.init(length: coverage.length, ranges: coverage.present, isPinned: coverage.isPinned)
    }

    /// How many bytes are cached.
    public var cachedBytes: Int64 { ranges.reduce(0) { $0 +| ($1.upperBound -| $1.lowerBound) } }

    /// Whether all of it is cached.
    public var isComplete: Bool { cachedBytes == length }

    /// How much of it is cached, 0 to 1; 1 for a resource without bytes.
    public var fractionCached: Double { length == 0 ? 1 : Double(cachedBytes) / Double(length) }

    /// What is not cached: half-open ranges of bytes, in order.
    public var missing: [Range<Int64>] {
        let starts = [0] + ranges.map(\.upperBound), ends = ranges.map(\.lowerBound) + [length]
        return zip(starts, ends).compactMap { $0 < $1 ? Range(from: $0, upTo: $1) : nil }
    }

    /// Whether all bytes of a range are cached. Those beyond the length do not count.
    public func contains(_ range: Range<Int64>) -> Bool {
        let wanted = range.clamped(to: 0..<max(0, length)) // no trap: not below 0
        return wanted.isEmpty
            || ranges.contains { $0.lowerBound <= wanted.lowerBound && wanted.upperBound <= $0.upperBound }
    }
}
