import CachePolicy
import HTTPModel

/// The content of a resource before a download fetches more of it.
package struct FormerContent: Sendable, Equatable {
    /// One generation: the resource's own, or that of a variant or a part.
    package struct Part: Sendable, Equatable {
        package let generation: String
        package let isPinned: Bool
        /// Requests answered from it until then.
        package let hits: Int64
        package let present: [Range<Int64>]

        package init(generation: String, isPinned: Bool, hits: Int64, present: [Range<Int64>]) {
            (self.generation, self.isPinned, self.hits, self.present) = (generation, isPinned, hits, present)
        }
    }

    /// Whether the resource itself was pinned, even if nothing of it was cached.
    package let isPinned: Bool
    /// Includes the parts of a presentation.
    package let parts: [Part]
    /// Whether a presentation had more parts than are listed: then a part that is not listed is never removed.
    package let hasMoreParts: Bool

    package init(isPinned: Bool, parts: [Part], hasMoreParts: Bool = false) {
        (self.isPinned, self.parts, self.hasMoreParts) = (isPinned, parts, hasMoreParts)
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
    package func content(of key: CacheKey) throws(StoreError) -> FormerContent {
        queue.sync { $0.checkpointer.checkpoint(.all) }
        var own: [FormerContent.Part] = []
        for key in try [key] + core.index.rows.variants(of: key) {
            guard let row = try core.index.rows.generation(of: key), let extents = try core.index.rows.extents(of: row),
                let resource = try core.index.listing.own(key)
            else { continue }
            own.append(
                FormerContent.Part(
                    generation: row.id.description, isPinned: resource.isPinned, hits: resource.hits,
                    present: row.presentRanges(of: extents)))
        }
        let more = try parts.content(of: key)
        return FormerContent(
            isPinned: try core.index.pins.kept(key).isPinned, parts: own + more.parts, hasMoreParts: more.hasMore)
    }

    /// Restores earlier content: removes whatever came later, by whole extents, unless a player reads it or has read it
    /// meanwhile, and unpins what was not pinned.
    /// - Returns: the bytes freed.
    package func restore(_ former: FormerContent, of key: CacheKey) throws(StoreError) -> Int64 {
        var freed: Int64 = 0
        for variant in try [key] + core.index.rows.variants(of: key) {
            let ids = try core.index.rows.identifiers(of: variant)
            let part = former.parts.first { part in ids.contains { $0.description == part.generation } }
            // Unpin first: the pin would outlive the generation, and keep what is played later.
            if !(part?.isPinned ?? (variant == key && former.isPinned)) {
                _ = try queue.sync { work throws(StoreError) in try work.setPinned(false, variant) }
            }
            freed += try queue.sync { work throws(StoreError) in try restore(part, variant, work) }
        }
        return try freed +| parts.restore(former, of: key, evictNews: evictNews)
    }

    private func restore(_ part: FormerContent.Part?, _ key: CacheKey, _ work: StoreWork) throws(StoreError) -> Int64 {
        work.checkpointer.checkpoint(.all)
        defer {
            work.closer.closeUnused()
            work.checkpointer.countIndex()
        }
        guard try core.index.listing.own(key)?.hits ?? 0 <= part?.hits ?? 0 else { return 0 }
        var freed: Int64 = 0
        for id in try core.index.rows.identifiers(of: key) where core.open[id]?.isBeingRead != true {
            if let part, part.generation == id.description {
                freed += try evictNews(id, part, work)
            } else {
                let removed = work.remover.remove([id])
                freed += removed.freed + removed.later
            }
        }
        return freed
    }

    private func evictNews(_ id: GenerationID, _ former: FormerContent.Part, _ work: StoreWork)
        throws(StoreError) -> Int64
    {
        guard core.files.punchesHoles, let row = try core.index.rows.generation(id),
            let extents = try core.index.rows.extents(of: row)
        else { return 0 }
        let news = extents.filter { extent in
            let bytes = row.geometry.extentBytes(extent.ordinal, length: row.length)
            return !former.present.contains { $0.overlaps(bytes) }
        }
        let victims = news.map {
            EvictionOrder.Victim(
                generation: id, ordinal: $0.ordinal, lastAccess: $0.lastAccess, present: $0.present, length: row.length,
                geometry: row.geometry)
        }
        let (freed, hasFailed) = work.evictor.evict(victims, upTo: .max)
        if hasFailed { throw .index(detail: "the rest of a download could not be removed: see the log") }
        return freed
    }
}
