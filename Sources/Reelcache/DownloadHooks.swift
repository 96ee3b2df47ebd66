import Activity
import CachePolicy
import Downloads
import EventIO
import Logging
import Synchronization
import Upstream

/// Counts downloads that have ended, and runs the programs that the settings `on_completed` and `on_failed` name.
final class DownloadHooks: Sendable {
    /// A program with its arguments for each state that has one.
    typealias Commands = [Download.State: [String]]

    private let commands: Mutex<Commands>
    let programs: ProgramQueue
    private let metrics: ProxyMetrics
    private let directory: String
    private let policy: Current<ProxyPolicy>

    /// - Parameter directory: the cache directory.
    init(
        _ commands: Commands, _ policy: Current<ProxyPolicy>, _ metrics: ProxyMetrics, _ directory: String,
        _ logger: Logger
    ) {
        self.commands = Mutex(commands)
        programs = ProgramQueue(logger)
        (self.policy, self.metrics, self.directory) = (policy, metrics, directory)
    }

    /// - Throws: `ProxyError` for a command that cannot be one.
    static func commands(_ configuration: ProxyConfiguration) throws(ProxyError) -> Commands {
        let commands = [
            Download.State.completed: try ProxyConfiguration.parse("on_completed", checked(configuration.onCompleted)),
            .failed: try ProxyConfiguration.parse("on_failed", checked(configuration.onFailed)),
        ]
        return commands.filter { !$1.isEmpty }
    }

    private static func checked(_ command: [String]) throws(RuleError) -> [String] {
        guard command.first != "", !command.contains(where: { $0.utf8.contains(0) }) else {
            throw RuleError("names no program; write it like [notify-send, finished]")
        }
        return command
    }

    func set(_ commands: Commands) { self.commands.withLock { $0 = commands } }

    /// Does not block.
    func ended(_ download: Download) {
        switch download.state {
        case .completed: metrics.completedDownloads.add()
        case .failed: metrics.failedDownloads.add()
        default: metrics.cancelledDownloads.add()
        }
        guard let command = commands.withLock({ $0[download.state] }) else { return }
        programs.run(.init("on_\(download.state.rawValue)", command, variables(download)))
    }

    /// Variables and not arguments: what comes from outside may look like an option. `REELCACHE_CACHE_DIR` leads the
    /// commands of this program to this cache.
    private func variables(_ download: Download) -> [String: String] {
        // Only the URL is whole: programs show the rest.
        let mask = policy.value.mask
        let title = "\(DisplayName(title: download.title, fileName: download.fileName, url: download.urlText))"
        let values: [String: String?] = [
            "DOWNLOAD_ID": "\(download.id)", "DOWNLOAD_STATE": download.state.rawValue,
            "DOWNLOAD_URL": download.urlText, "DOWNLOAD_TITLE": mask.masked(title),
            "DOWNLOAD_BYTES": "\(download.bytes)", "DOWNLOAD_CATEGORY": download.category,
            "DOWNLOAD_FEED": download.feed,
            "DOWNLOAD_REASON": download.state == .failed ? download.message.map(mask.masked) : nil,
            "REELCACHE_CACHE_DIR": directory,
        ]
        return values.compactMapValues { $0?.replacing("\0", with: "") }
    }
}
