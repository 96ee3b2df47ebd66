import CachePolicy
import HTTPModel

/// Resources of an archive of which everything has come, or all that will. They become visible together, with one
/// checkpoint.
struct ArchivePublication {
    private var items: [Item] = []
    private var bytes: Int64 = 0
    /// What was pinned or downloaded where the archive is from.
    private var kept: [(key: CacheKey, kept: CacheIndex.Kept)] = []

    private struct Item {
        let resource: ArchivedResource
        let generation: Generation
        let replaced: GenerationID?
        let bytes: Int64
        /// Whether the archive ended before the rest came.
        let isPart: Bool
    }

    /// Many open files, or bytes that a kill would lose.
    var isLarge: Bool { items.count >= 64 || bytes >= 64 << 20 || kept.count >= 1024 }

    func names(_ key: CacheKey) -> Bool { items.contains { $0.resource.key == key } }

    mutating func add(
        _ resource: ArchivedResource, _ generation: Generation, replaced: GenerationID?, bytes: Int64,
        isPart: Bool = false
    ) {
        items.append(
            Item(resource: resource, generation: generation, replaced: replaced, bytes: bytes, isPart: isPart))
        self.bytes +|= bytes
    }

    /// Notes whether a resource, of which the archive's version is cached, was pinned or downloaded there.
    mutating func keep(_ resource: ArchivedResource) { kept.append((resource.key, resource.kept)) }

    /// - Throws: if they could not be saved; they are discarded then.
    mutating func publish(_ store: CacheStore, _ report: inout ArchiveReport) throws(StoreError) {
        guard !items.isEmpty else { return }
        let outcomes = store.queue.sync { work in reveal(store, work) }
        for (item, outcome) in zip(items, outcomes) {
            switch outcome {
            case .saved where item.isPart: break
            case .saved where item.replaced == nil: report.added += 1
            case .saved: report.replaced += 1
            case .changed: report.kept += 1
            case .failed: break
            }
            guard outcome == .saved else {
                store.retire(item.generation)
                continue
            }
            report.bytes +|= item.bytes
            // What is cached in its place is another version, of which the archive says nothing.
            if !item.isPart { keep(item.resource) }
        }
        guard !outcomes.contains(.failed) else {
            throw .index(detail: "the import could not be saved: see the log")
        }
    }

    private enum Outcome {
        case saved
        /// What is cached has changed since the resource began to arrive.
        case changed
        case failed
    }

    /// On the store's queue.
    private func reveal(_ store: CacheStore, _ work: StoreWork) -> [Outcome] {
        let core = store.core
        let previous = items.map { core.open.newest(of: $0.generation.key) }
        let areCurrent = items.indices.map { place in
            let indexed = try? core.index.rows.generation(of: items[place].generation.key)?.id
            return (previous[place]?.id ?? indexed) == items[place].replaced
        }
        for (item, isCurrent) in zip(items, areCurrent) where isCurrent {
            item.generation.reveal()
            _ = core.unsaved.add(item.generation)
            core.open.setNewest(item.generation.id, of: item.generation.key)
        }
        work.checkpointer.checkpoint()
        return items.indices.map { place in
            let generation = items[place].generation
            guard areCurrent[place] else { return .changed }
            // no trap: at least 1
            guard !generation.hasUnsaved(in: 0..<max(1, generation.length ?? 1)) else {
                core.open.setNewest(previous[place]?.id, of: generation.key)
                return .failed
            }
            if let previous = previous[place] { store.retire(previous) }
            core.listeners.tellChanged(generation.key, previous[place])
            return .saved
        }
    }

    /// Pins what was pinned, and marks what was downloaded.
    func keep(_ administration: Administration) throws(StoreError) {
        try administration.setDownloaded(kept.filter(\.kept.isDownloaded).map(\.key))
        for (key, kept) in kept where kept.isPinned { _ = try administration.setOwnPinned(true, key) }
    }
}
