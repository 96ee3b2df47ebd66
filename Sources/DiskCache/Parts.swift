import CachePolicy
import HTTPModel

/// Operations on all parts of a presentation.
///
/// They work a page at a time, so that transactions stay small and others get their turn on the queue. They block, like
/// other commands.
package struct Parts: Sendable {
    let core: StoreCore
    let queue: StoreQueue

    // MARK: Looking up

    /// The most parts to list: as many as a playlist may list, plus what belongs to it.
    private static let most = 1_000_000

    /// The cached parts of a presentation, in the order in which they became known. At most 1,000,000, of some 200
    /// bytes each.
    package func cached(of whole: CacheKey) throws(StoreError) -> [IndexParts.Part] {
        queue.sync { $0.checkpointer.checkpoint(.all) }
        var (parts, place) = ([IndexParts.Part](), 0 as Int64)
        while parts.count < Self.most {
            let page = try core.index.parts.page(of: whole, after: place, limit: 4096)
            guard let last = page.last else { break }
            place = last
            parts += page.parts.lazy.filter { $0.generation != nil }
        }
        return parts
    }

    /// Whether a resource has parts.
    package func areKnown(of key: CacheKey) throws(StoreError) -> Bool {
        try core.index.parts.page(of: key, after: 0, limit: 1).last != nil
    }

    /// Whether a resource, or a part of it, is being sent to a player at this moment.
    package func isBeingRead(_ key: CacheKey) throws(StoreError) -> Bool {
        let keys = Set(try [key] + core.index.rows.variants(of: key))
        return core.open.all.contains { generation in
            (keys.contains(generation.key) || generation.whole == key) && generation.isBeingRead
        }
    }

    /// Makes cached resources parts of a presentation. If one of them has parts itself, these move along, so that no
    /// part ever has parts; if the presentation is a part itself, its whole takes the parts. Resources that are not
    /// cached are skipped, as is the presentation itself.
    /// - Parameter whole: the cache key of the presentation's first playlist.
    package func join(_ keys: [CacheKey], to whole: CacheKey) throws(StoreError) {
        for start in stride(from: 0, to: keys.count, by: IndexParts.pageSize) {
            let some = Array(keys[start..<min(start + IndexParts.pageSize, keys.count)])
            try queue.sync { work throws(StoreError) in try work.joiner.join(some, to: whole) }
        }
    }

    // MARK: Changing all

    /// The number of changed parts, and the bytes freed on the disk.
    struct Sum: Sendable {
        var count = 0
        var bytes: Int64 = 0
    }

    /// Calls `body` with each page of a presentation's parts, on the store's queue.
    private func visit(_ whole: CacheKey, _ body: ([IndexParts.Part], StoreWork) throws(StoreError) -> Sum)
        throws(StoreError) -> Sum
    {
        var (sum, place) = (Sum(), 0 as Int64)
        while !core.isEnding {
            let from = place
            let (done, next) = try queue.sync { work throws(StoreError) -> (Sum, Int64?) in
                let page = try core.index.parts.page(of: whole, after: from)
                let sum = try page.parts.isEmpty ? Sum() : body(page.parts, work)
                return (sum, page.last)
            }
            sum.count += done.count
            sum.bytes +|= done.bytes
            guard let next else { break }
            place = next
        }
        return sum
    }

    /// Includes parts that already have the flag: a crash between two transactions may have left their extents
    /// unchanged.
    /// - Parameter isWanted: called for each page, on the queue; false skips it.
    /// - Returns: the number of parts.
    func setPinned(_ isPinned: Bool, of whole: CacheKey, isWanted: () -> Bool) throws(StoreError) -> Int {
        let sum = try visit(whole) { page, work throws(StoreError) in
            guard isWanted() else { return Sum() }
            try setPinned(isPinned, page, work)
            return Sum(count: page.count)
        }
        queue.sync { $0.checkpointer.countIndex() }
        return sum.count
    }

    /// Parts that another presentation pins, too, stay pinned.
    private func setPinned(_ isPinned: Bool, _ parts: [IndexParts.Part], _ work: StoreWork) throws(StoreError) {
        let parts = isPinned ? parts : parts.filter { !$0.isPinnedElsewhere }
        guard !parts.isEmpty else { return }
        let keys = parts.map(\.key)
        // In this order, the copy never has a pin that the index lacks.
        if !isPinned { try work.pins.remove(keys) }
        try core.index.parts.setPinned(isPinned, parts)
        if isPinned { return try work.joiner.notePinned(keys) }
        try work.noteKept(keys)
    }

    /// Counts all parts as read now.
    func touch(of whole: CacheKey) throws(StoreError) {
        _ = try visit(whole) { page, _ throws(StoreError) in
            let now = AccessClock.now()
            for part in page { core.open.newest(of: part.key)?.withChunks { $0.touchAll(at: now) } }
            try core.index.parts.touch(page, at: now)
            return Sum(count: page.count)
        }
    }

    /// Removes all parts, pinned or not, but for those that another presentation keeps.
    /// - Returns: their number and disk usage.
    func remove(of whole: CacheKey, isDryRun: Bool) throws(StoreError) -> Sum {
        try visit(whole) { page, work throws(StoreError) in
            let page = Dictionary(grouping: page, by: \.isKeptElsewhere), own = page[false] ?? []
            let ids = own.compactMap(\.generation)
            guard !isDryRun else { return Sum(count: ids.count, bytes: try core.index.rows.taken(by: ids)) }
            let others = page[true] ?? []
            try setPinned(false, (own + others).filter(\.isPinned), work)
            try leave(others, of: whole)
            let removed = work.remover.remove(ids)
            try core.index.removal.remove(own.filter { $0.generation == nil }.map(\.key))
            // New versions of them that are not whole, too.
            core.listeners.notifyChangedByHand(Set(own.map(\.key)))
            return Sum(count: removed.count, bytes: removed.freed + removed.later)
        }
    }

    /// Leaves parts to the other presentations that keep them.
    private func leave(_ parts: [IndexParts.Part], of whole: CacheKey) throws(StoreError) {
        guard !parts.isEmpty else { return }
        for (key, whole) in try core.index.parts.leave(parts, of: whole) {
            if let whole { core.open.newest(of: key)?.setWhole(whole) }
        }
    }

    // MARK: Demoting

    /// Has resources evicted before anything else that is not pinned, until they are read again.
    package func demote(_ keys: [CacheKey]) throws(StoreError) {
        for start in stride(from: 0, to: keys.count, by: IndexParts.pageSize) {
            let some = Array(keys[start..<min(start + IndexParts.pageSize, keys.count)])
            try queue.sync { work throws(StoreError) in
                // Save earlier reads first: saved later, they would undo this.
                work.checkpointer.checkpoint(.all)
                try core.index.parts.demote(some)
            }
        }
    }

    // MARK: Restore points

    /// The content of the parts for a restore point: at most `RestorePoint.mostParts`.
    func content(of whole: CacheKey) throws(StoreError) -> (parts: [RestorePoint.Former], hasMore: Bool) {
        var (parts, place) = ([RestorePoint.Former](), 0 as Int64)
        while true {
            let page = try core.index.parts.page(of: whole, after: place, limit: 1024)
            guard let last = page.last else { return (parts, false) }
            place = last
            for part in page.parts {
                guard parts.count < RestorePoint.mostParts else { return (parts, true) }
                if let former = try former(part) { parts.append(former) }
            }
        }
    }

    private func former(_ part: IndexParts.Part) throws(StoreError) -> RestorePoint.Former? {
        guard let id = part.generation else { return nil }
        var present = [0..<part.length]
        if part.cached < part.length {
            guard let row = try core.index.rows.generation(id), let extents = try core.index.rows.extents(of: row)
            else { return nil }
            present = row.presentRanges(of: extents)
        }
        return RestorePoint.Former(id, present, hits: part.hits, isPinned: part.isPinned, part: part.id)
    }

    /// - Returns: the bytes freed.
    func restore(_ point: RestorePoint, of whole: CacheKey) throws(StoreError) -> Int64 {
        let known = Dictionary(point.former.map { ($0.generation, $0) }) { first, _ in first }
        // What was pinned cannot be restored if it was renewed meanwhile: its next version stays.
        let pinned = Set(point.former.compactMap { $0.isPinned ? $0.part : nil })
        var grown: [(CacheKey, GenerationID, RestorePoint.Former)] = []
        var freed = try visit(whole) { page, work throws(StoreError) in
            work.checkpointer.checkpoint(.all)
            if try work.hasPinned(since: point) { return Sum() }
            let listed = page.compactMap { part in
                part.generation.map { (part: part, id: $0, former: known[$0.description]) }
            }.filter { $0.former != nil || point.hasMoreParts != true && !pinned.contains($0.part.id) }
            let unpinned = listed.filter { $0.part.isPinned && !($0.former?.isPinned ?? point.wasPinned) }
            // Unpin before removing: a pin would outlive the generation.
            try setPinned(false, unpinned.map(\.part), work)
            try leave(listed.filter { $0.former == nil && $0.part.isKeptElsewhere }.map(\.part), of: whole)
            let unused = listed.filter {
                $0.part.hits <= $0.former?.hits ?? 0 && !$0.part.isKeptElsewhere
                    && core.open[$0.id]?.isBeingRead != true
            }
            let removed = work.remover.remove(unused.filter { $0.former == nil }.map(\.id))
            for case (let part, let id, let former?) in unused where former.present != [0, part.length] {
                grown.append((part.key, id, former))
            }
            work.closer.closeUnused()
            return Sum(count: removed.count, bytes: removed.freed + removed.later)
        }.bytes
        for (key, id, former) in grown {
            freed +|= try stepwise.evict(id) {
                !former.overlaps($0)
            } unless: { work throws(StoreError) in
                if try work.hasPinned(since: point) { return true }
                return try work.isWanted(key, sinceHits: former.hits, wasPinned: former.isPinned)
            }
        }
        return freed
    }
}
