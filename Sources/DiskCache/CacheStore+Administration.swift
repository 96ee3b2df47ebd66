import CachePolicy
import HTTPModel

/// The commands about a cache. They block: call them neither on loops (use `perform`) nor on the store's own threads.
extension CacheStore {
    package func report() throws(StoreError) -> CacheReport { try administration.report() }

    package func resources(_ query: ResourceQuery) throws(StoreError) -> ResourceListing {
        try administration.resources(query)
    }

    /// - Returns: nil if nothing of it is cached.
    package func resource(_ key: CacheKey) throws(StoreError) -> ResourceDetail? { try administration.resource(key) }

    /// Whether all of a resource is cached at this moment, without waiting for a checkpoint.
    package func isComplete(_ key: CacheKey) throws(StoreError) -> Bool { try administration.isComplete(key) }

    /// The ranges of a resource that are cached at this moment: from memory if it is open, otherwise from the index.
    /// - Returns: nil if nothing of it is cached, or if its length is not known yet.
    package func coverage(_ key: CacheKey) throws(StoreError) -> ResourceCoverage? { try administration.coverage(key) }

    /// Counts a resource, with the parts of a presentation, as read now, so that it is evicted last.
    /// - Returns: false if nothing of it is cached.
    package func touch(_ key: CacheKey) throws(StoreError) -> Bool { try administration.touch(key) }

    /// Pins or unpins a resource; a presentation with all its parts, those that join later included.
    /// - Returns: false if nothing of it is cached.
    package func setPinned(_ isPinned: Bool, _ key: CacheKey) throws(StoreError) -> Bool {
        try administration.setPinned(isPinned, key)
    }

    /// Removes a resource, pinned or not, with its variants and parts.
    /// - Returns: nil if nothing of it is cached.
    package func remove(_ key: CacheKey, isDryRun: Bool) throws(StoreError) -> RemovalReport? {
        defer { if !isDryRun { core.listeners.tellChangedByHand(key) } }
        return try administration.remove(key, isDryRun: isDryRun)
    }

    /// Removes everything that is not pinned. The parts of a presentation stay if the whole is pinned or was read
    /// later.
    /// - Parameter before: remove only what was last read before this time, in seconds since 1970; nil for everything.
    package func removeAll(before: Int64?, isDryRun: Bool) throws(StoreError) -> RemovalReport {
        defer { if !isDryRun, before == nil { core.listeners.tellChangedByHand(nil) } }
        return try administration.removeAll(before: before, isDryRun: isDryRun)
    }

    /// Evicts until the limits are met, as far as extents are neither pinned nor in use.
    /// - Returns: the bytes freed on the disk.
    package func enforceLimits() -> Int64 { administration.enforceLimits() }

    /// Holds the file of a complete resource, and verifies the chunks that were not verified before.
    /// - Returns: nil if nothing of it is cached.
    package func hold(_ key: CacheKey) throws(StoreError) -> Holding? { try administration.hold(key) }

    /// Holds the file of a resource that may be incomplete, and may still grow.
    /// - Returns: nil if nothing of it is cached.
    package func holdGrowing(_ key: CacheKey) throws(StoreError) -> FileHold? { try administration.holdGrowing(key) }

    /// Starts the import of a resource.
    /// - Parameters:
    ///   - fields: the header fields of its responses, such as `Content-Type`.
    ///   - replaces: whether to replace a cached resource; otherwise that is an error (`ImportError.exists`).
    package func importer(_ key: CacheKey, length: Int64, fields: HeaderFields, replaces: Bool) throws(ImportError)
        -> Importer
    {
        let generation = try administration.makeImported(key, length: length, fields: fields, replaces: replaces)
        return Importer(generation, length: length, replaces: replaces, self)
    }

    /// Reads everything again and compares checksums. Resources may be read, filled and evicted meanwhile.
    /// - Parameters:
    ///   - repairs: whether to drop what is damaged.
    ///   - isWanted: called with the progress; false ends the scrub.
    package func scrub(repairs: Bool, isWanted: (ScrubProgress) -> Bool) throws(StoreError) -> ScrubReport {
        var scrub = Scrub(core, queue, loader, verifier, repairs: repairs)
        return try scrub.run(isWanted: isWanted)
    }
}

/// Presentations and their parts. All of these methods block, like other commands.
extension CacheStore {
    /// Whether a resource, or a part of it, is being sent to a player at this moment.
    package func isBeingRead(_ key: CacheKey) throws(StoreError) -> Bool { try administration.isBeingRead(key) }

    /// Makes cached resources parts of a presentation. If one of them has parts itself, these move along, so that no
    /// part ever has parts; if the presentation is a part itself, its whole takes the parts. Resources that are not
    /// cached are skipped, as is the presentation itself.
    /// - Parameter whole: the cache key of the presentation's first playlist.
    package func join(_ keys: [CacheKey], to whole: CacheKey) throws(StoreError) {
        try administration.parts.join(keys, to: whole)
    }

    /// The cached parts of a presentation, in the order in which they became known. At most 1,000,000, of some 200
    /// bytes each.
    package func parts(of whole: CacheKey) throws(StoreError) -> [PartReport] {
        try administration.parts.reports(of: whole)
    }

    /// Whether a resource has parts.
    package func hasParts(_ key: CacheKey) throws(StoreError) -> Bool {
        try index.parts.summary(of: key)?.parts ?? 0 > 0
    }

    /// The presentation that a resource is a part of, as far as the index knows.
    package func whole(of key: CacheKey) throws(StoreError) -> CacheKey? { try index.parts.whole(of: key) }

    /// Has resources evicted before anything else that is not pinned, until they are read again.
    package func demote(_ keys: [CacheKey]) throws(StoreError) { try administration.parts.demote(keys) }
}

/// What downloads need of the store. All of these methods block, like other commands.
extension CacheStore {
    /// The downloads database; its size counts like that of the index.
    package static func downloads(in directory: String) -> String { directory + "/downloads.sqlite" }

    /// The database of subscriptions; its size counts likewise.
    package static func feeds(in directory: String) -> String { directory + "/feeds.sqlite" }

    /// The history of the counters; its size counts like that of the index.
    package static func history(in directory: String) -> String { directory + "/history" }

    /// Measures what the metrics contain of pinned resources and of the disk. Blocks.
    package func measure() throws(StoreError) {
        core.metrics.pinnedBytes.set(try index.pins.pinnedBytes())
        if let disk = FileSystem.disk(of: configuration.directory) { core.metrics.freeBytes.set(disk.free) }
    }

    /// Measures the files beside the data now. The store does so each second.
    package func countIndexNow() { queue.sync { $0.checkpointer.countIndex() } }

    /// How many more bytes of a resource, or of a presentation with its parts, could be cached if everything that is
    /// not pinned were evicted.
    package func room(for key: CacheKey) throws(StoreError) -> Int64 {
        let own =
            try (index.listing.own(key).map { $0.isPinned ? 0 : $0.cached } ?? 0)
            +| index.parts.evictableBytes(of: key)
        return ledger.attainable(beside: try index.pins.pinnedBytes() + own)
    }

    /// Makes the present chunks of a range durable, marks the resource as downloaded, and pins it if wanted.
    /// - Parameter isWanted: called when everything before is done; false skips the rest.
    /// - Throws: if the index could not be updated.
    package func settle(_ range: Range<Int64>, of generation: Generation, isPinned: Bool, isWanted: () -> Bool)
        throws(StoreError)
    {
        queue.sync { $0.checkpointer.checkpoint() }
        guard !generation.hasUnsaved(in: range) else {
            throw .index(detail: "the fetched bytes could not be saved: see the log")
        }
        guard generation.length != 0, isWanted() else { return }
        try administration.setDownloaded(generation.key)
        if isPinned { _ = try setPinned(true, generation.key) }
    }

    /// The current content of a resource, for a restore point.
    package func content(of key: CacheKey) throws(StoreError) -> FormerContent { try restorePoints.content(of: key) }

    /// Restores earlier content: removes whatever came later, by whole extents, unless a player reads it or has read it
    /// meanwhile, and unpins what was not pinned.
    /// - Returns: the bytes freed.
    package func restore(_ former: FormerContent, of key: CacheKey) throws(StoreError) -> Int64 {
        try restorePoints.restore(former, of: key)
    }
}
