import CachePolicy
import HTTPModel

/// What people see and steer of a cache. All of it blocks: not for loops (`perform`), nor for the store's own threads.
extension CacheStore {
    package func report() throws(StoreError) -> CacheReport { try administration.report() }

    package func resources(_ query: ResourceQuery) throws(StoreError) -> ResourceListing {
        try administration.resources(query)
    }

    /// - Returns: nil where nothing of it is cached.
    package func resource(_ key: CacheKey) throws(StoreError) -> ResourceDetail? { try administration.resource(key) }

    /// Whether all of a resource is cached at this moment, without waiting for a checkpoint.
    package func isComplete(_ key: CacheKey) throws(StoreError) -> Bool { try administration.isComplete(key) }

    /// What of a resource is cached at this moment: from memory where it is open, else from the index.
    /// - Returns: nil where nothing of it is cached, or its length is not known yet.
    package func coverage(_ key: CacheKey) throws(StoreError) -> ResourceCoverage? { try administration.coverage(key) }

    /// Counts a resource as read now: it is the last to be evicted. A presentation's parts are, too.
    /// - Returns: false where nothing of it is cached.
    package func touch(_ key: CacheKey) throws(StoreError) -> Bool { try administration.touch(key) }

    /// Keeps a resource from being evicted, or no longer; of a presentation also what is part of it, and what will be.
    /// - Returns: false where nothing of it is cached.
    package func setPinned(_ isPinned: Bool, _ key: CacheKey) throws(StoreError) -> Bool {
        try administration.setPinned(isPinned, key)
    }

    /// Removes a resource, pinned or not, with what its origin chose by other request fields, and with its parts.
    /// - Returns: nil where nothing of it is cached.
    package func remove(_ key: CacheKey, isDryRun: Bool) throws(StoreError) -> RemovalReport? {
        try administration.remove(key, isDryRun: isDryRun)
    }

    /// Removes what is not pinned. Of a presentation nothing goes where the whole is pinned or was read later.
    /// - Parameter before: only what was last read before this time, in seconds since 1970; nil for all.
    package func removeAll(before: Int64?, isDryRun: Bool) throws(StoreError) -> RemovalReport {
        try administration.removeAll(before: before, isDryRun: isDryRun)
    }

    /// Evicts what is over the limits, as far as it is neither pinned nor in use.
    /// - Returns: the bytes freed on the disk.
    package func enforceLimits() -> Int64 { administration.enforceLimits() }

    /// Takes hold of the file of a complete resource; what had not been verified before is.
    /// - Returns: nil where nothing of it is cached.
    package func hold(_ key: CacheKey) throws(StoreError) -> Holding? { try administration.hold(key) }

    /// Takes hold of the file of a resource that may lack something, and of what comes of it.
    /// - Returns: nil where nothing of it is cached.
    package func holdGrowing(_ key: CacheKey) throws(StoreError) -> FileHold? { try administration.holdGrowing(key) }

    /// Begins to take a resource in from elsewhere.
    /// - Parameters:
    ///   - fields: those that its responses will have, such as `Content-Type`.
    ///   - replaces: whether one that is there already is replaced; else that is an error (`ImportError.exists`).
    package func importer(_ key: CacheKey, length: Int64, fields: HeaderFields, replaces: Bool) throws(ImportError)
        -> Importer
    {
        let generation = try administration.makeImported(key, length: length, fields: fields, replaces: replaces)
        return Importer(generation, length: length, replaces: replaces, self)
    }

    /// Reads everything again and compares checksums. Resources may be read, filled and evicted meanwhile.
    /// - Parameters:
    ///   - repairs: whether what is found is dropped.
    ///   - isWanted: told how far it is; false ends it.
    package func audit(repairs: Bool, isWanted: (AuditProgress) -> Bool) throws(StoreError) -> AuditReport {
        var audit = Audit(core, queue, loader, verifier, repairs: repairs)
        return try audit.run(isWanted: isWanted)
    }
}

/// Presentations and their parts. All of it blocks, like what people ask for.
extension CacheStore {
    /// Makes what is cached of some resources parts of a presentation. What is part of one of them comes along, so that
    /// no part ever has parts; a presentation that is a part itself stands for its whole. What is not cached is passed
    /// by, and so is the presentation itself.
    /// - Parameter whole: the cache key of the presentation's first playlist.
    package func join(_ keys: [CacheKey], to whole: CacheKey) throws(StoreError) {
        try administration.parts.join(keys, to: whole)
    }

    /// The parts of a presentation of which something is cached, in the order in which they became known. At most
    /// 1,000,000, with some 200 bytes each.
    package func parts(of whole: CacheKey) throws(StoreError) -> [PartReport] {
        try administration.parts.reports(of: whole)
    }

    /// Whether something is part of a resource.
    package func hasParts(_ key: CacheKey) throws(StoreError) -> Bool {
        try index.parts.summary(of: key)?.parts ?? 0 > 0
    }

    /// The presentation that a resource is a part of, as far as the index knows.
    package func whole(of key: CacheKey) throws(StoreError) -> CacheKey? { try index.parts.whole(of: key) }

    /// Has resources evicted before anything else that is not pinned, until somebody reads them again.
    package func demote(_ keys: [CacheKey]) throws(StoreError) { try administration.parts.demote(keys) }
}

/// What downloads need of the store. All of it blocks, like what people ask for.
extension CacheStore {
    /// The database of downloads, whose size counts as the index's does.
    package static func downloads(in directory: String) -> String { directory + "/downloads.sqlite" }

    /// Counts the files beside the data anew, as it is done each second.
    package func countIndexNow() { queue.sync { $0.checkpointer.countIndex() } }

    /// How many bytes more of a resource, or of a presentation with its parts, could be in the cache at most, if all else went that is not pinned.
    package func room(for key: CacheKey) throws(StoreError) -> Int64 {
        let own =
            try (index.listing.own(key).map { $0.isPinned ? 0 : $0.cached } ?? 0)
            +| index.parts.evictableBytes(of: key)
        return ledger.attainable(beside: try index.pins.pinnedBytes() + own)
    }

    /// Makes what is present of a range of a generation durable, notes that its resource was downloaded, and pins it if
    /// that is wanted.
    /// - Parameter isWanted: asked when everything before is done.
    /// - Throws: where the index could not be told of it.
    package func settle(_ range: Range<Int64>, of generation: Generation, isPinned: Bool, isWanted: () -> Bool)
        throws(StoreError)
    {
        queue.sync { $0.checkpointer.checkpoint() }
        guard !generation.hasUnsaved(in: range) else {
            throw .index(detail: "what was fetched could not be saved; the log says why")
        }
        guard generation.length != 0, isWanted() else { return }
        try administration.setDownloaded(generation.key)
        if isPinned { _ = try setPinned(true, generation.key) }
    }

    /// What is there of a resource now.
    package func content(of key: CacheKey) throws(StoreError) -> FormerContent { try restorePoints.content(of: key) }

    /// Removes what was not there before, by whole extents, unless a player has it in hand or has had it meanwhile; and
    /// unpins what was not pinned.
    /// - Returns: the bytes freed.
    package func restore(_ former: FormerContent, of key: CacheKey) throws(StoreError) -> Int64 {
        try restorePoints.restore(former, of: key)
    }
}
