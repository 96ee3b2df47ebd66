import CachePolicy
import HTTPModel

/// A reader's or transfer's hold on an extent: as long as this value lives, the extent's bytes stay in the file.
package struct ExtentLease: ~Copyable, Sendable {
    let generation: Generation
    package let ordinal: Int

    fileprivate init(_ generation: Generation, _ ordinal: Int) {
        self.generation = generation
        self.ordinal = ordinal
    }

    deinit {
        generation.state.withLock { $0.extents[ordinal].leases -= 1 }
    }
}

/// What a reader finds at its offset.
package enum Availability: Sendable, Equatable {
    /// Bytes that can be sent, up to this offset.
    case bytes(until: Int64)
    /// Present, but its checksum has to be compared first.
    case unverified
    case absent
}

extension Generation {
    /// Looks what can be read at `offset`, and takes the lease that keeps it there.
    /// - Parameters:
    ///   - limit: the answer goes no further.
    ///   - lease: the lease held so far; replaced when the offset is in another extent and something is there.
    package func acquire(at offset: Int64, limit: Int64, lease: inout ExtentLease?) -> Availability {
        let chunk = geometry.chunk(at: offset), ordinal = geometry.extent(ofChunk: chunk), bit = geometry.bit(ofChunk: chunk)
        let holds = lease?.ordinal == ordinal
        let found: Availability = state.withLock { state in
            guard ordinal < state.extents.count, !state.extents[ordinal].isEvicting else { return .absent }
            let found = state.available(at: offset, chunk: chunk, extent: ordinal, bit: bit, geometry)
            guard case .bytes = found else { return found }
            if !holds { state.extents[ordinal].leases += 1 }
            state.extents[ordinal].lastAccess = AccessClock.now()
            state.extents[ordinal].isTouched = true
            return found
        }
        guard case .bytes(let end) = found else { return found }
        // The old lease ends here, outside of the lock that its end takes.
        if !holds { lease = ExtentLease(self, ordinal) }
        return .bytes(until: min(end, limit))
    }

    /// Takes a lease for a writer that is about to fill chunks of an extent. Its hold counts until the value ends.
    package func leaseForWriting(_ ordinal: Int) -> ExtentLease {
        state.withLock {
            $0.grow(toExtent: ordinal)
            $0.extents[ordinal].leases += 1
        }
        return ExtentLease(self, ordinal)
    }

    /// The bytes of a range that `acquire` found, for the kernel only, and where they stand in the file.
    package func bytes(_ range: Range<Int64>) -> (mapped: UnsafeRawBufferPointer, descriptor: Int32) {
        (file.mapped(range), file.descriptor)
    }

    /// Whether a range can be sent without waiting for the disk.
    package func isResident(_ range: Range<Int64>) -> Bool {
        file.isResident(range)
    }
}

extension Generation.State {
    fileprivate func available(at offset: Int64, chunk: Int, extent ordinal: Int, bit: Int, _ geometry: ChunkGeometry) -> Availability {
        let extent = extents[ordinal]
        if extent.present.contains(bit) {
            if extent.unverified.contains(bit) { return .unverified }
            let run = Presence(bits: extent.present.bits & ~extent.unverified.bits).runOfPresent(from: bit)
            let last = chunk + run - 1
            return .bytes(until: geometry.chunkBytes(last, length: length).upperBound)
        }
        for claim in writers.values where claim.chunk == chunk && claim.frontier > offset {
            return .bytes(until: claim.frontier)
        }
        return .absent
    }
}
