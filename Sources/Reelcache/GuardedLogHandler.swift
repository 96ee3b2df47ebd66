import CachePolicy
import EventIO
import HTTPModel
import Logging

/// What every line of the log passes before it is written, at every level: secrets of URLs are masked, and what came
/// from outside, such as an origin's `Location`, is shown and not obeyed by a terminal.
///
/// It stands before the handler of whoever opens the cache, so that no place that logs has to think of either.
struct GuardedLogHandler: LogHandler {
    private var output: any LogHandler
    private let policy: Current<ProxyPolicy>

    init(_ output: any LogHandler, _ policy: Current<ProxyPolicy>) { (self.output, self.policy) = (output, policy) }

    func log(event: LogEvent) {
        var event = event
        event.message = "\(guarded(event.message.description))"
        event.metadata = event.metadata.map(guarded)
        output.log(event: event)
    }

    private func guarded(_ text: String) -> String { policy.value.mask.masked(text).printable }

    private func guarded(_ metadata: Logger.Metadata) -> Logger.Metadata { metadata.mapValues(guarded) }

    private func guarded(_ value: Logger.MetadataValue) -> Logger.MetadataValue {
        switch value {
        case .string(let text): .string(guarded(text))
        case .stringConvertible(let value): .string(guarded(value.description))
        case .dictionary(let metadata): .dictionary(guarded(metadata))
        case .array(let values): .array(values.map(guarded))
        }
    }

    // MARK: As the handler behind it

    var logLevel: Logger.Level {
        get { output.logLevel }
        set { output.logLevel = newValue }
    }

    var metadata: Logger.Metadata {
        get { output.metadata }
        set { output.metadata = newValue }
    }

    var metadataProvider: Logger.MetadataProvider? {
        get { output.metadataProvider }
        set { output.metadataProvider = newValue }
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { output[metadataKey: key] }
        set { output[metadataKey: key] = newValue }
    }
}

extension Logger {
    /// The same, with nothing secret and nothing that a terminal obeys in its lines.
    package func guarded(by policy: Current<ProxyPolicy>) -> Logger {
        var logger = self
        logger.handler = GuardedLogHandler(handler, policy)
        return logger
    }
}
