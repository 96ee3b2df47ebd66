import CachePolicy
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

    /// Changes when downloads run and at what rate, in local time: `downloadSchedule` of `ProxyConfiguration`, which
    /// describes the entries; none for always. Downloads that may not run any more wait, and keep their bytes. Blocks.
    /// - Throws: `ProxyError` for an entry that is malformed, `CacheError.closed`; then nothing changes.
    public func setDownloadSchedule(_ entries: [String]) throws {
        try checkOpen()
        let schedule = try ProxyConfiguration.schedule(entries)
        setDownloads { $0.schedule = schedule }
    }

    /// Changes how many bytes downloads may fetch from origins in a day or month: `downloadCaps` of
    /// `ProxyConfiguration`, such as `2GB/day`; none for any number. Blocks.
    /// - Throws: `ProxyError` for a cap that is malformed, `CacheError.closed`; then nothing changes.
    public func setDownloadCaps(_ caps: [String]) throws {
        try checkOpen()
        let caps = try ProxyConfiguration.caps(caps)
        setDownloads { $0.caps = caps }
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
        _ = try Self.schedule(downloadSchedule)
        _ = try Self.caps(downloadCaps)
    }

    static func schedule(_ entries: [String]) throws(ProxyError) -> DownloadSchedule? {
        do throws(RuleError) { return try DownloadSchedule.parse(entries) } catch {
            throw .invalidSetting("downloadSchedule cannot work: \(error.reason)")
        }
    }

    static func caps(_ caps: [String]) throws(ProxyError) -> [DownloadCap] {
        do throws(RuleError) { return try DownloadCap.parse(caps) } catch {
            throw .invalidSetting("downloadCaps cannot work: \(error.reason)")
        }
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
    /// - Throws: `.invalidSetting` for a schedule or a cap that is malformed.
    package init(_ configuration: ProxyConfiguration) throws(ProxyError) {
        self.init()
        maxActive = configuration.maxDownloads
        limitRate = configuration.downloadRate
        schedule = try ProxyConfiguration.schedule(configuration.downloadSchedule)
        caps = try ProxyConfiguration.caps(configuration.downloadCaps)
    }
}
