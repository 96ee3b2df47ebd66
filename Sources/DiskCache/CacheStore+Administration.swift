import CachePolicy
import Foundation
import HTTPModel

/// What people see and steer of a cache. All of it blocks: not for loops (`perform`), nor for the store's own threads.
extension CacheStore {
    /// Runs work that blocks on a thread kept for it.
    /// - Returns: whether it will run; once the store is being closed it does not.
    @discardableResult
    package func perform(_ work: @escaping @Sendable () -> Void) -> Bool { clerks.run(work) }

    /// The same for what reads whole files: it must not keep others waiting.
    @discardableResult
    package func performLong(_ work: @escaping @Sendable () -> Void) -> Bool { auditors.run(work) }

    package func report() throws(StoreError) -> CacheReport {
        tellIndex()
        let counts = try index.counts()
        return CacheReport(
            directory: configuration.directory, size: ledger.size, maxSize: ledger.limit, minFree: ledger.minFree,
            resources: counts.resources,
            pinned: counts.pinned)
    }

    package func resources(_ query: ResourceQuery) throws(StoreError) -> ResourceListing {
        tellIndex()
        return try index.resources(query)
    }

    /// - Returns: nil where nothing of it is cached.
    package func resource(_ key: CacheKey) throws(StoreError) -> ResourceDetail? {
        tellIndex()
        guard let resource = try index.resource(key), let row = try index.generation(of: key),
            let extents = try index.extents(of: row)
        else { return nil }
        let present = row.presentRanges(of: extents)
        return ResourceDetail(
            resource: resource, finalURL: row.head.finalURL, etag: row.head.fields["ETag"],
            lastModified: row.head.fields["Last-Modified"],
            cacheControl: row.head.fields.combined("Cache-Control"), expires: row.head.fields["Expires"],
            date: row.head.fields["Date"],
            validatedAt: row.head.times.validatedAt, initialAge: row.head.times.initialAge,
            chunkSize: row.geometry.chunkSize,
            present: present.map(ByteSpan.init), missing: Self.missing(beside: present, length: row.length))
    }

    /// What lies between ranges that are in order, and behind them.
    private static func missing(beside present: [Range<Int64>], length: Int64) -> [ByteSpan] {
        let starts = [0] + present.map(\.upperBound), ends = present.map(\.lowerBound) + [length]
        return zip(starts, ends).filter { $0 < $1 }.map { ByteSpan($0..<$1) }
    }

    /// The index knows of new chunks and reads within a second; whoever asks, at once.
    private func tellIndex() { queue.sync { checkpoint(touchesToo: true) } }

    /// Keeps a resource from being evicted, or no longer.
    /// - Returns: false where nothing of it is cached.
    package func setPinned(_ isPinned: Bool, _ key: CacheKey) throws(StoreError) -> Bool {
        let outcome: Result<Bool, StoreError> = queue.sync {
            do throws(StoreError) {
                checkpoint()
                guard try index.resource(key) != nil else { return .success(false) }
                // In this order the copy never has a pin that the index has not.
                if !isPinned { try pins.remove(key) }
                _ = try index.setPinned(isPinned, key)
                if isPinned { try pins.copyAll(of: key, from: index) }
                try noteKept(key)
                countIndex()
                return .success(true)
            } catch { return .failure(error) }
        }
        return try outcome.get()
    }

    /// Tells the open generation of a resource whether somebody has pinned or downloaded it. On `queue` only.
    func noteKept(_ key: CacheKey) throws(StoreError) {
        let isKept = try index.isKept(key)
        registry.withLock { $0.newest(of: key) }?.setKept(isKept)
    }

    /// Removes a resource, pinned or not, with what its origin chose by other request fields.
    /// - Returns: nil where nothing of it is cached.
    package func remove(_ key: CacheKey, isDryRun: Bool) throws(StoreError) -> RemovalReport? {
        let outcome: Result<RemovalReport?, StoreError> = queue.sync {
            do throws(StoreError) {
                checkpoint()
                let keys = try [key] + index.variants(of: key)
                var ids: [GenerationID] = []
                for key in keys { ids += try index.identifiers(of: key) }
                guard !ids.isEmpty else { return .success(nil) }
                guard !isDryRun else {
                    return .success(
                        RemovalReport(resources: ids.count, bytes: try index.taken(by: ids), pinned: 0, isDryRun: true))
                }
                for key in keys {
                    try pins.remove(key)
                    _ = try index.setPinned(false, key)
                }
                let removed = removal(of: ids)
                return removed.resources > 0
                    ? .success(removed) : .failure(.index(detail: "\(key.text) could not be removed; the log says why"))
            } catch { return .failure(error) }
        }
        return try outcome.get()
    }

    /// Removes what is not pinned.
    /// - Parameter before: only what was last read before this time, in seconds since 1970; nil for all.
    package func removeAll(before: Int64?, isDryRun: Bool) throws(StoreError) -> RemovalReport {
        tellIndex()
        var sum = RemovalReport(resources: 0, bytes: 0, pinned: 0, isDryRun: isDryRun)
        var place: Int64 = 0
        while !isEnding.load(ordering: .relaxed) {
            let page = try index.page(
                after: place,
                readBefore: before.map { $0.multipliedReportingOverflow(by: 1_000_000) }.map { $1 ? .max : $0 },
                limit: 256)
            guard let last = page.last else { break }
            place = last.resource
            let ids = page.filter { !$0.isPinned }.map(\.generation)
            sum.pinned += page.count - ids.count
            if isDryRun {
                sum.resources += ids.count
                sum.bytes += try index.taken(by: ids)
            } else {
                // A page at a time, so that others get their turn on the queue.
                let removed = queue.sync { removal(of: ids) }
                sum.resources += removed.resources
                sum.bytes += removed.bytes
            }
        }
        return sum
    }

    private func removal(of ids: [GenerationID]) -> RemovalReport {
        let removed = removeGenerations(ids)
        closeUnused()
        countIndex()
        return RemovalReport(resources: removed.count, bytes: removed.freed + removed.later, pinned: 0, isDryRun: false)
    }

    /// Takes hold of the file of a complete resource; what had not been verified before is.
    /// - Returns: nil where nothing of it is cached.
    package func hold(_ key: CacheKey) throws(StoreError) -> Holding? {
        guard let hold = try holdGrowing(key) else { return nil }
        // Asked of what is held: of that nothing goes any more.
        let gaps = hold.gaps(in: 0..<hold.length)
        return gaps.isEmpty ? .complete(hold) : .incomplete(missing: gaps.map(ByteSpan.init))
    }

    /// Takes hold of the file of a resource that may lack something, and of what comes of it.
    /// - Returns: nil where nothing of it is cached.
    package func holdGrowing(_ key: CacheKey) throws(StoreError) -> FileHold? {
        queue.sync { checkpoint() }
        guard let generation = try load(key), let length = generation.length else { return nil }
        return FileHold(generation, length: length, path: Self.relativePath(of: generation.id)) {
            verify(generation, extent: $0)
        }
    }

    /// What somebody brought in is what he wants to be played: it is asked for again when he says so, and not before a
    /// year.
    private static func importFields(_ fields: HeaderFields, now: Int64) -> HeaderFields {
        var fields = fields
        if fields["Date"] == nil { fields.append("Date", HTTPDate.format(now)) }
        if fields["Cache-Control"] == nil { fields.append("Cache-Control", "max-age=31536000, immutable") }
        return fields
    }

    /// Begins to take a resource in from elsewhere.
    /// - Parameters:
    ///   - fields: those that its responses will have, such as `Content-Type`.
    ///   - replaces: whether one that is there already is replaced; else that is an error (`ImportError.exists`).
    package func importer(_ key: CacheKey, length: Int64, fields: HeaderFields, replaces: Bool) throws(ImportError)
        -> Importer
    {
        guard (0...Generation.longest).contains(length) else { throw .tooLong }
        let generation: Generation?
        do throws(StoreError) {
            // Else it would evict everything before it fails.
            guard length <= ledger.attainable(beside: try index.pinnedBytes()) else {
                throw StoreError.system(operation: "reserve space for", path: key.text, code: ENOSPC)
            }
            let isOpen = registry.withLock { $0.newest(of: key) != nil }
            let isIndexed = try index.resource(key) != nil
            let now = AccessClock.now() / 1_000_000
            let head = GenerationHead(
                status: 200, fields: Self.importFields(fields, now: now), finalURL: key.text, storedAt: now)
            generation =
                !replaces && (isOpen || isIndexed)
                ? nil : try makeGeneration(key, head: head, length: length, isHidden: true)
        } catch {
            if case .system(_, _, ENOSPC) = error { throw .noRoom }
            throw .store(error)
        }
        guard let generation else { throw .exists }
        return Importer(generation, length: length, replaces: replaces, self)
    }
}
