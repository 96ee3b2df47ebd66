import CachePolicy
import Synchronization
import TestSupport
import Testing

@testable import DiskCache

/// What has many extents is removed some at a time.
@Suite struct StepwiseEvictionTests {
    private static let count = 100
    private let opened: OpenStore
    private let media = Media(seed: 6, size: Int64(count) * EvictionTests.extent)
    private let key = OpenStore.key("a")

    init() throws { opened = try OpenStore() }

    /// Fills a chunk of each of these extents.
    private func fill(_ generation: Generation, _ extents: Range<Int>) throws {
        for ordinal in extents {
            let start = Int64(ordinal) * EvictionTests.extent
            try opened.fill(generation, media, start..<start + 4096)
        }
    }

    private func make(_ extents: Range<Int>, name: String = "a") throws -> Generation {
        let generation = try opened.make(name, length: media.size)
        try fill(generation, extents)
        return generation
    }

    /// What others see who have a turn on the queue whenever it is theirs: how many extents went since their last one,
    /// at most.
    /// - Parameter meanwhile: done in the first turn after which some are gone.
    private func mostBetweenTurns(
        meanwhile: @escaping @Sendable (StoreWork) -> Void = { _ in }, _ body: () throws -> Void
    ) rethrows -> Int64 {
        // What the file system takes beside the chunks is counted now, and not among what goes.
        opened.checkpoint()
        let opened = opened, start = opened.store.queue.sync { $0.core.ledger.dataSize }
        let isOver = Atomic(false), seen = Mutex<(last: Int64, most: Int64)>((start, 0))
        @Sendable func takeTurn() {
            opened.store.queue.async { work in
                let now = work.core.ledger.dataSize
                let isFirst = seen.withLock { seen in
                    defer { seen = (now, max(seen.most, (seen.last - now) / 4096)) }
                    return seen.most == 0 && now < seen.last
                }
                if isFirst { meanwhile(work) }
                if !isOver.load(ordering: .acquiring) { takeTurn() }
            }
        }
        takeTurn()
        defer {
            isOver.store(true, ordering: .releasing)
            opened.store.queue.wait()
        }
        try body()
        opened.store.queue.wait()
        return seen.withLock(\.most)
    }

    @Test func othersHaveTheirTurnsWhileADownloadIsTakenBack() throws {
        let generation = try make(0..<1)
        let point = try opened.store.restorePoints.point(of: key)
        try fill(generation, 1..<Self.count)
        #expect(try mostBetweenTurns { _ = try opened.store.restorePoints.restore(point) } == 32)
        #expect(try opened.store.coverage(key)?.ranges == [0..<4096])
        #expect(opened.metrics.evictedExtents.value == 0, "it was not for room")
    }

    @Test func othersHaveTheirTurnsWhileADownloadOfAPartIsTakenBack() throws {
        let part = try make(0..<1, name: "part")
        _ = try opened.make("a", Media(seed: 7, size: 4096), filling: 0..<4096)
        opened.checkpoint()
        try opened.store.commit([part.key], partsOf: key)
        let point = try opened.store.restorePoints.point(of: key)
        try fill(part, 1..<Self.count)
        #expect(try mostBetweenTurns { _ = try opened.store.restorePoints.restore(point) } == 32)
        #expect(try opened.store.coverage(part.key)?.ranges == [0..<4096])
    }

    @Test(arguments: [true, false]) func othersHaveTheirTurnsWhileANewOneIsTakenBack(isOpen: Bool) throws {
        let point = try opened.store.restorePoints.point(of: key)
        do {
            _ = try make(0..<Self.count)
            opened.checkpoint()
        }
        if !isOpen { opened.closeUnused() }
        #expect(try mostBetweenTurns { _ = try opened.store.restorePoints.restore(point) } == 32)
        #expect(try opened.store.resource(key) == nil)
    }

    @Test func othersHaveTheirTurnsWhileALongResourceIsRemoved() throws {
        _ = try make(0..<Self.count)
        #expect(try opened.store.setPinned(true, key))
        var report: RemovalReport?
        #expect(try mostBetweenTurns { report = try opened.store.remove(key, isDryRun: false) } == 32)
        #expect(report?.resources == 1 && report?.bytes == Int64(Self.count) * 4096 + CapacityLedger.fileOverhead)
        #expect(try opened.store.resource(key) == nil)
    }

    @Test func othersHaveTheirTurnsWhileLongResourcesAreRemovedWithTheRest() throws {
        for name in ["a", "b"] { _ = try make(0..<Self.count, name: name) }
        _ = try make(0..<1, name: "c")
        var report: RemovalReport?
        #expect(
            try mostBetweenTurns { report = try opened.store.removeAll(RemovalSelection(), isDryRun: false) } == 32)
        let freed = Int64(2 * Self.count + 1) * 4096 + 3 * CapacityLedger.fileOverhead
        #expect(report?.resources == 3 && report?.bytes == freed)
        #expect(try opened.store.resources(ResourceQuery()).total == 0)
    }

    enum Event: CaseIterable { case reads, hasRead, pins }

    /// Between two turns, a player begins to read what is taken back, or has read it and left, or somebody pins it.
    @Test(arguments: Event.allCases, [true, false])
    func whatIsWantedMeanwhileKeepsTheRest(event: Event, isNew: Bool) throws {
        let former = isNew ? nil : try make(0..<1)
        let point = try opened.store.restorePoints.point(of: key)
        let generation = try former ?? make(0..<1), key = key
        try fill(generation, 1..<Self.count)
        _ = try mostBetweenTurns { work in
            switch event {
            case .reads: generation.beginReading()
            case .hasRead: generation.countHit()
            case .pins: #expect(throws: Never.self) { try work.setPinned(true, key, isByHand: true) }
            }
        } _: {
            _ = try opened.store.restorePoints.restore(point)
        }
        if event == .reads { generation.endReading() }
        let left = try #require(try opened.store.resource(key)).resource
        #expect(left.cachedBytes >= Int64(Self.count - 32) * 4096 && left.isPinned == (event == .pins))
    }

    /// The requests that were answered are the resource's, which outlives its version.
    @Test func newVersionOfWhatWasPlayedIsTakenBack() throws {
        let former = try make(0..<1)
        for _ in 0..<2 { former.countHit() }
        let point = try opened.store.restorePoints.point(of: key)
        _ = try make(0..<3)
        _ = try opened.store.restorePoints.restore(point)
        #expect(try opened.store.resource(key) == nil)
    }

    /// What was there before cannot come back, and a pin on nothing helps nobody.
    @Test func newVersionOfWhatWasPinnedStays() throws {
        _ = try make(0..<1)
        #expect(try opened.store.setPinned(true, key))
        let point = try opened.store.restorePoints.point(of: key)
        _ = try make(0..<3)
        #expect(try opened.store.restorePoints.restore(point) == 0)
        let left = try #require(try opened.store.resource(key)).resource
        #expect(left.isPinned && left.cachedBytes == 3 * 4096)
    }

    @Test func partOfWhatAPersonPinsMeanwhileKeepsTheRest() throws {
        let part = try make(0..<1, name: "part"), key = key
        _ = try opened.make("a", Media(seed: 7, size: 4096), filling: 0..<4096)
        opened.checkpoint()
        try opened.store.commit([part.key], partsOf: key)
        let point = try opened.store.restorePoints.point(of: key)
        try fill(part, 1..<Self.count)
        _ = try mostBetweenTurns { work in
            #expect(throws: Never.self) { try work.setPinned(true, key, isByHand: true) }
        } _: {
            _ = try opened.store.restorePoints.restore(point)
        }
        #expect(try opened.store.coverage(part.key)?.ranges.count ?? 0 >= Self.count - 32)
    }

    @Test func whatAPersonHasPinnedMeanwhileStays() throws {
        let generation = try make(0..<1)
        let point = try opened.store.restorePoints.point(of: key)
        try fill(generation, 1..<3)
        #expect(try opened.store.setPinned(true, key, isByHand: true))
        #expect(try opened.store.restorePoints.restore(point) == 0)
        let left = try #require(try opened.store.resource(key)).resource
        #expect(left.isPinned && left.cachedBytes == 3 * 4096)
    }

    @Test func longResourceThatIsPinnedWhileOthersAreRemovedStays() throws {
        // The one that is known first goes first.
        for name in ["a", "b"] {
            _ = try make(0..<Self.count, name: name)
            opened.checkpoint()
        }
        let other = OpenStore.key("b")
        _ = try mostBetweenTurns { work in
            #expect(throws: Never.self) { try work.setPinned(true, other) }
        } _: {
            _ = try opened.store.removeAll(RemovalSelection(), isDryRun: false)
        }
        #expect(try opened.store.resource(key) == nil)
        #expect(try opened.store.resource(other)?.resource.cachedBytes == Int64(Self.count) * 4096)
    }

    /// What is left is cached as before, but not pinned; the next process goes on with it.
    @Test func endOfTheStoreLeavesTheRestToTheNext() throws {
        let point = try opened.store.restorePoints.point(of: key)
        do {
            _ = try make(0..<Self.count)
            #expect(try opened.store.setPinned(true, key))
        }
        #expect(throws: StoreError.self) {
            try mostBetweenTurns {
                $0.core.beginEnding()
            } _: {
                _ = try opened.store.restorePoints.restore(point)
            }
        }
        let again = try opened.reopened()
        let left = try #require(try again.store.resource(key))
        let count = left.resource.cachedBytes / 4096
        #expect(!left.resource.isPinned && count == Self.count - 32, "\(count) of \(Self.count) are left")
        _ = try again.store.restorePoints.restore(point)
        #expect(try again.store.resource(key) == nil)
    }

    @Test func whatGoesInOneTurnGoesAtTheEndOfTheStoreToo() throws {
        let generation = try make(0..<1)
        let point = try opened.store.restorePoints.point(of: key)
        try fill(generation, 1..<32)
        opened.store.core.beginEnding()
        #expect(try opened.store.restorePoints.restore(point) == 31 * 4096)
    }
}
