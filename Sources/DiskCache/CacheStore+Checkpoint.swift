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
            return (unsaved, touchesToo || !unsaved.isEmpty ? registry.open.values.compactMap(\.generation) : [])
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
        report("save a checkpoint") { () throws(StoreError) in
            try index.save(updates, session: session, dataBytes: ledger.dataSize)
            metrics.checkpoints.add()
        }
        ledger.setIndex(bytes: index.allocatedBytes)
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
        takeUpdate { !$0.unsaved.isEmpty || $0.isTouched }
    }

    /// Changed orders of last reads, of a generation that the index knows already.
    func takeTouches() -> CacheIndex.Update? {
        guard isStored, state.withLock({ $0.isIndexed && !$0.isRetired && ($0.unsavedHits > 0 || $0.extents.contains { $0.isTouched }) }) else { return nil }
        return takeUpdate { $0.isTouched }
    }

    private func takeUpdate(where isWanted: (Extent) -> Bool) -> CacheIndex.Update? {
        state.withLock { state in
            guard let length = state.length else { return nil }
            var extents: [CacheIndex.ExtentUpdate] = []
            for ordinal in state.extents.indices where isWanted(state.extents[ordinal]) && !state.extents[ordinal].isEvicting {
                let extent = state.extents[ordinal]
                extents.append(CacheIndex.ExtentUpdate(
                    ordinal: ordinal, present: extent.present, checksums: extent.checksums, lastAccess: extent.lastAccess,
                    isVerified: extent.unverified.isEmpty))
                state.extents[ordinal].unsaved = Presence(bits: 0)
                state.extents[ordinal].checksums = [:]
                state.extents[ordinal].isTouched = false
            }
            let hits = state.unsavedHits
            state.unsavedHits = 0
            state.isIndexed = true
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
