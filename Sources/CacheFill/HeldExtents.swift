import DiskCache
import HTTPModel

/// The extents between the slowest follower of a fetch and its frontier: they must not be evicted before they are read.
struct HeldExtents {
    private var leases: [HeldLease] = []

    /// How many are held.
    var count: Int { leases.count }

    /// Keeps what is about to be written, and lets go of what its slowest reader has passed.
    /// - Parameters:
    ///   - range: bytes, no more than two extents of them.
    ///   - reader: where the slowest follower is.
    ///   - most: that many extents at most, as one slow reader among fast ones must not hold the whole cache.
    mutating func hold(_ range: Range<Int64>, of generation: Generation, readFrom reader: Int64, atMost most: Int) {
        hold(generation.geometry.extent(at: range.lowerBound), of: generation, reader, most)
        hold(generation.geometry.extent(at: max(range.lowerBound, range.upperBound -| 1)), of: generation, reader, most)
    }

    private mutating func hold(_ ordinal: Int, of generation: Generation, _ reader: Int64, _ most: Int) {
        guard !leases.contains(where: { $0.lease.ordinal == ordinal }) else { return }
        release(before: generation.geometry.extent(at: max(reader, 0)))
        if leases.count >= most { leases.removeFirst() }
        leases.append(HeldLease(generation.leaseForWriting(ordinal)))
    }

    /// Lets go of extents that have been read.
    mutating func release(before ordinal: Int) { leases.removeAll { $0.lease.ordinal < ordinal } }

    mutating func releaseAll() { leases = [] }
}
