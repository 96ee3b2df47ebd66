import CachePolicy
import Foundation
import TestSupport
import Testing

@testable import DiskCache

@Suite struct EvictionTests {
    static let extent: Int64 = 64 * 4096
    private let opened: OpenStore
    /// Four extents.
    private let media = Media(seed: 5, size: 4 * EvictionTests.extent)

    init() throws { opened = try OpenStore() }

    private func full(_ name: String, lastRead times: Int64...) throws -> Generation {
        let generation = try opened.make(name, media, filling: 0..<media.size)
        for (ordinal, time) in times.enumerated() { generation.touch(ordinal, at: time) }
        return generation
    }

    /// Which extents still have chunks.
    private func extents(_ generation: Generation) -> [Int] {
        generation.presence.indices.filter { !generation.presence[$0].isEmpty }
    }

    @Test func leastRecentlyReadExtentsGoFirst() throws {
        let a = try full("a", lastRead: 50, 10, 70, 30)
        let b = try full("b", lastRead: 20, 60, 40, 80)
        #expect(opened.evict(1) == Self.extent)
        #expect(extents(a) == [0, 2, 3] && extents(b) == [0, 1, 2, 3])
        #expect(opened.evict(2 * Self.extent) == 2 * Self.extent)
        #expect(extents(a) == [0, 2] && extents(b) == [1, 2, 3])
        #expect(opened.evict(Self.extent + 1) == 2 * Self.extent)
        #expect(extents(a) == [2] && extents(b) == [1, 3])
        #expect(opened.metrics.evictedExtents.value == 5)
        #expect(opened.metrics.evictedBytes.value == UInt64(5 * Self.extent))
    }

    @Test func readingMovesAnExtentToTheEnd() throws {
        let a = try full("a", lastRead: 10, 20, 30, 40)
        do {
            var lease: ExtentLease?
            #expect(a.acquire(at: 0, limit: 1, lease: &lease) == .bytes(until: 1))
        }
        opened.evict(3 * Self.extent)
        #expect(extents(a) == [0])
    }

    @Test func readsInTheFutureOfAClockThatWasSetBackGoInTheirOrder() throws {
        let future = AccessClock.now() + 365 * 86_400_000_000
        do { _ = try full("a", lastRead: future + 40, future + 10, future + 30, future + 20) }
        let again = try opened.reopened()
        let a = try #require(try again.load("a"))
        #expect(again.evict(Self.extent) == Self.extent)
        #expect(extents(a) == [0, 2, 3])
        a.touch(3, at: AccessClock.now())
        #expect(again.evict(2 * Self.extent) == 2 * Self.extent)
        #expect(extents(a) == [3])
    }

    @Test func readsBeforeTheClockIsSetBackGoBeforeThoseAfterIt() throws {
        let clock = SetClock()
        let start = clock.wall.value
        let a = try full("a", lastRead: start + 40, start + 10, start + 30, start + 20)
        func tick(at time: Int64) {
            clock.wall.value = time
            opened.store.queue.sync { work in clock.owningTime { work.tick() } }
        }
        tick(at: start + 100)
        let back = start - 365 * 86_400_000_000
        tick(at: back)
        a.touch(3, at: back + 50)
        let resource = try #require(try opened.store.resource(a.key)).resource
        #expect(resource.lastAccess == (back + 50) / 1_000_000)
        #expect(opened.evict(Self.extent) == Self.extent)
        #expect(extents(a) == [0, 2, 3])
        #expect(opened.evict(2 * Self.extent) == 2 * Self.extent)
        #expect(extents(a) == [3])
    }

    @Test func clockThatIsSetBackMakesNothingLastLonger() throws {
        let clock = SetClock(), a = try full("a", lastRead: 10, 20, 30, 40), book = LogBook()
        let faults = FaultLog(opened.metrics, book.logger)
        func isKnownToBeResident() -> Bool {
            var lease: ExtentLease?
            return ExtentLease.begin(reading: a, at: 0, limit: 4096, &lease).isResident
        }
        clock.owningTime {
            #expect(a.isResident(0..<4096) && isKnownToBeResident())
            faults.note("write", .closing)
            clock.wall.value -= 365 * 86_400_000_000
            clock.monotonic.value += 61_000_000
            #expect(!isKnownToBeResident())
            faults.note("write", .closing)
        }
        #expect(book.lines(.error).count == 2)
    }

    /// What was refused fits by now, although nothing more can go.
    @Test func roomThatWasMadeMeanwhileIsRoom() throws {
        let opened = try OpenStore(maxSize: 20_000_000), ledger = opened.store.ledger
        // Less is left than is kept free for the next writes.
        #expect(ledger.reserve(20_000_000 * 7 / 8 - ledger.size - 1_000_000) && ledger.reserve(900_000))
        #expect(!ledger.reserveToWrite(300_000))
        ledger.release(900_000)
        #expect(try opened.makeRoom())
        #expect(!ledger.reserveToWrite(2_000_000))
        #expect(try !opened.makeRoom())
    }

    /// They come after what was read before them, however far they were in the future.
    @Test func readsInTheFutureComeAfterThoseBeforeIt() throws {
        let now = AccessClock.now(), minute: Int64 = 60_000_000
        do { _ = try full("a", lastRead: now + 60 * minute, now - 30 * minute, now + 10 * minute, now - 40 * minute) }
        let again = try opened.reopened()
        let a = try #require(try again.load("a"))
        for left in [[0, 1, 2], [0, 2], [0]] {
            #expect(again.evict(Self.extent) == Self.extent)
            #expect(extents(a) == left)
        }
    }

    @Test func orderOfReadsOutlivesTheSession() throws {
        do {
            _ = try full("a", lastRead: 50, 10, 70, 30)
            _ = try full("b", lastRead: 20, 60, 40, 80)
        }
        var again = try opened.reopened()
        do {
            // Read in the second session, of a generation that has nothing new to save.
            let a = try #require(try again.load("a"))
            a.touch(1, at: 75)
            // Kept from the first session by a generation that is not open.
            #expect(again.evict(2 * Self.extent) == 2 * Self.extent)
            #expect(extents(a) == [0, 1, 2])
        }
        again = try again.reopened()
        #expect(again.evict(3 * Self.extent) == 3 * Self.extent)
        let a = try #require(try again.load("a")), b = try #require(try again.load("b"))
        #expect(extents(a) == [1, 2] && extents(b) == [3])
        #expect(try a.firstWrongChunk(media) == nil)
        #expect(try b.firstWrongChunk(media) == nil)
    }

    @Test func leasedExtentsStay() throws {
        let a = try full("a", lastRead: 10, 20, 30, 40)
        do {
            var lease: ExtentLease?
            _ = a.acquire(at: 0, limit: 1, lease: &lease)
            a.touch(0, at: 10)
            let writing = a.leaseForWriting(1)
            #expect(opened.evict(.max) == 2 * Self.extent)
            #expect(extents(a) == [0, 1])
            #expect(writing.ordinal == 1)
        }
        opened.evict(.max)
        #expect(extents(a) == [])
    }

    /// The rest of its answer would be cut: no other answer can be matched to what it has.
    @Test(arguments: ["W/\"v1\"", "\"v1\""]) func whatAPlayerReadsAndCannotBeRequestedAgainStays(etag: String) throws {
        let a = try opened.store.makeGeneration(
            OpenStore.key("a"), head: OpenStore.head(etag: etag), length: media.size)
        try opened.fill(a, media, 0..<media.size)
        a.beginReading()
        let isRepeatable = etag == "\"v1\""
        #expect(opened.evict(.max) == (isRepeatable ? media.size : 0))
        #expect(extents(a) == (isRepeatable ? [] : [0, 1, 2, 3]))
        a.endReading()
        opened.evict(.max)
        #expect(extents(a) == [])
    }

    /// A reader that goes on to the next extent holds that one, and no longer the first.
    @Test func leaseMovesWithItsReader() throws {
        let a = try full("a", lastRead: 10, 20, 30, 40)
        var lease: ExtentLease?
        for ordinal in 0..<4 {
            _ = a.acquire(at: Int64(ordinal) * Self.extent + 5, limit: .max, lease: &lease)
            #expect((0..<4).map(a.leases) == (0..<4).map { $0 == ordinal ? 1 : 0 })
        }
        // Where nothing is, the reader keeps what it has.
        opened.evict(.max)
        #expect(a.acquire(at: 0, limit: .max, lease: &lease) == .absent)
        #expect(lease?.ordinal == 3)
        #expect(extents(a) == [3])
    }

    @Test func makeRoomIsFalseWhenAllIsLeased() throws {
        let opened = try OpenStore(maxSize: 16_000_000, geometry: .standard)
        let media = Media(seed: 6, size: 30 << 20)
        let generation = try opened.make("a", length: media.size)
        var leases: [Held] = []
        let writer = ChunkWriter(generation, at: 0, stopsAtPresent: false, in: opened.store)
        filling: while true {
            leases.append(Held(generation.leaseForWriting(generation.geometry.extent(at: writer.position))))
            if case .noRoom = writer.append(media, 1 << 20) { break filling }
        }
        #expect(try !opened.makeRoom())
        #expect(opened.metrics.evictedExtents.value == 0)
        leases = []
        #expect(try opened.makeRoom())
        #expect(opened.metrics.evictedExtents.value > 0)
        guard case .taken = writer.append(media, 1 << 20) else {
            return #expect(Bool(false), "there is no room after makeRoom")
        }
    }

    /// After a power cut others make way for what may be found on the disk. With a new index, nothing helps.
    @Test func roomIsMadeWhileFilesAreExamined() throws {
        let opened = try OpenStore(maxSize: 16_000_000)
        let media = Media(seed: 6, size: 60 << 20)
        let generation = try opened.make("a", length: media.size)
        let writer = ChunkWriter(generation, at: 0, stopsAtPresent: false, in: opened.store)
        func appends() throws -> Bool {
            while case .noRoom = writer.append(media, 1 << 20) { guard try opened.makeRoom() else { return false } }
            return true
        }
        while case .taken = writer.append(media, 1 << 20) {}
        _ = opened.store.enforceLimits()
        opened.store.ledger.setUncounted(4_000_000)
        // Nobody needs it yet.
        #expect(opened.store.enforceLimits() == 0)
        #expect(try appends())
        #expect(opened.metrics.evictedExtents.value > 0)
        opened.store.ledger.setUncounted(.max / 4)
        #expect(try !appends())
        opened.store.ledger.setUncounted(0)
        #expect(try appends())
    }

    @Test func makeRoomWithEnoughRoomEvictsNothing() throws {
        _ = try full("a", lastRead: 10)
        #expect(try opened.makeRoom())
        #expect(opened.metrics.evictedExtents.value == 0)
    }

    @Test func evictedBlocksAreReallyGivenBack() throws {
        let a = try full("a", lastRead: 10, 20, 30, 40)
        opened.checkpoint()
        let before = allocatedBytes(opened.path(a))
        opened.evict(2 * Self.extent)
        #expect(before - allocatedBytes(opened.path(a)) == 2 * Self.extent)
        #expect(try a.fileBytes(0..<2 * Self.extent).allSatisfy { $0 == 0 })
        #expect(try a.firstWrongChunk(media) == nil)
    }

    @Test func evictedBlocksOfAClosedGenerationAreReallyGivenBack() throws {
        do { _ = try full("a", lastRead: 10, 20, 30, 40) }
        opened.checkpoint()
        opened.closeUnused()
        #expect(opened.store.openCount == 0)
        let path = try #require(opened.dataFiles.first)
        let before = allocatedBytes(path)
        opened.evict(2 * Self.extent)
        #expect(before - allocatedBytes(path) == 2 * Self.extent)
        #expect(try opened.load("a").map(extents) == [2, 3])
    }

    @Test func generationWithoutExtentsLeavesNoFileAndNoRow() throws {
        do { _ = try full("a", lastRead: 10, 20, 30, 40) }
        _ = try opened.make("b", media, filling: 0..<4096)
        opened.checkpoint()
        opened.evict(.max)
        #expect(opened.dataFiles.isEmpty)
        #expect(try opened.row("a") == nil && opened.row("b") == nil)
        #expect(opened.store.ledger.dataSize == 0)
    }

    @Test func openGenerationThatIsAboutToBeFilledOutlivesItsLastExtent() throws {
        do {
            let a = try opened.make("a", media, filling: 0..<Self.extent)
            let lease = a.leaseForWriting(1)
            #expect(opened.evict(.max) == Self.extent)
            #expect(extents(a) == [])
            #expect(opened.store.ledger.dataSize == CapacityLedger.fileOverhead)
            try opened.fill(a, media, Self.extent..<2 * Self.extent)
            #expect(lease.ordinal == 1)
        }
        let again = try opened.reopened()
        let a = try #require(try again.load("a"))
        #expect(extents(a) == [1])
        #expect(try a.firstWrongChunk(media) == nil)
    }

    /// Somebody has it open, the last extents go, nobody fills it again: nothing remains of it, whoever asks for it
    /// meanwhile.
    @Test func openGenerationWithoutExtentsLeavesNoFileAndNoRow() throws {
        do {
            let a = try full("a", lastRead: 10, 20, 30, 40)
            opened.evict(.max)
            a.countHit()
            opened.checkpoint()
            #expect(extents(a) == [])
        }
        opened.catchUp()
        opened.closeUnused()
        #expect(opened.dataFiles.isEmpty)
        #expect(opened.store.ledger.dataSize == 0)
        let again = try opened.reopened()
        #expect(try again.load("a") == nil)
        #expect(try again.row("a") == nil)
        #expect(again.metrics.errors.values.isEmpty)
    }

    /// What cannot be forgotten by the index must not be punched: the next session would take the hole for media.
    @Test func leaseThatWasTakenWhileAnEvictionFailedCounts() throws {
        let opened = try OpenStore()
        let media = Media(seed: 9, size: 10 * 4096)
        let generation = try opened.make("a", media, filling: 0..<media.size)
        opened.checkpoint()
        let (extent, _) = try #require(generation.beginEviction(ofExtent: 0))
        let lease = ExtentLease.Held(generation.leaseForWriting(0))
        generation.withChunks { $0.cancelEviction(ofExtent: 0, restoring: extent) }
        #expect(generation.leases(0) == 1)
        #expect(generation.beginEviction(ofExtent: 0) == nil)
        withExtendedLifetime(lease) {}
    }

    /// Of several files one cannot be opened.
    @Test func whatIsFreedBesideAFailureCounts() throws {
        do {
            let a = try full("a", lastRead: 10, 50, 60, 70), path = opened.path(a)
            _ = try full("b", lastRead: 20, 30, 40, 80)
            opened.checkpoint()
            #expect(unlink(path) == 0 && mkdir(path, 0o700) == 0)
        }
        opened.closeUnused()
        #expect(opened.store.openCount == 0)
        #expect(opened.evict(2 * Self.extent) == Self.extent)
        #expect(opened.metrics.errors.values["store"] == 1)
    }

    @Test func evictionEndsWhereTheIndexFails() throws {
        let opened = try OpenStore()
        let media = Media(seed: 9, size: 64 * 4096 * 80)
        do { _ = try opened.make("a", media, filling: 0..<media.size) }
        opened.checkpoint()
        opened.closeUnused()
        let blocker = IndexBlocker(opened.directory.file("index.sqlite"))
        #expect(opened.evict(.max) == 0)
        // Of three batches the first.
        #expect(opened.metrics.errors.values["store"] ?? 0 <= 2)
        blocker.release()
        #expect(try opened.load("a")?.isComplete == true)
    }

    @Test func extentsThatTheIndexCannotForgetAreNotPunched() throws {
        do { _ = try full("a", lastRead: 10, 20, 30, 40) }
        opened.checkpoint()
        let blocker = IndexBlocker(opened.directory.file("index.sqlite"))
        let freed = opened.evict(Self.extent)
        blocker.release()
        let again = try opened.reopened()
        let a = try #require(try again.load("a"))
        let wrong = try a.firstWrongChunk(media)
        // Once: rows stay, blocks go, and zeros are served.
        #expect(freed == 0)
        #expect(wrong == nil)
    }

    /// Whoever has deleted the files has made the room.
    @Test func evictingWhatWasDeletedUnderneathGivesItsBytesBack() throws {
        do { _ = try full("a", lastRead: 10, 20, 30, 40) }
        opened.checkpoint()
        for path in opened.dataFiles { unlink(path) }
        opened.evict(.max)
        #expect(try opened.row("a") == nil)
        // Once: the ledger counts deleted files for ever.
        #expect(opened.store.ledger.dataSize == 0)
    }

    @Test func evictionWithNothingToEvictFreesNothing() throws {
        #expect(opened.evict(1) == 0)
        #expect(opened.evict(.max) == 0)
    }

    /// More extents than are looked at in one go, and all that come first are leased.
    @Test func evictionLooksBehindManyLeasedExtents() throws {
        let media = Media(seed: 8, size: 100 * Self.extent)
        let a = try opened.make("a", length: media.size)
        var leases: [Held] = []
        for ordinal in 0..<100 {
            let start = Int64(ordinal) * Self.extent
            try opened.fill(a, media, start..<start + 4096)
            a.touch(ordinal, at: Int64(ordinal))
            if ordinal < 90 { leases.append(Held(a.leaseForWriting(ordinal))) }
        }
        #expect(opened.evict(5 * 4096) == 5 * 4096)
        #expect(extents(a) == Array(0..<90) + Array(95..<100))
        leases = []
    }
}

/// A lease in a place that can be put into an array.
private final class Held {
    private let lease: ExtentLease
    init(_ lease: consuming ExtentLease) { self.lease = lease }
}

/// Clocks that stand until a test sets them.
private final class SetClock: StoreDriver {
    final class Time: Sendable {
        private let time: Mutex<Int64>
        init(_ time: Int64) { self.time = Mutex(time) }
        var value: Int64 {
            get { time.withLock { $0 } }
            set { time.withLock { $0 = newValue } }
        }
    }

    let wall = Time(1_800_000_000_000_000), monotonic = Time(1_000_000)

    func microseconds() -> Int64 { wall.value }
    func monotonicMicroseconds() -> Int64 { monotonic.value }

    // Only the time is its own.
    func run(_ work: @escaping @Sendable () -> Void, on thread: StoreThread) { work() }
    func finish(_ thread: StoreThread) {}
    func everySecond(_ work: @escaping @Sendable () -> Void) {}
    func random() -> UInt64 { 0 }
}
