/// A reader's or transfer's lease of an extent: as long as this value lives, the extent's bytes stay in the file.
package struct ExtentLease: ~Copyable, Sendable {
    /// nil once it has ended.
    private var generation: Generation?
    package let ordinal: Int

    /// - Parameter ordinal: an extent whose lease was already taken in the generation's table.
    init(_ generation: Generation, _ ordinal: Int) {
        self.generation = generation
        self.ordinal = ordinal
    }

    deinit { generation?.withChunks { $0.endLease(ordinal) } }

    /// A lease that can be kept in a collection.
    package final class Held: Sendable {
        package let lease: ExtentLease

        package init(_ lease: consuming ExtentLease) { self.lease = lease }
    }
}

extension ExtentLease {
    /// The result of a reader's look at its offset.
    package enum Availability: Sendable, Equatable {
        /// Bytes up to this offset can be sent.
        case bytes(until: Int64)
        /// Present, but its checksum has to be compared first.
        case unverified
        case absent
    }

    /// Begins to read a generation (`Generation.beginReading`), with the lease of the first extent if there are bytes.
    /// - Parameter limit: the end of the bytes wanted.
    /// - Returns: the state from here on, the end of the bytes, and whether they can be sent without waiting.
    package static func begin(
        reading generation: Generation, at offset: Int64, limit: Int64, _ lease: inout ExtentLease?
    ) -> (Generation.Snapshot, end: Int64, isResident: Bool) {
        let geometry = generation.geometry, ordinal = geometry.extent(at: offset), now = AccessClock.now()
        let instant = AccessClock.monotonic()
        let (view, end, isResident) = generation.state.withLock { state in
            state.usage.beginReading()
            let view = generation.snapshot(of: state)
            guard case .bytes(let there) = state.chunks.acquire(at: offset, leases: true, now: now) else {
                return (view, Int64?.none, false)
            }
            let end = min(there, limit), chunks = geometry.chunks(touching: offset..<max(offset, end))
            let part = geometry.part(of: chunks, inExtent: ordinal)
            return (view, end, state.chunks.areResident(part, inExtent: ordinal, now: instant))
        }
        if end != nil { lease = ExtentLease(generation, ordinal) }
        return (view, end ?? offset, isResident)
    }

    /// Ends the reading (`Generation.endReading`), and the lease with it.
    package consuming func end(reading generation: Generation, having range: Range<Int64>) {
        self.generation = nil
        generation.state.withLock { state in
            state.chunks.endLease(ordinal)
            state.usage.endReading()
            state.news.played.insert(range)
        }
    }
}
