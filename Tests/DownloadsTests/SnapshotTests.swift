import Downloads
import Foundation
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
        #expect(changed.revision > first)
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
            desk.catchUp()
        }
        #expect(snapshots.changes(since: first) { _ in true }.listing.downloads.map { Desk.name($0) } == ["a", "b"])
    }

    private static func post(_ snapshots: DownloadSnapshots, _ ids: [Int64], _ state: Download.State = .waiting) {
        let entries = ids.map { id in
            var report = Download(id: id, url: "https://example.org/\(id)", added: Date(seconds: 1))
            report.state = state
            return DownloadSnapshots.Entry(
                report: report, url: Desk.origin("\(id)"), place: .init(group: 0, priority: .normal, order: 0))
        }
        snapshots.post(entries, summary: DownloadTotals())
    }

    /// All steps of a reading to its end, and where that is.
    private static func read(
        _ snapshots: DownloadSnapshots, _ reading: DownloadReading, of ids: Set<Int64>? = nil,
        atMost count: Int = 64
    ) throws -> (changed: [Int64], removed: [Int64], steps: Int, reading: DownloadReading) {
        var (result, continues) = ((changed: [Int64](), removed: [Int64](), steps: 0, reading: reading), true)
        while continues {
            let step = try #require(snapshots.step(result.reading, of: ids, atMost: count))
            result.changed += step.changed.map(\.report.id)
            result.removed += step.removed
            (result.steps, result.reading, continues) = (result.steps + 1, step.reading, !step.isLast)
        }
        return result
    }

    @Test func whatWasForgottenIsToldForAsLongAsItIsRemembered() throws {
        let snapshots = DownloadSnapshots()
        let summary = DownloadTotals()
        Self.post(snapshots, Array(1..<20_001))
        let first = try Self.read(snapshots, snapshots.reading(hasEnded: true, isNamed: false)).reading
        snapshots.post([], removed: [1, 2], summary: summary)
        let second = try Self.read(snapshots, first)
        #expect(second.removed == [1, 2])
        snapshots.post([], removed: [3], summary: summary)
        #expect(try Self.read(snapshots, second.reading).removed == [3])
        #expect(try Self.read(snapshots, first).removed == [1, 2, 3])
        var late: [DownloadReading] = []
        for id in 4..<20_000 {
            if id > 15_000 { late.append(try #require(snapshots.reading(from: snapshots.revision))) }
            snapshots.post([], removed: [Int64(id)], summary: summary)
        }
        #expect(snapshots.step(first, of: nil, atMost: 64) == nil && snapshots.reading(from: first.changes) == nil)
        #expect(try Self.read(snapshots, first, of: [3, 7, 20_000]).removed == [3, 7], "these can be looked up")
        #expect(try Self.read(snapshots, late[late.count - 1]).removed == [19_999])
        #expect(try Self.read(snapshots, late[late.count - 4000]).removed.count == 4000)
    }

    /// However many: their end was read.
    @Test func whatHadEndedIsForgottenInSilence() throws {
        let snapshots = DownloadSnapshots()
        let ids = Array<Int64>(1...10_000)
        Self.post(snapshots, ids)
        let began = try Self.read(snapshots, snapshots.reading(hasEnded: false, isNamed: false))
        #expect(began.changed == ids)
        Self.post(snapshots, ids, .completed)
        let ended = try Self.read(snapshots, began.reading)
        #expect(ended.changed == ids)
        Self.post(snapshots, [1], .failed)
        snapshots.post([], removed: ids, summary: DownloadTotals())
        let forgotten = try Self.read(snapshots, ended.reading)
        #expect(forgotten.changed == [] && forgotten.removed == [])
        #expect(snapshots.step(began.reading, of: nil, atMost: 64) == nil, "their end is not known here")
    }

    @Test func stepsTakeEachDownloadOnceAsItIsNow() throws {
        let snapshots = DownloadSnapshots()
        Self.post(snapshots, Array(1...1000))
        Self.post(snapshots, [1000], .completed)
        var reading = snapshots.reading(hasEnded: false, isNamed: false)
        let step = try #require(snapshots.step(reading, of: nil, atMost: 10))
        #expect(step.changed.map(\.report.id) == Array(1...10) && !step.isLast)
        reading = step.reading
        Self.post(snapshots, [5, 500])
        Self.post(snapshots, [500], .completed)
        snapshots.post([], removed: [6, 600], summary: DownloadTotals())
        let rest = try Self.read(snapshots, reading, atMost: 10)
        let unchanged = Array<Int64>(11..<1000).filter { $0 != 500 && $0 != 600 }
        #expect(rest.changed == unchanged + [5, 500])
        #expect(rest.removed == [6], "600 was never told of, and 1000 had ended before")
        #expect(rest.steps == 99)
        #expect(try Self.read(snapshots, rest.reading).changed == [])
    }

    @Test func whatIsNamedAndUnknownIsToldInStepsToo() throws {
        let snapshots = DownloadSnapshots()
        Self.post(snapshots, [7, 8])
        let named = Set<Int64>(1...100)
        let all = try Self.read(snapshots, snapshots.reading(hasEnded: true, isNamed: true), of: named, atMost: 10)
        #expect(all.changed == [7, 8])
        #expect(all.removed == named.subtracting([7, 8]).sorted())
        #expect(try Self.read(snapshots, all.reading, of: named).removed == [])
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
