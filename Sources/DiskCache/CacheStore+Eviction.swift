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
        var freed: Int64 = 0
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
        var chosen: [(victim: CacheIndex.Victim, generation: Generation?, bytes: Int64)] = []
        var sum: Int64 = 0
        for victim in victims where sum < wanted {
            guard let (generation, bytes) = begin(victim) else { continue }
            chosen.append((victim, generation, bytes))
            sum += bytes
        }
        guard !chosen.isEmpty else { return 0 }
        var gone: Set<GenerationID> = []
        do throws(StoreError) {
            gone = Set(try index.remove(chosen.map { ($0.victim.generation, $0.victim.ordinal) }))
        } catch {
            logger.error("could not evict: \(error)")
            metrics.errors.add("store")
        }
        for (victim, generation, bytes) in chosen {
            finish(victim, generation, bytes: bytes)
        }
        for id in gone { remove(id) }
        return sum
    }

    /// Makes an extent absent, unless someone needs it.
    /// - Returns: its generation where that is open, and the bytes that its blocks take; nil where it has to stay.
    private func begin(_ victim: CacheIndex.Victim) -> (Generation?, Int64)? {
        let open: Generation?? = registry.withLock { registry in
            if registry.loading.contains(victim.generation) { return nil }
            if let generation = registry.open[victim.generation]?.generation { return .some(generation) }
            registry.evicting[victim.generation, default: []].insert(victim.ordinal)
            return .some(nil)
        }
        switch open {
        case nil: return nil
        case .some(nil): return (nil, victim.geometry.blockBytes(of: victim.present, inExtent: victim.ordinal, length: victim.length))
        case .some(let generation?): return generation.beginEviction(ofExtent: victim.ordinal).map { (generation, $0) }
        }
    }

    private func finish(_ victim: CacheIndex.Victim, _ generation: Generation?, bytes: Int64) {
        let range = victim.geometry.extentBytes(victim.ordinal, length: victim.length)
        var isPunched = true
        report("punch a hole") { () throws(StoreError) in
            isPunched = false
            let file = if let generation { generation.file } else {
                try SparseFile(path: path(of: victim.generation), length: victim.length, creating: false)
            }
            try file.punchHole(range)
            isPunched = true
        }
        if let generation {
            generation.endEviction(ofExtent: victim.ordinal, bytes: bytes, isPunched: isPunched)
        } else {
            registry.withLock { registry in
                registry.evicting[victim.generation]?.remove(victim.ordinal)
                if registry.evicting[victim.generation]?.isEmpty == true { registry.evicting[victim.generation] = nil }
            }
        }
        guard isPunched else { return }
        ledger.release(bytes)
        metrics.evictedExtents.add()
        metrics.evictedBytes.add(bytes)
    }

    /// Removes the file of a generation that has no extents left, unless somebody is about to fill it again.
    private func remove(_ id: GenerationID) {
        let (open, isLoading) = registry.withLock { ($0.open[id]?.generation, $0.loading.contains(id)) }
        if isLoading { return }
        if let open, !open.retireIfUnused() { return }
        guard unlink(path(of: id)) == 0 else {
            if errno != ENOENT { logger.error("\(StoreError.lastSystemError("unlink", path(of: id)))") }
            return
        }
        ledger.release(CapacityLedger.fileOverhead)
    }
}

extension Generation {
    /// - Returns: the bytes of the extent's blocks; nil where it is leased or being evicted.
    func beginEviction(ofExtent ordinal: Int) -> Int64? {
        state.withLock { state in
            guard ordinal < state.extents.count else { return nil }
            let extent = state.extents[ordinal]
            guard extent.leases == 0, !extent.isEvicting, !extent.hasBlocks.isEmpty else { return nil }
            let bytes = geometry.blockBytes(of: extent.hasBlocks, inExtent: ordinal, length: state.length)
            state.absentChunks += extent.present.count
            state.extents[ordinal] = Extent()
            state.extents[ordinal].residue = extent.hasBlocks
            state.extents[ordinal].isEvicting = true
            return bytes
        }
    }

    /// Nothing of it is left, and nobody fills it: whoever wants it begins a new one.
    func retireIfUnused() -> Bool {
        state.withLock { state in
            guard !state.isRetired, state.writers.isEmpty, state.extents.allSatisfy({ $0.hasBlocks.isEmpty && $0.leases == 0 && !$0.isEvicting }) else { return false }
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
