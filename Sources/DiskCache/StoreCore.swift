import Activity
import Glibc
import Logging
import Synchronization

/// What all parts of a store share. Can be used from any thread.
final class StoreCore: Sendable {
    let configuration: StoreConfiguration
    let index: CacheIndex
    let ledger: CapacityLedger
    let files: GenerationFiles
    let open = OpenGenerations()
    let unsaved = UnsavedGenerations()
    let listeners = StoreListeners()
    let faults: FaultLog
    let metrics: ProxyMetrics
    let logger: Logger
    /// Counts up with each opening of the cache.
    let session: Int64
    /// Chunks written in this session or an earlier one are verified before they are served.
    let suspectSession: Int64
    private let lock: DirectoryLock
    private let ending = Atomic(false)
    private let displaced = Atomic(false)

    init(
        _ configuration: StoreConfiguration, _ index: CacheIndex, _ ledger: CapacityLedger, _ files: GenerationFiles,
        _ lock: DirectoryLock, _ faults: FaultLog, _ metrics: ProxyMetrics, _ logger: Logger, session: Int64,
        suspectSession: Int64
    ) {
        (self.configuration, self.index, self.ledger, self.files) = (configuration, index, ledger, files)
        (self.faults, self.metrics, self.logger) = (faults, metrics, logger)
        (self.lock, self.session, self.suspectSession) = (lock, session, suspectSession)
    }

    /// Whether the store is being closed: long walks over the cache end early.
    var isEnding: Bool { ending.load(ordering: .relaxed) }

    /// No more files can be opened: those kept open for later are released.
    func noteShortage() {
        metrics.errors.add("open-files")
        listeners.notifyShortage()
    }

    /// Whether the cache directory was removed or moved away beneath this process: then nothing more is stored.
    var isDisplaced: Bool { displaced.load(ordering: .relaxed) }

    /// Looks whether it is still there.
    func findPlace() {
        guard !lock.isInPlace, !displaced.exchange(true, ordering: .relaxed) else { return }
        metrics.errors.add("directory-gone")
        logger.error(
            """
            the cache directory \(configuration.directory) was removed or moved away: nothing more is cached, and \
            responses pass through; restart the proxy
            """)
        faults.silence()
    }

    /// Asked where a file is missing: if all of them are, they are not gone.
    /// - Throws: if the cache directory is not there any more.
    func checkPlace() throws(StoreError) {
        findPlace()
        if isDisplaced { throw .system(operation: "find", path: configuration.directory, code: ENOENT) }
    }

    func beginEnding() { ending.store(true, ordering: .relaxed) }
}
