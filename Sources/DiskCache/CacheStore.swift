import Activity
import CachePolicy
import Foundation
import HTTPModel
import Logging
import Synchronization

#if DEBUG
/// Counts what its thread holds.
typealias Mutex = CountedMutex
#endif

/// Where the cache is, and its limits.
package struct StoreConfiguration: Sendable {
    /// The cache directory; created if missing.
    package var directory: String
    /// A limit on allocated bytes, data and index together; never exceeded.
    package var maxSize: Int64 = 20_000_000_000
    /// Bytes of the disk that always stay free.
    package var minFree: Int64 = 1_000_000_000
    /// For new generations.
    package var geometry = ChunkGeometry.standard
    /// Whether to evict before room is needed. A command that opens a cache only briefly leaves that to the proxy.
    package var evictsAhead = true
    /// What a file system does with holes in files.
    package enum Holes: UInt8, Sendable, AtomicRepresentable {
        /// It punches them: extents are evicted.
        case punched
        /// It keeps those that were never written, but punches none: whole generations are evicted.
        case kept
        /// It fills them with zeros (exFAT, FAT): all that precedes a file's last byte takes blocks.
        case filled
    }

    /// What the file system does with holes; nil to try it.
    package var holes: Holes?

    /// Runs the store's work, in a simulation.
    package var driver: (any StoreDriver)?

    package init(directory: String) { self.directory = directory }

    /// The downloads database; its size counts like that of the index.
    package static func downloads(in directory: String) -> String { directory + "/downloads.sqlite" }

    /// The database of subscriptions; its size counts likewise.
    package static func feeds(in directory: String) -> String { directory + "/feeds.sqlite" }

    /// The history of the counters; its size counts likewise.
    package static func history(in directory: String) -> String { directory + "/history" }
}

/// Stores chunks on disk within a limit. This type is the module's interface.
///
/// The bytes of a *generation* are in one sparse file. Which chunks are *present* is kept in memory while it is open,
/// and in the index after a *checkpoint*: data first, then `fdatasync`, then the bitmaps. To make room, the store
/// *evicts* the least recently read extents.
///
/// Work that blocks on the disk runs on `queue` (checkpoints and evictions, one at a time), `readers` (look-ups, cold
/// reads), `writers` (large writes; small ones happen on the loop), `clerks` (commands), `scrubbers` (commands that
/// read whole files) or `texts` (work on documents of origins, which nothing
/// waits for at the end).
///
/// Lock order, where two are held together: `UnfinishedFiles`, then `OpenGenerations`, then a `Generation`'s state. All
/// other locks of the store are leaves.
package final class CacheStore: Sendable {
    package let configuration: StoreConfiguration
    package let ledger: CapacityLedger
    /// Whom it notifies.
    package let listeners: StoreListeners
    /// The parts of presentations.
    package let parts: Parts
    package let restorePoints: RestorePoints
    package let verifier: Verifier
    package let readings = SharedReadings()
    let core: StoreCore
    let queue: StoreQueue
    let loader: Loader
    let readers, writers, clerks, scrubbers, texts: BlockingPool
    private let lock: DirectoryLock
    private let fingerprintSeed: Int64

    /// Opens the cache, creating it if there is none, and takes its lock.
    /// - Throws: `StoreError`: another process has it open, or the directory or the index cannot be used.
    package init(_ configuration: StoreConfiguration, metrics: ProxyMetrics, logger: Logger) throws(StoreError) {
        let opening = try StoreOpening(configuration, metrics: metrics, logger: logger)
        let (unfinished, wasClean) = (opening.unfinished, opening.wasClean)
        let (isNew, isRecountDue) = (opening.isNew, opening.isRecountDue)
        (core, lock, fingerprintSeed) = (opening.core, opening.lock, opening.fingerprintSeed)
        (ledger, listeners) = (core.ledger, core.listeners)
        let driver = configuration.driver
        queue = StoreQueue(StoreWork(core, opening.pins), driver)
        readers = BlockingPool("read", threads: 4, driver)
        writers = BlockingPool("write", threads: 2, driver)
        clerks = BlockingPool("clerk", threads: 2, driver)
        scrubbers = BlockingPool("scrub", threads: 2, driver)
        texts = BlockingPool("text", threads: 2, isJoined: false, driver)
        loader = Loader(core: core, queue: queue)
        verifier = Verifier(core, readers)
        parts = Parts(core: core, queue: queue)
        restorePoints = RestorePoints(core: core, queue: queue, parts: parts)
        self.configuration = configuration
        queue.sync { work in
            work.checkpointer.countIndex()
            work.recovery.finish(unfinished)
            work.recovery.completePins(wasClean: wasClean)
        }
        if isRecountDue { Recount(core: core, queue: queue).begin(isNew: isNew, on: scrubbers) }
        queue.everySecond { $0.tick() }
        // All of them now: in the midst of the work, there would be no way out if the system refused one.
        do throws(StoreError) { for pool in pools { try pool.start() } } catch {
            try? close()
            throw error
        }
    }

    private var pools: [BlockingPool] { [texts, writers, readers, clerks, scrubbers] }

    /// Changes the limits, and evicts until they are met, as far as extents are not in use.
    /// - Throws: `.setting` if the limits cannot work.
    package func setLimits(maxSize: Int64?, minFree: Int64?) throws(StoreError) {
        try StoreOpening.check(
            maxSize: maxSize ?? ledger.limit, minFree: minFree ?? ledger.minFree, configuration.directory)
        ledger.setLimits(maxSize: maxSize, minFree: minFree)
        if configuration.evictsAhead { queue.sync { _ = $0.evictor.evictShortage() } }
    }

    /// Publishes the URL of this cache's proxy for other processes.
    /// - Parameters:
    ///   - isBrief: whether it ends with a command.
    ///   - reloads: whether this process reads its configuration again on SIGHUP.
    ///   - configurationFiles: the absolute paths at which it looks for its file; nil for none.
    package func announce(
        url: String, isBrief: Bool = false, reloads: Bool = false, configurationFiles: [String]? = nil
    ) throws(StoreError) {
        try lock.write(
            CacheOwner(
                pid: getpid(), url: url, isBrief: isBrief ? true : nil, reloads: reloads ? true : nil,
                configurationFiles: configurationFiles))
    }

    /// Ends all threads but the queue's, once their work is done; work on documents is dropped, or left alone.
    package func endThreads() {
        core.beginEnding()
        for pool in pools { pool.stop() }
    }

    /// - Throws: once the cache is being closed, whose end long work that only reads is not to delay.
    package func checkOpen() throws(StoreError) {
        if core.isEnding { throw .closing }
    }

    /// Saves everything and marks the cache as cleanly closed. Blocks. Nothing may be written afterwards.
    package func close() throws(StoreError) {
        endThreads()
        defer { lock.release() }
        queue.stopTimer()
        try queue.sync { work throws(StoreError) in try work.close() }
    }

    /// Runs blocking work on a thread for commands.
    /// - Returns: whether it will run; false once the store is being closed.
    @discardableResult
    package func perform(_ work: @escaping @Sendable () -> Void) -> Bool { clerks.run(work) }

    /// The same for work that reads whole files, so that it does not keep other commands waiting.
    @discardableResult
    package func performLong(_ work: @escaping @Sendable () -> Void) -> Bool { scrubbers.run(work) }

    /// The same for work on documents of origins, so that a hostile one keeps neither loops nor commands waiting, and
    /// no host more than one of the threads.
    package func performOnText(of host: String, _ work: @escaping @Sendable () -> Void) -> Bool {
        texts.run(for: host, work)
    }

    // MARK: Files

    /// Closes released generations soon, rather than at the next tick: descriptors are scarce.
    package func closeLetGo() { queue.async { _ = $0.closer.closeUnused() } }

    /// Whether the cache directory is still there; if not, nothing more is stored.
    package var hasDirectory: Bool { !core.isDisplaced }

    /// The number of open generations.
    package var openCount: Int { core.open.count }

    /// Reports a disk error. A failing disk repeats its errors: each one is counted, but logged at most once a minute.
    /// - Parameter label: counts it, unless only room is short.
    package func reportDisk(_ what: String, _ error: StoreError, label: String = "store") {
        core.faults.note(what, error, label: error.isShortageOfRoom ? FailureKind.noRoom.rawValue : label)
    }

    // MARK: Looking up

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

    /// Whether a resource is certainly not cached, as far as that is known without waiting.
    package func certainlyLacks(_ key: CacheKey) -> Bool {
        // In this order: a generation enters the filter before it is closed.
        !isKnown(key) && core.index.keys.certainlyLacks(key)
    }

    /// Fills the key filter in the background, after the first look-up that found nothing: a player of cached resources
    /// does not need it.
    private func fillKeyFilter() {
        guard core.index.keys.beginFilling() else { return }
        let runs = scrubbers.run { [core] in
            core.faults.report("read the keys of cached resources") { () throws(StoreError) in
                try core.index.fillKeys { core.isEnding }
            }
        }
        if !runs { core.index.keys.endFilling(isComplete: false) }
    }

    /// Whether a generation of a resource, other than the given one, is open.
    package func isKnown(_ key: CacheKey, beside generation: Generation? = nil) -> Bool {
        core.open.newest(of: key).map { $0 !== generation } ?? false
    }

    /// Adds the variants of resources. Calls back on a thread of its own.
    package func withVariants(_ keys: [CacheKey], then deliver: @escaping @Sendable ([CacheKey]) -> Void) {
        readers.run { [loader] in deliver(loader.withVariants(keys)) }
    }

    /// A fingerprint that stands for a credential, which must not be stored itself: 32 hexadecimal digits, constant for
    /// the lifetime of the index, and different in other caches.
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

    /// Creates an empty generation.
    /// - Parameters:
    ///   - length: nil while unknown.
    ///   - isHidden: whether to hide it from look-ups until it is finished.
    ///   - whole: the presentation that the resource is a part of; nil leaves this as it is.
    /// - Throws: `StoreError`; a `.system` error with ENOSPC if there is no room even for an empty file.
    package func makeGeneration(
        _ key: CacheKey, head: GenerationHead, length: Int64?, isHidden: Bool = false, partOf whole: CacheKey? = nil
    ) throws(StoreError) -> Generation {
        try loader.make(key, head: head, length: length, isHidden: isHidden, partOf: whole)
    }

    /// Has look-ups find a hidden generation that is finished. The next checkpoint replaces the rows of the former.
    /// - Returns: false if another one has taken its place meanwhile, such as an import.
    package func reveal(_ generation: Generation) -> Bool {
        core.open.reveal(generation) { [core] in _ = core.unsaved.add(generation) }
    }

    /// Creates a pass-through buffer in memory, for a response that is not stored.
    /// - Parameter transit: counts what it takes of the bytes in transit.
    package func makeBuffer(
        _ key: CacheKey, head: GenerationHead, length: Int64?, geometry: ChunkGeometry = .ofBuffers,
        in transit: ProxyMetrics.Transit.Share? = nil
    ) -> Generation {
        Generation(
            id: core.files.makeID(), key: key, head: head,
            chunks: ChunkTable(geometry, length: length, isStored: false), file: MemoryBytes(transit), ledger: ledger)
    }

    /// The longest file that can be written while its length is unknown.
    package var longestFile: Int64 { max(0, FileSystem.sizeLimit - 2 * configuration.geometry.chunkSize) }

    /// Records a chunk written to its file; the next checkpoint makes it durable, which an eager user has made soon.
    func noteWritten(_ generation: Generation, bytes: Int64, isEager: Bool) {
        let limit = isEager ? Checkpointer.eagerBytes : Checkpointer.bytes
        if core.unsaved.add(generation, bytes: bytes, limit: limit) { queue.async { $0.checkpointer.checkpoint() } }
    }

    /// Frees space for a writer that found none.
    /// - Parameter deliver: called on the store's queue with whether anything was freed. If not, everything is leased
    ///   or pinned, and the caller has to continue without the cache.
    package func makeRoom(then deliver: @escaping @Sendable (Bool) -> Void) {
        queue.async { deliver($0.evictor.makeRoom()) }
    }

    /// Retires a generation that was replaced or must not be kept: it leaves the index at once, and the disk when its
    /// last reader has closed it.
    package func retire(_ generation: Generation) {
        if generation.retire() { queue.async { $0.remover.endRetired(generation) } }
    }

    // MARK: Reading

    /// Reads a range into memory off the loops. Calls back with whether the disk could read it.
    package func warm(_ generation: Generation, _ range: Range<Int64>, then deliver: @escaping @Sendable (Bool) -> Void)
    {
        readers.run { [loader] in
            deliver(loader.read(range, of: generation) { file throws(StoreError) in try file.warm(range) } != nil)
        }
    }

    /// The same where a file cannot be mapped. Calls back with a copy of the range; nil if it is only warmed.
    package func copy(
        _ generation: Generation, _ range: Range<Int64>, then deliver: @escaping @Sendable (MappedBytes?) -> Void
    ) {
        readers.run { [loader] in
            deliver(loader.read(range, of: generation) { file throws(StoreError) in try file.copy(range) })
        }
    }
}
