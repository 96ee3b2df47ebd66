import CachePolicy
import HTTPModel

/// Evicts extents of a generation that nobody wants any more, some in each turn of the store's queue, so that others
/// get their turns in between. After a crash, or the end of the store, those of later turns are still cached.
struct StepwiseEviction: Sendable {
    let core: StoreCore
    let queue: StoreQueue
    private static let extentsAtOnce = 32
    /// `next` is the ordinal with which to continue; nil at the end.
    private typealias Step = (freed: Int64, hasFailed: Bool, next: Int?)

    /// Ends early once a player reads the generation. Blocks.
    /// - Parameters:
    ///   - leavesRest: whether the caller removes the generation with its last extents: most have no others.
    ///   - isUnwanted: whether an extent with these bytes goes.
    ///   - isNeeded: asked in each turn; true ends it early.
    /// - Returns: the bytes freed.
    func evict(
        _ id: GenerationID, leavesRest: Bool = false, where isUnwanted: (Range<Int64>) -> Bool = { _ in true },
        unless isNeeded: (StoreWork) throws(StoreError) -> Bool = { _ in false }
    ) throws(StoreError) -> Int64 {
        // Damaged rows are removed as a whole.
        guard let row = try? core.index.rows.generation(id) else { return 0 }
        var (freed, next) = (0 as Int64, Int?.some(0))
        while let ordinal = next, core.files.punchesHoles {
            if leavesRest, try !isLong(id, from: ordinal) { break }
            let done = try queue.sync { work throws(StoreError) -> Step in
                if ordinal > 0, core.isEnding { throw .closing }
                try core.checkPlace()
                return try isNeeded(work) ? (0, false, nil) : evict(row, from: ordinal, isUnwanted, work)
            }
            freed +|= done.freed
            next = done.next
            // Whoever removes the generation frees what cannot be punched.
            if done.hasFailed, leavesRest { break }
            if done.hasFailed { throw .index(detail: "a part of \(row.key.text) could not be removed: see the log") }
        }
        return freed
    }

    /// Removes a resource, perhaps with its variants, but without parts. If that does not come to its end, what is left
    /// of it is not pinned.
    /// - Returns: nil if nothing of it is cached.
    func remove(_ key: CacheKey, withVariants: Bool, isDryRun: Bool) throws(StoreError) -> RemovalReport? {
        var freed: Int64 = 0
        for key in try isDryRun ? [] : [key] + (withVariants ? core.index.rows.variants(of: key) : []) {
            for id in try core.index.rows.identifiers(of: key) where try isLong(id) {
                _ = try queue.sync { work throws(StoreError) in try work.setPinned(false, key) }
                freed +|= try evict(id, leavesRest: true)
            }
        }
        var report = try queue.sync { work throws(StoreError) in
            try work.remove(key, withVariants: withVariants, isDryRun: isDryRun)
        }
        report?.bytes +|= freed
        return report
    }

    /// Whether a generation has more extents, from one on, than go in one turn.
    func isLong(_ id: GenerationID, from ordinal: Int = 0) throws(StoreError) -> Bool {
        guard core.files.punchesHoles else { return false }
        return try core.index.rows.hasExtents(of: id, from: ordinal, beyond: Self.extentsAtOnce)
    }

    private func evict(
        _ row: IndexRows.GenerationRow, from ordinal: Int, _ isUnwanted: (Range<Int64>) -> Bool, _ work: StoreWork
    ) throws(StoreError) -> Step {
        guard core.open[row.id]?.isBeingRead != true else { return (0, false, nil) }
        // Read in the turn in which they go: meanwhile, some may have been evicted, and others filled.
        let (extents, areLast) = try core.index.rows.extents(of: row, from: ordinal, limit: Self.extentsAtOnce)
        let victims = extents.filter { isUnwanted(row.geometry.extentBytes($0.ordinal, length: row.length)) }.map {
            EvictionOrder.Victim(
                generation: row.id, ordinal: $0.ordinal, lastAccess: $0.lastAccess, present: $0.present,
                length: row.length, geometry: row.geometry)
        }
        let done = work.evictor.evict(victims, upTo: .max)
        // no trap: an ordinal is below 2^30
        return (done.freed, done.hasFailed, areLast ? nil : extents.last.map { $0.ordinal + 1 })
    }
}

extension Parts {
    var stepwise: StepwiseEviction { StepwiseEviction(core: core, queue: queue) }
}
