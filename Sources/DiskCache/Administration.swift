import CachePolicy
import Foundation
import HTTPModel

/// The commands about a cache. They block: call them neither on loops nor on the store's own threads.
struct Administration: Sendable {
    let core: StoreCore
    let queue: StoreQueue
    let loader: Loader
    let verifier: Verifier
    let parts: Parts

    /// Checkpoints now: otherwise the index learns of new chunks within a second, and of reads within ten.
    private func tellIndex() { queue.sync { $0.checkpointer.checkpoint(touchesToo: true) } }

    // MARK: Reports

    func report() throws(StoreError) -> CacheReport {
        tellIndex()
        let counts = try core.index.listing.counts(), ledger = core.ledger
        return CacheReport(
            directory: core.configuration.directory, size: ledger.size, maxSize: ledger.limit, minFree: ledger.minFree,
            resources: counts.resources, pinned: counts.pinned)
    }

    func resources(_ query: ResourceQuery) throws(StoreError) -> ResourceListing {
        tellIndex()
        return try core.index.listing.resources(query)
    }

    func resource(_ key: CacheKey) throws(StoreError) -> ResourceDetail? {
        tellIndex()
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

    func isComplete(_ key: CacheKey) throws(StoreError) -> Bool {
        if let open = core.open.newest(of: key) { return open.isComplete }
        return try core.index.listing.own(key)?.isComplete ?? false
    }

    func coverage(_ key: CacheKey) throws(StoreError) -> ResourceCoverage? {
        let open = core.open.newest(of: key)
        let resource = try core.index.listing.own(key)
        if let open, let (length, present) = open.presentRanges {
            guard !present.isEmpty || length == 0 else { return nil }
            return ResourceCoverage(
                length: length, present: present, isPinned: resource?.isPinned ?? false,
                chunkSize: open.geometry.chunkSize, type: open.head.fields["Content-Type"])
        }
        guard open == nil, let resource, let row = try core.index.rows.generation(of: key),
            let extents = try core.index.rows.extents(of: row)
        else { return nil }
        return ResourceCoverage(
            length: row.length, present: row.presentRanges(of: extents), isPinned: resource.isPinned,
            chunkSize: row.geometry.chunkSize, type: row.head.fields["Content-Type"])
    }

    // MARK: Keeping

    func touch(_ key: CacheKey) throws(StoreError) -> Bool {
        let generation = try loader.load(key), hasParts = try core.index.parts.summary(of: key)?.parts ?? 0 > 0
        guard generation != nil || hasParts else { return false }
        generation?.touch(at: AccessClock.now())
        tellIndex()
        if hasParts { try parts.touch(of: key) }
        return true
    }

    func isBeingRead(_ key: CacheKey) throws(StoreError) -> Bool {
        let keys = Set(try [key] + core.index.rows.variants(of: key))
        return core.open.all.contains { generation in
            (keys.contains(generation.key) || generation.whole == key) && generation.isBeingRead
        }
    }

    func setPinned(_ isPinned: Bool, _ key: CacheKey) throws(StoreError) -> Bool {
        // The presentation's own row first: parts that join meanwhile are then pinned with it.
        let isKnown = try setOwnPinned(isPinned, key)
        if isKnown { _ = try parts.setPinned(isPinned, of: key) }
        return isKnown
    }

    /// Pins a resource without the parts of its presentation.
    func setOwnPinned(_ isPinned: Bool, _ key: CacheKey) throws(StoreError) -> Bool {
        try queue.sync { work throws(StoreError) in
            work.checkpointer.checkpoint()
            guard try core.index.listing.resource(key) != nil else { return false }
            // In this order, the copy never has a pin that the index lacks.
            if !isPinned { try work.pins.remove(key) }
            _ = try core.index.pins.setPinned(isPinned, key)
            if isPinned { try work.pins.copyAll(of: key, from: core.index) }
            try noteKept(key)
            work.checkpointer.countIndex()
            return true
        }
    }

    /// Marks a resource as downloaded.
    func setDownloaded(_ key: CacheKey) throws(StoreError) { try setDownloaded([key]) }

    /// Marks several, a page at a time, so that others get their turn on the queue.
    func setDownloaded(_ keys: [CacheKey]) throws(StoreError) {
        for start in stride(from: 0, to: keys.count, by: IndexParts.pageSize) {
            let some = Array(keys[start..<min(start + IndexParts.pageSize, keys.count)])
            try queue.sync { work throws(StoreError) in
                try core.index.pins.setDownloaded(some)
                try work.pins.setDownloaded(some)
                for key in some { try noteKept(key) }
            }
        }
    }

    /// Updates the flag of the open generation after a change of pins or downloads. On the store's queue.
    private func noteKept(_ key: CacheKey) throws(StoreError) {
        let isKept = try core.index.pins.isKept(key)
        core.open.newest(of: key)?.setKept(isKept)
    }

    // MARK: Removing

    func remove(_ key: CacheKey, isDryRun: Bool) throws(StoreError) -> RemovalReport? {
        let own = try removeOwn(key, isDryRun: isDryRun), parts = try parts.remove(of: key, isDryRun: isDryRun)
        guard parts.count > 0 else { return own }
        return RemovalReport(
            resources: own?.resources ?? 1, bytes: (own?.bytes ?? 0) +| parts.bytes, pinned: 0, isDryRun: isDryRun,
            parts: parts.count)
    }

    /// Removes a resource with its variants, but without parts.
    private func removeOwn(_ key: CacheKey, isDryRun: Bool) throws(StoreError) -> RemovalReport? {
        try queue.sync { work throws(StoreError) -> RemovalReport? in
            work.checkpointer.checkpoint()
            let keys = try [key] + core.index.rows.variants(of: key)
            var ids: [GenerationID] = []
            for key in keys { ids += try core.index.rows.identifiers(of: key) }
            guard !ids.isEmpty else { return nil }
            guard !isDryRun else {
                return RemovalReport(
                    resources: ids.count, bytes: try core.index.rows.taken(by: ids), pinned: 0, isDryRun: true)
            }
            for key in keys {
                try work.pins.remove(key)
                _ = try core.index.pins.setPinned(false, key)
            }
            let removed = removal(of: ids, work)
            guard removed.resources > 0 else {
                throw .index(detail: "\(key.text) could not be removed: see the log")
            }
            return removed
        }
    }

    func removeAll(before: Int64?, isDryRun: Bool) throws(StoreError) -> RemovalReport {
        tellIndex()
        var sum = RemovalReport(resources: 0, bytes: 0, pinned: 0, isDryRun: isDryRun)
        var (place, parts) = (0 as Int64, 0)
        while !core.isEnding {
            let page = try core.index.listing.page(
                after: place,
                readBefore: before.map { $0.multipliedReportingOverflow(by: 1_000_000) }.map { $1 ? .max : $0 },
                limit: 256)
            guard let last = page.last else { break }
            place = last.resource
            sum.pinned += page.count { $0.isPinned && !$0.isPart }
            for isPart in [false, true] {
                let ids = page.filter { !$0.isPinned && $0.isPart == isPart }.map(\.generation)
                let (count, bytes) = try remove(ids, isDryRun: isDryRun)
                if isPart { parts += count } else { sum.resources += count }
                sum.bytes +|= bytes
            }
        }
        sum.parts = parts > 0 ? parts : nil
        return sum
    }

    /// Removes a page at a time, so that others get their turn on the queue.
    private func remove(_ ids: [GenerationID], isDryRun: Bool) throws(StoreError) -> (count: Int, bytes: Int64) {
        guard !ids.isEmpty else { return (0, 0) }
        guard !isDryRun else { return (ids.count, try core.index.rows.taken(by: ids)) }
        let removed = queue.sync { removal(of: ids, $0) }
        return (removed.resources, removed.bytes)
    }

    private func removal(of ids: [GenerationID], _ work: StoreWork) -> RemovalReport {
        let removed = work.remover.remove(ids)
        work.closer.closeUnused()
        work.checkpointer.countIndex()
        return RemovalReport(resources: removed.count, bytes: removed.freed + removed.later, pinned: 0, isDryRun: false)
    }

    func enforceLimits() -> Int64 {
        queue.sync { work in
            core.ledger.refreshDisk()
            return work.evictor.evictShortage()
        }
    }

    // MARK: Held and imported files

    func hold(_ key: CacheKey) throws(StoreError) -> Holding? {
        guard let hold = try holdGrowing(key) else { return nil }
        // Check under the hold: nothing is evicted any more.
        let gaps = hold.gaps(in: 0..<hold.length)
        return gaps.isEmpty ? .complete(hold) : .incomplete(missing: gaps.map(ByteSpan.init))
    }

    /// - Parameter range: the range to verify; nil for all.
    func holdGrowing(_ key: CacheKey, verifying range: Range<Int64>? = nil) throws(StoreError) -> FileHold? {
        queue.sync { $0.checkpointer.checkpoint() }
        guard let generation = try loader.load(key), let length = generation.length else { return nil }
        let path = GenerationFiles.relativePath(of: generation.id)
        return FileHold(generation, length: length, path: path, verifying: range) {
            verifier.verify(generation, extent: $0)
        }
    }

    /// - Returns: a hidden generation; the importer reveals it when it is complete.
    func makeImported(_ key: CacheKey, length: Int64, fields: HeaderFields, replaces: Bool) throws(ImportError)
        -> Generation
    {
        guard (0...Generation.longest).contains(length) else { throw .tooLong }
        do throws(StoreError) {
            // Fail before evicting everything in vain.
            guard length <= core.ledger.attainable(beside: try core.index.pins.pinnedBytes()) else {
                throw .noRoom(for: key)
            }
            let isOpen = core.open.newest(of: key) != nil, isIndexed = try core.index.listing.own(key) != nil
            if replaces || !isOpen && !isIndexed {
                let now = AccessClock.now() / 1_000_000
                let head = GenerationHead(
                    status: 200, fields: Self.importFields(fields, now: now), finalURL: key.text, storedAt: now)
                return try loader.make(key, head: head, length: length, isHidden: true)
            }
        } catch {
            if case .system(_, _, ENOSPC) = error { throw .noRoom }
            throw .store(error)
        }
        throw .exists
    }

    /// Keeps an import fresh for a year unless its fields say otherwise: the owner of the cache wants this file to be
    /// played.
    private static func importFields(_ fields: HeaderFields, now: Int64) -> HeaderFields {
        var fields = fields
        if fields["Date"] == nil { fields.append("Date", HTTPDate.format(now)) }
        if fields["Cache-Control"] == nil { fields.append("Cache-Control", "max-age=31536000, immutable") }
        return fields
    }
}

extension StoreError {
    static func noRoom(for key: CacheKey) -> StoreError {
        .system(operation: "reserve space for", path: key.text, code: ENOSPC)
    }
}
