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

/// Chunks on disk within capacity.
///
/// A *generation*'s bytes stand in one sparse file; which chunks are *present* is in memory while it is open, and in
/// the index after a *checkpoint*: data first, then `fdatasync`, then the bitmaps. Making room *evicts* the least
/// recently read extents.
///
/// Whatever blocks on the disk runs on `queue` (checkpoints, evictions: one at a time) on `readers` (look-ups, cold
/// reads), on `writers` (what comes in quickly; small pieces are written where they arrive), on `clerks` (what people
/// ask for) or on `auditors` (what reads whole files for that).
package final class CacheStore: Sendable {
    package let configuration: StoreConfiguration
    package let ledger: CapacityLedger
    let index: CacheIndex
    /// Only touched on `queue`.
    nonisolated(unsafe) let pins: PinnedCopy
    let unfinished: UnfinishedFiles
    let metrics: ProxyMetrics
    let logger: Logger
    let session: Int64
    let suspectSession: Int64
    private let holes: Atomic<Bool>
    /// Without, whole generations are evicted.
    var punchesHoles: Bool { holes.load(ordering: .relaxed) }
    let queue = DispatchQueue(label: "reelcache.store", qos: .userInitiated)
    let readers = BlockingPool("read", threads: 4)
    let writers = BlockingPool("write", threads: 2)
    let clerks = BlockingPool("clerk", threads: 2)
    let auditors = BlockingPool("audit", threads: 2)
    let registry = Mutex(Registry())
    /// Extents that are being verified, and who waits for that.
    let verifications = Mutex<[VerifiedExtent: [@Sendable () -> Void]]>([:])
    let isEnding = Atomic(false)
    /// When something that may go wrong again and again was last logged, in microseconds since 1970.
    let lastReports = Mutex<[String: Int64]>([:])
    /// Told that what was known of a resource is so no longer.
    private let onChange = Mutex<(@Sendable (CacheKey, Generation?) -> Void)?>(nil)
    /// Told that no more files can be opened.
    private let onShortage = Mutex<(@Sendable () -> Void)?>(nil)
    private let lock: DirectoryLock
    let fingerprintSeed: Int64
    let ids: Mutex<GenerationIDs>
    private let checkpointTimer: QueueTimer

    /// Which generations are open, and what has to be done about them.
    struct Registry {
        /// Kept until nobody else has them (`closeUnused`): only then, and on `queue` alone, is anything done about
        /// their files' ends.
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
        /// Generations that are not open, of which something is being evicted or removed.
        var evicting: Set<GenerationID> = []
        /// Removed while somebody was opening them: that comes to nothing.
        var removedWhileLoading: Set<GenerationID> = []
        /// Files whose holes the disk did not punch, or that it did not remove: the next session tries again.
        var leftUnfinished: Set<GenerationID> = []
        var shards: Set<String> = []
        /// Directories that have been made, and whose names are not durable yet.
        var newShards: Set<String> = []
    }

    /// Opens the cache, making it where there is none, and takes its lock.
    /// - Throws: `StoreError`: another process has it, the directory cannot be used, the index cannot be read.
    package init(_ configuration: StoreConfiguration, metrics: ProxyMetrics, logger: Logger) throws(StoreError) {
        try Self.check(maxSize: configuration.maxSize, minFree: configuration.minFree, nil)
        self.configuration = configuration
        self.metrics = metrics
        self.logger = logger
        let directory = configuration.directory
        FileSizeLimit.becomeAnError()
        try Self.makeDirectory(directory)
        lock = try DirectoryLock(directory: directory)
        PrivateFiles.correct(in: directory, logger)
        try Self.makeDirectory(directory + "/data")
        let canPunchHoles = try FileSystem.canPunchHoles(in: directory + "/data")
        holes = Atomic(configuration.punchesHoles ?? canPunchHoles)
        let opened = try Self.openIndex(directory, logger, metrics)
        index = opened.index
        pins = opened.pins
        try Self.check(maxSize: configuration.maxSize, minFree: configuration.minFree, directory)
        ledger = CapacityLedger(directory: directory, limit: configuration.maxSize, minFree: configuration.minFree)
        let previous = try index.meta(.session) ?? 0
        let wasClean = try index.meta(.isClean) ?? 1 == 1
        let boot = FileSystem.boot
        // A kill loses nothing that was written; with the machine's end, and with the index, it is not known what is
        // there.
        let (knownBoot, wasRecountDue) = (try index.meta(.boot), try index.meta(.isRecountDue) == 1)
        let isRecountDue =
            (previous == 0 || wasRecountDue || !wasClean && (boot == nil || knownBoot != boot))
            && !FileSystem.entries(directory + "/data").isEmpty
        // Numbers of a lost index must not come again; one that cannot be is no number.
        session = (1...1 << 60).contains(previous) ? previous + 1 : Int64.random(in: 1...1 << 40)
        suspectSession = try wasClean ? index.meta(.suspectSession) ?? 0 : previous
        ledger.adopt(data: try index.meta(.dataBytes) ?? 0)
        ids = Mutex(GenerationIDs(session: session))
        fingerprintSeed = try index.meta(.fingerprintSeed) ?? Int64.random(in: .min ... .max)
        try index.setMeta([
            (.fingerprintSeed, fingerprintSeed), (.session, session), (.isClean, 0), (.suspectSession, suspectSession),
            (.boot, boot ?? 0), (.isRecountDue, isRecountDue ? 1 : 0),
        ])
        // Should the log be lost later, it is still known that this session was not closed in order.
        try index.checkpointLog()
        let left = UnfinishedFiles.read(directory + "/unfinished")
        unfinished = try UnfinishedFiles(path: directory + "/unfinished")
        checkpointTimer = QueueTimer(queue)
        countIndex()
        if !wasClean { logger.notice("the cache was not closed in order; what is served from it is verified first") }
        finish(left)
        if !wasClean || !pins.isThere {
            report("complete the copy of pinned rows") { () throws(StoreError) in try completePins() }
        }
        if !punchesHoles { logger.notice("this file system cannot punch holes: whole files are evicted") }
        if isRecountDue { recount(isNew: previous == 0) }
        checkpointTimer.start { [weak self] in self?.tick() }
        readers.start()
        writers.start()
    }

    /// - Parameter directory: on the disk; nil where it is not made yet.
    private static func check(maxSize: Int64, minFree: Int64, _ directory: String?) throws(StoreError) {
        guard maxSize >= CapacityLedger.smallestLimit else {
            throw .setting("a cache of \(maxSize) bytes is too small to work: let it have 16 MB or more")
        }
        guard minFree >= 0 else { throw .setting("what is to stay free cannot be less than 0 bytes") }
        guard let directory, let disk = FileSystem.disk(of: directory)?.size, disk > 0 else { return }
        guard minFree < disk else {
            throw .setting(
                "\(ByteSize(bytes: minFree)) cannot always stay free: the whole disk has \(ByteSize(bytes: disk))")
        }
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
            throw .directory(
                "cannot make the cache directory \(path): \(String(cString: strerror(code)))", .otherDirectory)
        }
        guard info.st_mode & S_IFMT == S_IFDIR else {
            throw .directory("the cache directory \(path) is not a directory", .otherDirectory)
        }
    }

    /// Each second, on `queue`.
    func tick() {
        let now = AccessClock.now()
        // The order of last reads outlives a kill, too, but for the last seconds.
        checkpoint(touchesToo: now / 1_000_000 % 10 == 0)
        ledger.refreshDisk()
        if configuration.evictsAhead, ledger.shortage > 0 { evict(ledger.shortage) }
        closeUnused()
        dropIdleMappings()
        report("shrink the index") { () throws(StoreError) in try index.shrink() }
        countIndex()
    }

    /// Changes the limits. What is too much is evicted before this returns, as far as it is not in use.
    /// - Throws: `.setting` where they cannot work.
    package func setLimits(maxSize: Int64?, minFree: Int64?) throws(StoreError) {
        try Self.check(maxSize: maxSize ?? ledger.limit, minFree: minFree ?? ledger.minFree, configuration.directory)
        ledger.setLimits(maxSize: maxSize, minFree: minFree)
        queue.sync {
            if configuration.evictsAhead, ledger.shortage > 0 { evict(ledger.shortage) }
        }
    }

    /// Tells other processes where this cache's proxy can be reached.
    package func announce(url: String) throws(StoreError) {
        try lock.announce(CacheOwner(pid: getpid(), url: url))
    }

    /// Waits for what the threads for reading and writing are doing, and ends them.
    package func endThreads() {
        isEnding.store(true, ordering: .relaxed)
        writers.stop()
        readers.stop()
        clerks.stop()
        auditors.stop()
    }

    /// Saves everything and marks the cache as closed in order. Blocks. Nothing may be written any more.
    package func close() throws(StoreError) {
        endThreads()
        let outcome: Result<Void, StoreError> = queue.sync {
            checkpointTimer.cancel()
            checkpoint(touchesToo: true)
            closeUnused()
            // Somebody still has them, who writes no more.
            let unsettled = settle(registry.withLock { Array($0.open.values) }.filter { !$0.isLeftover })
            let left = registry.withLock { registry in
                registry.leftUnfinished.union(registry.unsaved.keys).union(unsettled).union(
                    registry.open.values.filter(\.isLeftover).map(\.id))
            }
            do throws(StoreError) {
                try unfinished.shorten { left }
                // What was removed and punched is durable with the names that came after it.
                try FileSystem.syncDirectory(configuration.directory)
                try index.setMeta([(.isClean, 1)])
                try pins.close()
                try index.close()
                return .success(())
            } catch { return .failure(error) }
        }
        lock.release()
        try outcome.get()
    }

    // MARK: What goes wrong

    /// Does what may fail without anybody waiting for it: logs and counts what went wrong.
    /// - Returns: whether it went well.
    @discardableResult
    func report(_ what: String, _ body: () throws(StoreError) -> Void) -> Bool {
        do throws(StoreError) {
            try body()
            return true
        } catch {
            reportDisk(what, error)
            return false
        }
    }

    /// A disk that fails does so again and again: each is counted, and logged once a minute.
    package func reportDisk(_ what: String, _ error: StoreError, label: String = "store") {
        metrics.errors.add(label)
        let now = AccessClock.now()
        let isNews = lastReports.withLock { reports in
            if let last = reports[what], now - last < 60_000_000 { return false }
            reports[what] = now
            return true
        }
        if isNews { logger.error("could not \(what): \(error)") }
    }

    /// It was not tried at the start, or the disk is another one by now.
    func cannotPunchHoles() {
        guard holes.exchange(false, ordering: .relaxed) else { return }
        logger.notice("this file system cannot punch holes: whole files are evicted")
    }

    // MARK: What others have to know

    /// - Parameter tell: called on a thread of the store's: what is known of this resource, or this generation of it,
    ///   is so no longer.
    package func whenChanged(_ tell: @escaping @Sendable (CacheKey, Generation?) -> Void) {
        onChange.withLock { $0 = tell }
    }

    func tellChanged(_ key: CacheKey, _ generation: Generation?) {
        onChange.withLock { $0 }?(key, generation)
    }

    /// - Parameter close: called from any thread where no more files can be opened: lets go of what is open in case.
    package func whenShortOfFiles(_ close: @escaping @Sendable () -> Void) { onShortage.withLock { $0 = close } }

    /// What others have just let go of is closed soon, and not only at the next look: descriptors are few.
    package func closeLetGo() { queue.async { [self] in closeUnused() } }

    /// What is open in case is let go of; the store's queue closes it.
    func closeInShortage() {
        metrics.errors.add("open-files")
        onShortage.withLock { $0 }?()
        queue.async { [self] in closeUnused() }
    }

    /// How many generations are open.
    package var openCount: Int { registry.withLock { $0.open.count } }
}
