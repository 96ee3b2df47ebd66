import Logging
import Metrics
import Synchronization

/// What all parts of a store have in common. From any thread.
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
    /// Counts the times that the cache was opened.
    let session: Int64
    /// What was written in this session or before is verified before it is served.
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

    /// Whether the store is being closed: what goes through all that is cached ends early.
    var isEnding: Bool { ending.load(ordering: .relaxed) }

    /// No more files can be opened: who keeps some open in case lets go of them.
    func noteShortage() {
        metrics.errors.add("open-files")
        listeners.tellShortage()
    }

    func beginEnding() { ending.store(true, ordering: .relaxed) }
}
