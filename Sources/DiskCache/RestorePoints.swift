import CachePolicy
import GRDB
import HTTPModel

/// What was cached of a resource before a download. Stored with the download.
package struct RestorePoint: Codable, Sendable, Equatable {
    /// A generation that was cached: the resource's own, or that of a variant or a part.
    package struct Former: Codable, Sendable, Equatable {
        package var generation: String
        /// The first and the past-the-last byte of each present run, one after the other.
        package var present: [Int64]
        /// Requests answered from it until then.
        package var hits: Int64
        package var isPinned: Bool
        /// The cache key of the resource or variant, which outlives the generation; nil for a part, whose key is long
        /// for one of thousands.
        package var key: String?
        /// The row of a part's resource, which outlives the generation; nil for others, and in earlier versions.
        package var part: Int64?

        package init(generation: String, present: [Int64], hits: Int64, isPinned: Bool = false) {
            (self.generation, self.present, self.hits, self.isPinned) = (generation, present, hits, isPinned)
        }

        init(
            _ id: GenerationID, _ present: [Range<Int64>], hits: Int64, isPinned: Bool, key: CacheKey? = nil,
            part: Int64? = nil
        ) {
            self.init(
                generation: id.description, present: present.flatMap { [$0.lowerBound, $0.upperBound] }, hits: hits,
                isPinned: isPinned)
            (self.key, self.part) = (key?.text, part)
        }

        func overlaps(_ bytes: Range<Int64>) -> Bool {
            stride(from: 0, to: present.count - 1, by: 2).contains {
                max(present[$0], bytes.lowerBound) < min(present[$0 + 1], bytes.upperBound)
            }
        }
    }

    /// The resource's cache key.
    package var key: String
    /// Whether the resource itself was pinned, even if nothing of it was cached.
    package var wasPinned: Bool
    /// Includes variants, and the parts of a presentation.
    package var former: [Former]
    /// Whether a presentation had more parts than are listed: then a part that is not listed is never removed. nil for
    /// false.
    package var hasMoreParts: Bool?

    package init(key: String, wasPinned: Bool, former: [Former], hasMoreParts: Bool = false) {
        (self.key, self.wasPinned, self.former) = (key, wasPinned, former)
        self.hasMoreParts = hasMoreParts ? true : nil
    }

    /// The most parts to record, at a few hundred bytes each. When a download of a film with more segments is
    /// cancelled, its parts beyond these stay.
    static let mostParts = 10_000
}

/// Records the content of a resource, and restores it. Blocks, like other commands.
package struct RestorePoints: Sendable {
    let core: StoreCore
    let queue: StoreQueue
    let parts: Parts

    /// The current content of a resource.
    package func point(of key: CacheKey) throws(StoreError) -> RestorePoint {
        queue.sync { $0.checkpointer.checkpoint(.all) }
        var own: [RestorePoint.Former] = []
        for key in try [key] + core.index.rows.variants(of: key) {
            guard let row = try core.index.rows.generation(of: key), let extents = try core.index.rows.extents(of: row),
                let resource = try core.index.listing.own(key)
            else { continue }
            own.append(
                RestorePoint.Former(
                    row.id, row.presentRanges(of: extents), hits: resource.hits, isPinned: resource.isPinned, key: key))
        }
        let more = try parts.content(of: key)
        return RestorePoint(
            key: key.text, wasPinned: try core.index.pins.kept(key).isPinned, former: own + more.parts,
            hasMoreParts: more.hasMore)
    }

    /// Restores earlier content: removes whatever came later, by whole extents, unless a player reads it or has read it
    /// meanwhile, and unpins what was not pinned. What a person has pinned meanwhile stays as it is.
    /// - Returns: the bytes freed.
    package func restore(_ point: RestorePoint) throws(StoreError) -> Int64 {
        let key = CacheKey(text: point.key)
        // The requests of all that is open and was closed, for `isWanted`.
        queue.sync { $0.checkpointer.checkpoint(.all) }
        var freed: Int64 = 0
        for variant in try [key] + core.index.rows.variants(of: key) {
            let ids = try core.index.rows.identifiers(of: variant)
            let part = point.former.first { part in ids.contains { $0.description == part.generation } }
            // Another version may have replaced it. The requests that it answered are the resource's.
            let former = part ?? point.former.first { $0.key == variant.text }
            let wasPinned = former?.isPinned ?? (variant == key && point.wasPinned)
            // What was pinned cannot be restored: its next version stays.
            if part == nil, wasPinned { continue }
            // Unpin first: the pin would outlive the generation, and keep what is played later.
            let isKept = try queue.sync { work throws(StoreError) in
                if try work.hasPinned(since: point) { return true }
                if !wasPinned { _ = try work.setPinned(false, variant) }
                return false
            }
            guard !isKept else { return freed }
            freed +|= try restore(part, variant, wasPinned: wasPinned, hits: former?.hits ?? 0)
        }
        return try freed +| parts.restore(point, of: key)
    }

    private func restore(
        _ part: RestorePoint.Former?, _ key: CacheKey, wasPinned: Bool, hits: Int64
    ) throws(StoreError) -> Int64 {
        let isWanted = { (work: StoreWork) throws(StoreError) in
            try work.isWanted(key, sinceHits: hits, wasPinned: wasPinned)
        }
        let ids = try queue.sync { work throws(StoreError) in
            try isWanted(work) ? [] : core.index.rows.identifiers(of: key)
        }
        var freed: Int64 = 0
        for id in ids {
            if let part, part.generation == id.description {
                freed +|= try parts.stepwise.evict(id, where: { !part.overlaps($0) }, unless: isWanted)
            } else {
                freed +|= try parts.stepwise.evict(id, leavesRest: true, unless: isWanted)
            }
        }
        let news = ids.filter { $0.description != part?.generation }
        return try queue.sync { work throws(StoreError) in
            defer {
                work.closer.closeUnused()
                work.checkpointer.countIndex()
            }
            guard try !isWanted(work) else { return freed }
            let removed = work.remover.remove(news.filter { core.open[$0]?.isBeingRead != true })
            return freed +| (removed.freed + removed.later)
        }
    }

    // MARK: Orders

    /// Notes what the order of a resource said of it.
    /// - Parameters:
    ///   - title: what its feed or playlist calls it; nil leaves it as it is, as with `category`.
    ///   - isByHand: whether a person ordered it to stay.
    package func noteOrder(title: String?, category: String?, isByHand: Bool, of key: CacheKey) throws(StoreError) {
        try core.index.database.write { db in
            try db.execute(
                sql: """
                    UPDATE resource SET title = coalesce(?, title), category = coalesce(?, category),
                        by_hand = by_hand OR (? AND pinned) WHERE key = ?
                    """, arguments: [title?.beginning(500), category, isByHand, key.text])
        }
        if isByHand { try queue.sync { work throws(StoreError) in try work.copyPin(of: key) } }
    }

    /// Whether a person pinned a resource, or ordered it to stay.
    package func isByHand(_ key: CacheKey) throws(StoreError) -> Bool { try core.index.pins.kept(key).isByHand }

    /// The pinned resources that people miss least: those that were played first, then those that were read longest
    /// ago.
    package func leastMissed(limit: Int) throws(StoreError) -> [CachedResource] {
        try core.index.listing.leastMissed(limit: limit)
    }
}
