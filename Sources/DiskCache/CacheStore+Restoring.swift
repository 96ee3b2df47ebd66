import CachePolicy

/// What of a resource is there before something is fetched for its own sake.
package struct FormerContent: Sendable, Equatable {
    /// One generation: the resource's own, or one of those that its origin chooses by other request fields.
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

    /// Whether the resource itself was pinned, also where nothing of it was there.
    package let isPinned: Bool
    package let parts: [Part]

    package init(isPinned: Bool, parts: [Part]) { (self.isPinned, self.parts) = (isPinned, parts) }
}

/// What downloads need of the store. All of it blocks, like what people ask for.
extension CacheStore {
    /// The database of downloads, whose size counts as the index's does.
    package static func downloads(in directory: String) -> String { directory + "/downloads.sqlite" }

    /// Counts the files beside the data anew, as it is done each second.
    package func countIndexNow() { queue.sync { countIndex() } }

    /// Has the index told of a generation's chunks before much has come, or no longer: less is fetched again after a
    /// kill.
    package func savesSoon(_ generation: Generation, _ isWanted: Bool) {
        generation.state.withLock { $0.eager += isWanted ? 1 : -1 }
    }

    /// How many bytes more of a resource could be in the cache at most, if all else went that is not pinned.
    package func room(for key: CacheKey) throws(StoreError) -> Int64 {
        let own = try index.resource(key).map { $0.isPinned ? 0 : $0.cached } ?? 0
        return ledger.attainable(beside: try index.pinnedBytes() + own)
    }

    /// Makes what is present of a range of a generation durable, notes that its resource was downloaded, and pins it if
    /// that is wanted.
    /// - Parameter isWanted: asked when everything before is done.
    /// - Throws: where the index could not be told of it.
    package func settle(_ range: Range<Int64>, of generation: Generation, isPinned: Bool, isWanted: () -> Bool)
        throws(StoreError)
    {
        queue.sync { checkpoint() }
        guard !generation.hasUnsaved(in: range) else {
            throw .index(detail: "what was fetched could not be saved; the log says why")
        }
        guard generation.length != 0, isWanted() else { return }
        let noted: Result<Void, StoreError> = queue.sync {
            Result { () throws(StoreError) in
                try index.setDownloaded(generation.key)
                try pins.setDownloaded(generation.key)
                try noteKept(generation.key)
            }
        }
        try noted.get()
        if isPinned { _ = try setPinned(true, generation.key) }
    }

    /// What is there of a resource now.
    package func content(of key: CacheKey) throws(StoreError) -> FormerContent {
        queue.sync { checkpoint(touchesToo: true) }
        var parts: [FormerContent.Part] = []
        for key in try [key] + index.variants(of: key) {
            guard let row = try index.generation(of: key), let extents = try index.extents(of: row),
                let resource = try index.resource(key)
            else { continue }
            parts.append(
                FormerContent.Part(
                    generation: row.id.description, isPinned: resource.isPinned, hits: resource.hits,
                    present: row.presentRanges(of: extents)))
        }
        return FormerContent(isPinned: try index.resource(key)?.isPinned ?? false, parts: parts)
    }

    /// Removes what was not there before, by whole extents, unless a player has it in hand or has had it meanwhile; and
    /// unpins what was not pinned.
    /// - Returns: the bytes freed.
    package func restore(_ former: FormerContent, of key: CacheKey) throws(StoreError) -> Int64 {
        var freed: Int64 = 0
        for variant in try [key] + index.variants(of: key) {
            let ids = try index.identifiers(of: variant)
            let part = former.parts.first { part in ids.contains { $0.description == part.generation } }
            // Before it goes: its pin would stay, and what is played later be kept for that.
            if !(part?.isPinned ?? (variant == key && former.isPinned)) { _ = try setPinned(false, variant) }
            let outcome: Result<Int64, StoreError> = queue.sync {
                do throws(StoreError) { return .success(try restore(part, variant)) } catch { return .failure(error) }
            }
            freed += try outcome.get()
        }
        return freed
    }

    /// On `queue` only.
    private func restore(_ part: FormerContent.Part?, _ key: CacheKey) throws(StoreError) -> Int64 {
        checkpoint(touchesToo: true)
        defer {
            closeUnused()
            countIndex()
        }
        guard try index.resource(key)?.hits ?? 0 <= part?.hits ?? 0 else { return 0 }
        var freed: Int64 = 0
        for id in try index.identifiers(of: key) where registry.withLock({ $0.open[id]?.isBeingRead != true }) {
            if let part, part.generation == id.description {
                freed += try evictNews(of: id, since: part)
            } else {
                let removed = removeGenerations([id])
                freed += removed.freed + removed.later
            }
        }
        return freed
    }

    private func evictNews(of id: GenerationID, since former: FormerContent.Part) throws(StoreError) -> Int64 {
        guard punchesHoles, let row = try index.generation(id), let extents = try index.extents(of: row) else {
            return 0
        }
        let news = extents.filter { extent in
            let bytes = row.geometry.extentBytes(extent.ordinal, length: row.length)
            return !former.present.contains { $0.overlaps(bytes) }
        }
        let victims = news.map {
            CacheIndex.Victim(
                generation: id, ordinal: $0.ordinal, lastAccess: $0.lastAccess, present: $0.present, length: row.length,
                geometry: row.geometry)
        }
        guard let freed = evict(victims, upTo: .max) else {
            throw .index(detail: "what a download has left could not be removed; the log says why")
        }
        return freed
    }
}

extension Generation {
    /// Whether it is being given to a player.
    var isBeingRead: Bool { state.withLock { $0.readers > 0 } }

    /// Whether the index does not know of all that is present of a range.
    func hasUnsaved(in range: Range<Int64>) -> Bool {
        guard !range.isEmpty else { return false }
        let chunks = geometry.chunks(touching: range)
        return state.withLock { state in
            !state.isIndexed
                || state.extents.entries.contains { $0.1.unsaved.bits & geometry.mask(of: chunks, inExtent: $0.0) != 0 }
        }
    }

    /// Whether it is to be saved soon.
    var isEager: Bool { state.withLock { $0.eager > 0 } }
}
