import CachePolicy
import HTTPModel

/// Decides what the schedule and the caps allow, by what was fetched so far. A value: the time is passed in.
struct DownloadBudget {
    var usage: DownloadUsage
    private let local: LocalTime
    private var moment: Moment?

    /// What only time changes. It is looked up again after a minute at the latest, because clocks are set.
    private struct Moment {
        let times: Range<Int64>
        let schedule: DownloadSchedule?
        let rate: DownloadSchedule.Rate
        /// When the rate changes; nil if it never does.
        let change: Int64?
        let today: Int64
    }

    private static let longestMoment: Int64 = 60

    init(_ usage: DownloadUsage = DownloadUsage(), in local: LocalTime) { (self.usage, self.local) = (usage, local) }

    /// Counts bytes that a download has fetched.
    /// - Parameters:
    ///   - feed: the URL of its feed; nil if it has none.
    ///   - now: seconds since 1970.
    mutating func count(_ bytes: Int64, feed: String?, now: Int64) {
        guard bytes > 0 else { return }
        usage.count(bytes, feed: feed, day: look(at: now, moment?.schedule).today)
    }

    /// The bytes fetched so far in this day and month.
    mutating func report(now: Int64) -> DownloadTotals.Usage {
        let today = look(at: now, moment?.schedule).today
        return .init(
            today: usage.bytes(in: .day, of: today), thisMonth: usage.bytes(in: .month, of: today), day: today)
    }

    /// - Parameter now: seconds since 1970.
    mutating func allowance(_ settings: DownloadSettings, now: Int64) -> DownloadAllowance {
        let moment = look(at: now, settings.schedule)
        var allowance = DownloadAllowance()
        allowance.rate = moment.rate.bytesPerSecond
        allowance.hold = DownloadHold.longest([
            scheduleHold(moment, now: now), capHold(settings.caps, feed: nil, moment.today, now: now),
        ])
        for (feed, caps) in settings.feedCaps {
            allowance.feedHolds[feed] = capHold(caps, feed: feed, moment.today, now: now)
        }
        return allowance
    }

    private mutating func look(at now: Int64, _ schedule: DownloadSchedule?) -> Moment {
        if let moment, moment.times.contains(now), moment.schedule == schedule { return moment }
        let change = schedule?.nextChange(after: now, in: local), today = local.day(now)
        let end = min(change ?? .max, local.start(ofDay: today +| 1), now +| Self.longestMoment)
        let moment = Moment(
            times: Range(from: now, upTo: max(end, now)) ?? now..<now, schedule: schedule, // no trap: empty
            rate: schedule?.rate(at: now, in: local) ?? .unlimited, change: change, today: today)
        self.moment = moment
        return moment
    }

    private func scheduleHold(_ moment: Moment, now: Int64) -> DownloadHold? {
        guard moment.rate == .off else { return nil }
        guard let change = moment.change else {
            return DownloadHold(until: nil, reason: "the schedule lets no download run")
        }
        return DownloadHold(
            until: change, reason: "outside of the schedule until \(local.text(change, seenFrom: now))")
    }

    private mutating func capHold(_ caps: [DownloadCap], feed: String?, _ today: Int64, now: Int64) -> DownloadHold? {
        DownloadHold.longest(
            caps.map { cap in
                guard usage.bytes(in: cap.period, of: today, feed: feed) >= cap.bytes else { return nil }
                let end = local.start(ofDay: cap.period.days(around: today).upperBound)
                let whose = feed == nil ? "" : " of the feed"
                return DownloadHold(
                    until: end, reason: "\(cap.text)\(whose) used up until \(local.text(end, seenFrom: now))")
            })
    }
}
