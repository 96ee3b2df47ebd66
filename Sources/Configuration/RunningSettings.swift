import Foundation
import Logging
import Reelcache

/// The settings of a running proxy, and how to change them. For one thread at a time.
package final class RunningSettings {
    private let proxy: Proxy
    private let logLevel: AdjustableLogLevel
    private let sources: SettingSources
    private let logger: Logger
    package private(set) var current: Settings

    /// - Parameter settings: those with which the proxy was started.
    package init(
        _ settings: Settings, from sources: SettingSources, proxy: Proxy, logLevel: AdjustableLogLevel
    ) {
        self.proxy = proxy
        logger = proxy.cache.logger
        self.logLevel = logLevel
        self.sources = sources
        current = settings
        // `reload` checks the file that will be read, whichever its own command line names.
        proxy.announce(configurationFiles: sources.files.map { URL(fileURLWithPath: $0).path })
    }

    /// Reads all sources again. Changes take effect, except those that need a restart; a mistake anywhere leaves all
    /// settings unchanged. The log tells which.
    ///
    /// A missing file changes nothing either: a large cache would shrink to the default size at once. To return to the
    /// defaults, restart the proxy or empty the file.
    package func reload() {
        do { try proxy.reopenAccessLog() } catch { logger.error("\(error); the old file stays open") }
        do throws(SettingsError) {
            let wanted = try sources.read()
            if let file = current.file, wanted.file != file, access(file, F_OK) != 0 {
                return logger.error("the configuration \(file) is gone; the settings are unchanged")
            }
            let changed = Setting.all.filter { $0.command == nil && !$0.isEqual(current, wanted) }
            logger.notice(
                "read \(wanted.file ?? "the settings") again\(changed.isEmpty ? ": nothing has changed" : "")")
            for setting in changed where setting.needsRestart {
                logger.warning(
                    "\(setting.key) stays \(setting.description(in: current)): \(setting.description(in: wanted)) (\(wanted.origin(of: setting))) takes effect after a restart"
                )
            }
            take(changed.filter { !$0.needsRestart }, from: wanted)
            current.file = wanted.file
        } catch {
            for line in error.lines { logger.error("\(line)") }
            logger.error("the settings are unchanged")
        }
    }

    /// All at once: a new mount must not be served for a moment without its rule.
    private func take(_ changed: [Setting], from wanted: Settings) {
        do {
            try proxy.cache.reconfigure { configuration in
                // Those that have not changed stay as they are, which commands may have set.
                var settings = Settings()
                settings.proxy = configuration
                for setting in changed { setting.copy(from: wanted, to: &settings) }
                configuration = settings.proxy
            }
        } catch {
            logger.error("\(error)")
            return logger.error("the settings are unchanged")
        }
        logLevel.current = wanted.logLevel
        for setting in changed {
            let (old, new) = (setting.description(in: current), setting.description(in: wanted))
            setting.copy(from: wanted, to: &current)
            let origin = wanted.origin(of: setting)
            // Of rules, the description is only their number.
            logger.notice(
                old == new
                    ? "\(setting.key) has changed (\(origin)): \(new)"
                    : "\(setting.key) is now \(new) (\(origin)); it was \(old)")
        }
    }
}
