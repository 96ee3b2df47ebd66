import Activity
import CachePolicy

/// Reads all cached bytes and compares their checksums. Runs once, on a thread of its own, while resources are read,
/// filled and evicted.
struct Scrub {
    private let core: StoreCore
    private let queue: StoreQueue
    private let loader: Loader
    private let verifier: Verifier
    /// Whether to drop what is damaged.
    private let repairs: Bool
    private var report = CacheValidation()
    private var progress = ScrubProgress(resources: 0, totalResources: 0, bytes: 0, totalBytes: 0)

    init(_ core: StoreCore, _ queue: StoreQueue, _ loader: Loader, _ verifier: Verifier, repairs: Bool) {
        (self.core, self.queue, self.loader, self.verifier) = (core, queue, loader, verifier)
        self.repairs = repairs
    }

    /// - Parameter isWanted: called with the progress; false ends the scrub.
    mutating func run(isWanted: (ScrubProgress) -> Bool) throws(StoreError) -> CacheValidation {
        queue.sync { $0.checkpointer.checkpoint() }
        progress.totalResources = try core.index.listing.counts().resources
        progress.totalBytes = try core.index.database.meta(.dataBytes) ?? 0
        guard try readResources(isWanted) else {
            report.isComplete = false
            return report
        }
        report.isComplete = lookAtFiles()
        if repairs { queue.sync { $0.checkpointer.checkpoint(.all) } }
        report.isRepaired = repairs
        return report
    }

    /// - Returns: whether it reached the end.
    private mutating func readResources(_ isWanted: (ScrubProgress) -> Bool) throws(StoreError) -> Bool {
        var place: Int64 = 0
        while true {
            let page = try core.index.listing.page(after: place, limit: 64)
            guard let last = page.last else { return true }
            place = last.resource
            for item in page {
                guard try read(item, isWanted) else { return false }
                progress.resources += item.isPart ? 0 : 1
                progress.bytes = report.bytes
            }
            // Generations that were opened only for this are closed again.
            queue.sync { _ = $0.closer.closeUnused() }
        }
    }

    private mutating func continues(_ isWanted: (ScrubProgress) -> Bool) -> Bool {
        progress.bytes = report.bytes
        return isWanted(progress) && !core.isEnding
    }

    /// - Returns: whether it reached the end.
    private mutating func read(_ item: IndexListing.Listed, _ isWanted: (ScrubProgress) -> Bool) throws(StoreError)
        -> Bool
    {
        let (key, id) = (item.key, item.generation)
        guard continues(isWanted) else { return false }
        guard let row = try row(of: id, key), let generation = try loader.load(key), generation.id == id else {
            return true
        }
        report.resources += item.isPart ? 0 : 1
        var damage = CacheValidation.Damage(key.text)
        for ordinal in 0..<row.geometry.extentCount(length: row.length) {
            guard ordinal == 0 || continues(isWanted) else { return false }
            let bad = try read(generation, row, ordinal)
            damage.chunks += bad.count
            damage.spans += bad.runs.map {
                ByteSpan(row.geometry.bytes(of: $0, inExtent: ordinal, length: row.length))
            }
        }
        if damage.chunks > 0 { report.damaged.append(damage) }
        return true
    }

    /// Reads a generation's row.
    /// - Returns: nil if it is gone, or if its rows or its file are damaged, which is recorded.
    private mutating func row(of id: GenerationID, _ key: CacheKey) throws(StoreError) -> IndexRows.GenerationRow? {
        let found: IndexRows.GenerationRow?
        do throws(StoreError) { found = try core.index.rows.generation(id) } catch .damagedRow {
            report.damagedRows.append(key.text)
            if repairs { queue.sync { $0.remover.removeDamage(of: id) } }
            return nil
        }
        guard found != nil, !FileSystem.exists(core.files.path(of: id)) else { return found }
        // It may have been evicted or replaced since the page was read.
        guard try core.index.rows.generation(id) != nil else { return nil }
        try core.checkPlace()
        report.missingFiles.append(key.text)
        if repairs { queue.sync { _ = $0.remover.remove([id]) } }
        return nil
    }

    /// - Returns: the damaged chunks of an extent.
    private mutating func read(_ generation: Generation, _ row: IndexRows.GenerationRow, _ ordinal: Int)
        throws(StoreError) -> Presence
    {
        // The lease prevents eviction. Chunks written meanwhile are not in the row.
        let lease = ExtentLease.Held(generation.leaseForWriting(ordinal))
        defer { withExtendedLifetime(lease) {} }
        guard let extent = try core.index.rows.extent(ordinal, of: row) else { return Presence() }
        let chunks = extent.present.intersection(generation.withChunks { $0.extents[ordinal].saved })
        guard !chunks.isEmpty else { return Presence() }
        report.chunks += chunks.count
        report.bytes += row.geometry.bodyBytes(of: chunks, inExtent: ordinal, length: row.length)
        // Chunks that were dropped and written again meanwhile are new: ignore them.
        let bad = verifier.damaged(chunks, of: generation, extent: ordinal, extent.checksums)
            .intersection(generation.withChunks { $0.extents[ordinal].saved })
        let dropped = generation.withChunks {
            $0.endVerification(of: chunks.subtracting(bad), bad: repairs ? bad : Presence(), inExtent: ordinal)
        }
        core.metrics.droppedChunks.add(Int64(dropped))
        if !repairs, !bad.isEmpty { generation.withChunks { $0.distrust(bad, ofExtent: ordinal) } }
        return bad
    }

    /// Looks for files without a resource.
    /// - Returns: whether it reached the end.
    private mutating func lookAtFiles() -> Bool {
        var (files, bytes) = (0, 0 as Int64)
        let isThrough = core.files.visitAll { id in
            guard !core.isEnding else { return false }
            guard let taken = queue.sync({ _ in orphan(id) }) else { return true }
            files += 1
            bytes += taken
            return true
        }
        (report.orphanedFiles, report.orphanedBytes) = (files, bytes)
        return isThrough
    }

    /// On the store's queue, so that no file is being closed at the same time.
    /// - Returns: the size of a file without a resource; nil for any other file.
    private func orphan(_ id: GenerationID) -> Int64? {
        var taken: Int64?
        core.faults.report("examine a file") { () throws(StoreError) in
            guard !core.open.isKnown(id), !id.isMade(in: core.session), try !core.index.rows.isKnown(id) else { return }
            let path = core.files.path(of: id), bytes = FileSystem.allocatedBytes(path)
            if repairs { try FileSystem.remove(path) }
            taken = bytes
        }
        return taken
    }
}
