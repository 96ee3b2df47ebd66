import CachePolicy
import Foundation
import GRDB
import TestSupport
import Testing

@testable import DiskCache

/// An index that is damaged, wholly or in a row, or gone: the cache opens, drops what cannot be known, and goes on.
@Suite struct IndexDamageTests {
    private let media = Media(seed: 21, size: 200 * 4096 + 50)

    private var whole: Range<Int64> { 0..<media.size }

    /// A closed cache with `a`, pinned, and `b`.
    private func closedCache() throws -> TemporaryDirectory {
        let opened = try OpenStore()
        for name in ["a", "b"] { _ = try opened.make(name, media, filling: whole) }
        #expect(try opened.store.setPinned(true, OpenStore.key("a")))
        try opened.close()
        return opened.directory
    }

    private func index(_ directory: TemporaryDirectory) -> String { directory.file("index.sqlite") }

    /// What a cache that was opened again has of a resource: right bytes in every present chunk, each verified.
    private func presentChunks(_ name: String, in opened: OpenStore) throws -> [Int]? {
        guard let generation = try opened.load(name) else { return nil }
        for ordinal in generation.presence.indices { try opened.verify(generation, extent: ordinal) }
        #expect(try generation.firstWrongChunk(media) == nil)
        return generation.presentChunks
    }

    private var allChunks: [Int] { Array(0..<201) }

    private static let garbage = Data(
        "this is not a database, but it is longer than a header has to be. ".utf8 + [UInt8](repeating: 1, count: 8192))

    @Test func pinnedResourcesSurviveAnIndexThatIsGarbage() throws {
        let directory = try closedCache()
        try Self.garbage.write(to: URL(fileURLWithPath: index(directory)))

        let opened = try OpenStore(directory)
        opened.catchUp()

        let a = try #require(try opened.load("a"))
        #expect(a.hasUnverified, "the copy's rows may be older than the file")
        #expect(try presentChunks("a", in: opened) == allChunks)
        #expect(try opened.load("b") == nil)
        #expect(opened.dataFiles == [opened.path(a)], "files that nobody knows are removed")
        #expect(try opened.store.report().pinned == 1)
        #expect(opened.metrics.errors.values["index-damaged"] == 1)
        #expect(opened.store.ledger.dataSize >= opened.dataBytes)
        #expect(FileManager.default.fileExists(atPath: directory.file("index.damaged.sqlite")) == false)
    }

    @Test(arguments: [true, false]) func pinnedResourcesSurviveAnIndexThatIsGone(isEmptied: Bool) throws {
        let directory = try closedCache()
        for suffix in ["", "-wal", "-shm"] { unlink(index(directory) + suffix) }
        if isEmptied { _ = FileManager.default.createFile(atPath: index(directory), contents: Data()) }

        let opened = try OpenStore(directory)
        opened.catchUp()

        #expect(try presentChunks("a", in: opened) == allChunks)
        #expect(try opened.load("b") == nil)
        #expect(opened.dataFiles.count == 1)
    }

    /// One page of many: what is on the others is read.
    @Test func whatCanStillBeReadOfADamagedIndexIsTakenOver() throws {
        let opened = try OpenStore()
        let small = Media(seed: 3, size: 5000)
        for number in 0..<300 { _ = try opened.make("\(number)", small, filling: 0..<5000) }
        try opened.close()
        let path = index(opened.directory)
        var bytes = try Data(contentsOf: URL(fileURLWithPath: path))
        let page = bytes.count / 4096 / 2
        bytes.replaceSubrange(page * 4096..<page * 4096 + 4096, with: [UInt8](repeating: 0xA5, count: 4096))
        try bytes.write(to: URL(fileURLWithPath: path))

        let again = try OpenStore(opened.directory)
        again.catchUp()

        let found = try (0..<300).filter { number in
            guard let generation = try again.load("\(number)") else { return false }
            try again.verify(generation, extent: 0)
            #expect(try generation.firstWrongChunk(small) == nil)
            return generation.isComplete
        }
        #expect(found.count > 100, "\(found.count) of 300 were found again")
        #expect(again.store.ledger.dataSize >= again.dataBytes)
        #expect(again.dataFiles.count <= 300)
    }

    /// A byte that makes a last read a later one, in its index alone: no check compares them.
    @Test func damageThatOnlyUseFindsIsMendedAtOnce() throws {
        let directory = try closedCache()
        let root = try DatabaseQueue(path: index(directory)).read {
            try Int.fetchOne($0, sql: "SELECT rootpage FROM sqlite_master WHERE name = 'resource_last_access'") ?? 0
        }
        var bytes = try Data(contentsOf: URL(fileURLWithPath: index(directory)))
        let page = (root - 1) * 4096, cells = Int(bytes[page + 3]) << 8 | Int(bytes[page + 4])
        let pointer = page + 8 + 2 * (cells - 1)
        bytes[page + (Int(bytes[pointer]) << 8 | Int(bytes[pointer + 1])) + 7] = 0xFF
        try bytes.write(to: URL(fileURLWithPath: index(directory)))
        let opened = try OpenStore(directory)
        #expect(opened.metrics.errors.values["index-damaged"] == 1)
        for name in ["a", "b"] { #expect(try presentChunks(name, in: opened) == allChunks) }
    }

    /// Met while it is in use, it is mended at the next start.
    @Test func damageThatIsMetLaterIsMendedAtTheNextStart() throws {
        let directory = try closedCache()
        IndexDatabase.markDamaged(index(directory))
        let opened = try OpenStore(directory)
        #expect(opened.metrics.errors.values["index-damaged"] == 1)
        #expect(try presentChunks("a", in: opened) == allChunks)
        #expect(try presentChunks("b", in: opened) == allChunks, "nothing was damaged")
        #expect(try presentChunks("a", in: opened.reopened()) == allChunks)
    }

    /// A crash while the new index is made.
    @Test func rescueThatWasCutOffIsTakenUpAgain() throws {
        let directory = try closedCache()
        try IndexDamage.setAside(index(directory))
        let opened = try OpenStore(directory)
        opened.catchUp()
        #expect(try presentChunks("a", in: opened) == allChunks)
        #expect(try presentChunks("b", in: opened) == allChunks)
    }

    @Test func damagedCopyOfPinnedRowsIsMadeAnew() throws {
        let directory = try closedCache()
        try Self.garbage.write(to: URL(fileURLWithPath: directory.file("pinned.sqlite")))
        let opened = try OpenStore(directory)
        #expect(try presentChunks("a", in: opened) == allChunks)
        try opened.close()
        for suffix in ["", "-wal", "-shm"] { unlink(index(directory) + suffix) }
        let again = try OpenStore(directory)
        #expect(try presentChunks("a", in: again) == allChunks)
    }

    /// What is fetched of a pinned resource after it was pinned.
    @Test func copyOfPinnedRowsKnowsWhatCameLater() throws {
        let opened = try OpenStore()
        do {
            let a = try opened.make("a", media, filling: 0..<4096)
            opened.checkpoint()
            #expect(try opened.store.setPinned(true, OpenStore.key("a")))
            try opened.fill(a, media, 64 * 4096..<66 * 4096)
            opened.checkpoint()
        }
        try opened.close()
        unlink(index(opened.directory))
        #expect(try presentChunks("a", in: try OpenStore(opened.directory)) == [0, 64, 65])
    }

    /// Whether it was pinned by hand, or is known to be only later, as with an order.
    @Test(arguments: [true, false]) func copyOfPinnedRowsKnowsWhatAPersonPinned(isOrder: Bool) throws {
        let opened = try OpenStore(), key = OpenStore.key("a")
        _ = try opened.make("a", media, filling: 0..<4096)
        #expect(try opened.store.setPinned(true, key, isByHand: !isOrder))
        if isOrder { try opened.store.restorePoints.noteOrder(title: nil, category: nil, isByHand: true, of: key) }
        try opened.close()
        unlink(index(opened.directory))
        let again = try OpenStore(opened.directory)
        #expect(try again.store.unpinPlayed(key) && again.store.resource(key)?.resource.isPinned == true)
    }

    @Test func unpinnedResourceIsNotInTheCopy() throws {
        let directory = try closedCache()
        do {
            let opened = try OpenStore(directory)
            #expect(try opened.store.setPinned(false, OpenStore.key("a")))
            try opened.close()
        }
        unlink(index(directory))
        let again = try OpenStore(directory)
        again.catchUp()
        #expect(try again.load("a") == nil && again.dataFiles.isEmpty)
    }

    /// Each value alone, as a bit that flipped would leave it.
    @Test(arguments: [
        "generation SET length = -5", "generation SET length = 9000000000000000000", "generation SET chunk_size = 5",
        "generation SET chunk_size = 'x'",
        "generation SET status = -1", "generation SET fields = 'no json'", "generation SET overhead = -4",
        "extent SET ordinal = ordinal + 1000000",
        "extent SET ordinal = -1 - ordinal", "extent SET present = -1", "extent SET checksums = x'00'",
        "extent SET last_access = 'long ago'",
        "extent SET session = 'x'", "generation SET overhead = 1 << 40", "generation SET stored_at = -1 << 60",
    ]) func damagedValueCostsItsResourceAtMost(change: String) throws {
        let opened = try OpenStore()
        for name in ["a", "b"] { _ = try opened.make(name, media, filling: whole) }
        opened.checkpoint()
        let id = try #require(try opened.row("a")).id
        try opened.store.core.index.database.write { db in
            try db.execute(
                sql: "UPDATE \(change) WHERE \(change.hasPrefix("extent") ? "generation" : "id") = \(id.value)")
        }
        try opened.close()

        let again = try OpenStore(opened.directory)
        if let a = try again.load("a") {
            for ordinal in a.presence.indices { try again.verify(a, extent: ordinal) }
            #expect(try a.firstWrongChunk(media) == nil)
        }
        #expect(try presentChunks("b", in: again) == allChunks)
        again.catchUp()
        again.evict(.max)
        #expect(again.dataFiles.isEmpty, "what is damaged can be evicted")
        #expect(try again.store.core.index.listing.counts().resources == 0)
        // What its rows do not tell is counted by what its file takes, within what a file has beside its chunks.
        #expect(abs(again.store.ledger.dataSize) <= 2 * CapacityLedger.fileOverhead)
    }

    /// What is open stays as it is in memory, and its rows as they are on the disk: work on all of them goes past each
    /// and comes to its end.
    @Test(arguments: [
        "last_access = 'long ago'", "last_access = x'00ff'", "last_access = 7.5", "ordinal = 'first'",
        "ordinal = ordinal + 0.5",
    ])
    func damagedExtentsOfAnOpenResourceHoldNothingUp(change: String) throws {
        let opened = try OpenStore()
        let generation = try opened.make("a", media, filling: whole)
        _ = try opened.make("b", media, filling: whole)
        opened.checkpoint()
        let hold = try FileHold(generation, length: media.size, path: "") { _ in }
        defer { withExtendedLifetime(hold) {} }
        try opened.store.core.index.database.write {
            try $0.execute(sql: "UPDATE extent SET \(change) WHERE generation = \(generation.id.value) AND ordinal = 1")
        }
        try inTime("eviction") { #expect(opened.evict(.max) > 0) }
        #expect(try opened.row("b") == nil)
        for isPinned in [true, false] {
            try inTime("pinning") { _ = try opened.store.core.index.pins.setPinned(isPinned, [OpenStore.key("a")]) }
            let other = try opened.store.core.index.database.read {
                try Int.fetchOne($0, sql: "SELECT count(*) FROM extent WHERE pinned != ?", arguments: [isPinned])
            }
            #expect(other == 0)
        }
    }

    @Test(arguments: ["'long ago'", "x'00ff'", "7.5"]) func damagedResourcesHoldUpNothingWhereWholeFilesGo(
        value: String
    ) throws {
        let opened = try OpenStore(holes: .kept)
        let generation = try opened.make("a", media, filling: whole)
        _ = try opened.make("b", media, filling: whole)
        opened.checkpoint()
        generation.beginUse()
        defer { generation.endUse() }
        try opened.store.core.index.database.write {
            try $0.execute(sql: "UPDATE resource SET last_access = \(value) WHERE key = '\(OpenStore.key("a").text)'")
        }
        try inTime("eviction") { #expect(opened.evict(.max) > 0) }
        #expect(try opened.row("b") == nil && generation.isComplete)
    }

    /// Fails where something does not come to its end, in the place of never ending.
    private func inTime(_ what: String, _ body: @escaping @Sendable () throws -> Void) throws {
        let isDone = Monitor<Result<Void, any Error>?>(nil)
        Thread.detachNewThread {
            let result = Result { try body() }
            isDone.update { $0 = result }
        }
        try isDone.wait(for: "the end of \(what)") { $0 }.get()
    }

    /// Downloaded without a pin, it plays without its origin all the same.
    @Test func whatWasDownloadedIsKnownInAnIndexThatWasRescued() throws {
        let directory = try closedCache()
        do {
            let opened = try OpenStore(directory)
            try opened.store.core.index.pins.setDownloaded([OpenStore.key("b")])
            _ = try opened.store.setPinned(true, OpenStore.key("a"), isByHand: true)
            try opened.close()
        }
        IndexDatabase.markDamaged(index(directory))
        let opened = try OpenStore(directory)
        #expect(opened.metrics.errors.values["index-damaged"] == 1)
        #expect(try opened.load("a")?.isKept == true && opened.load("b")?.isKept == true)
        // A person's pin outlives being played here, too.
        #expect(try opened.store.unpinPlayed(OpenStore.key("a")) && opened.load("a")?.isKept == true)
        #expect(try opened.store.setPinned(false, OpenStore.key("a")))
        #expect(try opened.load("a")?.isKept == false)
    }

    /// Pinned before or after, in a session or as a copy of all its rows.
    @Test(arguments: [true, false]) func whatWasDownloadedIsKnownFromTheCopyOfPins(isPinnedFirst: Bool) throws {
        let opened = try OpenStore()
        do {
            let a = try opened.make("a", media, filling: whole)
            opened.checkpoint()
            if isPinnedFirst { #expect(try opened.store.setPinned(true, OpenStore.key("a"))) }
            try opened.store.commit(whole, of: a, isPinned: !isPinnedFirst) { true }
        }
        try opened.close()
        try Self.garbage.write(to: URL(fileURLWithPath: index(opened.directory)))
        let again = try OpenStore(opened.directory)
        #expect(try again.store.setPinned(false, OpenStore.key("a")))
        #expect(try again.load("a")?.isKept == true)
    }

    /// Rows that are open were looked at when they were opened; what happens to them later is read again at the next
    /// checkpoint.
    @Test func valueThatIsDamagedWhileTheStoreRunsEndsNothing() throws {
        let opened = try OpenStore()
        let half: Int64 = 100 * 4096
        let generation = try opened.make("a", media, filling: 0..<half)
        opened.checkpoint()
        try opened.store.core.index.database.write { try $0.execute(sql: "UPDATE generation SET overhead = 1 << 63") }
        try opened.fill(generation, media, half..<media.size)
        opened.checkpoint()
        try opened.close()
        let again = try OpenStore(opened.directory)
        again.catchUp()
        #expect(try presentChunks("a", in: again) == allChunks)
        #expect(again.store.ledger.dataSize >= again.dataBytes && again.store.ledger.dataSize < 2 * again.dataBytes)
    }

    @Test(arguments: [
        "data_bytes', -5", "data_bytes', 9000000000000000000", "session', -7", "session', 9223372036854775807",
    ])
    func damagedNumberAboutTheWholeIsFoundOut(value: String) throws {
        let directory = try closedCache()
        do {
            let opened = try OpenStore(directory)
            try opened.close()
        }
        do {
            let index = try CacheIndex(path: index(directory))
            try index.database.write { try $0.execute(sql: "INSERT OR REPLACE INTO meta VALUES ('\(value))") }
            try index.database.close()
        }
        let opened = try OpenStore(directory)
        opened.catchUp()
        #expect(try presentChunks("a", in: opened) == allChunks)
        #expect(opened.store.ledger.dataSize >= opened.dataBytes && opened.store.ledger.dataSize < 2 * opened.dataBytes)
    }

    /// It can be, so that nothing is found at the start; the rows speak of more, and all that they speak of is given
    /// back.
    @Test func sizeOfAllDataThatIsTooSmallIsNoneBelowZero() throws {
        let directory = try closedCache()
        do {
            let index = try CacheIndex(path: index(directory))
            try index.database.setMeta([(.dataBytes, 4096)])
            try index.database.close()
        }
        let opened = try OpenStore(directory)
        opened.catchUp()
        #expect(try opened.store.setPinned(false, OpenStore.key("a")))
        opened.evict(.max)
        #expect(opened.dataFiles.isEmpty && opened.store.ledger.dataSize == 0)
    }

    @Test func indexOfALaterVersionIsLeftAsItIs() throws {
        let directory = try closedCache()
        do {
            let opened = try OpenStore(directory)
            try opened.store.core.index.database.pool.writeWithoutTransaction {
                try $0.execute(
                    sql: "INSERT INTO grdb_migrations VALUES ('99: what is not known yet'); PRAGMA user_version = 99")
            }
            try opened.close()
        }
        do {
            _ = try OpenStore(directory)
            Issue.record("it opened")
        } catch StoreError.directory(let line, .laterVersion) {
            #expect(line.contains("a later version of reelcache (format 99;"))
        }
        #expect(CacheOwner.current(of: directory.path) == nil)
    }
}
