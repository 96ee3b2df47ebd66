import CachePolicy
import Metrics

/// Reads everything again and compares checksums; once, on a thread of its own. Resources may be read, filled and
/// evicted meanwhile.
struct Audit {
    private let core: StoreCore
    private let queue: StoreQueue
    private let loader: Loader
    private let verifier: Verifier
    /// Whether what is found is dropped.
    private let repairs: Bool
    private var report = AuditReport()
    private var progress = AuditProgress(resources: 0, totalResources: 0, bytes: 0, totalBytes: 0)

    init(_ core: StoreCore, _ queue: StoreQueue, _ loader: Loader, _ verifier: Verifier, repairs: Bool) {
        (self.core, self.queue, self.loader, self.verifier) = (core, queue, loader, verifier)
        self.repairs = repairs
    }

    /// - Parameter isWanted: told how far it is; false ends it.
    mutating func run(isWanted: (AuditProgress) -> Bool) throws(StoreError) -> AuditReport {
        queue.sync { $0.checkpointer.checkpoint() }
        progress.totalResources = try core.index.listing.counts().resources
        progress.totalBytes = try core.index.database.meta(.dataBytes) ?? 0
        guard try readResources(isWanted) else {
            report.isComplete = false
            return report
        }
        report.isComplete = lookAtFiles()
        if repairs { queue.sync { $0.checkpointer.checkpoint(touchesToo: true) } }
        report.isRepaired = repairs
        return report
    }

    /// - Returns: whether it came to the end.
    private mutating func readResources(_ isWanted: (AuditProgress) -> Bool) throws(StoreError) -> Bool {
        var place: Int64 = 0
        while true {
            let page = try core.index.listing.page(after: place, limit: 64)
            guard let last = page.last else { return true }
            place = last.resource
            for item in page {
                guard try read(item.key, item.generation, isWanted) else { return false }
                progress.resources += 1
                progress.bytes = report.bytes
            }
            // What was opened for this need not stay open.
            queue.sync { _ = $0.closer.closeUnused() }
        }
    }

    private mutating func goesOn(_ isWanted: (AuditProgress) -> Bool) -> Bool {
        progress.bytes = report.bytes
        return isWanted(progress) && !core.isEnding
    }

    /// - Returns: whether it went on to the end.
    private mutating func read(_ key: CacheKey, _ id: GenerationID, _ isWanted: (AuditProgress) -> Bool)
        throws(StoreError) -> Bool
    {
        guard goesOn(isWanted) else { return false }
        guard let row = try row(of: id, key), let generation = try loader.load(key), generation.id == id else {
            return true
        }
        report.resources += 1
        var damage = AuditReport.Damage(url: key.text, chunks: 0, spans: [])
        for ordinal in 0..<row.geometry.extentCount(length: row.length) {
            guard ordinal == 0 || goesOn(isWanted) else { return false }
            let bad = try read(generation, row, ordinal)
            damage.chunks += bad.count
            damage.spans += bad.runs.map {
                ByteSpan(row.geometry.bytes(of: $0, inExtent: ordinal, length: row.length))
            }
        }
        if damage.chunks > 0 { report.damaged.append(damage) }
        return true
    }

    /// What the index has of a generation.
    /// - Returns: nil where it is gone, or where its rows or its file are not what they should be, which is noted.
    private mutating func row(of id: GenerationID, _ key: CacheKey) throws(StoreError) -> CacheIndex.GenerationRow? {
        let found: CacheIndex.GenerationRow?
        do throws(StoreError) { found = try core.index.rows.generation(id) } catch .damagedRow {
            report.damagedRows.append(key.text)
            if repairs { queue.sync { $0.remover.removeDamage(of: id) } }
            return nil
        }
        guard found != nil, !FileSystem.exists(core.files.path(of: id)) else { return found }
        // Evicted or replaced since it was listed, or gone.
        guard try core.index.rows.generation(id) != nil else { return nil }
        report.missingFiles.append(key.text)
        if repairs { queue.sync { _ = $0.remover.remove([id]) } }
        return nil
    }

    /// - Returns: the chunks of an extent that are damaged.
    private mutating func read(_ generation: Generation, _ row: CacheIndex.GenerationRow, _ ordinal: Int)
        throws(StoreError) -> Presence
    {
        // Under the lease nothing is evicted; what is written meanwhile is not in the row.
        let lease = HeldLease(generation.leaseForWriting(ordinal))
        defer { withExtendedLifetime(lease) {} }
        guard let extent = try core.index.rows.extent(ordinal, of: row) else { return Presence() }
        let chunks = extent.present.intersection(generation.saved(ofExtent: ordinal))
        guard !chunks.isEmpty else { return Presence() }
        report.chunks += chunks.count
        report.bytes += row.geometry.bodyBytes(of: chunks, inExtent: ordinal, length: row.length)
        // Dropped and written again since: those are others by now.
        let bad = verifier.damaged(chunks, of: generation, extent: ordinal, extent.checksums)
            .intersection(generation.saved(ofExtent: ordinal))
        let dropped = generation.endVerification(
            of: chunks.subtracting(bad), bad: repairs ? bad : Presence(), inExtent: ordinal)
        core.metrics.droppedChunks.add(Int64(dropped))
        if !repairs, !bad.isEmpty { generation.distrust(bad, ofExtent: ordinal) }
        return bad
    }

    /// Files that no resource has.
    /// - Returns: whether it came to the end.
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

    /// On the store's queue, where nothing is just being closed.
    /// - Returns: what a file takes that no resource has; nil for any other.
    private func orphan(_ id: GenerationID) -> Int64? {
        var taken: Int64?
        core.faults.report("look at a file") { () throws(StoreError) in
            guard !core.open.isKnown(id), !id.isMade(in: core.session), try !core.index.rows.isKnown(id) else { return }
            let path = core.files.path(of: id), bytes = FileSystem.allocatedBytes(path)
            if repairs { try FileSystem.remove(path) }
            taken = bytes
        }
        return taken
    }
}
