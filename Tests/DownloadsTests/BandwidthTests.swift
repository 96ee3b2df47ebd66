import CachePolicy
import Downloads
import Foundation
import GRDB
import Testing

@testable import Downloads

/// Schedules and caps: what runs when, over restarts too. It is Tuesday, 22:13:20.
@Suite struct BandwidthTests {
    private static let hour = 3600.0
    /// Seconds until midnight.
    private static let evening = 6400.0

    private static func order(
        _ name: String, atOnce: Bool = false, feed: String? = nil, _ change: (inout DownloadOrder) -> Void = { _ in }
    ) -> DownloadOrder {
        var order = Desk.order(name)
        order.isAtOnce = atOnce
        order.episode = feed.map { EpisodeName(feed: $0, identity: name) }
        change(&order)
        return order
    }

    // MARK: The schedule

    @Test func downloadsRunInTheirWindow() throws {
        let desk = try Desk(schedule: ["01:00-06:30=unlimited"])
        try desk.add("a", "b")
        #expect(desk.running == [])
        #expect(desk["a"].state == .waiting)
        #expect(desk["a"].message == "outside of the schedule until Wed 01:00")
        #expect(desk["a"].heldUntil?.seconds == 1_700_010_000)
        #expect(desk.summary.hold == "outside of the schedule until Wed 01:00")
        #expect(desk.summary.heldUntil?.seconds == 1_700_010_000)

        desk.pass(Self.evening)
        #expect(desk["b"].message == "outside of the schedule until 01:00")
        desk.pass(Self.hour - 1)
        #expect(desk.running == [])
        desk.pass(1)
        #expect(desk.running == ["a", "b"])
        #expect((desk["a"].message, desk["a"].heldUntil, desk.summary.hold) == (nil, nil, nil))

        try desk.transfer("a").has(50, of: 100)
        desk.pass(5.5 * Self.hour)
        #expect(desk.running == [])
        #expect(try desk.transfer("a").isStopped)
        #expect(desk.waiting == ["a", "b"])
        #expect(desk["a"].bytes == 50, "what has arrived stays")
        #expect(desk["a"].message == "outside of the schedule until Thu 01:00")
        desk.pass(18.5 * Self.hour)
        #expect(desk.running == ["a", "b"])
    }

    @Test func theWindowsRateReachesTheSource() throws {
        let desk = try Desk(
            limitRate: 3000, schedule: ["22:00-23:00=1MB", "23:00-24:00=unlimited", "00:00-01:00=off", "else=500kB"])
        try desk.add("a")
        #expect(desk.source.limits == [3000], "the other limit stays as it is")
        #expect(desk.source.scheduledLimits == [1_000_000])
        #expect(desk.summary.scheduledRate == 1_000_000)
        desk.pass(2800)
        #expect(desk.source.scheduledLimits == [1_000_000, nil])
        desk.pass(Self.hour)
        #expect(desk.running == [] && desk.summary.hold == "outside of the schedule until 01:00")
        desk.pass(Self.hour)
        #expect(desk.source.scheduledLimits == [1_000_000, nil, 500_000])
        #expect(desk.running == ["a"])
    }

    @Test func aChangedScheduleAppliesAtOnce() throws {
        let desk = try Desk()
        try desk.add("a")
        #expect(desk.running == ["a"])
        let schedule = try #require(try DownloadSchedule.parse(["else=off"]))
        desk.set { $0.schedule = schedule }
        #expect(desk.running == [])
        #expect(desk["a"].message == "the schedule lets no download run" && desk["a"].heldUntil == nil)
        #expect(desk.summary.hold == "the schedule lets no download run")
        desk.set { $0.schedule = nil }
        #expect(desk.running == ["a"] && desk.summary.hold == nil)
    }

    @Test func aClockThatIsSetAppliesWithinAMinute() throws {
        let clock = ManualClock()
        let desk = try Desk(schedule: ["01:00-06:30=unlimited"], clock: clock)
        try desk.add("a")
        clock.set(back: 20 * Self.hour)
        desk.pass(61)
        #expect(desk.running == ["a"], "it is 02:14 now")
    }

    @Test func nothingTicksWhileNothingWaits() throws {
        let desk = try Desk(schedule: ["01:00-06:30=unlimited"], caps: ["1/day"])
        #expect(!desk.clock.isTicking)
        try desk.add("a")
        #expect(desk.clock.isTicking)
        try desk.act(.pause, "a")
        #expect(!desk.clock.isTicking)
    }

    @Test func whatFailsKeepsItsOwnReason() throws {
        let desk = try Desk(schedule: ["22:00-23:00=unlimited"])
        try desk.add("a")
        try desk.transfer("a").fail(.busy(retryAfter: 3000), "the origin is busy")
        desk.pass(2999)
        #expect(desk["a"].message == "the origin is busy" && desk["a"].heldUntil == nil)
        desk.pass(1)
        #expect(desk["a"].message == "outside of the schedule until Wed 22:00" && desk["a"].retryDate == nil)
    }

    @Test func daylightSavingTimeIsThatOfTheClock() throws {
        // 2026-03-29 01:59:50 in Berlin; the next second but nine is 03:00.
        let clock = ManualClock(start: 1_774_745_990, local: LocalTime { $0 < 1_774_746_000 ? 3600 : 7200 })
        let desk = try Desk(schedule: ["02:30-05:00=1MB"], clock: clock)
        try desk.add("a")
        #expect(desk["a"].message == "outside of the schedule until 03:00")
        desk.pass(9)
        #expect(desk.running == [])
        desk.pass(1)
        #expect(desk.running == ["a"])
    }

    // MARK: At once

    @Test func whatIsOrderedAtOnceRunsAtAnyTime() throws {
        let desk = try Desk(maxActive: 1, schedule: ["else=off"], caps: ["10/day"])
        _ = try desk.add([Self.order("a"), Self.order("b", atOnce: true), Self.order("c", atOnce: true)])
        #expect(desk.running == ["b"], "one after the other all the same")
        #expect(try desk.transfer("b").order.isAtOnce)
        #expect(desk["b"].isAtOnce && !desk["a"].isAtOnce)
        #expect(desk["a"].isHeld == true && desk["c"].isHeld == nil && desk.summary.hold != nil)
        try desk.act(.pause, "a")
        #expect(desk.summary.hold == nil, "what waits is not held")
        try desk.act(.resume, "a")
        try desk.transfer("b").fetches(100)
        desk.pass(1)
        #expect(desk.running == ["b"])
        try desk.transfer("b").complete()
        #expect(desk.running == ["c"])
        #expect(desk.summary.usage == .init(today: 100, thisMonth: 100), "it is counted")
        #expect(try desk.saved("at_once") == ["a": nil, "b": true, "c": true])

        let next = try Desk(after: desk, maxActive: 1, schedule: ["else=off"])
        #expect(next.running == ["c"])
    }

    @Test func whatWaitsIsOrderedAgainAtOnce() throws {
        let desk = try Desk(schedule: ["else=off"])
        try desk.add("a")
        _ = try desk.add([Self.order("a", atOnce: true)])
        #expect(desk.running == ["a"])
        try desk.add("a")
        #expect(desk.running == [], "the last order counts")
        #expect(try desk.transfer("a").isStopped)
    }

    // MARK: Caps

    @Test func aCapOfTheDayHoldsUntilMidnight() throws {
        let desk = try Desk(maxActive: 2, caps: ["1000/day"])
        try desk.add("a", "b", "c")
        try desk.transfer("a").fetches(400)
        try desk.transfer("b").fetches(599)
        desk.pass(0.25)
        #expect(desk.running == ["a", "b"])
        try desk.transfer("b").fetches(1)
        desk.pass(0.25)
        #expect(desk.running == [])
        #expect(desk.waiting == ["a", "b", "c"])
        #expect(Set(desk.listing.map(\.message)) == ["1kB/day used up until 00:00"])
        #expect(desk["c"].heldUntil?.seconds == 1_700_006_400)
        #expect(desk.summary.hold == "1kB/day used up until 00:00")
        #expect(desk.summary.usage == .init(today: 1000, thisMonth: 1000))

        desk.pass(Self.evening)
        #expect(desk.running == ["a", "b"])
        #expect(desk.summary.usage == .init(today: 0, thisMonth: 1000))
    }

    @Test func aCapOfTheMonthHoldsUntilItsEnd() throws {
        let desk = try Desk(caps: ["1000/day", "1500/month"])
        try desk.add("a")
        try desk.transfer("a").fetches(1000)
        desk.pass(1)
        #expect(desk["a"].message == "1kB/day used up until 00:00")
        desk.pass(Self.evening)
        try desk.transfer("a").fetches(500)
        desk.pass(1)
        #expect(desk["a"].message == "1500/month used up until 2023-12-01 00:00")
        desk.pass(15 * 86400)
        #expect(desk.running == [])
        #expect(desk["a"].message == "1500/month used up until 00:00")
        desk.pass(86400)
        #expect(desk.running == ["a"])
    }

    @Test func theLaterOfScheduleAndCapIsTold() throws {
        let desk = try Desk(schedule: ["22:00-22:30=unlimited", "23:00-01:00=unlimited"], caps: ["10/day"])
        try desk.add("a")
        try desk.transfer("a").fetches(10)
        desk.pass(1200)
        #expect(desk["a"].message == "10/day used up until 00:00")
    }

    @Test func whatArrivesWhileItStopsIsCounted() throws {
        let desk = try Desk()
        try desk.add("a", "b")
        try desk.transfer("a").fetches(100, late: 5)
        try desk.act(.pause, "a")
        try desk.transfer("b").fetches(7)
        try desk.transfer("b").complete()
        #expect(desk.summary.usage == .init(today: 112, thisMonth: 112))
    }

    // The manager is dropped as it stands, as a process that is killed.
    @Test func countsOutliveTheProcess() throws {
        let desk = try Desk(caps: ["1000/day"])
        try desk.add("a")
        try desk.transfer("a").fetches(900)
        desk.pass(1)
        try desk.transfer("a").fetches(99)
        desk.pass(0.25)
        let next = try Desk(after: desk, caps: ["1000/day"])
        #expect(next.summary.usage?.today == 900, "what was fetched since the last second is lost")
        try next.transfer("a").fetches(100)
        next.pass(1)
        #expect(next.running == [] && next["a"].message == "1kB/day used up until 00:00")
        next.manager.perform { $0.stop() }

        let last = try Desk(after: next, caps: ["1000/day"])
        #expect(last.running == [] && last["a"].message == "1kB/day used up until 00:00")
        last.pass(Self.evening)
        #expect(last.running == ["a"])
    }

    @Test func rowsAreSavedByDayAndFeed() throws {
        let desk = try Desk(maxActive: 4)
        _ = try desk.add([Self.order("a", feed: "https://f.example/"), Self.order("b")])
        try desk.transfer("a").fetches(10)
        try desk.transfer("b").fetches(20)
        desk.pass(1)
        desk.pass(Self.evening)
        try desk.transfer("a").fetches(5)
        desk.pass(1)
        #expect(
            try Self.rows(desk) == [
                "2023-11-14  20", "2023-11-14 https://f.example/ 10", "2023-11-15 https://f.example/ 5",
            ])
    }

    private static func rows(_ desk: Desk) throws -> [String] {
        try desk.inDatabase { db in
            try Row.fetchAll(db, sql: "SELECT * FROM usage ORDER BY day, feed").map {
                "\($0["day"] as String) \($0["feed"] as String) \($0["bytes"] as Int64)"
            }
        }
    }

    @Test func daysOfMoreThanThirteenMonthsAgoAreForgotten() throws {
        let desk = try Desk()
        _ = try desk.inDatabase { db in
            for row in ["2022-10-09", "2022-10-10", "2022-10-11", "2023-11-13"] {
                try db.execute(sql: "INSERT INTO usage VALUES (?, '', 7)", arguments: [row])
            }
        }
        let next = try Desk(after: desk)
        try next.add("a")
        try next.transfer("a").fetches(1)
        next.pass(1)
        #expect(try Self.rows(next) == ["2022-10-10  7", "2022-10-11  7", "2023-11-13  7", "2023-11-14  1"])
        #expect(next.summary.usage == .init(today: 1, thisMonth: 8))
    }

    @Test(
        arguments: [
            "('2023-11-14', '', -1)", "('2023-11-14', '', 'x')", "('2023-11-14', x'00ff', 50)", "('tomorrow', '', 50)",
            "('2023-02-30', '', 50)", "('', '', 9223372036854775807)", "('2023-11-14', '', 9223372036854775807)",
            "('2099-01-01', '', 50)",
        ])
    func damagedRowsAndThoseOfTheFutureDoNotCount(values: String) throws {
        let desk = try Desk()
        _ = try desk.inDatabase { try $0.execute(sql: "INSERT INTO usage VALUES \(values)") }
        let next = try Desk(after: desk, caps: ["10/day"])
        try next.add("a")
        #expect(next.running == ["a"] && next.summary.usage == .init(today: 0, thisMonth: 0))
        #expect(next.log.lines(.error).isEmpty)
    }

    /// Neither does anything happen nor tick.
    @Test func whatWasFetchedIsOfItsDayAndMonth() throws {
        let desk = try Desk(schedule: ["22:00-24:00=1MB", "00:00-01:00=2MB"])
        try desk.add("a")
        try desk.transfer("a").fetches(100)
        try desk.transfer("a").complete()
        #expect(desk.summary.usage?.today == 100 && desk.summary.scheduledRate == 1_000_000 && !desk.clock.isTicking)
        desk.pass(Self.evening)
        #expect(desk.summary.usage?.today == 0 && desk.summary.usage?.thisMonth == 100)
        #expect(desk.summary.scheduledRate == 2_000_000)
        desk.pass(16 * 24 * Self.hour)
        #expect(desk.summary.usage == .init(today: 0, thisMonth: 0))
        #expect(desk.manager.snapshots.listing().summary == desk.summary)
    }

    @Test func damageThatIsFoundAtWorkCostsNoCounts() throws {
        let desk = try Desk()
        try desk.add("a")
        try desk.transfer("a").fetches(10)
        desk.pass(1)
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: desk.path))
        try file.write(contentsOf: Data(repeating: 0xA5, count: 65536))
        try file.close()
        try desk.transfer("a").fetches(5)
        desk.pass(1)
        let next = try Desk(after: desk)
        #expect(next.summary.usage?.today == 15)
    }

    @Test func onlyUnsavedRowsAreWritten() throws {
        var usage = DownloadUsage([.init(day: 10, feed: "f"): 5])
        usage.count(3, feed: nil, day: 11)
        #expect(usage.unsavedRows == [.init(day: 11, feed: ""): 3])
        usage.noteSaved()
        #expect(usage.unsavedRows.isEmpty)
        #expect(usage.rows == [.init(day: 10, feed: "f"): 5, .init(day: 11, feed: ""): 3])
    }

    @Test func sumsThatDoNotFitAreClamped() {
        var usage = DownloadUsage()
        for _ in 0..<3 { usage.count(.max, feed: "f", day: 20_000) }
        #expect(usage.bytes(in: .day, of: 20_000) == .max)
        #expect(usage.bytes(in: .month, of: 20_000, feed: "f") == .max)
        #expect(usage.bytes(in: .month, of: 20_000, feed: "g") == 0)
        usage.count(-5, feed: nil, day: 20_000)
        #expect(usage.rows.count == 1)
    }

    @Test func ofTooManyRowsTheOldestDaysAreForgotten() {
        var rows: [DownloadUsage.Row: Int64] = [:]
        for day in 0..<300 { for feed in 0..<100 { rows[.init(day: Int64(day), feed: "\(feed)")] = 1 } }
        var usage = DownloadUsage(rows)
        #expect(usage.forgetOld(today: 299) == 99)
        #expect(usage.rows.count == 20_100 && usage.rows.keys.allSatisfy { $0.day >= 99 })
    }

    // MARK: Feeds

    @Test func aCapOfAFeedHoldsItsDownloadsAlone() throws {
        let desk = try Desk(maxActive: 8, caps: ["1000/day"])
        let (one, other) = ("https://one.example/feed", "https://other.example/feed")
        let caps = [one: try DownloadCap.parse(["100/day"]), other: try DownloadCap.parse(["500/month"])]
        desk.manager.perform { $0.setFeedCaps(caps) }
        _ = try desk.add([
            Self.order("a", feed: one), Self.order("b", feed: one), Self.order("c", feed: other), Self.order("d"),
            Self.order("e", atOnce: true, feed: one),
        ])
        #expect(desk.running == ["a", "b", "c", "d", "e"])
        try desk.transfer("a").fetches(60)
        try desk.transfer("e").fetches(40)
        try desk.transfer("c").fetches(100)
        desk.pass(1)
        #expect(desk.running == ["c", "d", "e"])
        #expect(desk["a"].message == "100/day of the feed used up until 00:00")
        #expect(desk["a"].heldUntil?.seconds == 1_700_006_400)
        #expect(desk.summary.hold == nil)

        try desk.transfer("c").fetches(400)
        desk.pass(1)
        #expect(desk.running == ["d", "e"])
        #expect(desk["c"].message == "500/month of the feed used up until 2023-12-01 00:00")
        try desk.transfer("d").fetches(400)
        desk.pass(1)
        #expect(desk.running == ["e"])
        #expect(desk["a"].message == "1kB/day used up until 00:00")
        #expect(desk["c"].message == "500/month of the feed used up until 2023-12-01 00:00", "the later one")
        desk.pass(Self.evening)
        #expect(Set(desk.running) == ["a", "b", "d", "e"])
        desk.manager.perform { $0.setFeedCaps([:]) }
        #expect(Set(desk.running) == ["a", "b", "c", "d", "e"])
    }

    @Test func priorityAndPlaceCountAcrossFeeds() throws {
        let desk = try Desk(maxActive: 1)
        try desk.add("running")
        _ = try desk.add([
            Self.order("a", feed: "f"), Self.order("b", atOnce: true), Self.order("c"),
            Self.order("d", feed: "g") { $0.priority = .high },
        ])
        #expect(desk.waiting == ["d", "a", "b", "c"])
        for name in ["running", "d", "a", "b", "c"] { try desk.transfer(name).complete() }
        #expect(desk.begun == ["running", "d", "a", "b", "c"])
    }

    // MARK: Head and tail

    @Test func headAndTailIsTheWholeInAnotherOrder() throws {
        let desk = try Desk()
        let report = try desk.add([Self.order("a") { ($0.first, $0.last) = (500, 100) }])[0]
        #expect((report.first, report.last, report.wantedFirst) == (500, 100, nil))
        #expect(try desk.saved("first") == ["a": 500])
        #expect(try desk.saved("last") == ["a": 100])
        #expect(try desk.add([Self.order("a")])[0].id == report.id, "it is the same download")
        #expect(try desk.transfer("a").order.last == nil, "that begins again")
        #expect(desk.begun == ["a", "a"])
        #expect(try desk.add([Self.order("a") { $0.first = 500 }])[0].id != report.id)

        _ = try desk.add([Self.order("a") { $0.last = 7 }])
        let next = try Desk(after: desk)
        next.catchUp()
        #expect(next.source.transfers.map(\.order.last).contains(7))
        #expect(next.listing.map(\.last).contains(7))
    }

    @Test(
        arguments: [
            (order("a") { $0.last = 0 }, "cannot download the last 0 bytes of https://example.org/a before the rest: "),
            (order("a") { $0.last = .min }, "cannot download the last -9223372036854775808 bytes of "),
            (
                order("a") { ($0.last, $0.recordFor) = (5, 5) },
                "cannot download the last bytes of https://example.org/a and its "
            ),
            (
                order("a") { ($0.first, $0.last, $0.renditions.isEverything) = (1, 5, true) },
                "cannot download the first bytes of "
            ),
        ])
    func aTailThatMakesNoSenseIsRefused(order: DownloadOrder, message: String) throws {
        let error = #expect(throws: DownloadError.self) { try Desk().add([order]) }
        #expect(error?.kind == .invalid && error?.description.hasPrefix(message) == true, "\(error?.description ?? "")")
    }
}
