import CachePolicy
import HTTPModel

/// The cached byte ranges of a resource at one moment.
public struct CacheCoverage: Sendable, Equatable {
    /// The length of the resource, in bytes.
    public let length: Int64
    /// The cached bytes: half-open ranges, in order, that neither overlap nor touch.
    public let ranges: [Range<Int64>]
    /// Whether the resource is pinned.
    public let isPinned: Bool
    /// The smallest unit that is cached, in bytes.
    package var chunkSize: Int64 = 0
    /// The origin's `Content-Type`, if it sent one.
    package var type: String?

    /// For tests of programs that show what is cached. The ranges must be in order, within the length, and must not
    /// touch each other.
    public init(length: Int64, ranges: [Range<Int64>], isPinned: Bool) {
        (self.length, self.ranges, self.isPinned) = (length, ranges, isPinned)
    }

    init(length: Int64, ranges: [Range<Int64>], isPinned: Bool, _ geometry: ChunkGeometry, _ fields: HeaderFields) {
        self.init(length: length, ranges: ranges, isPinned: isPinned)
        (chunkSize, type) = (geometry.chunkSize, fields["Content-Type"])
    }

    /// Compares what is cached.
    public static func == (a: CacheCoverage, b: CacheCoverage) -> Bool {
        a.length == b.length && a.ranges == b.ranges && a.isPinned == b.isPinned
    }

    /// The number of cached bytes.
    public var cachedBytes: Int64 { ranges.reduce(0) { $0 +| ($1.upperBound -| $1.lowerBound) } }

    /// Whether the whole resource is cached.
    public var isComplete: Bool { cachedBytes == length }

    /// The cached fraction of the resource, 0 to 1; 1 for an empty resource.
    public var fractionCached: Double { length == 0 ? 1 : Double(cachedBytes) / Double(length) }

    /// The bytes that are not cached: half-open ranges, in order.
    public var missing: [Range<Int64>] {
        let starts = [0] + ranges.map(\.upperBound), ends = ranges.map(\.lowerBound) + [length]
        return zip(starts, ends).compactMap { $0 < $1 ? Range(from: $0, upTo: $1) : nil }
    }

    /// Whether all bytes of a range are cached. Bytes beyond the length are ignored.
    public func contains(_ range: Range<Int64>) -> Bool {
        let wanted = range.clamped(to: 0..<max(0, length)) // no trap: not below 0
        return wanted.isEmpty
            || ranges.contains { $0.lowerBound <= wanted.lowerBound && wanted.upperBound <= $0.upperBound }
    }
}
