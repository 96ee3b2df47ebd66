import CachePolicy
import Foundation
import HTTPModel
import Logging
import Metrics
import Synchronization
import Units

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
    /// Whether to evict before somebody needs the room. A command that opens a cache for a moment leaves that to the
    /// proxy.
    package var evictsAhead = true
    /// Whether the file system can punch holes; nil to try it.
    package var punchesHoles: Bool?

    package init(directory: String) { self.directory = directory }
}

/// Chunks on disk within capacity: what others have of the store.
///
/// A *generation*'s bytes stand in one sparse file; which chunks are *present* is in memory while it is open, and in
/// the index after a *checkpoint*: data first, then `fdatasync`, then the bitmaps. Making room *evicts* the least
/// recently read extents.
///
/// Whatever blocks on the disk runs on `queue` (checkpoints, evictions: one at a time) on `readers` (look-ups, cold
/// reads), on `writers` (what comes in quickly; small pieces are written where they arrive), on `clerks` (what people
/// ask for) or on `auditors` (what reads whole files for that).
///
/// Lock order, where two are held together: `UnfinishedFiles`, then `OpenGenerations`, then a `Generation`'s state. All
/// other locks of the store are leaves.
package final class CacheStore: Sendable {
    let core: StoreCore
    let queue: StoreQueue
    let loader: Loader
    let verifier: Verifier
    let administration: Administration
    let restorePoints: RestorePoints
    let readers = BlockingPool("read", threads: 4)
    let writers = BlockingPool("write", threads: 2)
    let clerks = BlockingPool("clerk", threads: 2)
    let auditors = BlockingPool("audit", threads: 2)
    private let lock: DirectoryLock
    private let fingerprintSeed: Int64
    private let timer: QueueTimer

    package var configuration: StoreConfiguration { core.configuration }
    package var ledger: CapacityLedger { core.ledger }
    var index: CacheIndex { core.index }

    /// Opens the cache, making it where there is none, and takes its lock.
    /// - Throws: `StoreError`: another process has it, the directory cannot be used, the index cannot be read.
    package init(_ configuration: StoreConfiguration, metrics: ProxyMetrics, logger: Logger) throws(StoreError) {
        let opening = try StoreOpening(configuration, metrics: metrics, logger: logger)
        let (unfinished, wasClean, isNew) = (opening.unfinished, opening.wasClean, opening.isNew)
        let isRecountDue = opening.isRecountDue
        (core, lock, fingerprintSeed) = (opening.core, opening.lock, opening.fingerprintSeed)
        queue = StoreQueue(StoreWork(core, opening.pins))
        loader = Loader(core: core, queue: queue)
        verifier = Verifier(core)
        administration = Administration(
            core: core, queue: queue, loader: loader, verifier: verifier, parts: Parts(core: core, queue: queue))
        restorePoints = RestorePoints(core: core, queue: queue, administration: administration)
        queue.sync { work in
            work.checkpointer.countIndex()
            work.recovery.finish(unfinished)
            work.recovery.completePins(wasClean: wasClean)
        }
        if isRecountDue {
            let recount = Recount(core: core, queue: queue)
            recount.begin(isNew: isNew)
            auditors.run { recount.run() }
        }
        timer = queue.everySecond { $0.tick() }
        readers.start()
        writers.start()
    }

    /// Changes the limits. What is too much is evicted before this returns, as far as it is not in use.
    /// - Throws: `.setting` where they cannot work.
    package func setLimits(maxSize: Int64?, minFree: Int64?) throws(StoreError) {
        try StoreOpening.check(
            maxSize: maxSize ?? ledger.limit, minFree: minFree ?? ledger.minFree, configuration.directory)
        ledger.setLimits(maxSize: maxSize, minFree: minFree)
        if configuration.evictsAhead { queue.sync { _ = $0.evictor.evictShortage() } }
    }

    /// Tells other processes where this cache's proxy can be reached.
    package func announce(url: String) throws(StoreError) {
        try lock.announce(CacheOwner(pid: getpid(), url: url))
    }

    /// Waits for what the threads for reading and writing are doing, and ends them.
    package func endThreads() {
        core.beginEnding()
        writers.stop()
        readers.stop()
        clerks.stop()
        auditors.stop()
    }

    /// Saves everything and marks the cache as closed in order. Blocks. Nothing may be written any more.
    package func close() throws(StoreError) {
        endThreads()
        defer { lock.release() }
        timer.cancel()
        try queue.sync { work throws(StoreError) in try work.close() }
    }

    /// Runs work that blocks on a thread kept for it.
    /// - Returns: whether it will run; once the store is being closed it does not.
    @discardableResult
    package func perform(_ work: @escaping @Sendable () -> Void) -> Bool { clerks.run(work) }

    /// The same for what reads whole files: it must not keep others waiting.
    @discardableResult
    package func performLong(_ work: @escaping @Sendable () -> Void) -> Bool { auditors.run(work) }

    // MARK: What others have to know

    /// - Parameter tell: called on a thread of the store's: what is known of this resource, or this generation of it,
    ///   is so no longer.
    package func whenChanged(_ tell: @escaping @Sendable (CacheKey, Generation?) -> Void) {
        core.listeners.whenChanged(tell)
    }

    /// - Parameter close: called from any thread where no more files can be opened: lets go of what is open in case.
    package func whenShortOfFiles(_ close: @escaping @Sendable () -> Void) { core.listeners.whenShortOfFiles(close) }

    /// What others have just let go of is closed soon, and not only at the next look: descriptors are few.
    package func closeLetGo() { queue.async { _ = $0.closer.closeUnused() } }

    /// How many generations are open.
    package var openCount: Int { core.open.count }

    /// A disk that fails does so again and again: each is counted, and logged once a minute.
    package func reportDisk(_ what: String, _ error: StoreError, label: String = "store") {
        core.faults.note(what, error, label: label)
    }

    // MARK: Finding

    /// Looks a resource up in the index. Calls back on a thread of its own.
    package func load(_ key: CacheKey, then deliver: @escaping @Sendable (Result<Generation?, StoreError>) -> Void) {
        readers.run { [self] in
            do throws(StoreError) {
                let found = try loader.load(key)
                if found == nil { fillKeyFilter() }
                deliver(.success(found))
            } catch { deliver(.failure(error)) }
        }
    }

    /// Whether nothing is cached of a resource, as far as that can be told at once.
    package func certainlyLacks(_ key: CacheKey) -> Bool {
        // In this order: what is no longer open has been entered before.
        !isKnown(key) && index.keys.certainlyLacks(key)
    }

    /// In the background, once something was looked up in vain: who plays what is cached does not need it.
    private func fillKeyFilter() {
        guard index.keys.beginFilling() else { return }
        let runs = auditors.run { [core] in
            core.faults.report("read which resources are cached") { () throws(StoreError) in
                try core.index.fillKeys { core.isEnding }
            }
        }
        if !runs { index.keys.endFilling(isComplete: false) }
    }

    /// Whether a generation of a resource, other than this one, is in use or on its way to the index.
    package func isKnown(_ key: CacheKey, beside generation: Generation? = nil) -> Bool {
        core.open.newest(of: key).map { $0 !== generation } ?? false
    }

    /// Finds what origins chose by other request fields, for resources that have such. Calls back on a thread of its
    /// own.
    package func withVariants(_ keys: [CacheKey], then deliver: @escaping @Sendable ([CacheKey]) -> Void) {
        readers.run { [loader] in deliver(loader.withVariants(keys)) }
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

    // MARK: Filling

    /// Makes a new generation with nothing in it.
    /// - Parameters:
    ///   - length: nil while unknown.
    ///   - isHidden: whether nobody is to find it before it is finished.
    ///   - whole: the presentation that the resource is a part of; nil changes nothing of what is known of that.
    /// - Throws: `StoreError`; where there is no room even for an empty file, a `.system` error with ENOSPC.
    package func makeGeneration(
        _ key: CacheKey, head: GenerationHead, length: Int64?, isHidden: Bool = false, partOf whole: CacheKey? = nil
    ) throws(StoreError) -> Generation {
        try loader.make(key, head: head, length: length, isHidden: isHidden, partOf: whole)
    }

    /// Makes a buffer in memory through which a response that is not stored passes.
    package func makeBuffer(
        _ key: CacheKey, head: GenerationHead, length: Int64?, geometry: ChunkGeometry = bufferGeometry
    ) -> Generation {
        Generation(
            id: core.files.makeID(), key: key, head: head,
            chunks: ChunkTable(geometry, length: length, isStored: false), file: MemoryBytes(), ledger: ledger)
    }

    /// Extents of 1 MiB: what a reader has passed is given back soon.
    package static let bufferGeometry = ChunkGeometry(chunkSize: 16 << 10)!

    /// The right to fill a generation from the start of a chunk on.
    package func writer(_ generation: Generation, at offset: Int64, stopsAtPresent: Bool) -> ChunkWriter {
        ChunkWriter(generation, at: offset, stopsAtPresent: stopsAtPresent, store: self)
    }

    /// A file that grows without its length being known may have so many bytes.
    package var longestFile: Int64 { max(0, FileSizeLimit.current - 2 * configuration.geometry.chunkSize) }

    /// A chunk is in its file; the next checkpoint makes it durable.
    func noteWritten(_ generation: Generation, bytes: Int64) {
        let limit = generation.isEager ? Checkpointer.eagerBytes : Checkpointer.bytes
        if core.unsaved.add(generation, bytes: bytes, limit: limit) { queue.async { $0.checkpointer.checkpoint() } }
    }

    /// Has the index told of a generation's chunks before much has come, or no longer: less is fetched again after a
    /// kill.
    package func savesSoon(_ generation: Generation, _ isWanted: Bool) { generation.saveSoon(isWanted) }

    /// Frees space for a writer that found none.
    /// - Parameter deliver: called on the store's queue: whether something was freed. False: everything is leased or
    ///   pinned, and the caller has to go on without the cache.
    package func makeRoom(then deliver: @escaping @Sendable (Bool) -> Void) {
        queue.async { deliver($0.evictor.makeRoom()) }
    }

    /// Replaced or not to be kept: gone from the index at once, from the disk when the last reader has closed it.
    package func retire(_ generation: Generation) {
        if generation.retire() { queue.async { $0.remover.endRetired(generation) } }
    }

    // MARK: Reading

    /// Compares the checksums of an extent's unverified chunks; those that differ are absent afterwards. Calls back
    /// when done.
    package func verify(_ generation: Generation, extent ordinal: Int, then deliver: @escaping @Sendable () -> Void) {
        verifier.verify(generation, extent: ordinal, on: readers, then: deliver)
    }

    /// Brings a range into memory off the loops. Calls back with whether the disk gave it.
    package func warm(_ generation: Generation, _ range: Range<Int64>, then deliver: @escaping @Sendable (Bool) -> Void)
    {
        readers.run { [core] in
            do throws(StoreError) {
                try generation.file.warm(range)
                deliver(true)
            } catch {
                core.faults.note("read chunks, so they are dropped", error, label: "disk-read")
                generation.dropChunks(touching: range)
                deliver(false)
            }
        }
    }
}
