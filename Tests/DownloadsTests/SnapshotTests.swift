import Downloads
import Synchronization
import Testing

/// What anybody sees, from any thread.
@Suite struct SnapshotTests {
    @Test func itSaysWhatHasChangedSince() throws {
        let desk = try Desk(maxActive: 1)
        let snapshots = desk.manager.snapshots
        try desk.add("a", "b", "c")
        let all = snapshots.changes(since: 0) { _ in true }
        let first = all.revision
        #expect(all.listing.downloads.map { Desk.name($0) } == ["a", "b", "c"])
        #expect(snapshots.changes(since: first) { _ in true }.listing.downloads == [])

        try desk.act(.pause, "b")
        try desk.act(.pause, "c")
        try desk.act(.resume, "b")
        let changed = snapshots.changes(since: first) { _ in true }
        #expect(changed.listing.downloads.map { Desk.name($0) } == ["b", "c"], "each once, as it is now")
        #expect(changed.revision > first && changed.removed == [])
        #expect(
            snapshots.changes(since: first) { $0.state == .paused }.listing.downloads.map { Desk.name($0) } == ["c"])
        #expect(snapshots[1]?.state == .downloading)
        #expect(snapshots[99] == nil)
    }

    @Test func itFindsWhatIsDownloadedFromAURL() throws {
        let desk = try Desk(maxActive: 1)
        let snapshots = desk.manager.snapshots
        try desk.add("a", "b", "c")
        let url = Desk.origin("b")
        #expect(snapshots.downloads(of: url).map(\.id) == [2])
        try desk.act(.cancel, "b")
        try desk.add("b")
        #expect(snapshots.downloads(of: url).map(\.id) == [4, 2], "what has not ended comes first")
        #expect(try desk.manager.perform { try $0.clearHistory() } == 1)
        #expect(snapshots.downloads(of: url).map(\.id) == [4])
        #expect(snapshots.downloads(of: Desk.origin("bx")).isEmpty)
    }

    @Test func nothingIsLostHoweverMuchChanges() throws {
        let desk = try Desk(maxActive: 1)
        let snapshots = desk.manager.snapshots
        try desk.add("a", "b")
        let first = snapshots.changes(since: 0) { _ in true }.revision
        try desk.act(.pause, "b")
        for step in 1...1500 {
            try desk.transfer("a").has(Int64(step), of: 10_000)
            desk.clock.advance(0.25)
            desk.settle()
        }
        #expect(snapshots.changes(since: first) { _ in true }.listing.downloads.map { Desk.name($0) } == ["a", "b"])
    }

    @Test func whatWasForgottenIsToldForAsLongAsItIsRemembered() throws {
        let snapshots = DownloadSnapshots()
        let summary = DownloadSummary()
        snapshots.post([], removed: [1, 2], summary: summary)
        let first = snapshots.revision
        snapshots.post([], removed: [3], summary: summary)
        #expect(snapshots.changes(since: 0) { _ in true }.removed == [3, 2, 1])
        #expect(snapshots.changes(since: first) { _ in true }.removed == [3])
        for id in 4..<20_000 { snapshots.post([], removed: [Int64(id)], summary: summary) }
        #expect(snapshots.changes(since: first) { _ in true }.removed == nil)
        let late = snapshots.revision
        snapshots.post([], removed: [20_000], summary: summary)
        #expect(snapshots.changes(since: late) { _ in true }.removed == [20_000])
        #expect(snapshots.changes(since: late - 4000) { _ in true }.removed?.count == 4001)
    }

    @Test func whoWatchesIsWokenByEachChangeAndByNothingElse() throws {
        let desk = try Desk()
        let snapshots = desk.manager.snapshots
        let count = Mutex(0)
        let watch = snapshots.watch { count.withLock { $0 += 1 } }
        try desk.add("a")
        let after = count.withLock { $0 }
        #expect(after > 0)
        for _ in 0..<5 { desk.pass(0.25) }
        #expect(count.withLock { $0 } == after, "nothing has come")
        try desk.transfer("a").has(1, of: 2)
        desk.pass(0.25)
        #expect(count.withLock { $0 } == after + 1)
        snapshots.unwatch(watch)
        try desk.act(.cancel, "a")
        #expect(count.withLock { $0 } == after + 1)
    }
}
