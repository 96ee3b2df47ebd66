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

/// A lease that can be kept in a list.
package final class HeldLease: Sendable {
    package let lease: ExtentLease

    package init(_ lease: consuming ExtentLease) { self.lease = lease }
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
        let chunk = geometry.chunk(at: offset), ordinal = geometry.extent(ofChunk: chunk),
            bit = geometry.bit(ofChunk: chunk)
        let holds = lease?.ordinal == ordinal, now = AccessClock.now()
        let found: Availability = state.withLock { state in
            guard !state.extents[ordinal].isEvicting else { return .absent }
            let found = state.available(at: offset, chunk: chunk, extent: ordinal, bit: bit, geometry)
            guard case .bytes = found else { return found }
            state.extents[ordinal].wasRead(at: now, isLeased: !holds)
            return found
        }
        guard case .bytes(let end) = found else { return found }
        // The old lease ends here, outside of the lock that its end takes.
        if !holds { lease = ExtentLease(self, ordinal) }
        return .bytes(until: min(end, limit))
    }

    /// Takes a lease for a writer that is about to fill chunks of an extent. Its hold counts until the value ends.
    package func leaseForWriting(_ ordinal: Int) -> ExtentLease {
        state.withLock { $0.extents[ordinal].leases += 1 }
        return ExtentLease(self, ordinal)
    }

    /// The bytes around an offset that `acquire` found, for the kernel only.
    package func mapping(at offset: Int64) throws(StoreError) -> MappedBytes { try file.mapping(at: offset) }

    /// As `mapping`; nil the first time that something is wanted there: `readAtOnce` costs less then.
    package func mappingOfSecondUse(at offset: Int64) throws(StoreError) -> MappedBytes? {
        try file.mappingOfSecondUse(at: offset)
    }

    /// Copies bytes that `acquire` found, where that takes no time.
    /// - Returns: whether it did.
    package func readAtOnce(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) -> Bool {
        file.readAtOnce(into: buffer, at: offset)
    }

    /// Of its file; nil for a buffer in memory.
    package var descriptor: Int32? { file.descriptor }

    /// Whether a range of one extent can be sent without waiting for the disk. The system is asked for each chunk every
    /// few seconds only.
    package func isResident(_ range: Range<Int64>) -> Bool {
        guard isStored else { return true }
        let chunks = geometry.chunks(touching: range), ordinal = geometry.extent(ofChunk: chunks.lowerBound)
        let mask = geometry.mask(of: chunks, inExtent: ordinal), now = AccessClock.now()
        let isKnown = state.withLock { state in
            state.extents[ordinal].residentUntil > now && state.extents[ordinal].resident.bits & mask == mask
        }
        if isKnown { return true }
        guard file.isResident(range) else { return false }
        // Noted only where the range is made of whole chunks: of others a part is known.
        guard geometry.roundedOut(range, length: length) == range else { return true }
        state.withLock { state in
            let known = state.extents[ordinal].residentUntil > now ? state.extents[ordinal].resident.bits : 0
            state.extents[ordinal].resident = Presence(bits: known | mask)
            if known == 0 { state.extents[ordinal].residentUntil = now + Self.residentMicroseconds }
        }
        return true
    }

    private static let residentMicroseconds: Int64 = 5_000_000
}

extension Generation.State {
    fileprivate func available(at offset: Int64, chunk: Int, extent ordinal: Int, bit: Int, _ geometry: ChunkGeometry)
        -> Availability
    {
        let (present, unverified) = (extents[ordinal].present, extents[ordinal].unverified)
        if present.contains(bit) {
            if unverified.contains(bit) { return .unverified }
            let run = Presence(bits: present.bits & ~unverified.bits).runOfPresent(from: bit)
            let last = chunk + run - 1
            return .bytes(until: geometry.chunkBytes(last, length: length).upperBound)
        }
        for claim in writers.values where claim.chunk == chunk && claim.frontier > offset {
            return .bytes(until: claim.frontier)
        }
        return .absent
    }
}
