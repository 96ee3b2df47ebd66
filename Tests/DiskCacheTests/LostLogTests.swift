import CachePolicy
import Foundation
import TestSupport
import Testing

@testable import DiskCache

/// The index's log is lost, or overwritten, after a kill: the index opens all the same, and knows nothing of what was
/// last written to it.
@Suite struct LostLogTests {
    private let media = Media(seed: 31, size: 40 * 4096)

    /// A copy of a directory in use, as a kill would leave it, whose index has lost its log.
    private func killedWithoutLog(_ opened: OpenStore, isOverwritten: Bool) throws -> TemporaryDirectory {
        let copy = try TemporaryDirectory()
        try opened.store.queue.sync { _ in
            let outcome = try ChildProcess.run(
                "/bin/cp", ["-a", "--sparse=always", opened.directory.path + "/.", copy.path])
            guard outcome.exit == .exited(0) else { throw Unexpected("cp: \(outcome.stderr)") }
        }
        let log = copy.file("index.sqlite-wal")
        if isOverwritten {
            try Data(repeating: 0x5A, count: 100_000).write(to: URL(fileURLWithPath: log))
        } else {
            unlink(log)
        }
        unlink(copy.file("index.sqlite-shm"))
        return copy
    }

    @Test(arguments: [false, true]) func pinnedResourcesComeBackFromTheirCopy(isOverwritten: Bool) throws {
        let opened = try OpenStore()
        _ = try opened.make("a", media, filling: 0..<media.size)
        #expect(try opened.store.setPinned(true, OpenStore.key("a")))

        let again = try OpenStore(try killedWithoutLog(opened, isOverwritten: isOverwritten))
        again.catchUp()

        let generation = try #require(try again.load("a"))
        try again.verify(generation, extent: 0)
        #expect(generation.presentChunks.count == 40)
        #expect(try generation.firstWrongChunk(media) == nil)
        #expect(try again.store.report().pinned == 1)
        #expect(again.store.ledger.dataSize >= again.dataBytes)
    }

    @Test func whatWasFetchedAfterThePinningComesBackToo() throws {
        let opened = try OpenStore()
        let first = try opened.make("a", media, filling: 0..<4096)
        #expect(try opened.store.setPinned(true, OpenStore.key("a")))
        try opened.store.core.index.database.checkpointLog()
        try opened.fill(first, media, 4096..<media.size)
        opened.checkpoint()
        let again = try OpenStore(try killedWithoutLog(opened, isOverwritten: false))
        let generation = try #require(try again.load("a"))
        #expect(generation.presentChunks.count == 40)
    }

    /// The index is as new as the copy, or newer: what it says of pins holds.
    @Test func indexThatIsNewerIsBelieved() throws {
        let opened = try OpenStore()
        for name in ["a", "b"] { _ = try opened.make(name, media, filling: 0..<media.size) }
        for name in ["a", "b"] { #expect(try opened.store.setPinned(true, OpenStore.key(name))) }
        #expect(try opened.store.setPinned(false, OpenStore.key("a")))
        _ = try opened.store.remove(OpenStore.key("b"), isDryRun: false)
        let again = try opened.killed()
        again.catchUp()
        #expect(try again.store.report().pinned == 0)
        #expect(try again.load("b") == nil)
    }

    /// Holes that were punched since the index last knew are no zeros to anybody.
    @Test func chunksWhoseEvictionWasForgottenAreVerified() throws {
        let directory: TemporaryDirectory
        do {
            let opened = try OpenStore()
            _ = try opened.make("a", media, filling: 0..<media.size)
            try opened.close()
            directory = opened.directory
        }
        let opened = try OpenStore(directory)
        _ = try opened.make("b", media, filling: 0..<media.size)
        opened.checkpoint()
        let row = try #require(try opened.row("a"))
        let victim = EvictionOrder.Victim(
            generation: row.id, ordinal: 0, lastAccess: 0, present: Presence(bits: (1 << 40) - 1), length: media.size,
            geometry: OpenStore.small)
        #expect(opened.store.queue.sync { $0.evictor.evict([victim], upTo: .max).freed } > 0)
        let again = try OpenStore(try killedWithoutLog(opened, isOverwritten: false))
        if let generation = try again.load("a") {
            try again.verify(generation, extent: 0)
            #expect(try generation.firstWrongChunk(media) == nil)
        }
    }
}
