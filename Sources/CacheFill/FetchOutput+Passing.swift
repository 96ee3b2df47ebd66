import DiskCache

/// What passes by without being kept, from the first byte or from some byte on.
extension FetchOutput {
    private var store: CacheStore { filler.store }

    /// A body of unknown length that is this long is a stream without end: it passes, and is not kept.
    mutating func letPass() {
        guard let generation else { return }
        if generation.isStored, !generation.isRetired, end == .max, position > longestUnknownLength {
            stopStoring(generation, "its body is too long")
        }
        guard !generation.isStored || generation.isRetired && end == .max else { return }
        discardPassed(of: generation)
    }

    private var longestUnknownLength: Int64 {
        min(filler.settings.longestUnknownLength, store.longestFile, demand.resolvedRule.largestStored ?? .max)
    }

    /// Before its end is seen, nothing of a body of unknown length can be evicted: it needs the room itself.
    /// - Returns: whether there is some now.
    mutating func makeRoomBehind() -> Bool {
        guard end == .max, let generation, generation.isStored else { return false }
        if !generation.isRetired { stopStoring(generation, "the cache has no room") }
        return discardPassed(of: generation) > 0
    }

    /// What comes in no other way passes through memory from here on.
    /// - Parameter reason: why it is not stored, for the log.
    /// - Returns: whether it does.
    mutating func spill(_ reason: String) -> Bool {
        guard let generation, generation.isStored, end == .max || generation.head.rangeCondition == nil else {
            return false
        }
        let buffer = store.makeBuffer(
            generation.key, head: generation.head, length: generation.length, geometry: generation.geometry)
        // Whoever reads in the chunk in progress goes on in the buffer too.
        let start = generation.geometry.chunkStart(generation.geometry.chunk(at: position))
        let former = writer, next = store.writer(buffer, at: start, stopsAtPresent: false)
        guard next.copy(start..<position, of: generation) else { return false } // no trap: position is in the chunk
        if !generation.isRetired { stopStoring(generation, reason) }
        writer = next
        status.spilled(into: buffer, at: start, furthest: filler.settings.bufferReadAhead)
        former?.close()
        return true
    }

    private func stopStoring(_ generation: Generation, _ reason: String) {
        filler.logger.info(
            "passed on without being stored, as \(reason)", metadata: ["resource": "\(generation.key.text)"])
        filler.discard(generation, of: status.resource)
    }

    @discardableResult
    private mutating func discardPassed(of generation: Generation) -> Int64 {
        guard let slowest = status.slowestFollower else { return 0 }
        held.release(before: generation.geometry.extent(at: min(slowest, position)))
        return generation.discard(below: min(slowest, position))
    }
}
