import CachePolicy
import EventIO
import HTTPModel
import Logging

/// Guards every line of the log, at every level, before it is written: masks secrets in URLs, and escapes text from
/// outside, such as an origin's `Location`, so that a terminal shows it and does not obey it.
///
/// It wraps the handler of the program that opens the cache, so that no place that logs has to care about either.
struct GuardedLogHandler: LogHandler {
    private var output: any LogHandler
    private let policy: Current<ProxyPolicy>

    init(_ output: any LogHandler, _ policy: Current<ProxyPolicy>) { (self.output, self.policy) = (output, policy) }

    func log(event: LogEvent) {
        assert(HeldLocks.areNone, "a line is logged under a lock")
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

    // MARK: Forwarded to the wrapped handler

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
    /// The same logger, with secrets masked and terminal control characters escaped in its lines.
    package func guarded(by policy: Current<ProxyPolicy>) -> Logger {
        var logger = self
        logger.handler = GuardedLogHandler(handler, policy)
        return logger
    }
}
