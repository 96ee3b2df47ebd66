import CachePolicy

extension Generation {
    enum ClaimResult {
        case claimed
        /// Blocks must be reserved, then `claimWithBlocks`.
        case needsBlocks(Int64)
        case present
        /// Another writer fills it.
        case taken
        /// Its extent's hole is being punched.
        case evicting
    }

    /// Asks for a chunk. It is claimed at once where it has blocks already (an interrupted write).
    func claim(_ chunk: Int, by writer: Int) -> ClaimResult {
        let ordinal = geometry.extent(ofChunk: chunk), bit = geometry.bit(ofChunk: chunk)
        return state.withLock { state in
            if state.extents[ordinal].present.contains(bit) { return .present }
            if state.writers.values.contains(where: { $0.chunk == chunk }) { return .taken }
            if state.extents[ordinal].isEvicting { return .evicting }
            guard state.extents[ordinal].residue.contains(bit) else {
                return .needsBlocks(geometry.blockBytes(ofChunk: chunk, length: state.length))
            }
            state.claim(chunk, by: writer, ordinal: ordinal, bit: bit, geometry)
            return .claimed
        }
    }

    /// Claims a chunk whose blocks the caller has reserved.
    /// - Returns: false where someone else was quicker; the reservation is the caller's again.
    func claimWithBlocks(_ chunk: Int, by writer: Int, bytes: Int64) -> Bool {
        let ordinal = geometry.extent(ofChunk: chunk), bit = geometry.bit(ofChunk: chunk)
        return state.withLock { state in
            let extent = state.extents[ordinal]
            guard !extent.isEvicting, !extent.hasBlocks.contains(bit),
                !state.writers.values.contains(where: { $0.chunk == chunk })
            else { return false }
            state.allocated += bytes
            state.claim(chunk, by: writer, ordinal: ordinal, bit: bit, geometry)
            return true
        }
    }

    func advance(_ writer: Int, to frontier: Int64) {
        state.withLock { $0.writers[writer]?.frontier = frontier }
    }

    /// The whole chunk is in the file: from now on readers find it.
    func complete(_ chunk: Int, by writer: Int, checksum: UInt64) {
        let ordinal = geometry.extent(ofChunk: chunk), bit = geometry.bit(ofChunk: chunk)
        state.withLock { state in
            state.writers[writer] = nil
            state.absentChunks -= 1
            state.extents[ordinal].leases -= 1
            state.extents[ordinal].residue.remove(bit)
            state.extents[ordinal].present.insert(bit)
            state.extents[ordinal].unsaved.insert(bit)
            state.extents[ordinal].unverified.remove(bit)
            state.extents[ordinal].lastAccess = AccessClock.now()
            if isStored { state.extents[ordinal].checksums[bit] = checksum }
        }
    }

    /// The writer leaves an incomplete chunk.
    func abandon(_ chunk: Int, by writer: Int) {
        let ordinal = geometry.extent(ofChunk: chunk)
        state.withLock { state in
            state.writers[writer] = nil
            state.extents[ordinal].leases -= 1
        }
    }

    /// The end of a body of unknown length was seen.
    func setLength(_ length: Int64) {
        let surplus = state.withLock { state in
            state.length = length
            state.absentChunks =
                geometry.chunkCount(length: length) - state.extents.values.reduce(0) { $0 + $1.present.count }
            // The last chunk was reserved as a whole.
            guard isStored, length % geometry.chunkSize != 0 else { return 0 as Int64 }
            let surplus = geometry.chunkSize - geometry.blockBytes(ofChunk: geometry.chunk(at: length), length: length)
            state.allocated -= surplus
            return surplus
        }
        if surplus > 0 { ledger.release(surplus) }
    }

    /// Forgets bytes that everyone has passed, of a generation that nobody will find again: a buffer, or a stream
    /// without end.
    /// - Returns: the bytes given back to the ledger.
    @discardableResult
    package func discard(below offset: Int64) -> Int64 {
        precondition(!isStored || isRetired)
        let end = geometry.extent(at: offset)
        let dropped: Range<Int>? = state.withLock { state in
            let passed = state.extents.entries.prefix { $0.0 < end }.drop { $0.1.hasBlocks.isEmpty }
            // A writer that is in the middle of a chunk there, or a reader that has not yet said how far it is.
            guard state.holds == 0, let first = passed.first?.0, passed.allSatisfy({ $0.1.leases == 0 }) else {
                return nil
            }
            for (ordinal, extent) in passed {
                if isStored {
                    state.discarded += geometry.blockBytes(
                        of: extent.hasBlocks, inExtent: ordinal, length: state.length)
                }
                state.extents[ordinal] = Extent()
            }
            return first..<end
        }
        guard let dropped else { return 0 }
        // Where the file system cannot do this, the blocks stay counted until the file goes.
        guard
            (try? file.punchHole(geometry.extentStart(dropped.lowerBound)..<geometry.extentStart(dropped.upperBound)))
                != nil
        else { return 0 }
        let freed = state.withLock { state in
            defer { state.discarded = 0 }
            state.allocated -= state.discarded
            return state.discarded
        }
        if freed > 0 { ledger.release(freed) }
        return freed
    }
}

extension Generation.State {
    /// A claimed chunk has blocks, so it counts as residue until it is complete; and its extent is leased.
    fileprivate mutating func claim(_ chunk: Int, by writer: Int, ordinal: Int, bit: Int, _ geometry: ChunkGeometry) {
        writers[writer] = Generation.Claim(chunk: chunk, frontier: geometry.chunkStart(chunk))
        extents[ordinal].residue.insert(bit)
        extents[ordinal].leases += 1
    }
}
