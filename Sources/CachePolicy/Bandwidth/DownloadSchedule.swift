import HTTPModel

/// When downloads run, and at what rate: windows of the week in local time, and a rate outside of them.
///
///     01:00-06:30          unlimited      every day
///     Sat,Sun 08:00-12:00  2MB            on two days
///     22:00-02:00          1MB            over midnight: named by the day on which it begins
///     else                 500kB          outside of all windows; off if it is missing
///
/// Where windows overlap, the first one counts, as with rules. A value without a clock.
package struct DownloadSchedule: Sendable, Equatable {
    /// What is allowed at one time.
    package enum Rate: Sendable, Equatable {
        /// Nothing is downloaded.
        case off
        /// Bytes per second of all downloads together.
        case limited(Int64)
        case unlimited

        /// nil for no limit, and while nothing is downloaded.
        package var bytesPerSecond: Int64? {
            guard case .limited(let rate) = self else { return nil }
            return rate
        }
    }

    /// A stretch of the day, on some days of the week.
    struct Window: Sendable, Equatable {
        /// 0 for Monday.
        var days: Set<Int>
        /// Minutes of the day on which it begins, half-open; beyond 1440 for the next day.
        var minutes: Range<Int>
        var rate: Rate
    }

    static let dayMinutes = 1440
    static let weekMinutes = 7 * dayMinutes
    /// The most windows of a schedule.
    static let mostWindows = 100

    let windows: [Window]
    let otherwise: Rate
    /// Where the rate changes in a week that begins on Monday: minutes, ascending from 0.
    private let changes: [(minute: Int, rate: Rate)]

    package static func == (a: DownloadSchedule, b: DownloadSchedule) -> Bool {
        a.windows == b.windows && a.otherwise == b.otherwise
    }

    init(_ windows: [Window], otherwise: Rate) {
        (self.windows, self.otherwise) = (windows, otherwise)
        let edges = windows.flatMap { window in
            window.days.flatMap { day in
                [window.minutes.lowerBound, window.minutes.upperBound].map {
                    (day * Self.dayMinutes + $0) % Self.weekMinutes // no trap: not 0
                }
            }
        }
        var changes: [(minute: Int, rate: Rate)] = []
        for minute in Set(edges + [0]).sorted() {
            let rate = windows.first { $0.contains(minute) }?.rate ?? otherwise
            if rate != changes.last?.rate { changes.append((minute, rate)) }
        }
        self.changes = changes
    }

    /// The rate at a time in seconds since 1970.
    package func rate(at time: Int64, in local: LocalTime) -> Rate { rate(atWall: local.wall(time)) }

    /// When the rate changes next, in seconds since 1970; nil if it never does.
    package func nextChange(after now: Int64, in local: LocalTime) -> Int64? {
        let current = rate(at: now, in: local), end = now +| Self.horizon
        var time = now
        // Between two changes of the offset, wall time runs as UTC does.
        while true {
            let transition = local.transition(after: time, before: end)
            let offset = local.wall(time) -| time
            if let wall = nextChange(afterWall: time +| offset, from: current), wall -| offset < transition ?? end {
                return wall -| offset
            }
            guard let transition else { return nil }
            if rate(at: transition, in: local) != current { return transition }
            time = transition
        }
    }

    /// A week, a day more for an hour that is skipped, and another for good measure.
    private static let horizon = 9 * LocalTime.daySeconds // no trap: constants

    // MARK: The week

    private func rate(atWall wall: Int64) -> Rate {
        let minute = Self.minuteOfWeek(wall)
        return changes.last { $0.minute <= minute }?.rate ?? otherwise
    }

    /// The next wall time with another rate than `rate`; nil if all have this one.
    private func nextChange(afterWall wall: Int64, from rate: Rate) -> Int64? {
        let minute = Self.minuteOfWeek(wall)
        let thisWeek = changes.first { $0.minute > minute && $0.rate != rate }?.minute
        guard let next = thisWeek ?? changes.first(where: { $0.rate != rate }).map({ $0.minute + Self.weekMinutes })
        else { return nil }
        let start = LocalTime.day(ofWall: wall) *| LocalTime.daySeconds
        let today = LocalTime.weekday(ofDay: LocalTime.day(ofWall: wall)) * Self.dayMinutes
        return start +| Int64(next - today) *| 60
    }

    private static func minuteOfWeek(_ wall: Int64) -> Int {
        let day = LocalTime.day(ofWall: wall)
        let minute = (wall -| day *| LocalTime.daySeconds) / 60 // no trap: not 0
        return LocalTime.weekday(ofDay: day) * dayMinutes + Int(minute)
    }
}

extension DownloadSchedule.Window {
    /// - Parameter minute: of the week.
    func contains(_ minute: Int) -> Bool {
        typealias Schedule = DownloadSchedule
        let (day, minuteOfDay) = minute.quotientAndRemainder(dividingBy: Schedule.dayMinutes) // no trap: not 0
        if days.contains(day), minutes.contains(minuteOfDay) { return true }
        return days.contains((day + 6) % 7) && minutes.contains(minuteOfDay + Schedule.dayMinutes) // no trap: not 0
    }
}
