import Activity
import CachePolicy
import Logging

/// Opens the index, or rebuilds it.
extension StoreOpening {
    /// Opens the index and the copy of its pinned rows. A damaged or missing index is rebuilt from the copy and
    /// whatever is still readable.
    static func openIndex(_ directory: String, _ logger: Logger, _ metrics: ProxyMetrics) throws(StoreError) -> (
        index: CacheIndex, pins: PinnedCopy
    ) {
        let path = directory + "/index.sqlite"
        let pins = try PinnedCopy(path: directory + "/pinned.sqlite")
        let isGone = !FileSystem.exists(path) || FileSystem.allocatedBytes(path) == 0
        var index: CacheIndex?
        // Continue an earlier start that did not finish rebuilding.
        if !FileSystem.exists(IndexDamage.asidePath(path)) || !isGone {
            do throws(StoreError) {
                try IndexDamage.check(path)
                let found = try CacheIndex(path: path)
                try found.database.checkMeta(diskSize: FileSystem.disk(of: directory)?.size)
                // No check compares the times with their index.
                try found.database.endFuture(at: AccessClock.now())
                index = found
            } catch .damagedIndex(_, let detail) {
                logger.error("the index \(path) is damaged (\(detail)): rebuilding it from whatever is still readable")
                metrics.errors.add("index-damaged")
                try IndexDamage.setAside(path)
            }
        }
        let opened: CacheIndex
        if let index { opened = index } else { opened = try CacheIndex(path: path) }
        let aside = IndexDamage.asidePath(path)
        if isGone || FileSystem.exists(aside) { try rebuild(opened, from: aside, pins, directory, logger) }
        if pins.version > (try opened.database.meta(.pinVersion) ?? 0) {
            try restorePins(opened, pins, directory, logger)
        }
        return (opened, pins)
    }

    /// The index is behind its copy because its log was lost: the copy's rows replace the index's. Resources that are
    /// pinned only in the index stay so, as they were pinned at some time.
    private static func restorePins(_ index: CacheIndex, _ pins: PinnedCopy, _ directory: String, _ logger: Logger)
        throws(StoreError)
    {
        var count = 0
        for key in (try? pins.keys()) ?? [] {
            guard let update = (try? pins.copy?.update(of: key)) ?? nil,
                FileSystem.exists("\(directory)/\(GenerationFiles.relativePath(of: update.id))")
            else { continue }
            for batch in IndexSaving.Update.batches([update]) {
                for id in try index.saving.save(batch, session: 0).replaced.keys {
                    try FileSystem.remove("\(directory)/\(GenerationFiles.relativePath(of: id))")
                }
            }
            try index.pins.restore(pins.kept(key), of: key)
            count += 1
        }
        try index.database.setMeta([(.pinVersion, pins.version)])
        logger.notice(
            "the index has lost its latest changes; restored \(count) pinned resources from their copy")
    }

    /// Restores rows whose files exist; their chunks are verified before they are served.
    private static func rebuild(
        _ index: CacheIndex, from aside: String, _ pins: PinnedCopy, _ directory: String, _ logger: Logger
    ) throws(StoreError) {
        var batch: [(update: IndexSaving.Update, kept: IndexPins.Kept)] = []
        func save() throws {
            for updates in IndexSaving.Update.batches(batch.map(\.update)) {
                _ = try index.saving.save(updates, session: 0)
            }
            for item in batch { try index.pins.restore(item.kept, of: item.update.key) }
            batch = []
        }
        func take(_ update: IndexSaving.Update, _ kept: IndexPins.Kept) throws {
            guard FileSystem.exists("\(directory)/\(GenerationFiles.relativePath(of: update.id))") else { return }
            batch.append((update, kept))
            if batch.count >= 256 { try save() }
        }
        do {
            // The copy first: rows of the index itself are newer.
            for key in (try? pins.keys()) ?? [] {
                if let update = (try? pins.copy?.update(of: key)) ?? nil { try take(update, pins.kept(key)) }
            }
            try save()
            if FileSystem.exists(aside) { try IndexDamage.rescue(aside, take) }
            try save()
            for (part, whole) in IndexDamage.furtherWholes(aside) { _ = try index.parts.join([part], to: whole) }
        } catch { throw error as? StoreError ?? .index(detail: "\(error)") }
        let counts = try index.listing.counts()
        guard counts.resources > 0 || FileSystem.exists(aside) else { return }
        try IndexDamage.removeFiles(aside)
        logger.notice(
            "recovered \(counts.resources) resources, \(counts.pinned) of them pinned; each is verified before it is served"
        )
    }
}
