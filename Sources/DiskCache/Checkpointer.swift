import Activity
import CachePolicy
import Foundation
import HTTPModel

/// Saves the state of files in the index: data first, then `fdatasync`, then the bitmaps. In this order, a bit in the
/// index is never ahead of its chunk. On the store's queue.
final class Checkpointer {
    /// A checkpoint is due after this many bytes, if not after a second.
    static let bytes: Int64 = 64 << 20
    /// The same while a download is running, whose bytes should survive a crash (`CacheStore.setEager`).
    static let eagerBytes: Int64 = 2 << 20
    /// From this many files on, one `syncfs` is faster than two calls for each file.
    private static let filesForOneSync = 16

    private let core: StoreCore
    private let pins: PinnedCopy
    private let remover: Remover
    private let joiner: Joiner
    /// What was read of files since closed, until it is saved.
    private var closed: [GenerationID: IndexSaving.Touch] = [:]
    /// How many of these are kept, which take 20 MB, and how many are saved at once: a report waits for that a second.
    var (mostClosed, closedAtOnce) = (131_072, 4096)

    init(_ core: StoreCore, _ pins: PinnedCopy, _ remover: Remover, _ joiner: Joiner) {
        (self.core, self.pins, self.remover, self.joiner) = (core, pins, remover, joiner)
    }

    /// What a checkpoint saves, besides new chunks.
    enum Scope {
        case chunks
        /// Other changes, and the last reads of the extents of open files.
        case reads
        /// Those of closed files, too: the order of eviction.
        case order
        /// Those of resources, too, and their hits: nobody but reports needs them, unless whole files are evicted.
        case all
    }

    func checkpoint(_ scope: Scope = .chunks) {
        let unsaved = core.unsaved.take(), open = scope == .chunks ? [] : core.open.all
        // A generation of unknown length is saved once its end is known.
        let news = unsaved.values.filter { !$0.isRetired }.compactMap { generation in
            generation.takeUnsaved().map { (generation, $0) }
        }
        // If one call for all fails, each file is synced by itself.
        let areSynced = news.count >= Self.filesForOneSync && core.files.syncAll(news.map(\.0))
        var updates = news.compactMap { generation, update in
            // With their labels: otherwise each would be cast.
            synced(generation, update, isDone: areSynced).map {
                (generation: generation, update: inheriting($0, generation))
            }
        }
        for generation in open where unsaved[generation.id] == nil {
            if let update = generation.takeChanges() { updates.append((generation, update)) }
        }
        if !updates.isEmpty {
            save(updates)
            core.metrics.checkpoints.add()
            shortenList()
        }
        // What was read of a new generation needs its row.
        let withResources = scope == .all || scope == .reads && !core.files.punchesHoles
        saveTouches(of: open, withResources: withResources, withClosed: scope == .order || scope == .all)
        if scope == .reads { saveClosed(beyond: closedAtOnce) }
    }

    /// A new generation's row replaces that of the former, whose hits the index may not know yet.
    private func inheriting(_ update: IndexSaving.Update, _ generation: Generation) -> IndexSaving.Update {
        guard !update.wasIndexed, let former = generation.state.withLock(\.former) else { return update }
        var update = update
        update.hits +|= closed.removeValue(forKey: former)?.resource?.hits ?? 0
        update.hits +|= core.open[former]?.state.withLock { $0.takeHits() } ?? 0
        return update
    }

    /// The requests that a resource has answered and that its row does not know yet.
    func unsavedHits(of key: CacheKey) throws(StoreError) -> Int64 {
        try core.index.rows.identifiers(of: key).reduce(0) { sum, id in
            sum +| (closed[id]?.resource?.hits ?? 0) +| (core.open[id]?.state.withLock(\.news.hits) ?? 0)
        }
    }

    private func shortenList() {
        guard core.files.unfinished.isLong else { return }
        core.faults.report("shorten the list of unfinished files") { () throws(StoreError) in
            try core.files.unfinished.shorten {
                Set(core.open.all.filter { $0.state.withLock(\.isListed) }.map(\.id)).union(core.files.leftUnfinished)
            }
        }
    }

    /// Makes a generation's chunks durable, and drops them if the disk failed.
    private func synced(_ generation: Generation, _ update: IndexSaving.Update, isDone: Bool) -> IndexSaving.Update? {
        do throws(StoreError) {
            if !isDone { try core.files.sync(generation) }
            // Only now are all blocks allocated.
            generation.countOverhead()
            var update = update
            update.overhead = generation.state.withLock { state in
                state.news.savedOverhead = state.chunks.overhead
                return state.chunks.overhead
            }
            return update
        } catch  where error.isShortageOfFiles {
            // The files are sound: the next checkpoint tries again. Files released meanwhile are closed at the next
            // tick.
            core.faults.note("open a file to make it durable", error)
            core.noteShortage()
            generation.restore(update)
            _ = core.unsaved.add(generation)
            return nil
        } catch {
            core.faults.note("make chunks durable, so dropped them", error, label: "disk-sync")
            // What has come since the update was taken may be lost, too. The rest of it goes with the next checkpoint.
            generation.restore(update)
            core.metrics.droppedChunks.add(Int64(generation.withChunks { $0.dropUnsaved() }))
            return nil
        }
    }

    /// Saves updates in small transactions, so that the index's log grows little between two measurements.
    /// - Returns: the generations that could not be saved; the next checkpoint tries again.
    @discardableResult
    func save(_ changed: [(generation: Generation, update: IndexSaving.Update)]) -> Set<GenerationID> {
        let generations = Dictionary(changed.map { ($0.generation.id, $0.generation) }) { first, _ in first }
        let updates = changed.map(\.update), newest = core.open.newestIDs
        let isCurrent = { (update: IndexSaving.Update) in newest[update.key].map { $0 == update.id } ?? true }
        let current = updates.filter(isCurrent)
        var failed: Set<GenerationID> = []
        // After one failure, the other batches would only wait in vain.
        for batch in IndexSaving.Update.batches(current) {
            if !failed.isEmpty || !saveBatch(batch, of: generations) {
                for update in batch { generations[update.id]?.restore(update) }
                failed.formUnion(batch.map(\.id))
            }
        }
        for id in failed { if let generation = generations[id] { _ = core.unsaved.add(generation) } }
        // An update must not bring back a generation that has been replaced. Retire it only after its successor is
        // saved, which inherits what is known of the resource.
        for update in updates where current.count < updates.count && !isCurrent(update) {
            guard let generation = generations[update.id] else { continue }
            if newest[update.key].flatMap({ core.open[$0] })?.state.withLock(\.news.isIndexed) != false {
                remover.retire(generation)
            } else {
                generation.restore(update)
                failed.insert(update.id)
                _ = core.unsaved.add(generation)
            }
        }
        return failed
    }

    /// Saves what was read since the last time. What cannot be saved is left for the next time.
    private func saveTouches(of open: [Generation], withResources: Bool, withClosed: Bool) {
        // In this order: what was closed may be open again, and was read later then.
        var touched = withClosed ? takeClosed(withResources: withResources).map { (Generation?.none, $0) } : []
        touched.reserveCapacity(touched.count + open.count)
        for open in open {
            guard let touch = open.takeTouch(withResource: withResources) else { continue }
            // What waits since an earlier closing must not be saved after it.
            touched.append((open, closed.removeValue(forKey: open.id)?.followed(by: touch) ?? touch))
        }
        var left = touched[...]
        for batch in IndexSaving.Touch.batches(touched.map(\.1)) {
            let isSaved = core.faults.report("save last reads") { () throws(StoreError) in
                try core.index.saving.save(batch)
            }
            countIndex()
            guard isSaved else { break }
            left = left.dropFirst(batch.count)
        }
        for (generation, touch) in left {
            if let generation { generation.restore(touch) } else { keep(touch) }
        }
    }

    /// Takes over what was read of files that are being closed: each of them would cost several statements.
    func keepTouches(of generations: [Generation]) {
        for generation in generations { generation.takeTouch(withResource: true).map(keep) }
    }

    /// Saves some of what was kept if that is of more files. Not while files are being closed, which others wait for.
    func saveClosed(beyond count: Int) {
        if closed.count > count { saveTouches(of: [], withResources: true, withClosed: true) }
    }

    /// Saves all of it, at an orderly end.
    func saveAllClosed() {
        var before = Int.max
        while !closed.isEmpty, closed.count < before {
            before = closed.count
            saveClosed(beyond: 0)
        }
    }

    private func keep(_ touch: IndexSaving.Touch) {
        // An index that cannot be written for long loses them.
        guard closed.count < 2 * mostClosed else { return }
        closed[touch.id] = closed[touch.id]?.followed(by: touch) ?? touch
    }

    private func takeClosed(withResources: Bool) -> [IndexSaving.Touch] {
        if withResources {
            let some = Array(closed.values.prefix(closedAtOnce))
            for touch in some { closed[touch.id] = nil }
            return some
        }
        let some = closed.values.lazy.filter { !$0.reads.isEmpty }.prefix(closedAtOnce)
        let reads = Array(some.map { IndexSaving.Touch(id: $0.id, reads: $0.reads) })
        for touch in reads { closed[touch.id]?.reads = [] }
        return reads
    }

    /// - Returns: whether the batch was saved.
    private func saveBatch(_ batch: [IndexSaving.Update], of generations: [GenerationID: Generation]) -> Bool {
        defer { countIndex() }
        let replaced: [GenerationID: Int64]
        do throws(StoreError) {
            let saved = try core.index.saving.save(batch, session: core.session)
            replaced = saved.replaced
            for id in saved.kept { generations[id]?.setKept(true) }
            core.faults.report("save the copy of pinned rows") { () throws(StoreError) in
                try pins.save(batch.filter { saved.pinned.contains($0.id) }, from: core.index)
                try joiner.notePinned(saved.newlyPinned)
            }
            core.faults.report("join the parts of a presentation") { () throws(StoreError) in
                for (key, whole) in saved.toBeJoined { try joiner.join([key], to: whole) }
            }
        } catch {
            core.faults.note("save a checkpoint", error)
            return false
        }
        for (id, bytes) in replaced { remover.removeReplaced(id, bytes) }
        return true
    }

    /// Measures the files beside the data: the index, its copy, the list of unfinished files, the side databases, the
    /// history; and directories.
    func countIndex() {
        core.ledger.diskReserve.keep()
        let directory = core.configuration.directory
        let databases = [StoreConfiguration.downloads(in: directory), StoreConfiguration.feeds(in: directory)]
        let files =
            databases.flatMap(FileSystem.databaseFiles) + [
                StoreConfiguration.history(in: directory), core.files.unfinished.path, core.ledger.diskReserve.path,
            ]
        core.ledger.setIndex(
            bytes: core.index.database.allocatedBytes + (pins.copy?.database.allocatedBytes ?? 0)
                + files.reduce(0) { $0 + FileSystem.allocatedBytes($1) } + core.files.directoryBytes)
    }
}
