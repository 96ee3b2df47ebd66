import Logging
import Synchronization

/// A log level that can be changed while the program logs.
package final class AdjustableLogLevel: Sendable {
    private static let levels = Logger.Level.allCases
    private let index: Atomic<Int>

    package init(_ level: Logger.Level) {
        index = Atomic(Self.index(of: level))
    }

    package var current: Logger.Level {
        get { Self.levels[index.load(ordering: .relaxed)] }
        set { index.store(Self.index(of: newValue), ordering: .relaxed) }
    }

    private static func index(of level: Logger.Level) -> Int { levels.firstIndex(of: level) ?? 0 }

    /// A logger that writes messages of this level and above to standard error.
    package func logger(label: String) -> Logger {
        Logger(label: label) { AdjustableLogHandler(level: self, output: .standardError(label: $0)) }
    }
}

private struct AdjustableLogHandler: LogHandler {
    let level: AdjustableLogLevel
    var output: StreamLogHandler

    var logLevel: Logger.Level {
        get { level.current }
        set { level.current = newValue }
    }

    var metadata: Logger.Metadata {
        get { output.metadata }
        set { output.metadata = newValue }
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { output[metadataKey: key] }
        set { output[metadataKey: key] = newValue }
    }

    func log(event: LogEvent) { output.log(event: event) }
}
