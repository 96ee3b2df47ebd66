import CachePolicy

/// What of a resource is cached at this moment, without waiting for a checkpoint: from memory where it is open, else
/// from the index. From any thread but the loops.
extension CacheStore {
    package func isComplete(_ key: CacheKey) throws(StoreError) -> Bool {
        if let open = registry.withLock({ $0.newest(of: key) }) { return open.isComplete }
        return try index.resource(key)?.isComplete ?? false
    }

    /// - Returns: nil where nothing of it is cached, or its length is not known yet.
    package func coverage(_ key: CacheKey) throws(StoreError) -> ResourceCoverage? {
        let open = registry.withLock { $0.newest(of: key) }
        let resource = try index.resource(key)
        if let (length, present) = open?.presentRanges {
            guard !present.isEmpty || length == 0 else { return nil }
            return ResourceCoverage(length: length, present: present, isPinned: resource?.isPinned ?? false)
        }
        guard open == nil, let resource, let row = try index.generation(of: key),
            let extents = try index.extents(of: row)
        else { return nil }
        return ResourceCoverage(
            length: row.length, present: row.presentRanges(of: extents), isPinned: resource.isPinned)
    }

    /// Counts a resource as read now: it is the last to be evicted.
    /// - Returns: false where nothing of it is cached.
    package func touch(_ key: CacheKey) throws(StoreError) -> Bool {
        guard let generation = try load(key) else { return false }
        generation.touch(at: AccessClock.now())
        queue.sync { checkpoint(touchesToo: true) }
        return true
    }

    /// Evicts what is over the limits, as far as it is neither pinned nor in use.
    /// - Returns: the bytes freed on the disk.
    package func enforceLimits() -> Int64 {
        queue.sync {
            ledger.refreshDisk()
            return ledger.shortage > 0 ? evict(ledger.shortage) : 0
        }
    }
}

extension CacheIndex.GenerationRow {
    /// What is present, in order; ranges that meet are one.
    func presentRanges(of extents: [CacheIndex.ExtentRow]) -> [Range<Int64>] {
        var present: [Range<Int64>] = []
        for extent in extents.sorted(by: { $0.ordinal < $1.ordinal }) {
            let first = extent.ordinal * ChunkGeometry.chunksPerExtent
            for run in extent.present.runs {
                let range =
                    geometry.chunkStart(
                        first + run.lowerBound)..<geometry.chunkBytes(first + run.upperBound - 1, length: length)
                    .upperBound
                if let last = present.last, last.upperBound == range.lowerBound {
                    present[present.count - 1] = last.lowerBound..<range.upperBound
                } else {
                    present.append(range)
                }
            }
        }
        return present
    }
}

extension Generation {
    fileprivate var isComplete: Bool { state.withLock { $0.length != nil && $0.absentChunks == 0 } }

    /// What is present, in order; nil while the length is unknown.
    fileprivate var presentRanges: (length: Int64, present: [Range<Int64>])? {
        state.withLock { state in
            guard let length = state.length else { return nil }
            let end = geometry.chunkCount(length: length)
            var present: [Range<Int64>] = []
            var chunk = state.extents.nextPresent(from: 0, limit: end)
            while chunk < end {
                let absent = state.extents.nextAbsent(from: chunk, limit: end)
                present.append(geometry.chunkStart(chunk)..<min(geometry.chunkStart(absent), length))
                chunk = state.extents.nextPresent(from: absent, limit: end)
            }
            return (length, present)
        }
    }

    fileprivate func touch(at time: Int64) {
        state.withLock { state in
            for ordinal in state.extents.ordinals where !state.extents[ordinal].present.isEmpty {
                state.extents[ordinal].lastAccess = time
                state.extents[ordinal].isTouched = true
            }
        }
    }
}
