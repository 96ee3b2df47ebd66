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
        opened.settle()
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
        opened.settle()
        let again = try opened.killed()
        #expect(again.dataFiles.isEmpty)
        #expect(try again.load("a") == nil)
        _ = consume a
    }

    /// A stream without end that turned out to be one while it was stored.
    @Test func retiredGenerationGivesBackWhatEveryoneHasPassed() throws {
        let media = Media(seed: 14, size: 300 * 4096)
        let a = try opened.make("a", length: nil)
        let writer = opened.store.writer(a, at: 0, stopsAtPresent: false)
        #expect(Taken(writer.append(media, Int(media.size))) == .taken(Int(media.size)))
        opened.store.retire(a)
        opened.settle()
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
        opened.settle()
        opened.closeUnused()
        #expect(opened.store.ledger.dataSize == 0)
        #expect(opened.dataFiles.isEmpty)
    }
}

/// Responses that are not stored pass through memory.
@Suite struct WindowTests {
    private let opened: OpenStore
    private let media = Media(seed: 15, size: 5 << 20)

    init() throws { opened = try OpenStore() }

    private func window(length: Int64?) -> Generation {
        opened.store.makeWindow(OpenStore.key("w"), head: OpenStore.head(), length: length)
    }

    private func memory(_ generation: Generation) -> Int64 { generation.file.allocatedBytes }

    @Test(arguments: [true, false])
    func windowFreesWhatEveryoneHasPassed(isLengthKnown: Bool) throws {
        let window = window(length: isLengthKnown ? media.size : nil)
        let writer = opened.store.writer(window, at: 0, stopsAtPresent: false)
        var highest: Int64 = 0
        var offset: Int64 = 0
        while offset < media.size {
            _ = writer.append(media, 300_000)
            var lease: ExtentLease?
            while case .bytes(let until) = window.acquire(at: offset, limit: media.size, lease: &lease) {
                #expect(media.difference(try window.fileBytes(offset..<until), from: offset..<until) == nil)
                offset = until
            }
            lease = nil
            window.discard(below: offset)
            highest = max(highest, memory(window))
        }
        if !isLengthKnown { writer.finish() }
        #expect(highest <= 3 << 20)
        #expect(window.length == media.size)
        #expect(opened.store.ledger.dataSize == 0)
        #expect(opened.dataFiles.isEmpty)
        #expect(try opened.row("w") == nil)
    }

    @Test func leasedPartOfAWindowStays() throws {
        let window = window(length: media.size)
        _ = opened.store.writer(window, at: 0, stopsAtPresent: false).append(media, 3 << 20)
        var lease: ExtentLease?
        _ = window.acquire(at: 0, limit: .max, lease: &lease)
        window.discard(below: 2 << 20)
        #expect(media.difference(try window.fileBytes(0..<1 << 20), from: 0..<1 << 20) == nil)
        _ = window.acquire(at: 2 << 20, limit: .max, lease: &lease)
        window.discard(below: 2 << 20)
        #expect(memory(window) == 1 << 20)
        #expect(window.acquire(at: 0, limit: .max, lease: &lease) == .absent)
    }

    /// A window takes no space of the cache, however full that is.
    @Test func windowNeedsNoRoom() throws {
        let opened = try OpenStore(minFree: OpenStore.wholeDisk)
        let window = opened.store.makeWindow(OpenStore.key("w"), head: OpenStore.head(), length: media.size)
        #expect(Taken(opened.store.writer(window, at: 0, stopsAtPresent: false).append(media, Int(media.size))) == .taken(Int(media.size)))
    }
}
