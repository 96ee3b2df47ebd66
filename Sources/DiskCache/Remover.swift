import CachePolicy

/// Removes generations: from the index at once, from the disk when nobody uses them any more. On the store's queue.
final class Remover {
    private let core: StoreCore

    init(_ core: StoreCore) { self.core = core }

    /// Retires a generation that was replaced or must not be kept; once.
    func retire(_ generation: Generation) {
        if generation.retire() { endRetired(generation) }
    }

    /// Removes a generation that has just been retired.
    /// - Returns: whether the index has recorded that.
    @discardableResult
    func endRetired(_ generation: Generation) -> Bool {
        core.unsaved.remove(generation.id)
        let isRecorded = core.faults.report("remove a replaced generation") { () throws(StoreError) in
            _ = try removeRows([generation.id])
            // A file whose name somebody was told stays until the hold ends; then it is removed with the generation.
            if generation.state.withLock({ $0.usage.holds == 0 }) { _ = core.files.remove(generation.id) }
        }
        core.listeners.notifyChanged(generation.key, generation)
        return isRecorded
    }

    private func removeRows(_ ids: [GenerationID]) throws(StoreError) -> [GenerationID: Int64] {
        try core.ledger.diskReserve.lend { () throws(StoreError) in
            try list(ids)
            return try core.index.removal.remove(ids)
        }
    }

    /// Removes generations with their rows and files. Open ones are removed when their last reader has closed them;
    /// openings in progress fail.
    /// - Returns: the bytes freed now, those freed later, and the number of generations.
    @discardableResult
    func remove(_ ids: [GenerationID]) -> (freed: Int64, later: Int64, count: Int) {
        let (open, closed) = core.open.claimToRemove(ids)
        var (freed, later, count) = (0 as Int64, 0 as Int64, 0)
        for generation in open where generation.retire() {
            let bytes = generation.allocated
            guard endRetired(generation) else { continue }
            (later, count) = (later + bytes, count + 1)
        }
        defer { core.open.release(closed) }
        core.faults.report("remove files") { () throws(StoreError) in
            guard !closed.isEmpty else { return }
            // Remove the rows first, so that none ever describes a missing file.
            for (id, bytes) in try removeRows(closed) {
                count += 1
                guard core.files.remove(id) else { continue }
                core.ledger.release(bytes)
                freed += bytes
            }
        }
        return (freed, later, count)
    }

    /// Removes a generation whose rows a newer one has replaced.
    /// - Parameter bytes: its disk usage according to these rows.
    func removeReplaced(_ id: GenerationID, _ bytes: Int64) {
        if let open = core.open.noteRemoval(of: id) { return retire(open) }
        if core.files.remove(id) { core.ledger.release(bytes) }
    }

    /// Removes the file of a generation without extents, unless somebody is about to fill it again. Its disk usage
    /// counts until everybody has released it; those that keep it for later are told to.
    func removeEmptied(_ id: GenerationID) {
        guard let generation = core.open[id], generation.retire(onlyUnused: true) else { return }
        _ = core.files.remove(id)
        core.listeners.notifyChanged(generation.key, generation)
    }

    /// Removes damaged rows, and the whole generation if its head is among them.
    func removeDamage(of id: GenerationID) {
        // The state of an open generation in memory is sound, until it is closed.
        guard core.open.claimClosed(id, isLoadingToo: true) else { return }
        defer { core.open.release([id]) }
        removeDamageOfClaimed(id)
    }

    /// The same if the caller has claimed the generation.
    private func removeDamageOfClaimed(_ id: GenerationID) {
        core.faults.report("remove damaged rows") { () throws(StoreError) in
            try list([id])
            let (key, isGone, change) = try core.index.removal.removeDamage(of: id)
            core.logger.error(
                "dropped \(isGone ? "" : "in part ")from the cache because of damaged index rows: \(key ?? "\(id)")"
            )
            core.metrics.errors.add("index-row")
            core.ledger.adjust(by: change)
            if isGone { _ = core.files.remove(id) } else { _ = try finishFile(id) }
        }
    }

    /// Lists files as unfinished before their rows change.
    func list(_ ids: [GenerationID]) throws(StoreError) { try core.files.list(ids) { core.open[$0] } }

    // MARK: Unfinished files

    /// Makes a file match its rows. Nobody may open it meanwhile.
    /// - Returns: its size, if it had no row and was removed.
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
            // Nothing beyond the counted size: leave it alone, sealed if it was.
            let chunks = extents.reduce(0) {
                $0 + row.geometry.blockBytes(of: $1.present, inExtent: $1.ordinal, length: row.length)
            }
            guard taken > chunks + row.overhead - CapacityLedger.blockSize else { return nil }
            if core.files.punchesHoles,
                !core.faults.report(
                    "free the blocks of unfinished chunks", { () throws(StoreError) in try punchAbsent(row, extents) })
            {
                core.files.leaveUnfinished(id)
            }
            try countOverhead(row, chunks)
        } catch .damagedRow {
            removeDamageOfClaimed(id)
        }
        return nil
    }

    /// Counts blocks that could not be freed.
    private func countOverhead(_ row: IndexRows.GenerationRow, _ chunks: Int64) throws(StoreError) {
        let taken = FileSystem.allocatedBytes(core.files.path(of: row.id))
        let overhead = max(CapacityLedger.fileOverhead, taken + CapacityLedger.blockSize - chunks)
        guard overhead != row.overhead else { return }
        _ = try core.index.saving.save([IndexSaving.Update(row, [], overhead: overhead)], session: core.session)
        core.ledger.adjust(by: overhead - row.overhead)
    }

    /// Frees blocks that no row calls present: written after the last checkpoint, or evicted just before the session
    /// ended.
    private func punchAbsent(_ row: IndexRows.GenerationRow, _ extents: [IndexRows.ExtentRow]) throws(StoreError) {
        let file = try core.files.open(row.id, length: row.length)
        for gap in row.presentRanges(of: extents).gaps(within: 0..<row.length) { try file.punchHole(gap) }
    }
}

extension [Range<Int64>] {
    /// The gaps before, between and after ranges that are in order.
    func gaps(within bounds: Range<Int64>) -> [Range<Int64>] {
        let starts = [bounds.lowerBound] + map(\.upperBound), ends = map(\.lowerBound) + [bounds.upperBound]
        return zip(starts, ends).filter { $0 < $1 }.map { $0..<$1 }
    }
}
