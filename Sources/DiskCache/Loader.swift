import CachePolicy
import Foundation

/// Finds resources in the index and opens their files. On any thread that may wait for the disk, but for the store's
/// queue.
struct Loader: Sendable {
    let core: StoreCore
    let queue: StoreQueue

    /// - Returns: nil where nothing of it is cached.
    func load(_ key: CacheKey) throws(StoreError) -> Generation? {
        if let open = core.open.newest(of: key) { return open }
        let found: CacheIndex.GenerationRow?
        do throws(StoreError) { found = try core.index.rows.generation(of: key) } catch .damagedRow {
            for id in try core.index.rows.identifiers(of: key) { queue.sync { $0.remover.removeDamage(of: id) } }
            return nil
        }
        guard let row = found else { return nil }
        // From here on the evictor leaves this generation alone; what it or a closing has begun is waited for.
        let (known, isBusy) = core.open.beginLoading(row.id)
        defer { core.open.endLoading(row.id) }
        if let known { return known.isRetired ? nil : known }
        if isBusy { queue.wait() }
        guard var contents = try core.index.rows.contents(of: row) else { return nil }
        if contents.hasDamage {
            queue.sync { $0.remover.removeDamage(of: row.id) }
            guard let mended = try core.index.rows.contents(of: row) else { return nil }
            contents = mended
        }
        return try open(row, contents.extents, contents.overhead)
    }

    /// - Throws: where the file is there and cannot be opened: nothing is known then, and nothing may take its place.
    private func open(_ row: CacheIndex.GenerationRow, _ rows: [CacheIndex.ExtentRow], _ overhead: Int64)
        throws(StoreError) -> Generation?
    {
        let file: SparseFile
        do throws(StoreError) {
            file = try openFile(of: row)
        } catch .system(_, _, ENOENT) {
            // Deleted from outside: its rows go, and it is fetched again.
            core.logger.error("dropped from the cache, as its file is gone: \(row.key.text)")
            core.metrics.errors.add("disk-file-missing")
            queue.async { _ = $0.remover.remove([row.id]) }
            return nil
        }
        let isSealed = file.isSealed(length: row.length)
        let chunks = ChunkTable(
            row.geometry, length: row.length, isStored: true, extents: extents(rows, isSealed: isSealed),
            overhead: overhead, wasSealed: isSealed)
        let generation = Generation(
            id: row.id, key: row.key, head: row.head, chunks: chunks, file: file, ledger: core.ledger, isIndexed: true,
            isKept: try core.index.pins.isKept(row.key), whole: row.whole)
        let opened = core.open.addLoaded(generation)
        // Asked once more: who pinned it before it was registered found nobody to tell, and who does so from now on
        // tells it. Where the index does not answer, what it said a moment ago holds.
        if let opened {
            core.faults.report("look up what is kept") { () throws(StoreError) in
                opened.startKept(try core.index.pins.isKept(row.key))
            }
        }
        return opened
    }

    private func extents(_ rows: [CacheIndex.ExtentRow], isSealed: Bool) -> ExtentTable {
        var extents = ExtentTable()
        for saved in rows.sorted(by: { $0.ordinal < $1.ordinal }) where !saved.present.isEmpty {
            extents[saved.ordinal].present = saved.present
            extents[saved.ordinal].lastAccess = saved.lastAccess
            if saved.session <= core.suspectSession || !isSealed { extents[saved.ordinal].unverified = saved.present }
        }
        return extents
    }

    /// Where too many files are open, idle ones are closed, and it is tried again.
    private func openFile(of row: CacheIndex.GenerationRow) throws(StoreError) -> SparseFile {
        do throws(StoreError) {
            return try core.files.open(row.id, length: row.length)
        } catch {
            guard error.isShortageOfFiles else { throw error }
            closeInShortage()
            queue.wait()
            return try core.files.open(row.id, length: row.length)
        }
    }

    /// What is open in case is let go of; the store's queue closes it. From any thread.
    func closeInShortage() {
        core.noteShortage()
        queue.async { _ = $0.closer.closeUnused() }
    }

    /// - Returns: also what origins chose by other request fields, for resources that have such.
    func withVariants(_ keys: [CacheKey]) -> [CacheKey] {
        var all = keys
        for key in keys {
            all += core.open.newestIDs.keys.filter { $0.text.hasPrefix(key.text + " ") }
            core.faults.report("look variants up") { () throws(StoreError) in
                all += try core.index.rows.variants(of: key).filter { !all.contains($0) }
            }
        }
        return all
    }

    /// - Throws: `StoreError`; where there is no room even for an empty file, a `.system` error with ENOSPC.
    func make(_ key: CacheKey, head: GenerationHead, length: Int64?, isHidden: Bool, partOf whole: CacheKey? = nil)
        throws(StoreError) -> Generation
    {
        let id = core.files.makeID()
        guard core.ledger.reserve(CapacityLedger.fileOverhead) || core.ledger.reserveFile() else {
            throw .system(operation: "reserve space for", path: core.files.path(of: id), code: ENOSPC)
        }
        do throws(StoreError) {
            try core.files.unfinished.begin([id])
            defer { core.files.unfinished.end() }
            let file = try core.files.make(id, length: length)
            let chunks = ChunkTable(core.configuration.geometry, length: length, isStored: true)
            let generation = Generation(
                id: id, key: key, head: head, chunks: chunks, file: file, ledger: core.ledger, isHidden: isHidden,
                // What takes another's place belongs where that did, also where that one's rows go before it is saved.
                whole: whole ?? core.open.newest(of: key)?.whole)
            core.open.add(generation)
            return generation
        } catch {
            // A loop does not wait for what is closed: this one passes by, the next finds room.
            if error.isShortageOfFiles { closeInShortage() }
            // It may have been made, but not as it has to be.
            unlink(core.files.path(of: id))
            core.ledger.release(CapacityLedger.fileOverhead)
            throw error
        }
    }
}
