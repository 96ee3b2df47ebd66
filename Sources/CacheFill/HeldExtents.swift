import DiskCache
import HTTPModel

/// Leases on the extents between a fetch's slowest follower and its frontier, so that they are not evicted before they
/// are read.
struct HeldExtents {
    private(set) var leases: [ExtentLease.Held] = []

    /// Holds the extents about to be written, and releases those that the slowest reader has passed.
    /// - Parameters:
    ///   - range: bytes; they must not span more than two extents.
    ///   - reader: the offset of the slowest follower.
    ///   - most: the most extents to hold: one slow reader among fast ones must not hold the whole cache.
    mutating func hold(_ range: Range<Int64>, of generation: Generation, readFrom reader: Int64, atMost most: Int) {
        hold(generation.geometry.extent(at: range.lowerBound), of: generation, reader, most)
        hold(generation.geometry.extent(at: max(range.lowerBound, range.upperBound -| 1)), of: generation, reader, most)
    }

    private mutating func hold(_ ordinal: Int, of generation: Generation, _ reader: Int64, _ most: Int) {
        guard !leases.contains(where: { $0.lease.ordinal == ordinal }) else { return }
        release(before: generation.geometry.extent(at: max(reader, 0)))
        if leases.count >= most { leases.removeFirst() }
        leases.append(ExtentLease.Held(generation.leaseForWriting(ordinal)))
    }

    /// Releases extents that have been read.
    mutating func release(before ordinal: Int) { leases.removeAll { $0.lease.ordinal < ordinal } }

    mutating func releaseAll() { leases = [] }
}
