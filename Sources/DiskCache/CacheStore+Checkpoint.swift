import CachePolicy
import Foundation
import Metrics

extension CacheStore {
    /// A checkpoint comes after so many bytes, if not after a second.
    static let checkpointBytes: Int64 = 64 << 20
    /// The same while something comes in that somebody waits for to be there tomorrow (`savesSoon`).
    static let eagerBytes: Int64 = 2 << 20

    /// A chunk is in its file; the next checkpoint makes it durable.
    func noteWritten(_ generation: Generation, bytes: Int64) {
        let limit = generation.isEager ? Self.eagerBytes : Self.checkpointBytes
        let isDue = registry.withLock { registry in
            registry.unsaved[generation.id] = generation
            registry.unsavedBytes += bytes
            guard registry.unsavedBytes >= limit, !registry.isCheckpointDue else { return false }
            registry.isCheckpointDue = true
            return true
        }
        if isDue { queue.async { self.checkpoint() } }
    }

    /// Data, then `fdatasync`, then the bitmaps that speak of it (in this order: a bit in the index is never ahead of
    /// its chunk). On `queue` only.
    func checkpoint(touchesToo: Bool = false) {
        dispatchPrecondition(condition: .onQueue(queue))
        let (unsaved, open) = registry.withLock { registry in
            let unsaved = registry.unsaved
            registry.unsaved = [:]
            registry.unsavedBytes = 0
            registry.isCheckpointDue = false
            return (unsaved, touchesToo || !unsaved.isEmpty ? Array(registry.open.values) : [])
        }
        // Of unknown length so far, a generation is saved when its end is seen.
        let news = unsaved.values.filter { !$0.isRetired }.compactMap { generation in
            generation.takeUnsaved().map { (generation, $0) }
        }
        // For many small files one call is quicker than two for each. Where it fails, each is tried for itself.
        let areSynced = news.count >= Self.filesForOneSync && syncAll(news.map(\.0))
        var updates = news.compactMap { synced($0, $1, isDone: areSynced) }
        for generation in open where unsaved[generation.id] == nil {
            if let update = generation.takeTouches() { updates.append(update) }
        }
        guard !updates.isEmpty else { return }
        save(updates, of: unsaved.merging(open.map { ($0.id, $0) }) { first, _ in first })
        metrics.checkpoints.add()
        guard unfinished.isLong else { return }
        report("shorten the list of unfinished files") { () throws(StoreError) in
            try unfinished.shorten {
                registry.withLock { Set($0.open.values.filter(\.isListed).map(\.id)).union($0.leftUnfinished) }
            }
        }
    }

    /// In transactions that are small, so that the index's log grows little between two looks at its size.
    /// - Returns: the generations that could not be saved. They are told again at the next checkpoint.
    @discardableResult
    func save(_ updates: [CacheIndex.Update], of generations: [GenerationID: Generation]) -> Set<GenerationID> {
        var failed: Set<GenerationID> = []
        // One that has been replaced is not brought back by news of it.
        let newest = registry.withLock { $0.newest }
        let isCurrent = { (update: CacheIndex.Update) in newest[update.key] == nil || newest[update.key] == update.id }
        for update in updates where !isCurrent(update) { generations[update.id].map(retire) }
        let updates = updates.filter(isCurrent)
        // After one that failed the others would wait as long for nothing.
        for batch in CacheIndex.batches(updates) {
            if !failed.isEmpty || !saveBatch(batch, of: generations) {
                for update in batch { generations[update.id]?.restore(update) }
                failed.formUnion(batch.map(\.id))
            }
        }
        if !failed.isEmpty {
            registry.withLock { registry in for id in failed { registry.unsaved[id] = generations[id] } }
        }
        return failed
    }

    private func saveBatch(_ updates: [CacheIndex.Update], of generations: [GenerationID: Generation]) -> Bool {
        defer { countIndex() }
        let replaced: [GenerationID: Int64]
        do throws(StoreError) {
            let saved = try index.save(updates, session: session)
            replaced = saved.replaced
            for id in saved.kept { generations[id]?.setKept(true) }
            report("save the copy of pinned rows") { () throws(StoreError) in
                try pins.save(updates.filter { saved.pinned.contains($0.id) }, from: index)
            }
        } catch {
            reportDisk("save a checkpoint", error)
            return false
        }
        for (id, bytes) in replaced { removeReplaced(id, bytes) }
        return true
    }

    /// An older generation of a resource lost its rows to a newer one.
    private func removeReplaced(_ id: GenerationID, _ bytes: Int64) {
        let open = registry.withLock { registry in
            if registry.open[id] == nil { registry.noteRemoval(of: id) }
            return registry.open[id]
        }
        if let open { return retire(open) }
        if removeFile(id) { ledger.release(bytes) }
    }

    func countIndex() {
        let downloads = CacheIndex.files(Self.downloads(in: configuration.directory)).reduce(0) {
            $0 + FileSystem.allocatedBytes($1)
        }
        ledger.setIndex(bytes: index.allocatedBytes + pins.allocatedBytes + unfinished.allocatedBytes + downloads)
    }

    /// Makes a generation's chunks durable; what the disk did not take is absent again.
    private func synced(_ generation: Generation, _ update: CacheIndex.Update, isDone: Bool) -> CacheIndex.Update? {
        do throws(StoreError) {
            if !isDone {
                try generation.file.sync()
                try syncName(of: generation)
            }
            // Only now are all blocks allocated.
            generation.countOverhead()
            var update = update
            update.overhead = generation.overheadToSave()
            return update
        } catch  where error.isShortageOfFiles {
            // Nothing is wrong with them: the next checkpoint tries again.
            reportDisk("open what is to be made durable", error)
            closeInShortage()
            generation.restore(update)
            registry.withLock { $0.unsaved[generation.id] = generation }
            return nil
        } catch {
            reportDisk("make chunks durable, so they are dropped", error, label: "disk-sync")
            for extent in update.extents {
                let dropped = generation.drop(
                    Presence(bits: extent.checksums.keys.reduce(0) { $0 | 1 << UInt64($1) }), ofExtent: extent.ordinal)
                metrics.droppedChunks.add(Int64(dropped))
            }
            // What else it had to tell is told with the next.
            generation.restore(update)
            return nil
        }
    }
}

extension CacheStore {
    private static let filesForOneSync = 16

    private func syncAll(_ generations: [Generation]) -> Bool {
        do throws(StoreError) { try FileSystem.syncDisk(of: configuration.directory) } catch { return false }
        for generation in generations { generation.state.withLock { $0.isNameSynced = true } }
        return true
    }

    /// A new file's name is made durable once, before the index speaks of it.
    private func syncName(of generation: Generation) throws(StoreError) {
        guard !generation.state.withLock({ $0.isNameSynced }) else { return }
        let newShards = registry.withLock { $0.newShards }
        if !newShards.isEmpty {
            try FileSystem.syncDirectory(configuration.directory + "/data")
            registry.withLock { $0.newShards.subtract(newShards) }
        }
        try FileSystem.syncDirectory((generation.file.path as NSString).deletingLastPathComponent)
        generation.state.withLock { $0.isNameSynced = true }
    }
}

extension Generation {
    var isListed: Bool { state.withLock { $0.isListed } }

    fileprivate func overheadToSave() -> Int64 {
        state.withLock { state in
            state.savedOverhead = state.overhead
            return state.overhead
        }
    }

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
            state.isIndexed = update.wasIndexed
            state.savedOverhead = -1
            state.isHeadUnsaved = state.isHeadUnsaved || update.isHeadChanged
            for saved in update.extents where !state.extents[saved.ordinal].isEvicting {
                let bits =
                    saved.checksums.keys.reduce(0 as UInt64) { $0 | 1 << UInt64($1) }
                    & state.extents[saved.ordinal].present.bits
                state.extents[saved.ordinal].unsaved = Presence(bits: state.extents[saved.ordinal].unsaved.bits | bits)
                state.extents[saved.ordinal].checksums.merge(saved.checksums) { newer, _ in newer }
                state.extents[saved.ordinal].isTouched = true
            }
        }
    }

    /// Changed orders of last reads, of a generation that the index knows already.
    func takeTouches() -> CacheIndex.Update? {
        let hasNews = state.withLock { state in
            state.isIndexed && !state.isRetired
                && (state.unsavedHits > 0 || state.isHeadUnsaved || state.savedOverhead != state.overhead
                    || state.extents.values.contains { $0.isTouched })
        }
        guard isStored, hasNews else { return nil }
        return takeUpdate(isSynced: false) { $0.isTouched }
    }

    /// - Parameter isSynced: whether the data will be made durable before this is saved; else nothing is said of new
    ///   chunks.
    private func takeUpdate(isSynced: Bool = true, where isWanted: (Extent) -> Bool) -> CacheIndex.Update? {
        state.withLock { state in
            guard let length = state.length, !state.isHidden else { return nil }
            var extents: [CacheIndex.ExtentUpdate] = []
            for ordinal in state.extents.ordinals
            where isWanted(state.extents[ordinal]) && !state.extents[ordinal].isEvicting {
                let extent = state.extents[ordinal]
                extents.append(
                    CacheIndex.ExtentUpdate(
                        ordinal: ordinal,
                        present: isSynced ? extent.present : Presence(bits: extent.present.bits & ~extent.unsaved.bits),
                        checksums: isSynced ? extent.checksums : [:], lastAccess: extent.lastAccess,
                        isVerified: extent.unverified.isEmpty))
                state.extents[ordinal].isTouched = false
                guard isSynced else { continue }
                state.extents[ordinal].unsaved = Presence(bits: 0)
                state.extents[ordinal].checksums = [:]
            }
            let hits = state.unsavedHits
            state.unsavedHits = 0
            let wasIndexed = state.isIndexed
            state.isIndexed = state.isIndexed || !extents.isEmpty
            state.savedOverhead = state.overhead
            let isHeadChanged = wasIndexed && state.isHeadUnsaved
            state.isHeadUnsaved = false
            return CacheIndex.Update(
                id: id, key: key, head: state.head, length: length, geometry: geometry, overhead: state.overhead,
                hits: hits, wasIndexed: wasIndexed,
                isHeadChanged: isHeadChanged, extents: extents)
        }
    }

    /// Chunks turn out not to be what they should: absent from now on. Their blocks stay counted until they are filled
    /// again.
    /// - Returns: how many were dropped.
    func drop(_ bits: Presence, ofExtent ordinal: Int) -> Int {
        state.withLock { state in
            let dropped = Presence(bits: state.extents[ordinal].present.bits & bits.bits)
            state.extents[ordinal].present = Presence(bits: state.extents[ordinal].present.bits & ~dropped.bits)
            state.extents[ordinal].unsaved = Presence(bits: state.extents[ordinal].unsaved.bits & ~dropped.bits)
            state.extents[ordinal].unverified = Presence(bits: state.extents[ordinal].unverified.bits & ~dropped.bits)
            state.extents[ordinal].residue = Presence(bits: state.extents[ordinal].residue.bits | dropped.bits)
            state.absentChunks += dropped.count
            guard !dropped.isEmpty else { return 0 }
            // The index still calls them present, until it is told.
            state.extents[ordinal].isTouched = true
            state.losses += 1
            return dropped.count
        }
    }
}
