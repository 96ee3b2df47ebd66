import Downloads
import Foundation
import GRDB
import TestSupport
import Testing

/// What a process finds that follows on one that was killed: its manager is dropped as it stands, and never told.
@Suite struct RestoreTests {
    /// One download in each state.
    private func busyDesk() throws -> Desk {
        let desk = try Desk(maxActive: 6)
        try desk.add("completed", "failed", "cancelled", "delayed", "paused", "running")
        try desk.transfer("completed").complete()
        try desk.transfer("failed").has(33, of: 99)
        try desk.transfer("failed").fail(.final, "404: it is not there")
        try desk.act(.cancel, "cancelled")
        try desk.transfer("delayed").fail(.busy(retryAfter: 60))
        try desk.act(.pause, "paused")
        desk.set { $0.maxActive = 1 }
        try desk.add("low", priority: .low)
        try desk.add("second", "first")
        try desk.change(.ids([desk["first"].id]), DownloadChange(position: 0))
        try desk.transfer("running").has(44, of: 100)
        desk.pass(1)
        return desk
    }

    @Test func eachStateIsFoundAgain() throws {
        let desk = try busyDesk()
        let before = desk.listing
        #expect(desk.waiting == ["first", "delayed", "second", "low"])

        let next = try Desk(after: desk, isStarted: false)

        var expected = before
        #expect(Desk.name(before[0]) == "running")
        expected[0].state = .waiting
        func plain(_ reports: [Download]) -> [Download] {
            reports.map { report in
                var report = report
                (report.bytesPerSecond, report.eta) = (nil, nil)
                return report
            }.sorted { $0.id < $1.id }
        }
        #expect(plain(next.listing) == plain(expected))
        #expect(next.waiting == ["first", "delayed", "running", "second", "low"])
        #expect(next.begun == [], "nothing is fetched before the start")
    }

    @Test func interruptedOnesGoOnAndPausedOnesStayPaused() throws {
        let desk = try busyDesk()
        let next = try Desk(after: desk, maxActive: 1)
        // By its place `first` went before it.
        #expect(next.running == ["first"])
        try next.act(.cancel, "first")
        #expect(next.running == ["running"])
        #expect(next["running"].bytes == 44)
        #expect(next["running"].started == desk["running"].started)
        #expect(next["paused"].state == .paused)
        #expect(
            next.restorePoints.noted.filter { $0 == Desk.url("running") }.count == 1,
            "what was there before is known from then")
        #expect(next.history().map { Desk.name($0) } == ["first", "cancelled", "failed", "completed"])

        for name in ["running", "second", "low"] { try next.transfer(name).complete() }
        #expect(next.running == [])
        next.pass(60)
        #expect(next.running == ["delayed"])
    }

    @Test func whatIsInterruptedGoesFirst() throws {
        let desk = try Desk()
        try desk.add("a", "b", "c", "d", "e")
        try desk.transfer("a").complete()
        desk.catchUp()
        let next = try Desk(after: desk)
        #expect(next.running == ["b", "c", "d"])
    }

    @Test func anotherTimeOfDayDelaysNobodyForEver() throws {
        let desk = try Desk()
        try desk.add("a")
        try desk.transfer("a").fail(.busy(retryAfter: 3600))
        _ = try desk.inDatabase { try $0.execute(sql: "UPDATE download SET retry_at = retry_at + 1e9") }
        let next = try Desk(after: desk)
        #expect(next.running == [])
        next.pass(3600)
        #expect(next.running == ["a"])
    }

    /// What it could not try does not count as tried, whether the machine was off or asleep.
    @Test(arguments: [true, false]) func whatFailsIsRetriedForAsLongAfterALongPause(isOff: Bool) throws {
        var desk = try Desk()
        try desk.add("a")
        for seconds in [1, 4, 0] as [Double] {
            try desk.transfer("a").fail(.network)
            desk.pass(seconds)
        }
        #expect(desk["a"].isHeld == true)
        if isOff { desk.manager.perform { $0.stop() } }
        desk.pass(8 * 86_400)
        if isOff { desk = try Desk(after: desk) }
        desk.pass(1)
        try desk.transfer("a").fail(.network)
        desk.catchUp()
        #expect(desk["a"].state == .waiting && desk["a"].isHeld == true)
    }

    @Test func afterAnOrderlyEndItGoesOnAsWell() throws {
        let desk = try busyDesk()
        desk.manager.perform { $0.stop() }
        let next = try Desk(after: desk, maxActive: 2)
        #expect(next.running == ["first", "running"])
        #expect(next["running"].bytes == 44)
    }

    @Test func onlyItsOwnerReadsIt() throws {
        let desk = try Desk()
        try desk.add("a")
        for suffix in ["", "-wal"] {
            var info = stat()
            #expect(stat(desk.path + suffix, &info) == 0)
            #expect(info.st_mode & 0o777 == 0o600, "\(suffix)")
        }
    }

    // MARK: Damage

    @Test(arguments: [
        Data(repeating: 0x61, count: 20_000), Data("SQLite format 3\0".utf8) + Data(repeating: 0xff, count: 20_000),
        Data("not a database".utf8),
    ])
    func aDamagedDatabaseIsSetAside(garbage: Data) throws {
        let desk = try Desk()
        try desk.add("a")
        desk.manager.perform { $0.stop() }
        try garbage.write(to: URL(fileURLWithPath: desk.path))
        let next = try Desk(after: desk)
        #expect(next.listing == [])
        #expect(next.log.lines(.error).count == 1)
        #expect(next.log.lines(.error).first?.contains("downloads.sqlite.damaged") == true)
        #expect(try Data(contentsOf: URL(fileURLWithPath: desk.path + ".damaged")) == garbage)
        try next.add("b")
        #expect(try next.saved("state") == ["b": "downloading"])
    }

    @Test func damageThatIsMetInTheMidstOfWorkLosesNothing() throws {
        let desk = try Desk(maxActive: 1)
        try desk.add("a", "b")
        _ = try desk.inDatabase { try $0.execute(sql: "DROP TABLE download") }
        try desk.add("c")
        #expect(try desk.saved("state") == ["a": "downloading", "b": "waiting", "c": "waiting"])
        #expect(desk.log.lines(.error).count == 1)
    }

    @Test func rowsThatCannotBeAreLeftOut() throws {
        let desk = try Desk(maxActive: 1)
        try desk.add("a", "b", "c", "d", "e", "f", "g")
        try desk.inDatabase { db in
            try db.execute(sql: "UPDATE download SET state = 'sleeping' WHERE id = 2")
            try db.execute(sql: "UPDATE download SET bytes = -1 WHERE id = 3")
            try db.execute(sql: "UPDATE download SET claim = '{}' WHERE id = 4")
            try db.execute(sql: "UPDATE download SET place = 'x' WHERE id = 5")
            try db.execute(sql: "UPDATE download SET url = 'ftp://example.org/f' WHERE id = 6")
        }
        let next = try Desk(after: desk)
        #expect(next.listing.map { Desk.name($0) } == ["a", "g"])
        #expect(next.log.lines(.error).first?.hasPrefix("5 of the downloads") == true)
        #expect(try next.saved("state") == ["a": "downloading", "g": "downloading"])
    }

    @Test func aDatabaseOfANewerVersionIsLeftAlone() throws {
        let desk = try Desk()
        try desk.add("a")
        desk.manager.perform { $0.stop() }
        try desk.inDatabase {
            try $0.execute(sql: "INSERT INTO grdb_migrations VALUES ('99: more'); PRAGMA user_version = 99")
        }
        let error = #expect(throws: DownloadError.self) { try Desk(after: desk) }
        #expect(error?.kind == .disk)
        #expect(
            error?.description.contains(
                "a later version of reelcache (format 99; this version reads up to 7)")
                == true)
    }

    /// A letter of a column's name, and bytes anywhere: it starts, with what can still be read or with nothing.
    @Test func damagedBytesNeverEndTheProgram() throws {
        let desk = try busyDesk()
        desk.manager.perform { $0.stop() }
        let bytes = try Data(contentsOf: URL(fileURLWithPath: desk.path))
        var random = SplitMix64.forTest("RestoreTests damagedBytesNeverEndTheProgram")
        let name = try #require(bytes.range(of: Data("connections INTEGER".utf8)))
        let rounds = ProcessInfo.processInfo.environment["REELCACHE_FUZZ_ROUNDS"].flatMap { Int($0) } ?? 30
        for round in 0..<rounds {
            var changed = bytes
            if round == 0 {
                changed[name.lowerBound] = UInt8(ascii: "q")
            } else {
                let place = [0..<bytes.count, 0..<4096, bytes.count - 4096..<bytes.count][round % 3]
                for _ in 0..<Int.random(in: 1...6, using: &random) {
                    changed[Int.random(in: place, using: &random)] = UInt8.random(in: 0...255, using: &random)
                }
            }
            for suffix in ["-wal", "-shm"] { unlink(desk.path + suffix) }
            try changed.write(to: URL(fileURLWithPath: desk.path))
            let next = try Desk(after: desk)
            try next.add("new\(round)")
            next.pass(1)
            next.manager.perform { $0.stop() }
        }
    }

    /// Numbers at the end of their range: nothing that counts on from them overflows.
    @Test func numbersAtTheEndOfTheirRangeAreLeftOut() throws {
        let desk = try Desk(maxActive: 1)
        try desk.add("a", "b", "c", "d")
        try desk.inDatabase { db in
            try db.execute(sql: "UPDATE download SET id = 9223372036854775807 WHERE id = 2")
            try db.execute(sql: "UPDATE download SET state = 'failed', ended = 9223372036854775807 WHERE id = 3")
        }
        let next = try Desk(after: desk)
        #expect(next.listing.map { Desk.name($0) } == ["a", "d"])
        #expect(try next.add("e").first == 5)
    }

    // MARK: Disks that do not take it

    /// Whatever is written is refused from now on.
    private func refuse(_ desk: Desk) throws {
        try desk.inDatabase {
            try $0.execute(
                sql: "CREATE TRIGGER refusal BEFORE INSERT ON download BEGIN SELECT RAISE(ABORT, 'refused'); END")
        }
    }

    private func allow(_ desk: Desk) throws { try desk.inDatabase { try $0.execute(sql: "DROP TRIGGER refusal") } }

    @Test func anOrderThatCannotBeSavedIsNoOrder() throws {
        let desk = try Desk()
        try refuse(desk)
        let error = #expect(throws: DownloadError.self) { try desk.add("a") }
        #expect(error?.kind == .disk)
        #expect(error?.description == "cannot write the downloads in \(desk.path): refused")
        #expect(desk.listing == [])
        #expect(desk.begun == [])
        try allow(desk)
        #expect(try desk.add("a") == [1])
        #expect(desk.running == ["a"])
    }

    @Test func whatCannotBeSavedIsSavedLater() throws {
        let desk = try Desk()
        try desk.add("a", "b")
        try refuse(desk)
        try desk.act(.pause, "b")
        try desk.transfer("a").has(70, of: 100)
        desk.pass(1)
        desk.pass(1)
        #expect(desk["b"].state == .paused)
        #expect(try desk.saved("state")["b"] == "downloading")
        #expect(desk.log.lines(.error).count == 1, "it is said once")
        try allow(desk)
        desk.pass(1)
        #expect(try desk.saved("state") == ["a": "downloading", "b": "paused"])
        #expect(try desk.saved("bytes") == ["a": 70, "b": 0])
        #expect(desk.log.lines(.notice) == ["saving downloads works again"])
    }

    @Test func nothingIsFetchedThatCouldNotBeTakenBack() throws {
        let desk = try Desk(maxActive: 1)
        try desk.add("a", "b")
        try refuse(desk)
        try desk.transfer("a").complete()
        #expect(desk.begun == ["a"])
        #expect(desk["b"].state == .waiting)
        #expect(desk["b"].message?.hasSuffix("refused") == true)
        try allow(desk)
        desk.pass(1)
        #expect(desk.running == ["b"])
        #expect(try desk.saved("state") == ["a": "completed", "b": "downloading"])
    }

    @Test(.enabled(if: SmallDisk.obstacle == nil)) func aFullDiskIsCalledThat() throws {
        let disk = try SmallDisk(size: 512 << 10)
        let manager = try DownloadManager(
            directory: disk.path, source: nil, restorePoints: FakeRestorePoints(), settings: DownloadSettings(),
            clock: ManualClock(), logger: LogBook().logger)
        let orders = (0..<10_000).map { Desk.order("a-rather-long-name-of-a-film-\($0)") }
        let error = #expect(throws: DownloadError.self) { try manager.perform { try $0.add(orders) } }
        #expect(error?.kind == .disk)
        #expect(
            error?.description
                == "cannot write the downloads in \(disk.path)/downloads.sqlite: the disk is full: make room, then try again"
        )
        #expect(manager.snapshots.listing().downloads == [])
        #expect(try manager.perform { try $0.add([Desk.order("a")]) }.count == 1)
    }
}
