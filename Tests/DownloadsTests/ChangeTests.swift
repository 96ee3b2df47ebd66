import Downloads
import Testing

/// What people do with downloads, in each state.
@Suite struct ChangeTests {
    /// A desk with one download, `x`, in a state.
    private func desk(_ state: Download.State) throws -> Desk {
        let desk = try Desk(maxActive: 1)
        switch state {
        case .waiting: try desk.add("other", "x")
        case .downloading: try desk.add("x")
        case .paused:
            try desk.add("x")
            try desk.act(.pause, "x")
        case .completed:
            try desk.add("x")
            try desk.transfer("x").complete()
        case .failed:
            try desk.add("x")
            try desk.transfer("x").fail(.final)
        case .cancelled:
            try desk.add("x")
            try desk.act(.cancel, "x")
        }
        #expect(desk["x"].state == state)
        return desk
    }

    /// What becomes of it; nil where that is refused.
    @Test(
        arguments: [
            (.waiting, .pause, .paused), (.waiting, .resume, .waiting), (.waiting, .cancel, .cancelled),
            (.waiting, .retry, nil),
            (.downloading, .pause, .paused), (.downloading, .resume, .downloading), (.downloading, .cancel, .cancelled),
            (.downloading, .retry, nil),
            (.paused, .pause, .paused), (.paused, .resume, .downloading), (.paused, .cancel, .cancelled),
            (.paused, .retry, nil),
            (.completed, .pause, nil), (.completed, .resume, nil), (.completed, .cancel, nil),
            (.completed, .retry, nil),
            (.failed, .pause, nil), (.failed, .resume, nil), (.failed, .cancel, .cancelled),
            (.failed, .retry, .downloading),
            (.cancelled, .pause, nil), (.cancelled, .resume, nil), (.cancelled, .cancel, nil),
            (.cancelled, .retry, .downloading),
        ] as [(Download.State, DownloadChange.Action, Download.State?)])
    func whatCanBeDoneDependsOnTheState(state: Download.State, action: DownloadChange.Action, expected: Download.State?)
        throws
    {
        let desk = try desk(state)
        let before = desk["x"]
        do {
            let changed = try desk.act(action, "x")
            #expect(changed == [desk["x"]])
        } catch let error as DownloadError {
            #expect(expected == nil)
            #expect(error.kind == .conflict)
            #expect(error.description.contains("download \(before.id) cannot be "))
            #expect(error.description.contains(":"), "it says what can be done: \(error)")
            #expect(desk["x"] == before)
        }
        if let expected { #expect(desk["x"].state == expected) }
        #expect(try desk.saved("state")["x"] == desk["x"].state.rawValue)
    }

    @Test func pauseKeepsTheBytesAndResumeGoesOnAtTheOldPlace() throws {
        let desk = try Desk(maxActive: 1)
        try desk.add("a", "b", "c")
        try desk.transfer("a").has(40, of: 100)
        try desk.act(.pause, "a")
        #expect(desk["a"].bytes == 40)
        #expect(desk.running == ["b"])

        try desk.act(.resume, "a")
        #expect(desk.waiting == ["a", "c"])
        try desk.transfer("b").complete()
        #expect(desk.running == ["a"])
        #expect(
            desk.restorePoints.noted.filter { $0 == Desk.url("a") }.count == 1, "what was there before is known already"
        )
    }

    @Test func theEndOfAnAttemptThatWasStoppedIsIgnored() throws {
        let desk = try Desk()
        try desk.add("a")
        let first = try desk.transfer("a")
        try desk.act(.pause, "a")
        first.complete()
        #expect(desk["a"].state == .paused)
        try desk.act(.resume, "a")
        first.fail(.final)
        #expect(desk["a"].state == .downloading)
        #expect(desk.source.transfers.count == 2)
    }

    @Test func allMeansThoseWithWhichItCanBeDone() throws {
        let desk = try Desk(maxActive: 1)
        try desk.add("failing", "gone", "running", "waiting")
        try desk.transfer("failing").fail(.final)
        try desk.act(.cancel, "gone")
        let names = { (reports: [Download]) in reports.map { Desk.name($0) } }

        #expect(try names(desk.change(.all, DownloadChange(action: .pause))) == ["running", "waiting"])
        #expect(try desk.change(.all, DownloadChange(action: .pause)) == [])
        #expect(try names(desk.change(.all, DownloadChange(action: .resume))) == ["running", "waiting"])
        #expect(try names(desk.change(.all, DownloadChange(action: .retry))) == ["failing"])
        #expect(try names(desk.change(.all, DownloadChange(priority: .low))) == ["running", "waiting", "failing"])
        #expect(try desk.change(.all, DownloadChange(action: .cancel)).count == 3)
        #expect(desk.listing.allSatisfy { $0.state == .cancelled })
        #expect(desk.running == [])
        #expect(try Desk().change(.all, DownloadChange(action: .cancel)) == [])
    }

    @Test func ofNamedOnesThoseAreChangedWithWhichItCanBeDone() throws {
        let desk = try Desk(maxActive: 1)
        try desk.add("failing", "done", "running", "waiting", "later", "other")
        try desk.transfer("failing").fail(.final)
        try desk.transfer("done").complete()
        let ids = ["running", "done", "waiting", "failing", "later"].map { desk[$0].id }
        let reports = try desk.change(.possible([99] + ids + [ids[0]]), DownloadChange(action: .pause))
        #expect(reports.map(\.id) == ids && reports.map(\.state) == [.paused, .completed, .paused, .failed, .paused])
        #expect(desk.begun == ["failing", "done", "running", "other"], "no named one has its turn meanwhile")
        #expect(desk.running == ["other"])
        #expect(try desk.change(.possible(ids), DownloadChange(action: .pause)) == reports, "again is no other thing")
        #expect(try desk.change(.possible([99]), DownloadChange(action: .pause)) == [])
        #expect(try desk.change(.possible([ids[2]]), DownloadChange(action: .resume)).map(\.state) == [.waiting])
        #expect(desk["later"].state == .paused)
    }

    /// What it has can be gone on with.
    @Test func aFailedOneIsCancelledByItsNameOnly() throws {
        let desk = try Desk()
        let ids = try desk.add("failing", "running")
        try desk.transfer("failing").has(40, of: 100)
        try desk.transfer("failing").fail(.final)
        #expect(try desk.change(.all, DownloadChange(action: .cancel)).map(\.id) == [ids[1]])
        #expect(try desk.change(.possible(ids), DownloadChange(action: .cancel)).map(\.state) == [.failed, .cancelled])
        #expect(desk.restorePoints.released.map(\.key) == [Desk.url("running")])
        #expect(try desk.act(.cancel, "failing").map(\.state) == [.cancelled])
    }

    @Test func namedOnesAreChangedAllOrNone() throws {
        let desk = try Desk()
        let ids = try desk.add("a", "b")
        try desk.transfer("b").complete()
        desk.catchUp()

        #expect(throws: DownloadError(.unknown, "there is no download 99: list them to see which there are")) {
            try desk.change(.ids([ids[0], 99]), DownloadChange(action: .pause))
        }
        let error = #expect(throws: DownloadError.self) { try desk.change(.ids(ids), DownloadChange(action: .pause)) }
        #expect(
            error?.description
                == "download 2 cannot be paused because it has completed: order it again to have it checked, or remove it from the cache"
        )
        #expect(desk["a"].state == .downloading)
    }

    @Test(arguments: [
        (DownloadSelection.ids([1]), DownloadChange(), "there is nothing to change"),
        (.ids([1]), DownloadChange(position: -1), "there is no position -1"),
        (.all, DownloadChange(position: 0), "only one download"),
        (.ids([1, 2]), DownloadChange(position: 0), "only one download"),
        (.possible([1]), DownloadChange(position: 0), "only one download"),
        (.ids([1]), DownloadChange(limitRate: -1), "-1 bytes per second"),
        (.ids([1]), DownloadChange(limitRate: .max), "\(Int64.max) bytes per second"),
    ])
    func whatMakesNoSenseIsRefused(selection: DownloadSelection, change: DownloadChange, message: String) throws {
        let desk = try Desk()
        try desk.add("a", "b")
        let error = #expect(throws: DownloadError.self) { try desk.change(selection, change) }
        #expect(error?.kind == .invalid)
        #expect(error?.description.hasPrefix(message) == true)
    }

    @Test func onlyWhatWaitsIsMovedAndOnlyWhatHasNotEndedGetsAnotherPriority() throws {
        let desk = try Desk(maxActive: 1)
        try desk.add("done", "running", "waiting", "paused")
        try desk.transfer("done").complete()
        try desk.act(.pause, "paused")
        for name in ["running", "paused", "done"] {
            let error = #expect(throws: DownloadError.self) {
                try desk.change(.ids([desk[name].id]), DownloadChange(position: 0))
            }
            #expect(error?.kind == .conflict)
        }
        #expect(throws: DownloadError.self) {
            try desk.change(.ids([desk["done"].id]), DownloadChange(priority: .high))
        }
        try desk.change(.ids([desk["paused"].id, desk["running"].id]), DownloadChange(priority: .high))
        #expect(desk["paused"].priority == .high)
    }

    @Test func aRetryStartsAtTheEndAndCountsAnew() throws {
        let desk = try Desk(maxActive: 1)
        try desk.add("a", "b", "c")
        try desk.transfer("a").has(70, of: 100)
        try desk.transfer("a").fail(.final, "404")
        #expect(desk["a"].message == "404")
        #expect(desk["a"].finished != nil)

        try desk.act(.retry, "a")

        #expect(desk.waiting == ["c", "a"])
        #expect(desk["a"].failures == 0)
        #expect(desk["a"].finished == nil)
        #expect(desk["a"].bytes == 70)
        #expect(desk.history() == [])
    }

    @Test func whatIsDownloadedAgainCannotBeRetriedBesides() throws {
        let desk = try Desk()
        let first = try desk.add("a")[0]
        try desk.transfer("a").fail(.final)
        desk.catchUp()
        let second = try desk.add("a")[0]
        let error = #expect(throws: DownloadError.self) {
            try desk.change(.ids([first]), DownloadChange(action: .retry))
        }
        #expect(error?.kind == .conflict)
        #expect(error?.description.contains("download \(second)") == true)

        try desk.transfer("a").fail(.final)
        desk.catchUp()
        #expect(throws: DownloadError.self) { try desk.change(.ids([first, second]), DownloadChange(action: .retry)) }
        #expect(
            try desk.change(.all, DownloadChange(action: .retry)).map(\.id) == [second], "the newest stands for both")
    }

    @Test func afterTheEndNothingIsChanged() throws {
        let desk = try Desk()
        try desk.add("a", "b")
        try desk.transfer("a").has(10, of: 100)
        let transfer = try desk.transfer("a")
        desk.manager.perform { $0.stop() }
        #expect(desk.source.running.isEmpty)
        #expect(!desk.clock.isTicking)
        #expect(desk["a"].state == .waiting)
        #expect(desk["a"].bytes == 10)

        let revision = desk.manager.snapshots.changes(since: 0) { _ in true }.revision
        transfer.complete()
        desk.set { $0.maxActive = 9 }
        desk.manager.perform { $0.stop() }
        desk.catchUp()
        #expect(desk.manager.snapshots.changes(since: 0) { _ in true }.revision == revision)
        let closing = DownloadError(.conflict, "the cache is closing")
        #expect(throws: closing) { try desk.add("c") }
        #expect(throws: closing) { try desk.change(.all, DownloadChange(action: .pause)) }
        #expect(throws: closing) { try desk.manager.perform { try $0.clearHistory() } }
        #expect(try desk.saved("bytes") == ["a": 10, "b": 0])
    }
}
