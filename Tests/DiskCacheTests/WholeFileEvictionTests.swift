import Activity
import CachePolicy
import Foundation
import Logging
import TestSupport
import Testing

@testable import DiskCache

/// On a file system that cannot punch holes, whole files go.
@Suite struct WholeFileEvictionTests {
    private let media = Media(seed: 41, size: 100 * 4096)

    @Test func leastRecentlyReadFileGoesAsAWhole() throws {
        let opened = try OpenStore(holes: .kept)
        for (time, name) in ["b", "a", "c"].enumerated() {
            let generation = try opened.make(name, media, filling: 0..<media.size)
            for ordinal in generation.presence.indices { generation.touch(ordinal, at: Int64(time + 1)) }
        }
        opened.checkpoint()
        #expect(opened.evict(1) >= media.size)
        #expect(try opened.load("b") == nil)
        #expect(try opened.load("a") != nil && opened.load("c") != nil)
        #expect(opened.dataFiles.count == 2)
        #expect(opened.store.ledger.dataSize >= opened.dataBytes)
    }

    @Test func fileThatSomebodyReadsStays() throws {
        let opened = try OpenStore(holes: .kept)
        let generation = try opened.make("a", media, filling: 0..<media.size)
        generation.beginUse()
        opened.checkpoint()
        #expect(opened.evict(1) == 0)
        #expect(generation.isComplete)
        generation.endUse()
        #expect(try opened.makeRoom())
    }

    @Test func fileThatIsOpenAndUnusedIsLetGoOf() throws {
        let opened = try OpenStore(holes: .kept)
        let table = Table()
        table.generation = try opened.make("a", media, filling: 0..<media.size)
        opened.store.listeners.whenChanged { _, _ in table.generation = nil }
        opened.checkpoint()
        #expect(opened.evict(1) >= media.size)
        #expect(opened.dataFiles.isEmpty && opened.store.ledger.dataSize == 0)
    }

    /// What is kept in case somebody asks.
    private final class Table: @unchecked Sendable {
        var generation: Generation?
    }

    @Test func pinnedFilesStay() throws {
        let opened = try OpenStore(holes: .kept)
        do { _ = try opened.make("a", media, filling: 0..<media.size) }
        #expect(try opened.store.setPinned(true, OpenStore.key("a")))
        #expect(opened.evict(1) == 0)
        #expect(try opened.load("a")?.isComplete == true)
    }

    /// Blocks without a bit cannot be given back: they are counted until the file goes.
    @Test func whatAKillLeftInAFileIsCounted() throws {
        let opened = try OpenStore(holes: .kept)
        let open = try opened.make("a", media, filling: 0..<4096)
        opened.checkpoint()
        try opened.fill(open, media, 4096..<media.size)
        try open.file.sync()
        let again = try opened.killed()
        #expect(again.dataBytes > 50 * 4096, "the copy has the blocks")
        #expect(again.store.ledger.dataSize >= again.dataBytes)
        #expect(again.evict(1) > 0)
        #expect(again.dataFiles.isEmpty && again.store.ledger.dataSize == 0)
    }

    // MARK: Where no holes are kept

    @Test func gapBeforeAWriteIsCountedAndFilledWithoutFurtherRoom() throws {
        let opened = try OpenStore(holes: .filled)
        let generation = try opened.make("a", media, filling: 90 * 4096..<91 * 4096)
        #expect(generation.allocated == 91 * 4096 + CapacityLedger.fileOverhead)
        #expect(opened.store.ledger.dataSize == generation.allocated)
        try opened.fill(generation, media, 0..<90 * 4096)
        #expect(generation.allocated == 91 * 4096 + CapacityLedger.fileOverhead)
        try opened.fill(generation, media, 91 * 4096..<media.size)
        #expect(opened.store.ledger.dataSize == media.size + CapacityLedger.fileOverhead)
        #expect(generation.isComplete && generation.file.allocatedBytes >= media.size)
        #expect(try generation.firstWrongChunk(media) == nil)
    }

    /// exFAT has blocks of up to 128 KiB; the smallest file and each directory takes one.
    @Test(
        arguments: [
            (.filled, 128 << 10, (128 << 10) + 4096, 256 << 10), (.filled, 512, 8192, 1024),
            (.kept, 128 << 10, 8192, 0),
        ] as [(StoreConfiguration.Holes, Int64, Int64, Int64)])
    func largeBlocksAreCountedFromTheStart(
        holes: StoreConfiguration.Holes, block: Int64, overhead: Int64, directories: Int64
    ) throws {
        let directory = try TemporaryDirectory(), logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        for shard in ["01", "02"] {
            try FileManager.default.createDirectory(
                atPath: directory.file("data/\(shard)"), withIntermediateDirectories: true)
        }
        let files = GenerationFiles(
            in: directory.path, try UnfinishedFiles(path: directory.file("unfinished")),
            ids: GenerationID.Series(session: 1), holes,
            block: block, FaultLog(ProxyMetrics(), logger), logger)
        #expect(files.fileOverhead == overhead)
        #expect(files.directoryBytes == directories)
    }

    /// What a file system that keeps holes would show, the copy has as zeros.
    @Test func gapIsKnownAgainInTheNextSession() throws {
        let opened = try OpenStore(holes: .filled)
        _ = try opened.make("a", media, filling: 70 * 4096..<media.size)
        opened.checkpoint()
        let again = try opened.killed(sparse: "never")
        let counted = again.store.ledger.dataSize
        #expect(counted >= again.dataBytes && again.dataBytes >= media.size)
        let generation = try #require(try again.load("a"))
        try again.fill(generation, media, 0..<70 * 4096)
        #expect(generation.isComplete && again.store.ledger.dataSize == counted, "its blocks were counted")
    }

    @Test func roomIsMadeForTheGapAsAWhole() throws {
        let big = Media(seed: 42, size: 10_000 * 4096)
        let opened = try OpenStore(maxSize: 64_000_000, holes: .filled)
        do { _ = try opened.make("a", big, filling: 0..<big.size) }
        opened.checkpoint()
        let generation = try opened.make("b", length: big.size)
        let writer = ChunkWriter(generation, at: 9_000 * 4096, stopsAtPresent: false, in: opened.store)
        #expect(Taken(writer.append(big, 4096)) == .noRoom(0))
        #expect(try opened.makeRoom())
        #expect(Taken(writer.append(big, 4096)) == .taken(4096))
        #expect(try opened.load("a") == nil)
    }

    /// Otherwise everything would be evicted for it, and in vain.
    @Test func gapLongerThanTheCacheIsNotWaitedFor() throws {
        let opened = try OpenStore(maxSize: 64_000_000, holes: .filled)
        let generation = try opened.make("a", length: 1 << 30)
        let writer = ChunkWriter(generation, at: 1 << 29, stopsAtPresent: false, in: opened.store)
        let outcome = [UInt8](repeating: 1, count: 4096).withUnsafeBytes { writer.append($0) }
        guard case .failed(.system(_, _, ENOSPC)) = outcome else { throw Unexpected("\(outcome)") }
    }
}
