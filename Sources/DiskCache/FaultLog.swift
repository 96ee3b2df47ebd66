import Activity
import Logging
import Synchronization

/// Counts and logs failures that nobody waits for.
final class FaultLog: Sendable {
    private let metrics: ProxyMetrics
    private let logger: Logger
    /// When each repeatable failure was last logged, by the monotonic clock.
    private let lastReports = Mutex<[String: Int64]>([:])
    /// Whether what they all come from has been logged.
    private let isSilent = Atomic(false)

    init(_ metrics: ProxyMetrics, _ logger: Logger) { (self.metrics, self.logger) = (metrics, logger) }

    /// Runs an operation that may fail.
    /// - Parameter what: completes "could not ...".
    /// - Returns: whether it succeeded.
    @discardableResult
    func report(_ what: String, _ body: () throws(StoreError) -> Void) -> Bool {
        do throws(StoreError) {
            try body()
            return true
        } catch {
            note(what, error)
            return false
        }
    }

    func silence() { isSilent.store(true, ordering: .relaxed) }

    /// Counts a failure, and logs it at most once a minute: a failing disk repeats its errors.
    func note(_ what: String, _ error: StoreError, label: String = "store") {
        metrics.errors.add(label)
        guard !isSilent.load(ordering: .relaxed) else { return }
        let now = AccessClock.monotonic()
        let isNews = lastReports.withLock { reports in
            if let last = reports[what], now - last < 60_000_000 { return false }
            reports[what] = now
            return true
        }
        if isNews { logger.error("could not \(what): \(error)") }
    }
}
