import Glibc
import Logging
import Reelcache

/// What settings can be changed in while it runs.
struct RunningParts: Sendable {
    let cache: MediaCache
    let logLevel: AdjustableLogLevel
}

/// The settings by which a proxy works, and how they become others while it runs. One thread at a time.
package final class RunningSettings {
    private let parts: RunningParts
    private let sources: SettingSources
    private let logger: Logger
    private var current: Settings

    /// - Parameter settings: those that the proxy was started with.
    package init(
        _ settings: Settings, from sources: SettingSources, proxy: Proxy, logLevel: AdjustableLogLevel, logger: Logger
    ) {
        parts = RunningParts(cache: proxy.cache, logLevel: logLevel)
        self.sources = sources
        self.logger = proxy.cache.guarded(logger)
        current = settings
    }

    /// Reads everything again. What has changed takes effect, unless it needs a restart; a mistake anywhere leaves all
    /// as it was. The log says what became of it.
    ///
    /// So does a file that is gone: a cache that it let grow would shrink to the default at once. Whoever wants the
    /// defaults restarts, or leaves the file empty.
    package func reload() {
        do { try parts.cache.reopenAccessLog() } catch { logger.error("\(error); the old file goes on") }
        do throws(SettingsError) {
            let wanted = try sources.read()
            if let file = current.file, wanted.file != file, access(file, F_OK) != 0 {
                return logger.error("the configuration \(file) is gone; the settings stay as they were")
            }
            let changed = Setting.all.filter { $0.command == nil && !$0.isEqual(current, wanted) }
            logger.notice(
                "read \(wanted.file ?? "the settings") again\(changed.isEmpty ? ": nothing has changed" : "")")
            // A new mount is not served for a moment without its rule.
            var policy: Result<Void, any Error>?
            for setting in changed {
                change(setting, to: wanted) { reload in
                    guard setting.isPolicy else { return try reload(parts, wanted) }
                    let result = policy ?? Result { try reload(parts, wanted) }
                    policy = result
                    try result.get()
                }
            }
            current.file = wanted.file
        } catch {
            for line in error.lines { logger.error("\(line)") }
            logger.error("the settings stay as they were")
        }
    }

    private func change(_ setting: Setting, to wanted: Settings, _ reload: (Setting.Reload) throws -> Void) {
        let (old, new) = (setting.description(in: current), setting.description(in: wanted))
        guard let change = setting.reload else {
            return logger.warning("\(setting.key) stays \(old): \(new) (\(wanted.origin(of: setting))) needs a restart")
        }
        do {
            try reload(change)
            setting.copy(from: wanted, to: &current)
            let origin = wanted.origin(of: setting)
            // As with rules, which are counted only.
            logger.notice(
                old == new
                    ? "\(setting.key) has changed (\(origin)): \(new)"
                    : "\(setting.key) is \(new) now (\(origin)), it was \(old)")
        } catch {
            logger.error("\(setting.key) stays \(old): \(error)")
        }
    }
}
