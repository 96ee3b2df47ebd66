import CachePolicy
import HTTPModel

/// Removes the resources of a selection, a page at a time, so that others get their turn on the queue. Runs once.
struct SelectionRemoval {
    private let selection: RemovalSelection
    private let isDryRun: Bool
    private let store: CacheStore
    private var sum: RemovalReport
    private var parts = 0

    init(_ selection: RemovalSelection, isDryRun: Bool, _ store: CacheStore) {
        (self.selection, self.isDryRun, self.store) = (selection, isDryRun, store)
        sum = RemovalReport(resources: 0, bytes: 0, pinned: 0, isDryRun: isDryRun)
    }

    /// - Parameter isNeeded: returns whether a pinned resource has to stay.
    mutating func run(unless isNeeded: (CacheKey) -> Bool) throws(StoreError) -> RemovalReport {
        let readBefore = selection.before.map { $0 *| 1_000_000 }
        var place: Int64 = 0
        while !store.core.isEnding {
            let page = try store.core.index.listing.page(
                after: place, readBefore: readBefore, isPlayed: selection.isPlayed, limit: 256)
            guard let last = page.last else { break }
            place = last.resource
            for whole in page where whole.isPinned && !whole.isPart {
                if selection.includesPinned, !isNeeded(whole.key) { try remove(whole.key) } else { sum.pinned += 1 }
            }
            let others = page.filter { !$0.isPinned }
            let removed = try remove(others.filter { !$0.isPart })
            let removedParts = try remove(others.filter(\.isPart))
            (sum.resources, parts) = (sum.resources + removed, parts + removedParts)
        }
        sum.parts = parts > 0 ? parts : nil
        return sum
    }

    /// Its variants are rows of their own.
    private mutating func remove(_ whole: CacheKey) throws(StoreError) {
        let report = try store.remove(whole, withVariants: false, isDryRun: isDryRun)
        (sum.resources, sum.bytes) = (sum.resources + 1, sum.bytes +| (report?.bytes ?? 0))
        parts += report?.parts ?? 0
    }

    /// - Returns: how many were removed.
    private mutating func remove(_ some: [IndexListing.Listed]) throws(StoreError) -> Int {
        let ids = some.map(\.generation)
        guard !ids.isEmpty else { return 0 }
        guard !isDryRun else {
            sum.bytes +|= try store.core.index.rows.taken(by: ids)
            return ids.count
        }
        var (long, short) = ([IndexListing.Listed](), [GenerationID]())
        for listed in some {
            if try store.parts.stepwise.isLong(listed.generation) {
                long.append(listed)
            } else {
                short.append(listed.generation)
            }
        }
        let removed = store.queue.sync { [short] in $0.removal(of: short) }
        sum.bytes +|= removed.bytes
        var count = removed.resources
        for listed in long { count += try removeLong(listed) }
        return count
    }

    /// It takes long, so somebody may pin it, or others before it, meanwhile.
    private mutating func removeLong(_ listed: IndexListing.Listed) throws(StoreError) -> Int {
        let pins = store.core.index.pins
        let isPinned = { (_: StoreWork) throws(StoreError) in try pins.kept(listed.key).isPinned }
        sum.bytes +|= try store.parts.stepwise.evict(listed.generation, leavesRest: true, unless: isPinned)
        let removed = try store.queue.sync { work throws(StoreError) in
            try isPinned(work) ? nil : work.removal(of: [listed.generation])
        }
        sum.bytes +|= removed?.bytes ?? 0
        return removed?.resources ?? 0
    }
}
