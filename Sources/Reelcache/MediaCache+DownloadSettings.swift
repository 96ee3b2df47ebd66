import Downloads

extension MediaCache {
    /// Changes how many downloads may run at once: `maxDownloads` of `ProxyConfiguration`. Downloads in excess
    /// return to the queue. Blocks.
    /// - Throws: `ProxyError` for a number out of range, `CacheError.closed`; then nothing changes.
    public func setMaxDownloads(_ count: Int) throws {
        try checkOpen()
        try ProxyConfiguration.check(maxDownloads: count)
        setDownloads { $0.maxActive = count }
    }

    /// Changes the rate limit of all downloads together, in bytes per second, nil for none: `downloadRate` of
    /// `ProxyConfiguration`. Blocks.
    /// - Throws: `ProxyError` for a limit that is not above 0, `CacheError.closed`; then nothing changes.
    public func setDownloadRate(_ rate: Int64?) throws {
        try checkOpen()
        try ProxyConfiguration.check(downloadRate: rate)
        setDownloads { $0.limitRate = rate }
    }

    private func setDownloads(_ change: @Sendable (inout DownloadSettings) -> Void) {
        manager.perform { manager in
            var settings = manager.snapshots.summary.settings
            change(&settings)
            manager.set(settings)
        }
    }
}

extension ProxyConfiguration {
    package static let maxDownloadsRange = DownloadSettings.maxActiveRange

    package func checkDownloads() throws(ProxyError) {
        try Self.check(maxDownloads: maxDownloads)
        try Self.check(downloadRate: downloadRate)
    }

    static func check(maxDownloads count: Int) throws(ProxyError) {
        guard !maxDownloadsRange.contains(count) else { return }
        throw .invalidSetting(
            "maxDownloads of \(count) cannot work; choose \(maxDownloadsRange.lowerBound) to \(maxDownloadsRange.upperBound)"
        )
    }

    static func check(downloadRate rate: Int64?) throws(ProxyError) {
        if let rate, rate <= 0 {
            throw .invalidSetting(
                "downloadRate of \(rate) cannot work; choose 1 or more bytes per second, or nil for no limit")
        }
    }
}

extension DownloadSettings {
    package init(_ configuration: ProxyConfiguration) {
        self.init()
        maxActive = configuration.maxDownloads
        limitRate = configuration.downloadRate
    }
}
