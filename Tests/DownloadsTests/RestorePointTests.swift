import DiskCache
import Downloads
import Synchronization
import Testing

@testable import Downloads

/// What cancelled downloads leave behind.
@Suite struct RestorePointTests {
    private static let empty = RestorePoint(key: Desk.url("a"), wasPinned: false, former: [])

    private static func restorePoint(isPinned: Bool = false, _ runs: [Int64], hits: Int64 = 0) -> RestorePoint {
        RestorePoint(
            key: Desk.url("a"), wasPinned: isPinned, former: [.init(generation: "g1", present: runs, hits: hits)])
    }

    @Test(arguments: [Download.State.waiting, .downloading, .paused, .failed])
    func whatACancelledOneHasBroughtIsRemoved(state: Download.State) throws {
        let desk = try Desk()
        desk.restorePoints.has("a", isPinned: true, [0, 10], hits: 3)
        try desk.add("a")
        switch state {
        case .waiting: try desk.transfer("a").fail(.busy(retryAfter: nil))
        case .paused: try desk.act(.pause, "a")
        case .failed: try desk.transfer("a").fail(.final)
        default: break
        }
        #expect(desk["a"].state == state)
        try desk.act(.cancel, "a")
        #expect(desk["a"].state == .cancelled)
        #expect(desk.restorePoints.released == [Self.restorePoint(isPinned: true, [0, 10], hits: 3)])
        #expect(try desk.saved("claim") == ["a": String?.none])
    }

    @Test func oneThatNeverBeganLeavesNothing() throws {
        let desk = try Desk(maxActive: 1)
        try desk.add("other", "a")
        try desk.act(.cancel, "a")
        #expect(desk.restorePoints.released == [])
    }

    /// First it is saved as cancelled, then its transfer ends, then its bytes go: whenever the process dies, nothing is
    /// left behind.
    @Test func theTransferIsStoppedAndTheStateSavedBeforeAnythingIsRemoved() throws {
        let desk = try Desk()
        try desk.add("a")
        let (transfer, path) = (try desk.transfer("a"), desk.path)
        let seen = Mutex("")
        desk.restorePoints.onRelease {
            let row =
                (try? SavedRows.read(
                    path,
                    "SELECT state || iif(claim IS NULL, '', ' with a restore point') FROM download WHERE url = ?",
                    Desk.url("a"))) ?? nil
            seen.withLock { $0 = "\(row ?? "nothing"), \(transfer.isStopped ? "stopped" : "running")" }
        }
        try desk.act(.cancel, "a")
        #expect(seen.withLock { $0 } == "cancelled with a restore point, stopped")
    }

    @Test func aCompletedOneHasNothingToTakeBack() throws {
        let desk = try Desk()
        try desk.add("a")
        try desk.transfer("a").complete()
        #expect(try desk.saved("claim") == ["a": String?.none])
        #expect(try desk.manager.perform { try $0.clearHistory() } == 1)
        #expect(desk.restorePoints.released == [])
    }

    /// As `downloads clear` says: another one is cancelled that had begun before it.
    @Test func whatACompletedOneHasFetchedStaysOnceItIsForgotten() throws {
        let desk = try Desk()
        var beginning = Desk.order("a")
        beginning.options.first = 12
        let first = try #require(try desk.add([beginning]).first?.id)
        try desk.transfer("a").has(5, of: 12)
        try desk.change(.ids([first]), DownloadChange(action: .pause))
        try desk.add("a")
        try desk.transfer("a").complete(20)
        desk.restorePoints.has("a", isPinned: true, [0, 20])
        #expect(try desk.manager.perform { try $0.clearHistory() } == 1)
        try desk.change(.ids([first]), DownloadChange(action: .cancel))
        #expect(desk.restorePoints.released == [Self.restorePoint(isPinned: true, [0, 20])])
    }

    /// The later one knows what was there, and nobody could continue it.
    @Test(arguments: [true, false]) func whatALaterOneHasFetchedIsTakenBack(fails: Bool) throws {
        let desk = try Desk()
        var beginning = Desk.order("a")
        beginning.options.first = 10
        _ = try desk.add([beginning])
        try desk.transfer("a").complete(10)
        desk.restorePoints.has("a", isPinned: true, [0, 10])
        desk.pass(1)
        let later = try #require(try desk.add([Desk.order("a")]).first?.id)
        if fails { try desk.transfer("a").fail(.final) }
        desk.restorePoints.has("a", isPinned: true, [0, 300])
        #expect(try desk.manager.perform { try $0.clearHistory() } == (fails ? 2 : 1))
        if !fails { try desk.change(.ids([later]), DownloadChange(action: .cancel)) }
        #expect(desk.restorePoints.released == [Self.restorePoint(isPinned: true, [0, 10])])
    }

    /// It was removed meanwhile, or was the beginning only: what is left of it is in the restore point.
    @Test func whatIsFetchedAfterACompletedOneIsTakenBack() throws {
        let desk = try Desk()
        try desk.add("a")
        try desk.transfer("a").complete()
        #expect(desk["a"].state == .completed)
        desk.clock.advance(10)
        try desk.add("a")
        try desk.act(.cancel, "a")
        #expect(desk.restorePoints.released.count == 1)
    }

    @Test func whatAnotherDownloadWantsStays() throws {
        let desk = try Desk()
        desk.restorePoints.has("a", [0, 50, 80, 90], hits: 7)
        try desk.add("a?1")
        desk.restorePoints.has("a", isPinned: true, [0, 60, 70, 100], hits: 9)
        try desk.add("a?2")

        try desk.act(.cancel, "a?2")
        #expect(desk.restorePoints.released == [])
        try desk.act(.cancel, "a?1")
        #expect(desk.restorePoints.released == [Self.restorePoint([0, 50, 80, 90], hits: 7)])
    }

    @Test func whatTheFirstFoundIsKnownToTheOther() throws {
        let desk = try Desk()
        try desk.add("a?1")
        desk.restorePoints.has("a", isPinned: true, [0, 60])
        try desk.add("a?2")
        try desk.act(.pause, "a?2")
        try desk.act(.cancel, "a?1")
        #expect(desk.restorePoints.released == [])
        let next = try Desk(after: desk)
        try next.act(.cancel, "a?2")
        #expect(next.restorePoints.released == [Self.empty])
    }

    @Test func aFailedOneStillWantsItsBytes() throws {
        let desk = try Desk()
        try desk.add("a?1", "a?2")
        try desk.transfer("a?1").fail(.final)
        try desk.act(.cancel, "a?2")
        #expect(desk.restorePoints.released == [])
        try desk.act(.retry, "a?1")
        try desk.act(.cancel, "a?1")
        #expect(desk.restorePoints.released == [Self.empty])
    }

    @Test(arguments: [true, false]) func whatACompletedOneHasPinnedStays(isPinned: Bool) throws {
        let desk = try Desk()
        _ = try desk.add([
            DownloadOrder(url: Desk.origin("a?1"), options: .init { $0.isPinned = isPinned }), Desk.order("a?2"),
        ])
        try desk.transfer("a?1").complete()
        try desk.act(.cancel, "a?2")
        #expect(desk.restorePoints.released == (isPinned ? [] : [Self.empty]))
        #expect(try desk.saved("claim") == ["a?1": String?.none, "a?2": nil])
    }

    /// Nobody knows yet under which key its bytes will be, but it is the same URL.
    @Test func oneThatHasNotBegunTakesOver() throws {
        let desk = try Desk(maxActive: 1)
        desk.restorePoints.has("a", [0, 10])
        _ = try desk.add([
            DownloadOrder(url: Desk.origin("a"), options: .init { $0.first = 100 }),
            DownloadOrder(url: Desk.origin("a")),
        ])
        try desk.change(.ids([2]), DownloadChange(action: .pause))
        try desk.change(.ids([1]), DownloadChange(action: .cancel))
        #expect(desk.restorePoints.released == [])
        desk.restorePoints.has("a", [0, 70])
        try desk.change(.ids([2]), DownloadChange(action: .resume))
        #expect(desk.running == ["a"])
        #expect(desk.restorePoints.noted.count == 1)
        try desk.change(.ids([2]), DownloadChange(action: .cancel))
        #expect(desk.restorePoints.released == [Self.restorePoint([0, 10])])
    }

    /// The one whose turn comes as the other is cancelled is begun in the same breath.
    @Test func oneThatBeginsAtThatMomentKnowsItToo() throws {
        let desk = try Desk(maxActive: 1)
        try desk.add("a?1", "a?2")
        desk.restorePoints.has("a", [0, 70])
        try desk.act(.cancel, "a?1")
        #expect(desk.running == ["a?2"])
        #expect(desk.restorePoints.released == [])
        try desk.act(.cancel, "a?2")
        #expect(desk.restorePoints.released == [Self.empty])
    }

    @Test func theSameAgainAfterAFailureKnowsWhatWasThereBefore() throws {
        let desk = try Desk()
        try desk.add("a")
        try desk.transfer("a").has(60, of: 100)
        try desk.transfer("a").fail(.final)
        desk.catchUp()
        desk.restorePoints.has("a", [0, 60])
        try desk.add("a")
        #expect(desk["a"].bytes == 60)
        #expect(desk.restorePoints.noted.count == 1)
        #expect(try desk.manager.perform { try $0.clearHistory() } == 1)
        #expect(desk.restorePoints.released == [], "its bytes are the new one's")
        try desk.act(.cancel, "a")
        #expect(desk.restorePoints.released == [Self.empty])
    }

    // MARK: Pages whose media is cached under another key

    @Test func oneWhoseMediaIsElsewhereBeginsAgainThere() throws {
        let desk = try Desk()
        desk.restorePoints.has("a", [0, 10])
        try desk.add("page")
        try desk.transfer("page").has(60, of: 100)
        desk.restorePoints.move("page", to: "a")
        try desk.transfer("page").fail(.moved)
        #expect(desk.running == ["page"] && desk["page"].message == nil && desk["page"].bytes == 0)
        #expect(try desk.transfer("page").order.key?.text == Desk.url("a"))
        #expect(desk.restorePoints.releasedKeys == [Desk.url("page")])
        try desk.act(.cancel, "page")
        #expect(desk.restorePoints.released.dropFirst() == [Self.restorePoint([0, 10])])
    }

    @Test func whatAnotherPageHasCompletedStays() throws {
        let desk = try Desk()
        try desk.add("a", "page")
        desk.restorePoints.move("page", to: "a")
        try desk.transfer("page").fail(.moved)
        try desk.transfer("page").complete()
        try desk.act(.cancel, "a")
        #expect(desk.restorePoints.releasedKeys == [Desk.url("page")])
    }

    /// As after a restart, when the page's media is known already.
    @Test func oneWhoseMediaIsElsewhereByNowBeginsThere() throws {
        let desk = try Desk()
        try desk.add("page")
        desk.restorePoints.move("page", to: "a")
        let next = try Desk(after: desk)
        #expect(try next.transfer("page").order.key?.text == Desk.url("a"))
        #expect(next.restorePoints.releasedKeys == [Desk.url("page")])
    }

    /// It is no failure, so that it ends nothing that has failed otherwise.
    @Test func oneWhoseMediaIsElsewhereBeginsThereWhateverHasFailed() throws {
        let desk = try Desk()
        try desk.manager.perform { _ = try $0.add([Desk.order("page")], waits: true) }
        for _ in 1...2 {
            try desk.transfer("page").fail(.network)
            desk.pass(60)
        }
        desk.restorePoints.move("page", to: "a")
        try desk.transfer("page").fail(.moved)
        #expect(desk.running == ["page"] && desk["page"].message == nil)
    }

    @Test func oneWhoseMediaIsElsewhereEachTimeIsHeld() throws {
        let desk = try Desk()
        try desk.add("page")
        for name in ["a", "b"] {
            #expect(desk.running == ["page"])
            desk.restorePoints.move("page", to: name)
            try desk.transfer("page").fail(.moved)
        }
        #expect(desk.running == [] && desk["page"].state == .waiting && desk["page"].message != nil)
    }

    /// What was recorded cannot be fetched again.
    @Test func recordingStaysWhereItIs() throws {
        let desk = try Desk()
        _ = try desk.add([DownloadOrder(url: Desk.origin("live"), options: .init { $0.recordFor = 60 })])
        desk.restorePoints.move("live", to: "a")
        try desk.act(.pause, "live")
        try desk.act(.resume, "live")
        #expect(try desk.transfer("live").order.key == nil)
        #expect(desk.restorePoints.released == [])
    }

    // MARK: Across processes

    @Test func aCancelledOneThatACrashLeftIsCleanedUpAtTheStart() throws {
        let desk = try Desk()
        try desk.add("a", "b", "c")
        try desk.transfer("c").complete()
        _ = try desk.inDatabase { db in
            try db.execute(sql: "UPDATE download SET state = 'cancelled', ended = id WHERE id < 3")
            try db.execute(
                sql: "UPDATE download SET claim = (SELECT claim FROM download WHERE id = 1) WHERE id = 3")
        }
        let next = try Desk(after: desk, isStarted: false)
        #expect(next.restorePoints.released == [])
        next.manager.perform { $0.start() }
        #expect(next.restorePoints.releasedKeys == [Desk.url("a"), Desk.url("b")])
        #expect(next.log.lines(.notice) == ["removed 2.00 kB of partial data that cancelled downloads had left"])
        #expect(try next.saved("claim") == ["a": String?.none, "b": nil, "c": nil])
        let third = try Desk(after: next)
        #expect(third.restorePoints.released.count == 2)
        #expect(third.log.lines(.notice) == [])
    }

    @Test func whatCannotBeRemovedIsTriedAgainAtTheNextStart() throws {
        let desk = try Desk()
        try desk.add("a")
        desk.restorePoints.failure = .init(description: "input/output error")
        try desk.act(.cancel, "a")
        #expect(desk["a"].state == .cancelled)
        #expect(desk.log.lines(.error).count == 1)
        #expect(try desk.manager.perform { try $0.clearHistory() } == 0, "else nobody would know of it")
        #expect(desk.log.lines(.error).count == 1)

        desk.restorePoints.failure = nil
        let next = try Desk(after: desk)
        #expect(next.restorePoints.released == [Self.empty])
        #expect(try next.manager.perform { try $0.clearHistory() } == 1)
    }

    @Test func withoutASourceACancelledOneIsCleanedUpAsWell() throws {
        let desk = try Desk()
        try desk.add("a")
        let next = try Desk(after: desk, hasSource: false)
        try next.act(.cancel, "a")
        #expect(next.restorePoints.released == [Self.empty])
    }

    // MARK: Intersections

    @Test(
        arguments: [
            ([0, 10], [0, 10], [0, 10]), ([0, 10], [10, 20], []), ([0, 10, 20, 30], [5, 25], [5, 10, 20, 25]),
            ([], [0, 5], []),
            ([0, 100], [1, 2, 3, 4, 99, 120], [1, 2, 3, 4, 99, 100]),
            ([0, 10, 20, 30, 40, 50], [8, 22, 48, 60], [8, 10, 20, 22, 48, 50]),
        ] as [([Int64], [Int64], [Int64])])
    func whatWasThereBeforeBothIsWhatBothFound(a: [Int64], b: [Int64], expected: [Int64]) {
        #expect(
            Self.restorePoint(isPinned: true, a, hits: 4).intersection(Self.restorePoint(b, hits: 2))
                == Self.restorePoint(expected, hits: 2))
        #expect(
            Self.restorePoint(b, hits: 2).intersection(Self.restorePoint(isPinned: true, a, hits: 4))
                == Self.restorePoint(expected, hits: 2))
    }

    @Test func aGenerationThatOnlyOneFoundWasNotThereBefore() {
        var other = Self.restorePoint([0, 10])
        other.former[0].generation = "g2"
        other.former.append(.init(generation: "g1", present: [2, 4], hits: 0))
        #expect(Self.restorePoint([0, 10]).intersection(other) == Self.restorePoint([2, 4]))
    }
}
