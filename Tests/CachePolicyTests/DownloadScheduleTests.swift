import Foundation
import Testing

@testable import CachePolicy

/// When downloads may run: a table of the week, and what daylight saving time makes of it.
@Suite struct DownloadScheduleTests {
    /// Clocks in Berlin in 2026: an hour is skipped on 29 March at 02:00, and shown twice on 25 October.
    private static let berlin = LocalTime { time in
        (seconds("2026-03-29T01:00:00Z")..<seconds("2026-10-25T01:00:00Z")).contains(time) ? 7200 : 3600
    }

    private static func seconds(_ text: String) -> Int64 {
        Int64((try? Date(text, strategy: .iso8601))?.timeIntervalSince1970 ?? -1)
    }

    private static func text(_ time: Int64?) -> String {
        time.map { Date(timeIntervalSince1970: Double($0)).formatted(.iso8601) } ?? "never"
    }

    private static func schedule(_ texts: [String]) throws -> DownloadSchedule {
        try #require(try DownloadSchedule.parse(texts))
    }

    private static let issue = ["01:00-06:30=unlimited", "Sat,Sun 08:00-12:00=2MB", "else=500kB"]
    private static let night = ["22:00-06:00=off", "else=unlimited"]
    private static let weekend = ["Fri 20:00-02:00=1MB", "Sat-Sun=unlimited"]

    // 2026-11-23 is a Monday.
    @Test(
        arguments: [
            (issue, "2026-11-23T00:59:59Z", "500kB", "2026-11-23T01:00:00Z"),
            (issue, "2026-11-23T01:00:00Z", "unlimited", "2026-11-23T06:30:00Z"),
            (issue, "2026-11-23T06:29:59Z", "unlimited", "2026-11-23T06:30:00Z"),
            (issue, "2026-11-23T06:30:00Z", "500kB", "2026-11-24T01:00:00Z"),
            (issue, "2026-11-28T07:00:00Z", "500kB", "2026-11-28T08:00:00Z"),
            (issue, "2026-11-29T11:59:00Z", "2MB", "2026-11-29T12:00:00Z"),
            (issue, "2026-12-31T23:30:00Z", "500kB", "2027-01-01T01:00:00Z"),
            (night, "2026-11-23T21:59:00Z", "unlimited", "2026-11-23T22:00:00Z"),
            (night, "2026-11-23T23:00:00Z", "off", "2026-11-24T06:00:00Z"),
            (night, "2026-11-22T05:59:59Z", "off", "2026-11-22T06:00:00Z"),
            // The window of Friday counts on Saturday morning, because it is written first.
            (weekend, "2026-11-28T01:59:00Z", "1MB", "2026-11-28T02:00:00Z"),
            (weekend, "2026-11-28T02:00:00Z", "unlimited", "2026-11-30T00:00:00Z"),
            (weekend, "2026-11-30T00:00:00Z", "off", "2026-12-04T20:00:00Z"),
            // From Sunday over midnight into Monday.
            (["Sun 23:00-01:00=1MB"], "2026-11-23T00:30:00Z", "1MB", "2026-11-23T01:00:00Z"),
            (["Sun 23:00-01:00=1MB"], "2026-11-23T01:00:00Z", "off", "2026-11-29T23:00:00Z"),
            (["00:00-24:00=1MB"], "2026-11-23T00:30:00Z", "1MB", "never"),
            (["else=off"], "2026-11-23T00:30:00Z", "off", "never"),
            (["Fri-Mon=1MB", "else=2MB"], "2026-11-24T12:00:00Z", "2MB", "2026-11-27T00:00:00Z"),
            // Windows that meet at the same rate are one.
            (["00:00-12:00=1MB", "12:00-18:00=1MB"], "2026-11-23T11:00:00Z", "1MB", "2026-11-23T18:00:00Z"),
        ])
    func rateAndItsNextChange(entries: [String], now: String, rate: String, change: String) throws {
        let schedule = try Self.schedule(entries)
        #expect(schedule.rate(at: Self.seconds(now), in: .utc).text == rate)
        #expect(Self.text(schedule.nextChange(after: Self.seconds(now), in: .utc)) == change)
    }

    @Test(
        arguments: [
            // Spring: 01:59:59 is followed by 03:00. What begins at 02:30 begins then; what ends at 02:30 has ended.
            (["02:30-05:00=1MB"], "2026-03-29T00:59:59Z", "off", "2026-03-29T01:00:00Z"),
            (["02:30-05:00=1MB"], "2026-03-29T01:00:00Z", "1MB", "2026-03-29T03:00:00Z"),
            (["01:00-02:30=1MB"], "2026-03-29T00:30:00Z", "1MB", "2026-03-29T01:00:00Z"),
            (["02:10-02:50=1MB"], "2026-03-28T12:00:00Z", "off", "2026-03-30T00:10:00Z"),
            (["01:00-06:30=1MB"], "2026-03-28T12:00:00Z", "off", "2026-03-29T00:00:00Z"),
            (["01:00-06:30=1MB"], "2026-03-29T00:00:00Z", "1MB", "2026-03-29T04:30:00Z"),
            // Autumn: 02:59:59 is followed by 02:00. A window in that hour opens twice.
            (["02:10-02:50=1MB"], "2026-10-25T00:00:00Z", "off", "2026-10-25T00:10:00Z"),
            (["02:10-02:50=1MB"], "2026-10-25T00:10:00Z", "1MB", "2026-10-25T00:50:00Z"),
            (["02:10-02:50=1MB"], "2026-10-25T00:50:00Z", "off", "2026-10-25T01:10:00Z"),
            (["02:10-02:50=1MB"], "2026-10-25T01:50:00Z", "off", "2026-10-26T01:10:00Z"),
            // It was over, and is open again at the moment at which clocks are set back.
            (["01:00-02:30=1MB"], "2026-10-25T00:45:00Z", "off", "2026-10-25T01:00:00Z"),
            (["01:00-06:30=1MB"], "2026-10-24T23:00:00Z", "1MB", "2026-10-25T05:30:00Z"),
        ])
    func daylightSavingTime(entries: [String], now: String, rate: String, change: String) throws {
        let schedule = try Self.schedule(entries)
        #expect(schedule.rate(at: Self.seconds(now), in: Self.berlin).text == rate)
        #expect(Self.text(schedule.nextChange(after: Self.seconds(now), in: Self.berlin)) == change)
    }

    /// The next change is the first moment with another rate, whatever the schedule: compared with each minute.
    @Test(arguments: [issue, night, weekend, ["02:10-02:50=1MB"], ["Sun 23:00-03:30=1MB", "else=2MB"]])
    func nextChangeIsTheFirstMinuteWithAnotherRate(entries: [String]) throws {
        let schedule = try Self.schedule(entries)
        for day in ["2026-03-28", "2026-10-24"] {
            let start = Self.seconds("\(day)T12:00:00Z")
            var changes = [schedule.nextChange(after: start, in: Self.berlin)].compactMap { $0 }
            while let last = changes.last, last < start + 2 * 86400 {
                changes.append(try #require(schedule.nextChange(after: last, in: Self.berlin)))
            }
            let seen = stride(from: start + 60, through: start + 2 * 86400, by: 60).filter {
                schedule.rate(at: $0, in: Self.berlin) != schedule.rate(at: $0 - 60, in: Self.berlin)
            }
            #expect(changes.filter { $0 <= start + 2 * 86400 } == seen)
        }
    }

    // MARK: Text

    @Test(
        arguments: [
            ("01:00-06:30=unlimited", "01:00-06:30=unlimited"), ("1:00-6:30 = UNLIMITED", "01:00-06:30=unlimited"),
            ("sat, SUN 08:00-12:00=2000000", "Sat,Sun 08:00-12:00=2MB"), ("Mon-Wed=off", "Mon,Tue,Wed=off"),
            ("Fri-Mon 22:00-06:00=1.5MB/s", "Mon,Fri,Sat,Sun 22:00-06:00=1500kB"), ("Else=512KiB", "else=512KiB"),
            ("Mon-Sun=1MB", "00:00-24:00=1MB"), ("22:00-00:00=1MB", "22:00-24:00=1MB"),
        ])
    func entriesAreReadAsPeopleWriteThem(text: String, canonical: String) throws {
        let entry = try DownloadSchedule.Entry(parsing: text)
        #expect(entry.text == canonical)
        #expect(try DownloadSchedule.Entry(parsing: canonical) == entry)
    }

    private static let window = "is not a window of time; write it like 01:00-06:30, Sat,Sun 08:00-12:00 or Mon-Fri"
    private static let rate = "is not a rate; write unlimited, off, or bytes per second like 500kB"

    @Test(
        arguments: [
            ("01:00-06:30", "'01:00-06:30' has no rate; write it like 01:00-06:30=unlimited or else=500kB"),
            ("=1MB", "'' \(window)"), ("1-6=1MB", "'1-6' \(window)"), ("01:00=1MB", "'01:00' \(window)"),
            ("25:00-26:00=1MB", "'25:00-26:00' \(window)"), ("24:00-06:00=1MB", "'24:00-06:00' \(window)"),
            ("01:60-02:00=1MB", "'01:60-02:00' \(window)"), ("01:0-02:00=1MB", "'01:0-02:00' \(window)"),
            ("-1:00-02:00=1MB", "'-1:00-02:00' \(window)"), ("01:00-02:00-03:00=1MB", "'01:00-02:00-03:00' \(window)"),
            ("٠١:00-02:00=1MB", "'٠١:00-02:00' \(window)"), ("Mo 01:00-02:00=1MB", "'Mo 01:00-02:00' \(window)"),
            ("Mon, 01:00-02:00=1MB", "'Mon, 01:00-02:00' \(window)"), ("Mon-Tue-Wed=1MB", "'Mon-Tue-Wed' \(window)"),
            ("01:00-02:00 Mon=1MB", "'01:00-02:00 Mon' \(window)"), ("always=1MB", "'always' \(window)"),
            ("02:00-02:00=1MB", "'02:00-02:00' ends when it begins; for the whole day write 00:00-24:00"),
            ("else=", "'' \(rate)"), ("else=none", "'none' \(rate)"), ("else=0", "'0' \(rate)"),
            ("else=-5MB", "'-5MB' \(rate)"), ("else=99999999999TB", "'99999999999TB' \(rate)"),
        ])
    func whatIsNoEntryIsRefusedWithWhatToWrite(text: String, reason: String) throws {
        let error = #expect(throws: RuleError.self) { try DownloadSchedule.Entry(parsing: text) }
        #expect(error?.reason == reason)
    }

    @Test func aScheduleHasOneElseAndAHundredWindows() throws {
        #expect(try DownloadSchedule.parse([]) == nil)
        let twice = #expect(throws: RuleError.self) { try DownloadSchedule.parse(["else=off", "else=1MB"]) }
        #expect(twice?.reason == "else is written twice; remove one of them")
        let many = (0..<101).map { "\($0 % 24):00-\($0 % 24):30=1MB" }
        #expect(try DownloadSchedule.parse(many.dropLast()) != nil)
        let error = #expect(throws: RuleError.self) { try DownloadSchedule.parse(many) }
        #expect(error?.reason == "it has 101 windows; write 100 at most")
    }

    /// No time from a clock that is set wrong traps or takes long.
    @Test(arguments: [Int64.min, -1, 0, 1, 253_402_300_799, .max]) func timesAtTheEdgeDoNoHarm(now: Int64) throws {
        let schedule = try Self.schedule(Self.issue)
        for local in [LocalTime.utc, .system, LocalTime { _ in .max }, LocalTime { _ in .min }] {
            _ = schedule.rate(at: now, in: local)
            _ = schedule.nextChange(after: now, in: local)
            _ = local.start(ofDay: local.day(now))
            _ = local.text(now, seenFrom: 0) + local.text(0, seenFrom: now)
            for period in DownloadCap.Period.allCases { _ = period.days(around: local.day(now)) }
        }
    }

    // MARK: Local time

    @Test(
        arguments: [
            ("2026-11-23T12:00:00Z", "2026-11-23T22:00:00Z", "23:00"),
            ("2026-11-23T12:00:00Z", "2026-11-23T23:00:00Z", "00:00"),
            ("2026-11-23T12:00:00Z", "2026-11-24T00:30:00Z", "Tue 01:30"),
            ("2026-11-23T12:00:00Z", "2026-11-29T11:00:00Z", "Sun 12:00"),
            ("2026-11-23T12:00:00Z", "2026-11-30T23:00:00Z", "2026-12-01 00:00"),
            ("2026-07-01T12:00:00Z", "2026-07-01T13:05:00Z", "15:05"),
        ])
    func momentsAreWrittenAsPeopleSayThem(now: String, time: String, text: String) {
        #expect(Self.berlin.text(Self.seconds(time), seenFrom: Self.seconds(now)) == text)
    }

    @Test(
        arguments: [
            ("2026-11-23", "2026-11-22T23:00:00Z"), ("2026-07-01", "2026-06-30T22:00:00Z"),
            ("2026-03-29", "2026-03-28T23:00:00Z"), ("2026-03-30", "2026-03-29T22:00:00Z"),
            ("2026-10-25", "2026-10-24T22:00:00Z"), ("2026-10-26", "2026-10-25T23:00:00Z"),
        ])
    func daysBeginAtLocalMidnight(day: String, start: String) {
        let number = Self.seconds("\(day)T00:00:00Z") / 86400
        #expect(Self.text(Self.berlin.start(ofDay: number)) == start)
        #expect(Self.berlin.day(Self.seconds(start)) == number)
        #expect(Self.berlin.day(Self.seconds(start) - 1) == number - 1)
        #expect(LocalTime.date(ofDay: number) == day)
    }

    @Test func theSystemsTimeIsThatOfItsCalendar() {
        let now = Date(timeIntervalSince1970: 1_800_000_000)
        let offset = TimeZone.current.secondsFromGMT(for: now)
        #expect(LocalTime.system.wall(1_800_000_000) == 1_800_000_000 + Int64(offset))
    }
}

@Suite struct DownloadCapTests {
    @Test(
        arguments: [
            ("2GB/day", "2GB/day"), ("40 GB / Month", "40GB/month"), ("1/day", "1/day"), ("512MiB/day", "512MiB/day"),
        ])
    func capsAreReadAsPeopleWriteThem(text: String, canonical: String) throws {
        #expect(try DownloadCap(parsing: text).text == canonical)
    }

    @Test(arguments: [
        "", "2GB", "2GB/", "/day", "2GB/week", "0/day", "-1GB/day", "2GB/day/month", "2GB day", "ten/day",
    ])
    func whatIsNoCapIsRefusedWithWhatToWrite(text: String) {
        let error = #expect(throws: RuleError.self) { try DownloadCap(parsing: text) }
        #expect(error?.reason == "'\(text)' is not a cap; write it like 2GB/day or 40GB/month")
    }

    @Test func aPeriodHasOneCap() throws {
        #expect(try DownloadCap.parse(["2GB/day", "40GB/month"]).map(\.text) == ["2GB/day", "40GB/month"])
        let error = #expect(throws: RuleError.self) { try DownloadCap.parse(["2GB/day", "1GB/day"]) }
        #expect(error?.reason == "there are two caps for each day; remove one of them")
    }

    @Test(
        arguments: [
            ("2026-11-23", "2026-11-01", "2026-12-01"), ("2026-12-31", "2026-12-01", "2027-01-01"),
            ("2027-01-01", "2027-01-01", "2027-02-01"), ("2028-02-29", "2028-02-01", "2028-03-01"),
            ("2027-02-28", "2027-02-01", "2027-03-01"),
        ])
    func monthsEndWhereTheNextBegin(day: String, first: String, end: String) throws {
        let number = try Int64(Date("\(day)T00:00:00Z", strategy: .iso8601).timeIntervalSince1970) / 86400
        let days = DownloadCap.Period.month.days(around: number)
        #expect(LocalTime.date(ofDay: days.lowerBound) == first)
        #expect(LocalTime.date(ofDay: days.upperBound) == end)
        #expect(DownloadCap.Period.day.days(around: number) == number..<number + 1)
    }
}
