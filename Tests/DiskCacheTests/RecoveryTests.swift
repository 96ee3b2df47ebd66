import CachePolicy
import Foundation
import TestSupport
import Testing

@testable import DiskCache

/// After an unclean end, and with files that somebody else has laid hands on.
@Suite struct RecoveryTests {
    private let opened: OpenStore
    private let media = Media(seed: 12, size: 200 * 4096 + 50)

    init() throws { opened = try OpenStore() }

    private var whole: Range<Int64> { 0..<media.size }

    private func verifyAll(_ generation: Generation, in opened: OpenStore) throws {
        for ordinal in generation.presence.indices { try opened.verify(generation, extent: ordinal) }
    }

    @Test func whatACheckpointSavedIsThereAfterAKillAndVerifies() throws {
        let open = try opened.make("a", media, filling: 0..<100 * 4096)
        opened.checkpoint()
        let again = try opened.killed()
        let a = try #require(try again.load("a"))
        var lease: ExtentLease?
        #expect(a.acquire(at: 0, limit: 1, lease: &lease) == .unverified)
        #expect(a.acquire(at: 150 * 4096, limit: .max, lease: &lease) == .absent)
        try again.verify(a, extent: 0)
        #expect(a.acquire(at: 0, limit: .max, lease: &lease) == .bytes(until: 64 * 4096))
        #expect(a.acquire(at: 64 * 4096, limit: .max, lease: &lease) == .unverified)
        try again.verify(a, extent: 1)
        #expect(a.presentChunks == Array(0..<100))
        #expect(try a.firstWrongChunk(media) == nil)
        #expect(again.metrics.droppedChunks.value == 0)
        _ = consume open
    }

    /// Once verified, or written since, it is trusted in later sessions.
    @Test func verifiedExtentIsNotVerifiedAgainInTheNextSession() throws {
        let open = try opened.make("a", media, filling: whole)
        opened.checkpoint()
        var again = try opened.killed()
        do {
            let a = try #require(try again.load("a"))
            try again.verify(a, extent: 0)
            try again.verify(a, extent: 3)
        }
        // The generation is closed before a checkpoint: what was verified may be verified again, but no more.
        again = try again.reopened()
        do {
            let a = try #require(try again.load("a"))
            try verifyAll(a, in: again)
            again.checkpoint()
        }
        again = try again.reopened()
        let a = try #require(try again.load("a"))
        #expect(!a.hasUnverified)
        #expect(a.isComplete)
        _ = consume open
    }

    @Test func chunksWrittenAfterAKillNeedNoVerification() throws {
        let open = try opened.make("a", media, filling: 0..<4096)
        opened.checkpoint()
        let again = try opened.killed()
        let a = try #require(try again.load("a"))
        try again.fill(a, media, 128 * 4096..<130 * 4096)
        var lease: ExtentLease?
        #expect(a.acquire(at: 128 * 4096, limit: .max, lease: &lease) == .bytes(until: 130 * 4096))
        // Beside unverified ones: only as far as it is sure.
        try again.fill(a, media, 4096..<3 * 4096)
        #expect(a.acquire(at: 4096, limit: .max, lease: &lease) == .bytes(until: 3 * 4096))
        #expect(a.acquire(at: 0, limit: .max, lease: &lease) == .unverified)
        _ = consume open
    }

    @Test func secondKillLeavesTheFirstOnesChunksSuspect() throws {
        let open = try opened.make("a", media, filling: 0..<4096)
        opened.checkpoint()
        let again = try opened.killed()
        _ = try again.load("a")
        let third = try again.killed().reopened()
        let a = try #require(try third.load("a"))
        #expect(a.hasUnverified)
        try verifyAll(a, in: third)
        #expect(try a.firstWrongChunk(media) == nil && a.isPresent(0))
        _ = consume open
    }

    @Test func whatNoCheckpointSavedIsAbsentAndItsFileGone() throws {
        let open = try opened.make("a", media, filling: whole)
        let again = try opened.killed()
        #expect(try again.load("a") == nil)
        #expect(again.dataFiles.isEmpty)
        #expect(again.store.ledger.dataSize == 0)
        _ = consume open
    }

    @Test func filesThatAreNoGenerationsAreRemoved() throws {
        let open = try opened.make("a", media, filling: whole)
        opened.checkpoint()
        let copy = try opened.killed().directory
        // Strangers, but for one that has the name of the generation that is there.
        let data = copy.file("data")
        try FileManager.default.createDirectory(atPath: data + "/zz", withIntermediateDirectories: true)
        for name in ["zz/stranger", "zz/0123456789abcdef", "zz/\(open.id)"] {
            _ = FileManager.default.createFile(atPath: "\(data)/\(name)", contents: Data(count: 9000))
        }
        // `copy` belongs to a store that is still open: a copy of it again.
        let (again, dropped) = try recoveredCopy(of: copy)
        #expect(dropped.isEmpty, "what has no name of ours, or is in the wrong place, is somebody else's: \(dropped)")
        let a = try #require(try again.load("a"))
        try verifyAll(a, in: again)
        #expect(a.isComplete)
    }

    private func recoveredCopy(of directory: TemporaryDirectory) throws -> (OpenStore, dropped: Set<String>) {
        let copy = try TemporaryDirectory()
        _ = try ChildProcess.run("/bin/cp", ["-a", directory.path + "/.", copy.path])
        let names = { (try? FileManager.default.subpathsOfDirectory(atPath: copy.file("data"))) ?? [] }
        let before = Set(names())
        let again = try OpenStore(copy)
        return (again, before.subtracting(names()))
    }

    @Test func damagedChunksAreDroppedAndCounted() throws {
        let open = try opened.make("a", media, filling: whole)
        opened.checkpoint()
        let again = try opened.killed()
        let a = try #require(try again.load("a"))
        for offset: Int64 in [5, 70 * 4096 - 1, media.size - 1] { try flip(again.path(a), offset) }
        try verifyAll(a, in: again)
        #expect(again.metrics.droppedChunks.value == 3)
        #expect(Array(0...200).filter { !a.isPresent($0) } == [0, 69, 200])
        #expect(a.coverage(of: whole) == .part)
        #expect(try a.firstWrongChunk(media) == nil)
        // They are fetched again, into the blocks that they have.
        let size = again.store.ledger.dataSize
        for chunk: Int64 in [0, 69, 200] {
            try again.fill(a, media, chunk * 4096..<min((chunk + 1) * 4096, media.size))
        }
        #expect(again.store.ledger.dataSize == size)
        #expect(a.isComplete)
        #expect(try a.firstWrongChunk(media) == nil)
        _ = consume open
    }

    @Test func damagedChunksAreForgottenByTheIndexToo() throws {
        let open = try opened.make("a", media, filling: whole)
        opened.checkpoint()
        var again = try opened.killed()
        do {
            let a = try #require(try again.load("a"))
            try flip(again.path(a), 0)
            try flip(again.path(a), 64 * 4096)
            try verifyAll(a, in: again)
            again.checkpoint()
        }
        again = try again.reopened()
        let a = try #require(try again.load("a"))
        #expect((0...200).filter { !a.isPresent($0) } == [0, 64])
        #expect(!a.hasUnverified)
        _ = consume open
    }

    @Test func generationOfWhichAllIsDamagedGoes() throws {
        let open = try opened.make("a", media, filling: 0..<2 * 4096)
        opened.checkpoint()
        let again = try opened.killed()
        do {
            let a = try #require(try again.load("a"))
            for offset: Int64 in [0, 4096] { try flip(again.path(a), offset) }
            try verifyAll(a, in: again)
            #expect(a.presentChunks == [])
        }
        again.catchUp()
        again.closeUnused()
        #expect(again.dataFiles.isEmpty)
        #expect(again.store.ledger.dataSize == 0)
        #expect(try again.load("a") == nil)
        _ = consume open
    }

    @Test func chunksBeyondTheEndOfATruncatedFileAreDropped() throws {
        let open = try opened.make("a", media, filling: whole)
        opened.checkpoint()
        let again = try opened.killed()
        let path = try #require(again.dataFiles.first)
        #expect(truncate(path, 10 * 4096 + 7) == 0)
        let a = try #require(try again.load("a"))
        try verifyAll(a, in: again)
        #expect(a.presentChunks == Array(0..<10))
        #expect(try a.firstWrongChunk(media) == nil)
        try again.fill(a, media, whole)
        #expect(a.isComplete)
        #expect(try a.firstWrongChunk(media) == nil)
        _ = consume open
    }

    /// No verification is due: it is found when the bytes are to be brought into memory.
    @Test func truncatedFileOfACleanCacheIsFoundWhenItIsWarmed() throws {
        do { _ = try opened.make("a", media, filling: whole) }
        let again = try opened.reopened()
        let a = try #require(try again.load("a"))
        #expect(truncate(again.path(a), 10 * 4096) == 0)
        let isResident = a.isResident(20 * 4096..<21 * 4096)
        // Once: mincore counts what is left of a large folio behind the end of the file.
        #expect(!isResident)
        #expect(try !again.warm(a, 20 * 4096..<22 * 4096))
        #expect(again.metrics.errors.values == ["disk-read": 1])
        #expect(!a.isPresent(20) && !a.isPresent(21))
        #expect(try again.warm(a, 0..<10 * 4096) && !a.isUnreadable)
    }

    @Test func whatTheDiskCouldNotReadIsKnownUntilTheNextSession() throws {
        do {
            let a = try opened.make("a", media, filling: whole)
            opened.checkpoint()
            _ = a.noteUnreadable(0..<4097)
            #expect(a.isUnreadable && !a.isPresent(0) && !a.isPresent(1) && a.isPresent(2))
        }
        opened.closeUnused()
        #expect(try opened.load("a")?.isUnreadable == true)
        let again = try opened.reopened()
        let a = try #require(try again.load("a"))
        #expect(!a.isUnreadable && !a.isPresent(0) && a.isPresent(2))
    }

    /// What lies elsewhere now is not forgotten: its next start has it again.
    @Test func directoryThatIsMovedAwayLosesNothing() throws {
        do { _ = try opened.make("a", media, filling: whole) }
        let again = try opened.reopened(), aside = again.directory.path + ".aside"
        #expect(rename(again.directory.path, aside) == 0)
        #expect(mkdir(again.directory.path, 0o700) == 0)
        for _ in 0..<2 { #expect(throws: StoreError.self) { try again.load("a") } }
        #expect(throws: StoreError.self) { try again.make("b", length: media.size) }
        #expect(throws: StoreError.self) { try again.store.scrub(repairs: true) { _ in true } }
        again.catchUp()
        #expect(again.evict(.max) == 0)
        #expect(again.metrics.errors.values == ["directory-gone": 1])
        #expect(rmdir(again.directory.path) == 0 && rename(aside, again.directory.path) == 0)
        let last = try again.reopened()
        #expect(try last.load("a")?.firstWrongChunk(media) == nil)
        #expect(try last.load("a")?.isComplete == true)
    }

    @Test func deletedFileIsNotFoundAndItsRowsGo() throws {
        do { _ = try opened.make("a", media, filling: whole) }
        let again = try opened.reopened()
        for path in again.dataFiles { unlink(path) }
        #expect(try again.load("a") == nil)
        again.catchUp()
        #expect(try again.row("a") == nil)
        #expect(again.metrics.errors.values == ["disk-file-missing": 1])
        // Once: the ledger counts deleted files for ever.
        #expect(again.store.ledger.dataSize == 0)
        // It is fetched again.
        let a = try again.make("a", media, filling: whole)
        again.checkpoint()
        #expect(try again.load("a") === a)
    }

    /// What was written between the last checkpoint and the kill has blocks, but no bits.
    @Test func sizeAfterAKillIsThatOfTheFilesAlsoWhenTheLostChunksAreFilledAgain() throws {
        let open = try opened.make("a", media, filling: 0..<4096)
        opened.checkpoint()
        try opened.fill(open, media, 4096..<media.size)
        var again = try opened.killed()
        do {
            let a = try #require(try again.load("a"))
            #expect(!a.isPresent(1))
            try again.fill(a, media, 4096..<media.size)
        }
        again = try again.reopened()
        // Once: blocks without a bit are counted again when they are filled, for as long as the cache is closed in
        // order.
        #expect(again.store.ledger.dataSize <= again.dataBytes + CapacityLedger.fileOverhead)
        again.evict(.max)
        #expect(again.dataFiles.isEmpty)
        // Once: and never given back.
        #expect(again.store.ledger.dataSize == 0)
    }

    // MARK: The index

    /// A checkpoint that the index refused is made up for by the next one.
    @Test func chunksThatTheIndexRefusedAreSavedLater() throws {
        do {
            let a = try opened.make("a", media, filling: 0..<4096)
            let blocker = IndexBlocker(opened.directory.file("index.sqlite"))
            opened.checkpoint()
            blocker.release()
            opened.checkpoint()
            #expect(a.isPresent(0))
        }
        let again = try opened.reopened()
        let present = try again.load("a")?.presentChunks
        // Once: what a failed checkpoint should have saved is lost, and its blocks are counted for ever.
        #expect(present == [0])
    }

    private func flip(_ path: String, _ offset: Int64) throws {
        let descriptor = open(path, O_RDWR)
        defer { close(descriptor) }
        var byte: UInt8 = 0
        try #require(pread(descriptor, &byte, 1, off_t(offset)) == 1)
        byte ^= 0x10
        try #require(pwrite(descriptor, &byte, 1, off_t(offset)) == 1)
    }
}
