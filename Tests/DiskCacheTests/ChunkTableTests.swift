import CachePolicy
import Testing

@testable import DiskCache

/// What a table of chunks answers to each event, without a lock, a clock or a disk. Chunks have 4 KiB; the resource has
/// 70 of them in two extents, and the last has 100 bytes.
@Suite struct ChunkTableTests {
    private static let length: Int64 = 69 * 4096 + 100

    /// - Parameter present: chunks that have come, in this session.
    private func table(present: Range<Int> = 0..<0, isStored: Bool = true, length: Int64? = length) -> ChunkTable {
        var table = ChunkTable(OpenStore.small, length: length, isStored: isStored)
        let writer = table.makeWriter()
        for chunk in present { fill(&table, chunk, by: writer) }
        return table
    }

    private func fill(_ table: inout ChunkTable, _ chunk: Int, by writer: Int) {
        #expect(table.claimWithBlocks(chunk, by: writer, bytes: 4096) == true)
        table.complete(chunk, by: writer, checksum: UInt64(chunk), now: 5)
    }

    // MARK: Claiming

    /// How the chunk is that a writer asks for.
    enum Former: Sendable { case absent, present, claimed, left, evicting }

    @Test(
        arguments: [
            (.absent, 3, "needsBlocks(4096)"), (.absent, 69, "needsBlocks(4096)"), (.present, 3, "present"),
            (.claimed, 3, "taken"), (.left, 3, "claimed"), (.evicting, 3, "evicting"),
        ] as [(Former, Int, String)])
    func claimOfAChunkIsAnswered(former: Former, chunk: Int, answer: String) {
        var table = table()
        let (first, second) = (table.makeWriter(), table.makeWriter())
        switch former {
        case .absent: break
        case .present: fill(&table, chunk, by: first)
        case .claimed: #expect(table.claimWithBlocks(chunk, by: first, bytes: 4096) == true)
        case .left:
            #expect(table.claimWithBlocks(chunk, by: first, bytes: 4096) == true)
            table.abandon(chunk, by: first)
        case .evicting:
            fill(&table, 0, by: first)
            #expect(table.beginEviction(ofExtent: 0) != nil)
        }
        #expect("\(table.claim(chunk, by: second))" == answer)
        #expect(table.isLeased == ["taken", "claimed"].contains(answer), "the extent of a claimed chunk stays")
    }

    // MARK: Reading

    @Test func readerGoesToTheEndOfTheRunOrToTheFrontier() {
        var table = table(present: 2..<5)
        let writer = table.makeWriter()
        #expect(table.claimWithBlocks(10, by: writer, bytes: 4096) == true)
        table.advance(writer, to: 10 * 4096 + 7)
        #expect(table.acquire(at: 0, leases: true, now: 9) == .absent)
        #expect(table.acquire(at: 3 * 4096 + 1, leases: false, now: 9) == .bytes(until: 5 * 4096))
        #expect(table.acquire(at: 10 * 4096 + 6, leases: false, now: 9) == .bytes(until: 10 * 4096 + 7))
        #expect(
            table.acquire(at: 10 * 4096 + 7, leases: true, now: 9) == .absent, "where nothing is, nothing is leased")
        table.abandon(10, by: writer)
        #expect(!table.isLeased)
        #expect(table.acquire(at: 2 * 4096, leases: true, now: 9) == .bytes(until: 5 * 4096) && table.isLeased)
        table.endLease(0)
        #expect(!table.isLeased)
    }

    @Test func unverifiedChunksEndARun() {
        var extents = ExtentTable()
        extents[0].present = Presence(0..<8)
        extents[0].unverified = Presence(4..<6)
        var table = ChunkTable(
            OpenStore.small, length: Self.length, isStored: true, extents: extents, wasSealed: false)
        #expect(table.acquire(at: 0, leases: false, now: 9) == .bytes(until: 4 * 4096))
        #expect(table.acquire(at: 4 * 4096, leases: false, now: 9) == .unverified)
        #expect(!table.isTrusted && table.unverifiedExtents == [0])
        #expect(table.endVerification(of: Presence(4..<6), bad: Presence(5..<6), inExtent: 0) == 1)
        #expect(table.acquire(at: 0, leases: false, now: 9) == .bytes(until: 5 * 4096))
        #expect(table.isTrusted && table.losses == 1 && table.gap(in: 0..<8 * 4096) == 5 * 4096..<6 * 4096)
    }

    // MARK: What is present

    @Test(
        arguments: [
            (0..<4096, .none, 0, 0..<4096), (2 * 4096..<5 * 4096, .whole, 3 * 4096, nil),
            (4096..<3 * 4096, .part, 4096, 4096..<2 * 4096),
            (4 * 4096 + 1..<Self.length, .part, 4095, 5 * 4096..<Self.length), (7..<7, .whole, 0, nil),
        ] as [(Range<Int64>, Generation.Coverage, Int64, Range<Int64>?)])
    func rangeIsCovered(range: Range<Int64>, coverage: Generation.Coverage, bytes: Int64, gap: Range<Int64>?) {
        let table = table(present: 2..<5)
        #expect(table.coverage(of: range) == coverage)
        #expect(table.presentBytes(of: range) == bytes)
        #expect(table.gap(in: range) == gap)
        let present: [Range<Int64>] = [2 * 4096..<5 * 4096]
        #expect(table.presentRanges?.present == present)
    }

    @Test func endOfABodyGivesBackWhatItsLastChunkDoesNotNeed() {
        let geometry = ChunkGeometry(chunkSize: 16384)!
        var table = ChunkTable(geometry, length: nil, isStored: true)
        let writer = table.makeWriter()
        #expect(table.claimWithBlocks(0, by: writer, bytes: 16384) == true)
        #expect(table.end(at: 5000) == 16384 - 8192)
        table.complete(0, by: writer, checksum: 1, now: 5)
        #expect(table.isComplete && table.allocated == CapacityLedger.fileOverhead + 8192)
    }

    // MARK: What goes

    @Test func evictionIsCancelledOrFreesItsBlocks() throws {
        var table = table(present: 0..<70)
        let taken = table.allocated
        #expect(table.isComplete)
        table.lease(1)
        #expect(table.beginEviction(ofExtent: 1) == nil, "it is leased")
        table.endLease(1)
        let begun = table.beginEviction(ofExtent: 1)
        let (extent, bytes) = try #require(begun)
        #expect(bytes == 6 * 4096 && table.absentCount == 6 && table.beginEviction(ofExtent: 1) == nil)
        table.lease(1)
        table.cancelEviction(ofExtent: 1, restoring: extent)
        #expect(table.isComplete && table.isLeased, "who has come meanwhile stays")
        table.endLease(1)
        _ = table.beginEviction(ofExtent: 1)
        table.endEviction(ofExtent: 1, bytes: bytes, isPunched: false)
        #expect(table.allocated == taken, "what the disk did not give back stays counted")
        _ = table.beginEviction(ofExtent: 1)
        table.endEviction(ofExtent: 1, bytes: bytes, isPunched: true)
        #expect(table.allocated == taken - 6 * 4096 && table.extents.ordinals == [0])
    }

    /// Chunk 1 was taken to be saved when 2 came, and 3 was in progress.
    @Test func whatWasWrittenBeforeASyncFailedIsDropped() {
        var table = table(present: 0..<1)
        let writer = table.makeWriter()
        _ = table.takeNews(isSynced: true)
        fill(&table, 1, by: writer)
        let news = table.takeNews(isSynced: true)
        fill(&table, 2, by: writer)
        #expect(table.claimWithBlocks(3, by: writer, bytes: 4096) == true)
        table.restore(news)
        #expect(table.dropUnsaved() == 2)
        table.complete(3, by: writer, checksum: 3, now: 5)
        fill(&table, 4, by: writer)
        #expect(table.takeNews(isSynced: true).map(\.present) == [Presence([0, 4])])
        #expect(!table.isLeased)
    }

    // MARK: What the index is told

    @Test func newsThatCouldNotBeToldIsToldAgain() throws {
        var table = table(present: 0..<3)
        #expect(!table.isSaved && table.hasUnsaved(in: 0..<1) && !table.hasUnsaved(in: 3 * 4096..<Self.length))
        let news = table.takeNews(isSynced: true)
        #expect(news.map(\.present) == [Presence(0..<3)] && news[0].checksums == [0: 0, 1: 1, 2: 2])
        #expect(table.isSaved && table.takeNews(isSynced: true).isEmpty)
        #expect(table.drop(Presence(1..<2), ofExtent: 0) == 1)
        table.restore(news)
        #expect(table.extents[0].unsaved == Presence([0, 2]), "what is absent by now is no news")
        let told = table.takeNews(isSynced: false)
        let touches = try #require(told.first)
        #expect(touches.present.isEmpty && touches.checksums.isEmpty, "nothing is said of chunks that are not durable")
        #expect(table.takeNews(isSynced: true).first?.present == Presence([0, 2]))
    }

    @Test func bufferKeepsNoChecksums() {
        var table = table(present: 0..<3, isStored: false)
        #expect(table.takeNews(isSynced: true).first?.checksums == [:])
    }

    @Test(
        arguments: [
            ([], 0..<9, [0..<9]), ([0..<9], 0..<9, []), ([2..<3, 5..<9], 0..<9, [0..<2, 3..<5]),
            ([0..<4], 0..<9, [4..<9]),
        ] as [([Range<Int64>], Range<Int64>, [Range<Int64>])])
    func gapsBetweenRanges(ranges: [Range<Int64>], bounds: Range<Int64>, gaps: [Range<Int64>]) {
        #expect(ranges.gaps(within: bounds) == gaps)
    }
}
