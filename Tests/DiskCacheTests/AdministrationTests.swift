import CachePolicy
import Foundation
import GRDB
import HTTPModel
import TestSupport
import Testing

@testable import DiskCache

/// What people see and steer.
@Suite struct AdministrationTests {
    private let opened: OpenStore
    private let media = Media(seed: 51, size: 200 * 4096 + 50)

    init() throws { opened = try OpenStore() }

    private var store: CacheStore { opened.store }
    private var whole: Range<Int64> { 0..<media.size }
    private func key(_ name: String) -> CacheKey { OpenStore.key(name) }

    // MARK: Downloading

    /// It is stopped and put back while its end is being noted.
    @Test(arguments: [true, false]) func cancelledDownloadIsNotPinned(isWhole: Bool) throws {
        let generation = try opened.make("a", media, filling: whole), isWanted = Monitor(true)
        let answer = { @Sendable [store, key = key("a")] in
            defer {
                store.queue.async { work in
                    isWanted.update { $0 = false }
                    _ = try? work.setPinned(false, key)
                }
            }
            return isWanted.read { $0 }
        }
        if isWhole {
            try store.commit(whole: key("a"), isPinned: true, isWanted: answer)
        } else {
            try store.commit(whole, of: generation, isPinned: true, isWanted: answer)
        }
        #expect(try !store.core.index.pins.kept(key("a")).isPinned)
    }

    // MARK: Listing

    private func listed(_ change: (inout ResourceQuery) -> Void = { _ in }) throws -> [String] {
        var query = ResourceQuery()
        change(&query)
        return try store.resources(query).resources.map { $0.urlText.replacing("https://example.com/", with: "") }
    }

    @Test func listsInEveryOrder() throws {
        for (name, chunks) in [("b", 30), ("a", 10), ("c", 20)] {
            _ = try opened.make(name, media, filling: 0..<Int64(chunks) * 4096)
        }
        for (name, time, hits) in [("a", 3, 2), ("b", 1, 9), ("c", 2, 5)] {
            let generation = try #require(try opened.load(name))
            generation.touch(0, at: 4_000_000_000_000_000 + Int64(time) * 1_000_000)
            for _ in 0..<hits { generation.countHit() }
        }
        #expect(try listed { $0.order = .size } == ["b", "c", "a"])
        #expect(try listed { $0.order = .recent } == ["a", "c", "b"])
        #expect(try listed { $0.order = .hits } == ["b", "c", "a"])
        #expect(try listed { $0.order = .name } == ["a", "b", "c"])
        #expect(try listed { ($0.order, $0.limit, $0.offset) = (.name, 1, 1) } == ["b"])
        let page = try store.resources(
            {
                var query = ResourceQuery(); query.limit = 2; return query
            }())
        #expect(page.total == 3 && page.resources.count == 2)
    }

    /// Evicted or removed between two pages, what was listed moves the rest up.
    @Test func allAreListedThoughTheFirstGoMeanwhile() throws {
        let names = (0..<12).map { "film\($0 + 10)" }
        for name in names { _ = try opened.make(name, media, filling: 0..<4096) }
        var query = ResourceQuery()
        query.order = .name
        let listing = try ResourceListing.all(query, pageSize: 3) { query in
            let page = try store.resources(query)
            for resource in page.resources { _ = try store.remove(CacheKey(text: resource.urlText), isDryRun: false) }
            return page
        }
        #expect(listing.resources.map(\.urlText) == names.map { key($0).text })
    }

    @Test(arguments: CachedResource.Order.allCases) func pagesAreAll(order: CachedResource.Order) throws {
        for name in 0..<10 { _ = try opened.make("film\(name)", media, filling: 0..<Int64(name + 1) * 4096) }
        var query = ResourceQuery()
        (query.order, query.filter) = (order, "FILM")
        let whole = try ResourceListing.all(query, page: store.resources)
        #expect(whole.resources.count == 10)
        for pageSize in 1...11 {
            #expect(try ResourceListing.all(query, pageSize: pageSize, page: store.resources) == whole)
            #expect(
                try ResourceListing.all(query, limit: 7, pageSize: pageSize, page: store.resources).resources
                    == Array(whole.resources.prefix(7)))
        }
    }

    @Test func pagesOfMaskedNamesAreInTheirOrder() throws {
        for name in ["b", "c", "a"] { _ = try opened.make("\(name)?token=\(name)", media, filling: 0..<4096) }
        var query = ResourceQuery()
        (query.order, query.mask, query.after) = (.name, .standard, key("a?token=zzz").text)
        #expect(try store.resources(query).resources.map(\.urlText) == ["b?token=b", "c?token=c"].map { key($0).text })
    }

    @Test func filterIsAPartOfTheURLAndNoPattern() throws {
        for name in ["One%20two_x", "one-TWO.x", "other"] { _ = try opened.make(name, media, filling: 0..<4096) }
        #expect(
            try listed {
                $0.filter = "two"; $0.order = .name
            } == ["One%20two_x", "one-TWO.x"])
        #expect(try listed { $0.filter = "one two" } == ["One%20two_x"])
        #expect(try listed { $0.filter = "%" } == ["One%20two_x"])
        #expect(try listed { $0.filter = String(repeating: "_", count: 25_001) } == [])
        #expect(
            !FileManager.default.fileExists(atPath: IndexDatabase.damageMark(opened.directory.file("index.sqlite"))))
        #expect(try listed { $0.filter = "o_x" } == ["One%20two_x"])
        #expect(try listed { $0.filter = "\\" } == [])
    }

    @Test func categoryIsOneWordAmongOthers() throws {
        for (name, category) in [("alpha", "news"), ("beta", "new"), ("gamma", "news"), ("delta", nil)] {
            _ = try opened.make(name, media, filling: 0..<4096)
            opened.checkpoint()
            try store.restorePoints.noteOrder(title: nil, category: category, isByHand: false, of: key(name))
        }
        var query = ResourceQuery()
        (query.order, query.category, query.limit) = (.name, "news", 1)
        var page = try store.resources(query)
        #expect(page.total == 2 && page.resources.map(\.urlText) == [key("alpha").text])
        (query.after, query.filter) = (page.resources.last?.urlText, "GAMMA")
        page = try store.resources(query)
        #expect(page.total == 1 && page.resources.map(\.urlText) == [key("gamma").text])
        query.category = "none"
        #expect(try store.resources(query) == ResourceListing(resources: [], total: 0))
    }

    @Test func reportTellsWhatIsCached() throws {
        _ = try opened.make("a", media, filling: 0..<64 * 4096, 128 * 4096..<media.size)
        let report = try #require(try store.resource(key("a")))
        #expect(
            report.resource.length == media.size && report.resource.cachedBytes == media.size - 64 * 4096
                && !report.resource.isComplete)
        #expect(report.present == [ByteSpan(0..<64 * 4096), ByteSpan(128 * 4096..<media.size)])
        #expect(report.missing == [ByteSpan(64 * 4096..<128 * 4096)])
        #expect(report.etag == "\"v1\"" && report.resource.contentType == "video/mp4" && report.chunkSize == 4096)
        #expect(try store.resource(key("b")) == nil)
        let all = try store.report()
        #expect(all.resources == 1 && all.pinned == 0 && all.size >= opened.dataBytes && all.maxSize == 1 << 30)
    }

    @Test func coverageKnowsWhatTheIndexDoesNotYet() throws {
        let generation = try opened.make("a", media, filling: 0..<64 * 4096, 128 * 4096..<media.size)
        #expect(try opened.row("a") == nil)
        let part = CacheCoverage(
            length: media.size, ranges: [0..<64 * 4096, 128 * 4096..<media.size], isPinned: false)
        let found = try #require(try store.coverage(key("a")))
        #expect(found == part && found.chunkSize == 4096 && found.type == "video/mp4")
        #expect(try !store.isComplete(key("a")))
        try opened.fill(generation, media, 64 * 4096..<128 * 4096)
        #expect(try store.isComplete(key("a")))
        #expect(try store.coverage(key("a"))?.ranges == [whole])
        // Nothing is there that could be called cached.
        _ = try opened.make("b", length: nil)
        _ = try opened.make("c", length: media.size)
        #expect(
            try store.coverage(key("b")) == nil && store.coverage(key("c")) == nil && store.coverage(key("d")) == nil)
        #expect(try !store.isComplete(key("b")) && !store.isComplete(key("c")) && !store.isComplete(key("d")))
    }

    @Test func coverageOfWhatIsClosedIsThatOfTheIndex() throws {
        do { _ = try opened.make("a", media, filling: 0..<64 * 4096, 64 * 4096..<128 * 4096) }
        opened.checkpoint()
        opened.closeUnused()
        #expect(store.openCount == 0)
        #expect(try store.setPinned(true, key("a")))
        let found = try #require(try store.coverage(key("a")))
        #expect(found == CacheCoverage(length: media.size, ranges: [0..<128 * 4096], isPinned: true))
        #expect(found.chunkSize == 4096 && found.type == "video/mp4")
        #expect(try !store.isComplete(key("a")))
    }

    @Test func whatIsTouchedIsEvictedLast() throws {
        for name in ["a", "b"] {
            try opened.make(name, media, filling: 0..<64 * 4096).touch(0, at: 1_000_000_000_000_000)
        }
        opened.checkpoint()
        opened.closeUnused()
        #expect(try store.touch(key("a")))
        #expect(try !store.touch(key("c")))
        opened.evict(64 * 4096)
        #expect(try store.coverage(key("a")) != nil && store.coverage(key("b")) == nil)
    }

    @Test func cachedBytesFollowEvictionDamageAndReplacement() throws {
        func cached() throws -> Int64? { try store.resource(key("a"))?.resource.cachedBytes }
        do { _ = try opened.make("a", media, filling: whole) }
        #expect(try cached() == media.size)
        opened.closeUnused()
        opened.evict(1)
        let left = try #require(try cached())
        #expect(left == media.size - 64 * 4096)
        _ = try opened.make("a", media, filling: 0..<2 * 4096)
        #expect(try cached() == 2 * 4096)
        #expect(try store.core.index.database.meta(.dataBytes) == 2 * 4096 + CapacityLedger.fileOverhead)
    }

    // MARK: Pins

    @Test func pinnedExtentsAreNotEvictedAndUnpinnedOnesAre() throws {
        do { for name in ["a", "b"] { _ = try opened.make(name, media, filling: whole) } }
        #expect(try store.setPinned(true, key("a")))
        opened.evict(.max)
        #expect(try opened.load("a")?.isComplete == true)
        #expect(try opened.load("b") == nil)
        // What comes later is pinned, too.
        #expect(try store.setPinned(false, key("a")))
        opened.evict(.max)
        #expect(try opened.load("a") == nil)
        #expect(try !store.setPinned(true, key("nothing")))
    }

    @Test func whatIsFetchedOfAPinnedResourceStays() throws {
        let generation = try opened.make("a", media, filling: 0..<4096)
        #expect(try store.setPinned(true, key("a")))
        try opened.fill(generation, media, 64 * 4096..<65 * 4096)
        opened.evict(.max)
        #expect(generation.presentChunks == [0, 64])
    }

    @Test func pinOutlivesTheGeneration() throws {
        do { _ = try opened.make("a", media, filling: 0..<4096) }
        #expect(try store.setPinned(true, key("a")))
        store.retire(try #require(try opened.load("a")))
        do { _ = try opened.make("a", media, filling: 0..<4096) }
        opened.checkpoint()
        opened.evict(.max)
        #expect(try opened.load("a")?.presentChunks == [0])
    }

    /// However many pinned extents there are, the evictor does not look at them.
    @Test func pinnedExtentsAreNotEvenLookedAt() throws {
        let generation = try opened.make("a", media, filling: whole)
        #expect(try store.setPinned(true, key("a")))
        opened.checkpoint()
        #expect(try store.core.index.evictionOrder.leastRecent(after: EvictionOrder.Place(), limit: 1).next == nil)
        _ = consume generation
    }

    // MARK: Removing

    @Test func removesOneAndTellsWhatThatFrees() throws {
        do { for name in ["a", "b"] { _ = try opened.make(name, media, filling: whole) } }
        opened.closeUnused()
        let before = store.ledger.dataSize
        let dry = try #require(try store.remove(key("a"), isDryRun: true))
        #expect(dry.isDryRun && dry.resources == 1 && store.ledger.dataSize == before)
        #expect(try opened.load("a") != nil)
        let done = try #require(try store.remove(key("a"), isDryRun: false))
        #expect(done.bytes == dry.bytes && before - store.ledger.dataSize == done.bytes)
        #expect(try opened.load("a") == nil && opened.dataFiles.count == 1)
        #expect(try store.remove(key("a"), isDryRun: false) == nil)
    }

    @Test func removesAPinnedOneThatIsNamed() throws {
        do { _ = try opened.make("a", media, filling: whole) }
        #expect(try store.setPinned(true, key("a")))
        #expect(try store.remove(key("a"), isDryRun: false)?.resources == 1)
        #expect(try store.report().pinned == 0)
        do { _ = try opened.make("a", media, filling: whole) }
        opened.evict(.max)
        #expect(try opened.load("a") == nil, "the pin went with it")
    }

    @Test func removedWhileItIsReadItIsReadToTheEnd() throws {
        let generation = try opened.make("a", media, filling: whole)
        var lease: ExtentLease?
        #expect(generation.acquire(at: 0, limit: .max, lease: &lease) == .bytes(until: 64 * 4096))
        #expect(try store.remove(key("a"), isDryRun: false)?.resources == 1)
        #expect(try opened.load("a") == nil)
        #expect(try generation.firstWrongChunk(media) == nil && generation.isComplete)
        #expect(store.ledger.dataSize > 0)
    }

    @Test func removesAllButThePinnedAndTheRecent() throws {
        for (number, name) in ["old", "pinned", "new"].enumerated() {
            let generation = try opened.make(name, media, filling: 0..<4096)
            generation.touch(0, at: Int64(number == 2 ? 9000 : 1000) * 1_000_000)
        }
        opened.checkpoint()
        #expect(try store.setPinned(true, key("pinned")))
        // The last read of a resource is never set back.
        try store.core.index.database.write {
            try $0.execute(sql: "UPDATE resource SET last_access = 1000000000 WHERE key NOT LIKE '%new'")
        }
        let dry = try store.removeAll(.init(before: 5000), isDryRun: true)
        #expect(dry.resources == 1 && dry.pinned == 1 && opened.dataFiles.count == 3)
        let done = try store.removeAll(.init(before: 5000), isDryRun: false)
        #expect(done.resources == 1 && done.pinned == 1 && done.bytes == dry.bytes)
        #expect(try listed { $0.order = .name } == ["new", "pinned"])
        #expect(try store.removeAll(RemovalSelection(), isDryRun: false).resources == 1)
        #expect(try listed() == ["pinned"])
    }

    // MARK: Limits

    @Test func smallerLimitTakesEffectAtOnce() throws {
        let opened = try OpenStore(maxSize: 200_000_000, geometry: ChunkGeometry(chunkSize: 64 << 10)!)
        let large = Media(seed: 1, size: 40_000_000)
        do { _ = try opened.make("a", large, filling: 0..<large.size) }
        try opened.store.setLimits(maxSize: 20_000_000, minFree: nil)
        #expect(opened.store.ledger.limit == 20_000_000)
        #expect(opened.store.ledger.size <= 20_000_000 && opened.dataBytes <= 20_000_000)
        try opened.store.setLimits(maxSize: 60_000_000, minFree: 5)
        #expect(opened.store.ledger.limit == 60_000_000 && opened.store.ledger.minFree == 5)
        #expect(throws: StoreError.self) { try opened.store.setLimits(maxSize: 1, minFree: nil) }
        #expect(throws: StoreError.self) { try opened.store.setLimits(maxSize: nil, minFree: -1) }
        #expect(opened.store.ledger.limit == 60_000_000)
    }

    /// What the index no longer needs is given back, as it counts against the limit.
    @Test func indexShrinksWhenWhatItToldOfIsGone() throws {
        do {
            for number in 0..<1500 { _ = try opened.make("\(number)", Media(seed: 1, size: 5000), filling: 0..<5000) }
        }
        opened.checkpoint()
        let database = opened.store.core.index.database
        let pages = { try database.read { try Int.fetchOne($0, sql: "PRAGMA page_count") ?? 0 } }
        let before = try pages()
        opened.evict(.max)
        #expect(before > 120)
        for _ in 1...20 { store.queue.sync { $0.tick() } }
        #expect(try pages() < before / 3)
    }

    // MARK: Export and import

    @Test func holdKeepsACompleteFileFromBeingEvicted() throws {
        do { _ = try opened.make("a", media, filling: whole) }
        do {
            guard case .complete(let hold)? = try store.hold(key("a")) else { throw Unexpected("it is not complete") }
            opened.evict(.max)
            let bytes = try Data(contentsOf: URL(fileURLWithPath: opened.directory.file(hold.path)))
            #expect(media.difference(Array(bytes), from: whole) == nil)
        }
        opened.evict(.max)
        #expect(opened.dataFiles.isEmpty)
        #expect(try store.hold(key("a")) == nil)
    }

    @Test func holdOfAnIncompleteFileTellsWhatIsMissing() throws {
        do { _ = try opened.make("a", media, filling: 0..<4096, 8192..<media.size) }
        guard case .incomplete(let missing)? = try store.hold(key("a")) else { throw Unexpected("it is complete") }
        #expect(missing == [ByteSpan(4096..<8192)])
    }

    @Test func holdVerifiesWhatWasNotVerified() throws {
        let generation = try opened.make("a", media, filling: whole)
        opened.checkpoint()
        let again = try opened.killed()
        let path = again.path(generation)
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
        try file.seek(toOffset: 5 * 4096)
        try file.write(contentsOf: [1, 2, 3])
        try file.close()
        guard case .incomplete(let missing)? = try again.store.hold(key("a")) else {
            throw Unexpected("it is complete")
        }
        #expect(missing == [ByteSpan(5 * 4096..<6 * 4096)])
    }

    private func takeIn(_ name: String, _ media: Media, replaces: Bool = false) throws -> CachedResource {
        let importer = try Importer(
            key(name), length: media.size, fields: HeaderFields([.init(name: "Content-Type", value: "audio/mpeg")]),
            replaces: replaces, in: store)
        for start in stride(from: Int64(0), to: media.size, by: 10_000) {
            try media.bytes(start..<min(start + 10_000, media.size)).withUnsafeBytes { bytes in
                try importer.write(bytes)
            }
            #expect(
                try opened.load(name)?.head.fields["Content-Type"] != "audio/mpeg",
                "nobody finds it before it is finished")
        }
        return try importer.finish()
    }

    @Test func importedResourceIsThereWhenItIsFinishedAndLater() throws {
        let report = try takeIn("a", media)
        #expect(report.isComplete && report.contentType == "audio/mpeg" && report.length == media.size)
        #expect(try opened.load("a")?.firstWrongChunk(media) == nil)
        let again = try opened.reopened()
        #expect(try again.load("a")?.isComplete == true)
        #expect(again.dataFiles.count == 1)
    }

    @Test func importReplacesOnlyWhereItIsAskedTo() throws {
        let other = Media(seed: 52, size: 90_000)
        do { _ = try opened.make("a", media, filling: whole) }
        #expect(throws: ImportError.self) { try takeIn("a", other) }
        let previous = try #require(try opened.load("a"))
        #expect(previous.length == media.size)
        previous.countHit()
        opened.checkpoint()
        // News of the old one must not bring it back, nor take with it what is known of its resource.
        previous.touch(0, at: 77)
        _ = try takeIn("a", other, replaces: true)
        #expect(try store.resources(ResourceQuery()).resources.map(\.hits) == [1])
        #expect(try opened.load("a")?.firstWrongChunk(other) == nil)
        opened.closeUnused()
        #expect(opened.dataFiles.count == 1)
    }

    /// More extents than one transaction usually saves: a later one could fail.
    @Test func longImportThatCannotBeSavedLeavesWhatItWasToReplace() throws {
        do { _ = try opened.make("a", media, filling: whole) }
        opened.checkpoint()
        let extent = [UInt8](repeating: 1, count: 64 * 4096)
        let importer = try Importer(
            key("a"), length: Int64(513 * extent.count), fields: HeaderFields(), replaces: true, in: store)
        for _ in 0..<513 { try extent.withUnsafeBytes { bytes in try importer.write(bytes) } }
        try store.core.index.database.write {
            try $0.execute(
                sql: """
                    CREATE TRIGGER late BEFORE INSERT ON extent WHEN new.ordinal = 512
                    BEGIN SELECT raise(ABORT, 'the disk is full'); END
                    """)
        }
        #expect(throws: ImportError.self) { try importer.finish() }
        opened.catchUp()
        for session in [opened, try opened.killed()] {
            let former = try #require(try session.load("a"))
            #expect(former.isComplete)
            #expect(try former.firstWrongChunk(media) == nil)
        }
    }

    @Test func importThatIsNotFinishedLeavesNothing() throws {
        do {
            let importer = try Importer(
                key("a"), length: media.size, fields: HeaderFields(), replaces: false, in: store)
            try media.bytes(0..<9000).withUnsafeBytes { bytes in try importer.write(bytes) }
            opened.checkpoint()
            #expect(throws: ImportError.self) { try importer.finish() }
        }
        opened.catchUp()
        opened.closeUnused()
        #expect(opened.dataFiles.isEmpty && store.ledger.dataSize == 0)
        #expect(try listed() == [])
    }

    @Test func importLongerThanAnnouncedIsRefused() throws {
        let importer = try Importer(key("a"), length: 10, fields: HeaderFields(), replaces: false, in: store)
        #expect(throws: ImportError.self) {
            try [UInt8](repeating: 1, count: 11).withUnsafeBytes { bytes in try importer.write(bytes) }
        }
    }

    @Test func importEvictsForItsRoomAndFailsWhereThereIsNone() throws {
        let opened = try OpenStore(maxSize: 20_000_000)
        // With the room that is kept free for the next writes, a tick evicts nothing of it.
        let large = Media(seed: 1, size: 14_000_000)
        do { _ = try opened.make("old", large, filling: 0..<large.size) }
        func takeIn(_ name: String) throws {
            let importer = try Importer(
                key(name), length: large.size, fields: HeaderFields(), replaces: false, in: opened.store)
            for start in stride(from: Int64(0), to: large.size, by: 1_000_000) {
                try large.bytes(start..<start + 1_000_000).withUnsafeBytes { bytes in try importer.write(bytes) }
            }
            _ = try importer.finish()
        }
        try takeIn("new")
        #expect(try opened.store.setPinned(true, key("new")))
        let state = "\(opened.metrics.evictedExtents.value) extents evicted, short of \(opened.store.ledger.shortage)"
        #expect(throws: ImportError.self) { try takeIn("newer") }
        #expect(try opened.load("new")?.isComplete == true, "\(state); errors \(opened.metrics.errors.values)")
        #expect(try opened.load("newer") == nil)
    }

    /// Somebody has begun to play it meanwhile.
    @Test func importDoesNotReplaceWhatCameMeanwhile() throws {
        let importer = try Importer(key("a"), length: 5, fields: HeaderFields(), replaces: false, in: store)
        try [UInt8](repeating: 1, count: 5).withUnsafeBytes { bytes in try importer.write(bytes) }
        let played = try opened.make("a", media, filling: 0..<4096)
        #expect(throws: ImportError.self) { try importer.finish() }
        #expect(!played.isRetired)
        #expect(try opened.load("a") === played)
    }

    @Test func importEndsWhereSomebodyElseFillsItsFile() throws {
        let importer = try Importer(key("a"), length: 5, fields: HeaderFields(), replaces: false, in: store)
        let other = ChunkWriter(
            try #require(opened.store.core.open.all.first), at: 0, stopsAtPresent: false, in: store)
        #expect(Taken([1 as UInt8].withUnsafeBytes(other.append)) == .taken(1))
        #expect(throws: ImportError.self) {
            try [UInt8](repeating: 1, count: 5).withUnsafeBytes { bytes in try importer.write(bytes) }
        }
    }

    @Test func importThatCannotFitBesideThePinnedEvictsNothing() throws {
        let opened = try OpenStore(maxSize: 20_000_000)
        for (name, size) in [("pinned", 8_000_000), ("other", 4_000_000)] as [(String, Int64)] {
            let media = Media(seed: 1, size: size)
            _ = try opened.make(name, media, filling: 0..<size)
        }
        #expect(try opened.store.setPinned(true, key("pinned")))
        opened.closeUnused()
        #expect(throws: ImportError.self) {
            try Importer(key("new"), length: 15_000_000, fields: HeaderFields(), replaces: false, in: opened.store)
        }
        #expect(try opened.load("other")?.isComplete == true)
    }

    @Test func fileThatIsHeldKeepsItsNameThoughItIsRemoved() throws {
        do { _ = try opened.make("a", media, filling: whole) }
        do {
            guard case .complete(let hold)? = try store.hold(key("a")) else { throw Unexpected("it is not complete") }
            #expect(try store.remove(key("a"), isDryRun: false) != nil)
            opened.closeUnused()
            #expect(FileManager.default.fileExists(atPath: opened.directory.file(hold.path)))
            #expect(try opened.load("a") == nil)
        }
        opened.closeUnused()
        #expect(opened.dataFiles.isEmpty && store.ledger.dataSize == 0)
    }

    @Test func limitsThatCannotBeMetAreRefusedAndEvictNothing() throws {
        do { _ = try opened.make("a", media, filling: whole) }
        #expect(throws: StoreError.self) { try store.setLimits(maxSize: nil, minFree: 1 << 62) }
        #expect(try opened.load("a")?.isComplete == true && store.ledger.minFree == 0)
    }

    /// The index's log holds all pages of a transaction.
    @Test func longResourcesAreForgottenInSmallTransactions() throws {
        let geometry = OpenStore.small
        let update = IndexSaving.Update(
            id: GenerationID(value: 77), key: key("long"), head: OpenStore.head(), length: 20_000 * geometry.extentSize,
            geometry: geometry,
            overhead: CapacityLedger.fileOverhead, hits: 0,
            extents: (0..<20_000).map { ordinal in
                IndexSaving.ExtentUpdate(
                    ordinal: ordinal, present: Presence(bits: .max),
                    checksums: Dictionary(uniqueKeysWithValues: (0..<64).map { ($0, UInt64($0) << 40) }),
                    lastAccess: Int64(ordinal), isVerified: true)
            })
        let log = { allocatedBytes(opened.directory.file("index.sqlite-wal")) }
        for batch in IndexSaving.Update.batches([update]) { _ = try store.core.index.saving.save(batch, session: 1) }
        #expect(try store.core.index.pins.setPinned(true, [key("long")]))
        #expect(try store.core.index.pins.setPinned(false, [key("long")]))
        let before = try #require(try store.core.index.database.meta(.dataBytes))
        #expect(try store.core.index.removal.remove([update.id]) == [update.id: before])
        #expect(try store.core.index.database.meta(.dataBytes) == 0 && store.core.index.listing.counts().resources == 0)
        #expect(log() < 4_000_000, "\(log()) bytes")
    }

    // MARK: Scrubbing

    private func flip(_ path: String, _ offset: Int64) throws {
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
        try file.seek(toOffset: UInt64(offset))
        let byte = try #require(try file.read(upToCount: 1)?.first)
        try file.seek(toOffset: UInt64(offset))
        try file.write(contentsOf: [byte ^ 0x40])
        try file.close()
    }

    private func scrub(repairs: Bool) throws -> CacheValidation { try store.scrub(repairs: repairs) { _ in true } }

    @Test func scrubOfASoundCacheFindsNothing() throws {
        let open = try opened.make("open", media, filling: whole)
        do { _ = try opened.make("closed", media, filling: 0..<70 * 4096) }
        let report = try scrub(repairs: false)
        #expect(
            report.isSound && report.resources == 2 && report.chunks == 271 && report.bytes == media.size + 70 * 4096)
        _ = consume open
    }

    @Test func scrubFindsAllKindsOfDamageAndRepairsThem() throws {
        var paths: [String: String] = [:]
        do {
            for name in ["sound", "damaged", "gone", "row"] {
                paths[name] = opened.path(try opened.make(name, media, filling: whole))
            }
        }
        opened.checkpoint()
        opened.closeUnused()
        try flip(paths["damaged"]!, 3 * 4096 + 5)
        try flip(paths["damaged"]!, 100 * 4096)
        unlink(paths["gone"]!)
        try store.core.index.database.write {
            try $0.execute(
                sql:
                    "UPDATE generation SET length = -7 WHERE resource = (SELECT id FROM resource WHERE key LIKE '%row')"
            )
        }
        var ids = GenerationID.Series(session: 60_000)
        let orphan = ids.make()
        try FileManager.default.createDirectory(
            atPath: (store.core.files.path(of: orphan) as NSString).deletingLastPathComponent,
            withIntermediateDirectories: true)
        _ = FileManager.default.createFile(
            atPath: store.core.files.path(of: orphan), contents: Data(repeating: 1, count: 9000))

        for repairs in [false, true] {
            let report = try scrub(repairs: repairs)
            #expect(
                report.damaged.map(\.urlText) == ["https://example.com/damaged"] && report.damaged.first?.chunks == 2)
            #expect(report.damaged.first?.spans == [ByteSpan(3 * 4096..<4 * 4096), ByteSpan(100 * 4096..<101 * 4096)])
            #expect(
                report.missingFiles == ["https://example.com/gone"] && report.damagedRows == ["https://example.com/row"]
            )
            #expect(report.orphanedFiles == 1 && report.orphanedBytes >= 9000 && report.isRepaired == repairs)
        }
        let after = try scrub(repairs: false)
        #expect(after.isSound && after.resources == 2, "\(after)")
        #expect(try opened.load("damaged")?.isPresent(3) == false)
        #expect(try opened.load("sound")?.isComplete == true)
        #expect(try listed { $0.order = .name } == ["damaged", "sound"])
    }

    @Test func scrubEndsWhenItIsNoLongerWanted() throws {
        do { for name in ["a", "b", "c"] { _ = try opened.make(name, media, filling: 0..<4096) } }
        var calls = 0
        let report = try store.scrub(repairs: false) { _ in
            calls += 1
            return calls < 2
        }
        #expect(report.resources == 1)
    }
}
