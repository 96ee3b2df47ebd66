import CachePolicy
import Foundation
import HTTPModel
import Logging
import Metrics
import Synchronization

/// Where the cache lives and what it may take.
package struct StoreConfiguration: Sendable {
    /// The cache directory; made where it is missing.
    package var directory: String
    /// Allocated bytes, data and index together, that are never exceeded.
    package var maxSize: Int64 = 20_000_000_000
    /// Bytes that always stay free on the disk.
    package var minFree: Int64 = 1_000_000_000
    /// For new generations.
    package var geometry = ChunkGeometry.standard

    package init(directory: String) { self.directory = directory }
}

/// Chunks on disk within capacity.
///
/// A *generation*'s bytes stand in one sparse file; which chunks are *present* is in memory while it is open, and in the index
/// after a *checkpoint*: data first, then `fdatasync`, then the bitmaps. Making room *evicts* the least recently read extents.
///
/// Whatever blocks on the disk runs on `queue` (checkpoints, evictions: one at a time) on `readers` (look-ups, cold reads) or on
/// `writers` (what comes in quickly; small pieces are written where they arrive).
package final class CacheStore: Sendable {
    package let configuration: StoreConfiguration
    package let ledger: CapacityLedger
    let index: CacheIndex
    let metrics: ProxyMetrics
    let logger: Logger
    let session: Int64
    let suspectSession: Int64
    let queue = DispatchQueue(label: "reelcache.store", qos: .userInitiated)
    let readers = BlockingPool("read", threads: 4)
    let writers = BlockingPool("write", threads: 2)
    let registry = Mutex(Registry())
    private let lock: DirectoryLock
    private let checkpointTimer: QueueTimer

    /// Which generations are open, and what has to be done about them.
    struct Registry {
        /// Kept until nobody else has them (`closeUnused`): only then, and on `queue` alone, is anything done about their files' ends.
        var open: [GenerationID: Generation] = [:]
        /// The newest of them by key, known to the index or not yet.
        var newest: [CacheKey: GenerationID] = [:]
        /// Being closed at this moment, on `queue`.
        var closing: Set<GenerationID> = []
        /// Generations with unsaved chunks. They are kept until these are saved.
        var unsaved: [GenerationID: Generation] = [:]
        var unsavedBytes: Int64 = 0
        var isCheckpointDue = false
        /// Being read from the index, by how many: the evictor passes them by.
        var loading: [GenerationID: Int] = [:]
        /// Extents of generations that are not open, being evicted.
        var evicting: [GenerationID: Set<Int>] = [:]
        var shards: Set<String> = []
    }

    /// Opens the cache, making it where there is none, and takes its lock.
    /// - Throws: `StoreError`: another process has it, the directory cannot be used, the index cannot be read.
    package init(_ configuration: StoreConfiguration, metrics: ProxyMetrics, logger: Logger) throws(StoreError) {
        guard configuration.maxSize >= CapacityLedger.smallestLimit else {
            throw .setting("a cache of \(configuration.maxSize) bytes is too small to work; --max-size must be at least 16MB")
        }
        self.configuration = configuration
        self.metrics = metrics
        self.logger = logger
        try Self.makeDirectory(configuration.directory)
        lock = try DirectoryLock(directory: configuration.directory)
        try Self.makeDirectory(configuration.directory + "/data")
        index = try CacheIndex(path: configuration.directory + "/index.sqlite")
        ledger = CapacityLedger(directory: configuration.directory, limit: configuration.maxSize, minFree: configuration.minFree)
        let previous = try index.meta(.session) ?? 0
        let wasClean = try index.meta(.isClean) ?? 1 == 1
        session = previous + 1
        suspectSession = try wasClean ? index.meta(.suspectSession) ?? 0 : previous
        ledger.adopt(data: try index.meta(.dataBytes) ?? 0)
        ledger.setIndex(bytes: index.allocatedBytes)
        try index.setMeta([(.session, session), (.isClean, 0), (.suspectSession, suspectSession)])
        checkpointTimer = QueueTimer(queue)
        // Without a session the index is new; files that are there nevertheless belong to one that was lost.
        if !wasClean || previous == 0 { try recover() }
        checkpointTimer.start { [weak self] in self?.tick() }
        readers.start()
        writers.start()
    }

    /// Makes a directory and those above it.
    static func makeDirectory(_ path: String) throws(StoreError) {
        if mkdir(path, 0o700) == 0 { return }
        let parent = (path as NSString).deletingLastPathComponent
        if errno == ENOENT, !parent.isEmpty, parent != path {
            try makeDirectory(parent)
            if mkdir(path, 0o700) == 0 { return }
        }
        let code = errno
        var info = stat()
        guard stat(path, &info) == 0 else {
            throw .setting("cannot make the cache directory \(path): \(String(cString: strerror(code))); choose another --cache-dir")
        }
        guard info.st_mode & S_IFMT == S_IFDIR else { throw .setting("the cache directory \(path) is not a directory; choose another --cache-dir") }
    }

    private func tick() {
        checkpoint()
        ledger.refreshDisk()
        if ledger.shortage > 0 { evict(ledger.shortage) }
        closeUnused()
    }

    /// Closes generations that nobody has open any more, and gives back what they leave. On `queue` only.
    /// - Returns: the bytes given back.
    @discardableResult
    func closeUnused() -> Int64 {
        dispatchPrecondition(condition: .onQueue(queue))
        let unused = registry.withLock { $0.takeUnused() }
        guard !unused.isEmpty else { return 0 }
        // The order of last reads would be lost with them.
        save(unused.compactMap { $0.takeTouches() }, of: Dictionary(uniqueKeysWithValues: unused.map { ($0.id, $0) }))
        var freed: Int64 = 0
        for generation in unused {
            let (isGone, bytes) = generation.end()
            freed += bytes
            guard isGone else { continue }
            report("forget a generation") { () throws(StoreError) in _ = try index.remove(generation.id) }
        }
        registry.withLock { $0.closing.subtract(unused.map(\.id)) }
        return freed
    }

    /// Tells other processes where this cache's proxy can be reached.
    package func announce(url: String) throws(StoreError) {
        try lock.announce(CacheOwner(pid: getpid(), url: url))
    }

    /// Waits for what the threads for reading and writing are doing, and ends them.
    package func endThreads() {
        writers.stop()
        readers.stop()
    }

    /// Saves everything and marks the cache as closed in order. Blocks. Nothing may be written any more.
    package func close() throws(StoreError) {
        endThreads()
        let outcome: Result<Void, StoreError> = queue.sync {
            checkpointTimer.cancel()
            for generation in registry.withLock({ Array($0.open.values) }) { generation.releaseResidue() }
            checkpoint(touchesToo: true)
            closeUnused()
            do throws(StoreError) {
                try index.setMeta([(.isClean, 1), (.dataBytes, ledger.dataSize)])
                try index.close()
                return .success(())
            } catch { return .failure(error) }
        }
        lock.release()
        try outcome.get()
    }

    // MARK: Opening generations

    /// Looks a resource up in the index. Calls back on a thread of its own.
    package func load(_ key: CacheKey, then deliver: @escaping @Sendable (Result<Generation?, StoreError>) -> Void) {
        readers.run { [self] in
            do throws(StoreError) { deliver(.success(try load(key))) } catch { deliver(.failure(error)) }
        }
    }

    private func load(_ key: CacheKey) throws(StoreError) -> Generation? {
        if let open = registry.withLock({ $0.newest(of: key) }) { return open }
        guard let row = try index.generation(of: key) else { return nil }
        // From here on the evictor leaves this generation alone; what it or a closing has begun is waited for.
        let (known, isBusy) = registry.withLock { registry in
            registry.loading[row.id, default: 0] += 1
            return (registry.open[row.id], registry.evicting[row.id] != nil || registry.closing.contains(row.id))
        }
        defer { registry.withLock { $0.loaded(row.id) } }
        if let known { return known.isRetired ? nil : known }
        if isBusy { queue.sync {} }
        guard let rows = try index.extents(of: row.id) else { return nil }
        return open(row, extents: rows, key: key)
    }

    private func open(_ row: CacheIndex.GenerationRow, extents rows: [CacheIndex.ExtentRow], key: CacheKey) -> Generation? {
        let file: SparseFile
        do {
            file = try SparseFile(path: path(of: row.id), length: row.length, creating: false)
        } catch {
            // Deleted or made unreadable from outside: its rows go, and it is fetched again.
            logger.error("dropped from the cache: \(error)", metadata: ["resource": "\(key.text)"])
            metrics.errors.add("disk-file-missing")
            forget(row, rows)
            return nil
        }
        var extents = Array(repeating: Extent(), count: row.geometry.extentCount(length: row.length))
        for saved in rows where extents.indices.contains(saved.ordinal) {
            extents[saved.ordinal].present = saved.present
            extents[saved.ordinal].lastAccess = saved.lastAccess
            if saved.session <= suspectSession { extents[saved.ordinal].unverified = saved.present }
        }
        let generation = Generation(
            id: row.id, key: key, head: row.head, length: row.length, geometry: row.geometry, file: file, isStored: true, ledger: ledger,
            extents: extents, isIndexed: true)
        // Another look-up may have been quicker: one file has one generation in memory.
        return registry.withLock { $0.add(generation) }
    }

    /// The file of a generation is gone: so are its blocks.
    private func forget(_ row: CacheIndex.GenerationRow, _ extents: [CacheIndex.ExtentRow]) {
        let bytes = extents.reduce(CapacityLedger.fileOverhead) { sum, extent in
            sum + row.geometry.blockBytes(of: extent.present, inExtent: extent.ordinal, length: row.length)
        }
        queue.async { [self] in
            report("forget a generation") { () throws(StoreError) in
                if try index.remove(row.id) { ledger.release(bytes) }
            }
        }
    }

    /// Makes a new generation with nothing in it.
    /// - Parameter length: nil while unknown.
    /// - Throws: `StoreError`; where there is no room even for an empty file, a `.system` error with ENOSPC.
    package func makeGeneration(_ key: CacheKey, head: GenerationHead, length: Int64?) throws(StoreError) -> Generation {
        let id = GenerationID.random()
        guard ledger.reserve(CapacityLedger.fileOverhead) || ledger.reserveFile() else {
            throw .system(operation: "reserve space for", path: path(of: id), code: ENOSPC)
        }
        do throws(StoreError) {
            try makeShard(of: id)
            let file = try SparseFile(path: path(of: id), length: length, creating: true)
            let generation = Generation(
                id: id, key: key, head: head, length: length, geometry: configuration.geometry, file: file, isStored: true, ledger: ledger)
            return registry.withLock { $0.add(generation) }
        } catch {
            ledger.release(CapacityLedger.fileOverhead)
            throw error
        }
    }

    /// Makes a window in memory through which a response that is not stored passes.
    package func makeWindow(_ key: CacheKey, head: GenerationHead, length: Int64?, geometry: ChunkGeometry = windowGeometry) throws(StoreError) -> Generation {
        let file = try SparseFile(inMemory: "reelcache-window", length: length)
        return Generation(
            id: .random(), key: key, head: head, length: length, geometry: geometry, file: file, isStored: false, ledger: ledger)
    }

    /// Extents of 1 MiB: what a reader has passed is given back soon.
    package static let windowGeometry = ChunkGeometry(chunkSize: 16 << 10)!

    func path(of id: GenerationID) -> String {
        let name = id.description
        return "\(configuration.directory)/data/\(name.prefix(2))/\(name)"
    }

    private func makeShard(of id: GenerationID) throws(StoreError) {
        let shard = "\(configuration.directory)/data/\(id.description.prefix(2))"
        guard !registry.withLock({ $0.shards.contains(shard) }) else { return }
        guard mkdir(shard, 0o700) == 0 || errno == EEXIST else { throw .lastSystemError("mkdir", shard) }
        registry.withLock { _ = $0.shards.insert(shard) }
    }

    // MARK: Writing and retiring

    /// The right to fill a generation from the start of a chunk on.
    package func writer(_ generation: Generation, at offset: Int64, stopsAtPresent: Bool) -> ChunkWriter {
        ChunkWriter(generation, at: offset, stopsAtPresent: stopsAtPresent, store: self)
    }

    /// Replaced or not to be kept: gone from the index at once, from the disk when the last reader has closed it.
    package func retire(_ generation: Generation) {
        guard generation.isStored else { return }
        let isFirst = generation.state.withLock { state in
            defer { state.isRetired = true }
            return !state.isRetired
        }
        guard isFirst else { return }
        queue.async { [self] in
            registry.withLock { _ = $0.unsaved.removeValue(forKey: generation.id) }
            report("retire a generation") { () throws(StoreError) in _ = try index.remove(generation.id) }
            if unlink(path(of: generation.id)) != 0 && errno != ENOENT { logger.error("\(StoreError.lastSystemError("unlink", path(of: generation.id)))") }
        }
    }

    /// Does what may fail without anybody waiting for it: logs and counts what went wrong.
    func report(_ what: String, _ body: () throws(StoreError) -> Void) {
        do throws(StoreError) { try body() } catch {
            logger.error("could not \(what): \(error)")
            metrics.errors.add("store")
        }
    }

    /// How many generations are open.
    package var openCount: Int { registry.withLock { $0.open.count } }
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
        newest[generation.key] = generation.id
        return generation
    }

    mutating func loaded(_ id: GenerationID) {
        let left = (loading[id] ?? 1) - 1
        loading[id] = left > 0 ? left : nil
    }

    /// Generations to which nobody else has a reference. None can come by: it would be had from here, under the same lock.
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
