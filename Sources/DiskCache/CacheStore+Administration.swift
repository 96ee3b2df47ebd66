import CachePolicy
import HTTPModel

/// The commands about a cache. They block: call them neither on loops (use `perform`) nor on the store's own threads.
extension CacheStore {
    /// Checkpoints now: otherwise the index learns of chunks within a second, and of hits within ten minutes.
    private func saveTouches() { queue.sync { $0.checkpointer.checkpoint(.all) } }

    package func report() throws(StoreError) -> CacheReport {
        saveTouches()
        let counts = try core.index.listing.counts()
        return CacheReport(
            directory: configuration.directory, size: ledger.size, maxSize: ledger.limit, minFree: ledger.minFree,
            resources: counts.resources, pinned: counts.pinned)
    }

    package func resources(_ query: ResourceQuery) throws(StoreError) -> ResourceListing {
        saveTouches()
        return try core.index.listing.resources(query)
    }

    /// - Returns: nil if nothing of it is cached.
    package func resource(_ key: CacheKey) throws(StoreError) -> ResourceDetail? {
        saveTouches()
        guard let resource = try core.index.listing.resource(key) else { return nil }
        guard let row = try core.index.rows.generation(of: key), let extents = try core.index.rows.extents(of: row)
        else { return resource.parts == nil ? nil : ResourceDetail(ofPartsAlone: resource) }
        let present = row.presentRanges(of: extents), fields = row.head.fields
        return ResourceDetail(
            resource: resource, finalURL: row.head.finalURL, etag: fields["ETag"],
            lastModified: fields["Last-Modified"], cacheControl: fields.combined("Cache-Control"),
            expires: fields["Expires"], targetedCacheControl: fields.targeted, date: fields["Date"],
            validatedAt: row.head.times.validatedAt,
            initialAge: row.head.times.initialAge, chunkSize: row.geometry.chunkSize,
            present: present.map(ByteSpan.init), missing: present.gaps(within: 0..<row.length).map(ByteSpan.init))
    }

    /// Whether all of a resource is cached at this moment, without waiting for a checkpoint.
    package func isComplete(_ key: CacheKey) throws(StoreError) -> Bool {
        if let open = core.open.newest(of: key) { return open.isComplete }
        return try core.index.listing.own(key)?.isComplete ?? false
    }

    /// The ranges of a resource that are cached at this moment: from memory if it is open, otherwise from the index.
    /// - Returns: nil if nothing of it is cached, or if its length is not known yet.
    package func coverage(_ key: CacheKey) throws(StoreError) -> CacheCoverage? {
        let open = core.open.newest(of: key)
        let resource = try core.index.listing.own(key)
        if let open, let (length, present) = open.presentRanges {
            guard !present.isEmpty || length == 0 else { return nil }
            return CacheCoverage(
                length: length, ranges: present, isPinned: resource?.isPinned ?? false, open.geometry, open.head.fields)
        }
        guard open == nil, let resource, let row = try core.index.rows.generation(of: key),
            let extents = try core.index.rows.extents(of: row)
        else { return nil }
        return CacheCoverage(
            length: row.length, ranges: row.presentRanges(of: extents), isPinned: resource.isPinned, row.geometry,
            row.head.fields)
    }

    /// Counts a resource, with the parts of a presentation, as read now, so that it is evicted last.
    /// - Returns: false if nothing of it is cached.
    package func touch(_ key: CacheKey) throws(StoreError) -> Bool {
        let generation = try loader.load(key), hasParts = try parts.areKnown(of: key)
        guard generation != nil || hasParts else { return false }
        generation?.withChunks { $0.touchAll(at: AccessClock.now()) }
        saveTouches()
        if hasParts { try parts.touch(of: key) }
        return true
    }

    /// Pins or unpins a resource; a presentation with all its parts, those that join later included.
    /// - Parameters:
    ///   - isByHand: whether a person does so: `unpinPlayed` leaves such a pin.
    ///   - isWanted: called on the store's queue, where `restorePoints` unpins what a stopped download leaves: of the
    ///     two, the later knows of the other. False skips the rest.
    /// - Returns: false if nothing of it is cached.
    package func setPinned(
        _ isPinned: Bool, _ key: CacheKey, isByHand: Bool = false, isWanted: () -> Bool = { true }
    ) throws(StoreError) -> Bool {
        // The presentation's own row first: parts that join meanwhile are then pinned with it.
        let isKnown = try queue.sync { work throws(StoreError) in
            try isWanted() ? work.setPinned(isPinned, key, isByHand: isByHand) : false
        }
        if isKnown { _ = try parts.setPinned(isPinned, of: key, isWanted: isWanted) }
        return isKnown
    }

    /// Marks resources as downloaded, a page at a time, so that others get their turn on the queue.
    private func setDownloaded(_ keys: [CacheKey]) throws(StoreError) {
        for start in stride(from: 0, to: keys.count, by: IndexParts.pageSize) {
            let some = Array(keys[start..<min(start + IndexParts.pageSize, keys.count)])
            try queue.sync { work throws(StoreError) in try work.noteDownloaded(some) }
        }
    }

    /// Removes a resource, pinned or not, with its parts and, unless others say otherwise, its variants.
    /// - Returns: nil if nothing of it is cached.
    package func remove(_ key: CacheKey, withVariants: Bool = true, isDryRun: Bool) throws(StoreError)
        -> RemovalReport?
    {
        defer { if !isDryRun { listeners.notifyChangedByHand([key]) } }
        let own = try parts.stepwise.remove(key, withVariants: withVariants, isDryRun: isDryRun)
        let parts = try parts.remove(of: key, isDryRun: isDryRun)
        guard parts.count > 0 else { return own }
        return RemovalReport(
            resources: own?.resources ?? 1, bytes: (own?.bytes ?? 0) +| parts.bytes, pinned: 0, isDryRun: isDryRun,
            parts: parts.count)
    }

    /// Removes all resources of a selection. The parts of a presentation stay if the whole is pinned or was read later.
    /// - Parameter isNeeded: returns whether a pinned resource has to stay; called on this thread.
    package func removeAll(
        _ selection: RemovalSelection, isDryRun: Bool, unless isNeeded: (CacheKey) -> Bool = { _ in false }
    ) throws(StoreError) -> RemovalReport {
        defer { if !isDryRun, selection.before == nil { listeners.notifyChangedByHand(nil) } }
        saveTouches()
        // However many wait: none that was just read counts as unread.
        queue.sync { $0.checkpointer.saveAllClosed() }
        var removal = SelectionRemoval(selection, isDryRun: isDryRun, self)
        return try removal.run(unless: isNeeded)
    }

    /// The keys of all that was played, with the time, in seconds since 1970.
    package func played() throws(StoreError) -> [CacheKey: Int64] {
        saveTouches()
        return try core.index.listing.played()
    }

    /// Unpins a resource, unless a person pinned it, or ordered it to stay.
    /// - Returns: false if nothing of it is cached.
    package func unpinPlayed(_ key: CacheKey) throws(StoreError) -> Bool {
        if try core.index.pins.kept(key).isByHand { return true }
        return try setPinned(false, key)
    }

    /// Evicts until the limits are met, as far as extents are neither pinned nor in use.
    /// - Returns: the bytes freed on the disk.
    package func enforceLimits() -> Int64 {
        queue.sync { work in
            core.ledger.refreshDisk()
            return work.evictor.evictShortage()
        }
    }

    /// Holds the file of a complete resource, and verifies the chunks that were not verified before.
    /// - Parameter isWanted: asked for each extent; false ends the verification, with an error.
    /// - Returns: nil if nothing of it is cached.
    package func hold(_ key: CacheKey, isWanted: () -> Bool = { true }) throws(StoreError) -> FileHold.Holding? {
        guard let hold = try holdGrowing(key, isWanted: isWanted) else { return nil }
        // Check under the hold: nothing is evicted any more.
        let gaps = hold.gaps(in: 0..<hold.length)
        return gaps.isEmpty ? .complete(hold) : .incomplete(missing: gaps.map(ByteSpan.init))
    }

    /// Holds the file of a resource that may be incomplete, and may still grow.
    /// - Parameter isWanted: as above.
    /// - Returns: nil if nothing of it is cached.
    package func holdGrowing(_ key: CacheKey, isWanted: () -> Bool = { true }) throws(StoreError) -> FileHold? {
        queue.sync { $0.checkpointer.checkpoint() }
        return try FileHold.of(key, in: self, isWanted: isWanted)
    }

    /// Reads everything again and compares checksums. Resources may be read, filled and evicted meanwhile.
    /// - Parameters:
    ///   - repairs: whether to drop what is damaged.
    ///   - isWanted: called with the progress; false ends the scrub.
    package func scrub(repairs: Bool, isWanted: (ScrubProgress) -> Bool) throws(StoreError) -> CacheValidation {
        var scrub = Scrub(core, queue, loader, verifier, repairs: repairs)
        return try scrub.run(isWanted: isWanted)
    }
}

/// What downloads need of the store. All of these methods block, like other commands.
extension CacheStore {
    /// Measures what the metrics contain of resources and of the disk. Blocks.
    package func measure() throws(StoreError) {
        core.metrics.pinnedBytes.set(try core.index.pins.pinnedBytes())
        core.metrics.resources.set(Int64(try core.index.listing.counts().resources))
        if let disk = FileSystem.disk(of: configuration.directory) { core.metrics.freeBytes.set(disk.free) }
    }

    /// Measures the files beside the data now. The store does so each second.
    package func countIndexNow() { queue.sync { $0.checkpointer.countIndex() } }

    /// How many more bytes of a resource, or of a presentation with its parts, could be cached if everything that is
    /// not pinned were evicted.
    package func room(for key: CacheKey) throws(StoreError) -> Int64 {
        let own =
            try (core.index.listing.own(key).map { $0.isPinned ? 0 : $0.cached } ?? 0)
            +| core.index.parts.evictableBytes(of: key)
        return ledger.attainable(beside: try core.index.pins.pinnedBytes() + own)
    }

    /// Makes the present chunks of a range durable, marks the resource as downloaded, and pins it if wanted.
    /// - Parameter isWanted: false if it was stopped, which skips the rest (`setPinned`).
    /// - Throws: if the index could not be updated.
    package func commit(_ range: Range<Int64>, of generation: Generation, isPinned: Bool, isWanted: () -> Bool)
        throws(StoreError)
    {
        if generation.isHidden, generation.isComplete { _ = reveal(generation) }
        queue.sync { $0.checkpointer.checkpoint() }
        guard !generation.hasUnsaved(in: range) else {
            throw .index(detail: "the fetched bytes could not be saved: see the log")
        }
        if generation.length != 0 { try noteDownloaded(generation.key, isPinned, isWanted) }
    }

    private func noteDownloaded(_ key: CacheKey, _ isPinned: Bool, _ isWanted: () -> Bool) throws(StoreError) {
        try queue.sync { work throws(StoreError) in if isWanted() { try work.noteDownloaded([key]) } }
        if isPinned { _ = try setPinned(true, key, isWanted: isWanted) }
    }

    /// Makes the bytes of a presentation's parts durable, joins the parts to it, and marks them as downloaded.
    /// - Parameters:
    ///   - keys: its parts, whoever has fetched them; call several times if there are many.
    ///   - whole: the cache key of its first playlist.
    /// - Throws: if the index could not be updated.
    package func commit(_ keys: [CacheKey], partsOf whole: CacheKey) throws(StoreError) {
        queue.sync { $0.checkpointer.checkpoint() }
        try parts.join(keys, to: whole)
        try setDownloaded(keys)
    }

    /// Marks a presentation as downloaded, and pins it with its parts if wanted.
    /// - Parameter isWanted: as above.
    package func commit(whole: CacheKey, isPinned: Bool, isWanted: () -> Bool) throws(StoreError) {
        queue.sync { $0.checkpointer.checkpoint() }
        try noteDownloaded(whole, isPinned, isWanted)
    }
}
