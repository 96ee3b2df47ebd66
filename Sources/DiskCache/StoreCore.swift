import Activity
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
    private let ending = Atomic(false)

    init(
        _ configuration: StoreConfiguration, _ index: CacheIndex, _ ledger: CapacityLedger, _ files: GenerationFiles,
        _ faults: FaultLog, _ metrics: ProxyMetrics, _ logger: Logger, session: Int64, suspectSession: Int64
    ) {
        (self.configuration, self.index, self.ledger, self.files) = (configuration, index, ledger, files)
        (self.faults, self.metrics, self.logger) = (faults, metrics, logger)
        (self.session, self.suspectSession) = (session, suspectSession)
    }

    /// Whether the store is being closed: long walks over the cache end early.
    var isEnding: Bool { ending.load(ordering: .relaxed) }

    /// No more files can be opened: those kept open for later are released.
    func noteShortage() {
        metrics.errors.add("open-files")
        listeners.notifyShortage()
    }

    func beginEnding() { ending.store(true, ordering: .relaxed) }
}
