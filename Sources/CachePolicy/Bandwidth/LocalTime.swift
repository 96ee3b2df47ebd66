import Foundation
import HTTPModel

/// What the clocks on the wall show: seconds since 1970 plus the time zone's offset from UTC, which changes with
/// daylight saving time.
///
/// *Wall time* counts seconds as if the clocks had shown UTC all along, so that its day is `wall / 86400`. It skips an
/// hour in spring, and shows one twice in autumn.
package struct LocalTime: Sendable {
    /// The seconds by which clocks are ahead of UTC, at a time in seconds since 1970.
    private let offset: @Sendable (Int64) -> Int64

    package init(offset: @escaping @Sendable (Int64) -> Int64) { self.offset = offset }

    package static let utc = LocalTime { _ in 0 }

    /// The time zone of this process: `TZ`, otherwise the system's as it was when the process started.
    package static let system = LocalTime { time in
        var (time, parts) = (time_t(time), tm())
        return localtime_r(&time, &parts) == nil ? 0 : Int64(parts.tm_gmtoff)
    }

    package static let daySeconds: Int64 = 86400
    /// Years of four digits, before and after which no offset is looked up.
    private static let times: ClosedRange<Int64> = 0...253_402_214_400

    private func offset(at time: Int64) -> Int64 {
        // Clocks around the world are less than a day apart.
        max(-Self.daySeconds, min(Self.daySeconds, offset(Self.bounded(time)))) // no trap: a constant
    }

    private static func bounded(_ time: Int64) -> Int64 { max(times.lowerBound, min(times.upperBound, time)) }

    /// The wall time at a time in seconds since 1970.
    package func wall(_ time: Int64) -> Int64 { Self.bounded(time) +| offset(at: time) }

    /// Days since 1970-01-01, as the calendar on the wall counts them.
    package func day(_ time: Int64) -> Int64 { Self.day(ofWall: wall(time)) }

    static func day(ofWall wall: Int64) -> Int64 {
        let (day, second) = wall.quotientAndRemainder(dividingBy: daySeconds) // no trap: not 0
        return second < 0 ? day -| 1 : day
    }

    /// The first moment of a day, in seconds since 1970.
    package func start(ofDay day: Int64) -> Int64 {
        let wall = day *| Self.daySeconds
        // The day begins within a day of the same time in UTC, and the wall time grows but for an hour in autumn.
        var (early, late) = (wall -| 2 *| Self.daySeconds, wall +| 2 *| Self.daySeconds)
        while late -| early > 1 {
            let middle = early +| (late -| early) / 2 // no trap: not 0
            if self.wall(middle) < wall { early = middle } else { late = middle }
        }
        return late
    }

    /// The first moment after `time` at which the offset from UTC is another one; nil if there is none before `end`.
    func transition(after time: Int64, before end: Int64) -> Int64? {
        let before = offset(at: time)
        var early = time
        while early < end {
            var late = min(end, early +| Self.daySeconds)
            guard offset(at: late) != before else {
                early = late
                continue
            }
            while late -| early > 1 {
                let middle = early +| (late -| early) / 2 // no trap: not 0
                if offset(at: middle) == before { early = middle } else { late = middle }
            }
            return late < end ? late : nil
        }
        return nil
    }
}

// MARK: Text

extension LocalTime {
    private static let weekdays = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]

    /// A moment in the future as people say it: `06:30` if it is today or the midnight that ends today, `Tue 06:30`
    /// within six days, otherwise `2026-12-01 06:30`.
    package func text(_ time: Int64, seenFrom now: Int64) -> String {
        let wall = wall(time), day = Self.day(ofWall: wall), today = self.day(now)
        let minute = (wall -| day *| Self.daySeconds) / 60 // no trap: not 0
        let clock = "\(Self.twoDigits(minute / 60)):\(Self.twoDigits(minute % 60))" // no trap: not 0
        if day == today || day == today +| 1 && minute == 0 { return clock }
        if day > today, day -| today < 7 { return "\(Self.weekdays[Self.weekday(ofDay: day)]) \(clock)" }
        return "\(Self.date(ofDay: day)) \(clock)"
    }

    /// `2026-12-01`, for days of years of four digits.
    package static func date(ofDay day: Int64) -> String {
        let date = CivilDate(daysSince1970: max(0, min(2_932_896, day)))
        return "\(date.year)-\(twoDigits(date.month))-\(twoDigits(date.day))"
    }

    /// 0 for Monday.
    static func weekday(ofDay day: Int64) -> Int {
        // 1970-01-01 was a Thursday.
        let rest = (day +| 3) % 7 // no trap: not 0
        return Int(rest < 0 ? rest +| 7 : rest)
    }

    private static func twoDigits(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
}
