import Downloads

/// Settings that are changed while the cache is open.
extension MediaCache {
    /// The settings that are in effect, or will be at the next start (`reconfigure`).
    public var configuration: ProxyConfiguration {
        var configuration = settings.value
        // Commands change these in the running proxy.
        (configuration.maxSize, configuration.minFree) = (engine.store.ledger.limit, engine.store.ledger.minFree)
        let downloads = downloader.manager.snapshots.summary.settings
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
            do {
                // What is invalid throws before anything has changed. The file that the cache was opened with may be gone.
                var checked = new
                if new.certificateFile == old.certificateFile { checked.certificateFile = nil }
                _ = try checked.checkedThreads()
                let downloads = try DownloadSettings(new), commands = try DownloadHooks.commands(new)
                try engine.apply(new, insteadOf: old)
                downloader.set(downloads, commands)
            } catch { throw ProxyError(error) }
            if new.servesAnyOrigin && !old.servesAnyOrigin { proxy?.warnOfStrangers() }
            settings.value = new
        }
    }
}
