import CachePolicy
import Downloads
import Logging

/// Settings that are changed while the cache is open.
extension MediaCache {
    /// The settings that are in effect, or will be at the next start (`reconfigure`).
    public var configuration: ProxyConfiguration {
        var configuration = settings.value
        // Commands change these in the running proxy.
        (configuration.maxSize, configuration.minFree) = (engine.store.ledger.limit, engine.store.ledger.minFree)
        let downloads = manager.snapshots.summary.settings
        (configuration.maxDownloads, configuration.downloadRate) = (downloads.maxActive, downloads.limitRate)
        return configuration
    }

    /// Changes settings. Those that decide about requests change in one step: no request meets only a part of them.
    /// Running responses and transfers continue. A smaller `maxSize` evicts the excess before this returns, as far as it
    /// is not being read. Blocks.
    ///
    /// ```swift
    /// try cache.reconfigure { $0.isOffline = true }
    /// ```
    ///
    /// The address, `names`, `trusted` and `expectsProxyHeader` take effect when the proxy is started the next time;
    /// `linger`, `connectTimeout`, `stallTimeout`, `maxFetches`, `maxFetchesPerHost`, `threads` and `certificateFile`
    /// when the cache is opened again. An open cache keeps its `cacheDirectory`.
    /// - Parameter change: changes the settings that are in effect.
    /// - Throws: `ProxyError` for the first invalid setting, a failing disk; `CacheError.closed`. Then nothing changes.
    public func reconfigure(_ change: (inout ProxyConfiguration) throws -> Void) throws {
        try reconfigurations.sync {
            try checkOpen()
            let old = configuration
            var new = old
            try change(&new)
            new.cacheDirectory = old.cacheDirectory
            do { try apply(new, insteadOf: old) } catch { throw ProxyError(error) }
            settings.value = new
        }
    }

    private func apply(_ new: ProxyConfiguration, insteadOf old: ProxyConfiguration) throws {
        // What is invalid throws before anything has changed. The file that the cache was opened with may be gone.
        var checked = new
        if new.certificateFile == old.certificateFile { checked.certificateFile = nil }
        _ = try Self.check(checked)
        let (policy, clients, outgoing) = (try new.policy(), try new.clientLimits(), try new.outgoingProxy())
        let addresses = try AddressPolicy(allow: new.allow)
        let maxBuffered = try ProxyConfiguration.checked(maxBuffered: new.maxBuffered)
        let maxShortResponses = try ProxyConfiguration.checked(maxShortResponses: new.maxShortResponses)
        let downloads = try DownloadSettings(new)
        let hooks = try DownloadHooks.commands(new)
        if new.accessLog != old.accessLog { try engine.accessLog.open(new.accessLog) }
        if (new.maxSize, new.minFree) != (old.maxSize, old.minFree) {
            do { try engine.store.setLimits(maxSize: new.maxSize, minFree: new.minFree) } catch {
                try engine.accessLog.open(old.accessLog)
                throw error
            }
        }
        change(to: policy)
        if new.allow != old.allow { engine.addresses.change { $0 = addresses.on($0.local, $0.translations) } }
        if outgoing != engine.outgoing.value {
            engine.outgoing.value = outgoing
            engine.noteOutgoingProxy()
        }
        engine.filler.shortResponses.setLimit(Int(maxShortResponses))
        engine.metrics.transit.setLimit(maxBuffered)
        self.hooks.set(hooks)
        engine.accessLog.format.value = new.accessLogFormat
        if try clients != old.clientLimits() { clientLimits.value = clients.bounded(by: engine.descriptors, logger) }
        manager.perform { manager in
            var settings = manager.snapshots.summary.settings
            guard settings != downloads else { return }
            (settings.maxActive, settings.limitRate) = (downloads.maxActive, downloads.limitRate)
            (settings.schedule, settings.caps) = (downloads.schedule, downloads.caps)
            settings.retryFor = downloads.retryFor
            manager.set(settings)
        }
    }

    private func change(to policy: ProxyPolicy) {
        var policy = policy
        let old = engine.policy.value
        // Learnt and chosen by the program, not configured.
        (policy.aliases, policy.adviceWords) = (old.aliases, old.adviceWords)
        guard policy != old else { return }
        engine.policy.change {
            let aliases = $0.aliases
            $0 = policy
            $0.aliases = aliases
        }
        if policy.servesAnyOrigin && !old.servesAnyOrigin { proxy?.warnOfStrangers() }
    }

    /// Reopens the access log under its name, after the file was renamed.
    package func reopenAccessLog() throws {
        try checkOpen()
        try engine.accessLog.reopen()
    }

    /// A logger that masks and escapes what the log of this cache masks and escapes.
    package func guarded(_ logger: Logger) -> Logger { logger.guarded(by: engine.policy) }
}
