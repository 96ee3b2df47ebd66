import DiskCache

/// Responses that pass through without being stored, from their first byte or from a later one.
extension FetchOutput {
    /// Stops storing a body of unknown length that grows too long: it is an endless stream.
    mutating func letPass() {
        guard let generation = writer?.generation else { return }
        if generation.isStored, !generation.isRetired, end == .max, position > longestUnknownLength {
            stopStoring(generation, "the body is too long")
        }
        guard !generation.isStored || generation.isRetired && end == .max else { return }
        discardPassed(of: generation)
    }

    private var longestUnknownLength: Int64 {
        min(filler.settings.longestUnknownLength, filler.store.longestFile, demand.resolvedRule.largestStored ?? .max)
    }

    /// Until its end is known, no part of a body of unknown length can be evicted, so it may fill the cache by itself.
    /// Stops storing it and discards what all followers have read.
    /// - Returns: whether there is room now.
    mutating func makeRoomBehind() -> Bool {
        guard end == .max, let generation = writer?.generation, generation.isStored else { return false }
        if !generation.isRetired { stopStoring(generation, "the cache has no room") }
        return discardPassed(of: generation) > 0
    }

    /// Continues in a pass-through buffer, if the bytes cannot be requested again.
    /// - Parameter reason: why they are not stored, for the log.
    /// - Returns: whether it continues there.
    mutating func spill(_ reason: String) -> Bool {
        guard let generation = writer?.generation, generation.isStored,
            end == .max || generation.head.rangeCondition == nil
        else {
            return false
        }
        let buffer = filler.store.makeBuffer(
            generation.key, head: generation.head, length: generation.length, geometry: generation.geometry,
            in: countTransit())
        // Followers that read in the chunk in progress continue in the buffer too.
        let start = generation.geometry.chunkStart(generation.geometry.chunk(at: position))
        let former = writer, next = ChunkWriter(buffer, at: start, stopsAtPresent: false, in: filler.store)
        guard next.copy(start..<position, of: generation) else { return false } // no trap: position is in the chunk
        if !generation.isRetired { stopStoring(generation, reason) }
        writer = next
        status.ring { fetch in
            fetch.spill = FetchState.Spill(buffer: buffer, start: start)
            fetch.furthest = filler.settings.bufferReadAhead
        }
        former?.close()
        return true
    }

    private func stopStoring(_ generation: Generation, _ reason: String) {
        filler.logger.info(
            "passing through without being stored: \(reason)", metadata: ["resource": "\(generation.key.text)"])
        filler.discard(generation, of: status.resource)
    }

    @discardableResult
    mutating func discardPassed(of generation: Generation) -> Int64 {
        guard let slowest = status.slowestFollower else { return 0 }
        held.release(before: generation.geometry.extent(at: min(slowest, position)))
        return generation.discard(below: min(slowest, position))
    }
}
