import Logging
import Synchronization

/// Keeps what is logged.
package final class LogBook: Sendable {
    private let stored = Mutex<[LogEvent]>([])

    package init() {}

    package var logger: Logger { Logger(label: "test") { _ in Handler(book: self) } }

    package func lines(_ level: Logger.Level) -> [String] {
        stored.withLock { $0.filter { $0.level == level }.map { "\($0.message)" } }
    }

    /// All of it, with levels and metadata.
    package var lines: [String] {
        stored.withLock { $0.map { "\($0.level) \($0.message) \($0.metadata.map { "\($0)" } ?? "")" } }
    }

    private struct Handler: LogHandler {
        let book: LogBook
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.trace

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) { book.stored.withLock { $0.append(event) } }
    }
}
