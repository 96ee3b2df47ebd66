import CachePolicy
import Foundation

/// Looks resources up in the index and opens their files. On any thread that may wait for the disk, except the store's
/// queue.
struct Loader: Sendable {
    let core: StoreCore
    let queue: StoreQueue

    /// - Returns: nil if nothing of it is cached.
    func load(_ key: CacheKey) throws(StoreError) -> Generation? {
        let (open, changes) = core.open.look(for: key)
        if let open { return open }
        guard var found = try stored(key) else { return nil }
        // From here on the evictor leaves this generation alone. If it is being evicted or closed, wait for that.
        let id = found.row.id, (known, isBusy, isChanged) = core.open.beginLoading(id, since: changes)
        defer { core.open.endLoading(id) }
        if let known { return known.isRetired ? nil : known }
        if isBusy { queue.wait() }
        if isChanged {
            guard let again = try stored(key), again.row.id == id else { return core.open.newest(of: key) }
            found = again
        }
        if found.hasDamage {
            queue.sync { $0.remover.removeDamage(of: id) }
            guard let mended = try stored(key), mended.row.id == id else { return nil }
            found = mended
        }
        return try self.open(found.row, found.extents, since: changes)
    }

    /// Removes a row whose values cannot be right.
    private func stored(_ key: CacheKey) throws(StoreError) -> IndexRows.Stored? {
        do throws(StoreError) { return try core.index.rows.stored(key) } catch .damagedRow {
            for id in try core.index.rows.identifiers(of: key) { queue.sync { $0.remover.removeDamage(of: id) } }
            return nil
        }
    }

    /// - Throws: if the file exists and cannot be opened. It must not be replaced then.
    private func open(_ row: IndexRows.GenerationRow, _ rows: [IndexRows.ExtentRow], since changes: Int)
        throws(StoreError) -> Generation?
    {
        let file: SparseFile
        do throws(StoreError) {
            file = try openFile(of: row)
        } catch .system(_, _, ENOENT) {
            try core.checkPlace()
            // The file was deleted from outside: remove its rows; it will be fetched again.
            core.logger.error("dropped from the cache because its file is missing: \(row.key.text)")
            core.metrics.errors.add("disk-file-missing")
            queue.async { _ = $0.remover.remove([row.id]) }
            return nil
        }
        let isSealed = file.isSealed(length: row.length)
        var chunks = ChunkTable(
            row.geometry, length: row.length, isStored: true, extents: extents(rows, isSealed: isSealed),
            overhead: row.overhead, wasSealed: isSealed, keepsHoles: core.files.keepsHoles)
        chunks.noteFilled(upTo: file.end)
        let generation = Generation(
            id: row.id, key: row.key, head: row.head, chunks: chunks, file: file, ledger: core.ledger, isIndexed: true,
            isKept: row.isKept, whole: row.whole)
        if row.length <= Listing.longest, generation.withChunks({ $0.extents[0].present.contains(0) }) {
            generation.lookAtBeginning(upTo: row.geometry.chunkBytes(0, length: row.length).upperBound)
        }
        let (opened, isChanged) = core.open.addLoaded(generation, since: changes)
        // Ask again: a pin set before the generation was registered found none to update, and later ones will update
        // this one. If the index does not answer, its earlier answer holds.
        if let opened, isChanged {
            core.faults.report("look up whether a resource is pinned") { () throws(StoreError) in
                let isKept = try core.index.pins.isKept(row.key)
                opened.state.withLock { $0.isKept = $0.isKept ?? isKept }
            }
        }
        return opened
    }

    private func extents(_ rows: [IndexRows.ExtentRow], isSealed: Bool) -> ExtentTable {
        var extents = ExtentTable()
        for saved in rows.sorted(by: { $0.ordinal < $1.ordinal }) where !saved.present.isEmpty {
            extents[saved.ordinal].present = saved.present
            extents[saved.ordinal].lastAccess = saved.lastAccess
            if saved.session <= core.suspectSession || !isSealed { extents[saved.ordinal].unverified = saved.present }
        }
        return extents
    }

    /// Reads a range of an open file.
    /// - Returns: nil if it could not be read (`noteUnreadable`).
    func read<Value>(
        _ range: Range<Int64>, of generation: Generation, _ body: (any GenerationBytes) throws(StoreError) -> Value
    ) -> Value? {
        do throws(StoreError) { return try body(generation.file) } catch {
            core.faults.note("read a cached resource, which is fetched instead", error, label: "disk-read")
            _ = generation.noteUnreadable(range)
            return nil
        }
    }

    /// If too many files are open, closes idle ones and tries again.
    private func openFile(of row: IndexRows.GenerationRow) throws(StoreError) -> SparseFile {
        do throws(StoreError) {
            return try core.files.open(row.id, length: row.length)
        } catch {
            guard error.isShortageOfFiles else { throw error }
            closeInShortage()
            queue.wait()
            return try core.files.open(row.id, length: row.length)
        }
    }

    /// Has files released that are kept open for later; the store's queue closes them. Can be called from any thread.
    func closeInShortage() {
        core.noteShortage()
        queue.async { _ = $0.closer.closeUnused() }
    }

    /// - Returns: the keys, and those of the resources' variants.
    func withVariants(_ keys: [CacheKey]) -> [CacheKey] {
        var all = keys
        for key in keys {
            all += core.open.newestIDs.keys.filter { $0.text.hasPrefix(key.text + " ") }
            core.faults.report("look up variants") { () throws(StoreError) in
                all += try core.index.rows.variants(of: key).filter { !all.contains($0) }
            }
        }
        return all
    }

    /// - Throws: `StoreError`; a `.system` error with ENOSPC if there is no room even for an empty file.
    func make(_ key: CacheKey, head: GenerationHead, length: Int64?, isHidden: Bool, partOf whole: CacheKey? = nil)
        throws(StoreError) -> Generation
    {
        if core.isDisplaced { try core.checkPlace() }
        let id = core.files.makeID()
        let overhead = core.files.fileOverhead
        guard core.ledger.reserve(overhead) || core.ledger.reserveFile(overhead) else {
            throw .system(operation: "reserve space for", path: core.files.path(of: id), code: ENOSPC)
        }
        do throws(StoreError) {
            try core.files.unfinished.begin([id])
            defer { core.files.unfinished.end() }
            let file = try core.files.make(id, length: length)
            let chunks = ChunkTable(
                core.configuration.geometry, length: length, isStored: true, overhead: overhead,
                keepsHoles: core.files.keepsHoles)
            let generation = Generation(
                id: id, key: key, head: head, chunks: chunks, file: file, ledger: core.ledger, isHidden: isHidden,
                whole: whole)
            core.open.add(generation, isHidden: isHidden)
            return generation
        } catch {
            // A loop must not wait for files to be closed: this response passes through, the next one finds room.
            if error.isShortageOfFiles { closeInShortage() }
            // The file may have been created incompletely.
            unlink(core.files.path(of: id))
            core.ledger.release(overhead)
            throw error
        }
    }
}
