import CachePolicy
import Foundation
import HTTPModel

extension CacheStore {
    /// Looks a resource up in the index. Calls back on a thread of its own.
    package func load(_ key: CacheKey, then deliver: @escaping @Sendable (Result<Generation?, StoreError>) -> Void) {
        readers.run { [self] in
            do throws(StoreError) {
                let found = try load(key)
                if found == nil { fillKeyFilter() }
                deliver(.success(found))
            } catch { deliver(.failure(error)) }
        }
    }

    /// The same, at once. Not on the store's queue.
    func load(_ key: CacheKey) throws(StoreError) -> Generation? {
        if let open = registry.withLock({ $0.newest(of: key) }) { return open }
        let found: CacheIndex.GenerationRow?
        do throws(StoreError) { found = try index.generation(of: key) } catch .damagedRow {
            for id in try index.identifiers(of: key) { queue.sync { removeDamage(of: id) } }
            return nil
        }
        guard let row = found else { return nil }
        // From here on the evictor leaves this generation alone; what it or a closing has begun is waited for.
        let (known, isBusy) = registry.withLock { registry in
            registry.loading[row.id, default: 0] += 1
            return (registry.open[row.id], registry.evicting.contains(row.id) || registry.closing.contains(row.id))
        }
        defer { registry.withLock { $0.loaded(row.id) } }
        if let known { return known.isRetired ? nil : known }
        if isBusy { queue.sync {} }
        guard var contents = try index.contents(of: row) else { return nil }
        if contents.hasDamage {
            queue.sync { removeDamage(of: row.id) }
            guard let mended = try index.contents(of: row) else { return nil }
            contents = mended
        }
        return try open(row, contents.extents, contents.overhead)
    }

    /// - Throws: where the file is there and cannot be opened: nothing is known then, and nothing may take its place.
    private func open(_ row: CacheIndex.GenerationRow, _ rows: [CacheIndex.ExtentRow], _ overhead: Int64)
        throws(StoreError) -> Generation?
    {
        let file: SparseFile
        do throws(StoreError) {
            file = try reopenFile(of: row)
        } catch .system(_, _, ENOENT) {
            // Deleted from outside: its rows go, and it is fetched again.
            logger.error("dropped from the cache, as its file is gone: \(row.key.text)")
            metrics.errors.add("disk-file-missing")
            queue.async { [self] in _ = removeGenerations([row.id]) }
            return nil
        }
        let isSealed = file.isSealed(length: row.length)
        var extents = ExtentTable()
        for saved in rows.sorted(by: { $0.ordinal < $1.ordinal }) where !saved.present.isEmpty {
            extents[saved.ordinal].present = saved.present
            extents[saved.ordinal].lastAccess = saved.lastAccess
            if saved.session <= suspectSession || !isSealed { extents[saved.ordinal].unverified = saved.present }
        }
        let generation = Generation(
            id: row.id, key: row.key, head: row.head, length: row.length, geometry: row.geometry, file: file,
            isStored: true, ledger: ledger,
            extents: extents, isIndexed: true, overhead: overhead, wasSealed: isSealed,
            isKept: try index.isKept(row.key))
        let opened: Generation? = registry.withLock { registry in
            // Removed since its rows were read, or replaced by another.
            if registry.removedWhileLoading.contains(row.id) { return nil }
            if let newest = registry.newest(of: row.key), newest.id != row.id { return newest }
            // Another look-up may have been quicker: one file has one generation in memory.
            return registry.add(generation)
        }
        // Asked once more: who pinned it before it was registered found nobody to tell, and who does so from now on
        // tells it. Where the index does not answer, what it said a moment ago holds.
        if let opened {
            report("look up what is kept") { () throws(StoreError) in opened.startKept(try index.isKept(row.key)) }
        }
        return opened
    }

    /// Where too many files are open, idle ones are closed, and it is tried again.
    private func reopenFile(of row: CacheIndex.GenerationRow) throws(StoreError) -> SparseFile {
        do throws(StoreError) {
            return try SparseFile(path: path(of: row.id), length: row.length, creating: false)
        } catch {
            guard error.isShortageOfFiles else { throw error }
            closeInShortage()
            queue.sync {}
            return try SparseFile(path: path(of: row.id), length: row.length, creating: false)
        }
    }

    /// Whether a generation of a resource, other than this one, is in use or on its way to the index.
    package func isKnown(_ key: CacheKey, beside generation: Generation? = nil) -> Bool {
        registry.withLock { registry in registry.newest(of: key).map { $0 !== generation } ?? false }
    }

    /// Finds what origins chose by other request fields, for resources that have such. Calls back on a thread of its
    /// own.
    package func withVariants(_ keys: [CacheKey], then deliver: @escaping @Sendable ([CacheKey]) -> Void) {
        readers.run { [self] in
            var all = keys
            for key in keys {
                all += registry.withLock { $0.newest.keys.filter { $0.text.hasPrefix(key.text + " ") } }
                report("look variants up") { () throws(StoreError) in
                    all += try index.variants(of: key).filter { !all.contains($0) }
                }
            }
            deliver(all)
        }
    }

    /// What stands for a credential where it must not be kept: 32 hexadecimal digits that are the same for as long as
    /// the index is, and others for another cache.
    package func fingerprint(_ text: String) -> String {
        var digits = ""
        for part in 0..<2 as Range<UInt8> {
            let mixed = withUnsafeBytes(of: fingerprintSeed.littleEndian) { Array($0) } + [part] + Array(text.utf8)
            let half = String(mixed.withUnsafeBytes { ChunkDigest.of($0) }, radix: 16)
            digits += String(repeating: "0", count: 16 - half.count) + half
        }
        return digits
    }

    /// Makes a new generation with nothing in it.
    /// - Parameters:
    ///   - length: nil while unknown.
    ///   - isHidden: whether nobody is to find it before it is finished.
    /// - Throws: `StoreError`; where there is no room even for an empty file, a `.system` error with ENOSPC.
    package func makeGeneration(_ key: CacheKey, head: GenerationHead, length: Int64?, isHidden: Bool = false)
        throws(StoreError) -> Generation
    {
        let id = ids.withLock { $0.make() }
        guard ledger.reserve(CapacityLedger.fileOverhead) || ledger.reserveFile() else {
            throw .system(operation: "reserve space for", path: path(of: id), code: ENOSPC)
        }
        do throws(StoreError) {
            try unfinished.begin([id])
            defer { unfinished.end() }
            let file = try makeFile(of: id, length: length)
            let generation = Generation(
                id: id, key: key, head: head, length: length, geometry: configuration.geometry, file: file,
                isStored: true, ledger: ledger,
                isHidden: isHidden)
            return registry.withLock { $0.add(generation) }
        } catch {
            // A loop does not wait for what is closed: this one passes by, the next finds room.
            if error.isShortageOfFiles { closeInShortage() }
            // It may have been made, but not as it has to be.
            unlink(path(of: id))
            ledger.release(CapacityLedger.fileOverhead)
            throw error
        }
    }

    /// Makes a buffer in memory through which a response that is not stored passes.
    package func makeBuffer(
        _ key: CacheKey, head: GenerationHead, length: Int64?, geometry: ChunkGeometry = bufferGeometry
    ) -> Generation {
        Generation(
            id: ids.withLock { $0.make() }, key: key, head: head, length: length, geometry: geometry,
            file: MemoryBytes(), isStored: false, ledger: ledger)
    }

    /// Extents of 1 MiB: what a reader has passed is given back soon.
    package static let bufferGeometry = ChunkGeometry(chunkSize: 16 << 10)!

    /// The right to fill a generation from the start of a chunk on.
    package func writer(_ generation: Generation, at offset: Int64, stopsAtPresent: Bool) -> ChunkWriter {
        ChunkWriter(generation, at: offset, stopsAtPresent: stopsAtPresent, store: self)
    }

    /// A file that grows without its length being known may have so many bytes.
    package var longestFile: Int64 { max(0, FileSizeLimit.current - 2 * configuration.geometry.chunkSize) }

    func path(of id: GenerationID) -> String { "\(configuration.directory)/\(Self.relativePath(of: id))" }

    /// Below the cache directory.
    static func relativePath(of id: GenerationID) -> String {
        let name = id.description
        return "data/\(name.prefix(2))/\(name)"
    }

    private func makeFile(of id: GenerationID, length: Int64?) throws(StoreError) -> SparseFile {
        let shard = "\(configuration.directory)/data/\(id.description.prefix(2))"
        do throws(StoreError) {
            try makeShard(shard)
            return try SparseFile(path: path(of: id), length: length, creating: true)
        } catch .system("open", _, ENOENT) {
            // Somebody has removed the directory.
            registry.withLock { _ = $0.shards.remove(shard) }
            try makeShard(shard)
            return try SparseFile(path: path(of: id), length: length, creating: true)
        }
    }

    private func makeShard(_ shard: String) throws(StoreError) {
        guard !registry.withLock({ $0.shards.contains(shard) }) else { return }
        let isNew = mkdir(shard, 0o700) == 0
        guard isNew || errno == EEXIST else { throw .lastSystemError("mkdir", shard) }
        registry.withLock { registry in
            registry.shards.insert(shard)
            if isNew { registry.newShards.insert(shard) }
        }
    }
}

extension CacheStore.Registry {
    /// The generation of a key that is open, if it is still the current one.
    func newest(of key: CacheKey) -> Generation? {
        guard let id = newest[key], let generation = open[id], !generation.isRetired else { return nil }
        return generation
    }

    /// - Returns: the one that is open for that file from now on.
    mutating func add(_ generation: Generation) -> Generation {
        if let open = open[generation.id] { return open }
        open[generation.id] = generation
        if !generation.isHidden { newest[generation.key] = generation.id }
        return generation
    }

    mutating func loaded(_ id: GenerationID) {
        let left = (loading[id] ?? 1) - 1
        loading[id] = left > 0 ? left : nil
        if left <= 0 { removedWhileLoading.remove(id) }
    }

    /// Its rows and its file go: who is opening it at this moment does not find it.
    mutating func noteRemoval(of id: GenerationID) {
        if loading[id] != nil { removedWhileLoading.insert(id) }
    }

    /// A generation that could not be closed.
    mutating func takeBack(_ generation: Generation) {
        open[generation.id] = generation
        if newest[generation.key] == nil, !generation.isHidden { newest[generation.key] = generation.id }
    }

    /// Generations to which nobody else has a reference. None can come by: it would be had from here, under the same
    /// lock.
    mutating func takeUnused() -> [Generation] {
        var unused: [Generation] = []
        for id in Array(open.keys) where isKnownUniquelyReferenced(&open[id]!) {
            let generation = open.removeValue(forKey: id)!
            if newest[generation.key] == id { newest[generation.key] = nil }
            closing.insert(id)
            unused.append(generation)
        }
        return unused
    }
}
