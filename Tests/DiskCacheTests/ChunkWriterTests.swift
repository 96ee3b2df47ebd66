import CachePolicy
import Foundation
import TestSupport
import Testing

@testable import DiskCache

@Suite struct ChunkWriterTests {
    private let opened: OpenStore
    private let media = Media(seed: 7, size: 10 * 4096 + 100)

    init() throws { opened = try OpenStore() }

    @Test func writerPassesOverWhatIsPresent() throws {
        let generation = try opened.make("a", media, filling: 4096..<3 * 4096)
        // What it is given for present chunks is not looked at.
        let writer = ChunkWriter(generation, at: 0, stopsAtPresent: false, in: opened.store)
        var bytes = media.bytes(0..<4 * 4096)
        bytes.replaceSubrange(4096..<2 * 4096, with: repeatElement(0, count: 4096))
        #expect(Taken(bytes.withUnsafeBytes { writer.append($0) }) == .taken(4 * 4096))
        #expect(generation.presentChunks == [0, 1, 2, 3])
        #expect(try generation.firstWrongChunk(media) == nil)
    }

    @Test func writerThatStopsAtPresentEndsThere() throws {
        let generation = try opened.make("a", media, filling: 2 * 4096..<3 * 4096)
        let writer = ChunkWriter(generation, at: 0, stopsAtPresent: true, in: opened.store)
        #expect(Taken(writer.append(media, 5 * 4096)) == .met(2 * 4096))
        #expect(writer.position == 2 * 4096)
        // It stays at its end.
        #expect(Taken(writer.append(media, 1)) == .met(0))
        #expect(generation.presentChunks == [0, 1, 2])
    }

    @Test func writerMeetsAnotherInTheMiddleOfAChunk() throws {
        let generation = try opened.make("a", length: media.size)
        let first = ChunkWriter(generation, at: 2 * 4096, stopsAtPresent: false, in: opened.store)
        #expect(Taken(first.append(media, 10)) == .taken(10))
        let second = ChunkWriter(generation, at: 0, stopsAtPresent: false, in: opened.store)
        #expect(Taken(second.append(media, 3 * 4096)) == .met(2 * 4096))
        // The other one gives up: the chunk is anyone's again, from its start.
        first.close()
        #expect(Taken(second.append(media, 4096)) == .taken(4096))
        #expect(generation.presentChunks == [0, 1, 2])
        #expect(try generation.firstWrongChunk(media) == nil)
    }

    // MARK: What it begins with

    private static let beginnings: [(bytes: String, is: Listing.Beginning)] = [
        ("#EXTM3U\n#EXTINF:1,\n1.ts\n", .playlist), ("<?xml version=\"1.0\"?>\n<MPD/>", .playlist),
        ("\n<?xml version=\"1.0\"?>\n<rss><channel/></rss>", .feed), ("<html>", .other), ("\0\0\0\u{18}ftyp", .other),
        (" ", .other),
    ]

    @Test(arguments: beginnings, [1, 7, 4096])
    func generationTellsWhatItBeginsWith(_ text: (bytes: String, is: Listing.Beginning), piece: Int) throws {
        let bytes = Array(text.bytes.utf8)
        for length in [Int64(bytes.count), nil] {
            let generation = try opened.make("\(length ?? -1)", length: length)
            #expect(generation.beginning == .unknown)
            let writer = ChunkWriter(generation, at: 0, stopsAtPresent: false, in: opened.store)
            for start in stride(from: 0, to: bytes.count, by: piece) {
                #expect([.unknown, .text, text.is].contains(generation.beginning))
                bytes[start..<min(bytes.count, start + piece)].withUnsafeBytes { _ = writer.append($0) }
            }
            writer.finish()
            #expect(generation.beginning == text.is)
        }
    }

    /// A cache of an earlier version says no more.
    @Test(arguments: beginnings)
    func openedGenerationTellsWhatItBeginsWith(_ text: (bytes: String, is: Listing.Beginning)) throws {
        do {
            let generation = try opened.make("a", length: Int64(text.bytes.utf8.count))
            let writer = ChunkWriter(generation, at: 0, stopsAtPresent: false, in: opened.store)
            Array(text.bytes.utf8).withUnsafeBytes { _ = writer.append($0) }
        }
        let again = try opened.reopened()
        #expect(try again.load("a")?.beginning == text.is)
    }

    @Test func openedGenerationWithoutItsFirstChunkDoesNotTell() throws {
        do { _ = try opened.make("a", media, filling: 4096..<2 * 4096) }
        let again = try opened.reopened()
        #expect(try again.load("a")?.beginning == .unknown)
    }

    @Test func abandonedChunkIsAbsentAndFilledAgainWithoutNewSpace() throws {
        let generation = try opened.make("a", length: media.size)
        let before = opened.store.ledger.dataSize
        let writer = ChunkWriter(generation, at: 0, stopsAtPresent: false, in: opened.store)
        _ = writer.append(media, 4095)
        writer.close()
        var lease: ExtentLease?
        #expect(generation.acquire(at: 0, limit: 100, lease: &lease) == .absent)
        #expect(opened.store.ledger.dataSize == before + 4096)
        try opened.fill(generation, media, 0..<4096)
        #expect(opened.store.ledger.dataSize == before + 4096)
        #expect(try generation.firstWrongChunk(media) == nil)
    }

    /// The disk says once that it has lost bytes: that a later sync succeeds means nothing for those.
    @Test func whatWasWrittenBeforeASyncFailedIsNotSavedByTheNext() throws {
        let generation = try opened.make("a", media, filling: 0..<4096)
        let writer = ChunkWriter(generation, at: 4096, stopsAtPresent: false, in: opened.store)
        #expect(Taken(writer.append(media, 4095)) == .taken(4095))
        // Without its directory, the file's name cannot be made durable.
        let shard = (opened.path(generation) as NSString).deletingLastPathComponent
        try FileManager.default.moveItem(atPath: shard, toPath: shard + "-away")
        opened.checkpoint()
        try FileManager.default.moveItem(atPath: shard + "-away", toPath: shard)
        #expect(opened.metrics.droppedChunks.value == 1)
        #expect(Taken(writer.append(media, 4097)) == .taken(4097))
        opened.checkpoint()
        #expect(generation.presentChunks == [2])
        #expect(try opened.rows(of: generation.id) == [0: Presence([2])])
        try opened.fill(generation, media, 0..<3 * 4096)
        #expect(try generation.firstWrongChunk(media) == nil)
    }

    @Test func writerThatIsLetGoOfAbandonsItsChunk() throws {
        let generation = try opened.make("a", length: media.size)
        do {
            let writer = ChunkWriter(generation, at: 0, stopsAtPresent: false, in: opened.store)
            _ = writer.append(media, 1)
            #expect(generation.leases(0) == 1)
        }
        #expect(generation.leases(0) == 0)
        #expect(!generation.chunks.hasClaims)
    }

    @Test func shortLastChunkIsPresentAtTheEnd() throws {
        let generation = try opened.make("a", media, filling: 10 * 4096..<media.size)
        #expect(generation.presentChunks == [10])
        var lease: ExtentLease?
        #expect(generation.acquire(at: media.size - 1, limit: .max, lease: &lease) == .bytes(until: media.size))
    }

    // With a last chunk that is whole, and with one that is not.
    @Test(arguments: [10 * 4096, 10 * 4096 + 100, 64 * 4096] as [Int64])
    func bytesPastTheEndAreNotTaken(length: Int64) throws {
        let media = Media(seed: 1, size: length)
        let generation = try opened.make("\(length)", length: length)
        let before = opened.store.ledger.dataSize
        let writer = ChunkWriter(generation, at: 0, stopsAtPresent: false, in: opened.store)
        let bytes = media.bytes(0..<length + 50)
        #expect(Taken(bytes.withUnsafeBytes { writer.append($0) }) == .met(Int(length)))
        #expect(generation.isComplete)
        #expect(opened.store.ledger.dataSize == before + CapacityLedger.rounded(length))
        writer.close()
        opened.checkpoint()
        #expect(allocatedBytes(opened.path(generation)) <= CapacityLedger.rounded(length))
    }

    // MARK: Unknown length

    @Test(arguments: [0, 1, 4095, 4096, 4097, 64 * 4096, 64 * 4096 + 1] as [Int64])
    func lengthIsKnownWhenTheBodyEnds(length: Int64) throws {
        let media = Media(seed: 2, size: length)
        let generation = try opened.make("a", length: nil)
        let writer = ChunkWriter(generation, at: 0, stopsAtPresent: false, in: opened.store)
        #expect(generation.length == nil)
        #expect(!generation.isComplete)
        #expect(Taken(writer.append(media, Int(length))) == .taken(Int(length)))
        writer.finish()
        #expect(generation.length == length)
        #expect(generation.isComplete)
        #expect(generation.coverage(of: 0..<length) == .whole)
        #expect(try generation.firstWrongChunk(media) == nil)
        // A second end changes nothing.
        writer.finish()
        #expect(generation.length == length)
    }

    @Test func readerFollowsABodyOfUnknownLength() throws {
        let generation = try opened.make("a", length: nil)
        let writer = ChunkWriter(generation, at: 0, stopsAtPresent: false, in: opened.store)
        _ = writer.append(media, 5000)
        var lease: ExtentLease?
        #expect(generation.acquire(at: 0, limit: .max, lease: &lease) == .bytes(until: 4096))
        #expect(generation.acquire(at: 4096, limit: .max, lease: &lease) == .bytes(until: 5000))
        #expect(generation.acquire(at: 5000, limit: .max, lease: &lease) == .absent)
        // Far behind all that there is.
        #expect(generation.acquire(at: 1 << 40, limit: .max, lease: &lease) == .absent)
    }

    @Test func bodyOfUnknownLengthIsSavedWhenItsEndIsSeen() throws {
        do {
            let generation = try opened.make("a", length: nil)
            let writer = ChunkWriter(generation, at: 0, stopsAtPresent: false, in: opened.store)
            _ = writer.append(media, 9 * 4096)
            opened.checkpoint()
            #expect(try opened.row("a") == nil)
            _ = writer.append(media, Int(media.size))
            writer.finish()
        }
        let again = try opened.reopened()
        let loaded = try #require(try again.load("a"))
        #expect(loaded.length == media.size)
        #expect(loaded.isComplete)
        #expect(try loaded.firstWrongChunk(media) == nil)
    }

    /// Known length: reserved and given back by the same measure. Unknown: each chunk is reserved whole, also the last.
    @Test(arguments: [false, true])
    func evictionGivesBackAllThatWasReserved(isLengthKnown: Bool) throws {
        let wide = try OpenStore(geometry: .standard)
        let short = Media(seed: 3, size: 1000)
        for index in 0..<10 {
            let generation = try wide.make("\(index)", length: isLengthKnown ? short.size : nil)
            let writer = ChunkWriter(generation, at: 0, stopsAtPresent: false, in: wide.store)
            #expect(Taken(writer.append(short, 1000)) == .taken(1000))
            writer.finish()
        }
        wide.evict(.max)
        #expect(wide.dataFiles.isEmpty)
        // Once: what was reserved past the end of a body of unknown length is never given back.
        #expect(wide.store.ledger.dataSize == 0)
    }

    /// Playlists and the like often come without a length, and stay open: some thousands of them must fit into 128 TiB.
    @Test func bodyOfUnknownLengthTakesLittleAddressSpace() throws {
        let generation = try opened.make("a", length: nil)
        let writer = ChunkWriter(generation, at: 0, stopsAtPresent: false, in: opened.store)
        _ = writer.append(media, Int(media.size))
        writer.finish()
        let maps = try String(contentsOfFile: "/proc/self/maps", encoding: .utf8)
        let mapped = maps.split(separator: "\n").filter { $0.hasSuffix(opened.path(generation)) }.reduce(UInt64(0)) {
            sum, map in
            let bounds = map.prefix { $0 != " " }.split(separator: "-").compactMap { UInt64($0, radix: 16) }
            return sum + bounds[1] - bounds[0]
        }
        // Once: 1 TiB each: the 128th that is open at once cannot be made.
        #expect(mapped <= 4 << 30)
    }

    // MARK: No room

    @Test func writerWithoutRoomGoesOnAfterMakeRoom() throws {
        let media = Media(seed: 4, size: 40 << 20)
        let opened = try OpenStore(maxSize: 16_000_000, geometry: .standard)
        let generation = try opened.make("a", length: media.size)
        let writer = ChunkWriter(generation, at: 0, stopsAtPresent: false, in: opened.store)
        var refusals = 0
        while writer.position < media.size {
            let start = writer.position
            switch Taken(writer.append(media, 1 << 20)) {
            case .taken: break
            case .noRoom(let taken):
                refusals += 1
                #expect(writer.position == start + Int64(taken))
                try #require(try opened.makeRoom())
            case let other: try #require(Bool(false), "\(other)")
            }
            #expect(opened.store.ledger.size <= 16_000_000)
        }
        #expect(refusals > 0)
        // What was written last is there, and right.
        #expect(generation.isPresent(generation.geometry.chunkCount(length: media.size) - 1))
        #expect(try generation.firstWrongChunk(media) == nil)
    }

    @Test func noRoomForAFileIsAnErrorThatSaysSo() throws {
        let opened = try OpenStore(minFree: OpenStore.wholeDisk)
        do {
            _ = try opened.make("a", length: 1)
            Issue.record("a file was made")
        } catch StoreError.system(_, _, let code) {
            #expect(code == ENOSPC)
        }
        #expect(opened.dataFiles.isEmpty)
        #expect(opened.store.ledger.dataSize == 0)
    }

    @Test func chunkThatIsBeingEvictedIsNotWritten() throws {
        let generation = try opened.make("a", media, filling: 0..<4096)
        let (_, bytes) = try #require(generation.beginEviction(ofExtent: 0))
        let writer = ChunkWriter(generation, at: 0, stopsAtPresent: false, in: opened.store)
        #expect(Taken(writer.append(media, 4096)) == .noRoom(0))
        try generation.file.punchHole(0..<media.size)
        generation.withChunks { $0.endEviction(ofExtent: 0, bytes: bytes, isPunched: true) }
        #expect(Taken(writer.append(media, 4096)) == .taken(4096))
        #expect(try generation.firstWrongChunk(media) == nil)
    }
}
