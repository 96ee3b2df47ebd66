import Logging
import Synchronization

/// Keeps what is logged.
final class LogBook: Sendable {
    private let stored = Mutex<[(level: Logger.Level, text: String)]>([])

    var logger: Logger { Logger(label: "test") { _ in Handler(book: self) } }

    func lines(_ level: Logger.Level) -> [String] { stored.withLock { $0.filter { $0.level == level }.map(\.text) } }

    private struct Handler: LogHandler {
        let book: LogBook
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.trace

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) { book.stored.withLock { $0.append((event.level, "\(event.message)")) } }
    }
}
