import Logging
import Metrics
import Synchronization

/// Counts and logs what goes wrong without anybody waiting for it.
final class FaultLog: Sendable {
    private let metrics: ProxyMetrics
    private let logger: Logger
    /// When something that may go wrong again and again was last logged, in microseconds since 1970.
    private let lastReports = Mutex<[String: Int64]>([:])

    init(_ metrics: ProxyMetrics, _ logger: Logger) { (self.metrics, self.logger) = (metrics, logger) }

    /// Does what may fail.
    /// - Parameter what: completes "could not ...".
    /// - Returns: whether it went well.
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

    /// A disk that fails does so again and again: each is counted, and logged once a minute.
    func note(_ what: String, _ error: StoreError, label: String = "store") {
        metrics.errors.add(label)
        let now = AccessClock.now()
        let isNews = lastReports.withLock { reports in
            if let last = reports[what], now - last < 60_000_000 { return false }
            reports[what] = now
            return true
        }
        if isNews { logger.error("could not \(what): \(error)") }
    }
}
