import CachePolicy
import Foundation
import HTTPModel

/// The totals of all downloads that have not ended.
public struct DownloadTotals: Codable, Sendable, Equatable {
    /// The number of waiting downloads.
    public var waiting = 0
    /// The number of running downloads.
    public var downloading = 0
    /// The number of paused downloads.
    public var paused = 0
    /// The number of ordered bytes that are cached.
    public var bytes: Int64 = 0
    /// The number of ordered bytes; nil while that of any download is unknown.
    public var total: Int64? = 0
    /// The recent rate in bytes per second.
    public var bytesPerSecond: Int64 = 0
    /// Seconds until all are completed; nil while unknown.
    package var eta: Int64?
    package var settings = DownloadSettings()
    /// Whether nothing begins because the proxy is offline. Up to date while any download has not ended.
    public var isOffline = false
    /// Why none of the waiting ones begins, such as `outside of the schedule until 01:00`; nil if they may.
    public var hold: String?
    /// When that ends; nil if it does not end by itself.
    public var heldUntil: Date?
    /// The schedule's rate at this time, in bytes per second; nil for no limit.
    package var scheduledRate: Int64?
    /// What was fetched from origins; nil in what a process of an earlier version has told.
    package var usage: Usage?

    private enum CodingKeys: String, CodingKey {
        case waiting, downloading, paused, bytes, total, eta, settings, isOffline, hold, heldUntil, scheduledRate, usage
        case bytesPerSecond = "rate"
    }

    /// No downloads.
    public init() {}

    /// The estimated time until all are completed; nil while unknown.
    public var timeLeft: Duration? {
        get { eta.map { .seconds($0) } }
        set { eta = newValue?.components.seconds }
    }
    /// The number of bytes that downloads have fetched from origins in this day of local time.
    public var fetchedToday: Int64 { usage?.today ?? 0 }
    /// The number of bytes that downloads have fetched from origins in this month of local time.
    public var fetchedThisMonth: Int64 { usage?.thisMonth ?? 0 }
    /// The cached fraction of all together, 0 to 1; nil while the total is unknown or nothing is ordered.
    public var fractionCompleted: Double? {
        guard let total, total > 0 else { return nil }
        return min(1, Double(bytes) / Double(total))
    }

    /// Bytes that downloads have fetched from origins, in local time.
    package struct Usage: Codable, Sendable, Equatable {
        package var today: Int64
        package var thisMonth: Int64
        /// Today, in days since 1970; nil in what another process has told.
        var day: Int64?

        private enum CodingKeys: CodingKey { case today, thisMonth }

        package init(today: Int64, thisMonth: Int64, day: Int64? = nil) {
            (self.today, self.thisMonth, self.day) = (today, thisMonth, day)
        }

        /// Whether they say the same of their days.
        package static func == (a: Usage, b: Usage) -> Bool { a.today == b.today && a.thisMonth == b.thisMonth }

        /// The same on another day.
        func seen(on today: Int64) -> Usage {
            guard let day, day != today else { return self }
            let isInMonth = DownloadCap.Period.month.days(around: today).contains(day)
            return Usage(today: 0, thisMonth: isInMonth ? thisMonth : 0, day: today)
        }
    }

    /// What it is at another time, although nothing has happened: a day or the schedule's rate may have changed.
    func seen(by clock: any DownloadClock) -> DownloadTotals {
        let (now, local) = (Int64(saturating: clock.now), clock.local)
        var summary = self
        summary.usage = (usage ?? Usage(today: 0, thisMonth: 0)).seen(on: local.day(now))
        if let schedule = settings.schedule { summary.scheduledRate = schedule.rate(at: now, in: local).bytesPerSecond }
        return summary
    }
}

/// A listing of downloads, in the order in which they run, ended ones last.
package struct DownloadListing: Codable, Sendable, Equatable {
    package var downloads: [Download]
    package var summary: DownloadTotals

    package init(downloads: [Download], summary: DownloadTotals) {
        (self.downloads, self.summary) = (downloads, summary)
    }
}
