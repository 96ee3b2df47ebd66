import CachePolicy
import Foundation
import TestSupport
import Testing

@testable import DiskCache

/// What a session leaves unfinished, and what the next one does about it.
@Suite struct UnfinishedTests {
    private let media = Media(seed: 31, size: 200 * 4096)

    /// Names that are no generation's, and a stray file that would be found only by a look at all.
    private func strayFile(in opened: OpenStore) throws -> String {
        var ids = GenerationID.Series(session: 60_000)
        let id = ids.make()
        let path = opened.store.core.files.path(of: id)
        try FileManager.default.createDirectory(
            atPath: (path as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
        #expect(FileManager.default.createFile(atPath: path, contents: Data(count: 9000)))
        return path
    }

    @Test func afterAKillOnlyListedFilesAreLookedAt() throws {
        let opened = try OpenStore()
        let kept = try opened.make("kept", media, filling: 0..<4096)
        opened.checkpoint()
        let lost = try opened.make("lost", media, filling: 0..<4096)
        let stray = try strayFile(in: opened)
        let again = try opened.killed()
        again.catchUp()
        #expect(
            again.dataFiles.map { ($0 as NSString).lastPathComponent }.sorted()
                == [kept.id.description, (stray as NSString).lastPathComponent].sorted())
        #expect(try again.load("kept") != nil)
        _ = consume lost
    }

    @Test func afterAPowerCutAllFilesAreLookedAt() throws {
        let opened = try OpenStore()
        let kept = try opened.make("kept", media, filling: 0..<4096)
        opened.checkpoint()
        _ = try strayFile(in: opened)
        try opened.store.core.index.database.setMeta([(.boot, 1)])
        let again = try opened.killed()
        again.catchUp()
        #expect(again.dataFiles.map { ($0 as NSString).lastPathComponent } == [kept.id.description])
        #expect(again.store.ledger.uncounted == 0)
    }

    /// As far as it was.
    @Test func lookThatWasCutOffIsTakenUpAgain() throws {
        let opened = try OpenStore()
        _ = try opened.make("kept", media, filling: 0..<4096)
        opened.checkpoint()
        _ = try strayFile(in: opened)
        opened.catchUp()
        try opened.store.core.index.database.setMeta([(.isRecountDue, 1)])
        let again = try opened.reopened()
        again.catchUp()
        #expect(again.dataFiles.count == 1)
    }

    /// Rows that are gone before their holes are punched.
    @Test func evictionThatWasCutOffIsFinishedByTheNextSession() throws {
        let opened = try OpenStore()
        let generation = try opened.make("a", media, filling: 0..<media.size)
        opened.checkpoint()
        let again = try opened.reopenedAfter(generation) { opened in
            try opened.store.queue.sync { work in
                let id = try #require(try opened.row("a")).id
                try work.remover.list([id])
                _ = try opened.store.core.index.removal.remove([(id, 0), (id, 1)])
            }
        }
        let a = try #require(try again.load("a"))
        #expect(a.presentChunks == Array(128..<200))
        #expect(again.dataBytes <= 72 * 4096 + CapacityLedger.fileOverhead)
        #expect(again.store.ledger.dataSize == 72 * 4096 + CapacityLedger.fileOverhead)
    }

    @Test func listIsShortenedToWhatIsStillUnfinished() throws {
        let directory = try TemporaryDirectory()
        let list = try UnfinishedFiles(path: directory.file("unfinished"))
        let ids = (0..<70_000).map { GenerationID(value: UInt64($0 + 1)) }
        #expect(!list.isLong)
        for start in stride(from: 0, to: ids.count, by: 1000) { try list.add(Array(ids[start..<start + 1000])) }
        #expect(list.isLong)
        try list.begin([ids[5]])
        #expect(!list.isLong, "somebody has written a name and not yet made the file known")
        try list.shorten { [] }
        #expect(UnfinishedFiles.read(list.path).count == ids.count)
        list.end()
        try list.shorten { [ids[7]] }
        try list.add([ids[9]])
        #expect(UnfinishedFiles.read(list.path) == [ids[7], ids[9]])
    }

    @Test func recordThatWasCutOffNamesNothing() throws {
        let directory = try TemporaryDirectory()
        let path = directory.file("unfinished")
        try Data([1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0]).write(to: URL(fileURLWithPath: path))
        #expect(UnfinishedFiles.read(path) == [GenerationID(value: 1)])
        #expect(UnfinishedFiles.read(directory.file("none")).isEmpty)
    }

    // MARK: The seal

    private func spoil(_ path: String, at offset: UInt64) throws {
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
        try file.seek(toOffset: offset)
        try file.write(contentsOf: [7, 7, 7])
        try file.close()
    }

    @Test func fileThatWasChangedWhileTheCacheWasClosedIsVerified() throws {
        let opened = try OpenStore()
        var path = ""
        do { path = opened.path(try opened.make("a", media, filling: 0..<media.size)) }
        try opened.close()
        try spoil(path, at: 70 * 4096)

        let again = try OpenStore(opened.directory)
        let a = try #require(try again.load("a"))
        var lease: ExtentLease?
        #expect(a.acquire(at: 0, limit: 1, lease: &lease) == .unverified)
        for ordinal in a.presence.indices { try again.verify(a, extent: ordinal) }
        #expect(a.presentChunks == Array(0..<70) + Array(71..<200))
        #expect(again.metrics.droppedChunks.value == 1)
    }

    /// What was not verified in one session is not taken for verified in the next.
    @Test func changedFileOfWhichAPartWasVerifiedIsVerifiedFurther() throws {
        var opened = try OpenStore()
        var path = ""
        do { path = opened.path(try opened.make("a", media, filling: 0..<media.size)) }
        try opened.close()
        try spoil(path, at: 150 * 4096)
        opened = try OpenStore(opened.directory)
        do {
            let a = try #require(try opened.load("a"))
            try opened.verify(a, extent: 0)
        }
        opened.closeUnused()
        opened = try opened.reopened()
        let a = try #require(try opened.load("a"))
        for ordinal in a.presence.indices { try opened.verify(a, extent: ordinal) }
        #expect(a.presentChunks == Array(0..<150) + Array(151..<200))
    }

    /// Damage that was only reported is not served later.
    @Test func whatAScrubHasFoundDamagedIsNotServed() throws {
        var opened = try OpenStore()
        var path = ""
        do { path = opened.path(try opened.make("a", media, filling: 0..<media.size)) }
        opened.closeUnused()
        try spoil(path, at: 150 * 4096)
        #expect(try opened.store.scrub(repairs: false) { _ in true }.damaged.first?.chunks == 1)
        opened = try opened.reopened()
        let a = try #require(try opened.load("a"))
        var lease: ExtentLease?
        #expect(a.acquire(at: 150 * 4096, limit: .max, lease: &lease) == .unverified)
    }

    /// A read that failed: the index has to be told, or a later session serves a hole.
    @Test func droppedChunksAreForgottenByTheIndexBeforeTheyArePunched() throws {
        var opened = try OpenStore()
        do {
            let a = try opened.make("a", media, filling: 0..<media.size)
            opened.checkpoint()
            a.dropChunks(touching: 5 * 4096..<6 * 4096)
        }
        opened = try opened.reopened()
        let a = try #require(try opened.load("a"))
        #expect(!a.isPresent(5) && a.isPresent(4))
        #expect(try a.firstWrongChunk(media) == nil)
    }

    @Test func generationThatCannotBeSavedStaysOpenUntilItCan() throws {
        var opened = try OpenStore()
        do {
            let a = try opened.make("a", media, filling: 0..<media.size)
            opened.checkpoint()
            a.freshen(\.doubted)
        }
        let blocker = IndexBlocker(opened.directory.file("index.sqlite"))
        opened.closeUnused()
        #expect(opened.store.openCount == 1)
        blocker.release()
        // As each second.
        opened.checkpoint()
        opened.closeUnused()
        #expect(opened.store.openCount == 0)
        opened = try opened.reopened()
        #expect(try opened.load("a")?.firstWrongChunk(media) == nil)
        #expect(opened.store.ledger.dataSize == media.size + CapacityLedger.fileOverhead)
    }

    @Test func dataThatWasRemovedUnderneathDoesNotEndCaching() throws {
        let opened = try OpenStore()
        do { _ = try opened.make("a", media, filling: 0..<media.size) }
        opened.checkpoint()
        opened.closeUnused()
        for name in try FileManager.default.contentsOfDirectory(atPath: opened.directory.file("data")) {
            try FileManager.default.removeItem(atPath: opened.directory.file("data/\(name)"))
        }
        // As many as there are directories, so that one of them is met again.
        for number in 0..<600 { _ = try opened.make("\(number)", length: 5) }
        #expect(try opened.load("a") == nil)
        opened.catchUp()
        opened.closeUnused()
        #expect(opened.store.ledger.dataSize == 0)
    }

    /// Whether there is a length that no file can have. A tmpfs has none.
    static let refusesLongFiles: Bool = {
        guard let directory = try? TemporaryDirectory() else { return false }
        let path = directory.file("long")
        return FileManager.default.createFile(atPath: path, contents: nil) && truncate(path, off_t.max - 5) != 0
    }()

    @Test(.enabled(if: Self.refusesLongFiles, "this file system takes a file of any length"))
    func fileThatCouldNotBeSetUpIsNotLeft() throws {
        let opened = try OpenStore()
        #expect(throws: StoreError.self) { try opened.make("a", length: Int64.max - 5) }
        #expect(opened.dataFiles.isEmpty && opened.store.ledger.dataSize == 0)
    }

    @Test func fileThatWasCutShortWhileTheCacheWasClosedIsVerified() throws {
        let opened = try OpenStore()
        var path = ""
        do { path = opened.path(try opened.make("a", media, filling: 0..<media.size)) }
        try opened.close()
        #expect(truncate(path, 100 * 4096) == 0)
        let again = try OpenStore(opened.directory)
        let a = try #require(try again.load("a"))
        for ordinal in a.presence.indices { try again.verify(a, extent: ordinal) }
        #expect(a.presentChunks == Array(0..<100))
    }

    @Test func fileAsItWasLeftNeedsNoVerification() throws {
        let opened = try OpenStore()
        do { _ = try opened.make("a", media, filling: 0..<media.size) }
        let again = try opened.reopened()
        do {
            // Evicting from a file that is closed leaves it as it should be, too.
            again.evict(1)
            let a = try #require(try again.load("a"))
            #expect(!a.hasUnverified && !a.presentChunks.isEmpty && a.presentChunks.count < 200)
        }
    }
}

extension OpenStore {
    /// Lets go of a generation, does something to the cache while nobody has it open, and kills it.
    func reopenedAfter(_ generation: consuming Generation, _ change: (OpenStore) throws -> Void) throws -> OpenStore {
        _ = consume generation
        closeUnused()
        try change(self)
        return try killed()
    }
}
