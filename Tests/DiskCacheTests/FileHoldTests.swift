import CachePolicy
import Foundation
import TestSupport
import Testing

@testable import DiskCache

/// A file that is lent: what is told of it is right, and stays until it is given back.
@Suite struct FileHoldTests {
    private let opened: OpenStore
    /// Four extents.
    private let media = Media(seed: 61, size: 4 * 64 * 4096)
    private let half = 0..<2 * 64 * 4096 as Range<Int64>

    init() throws { opened = try OpenStore() }

    private func hold(_ store: OpenStore, _ name: String = "a") throws -> FileHold {
        try #require(try store.store.holdGrowing(OpenStore.key(name)))
    }

    private func damage(_ path: String, at offset: Int64) throws {
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
        try file.seek(toOffset: UInt64(offset))
        try file.write(contentsOf: [1, 2, 3])
        try file.close()
    }

    @Test func damageThatAKillHasLeftIsNotToldAsPresent() throws {
        let generation = try opened.make("a", media, filling: half)
        opened.checkpoint()
        let again = try opened.killed()
        try damage(again.path(generation), at: 5 * 4096)
        let hold = try hold(again)
        #expect(hold.gaps(in: 0..<media.size) == [5 * 4096..<6 * 4096, half.upperBound..<media.size])
        #expect(!hold.isLost)
    }

    /// Reading a long film takes minutes.
    @Test func closingDoesNotWaitForTheRestToBeVerified() throws {
        do { _ = try opened.make("a", media, filling: 0..<media.size) }
        opened.checkpoint()
        let again = try opened.killed()
        let generation = try #require(try again.load("a"))
        again.store.core.beginEnding()
        #expect(throws: StoreError.self) { try hold(again) }
        #expect(generation.chunks.unverifiedExtents == [0, 1, 2, 3])
        #expect(!generation.isInUse)
    }

    @Test func nothingIsVerifiedForAClientThatHasLeft() throws {
        do { _ = try opened.make("a", media, filling: 0..<media.size) }
        opened.checkpoint()
        let again = try opened.killed()
        let generation = try #require(try again.load("a"))
        var asked = 0
        #expect(throws: StoreError.self) {
            try again.store.hold(OpenStore.key("a")) {
                asked += 1
                return asked < 3
            }
        }
        #expect(generation.chunks.unverifiedExtents == [2, 3])
        #expect(!generation.isInUse)
    }

    @Test func aRangeIsReadWithoutVerifyingTheRest() throws {
        do { _ = try opened.make("a", media, filling: half) }
        opened.checkpoint()
        let again = try opened.killed()
        let generation = try #require(try again.load("a")), range: Range<Int64> = 5000..<6000
        #expect(generation.chunks.unverifiedExtents == [0, 1])
        let stored = try #require(try again.store.bytes(of: OpenStore.key("a"), range, limit: 1000))
        #expect(media.difference(stored.bytes, from: range) == nil)
        #expect(generation.chunks.unverifiedExtents == [1])
    }

    @Test func nothingOfAGrowingFileIsEvicted() throws {
        do { _ = try opened.make("a", media, filling: half) }
        do {
            let hold = try hold(opened)
            #expect(opened.evict(.max) == 0)
            let generation = try #require(try opened.load("a"))
            try opened.fill(generation, media, 3 * 64 * 4096..<media.size)
            #expect(opened.evict(.max) == 0)
            #expect(hold.gaps(in: 0..<media.size) == [half.upperBound..<3 * 64 * 4096])
            #expect(try generation.firstWrongChunk(media) == nil)
            #expect(!hold.isLost)
        }
        opened.evict(.max)
        #expect(opened.dataFiles.isEmpty)
    }

    @Test func chunksThatAreDroppedMakeItLost() throws {
        let generation = try opened.make("a", media, filling: half)
        let hold = try hold(opened)
        generation.dropChunks(touching: half.upperBound..<media.size)
        #expect(!hold.isLost, "nothing was there")
        generation.dropChunks(touching: 4096..<4097)
        try opened.fill(generation, media, 4096..<8192)
        #expect(hold.isLost, "what came between may have been copied")
        #expect(try !self.hold(opened).isLost)
    }

    @Test(arguments: [true, false]) func chunksThatAreFoundDamagedMakeItLost(isRepaired: Bool) throws {
        let generation = try opened.make("a", media, filling: half)
        opened.checkpoint()
        let held = try hold(opened)
        try damage(opened.path(generation), at: 4096)
        _ = try opened.store.scrub(repairs: isRepaired) { _ in true }
        #expect(held.isLost)
        let next = try hold(opened)
        #expect(next.gaps(in: half) == [4096..<8192] && !next.isLost)
    }

    @Test func anotherVersionMakesItLost() throws {
        let generation = try opened.make("a", media, filling: half)
        let hold = try hold(opened)
        opened.store.retire(generation)
        #expect(hold.isLost)
    }
}
