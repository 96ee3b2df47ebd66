import CachePolicy
import Downloads

extension ProxyConfiguration {
    package static let maxDownloadsRange = DownloadSettings.maxActiveRange
}

extension DownloadSettings {
    /// - Throws: `.invalidSetting` for a number that is out of range, and for a schedule or a cap that is malformed.
    package init(_ configuration: ProxyConfiguration) throws(ProxyError) {
        self.init()
        let (count, range) = (configuration.maxDownloads, ProxyConfiguration.maxDownloadsRange)
        guard range.contains(count) else {
            throw .invalidSetting(
                "maxDownloads of \(count) cannot work; choose \(range.lowerBound) to \(range.upperBound)")
        }
        if let rate = configuration.downloadRate, rate <= 0 {
            throw .invalidSetting(
                "downloadRate of \(rate) cannot work; choose 1 or more bytes per second, or nil for no limit")
        }
        (maxActive, limitRate) = (count, configuration.downloadRate)
        retryFor = configuration.downloadRetryTime.components.seconds
        do throws(RuleError) { schedule = try DownloadSchedule.parse(configuration.downloadSchedule) } catch {
            throw .invalidSetting("downloadSchedule cannot work: \(error.reason)")
        }
        do throws(RuleError) { caps = try DownloadCap.parse(configuration.downloadCaps) } catch {
            throw .invalidSetting("downloadCaps cannot work: \(error.reason)")
        }
    }
}
