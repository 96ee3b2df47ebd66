import CacheFill
import CachePolicy
import DiskCache
import HTTPTransport
import Logging

/// What the log says of how a request is answered: at `debug` the decision, at `trace` the steps to it.
extension MediaAnswer {
    /// Has the decision logged when the answer is given, where somebody reads that.
    func explain() {
        guard logger.logLevel <= .debug else { return }
        let asked =
            "\(request.method.name) \(route.url.absolute)" + (request.combined("Range").map { " (\($0))" } ?? "")
        let logger = logger
        exchange.onRespond = { status, cacheStatus in
            logger.debug("\(asked): \(status), \(cacheStatus ?? "no word of the cache")")
        }
    }

    func trace(_ step: @autoclosure () -> String) {
        logger.trace("\(route.url.absolute): \(step())")
    }

    func trace(stored: Generation.Snapshot, _ freshness: Freshness) {
        trace(
            "is stored, \(stored.length.map { "\($0) bytes" } ?? "length unknown"), fresh for \(freshness.remaining) s"
        )
    }

    private var logger: Logger { filler.filler.logger }
}
