import CachePolicy

/// Removes generations: gone from the index at once, from the disk when nobody has them in hand any more. On the
/// store's queue.
final class Remover {
    private let core: StoreCore

    init(_ core: StoreCore) { self.core = core }

    /// Ends a generation that was replaced, or is not to be kept; once.
    func retire(_ generation: Generation) {
        if generation.retire() { endRetired(generation) }
    }

    /// What is to be done about one that has just been retired.
    func endRetired(_ generation: Generation) {
        core.unsaved.remove(generation.id)
        core.faults.report("retire a generation") { () throws(StoreError) in
            try list([generation.id])
            _ = try core.index.removal.remove([generation.id])
            // Whoever was told its name has it until they have done: then it goes with the generation.
            if !generation.isHeld { _ = core.files.remove(generation.id) }
        }
        core.listeners.tellChanged(generation.key, generation)
    }

    /// Forgets generations and removes their files. Those that are open go when their last reader has closed them; who
    /// is just opening one does not find it.
    /// - Returns: the bytes given back now, those that will be, and how many generations there were.
    @discardableResult
    func remove(_ ids: [GenerationID]) -> (freed: Int64, later: Int64, count: Int) {
        let (open, closed) = core.open.claimToRemove(ids)
        var (freed, later, count) = (0 as Int64, 0 as Int64, 0)
        for generation in open where generation.retire() {
            later += generation.allocated
            count += 1
            endRetired(generation)
        }
        defer { core.open.release(closed) }
        core.faults.report("remove files") { () throws(StoreError) in
            guard !closed.isEmpty else { return }
            try list(closed)
            // The rows go first, so that none ever speaks of a file that is gone.
            for (id, bytes) in try core.index.removal.remove(closed) {
                count += 1
                guard core.files.remove(id) else { continue }
                core.ledger.release(bytes)
                freed += bytes
            }
        }
        return (freed, later, count)
    }

    /// An older generation of a resource has lost its rows to a newer one.
    /// - Parameter bytes: what these said that it takes on the disk.
    func removeReplaced(_ id: GenerationID, _ bytes: Int64) {
        if let open = core.open.noteRemoval(of: id) { return retire(open) }
        if core.files.remove(id) { core.ledger.release(bytes) }
    }

    /// Removes the file of a generation that has no extents left, unless somebody is about to fill it again. What it
    /// still takes is counted until the last who has it open has let go of it, and whoever has it in case is told to.
    func removeEmptied(_ id: GenerationID) {
        guard let generation = core.open[id], generation.retireIfUnused() else { return }
        _ = core.files.remove(id)
        core.listeners.tellChanged(generation.key, generation)
    }

    /// A generation some of whose rows cannot be believed: these go, and with its head all of it.
    func removeDamage(of id: GenerationID) {
        // An open one is what it is in memory, until it is closed.
        guard core.open.claimClosed(id, isLoadingToo: true) else { return }
        defer { core.open.release([id]) }
        removeDamageOfClaimed(id)
    }

    /// The same where the caller has seen to it that nobody opens it meanwhile.
    private func removeDamageOfClaimed(_ id: GenerationID) {
        core.faults.report("remove damaged rows") { () throws(StoreError) in
            try list([id])
            let (key, isGone, change) = try core.index.removal.removeDamage(of: id)
            core.logger.error(
                "dropped \(isGone ? "" : "a part of what was cached ")from the cache, as rows of the index are damaged: \(key ?? "\(id)")"
            )
            core.metrics.errors.add("index-row")
            core.ledger.adjust(by: change)
            if isGone { _ = core.files.remove(id) } else { _ = try finishFile(id) }
        }
    }

    /// Names files as unfinished, before the index says anything else of them than before.
    func list(_ ids: [GenerationID]) throws(StoreError) { try core.files.list(ids) { core.open[$0] } }

    // MARK: Files that were left unfinished

    /// Brings a file to what its rows say. Nobody may open it meanwhile.
    /// - Returns: what it took, where no row speaks of it and it is gone.
    func finishFile(_ id: GenerationID) throws(StoreError) -> Int64? {
        let path = core.files.path(of: id)
        guard FileSystem.exists(path) else { return nil }
        let taken = FileSystem.allocatedBytes(path)
        do throws(StoreError) {
            guard let row = try core.index.rows.generation(id),
                let (extents, _, hasDamage) = try core.index.rows.contents(of: row)
            else {
                try FileSystem.remove(path)
                return taken
            }
            if hasDamage { throw StoreError.damagedRow(key: row.key, detail: "extents") }
            // Nothing but what is counted: it is left alone, and sealed if it was.
            let chunks = extents.reduce(0) {
                $0 + row.geometry.blockBytes(of: $1.present, inExtent: $1.ordinal, length: row.length)
            }
            guard taken > chunks + row.overhead - CapacityLedger.blockSize else { return nil }
            if core.files.punchesHoles,
                !core.faults.report(
                    "give back what was not finished", { () throws(StoreError) in try punchAbsent(row, extents) })
            {
                core.files.leaveUnfinished(id)
            }
            try countOverhead(row, chunks)
        } catch .damagedRow {
            removeDamageOfClaimed(id)
        }
        return nil
    }

    /// What could not be given back is counted.
    private func countOverhead(_ row: CacheIndex.GenerationRow, _ chunks: Int64) throws(StoreError) {
        let taken = FileSystem.allocatedBytes(core.files.path(of: row.id))
        let overhead = max(CapacityLedger.fileOverhead, taken + CapacityLedger.blockSize - chunks)
        guard overhead != row.overhead else { return }
        _ = try core.index.saving.save([CacheIndex.Update(row, [], overhead: overhead)], session: core.session)
        core.ledger.adjust(by: overhead - row.overhead)
    }

    /// Blocks that no row calls present: written after the last checkpoint, or evicted just before the end.
    private func punchAbsent(_ row: CacheIndex.GenerationRow, _ extents: [CacheIndex.ExtentRow]) throws(StoreError) {
        let file = try core.files.open(row.id, length: row.length)
        for gap in row.presentRanges(of: extents).gaps(within: 0..<row.length) { try file.punchHole(gap) }
    }
}

extension [Range<Int64>] {
    /// What lies between ranges that are in order, before them and behind them.
    func gaps(within bounds: Range<Int64>) -> [Range<Int64>] {
        let starts = [bounds.lowerBound] + map(\.upperBound), ends = map(\.lowerBound) + [bounds.upperBound]
        return zip(starts, ends).filter { $0 < $1 }.map { $0..<$1 }
    }
}
