import CachePolicy
import Foundation
import GRDB
import TestSupport
import Testing

@testable import DiskCache

/// What the index learns of reads, and when.
@Suite struct LastReadTests {
    private let media = Media(seed: 3, size: 600_000)

    /// A closed cache of one resource with three extents, last read at 0, and its open generation.
    private func opened() throws -> (OpenStore, Generation) {
        let opened = try OpenStore(), generation = try opened.make("a", media, filling: 0..<media.size)
        opened.checkpoint()
        generation.withChunks { for ordinal in 0..<3 { $0.touch(ordinal, at: 0) } }
        opened.checkpoint()
        try opened.store.core.index.database.write { try $0.execute(sql: "UPDATE resource SET last_access = 0") }
        return (opened, generation)
    }

    private func extentTimes(_ opened: OpenStore) throws -> [Int64] {
        try opened.store.core.index.database.read {
            try Int64.fetchAll($0, sql: "SELECT last_access FROM extent ORDER BY ordinal")
        }
    }

    private func resource(_ opened: OpenStore) throws -> [Int64] {
        try opened.store.core.index.database.read { db in
            let row = try Row.fetchOne(db, sql: "SELECT hits, last_access FROM resource").map { StoredRow($0) }
            return try row.map { [try $0.integer("hits"), try $0.integer("last_access")] } ?? []
        }
    }

    @Test func readsMoveTheirExtentsAndLaterTheResource() throws {
        let (opened, generation) = try opened()
        let checkpoint = { (scope: Checkpointer.Scope) in opened.store.queue.sync { $0.checkpointer.checkpoint(scope) }
        }
        generation.withChunks { $0.touch(1, at: 70) }
        generation.countHit()
        checkpoint(.chunks)
        #expect(try extentTimes(opened) == [0, 0, 0] && resource(opened) == [0, 0])
        checkpoint(.reads)
        #expect(try extentTimes(opened) == [0, 70, 0] && resource(opened) == [0, 0])
        generation.withChunks { $0.touch(2, at: 50) }
        generation.countHit()
        checkpoint(.reads)
        generation.withChunks { for ordinal in [0, 2] { $0.touch(ordinal, at: 10) } }
        checkpoint(.all)
        #expect(try extentTimes(opened) == [10, 70, 10] && resource(opened) == [2, 70])
        // Nothing is counted twice.
        checkpoint(.all)
        #expect(try resource(opened) == [2, 70])
    }

    @Test func whatCannotBeSavedIsSavedLater() throws {
        let (opened, generation) = try opened()
        generation.withChunks { $0.touch(1, at: 70) }
        generation.countHit()
        let blocker = IndexBlocker(opened.directory.file("index.sqlite"))
        opened.checkpoint()
        blocker.release()
        #expect(try extentTimes(opened) == [0, 0, 0] && resource(opened) == [0, 0])
        opened.checkpoint()
        #expect(try extentTimes(opened) == [0, 70, 0] && resource(opened) == [1, 70])
    }

    /// Its row goes before anybody has needed them.
    @Test func hitsOfWhatIsReplacedAreItsSuccessors() throws {
        let (opened, generation) = try opened()
        generation.countHit()
        _ = try opened.make("a", media, filling: 0..<media.size)
        opened.store.queue.sync { $0.checkpointer.checkpoint() }
        #expect(try resource(opened).first == 1)
    }

    /// A closed cache of one resource with three extents, of which the second was read, and which is closed again.
    private func read(hits: Int = 1) throws -> OpenStore {
        let (opened, generation) = try opened()
        generation.withChunks { $0.touch(1, at: 70) }
        for _ in 0..<hits { generation.countHit() }
        return opened
    }

    private func checkpoint(_ opened: OpenStore, _ scope: Checkpointer.Scope) {
        opened.store.queue.sync { $0.checkpointer.checkpoint(scope) }
    }

    /// Files that are opened and closed in turn cost no statement each time.
    @Test func readsOfAClosedFileAreSavedWhenTheyMatter() throws {
        let opened = try read()
        opened.closeUnused()
        #expect(opened.store.openCount == 0)
        #expect(try extentTimes(opened) == [0, 0, 0] && resource(opened) == [0, 0])
        checkpoint(opened, .reads)
        #expect(try extentTimes(opened) == [0, 0, 0] && resource(opened) == [0, 0])
        checkpoint(opened, .order)
        #expect(try extentTimes(opened) == [0, 70, 0] && resource(opened) == [0, 0])
        checkpoint(opened, .all)
        #expect(try extentTimes(opened) == [0, 70, 0] && resource(opened) == [1, 70])
        // Nothing is counted twice.
        checkpoint(opened, .all)
        #expect(try resource(opened) == [1, 70])
    }

    @Test func readsOfClosedFilesAreSavedBeforeAnEviction() throws {
        let opened = try read()
        opened.closeUnused()
        _ = opened.store.queue.sync { $0.evictor.evict(1) }
        #expect(try extentTimes(opened) == [70, 0])
    }

    @Test func readsOfAFileThatIsClosedAgainAreAddedUp() throws {
        let opened = try read()
        opened.closeUnused()
        for (ordinal, time) in [(1, 90 as Int64), (2, 80)] {
            try #require(try opened.load("a")).withChunks { $0.touch(ordinal, at: time) }
            try #require(try opened.load("a")).countHit()
            opened.closeUnused()
        }
        // Open again, and read later than all that is to be saved.
        let generation = try #require(try opened.load("a"))
        generation.withChunks { $0.touch(2, at: 95) }
        checkpoint(opened, .all)
        #expect(try extentTimes(opened) == [0, 90, 95] && resource(opened) == [3, 95])
    }

    @Test func readsOfAClosedFileThatCannotBeSavedAreSavedLater() throws {
        let opened = try read()
        opened.closeUnused()
        let blocker = IndexBlocker(opened.directory.file("index.sqlite"))
        checkpoint(opened, .order)
        checkpoint(opened, .all)
        blocker.release()
        #expect(try extentTimes(opened) == [0, 0, 0] && resource(opened) == [0, 0])
        checkpoint(opened, .all)
        #expect(try extentTimes(opened) == [0, 70, 0] && resource(opened) == [1, 70])
    }

    /// However many there are, a report waits for a few.
    @Test func readsOfManyClosedFilesAreSavedAFewAtATime() throws {
        let opened = try read(hits: 0)
        for name in ["b", "c", "d"] { _ = try opened.make(name, media, filling: 0..<4096) }
        opened.store.queue.sync { work in
            work.checkpointer.checkpoint()
            for open in opened.store.core.open.all { open.countHit() }
            (work.checkpointer.closedAtOnce, work.checkpointer.mostClosed) = (1, 3)
        }
        let hits = {
            try opened.store.core.index.database.read { try Int.fetchOne($0, sql: "SELECT sum(hits) FROM resource") }
        }
        let before = try #require(try hits())
        // Of four, one is too many.
        opened.closeUnused()
        #expect(try hits() == before + 1)
        for (sum, scope) in [(2, Checkpointer.Scope.reads), (3, .all), (4, .all), (4, .all)] {
            checkpoint(opened, scope)
            #expect(try hits() == before + sum)
        }
    }

    @Test func laterReadsOfWhatIsOpenAgainStay() throws {
        let opened = try read()
        opened.closeUnused()
        let again = try #require(try opened.load("a"))
        again.withChunks { $0.touch(1, at: 90) }
        checkpoint(opened, .reads)
        #expect(try extentTimes(opened) == [0, 90, 0])
        checkpoint(opened, .all)
        #expect(try extentTimes(opened) == [0, 90, 0])
        #expect(try resource(opened) == [1, 90])
    }

    /// However many wait.
    @Test func readsOfClosedFilesOutliveTheSession() throws {
        var opened = try read()
        for name in ["b", "c"] { _ = try opened.make(name, media, filling: 0..<4096) }
        opened.store.queue.sync { work in
            work.checkpointer.checkpoint()
            for open in opened.store.core.open.all { open.countHit() }
            work.checkpointer.closedAtOnce = 1
        }
        opened.closeUnused()
        opened = try opened.reopened()
        #expect(try resource(opened) == [2, 70])
        let hits = try opened.store.core.index.database.read {
            try Int.fetchAll($0, sql: "SELECT hits FROM resource ORDER BY key")
        }
        #expect(hits == [2, 1, 1])
    }

    @Test func hitsOfWhatWasClosedBeforeItsSuccessorIsSavedAreItsSuccessors() throws {
        let opened = try read(hits: 2)
        _ = try opened.make("a", media, filling: 0..<media.size)
        opened.closeUnused()
        checkpoint(opened, .chunks)
        #expect(try resource(opened).first == 2)
    }

    /// A HEAD counts, and reads nothing: what is to be evicted first stays so.
    @Test func hitThatReadsNothingIsNoRead() throws {
        let (opened, generation) = try opened()
        generation.withChunks { $0.touch(1, at: 70) }
        opened.checkpoint()
        try opened.store.core.index.database.write { try $0.execute(sql: "UPDATE resource SET last_access = 0") }
        generation.countHit()
        opened.checkpoint()
        #expect(try resource(opened) == [1, 0])
    }

    /// The row of an evicted extent does not come back.
    @Test func readOfWhatWasEvictedIsForgotten() throws {
        let (opened, generation) = try opened()
        generation.withChunks { $0.touch(1, at: 70) }
        _ = try opened.store.core.index.removal.remove([(generation.id, 1)])
        opened.checkpoint()
        #expect(try extentTimes(opened) == [0, 0])
    }

    @Test func touchesAreSavedInBatchesOfFewPages() {
        func touch(_ id: UInt64, _ reads: Int) -> IndexSaving.Touch {
            .init(
                id: GenerationID(value: id), reads: (0..<reads).map { .init(ordinal: $0, time: 1) },
                resource: .init(hits: 1, lastAccess: 1))
        }
        let batches = IndexSaving.Touch.batches([touch(1, 100), touch(2, 60), touch(3, 5), touch(4, 900), touch(5, 1)])
        #expect(batches.map { $0.map(\.id.value) } == [[1, 2], [3], [4], [5]])
        #expect(IndexSaving.Touch.batches([]).isEmpty)
    }
}
