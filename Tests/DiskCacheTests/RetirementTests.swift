import CachePolicy
import Foundation
import TestSupport
import Testing

@testable import DiskCache

@Suite struct RetirementTests {
    private let opened: OpenStore
    private let media = Media(seed: 13, size: 100 * 4096)

    init() throws { opened = try OpenStore() }

    @Test func retiredGenerationGoesFromTheDiskWithItsLastReader() throws {
        var reader: Generation? = try opened.make("a", media, filling: 0..<media.size)
        opened.checkpoint()
        opened.store.retire(reader!)
        opened.store.retire(reader!)
        opened.catchUp()
        #expect(reader!.isRetired)
        #expect(try opened.load("a") == nil)
        #expect(try opened.row("a") == nil)
        // Who is in the middle of it reads on.
        #expect(try reader!.firstWrongChunk(media) == nil)
        #expect(opened.store.ledger.dataSize == CapacityLedger.fileOverhead + media.size)
        reader = nil
        opened.closeUnused()
        #expect(opened.dataFiles.isEmpty)
        #expect(opened.store.ledger.dataSize == 0)
    }

    @Test func retiredGenerationIsNotSavedAgain() throws {
        let a = try opened.make("a", media, filling: 0..<4096)
        opened.store.retire(a)
        try opened.fill(a, media, 4096..<2 * 4096)
        a.countHit()
        opened.checkpoint()
        #expect(try opened.row("a") == nil)
    }

    @Test func retiredGenerationIsNotEvictedUnderItsReader() throws {
        let a = try opened.make("a", media, filling: 0..<media.size)
        opened.checkpoint()
        opened.store.retire(a)
        opened.evict(.max)
        #expect(try a.firstWrongChunk(media) == nil && a.isComplete)
    }

    @Test func retiredGenerationIsGoneAfterAKill() throws {
        let a = try opened.make("a", media, filling: 0..<media.size)
        opened.checkpoint()
        opened.store.retire(a)
        opened.catchUp()
        let again = try opened.killed()
        #expect(again.dataFiles.isEmpty)
        #expect(try again.load("a") == nil)
        _ = consume a
    }

    /// A stream without end that turned out to be one while it was stored.
    @Test func retiredGenerationGivesBackWhatEveryoneHasPassed() throws {
        let media = Media(seed: 14, size: 300 * 4096)
        let a = try opened.make("a", length: nil)
        let writer = ChunkWriter(a, at: 0, stopsAtPresent: false, in: opened.store)
        #expect(Taken(writer.append(media, Int(media.size))) == .taken(Int(media.size)))
        opened.store.retire(a)
        opened.catchUp()
        a.discard(below: 150 * 4096)
        #expect(opened.store.ledger.dataSize == CapacityLedger.fileOverhead + (300 - 128) * 4096)
        #expect(media.difference(try a.fileBytes(128 * 4096..<media.size), from: 128 * 4096..<media.size) == nil)
    }

    @Test func retiredGenerationGivesBackAllWhenItIsClosed() throws {
        let media = Media(seed: 14, size: 300 * 4096)
        do {
            let a = try opened.make("a", media, filling: 0..<media.size)
            opened.store.retire(a)
            a.discard(below: 150 * 4096)
            a.discard(below: 200 * 4096)
        }
        opened.catchUp()
        opened.closeUnused()
        #expect(opened.store.ledger.dataSize == 0)
        #expect(opened.dataFiles.isEmpty)
    }
}

/// Responses that are not stored pass through memory.
@Suite struct PassThroughBufferTests {
    private let opened: OpenStore
    private let media = Media(seed: 15, size: 5 << 20)

    init() throws { opened = try OpenStore() }

    private func buffer(length: Int64?) -> Generation {
        opened.store.makeBuffer(OpenStore.key("w"), head: OpenStore.head(), length: length)
    }

    private func memory(_ generation: Generation) -> Int64 { generation.file.allocatedBytes }

    @Test(arguments: [true, false])
    func bufferFreesWhatEveryoneHasPassed(isLengthKnown: Bool) throws {
        let buffer = buffer(length: isLengthKnown ? media.size : nil)
        let writer = ChunkWriter(buffer, at: 0, stopsAtPresent: false, in: opened.store)
        var highest: Int64 = 0
        var offset: Int64 = 0
        while offset < media.size {
            _ = writer.append(media, 300_000)
            var lease: ExtentLease?
            while case .bytes(let until) = buffer.acquire(at: offset, limit: media.size, lease: &lease) {
                #expect(media.difference(try buffer.fileBytes(offset..<until), from: offset..<until) == nil)
                offset = until
            }
            lease = nil
            buffer.discard(below: offset)
            highest = max(highest, memory(buffer))
        }
        if !isLengthKnown { writer.finish() }
        #expect(highest <= 3 << 20)
        #expect(buffer.length == media.size)
        #expect(opened.store.ledger.dataSize == 0)
        #expect(opened.dataFiles.isEmpty)
        #expect(try opened.row("w") == nil)
    }

    @Test func leasedPartOfABufferStays() throws {
        let buffer = buffer(length: media.size)
        _ = ChunkWriter(buffer, at: 0, stopsAtPresent: false, in: opened.store).append(media, 3 << 20)
        var lease: ExtentLease?
        _ = buffer.acquire(at: 0, limit: .max, lease: &lease)
        buffer.discard(below: 2 << 20)
        #expect(media.difference(try buffer.fileBytes(0..<1 << 20), from: 0..<1 << 20) == nil)
        _ = buffer.acquire(at: 2 << 20, limit: .max, lease: &lease)
        buffer.discard(below: 2 << 20)
        #expect(memory(buffer) == 1 << 20)
        #expect(buffer.acquire(at: 0, limit: .max, lease: &lease) == .absent)
    }

    /// A buffer takes no space of the cache, however full that is.
    @Test func bufferNeedsNoRoom() throws {
        let opened = try OpenStore(minFree: OpenStore.wholeDisk)
        let buffer = opened.store.makeBuffer(OpenStore.key("w"), head: OpenStore.head(), length: media.size)
        #expect(
            Taken(ChunkWriter(buffer, at: 0, stopsAtPresent: false, in: opened.store).append(media, Int(media.size)))
                == .taken(Int(media.size)))
    }
}
