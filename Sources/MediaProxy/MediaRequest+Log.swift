import CacheFill
import CachePolicy
import DiskCache
import HTTPTransport

/// Logs how it is answered: the decision at `debug`, the steps towards it at `trace`.
extension MediaRequest {
    /// Logs the decision when the answer is given, if the log level includes it.
    func explain() {
        guard isExplained else { return }
        let logger = filler.filler.logger
        let requested = "\(head.method.name) \(route.text)" + (head.combined("Range").map { " (\($0))" } ?? "")
        exchange.onRespond { status, cacheStatus in
            logger.debug("\(requested): \(status), \(cacheStatus?.fieldValue ?? "no Cache-Status")")
        }
    }

    func trace(_ step: @autoclosure () -> String) {
        if isExplained { filler.filler.logger.trace("\(route.text): \(step())") }
    }

    func trace(stored: Generation.Snapshot, _ freshness: Freshness) {
        trace(
            "stored, \(stored.length.map { "\($0) bytes" } ?? "length unknown"), fresh for \(freshness.remaining) s"
        )
    }
}
