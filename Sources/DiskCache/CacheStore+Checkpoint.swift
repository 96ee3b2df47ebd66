import CachePolicy
import Foundation
import Metrics

extension CacheStore {
    /// A checkpoint comes after so many bytes, if not after a second.
    static let checkpointBytes: Int64 = 64 << 20

    /// A chunk is in its file; the next checkpoint makes it durable.
    func noteWritten(_ generation: Generation, bytes: Int64) {
        let isDue = registry.withLock { registry in
            registry.unsaved[generation.id] = generation
            registry.unsavedBytes += bytes
            guard registry.unsavedBytes >= Self.checkpointBytes, !registry.isCheckpointDue else { return false }
            registry.isCheckpointDue = true
            return true
        }
        if isDue { queue.async { self.checkpoint() } }
    }

    /// Data, then `fdatasync`, then the bitmaps that speak of it (in this order: a bit in the index is never ahead of its chunk).
    /// On `queue` only.
    func checkpoint(touchesToo: Bool = false) {
        dispatchPrecondition(condition: .onQueue(queue))
        let (unsaved, open) = registry.withLock { registry in
            let unsaved = registry.unsaved
            registry.unsaved = [:]
            registry.unsavedBytes = 0
            registry.isCheckpointDue = false
            return (unsaved, touchesToo || !unsaved.isEmpty ? Array(registry.open.values) : [])
        }
        var updates: [CacheIndex.Update] = []
        for generation in unsaved.values where !generation.isRetired {
            guard let update = generation.takeUnsaved() else {
                // Of unknown length so far: it is saved when its end is seen.
                continue
            }
            if let saved = synced(generation, update) { updates.append(saved) }
        }
        for generation in open where unsaved[generation.id] == nil {
            if let update = generation.takeTouches() { updates.append(update) }
        }
        guard !updates.isEmpty else { return }
        save(updates, of: unsaved.merging(open.map { ($0.id, $0) }) { first, _ in first })
        ledger.setIndex(bytes: index.allocatedBytes)
    }

    func save(_ updates: [CacheIndex.Update], of generations: [GenerationID: Generation]) {
        guard !updates.isEmpty else { return }
        var replaced: [GenerationID]?
        report("save a checkpoint") { () throws(StoreError) in
            replaced = try index.save(updates, session: session, dataBytes: ledger.dataSize)
            metrics.checkpoints.add()
        }
        guard let replaced else {
            // Once more at the next one.
            for update in updates { generations[update.id]?.restore(update) }
            return registry.withLock { registry in
                for update in updates { registry.unsaved[update.id] = generations[update.id] }
            }
        }
        for id in replaced { removeReplaced(id) }
    }

    /// An older generation of a resource lost its rows to a newer one.
    private func removeReplaced(_ id: GenerationID) {
        if let open = registry.withLock({ $0.open[id] }) { return retire(open) }
        var info = stat()
        let path = path(of: id)
        guard stat(path, &info) == 0, unlink(path) == 0 else { return }
        ledger.release(CapacityLedger.fileOverhead + Int64(info.st_blocks) * 512)
    }

    /// Makes a generation's chunks durable; what the disk did not take is absent again.
    private func synced(_ generation: Generation, _ update: CacheIndex.Update) -> CacheIndex.Update? {
        do throws(StoreError) {
            try generation.file.sync()
            return update
        } catch {
            logger.error("chunks are dropped, as they could not be made durable: \(error)")
            metrics.errors.add("disk-sync")
            for extent in update.extents {
                let dropped = generation.drop(Presence(bits: extent.checksums.keys.reduce(0) { $0 | 1 << UInt64($1) }), ofExtent: extent.ordinal)
                metrics.droppedChunks.add(Int64(dropped))
            }
            return nil
        }
    }
}

extension Generation {
    /// What the index has to be told; taken before the data is synced, so that it speaks of no later chunk.
    func takeUnsaved() -> CacheIndex.Update? {
        let isIndexed = state.withLock { $0.isIndexed }
        guard let update = takeUpdate(where: { !$0.unsaved.isEmpty || $0.isTouched }) else { return nil }
        // A row that speaks of no byte would outlive its file.
        return update.extents.isEmpty && !isIndexed ? nil : update
    }

    /// The index could not be told.
    func restore(_ update: CacheIndex.Update) {
        state.withLock { state in
            state.unsavedHits += update.hits
            for saved in update.extents where !state.extents[saved.ordinal].isEvicting {
                let bits = saved.checksums.keys.reduce(0 as UInt64) { $0 | 1 << UInt64($1) } & state.extents[saved.ordinal].present.bits
                state.extents[saved.ordinal].unsaved = Presence(bits: state.extents[saved.ordinal].unsaved.bits | bits)
                state.extents[saved.ordinal].checksums.merge(saved.checksums) { newer, _ in newer }
                state.extents[saved.ordinal].isTouched = true
            }
        }
    }

    /// Changed orders of last reads, of a generation that the index knows already.
    func takeTouches() -> CacheIndex.Update? {
        guard isStored, state.withLock({ $0.isIndexed && !$0.isRetired && ($0.unsavedHits > 0 || $0.extents.contains { $0.isTouched }) }) else { return nil }
        return takeUpdate(isSynced: false) { $0.isTouched }
    }

    /// - Parameter isSynced: whether the data will be made durable before this is saved; else nothing is said of new chunks.
    private func takeUpdate(isSynced: Bool = true, where isWanted: (Extent) -> Bool) -> CacheIndex.Update? {
        state.withLock { state in
            guard let length = state.length else { return nil }
            var extents: [CacheIndex.ExtentUpdate] = []
            for ordinal in state.extents.indices where isWanted(state.extents[ordinal]) && !state.extents[ordinal].isEvicting {
                let extent = state.extents[ordinal]
                extents.append(CacheIndex.ExtentUpdate(
                    ordinal: ordinal, present: isSynced ? extent.present : Presence(bits: extent.present.bits & ~extent.unsaved.bits),
                    checksums: isSynced ? extent.checksums : [:], lastAccess: extent.lastAccess, isVerified: extent.unverified.isEmpty))
                state.extents[ordinal].isTouched = false
                guard isSynced else { continue }
                state.extents[ordinal].unsaved = Presence(bits: 0)
                state.extents[ordinal].checksums = [:]
            }
            let hits = state.unsavedHits
            state.unsavedHits = 0
            state.isIndexed = state.isIndexed || !extents.isEmpty
            return CacheIndex.Update(id: id, key: key, head: head, length: length, chunkSize: geometry.chunkSize, hits: hits, extents: extents)
        }
    }

    /// Chunks turn out not to be what they should: absent from now on. Their blocks stay counted until they are filled again.
    /// - Returns: how many were dropped.
    func drop(_ bits: Presence, ofExtent ordinal: Int) -> Int {
        state.withLock { state in
            let dropped = Presence(bits: state.extents[ordinal].present.bits & bits.bits)
            state.extents[ordinal].present = Presence(bits: state.extents[ordinal].present.bits & ~dropped.bits)
            state.extents[ordinal].unsaved = Presence(bits: state.extents[ordinal].unsaved.bits & ~dropped.bits)
            state.extents[ordinal].unverified = Presence(bits: state.extents[ordinal].unverified.bits & ~dropped.bits)
            state.extents[ordinal].residue = Presence(bits: state.extents[ordinal].residue.bits | dropped.bits)
            state.absentChunks += dropped.count
            return dropped.count
        }
    }
}
