import CachePolicy
import Foundation
import Logging
import Metrics
import Units

extension CacheStore {
    // MARK: The index

    /// Opens the index, and the copy of its pinned rows. Where the index is damaged or gone, it is made anew from what
    /// can be had.
    static func openIndex(_ directory: String, _ logger: Logger, _ metrics: ProxyMetrics) throws(StoreError) -> (
        index: CacheIndex, pins: PinnedCopy
    ) {
        let path = directory + "/index.sqlite"
        let pins = try PinnedCopy(path: directory + "/pinned.sqlite")
        let isGone = !FileSystem.exists(path) || FileSystem.allocatedBytes(path) == 0
        var index: CacheIndex?
        // What an earlier start set aside and did not come to the end of is taken up again.
        if !FileSystem.exists(IndexDamage.asidePath(path)) || !isGone {
            do throws(StoreError) {
                try IndexDamage.check(path)
                let found = try CacheIndex(path: path)
                try found.checkMeta(diskSize: FileSystem.disk(of: directory)?.size)
                index = found
            } catch .damagedIndex(_, let detail) {
                logger.error("the index \(path) is damaged (\(detail)): it is made anew from what can be read of it")
                metrics.errors.add("index-damaged")
                try IndexDamage.setAside(path)
            }
        }
        let opened: CacheIndex
        if let index { opened = index } else { opened = try CacheIndex(path: path) }
        let aside = IndexDamage.asidePath(path)
        if isGone || FileSystem.exists(aside) { try rebuild(opened, from: aside, pins, directory, logger) }
        if pins.version > (try opened.meta(.pinVersion) ?? 0) { try restorePins(opened, pins, directory, logger) }
        return (opened, pins)
    }

    /// The index is behind its copy: its log was lost. What the copy has counts then; to what is pinned in the index
    /// nothing is done, as it was pinned once.
    private static func restorePins(_ index: CacheIndex, _ pins: PinnedCopy, _ directory: String, _ logger: Logger)
        throws(StoreError)
    {
        var count = 0
        for key in (try? pins.keys()) ?? [] {
            guard let update = (try? pins.update(of: key)) ?? nil,
                FileSystem.exists("\(directory)/\(relativePath(of: update.id))")
            else { continue }
            for batch in CacheIndex.batches([update]) {
                for id in try index.save(batch, session: 0).replaced.keys {
                    try FileSystem.remove("\(directory)/\(relativePath(of: id))")
                }
            }
            try index.restore(pins.kept(key), of: key)
            count += 1
        }
        try index.setMeta([(.pinVersion, pins.version)])
        logger.notice(
            "the index has lost what was last written to it; \(count) pinned resources were taken from their copy")
    }

    /// Rows come back where their files are there, to be verified before they are served.
    private static func rebuild(
        _ index: CacheIndex, from aside: String, _ pins: PinnedCopy, _ directory: String, _ logger: Logger
    ) throws(StoreError) {
        var batch: [(update: CacheIndex.Update, kept: CacheIndex.Kept)] = []
        func save() throws {
            for updates in CacheIndex.batches(batch.map(\.update)) { _ = try index.save(updates, session: 0) }
            for item in batch { try index.restore(item.kept, of: item.update.key) }
            batch = []
        }
        func take(_ update: CacheIndex.Update, _ kept: CacheIndex.Kept) throws {
            guard FileSystem.exists("\(directory)/\(relativePath(of: update.id))") else { return }
            batch.append((update, kept))
            if batch.count >= 256 { try save() }
        }
        do {
            // The copy first: what the index itself still has is newer.
            for key in (try? pins.keys()) ?? [] {
                if let update = (try? pins.update(of: key)) ?? nil { try take(update, pins.kept(key)) }
            }
            try save()
            if FileSystem.exists(aside) { try IndexDamage.rescue(aside, take) }
            try save()
        } catch { throw error as? StoreError ?? .index(detail: "\(error)") }
        let counts = try index.counts()
        guard counts.resources > 0 || FileSystem.exists(aside) else { return }
        try IndexDamage.removeFiles(aside)
        logger.notice(
            "\(counts.resources) resources were found again, \(counts.pinned) of them pinned; each is verified before it is served"
        )
    }

    /// A crash came between the index and its copy, or the copy is lost.
    func completePins() throws(StoreError) {
        let wanted = Set(try index.pinned())
        for key in try pins.keys() where !wanted.contains(key) { try pins.remove(key) }
        for key in wanted {
            do throws(StoreError) { try pins.copyAll(of: key, from: index) } catch .damagedRow { continue }
        }
    }

    // MARK: Files

    /// Brings files that were being written, evicted or removed when a session ended to what their rows say.
    func finish(_ ids: Set<GenerationID>) {
        guard !ids.isEmpty else { return }
        var (files, bytes) = (0, 0 as Int64)
        for id in ids {
            report("bring a file to an end that an earlier session left unfinished") { () throws(StoreError) in
                guard let gone = try finishFile(id) else { return }
                files += 1
                bytes += gone
            }
        }
        if files > 0 { logger.notice("removed \(files) files (\(ByteSize(bytes: bytes))) that were not finished") }
        // What they leave to do is done, or is done again at the next start.
        report("shorten the list of unfinished files") { () throws(StoreError) in
            try unfinished.shorten { registry.withLock { $0.leftUnfinished } }
        }
    }

    /// - Returns: what it took, where no row speaks of it and it is gone.
    func finishFile(_ id: GenerationID) throws(StoreError) -> Int64? {
        let path = path(of: id)
        guard FileSystem.exists(path) else { return nil }
        let taken = FileSystem.allocatedBytes(path)
        do throws(StoreError) {
            guard let row = try index.generation(id), let (extents, _, hasDamage) = try index.contents(of: row) else {
                try FileSystem.remove(path)
                return taken
            }
            if hasDamage { throw StoreError.damagedRow(key: row.key, detail: "extents") }
            // Nothing but what is counted: it is left alone, and sealed if it was.
            let chunks = extents.reduce(0) {
                $0 + row.geometry.blockBytes(of: $1.present, inExtent: $1.ordinal, length: row.length)
            }
            guard taken > chunks + row.overhead - CapacityLedger.blockSize else { return nil }
            if punchesHoles,
                !report("give back what was not finished", { () throws(StoreError) in try punchAbsent(row, extents) })
            {
                registry.withLock { _ = $0.leftUnfinished.insert(id) }
            }
            try countOverhead(row, chunks)
        } catch .damagedRow {
            removeDamage(of: id, isClaimed: true)
        }
        return nil
    }

    /// What could not be given back is counted.
    private func countOverhead(_ row: CacheIndex.GenerationRow, _ chunks: Int64) throws(StoreError) {
        let overhead = max(
            CapacityLedger.fileOverhead, FileSystem.allocatedBytes(path(of: row.id)) + CapacityLedger.blockSize - chunks
        )
        guard overhead != row.overhead else { return }
        _ = try index.save([CacheIndex.Update(row, [], overhead: overhead)], session: session)
        ledger.adjust(by: overhead - row.overhead)
    }

    /// Blocks that no row calls present: written after the last checkpoint, or evicted just before the end.
    private func punchAbsent(_ row: CacheIndex.GenerationRow, _ extents: [CacheIndex.ExtentRow]) throws(StoreError) {
        let file = try SparseFile(path: path(of: row.id), length: row.length, creating: false)
        var next: Int64 = 0
        for extent in extents.sorted(by: { $0.ordinal < $1.ordinal }) {
            for run in extent.present.runs {
                let first = extent.ordinal * ChunkGeometry.chunksPerExtent
                let start = row.geometry.chunkStart(first + run.lowerBound)
                if start > next { try file.punchHole(next..<start) }
                next = row.geometry.chunkBytes(first + run.upperBound - 1, length: row.length).upperBound
            }
        }
        if row.length > next { try file.punchHole(next..<row.length) }
    }

    /// After a power cut, or where the index was lost, any file may have what no row speaks of. All are looked at while
    /// the cache is already in use; until that is done a part of the limit is kept for what may be found.
    func recount(isNew: Bool) {
        ledger.setUncounted(isNew ? .max / 4 : min(ledger.limit / 4, 256 << 20))
        auditors.run { [self] in
            var (files, bytes) = (0, 0 as Int64)
            let isDone = forEachFile { id in
                guard !isEnding.load(ordering: .relaxed) else { return false }
                guard !id.isMade(in: session) else { return true }
                queue.sync {
                    // Whoever wants to open it meanwhile waits for the queue.
                    let isFree = registry.withLock {
                        $0.open[id] == nil && $0.loading[id] == nil && $0.evicting.insert(id).inserted
                    }
                    guard isFree else { return }
                    report("look at a file") { () throws(StoreError) in
                        guard let gone = try finishFile(id) else { return }
                        files += 1
                        bytes += gone
                    }
                    registry.withLock { _ = $0.evicting.remove(id) }
                }
                return true
            }
            guard isDone else { return }
            ledger.setUncounted(0)
            report("note that all files were looked at") { () throws(StoreError) in
                try index.setMeta([(.isRecountDue, 0)])
            }
            if files > 0 {
                logger.notice("removed \(files) files (\(ByteSize(bytes: bytes))) of which the index knows nothing")
            }
        }
    }

    /// The files that have the name of a generation and stand where it belongs. Whatever else somebody keeps there is
    /// not ours.
    /// - Parameter visit: false ends it.
    /// - Returns: whether all were visited.
    @discardableResult
    func forEachFile(_ visit: (GenerationID) -> Bool) -> Bool {
        let data = configuration.directory + "/data"
        for shard in FileSystem.entries(data) {
            for name in FileSystem.entries("\(data)/\(shard)") {
                guard let id = GenerationID(fileName: name), name.prefix(2) == shard, name == id.description else {
                    continue
                }
                guard visit(id) else { return false }
            }
        }
        return true
    }
}
