import CachePolicy
import Foundation
import Metrics

extension CacheStore {
    /// Frees space for a writer that found none.
    /// - Parameter deliver: called on the store's queue: whether something was freed. False: everything is leased or pinned,
    ///   and the caller has to go on without the cache.
    package func makeRoom(then deliver: @escaping @Sendable (Bool) -> Void) {
        queue.async { [self] in
            ledger.refreshDisk()
            // Another writer's eviction, just before, may have been enough for both.
            let shortage = ledger.shortage
            deliver(shortage == 0 || evict(shortage) > 0)
        }
    }

    /// Evicts least recently read extents until so many bytes are free, as far as there are any. On `queue` only.
    ///
    /// Order: the rows go first, then the blocks, so that no row ever speaks of a hole.
    /// - Returns: the bytes freed.
    @discardableResult
    func evict(_ wanted: Int64) -> Int64 {
        dispatchPrecondition(condition: .onQueue(queue))
        // The order of last reads is in memory until a checkpoint.
        checkpoint(touchesToo: true)
        var freed = closeUnused()
        var place: (lastAccess: Int64, generation: GenerationID?, ordinal: Int) = (-1, nil, -1)
        while freed < wanted {
            var victims: [CacheIndex.Victim] = []
            report("find what to evict") { () throws(StoreError) in victims = try index.leastRecent(after: place, limit: 32) }
            guard let last = victims.last else { break }
            place = (last.lastAccess, last.generation, last.ordinal)
            freed += evict(victims, upTo: wanted - freed)
        }
        return freed
    }

    private func evict(_ victims: [CacheIndex.Victim], upTo wanted: Int64) -> Int64 {
        var chosen: [Eviction] = []
        var sum: Int64 = 0
        for victim in victims where sum < wanted {
            guard let eviction = begin(victim) else { continue }
            chosen.append(eviction)
            sum += eviction.bytes
        }
        guard !chosen.isEmpty else { return 0 }
        let gone: [GenerationID]
        do throws(StoreError) {
            gone = try index.remove(chosen.map { ($0.victim.generation, $0.victim.ordinal) })
        } catch {
            // What the index still speaks of must not become a hole.
            logger.error("could not evict: \(error)")
            metrics.errors.add("store")
            for eviction in chosen { cancel(eviction) }
            return 0
        }
        for eviction in chosen { finish(eviction) }
        for id in gone { remove(id) }
        return sum
    }

    /// An extent on its way out.
    private struct Eviction {
        let victim: CacheIndex.Victim
        /// Where it is open, and how the extent was.
        let open: (generation: Generation, extent: Extent)?
        /// What its blocks take.
        let bytes: Int64
    }

    /// Makes an extent absent, unless someone needs it.
    /// - Returns: nil where it has to stay.
    private func begin(_ victim: CacheIndex.Victim) -> Eviction? {
        let open: Generation?? = registry.withLock { registry in
            if registry.loading[victim.generation] != nil { return nil }
            if let generation = registry.open[victim.generation] { return .some(generation) }
            registry.evicting[victim.generation, default: []].insert(victim.ordinal)
            return .some(nil)
        }
        switch open {
        case nil: return nil
        case .some(nil):
            let bytes = victim.geometry.blockBytes(of: victim.present, inExtent: victim.ordinal, length: victim.length)
            return Eviction(victim: victim, open: nil, bytes: bytes)
        case .some(let generation?):
            return generation.beginEviction(ofExtent: victim.ordinal).map { Eviction(victim: victim, open: (generation, $0), bytes: $1) }
        }
    }

    private func cancel(_ eviction: Eviction) {
        if let (generation, extent) = eviction.open {
            generation.cancelEviction(ofExtent: eviction.victim.ordinal, restoring: extent)
        } else {
            endClosed(eviction.victim)
        }
    }

    private func endClosed(_ victim: CacheIndex.Victim) {
        registry.withLock { registry in
            registry.evicting[victim.generation]?.remove(victim.ordinal)
            if registry.evicting[victim.generation]?.isEmpty == true { registry.evicting[victim.generation] = nil }
        }
    }

    private func finish(_ eviction: Eviction) {
        let (victim, generation, bytes) = (eviction.victim, eviction.open?.generation, eviction.bytes)
        let range = victim.geometry.extentBytes(victim.ordinal, length: victim.length)
        var isPunched = false
        report("punch a hole") { () throws(StoreError) in
            do throws(StoreError) {
                let file = if let generation { generation.file } else {
                    try SparseFile(path: path(of: victim.generation), length: victim.length, creating: false)
                }
                try file.punchHole(range)
            } catch {
                // Deleted from outside, its blocks are free.
                guard case .system("open", _, ENOENT) = error else { throw error }
            }
            isPunched = true
        }
        if let generation {
            generation.endEviction(ofExtent: victim.ordinal, bytes: bytes, isPunched: isPunched)
        } else {
            endClosed(victim)
        }
        guard isPunched else { return }
        ledger.release(bytes)
        metrics.evictedExtents.add()
        metrics.evictedBytes.add(bytes)
    }

    /// Removes the file of a generation that has no extents left, unless somebody is about to fill it again.
    private func remove(_ id: GenerationID) {
        let (open, isLoading) = registry.withLock { ($0.open[id], $0.loading[id] != nil) }
        if isLoading { return }
        if let open, !open.retireIfUnused() { return }
        guard unlink(path(of: id)) == 0 || errno == ENOENT else {
            return logger.error("\(StoreError.lastSystemError("unlink", path(of: id)))")
        }
        ledger.release(CapacityLedger.fileOverhead)
    }
}

extension Generation {
    /// - Returns: the extent as it was and the bytes of its blocks; nil where it is leased or being evicted.
    func beginEviction(ofExtent ordinal: Int) -> (Extent, Int64)? {
        state.withLock { state in
            guard ordinal < state.extents.count else { return nil }
            let extent = state.extents[ordinal]
            guard extent.leases == 0, !extent.isEvicting, !extent.hasBlocks.isEmpty else { return nil }
            let bytes = geometry.blockBytes(of: extent.hasBlocks, inExtent: ordinal, length: state.length)
            state.absentChunks += extent.present.count
            state.extents[ordinal] = Extent()
            state.extents[ordinal].residue = extent.hasBlocks
            state.extents[ordinal].isEvicting = true
            return (extent, bytes)
        }
    }

    func cancelEviction(ofExtent ordinal: Int, restoring extent: Extent) {
        state.withLock { state in
            state.extents[ordinal] = extent
            state.absentChunks -= extent.present.count
        }
    }

    /// Nothing of it is left, and nobody fills it: whoever wants it begins a new one.
    func retireIfUnused() -> Bool {
        state.withLock { state in
            guard !state.isRetired, state.users == 0, state.extents.allSatisfy({ $0.hasBlocks.isEmpty && $0.leases == 0 && !$0.isEvicting }) else { return false }
            state.isRetired = true
            state.allocated -= CapacityLedger.fileOverhead
            return true
        }
    }

    func endEviction(ofExtent ordinal: Int, bytes: Int64, isPunched: Bool) {
        state.withLock { state in
            state.extents[ordinal].isEvicting = false
            guard isPunched else { return }
            state.extents[ordinal].residue = Presence(bits: 0)
            state.allocated -= bytes
        }
    }
}

extension ChunkGeometry {
    func extentBytes(_ ordinal: Int, length: Int64) -> Range<Int64> {
        extentStart(ordinal)..<min(extentStart(ordinal + 1), length)
    }
}
