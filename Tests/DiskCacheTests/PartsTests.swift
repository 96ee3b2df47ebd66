import CachePolicy
import Foundation
import GRDB
import TestSupport
import Testing

@testable import DiskCache

/// A presentation: what is part of it, and what happens to all of it at once.
@Suite struct PartsTests {
    private let opened: OpenStore
    private let media = Media(seed: 71, size: 3 * 4096)

    init() throws { opened = try OpenStore() }

    private var store: CacheStore { opened.store }
    private func key(_ name: String) -> CacheKey { OpenStore.key(name) }

    /// A complete resource that is part of another.
    @discardableResult
    private func make(_ name: String, partOf whole: String?, in opened: OpenStore? = nil) throws -> Generation {
        let opened = opened ?? self.opened
        let generation = try opened.store.makeGeneration(
            OpenStore.key(name), head: OpenStore.head(), length: media.size, partOf: whole.map(OpenStore.key))
        try opened.fill(generation, media, 0..<media.size)
        return generation
    }

    private func parts(of whole: String, in opened: OpenStore? = nil) throws -> [String] {
        try (opened ?? self.opened).store.parts.cached(of: key(whole)).map(\.key.text).map(Self.name).sorted()
    }

    private static func name(_ url: String) -> String { url.replacing("https://example.com/", with: "") }

    private func listed(_ order: CachedResource.Order = .name) throws -> [String] {
        var query = ResourceQuery()
        query.order = order
        return try store.resources(query).resources.map { Self.name($0.urlText) }
    }

    private func report(_ name: String) throws -> CachedResource {
        try #require(try store.resource(key(name))).resource
    }

    // MARK: What is part of what

    @Test func partsAreKnownAfterTheyAreSaved() throws {
        for name in ["m", "s1", "s2"] { try make(name, partOf: name == "m" ? nil : "m") }
        try make("plain", partOf: nil)
        #expect(try parts(of: "m") == ["s1", "s2"])
        #expect(try parts(of: "plain").isEmpty && parts(of: "s1").isEmpty && parts(of: "unknown").isEmpty)
        let part = try #require(try store.parts.cached(of: key("m")).first)
        #expect(part.length == media.size && part.cached == media.size && part.isComplete && !part.isPinned)
        #expect(try store.core.index.parts.whole(of: key("s1")) == key("m"))
        #expect(try store.core.index.parts.whole(of: key("m")) == nil)
        let again = try opened.reopened()
        #expect(try parts(of: "m", in: again) == ["s1", "s2"])
        #expect(try again.load("s1")?.whole == key("m"))
    }

    @Test func generationThatReplacesAnotherIsPartOfTheSame() throws {
        try make("m", partOf: nil)
        let first = try make("s", partOf: "m")
        opened.checkpoint()
        let second = try store.makeGeneration(key("s"), head: OpenStore.head(etag: "\"v2\""), length: media.size)
        store.retire(first)
        opened.catchUp()
        try opened.fill(second, media, 0..<media.size)
        #expect(try parts(of: "m") == ["s"])
        #expect(try report("m").parts == 1)
        #expect(try report("m").cachedBytes == 2 * media.size)
    }

    @Test func whatIsStoredAlreadyJoins() throws {
        for name in ["m", "s1", "s2", "s3"] { try make(name, partOf: nil) }
        opened.checkpoint()
        opened.closeUnused()
        let open = try make("s4", partOf: nil)
        try store.parts.join(["s1", "s2", "s4", "unknown", "m"].map(key), to: key("m"))
        #expect(try parts(of: "m") == ["s1", "s2", "s4"])
        #expect(open.whole == key("m"))
        #expect(try report("m").parts == 3 && report("s1").partOf == key("m").text)
        #expect(try listed() == ["m", "s3"])
        // Again: nothing changes.
        try store.parts.join(["s1", "m"].map(key), to: key("m"))
        #expect(try report("m").parts == 3)
    }

    /// A media playlist was played for itself before the multivariant playlist that names it.
    @Test func joiningAWholeTakesItsPartsAlong() throws {
        try make("media", partOf: nil)
        let open = try make("s1", partOf: "media")
        for number in 2...300 { try make("s\(number)", partOf: "media") }
        try make("multi", partOf: nil)
        #expect(try report("media").parts == 300)
        try store.parts.join([key("media")], to: key("multi"))
        #expect(try parts(of: "multi").count == 301 && parts(of: "media").isEmpty)
        #expect(try report("multi").parts == 301 && report("multi").cachedBytes == 302 * media.size)
        #expect(try report("media").parts == nil && report("media").cachedBytes == media.size)
        // What still says that it is a part of the media playlist is one of the whole.
        open.countHit()
        try make("late", partOf: "media")
        #expect(try parts(of: "multi").count == 302 && parts(of: "media").isEmpty)
        // And so it is where the media playlist becomes one by being stored.
        try store.parts.join([key("multi")], to: key("media"))
        #expect(try parts(of: "multi").count == 302)
    }

    @Test func wholeThatIsStoredAsAPartTakesItsPartsAlong() throws {
        try make("s", partOf: "media")
        opened.checkpoint()
        try make("media", partOf: "multi")
        #expect(try parts(of: "multi") == ["media", "s"])
        #expect(try parts(of: "media").isEmpty)
    }

    @Test func whatIsOpenFollowsItsWholeToAnother() throws {
        let open = try make("s", partOf: "media")
        opened.checkpoint()
        try make("multi", partOf: nil)
        try store.parts.join([key("media")], to: key("multi"))
        #expect(open.whole == key("multi"))
        open.countHit()
        opened.checkpoint()
        #expect(try parts(of: "multi") == ["s"] && listed() == ["multi"])
    }

    @Test func aPageOfDamagedRowsIsNotTheEnd() throws {
        for number in 0...IndexParts.pageSize { try make("s\(number)", partOf: "m") }
        opened.checkpoint()
        opened.closeUnused()
        let damage = """
            UPDATE resource SET key = CAST(x'ff' || id AS BLOB)
            WHERE part_of IS NOT NULL AND id < (SELECT max(id) FROM resource WHERE part_of IS NOT NULL)
            """
        try store.core.index.database.write { try $0.execute(sql: damage) }
        #expect(try store.setPinned(true, key("m")))
        #expect(try store.parts.cached(of: key("m")).map(\.isPinned) == [true])
    }

    // MARK: Sums

    /// Whatever happens to parts, the sums over them are what one gets by adding them up.
    private func checkSums() throws {
        try store.core.index.database.read { db in
            let wrong = try Row.fetchAll(
                db,
                sql: """
                    SELECT w.key, w.parts, w.part_length, w.part_cached, w.part_hits FROM resource w WHERE
                    w.parts != (SELECT count(*) FROM resource p JOIN generation g ON g.resource = p.id WHERE p.part_of = w.id)
                    OR w.part_length != (SELECT coalesce(sum(g.length), 0) FROM resource p JOIN generation g ON g.resource = p.id WHERE p.part_of = w.id)
                    OR w.part_cached != (SELECT coalesce(sum(cached), 0) FROM resource p WHERE p.part_of = w.id)
                    OR w.part_hits != (SELECT coalesce(sum(hits), 0) FROM resource p WHERE p.part_of = w.id)
                    """)
            #expect(wrong.isEmpty, "\(wrong)")
        }
    }

    @Test func sumsFollowAllThatHappensToParts() throws {
        var random = SplitMix64(seed: 20)
        for _ in 0..<300 {
            let name = "r\(random.next() % 12)", other = "r\(random.next() % 12)"
            switch random.next() % 9 {
            case 0, 1, 2: try make(name, partOf: other == name ? nil : other)
            case 3: try store.parts.join([key(name), key("r\(random.next() % 12)")], to: key(other))
            case 4: _ = try store.remove(key(name), isDryRun: false)
            case 5:
                opened.closeUnused()
                opened.evict(3 * 4096)
            case 6: _ = try store.setPinned(random.next() % 2 == 0, key(name))
            case 7: try opened.load(name)?.countHit()
            default: if let generation = try opened.load(name) { store.retire(generation) }
            }
            opened.checkpoint()
            opened.store.queue.wait()
            try checkSums()
        }
        let listing = try store.resources(ResourceQuery())
        #expect(listing.total == listing.resources.count)
        #expect(try store.report().resources == listing.total)
    }

    /// A trigger counted it there, which would do so a second time.
    @Test func aNewPartIsCountedOnceInAnIndexOfFormat6() throws {
        try make("m", partOf: nil)
        try opened.close()
        try DatabaseQueue(path: opened.directory.file("index.sqlite")).write { db in
            try db.execute(
                sql: """
                    CREATE TRIGGER part_generation_added AFTER INSERT ON generation
                    WHEN (SELECT part_of FROM resource WHERE id = NEW.resource) IS NOT NULL BEGIN
                        UPDATE resource SET parts = parts + 1, part_length = part_length + NEW.length
                        WHERE id = (SELECT part_of FROM resource WHERE id = NEW.resource);
                    END;
                    DROP TRIGGER part_moved;
                    DROP TABLE further_whole;
                    DELETE FROM grdb_migrations WHERE identifier >= '7'; PRAGMA user_version = 6
                    """)
        }
        let next = try OpenStore(opened.directory)
        try make("s", partOf: "m", in: next)
        next.checkpoint()
        let whole = try #require(try next.store.resource(key("m"))).resource
        #expect(whole.parts == 1 && whole.cachedBytes == 2 * media.size)
    }

    // MARK: Listing

    @Test func aPresentationIsOneLineWithItsSums() throws {
        for name in ["m", "s1", "s2"] { try make(name, partOf: name == "m" ? nil : "m") }
        try make("plain", partOf: nil)
        let part = try #require(try opened.load("s2"))
        part.touch(0, at: 4_000_000_000_000_000)
        for _ in 0..<5 { part.countHit() }
        try opened.load("plain")?.countHit()
        let all = try store.resources(ResourceQuery())
        #expect(all.total == 2)
        let whole = try #require(all.resources.first { $0.urlText == key("m").text })
        #expect(whole.length == 3 * media.size && whole.cachedBytes == 3 * media.size && whole.parts == 2)
        #expect(whole.hits == 5 && whole.lastAccess == 4_000_000_000 && !whole.isComplete)
        for order in CachedResource.Order.allCases { #expect(try listed(order) == ["m", "plain"], "\(order)") }
        #expect(try store.report().resources == 2)
        var query = ResourceQuery()
        query.filter = "s1"
        #expect(try store.resources(query) == ResourceListing(resources: [], total: 0))
        #expect(try report("s1").parts == nil && report("s1").partOf == key("m").text && report("s1").isComplete)
    }

    /// The playlist is small, and may go before what it names.
    @Test func aPresentationIsListedWithoutItsPlaylist() throws {
        try make("s", partOf: "m")
        #expect(try listed() == ["m"])
        #expect(try store.report().resources == 1)
        let detail = try #require(try store.resource(key("m")))
        #expect(detail.resource.parts == 1 && detail.resource.cachedBytes == media.size && detail.present.isEmpty)
        #expect(try store.remove(key("m"), isDryRun: false)?.parts == 1)
        #expect(try listed().isEmpty && store.resource(key("m")) == nil)
        #expect(try !store.parts.areKnown(of: key("m")))
    }

    @Test func aListingOfPlainResourcesReadsTheirIndexesInOrder() throws {
        try make("a", partOf: nil)
        opened.checkpoint()
        for order in CachedResource.Order.allCases {
            var query = ResourceQuery()
            (query.order, query.limit) = (order, 10)
            let plan = try store.core.index.database.read { db in
                try Row.fetchAll(db, sql: "EXPLAIN QUERY PLAN " + IndexListing.page(query), arguments: [10, 0]).map {
                    try StoredRow($0).text("detail")
                }
            }
            #expect(plan.contains { $0.contains("SCAN r USING INDEX whole_") }, "\(order): \(plan)")
            #expect(!plan.contains { $0.contains("TEMP B-TREE") }, "\(order): \(plan)")
        }
    }

    // MARK: Pinning

    @Test func pinningMeansTheWholeAndWhatComesLater() throws {
        for name in ["m", "s1"] { try make(name, partOf: name == "m" ? nil : "m") }
        #expect(try store.setPinned(true, key("m")))
        let late = try make("s2", partOf: "m")
        try make("plain", partOf: nil)
        opened.checkpoint()
        #expect(late.isKept)
        try store.parts.join([key("plain")], to: key("m"))
        #expect(try store.parts.cached(of: key("m")).allSatisfy(\.isPinned))
        #expect(try store.core.index.pins.pinnedBytes() == 4 * media.size)
        #expect(try store.report().pinned == 1)
        opened.closeUnused()
        opened.evict(1 << 30)
        #expect(try parts(of: "m") == ["plain", "s1", "s2"])
        // A part that is named itself is handled alone.
        #expect(try store.setPinned(false, key("s1")))
        #expect(try store.parts.cached(of: key("m")).filter(\.isPinned).count == 2)
        #expect(try store.setPinned(false, key("m")))
        #expect(try store.parts.cached(of: key("m")).allSatisfy { !$0.isPinned } && report("m").isPinned == false)
        #expect(!late.isKept)
        #expect(try store.core.index.pins.pinnedBytes() == 0)
    }

    @Test func pinsThatAnEndHasCutShortAreCompleted() throws {
        for name in ["m", "s1", "s2"] { try make(name, partOf: name == "m" ? nil : "m") }
        #expect(try store.setPinned(true, key("m")))
        let cut = "UPDATE extent SET pinned = 0; UPDATE resource SET pinned = 0 WHERE key = '\(key("s2").text)'"
        try store.core.index.database.write { try $0.execute(sql: cut) }
        let killed = try opened.killed()
        #expect(try unpinnedExtents(in: killed) == 0)
        #expect(try killed.store.parts.cached(of: key("m")).allSatisfy(\.isPinned))
        #expect(try unpinnedExtents(in: opened) == 3)
        #expect(try store.setPinned(true, key("m")))
        #expect(try unpinnedExtents(in: opened) == 0)
    }

    private func unpinnedExtents(in opened: OpenStore) throws -> Int? {
        try opened.store.core.index.database.read {
            try Int.fetchOne($0, sql: "SELECT count(*) FROM extent WHERE pinned = 0")
        }
    }

    @Test func pinnedPartsComeBackFromTheirCopyAsParts() throws {
        for name in ["m", "s1", "plain"] { try make(name, partOf: name == "s1" ? "m" : nil) }
        #expect(try store.setPinned(true, key("m")))
        try make("s2", partOf: "m")
        try store.parts.join([key("plain")], to: key("m"))
        opened.checkpoint()
        let lost = try opened.killed()
        let directory = lost.directory
        try lost.close()
        for file in ["index.sqlite", "index.sqlite-wal", "index.sqlite-shm"] { unlink(directory.file(file)) }
        let again = try OpenStore(directory)
        #expect(try parts(of: "m", in: again) == ["plain", "s1", "s2"])
        #expect(try again.store.resource(key("m"))?.resource.isPinned == true)
        #expect(try again.store.setPinned(false, key("m")))
        #expect(try again.store.parts.cached(of: key("m")).count == 3)
    }

    @Test func partsAreFoundAgainInADamagedIndex() throws {
        for name in ["m", "s1", "s2"] { try make(name, partOf: name == "m" ? nil : "m") }
        opened.checkpoint()
        let directory = opened.directory
        try opened.close()
        IndexDatabase.markDamaged(directory.file("index.sqlite"))
        let again = try OpenStore(directory)
        #expect(try parts(of: "m", in: again) == ["s1", "s2"])
        #expect(try again.store.report().resources == 1)
    }

    // MARK: Of several

    /// Two recordings of a stream, of which the second begins with what the first ends with.
    private func makeTwo(isPinned: Bool = true) throws {
        for (whole, names) in [("a", ["s1", "s2"]), ("b", ["s2", "s3"])] {
            try make(whole, partOf: nil)
            for name in names where name != "s2" || whole == "a" { try make(name, partOf: whole) }
            try commit(names, of: whole, isPinned: isPinned)
        }
    }

    private func commit(_ names: [String], of whole: String, isPinned: Bool = true) throws {
        try store.commit(names.map(key), partsOf: key(whole))
        try store.commit(whole: key(whole), isPinned: isPinned) { true }
    }

    private func pinned(_ whole: String, in opened: OpenStore? = nil) throws -> [String] {
        try (opened ?? self.opened).store.parts.cached(of: key(whole)).filter(\.isPinned).map(\.key.text)
            .map(Self.name).sorted()
    }

    @Test(arguments: [("a", "b", ["s2", "s3"]), ("b", "a", ["s1", "s2"])], [true, false])
    func whatTwoPresentationsKeepStaysForTheOther(
        _ both: (removed: String, left: String, parts: [String]), isPinned: Bool
    ) throws {
        try makeTwo(isPinned: isPinned)
        #expect(try parts(of: "a") == ["s1", "s2"] && parts(of: "b") == ["s2", "s3"])
        for isDryRun in [true, false] {
            #expect(try store.remove(key(both.removed), isDryRun: isDryRun)?.parts == 1)
        }
        opened.catchUp()
        #expect(try listed() == [both.left] && parts(of: both.left) == both.parts)
        let again = try opened.reopened()
        #expect(try parts(of: both.left, in: again) == both.parts)
        #expect(try pinned(both.left, in: again) == (isPinned ? both.parts : []))
    }

    /// Its file is open: what is saved of it later must not bring the removed one back.
    @Test func whatIsLeftToAnotherBelongsToItAlone() throws {
        try makeTwo()
        let open = try #require(try opened.load("s2"))
        #expect(try store.remove(key("b"), isDryRun: false) != nil)
        #expect(open.whole == key("a"))
        open.freshen { $0 }
        opened.checkpoint()
        #expect(try listed() == ["a"] && parts(of: "a") == ["s1", "s2"])
        #expect(try store.remove(key("a"), isDryRun: false)?.parts == 2)
        #expect(try listed().isEmpty && store.core.index.pins.pinned().isEmpty)
        let rows = try store.core.index.database.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM resource") }
        #expect(rows == 0)
    }

    @Test func whatTwoPinStaysPinnedUntilBothUnpinIt() throws {
        try makeTwo()
        #expect(try store.setPinned(false, key("b")))
        #expect(try pinned("b") == ["s2"] && pinned("a") == ["s1", "s2"])
        #expect(try store.setPinned(false, key("a")))
        #expect(try pinned("a").isEmpty && pinned("b").isEmpty)
        #expect(try store.setPinned(true, key("b")))
        #expect(try pinned("b") == ["s2", "s3"] && pinned("a") == ["s2"])
    }

    /// What only players have named moves, as before.
    @Test func onlyWhatIsKeptStays() throws {
        for name in ["a", "b", "s1"] { try make(name, partOf: name == "s1" ? "a" : nil) }
        try store.parts.join([key("s1")], to: key("b"))
        #expect(try parts(of: "a").isEmpty && parts(of: "b") == ["s1"])
        #expect(try store.remove(key("b"), isDryRun: false)?.parts == 1)
    }

    /// It is a playlist that becomes part of another.
    @Test func whatTwoHaveFollowsAPresentationThatBecomesAPart() throws {
        for name in ["a", "s1", "b", "s2", "master"] { try make(name, partOf: ["s1": "a", "s2": "b"][name]) }
        try commit(["s1"], of: "a")
        try store.parts.join([key("s1")], to: key("b"))
        #expect(try parts(of: "b") == ["s1", "s2"])
        try commit(["b"], of: "master")
        #expect(try parts(of: "master") == ["b", "s1", "s2"] && parts(of: "a") == ["s1"])
        #expect(try store.remove(key("master"), isDryRun: false)?.parts == 2)
        #expect(try parts(of: "a") == ["s1"] && listed() == ["a"])
    }

    /// One rendition was downloaded; then all of them are played.
    @Test func aPresentationThatIsKeptStaysOneWhenItBelongsToAnother() throws {
        for name in ["v", "s1", "master", "s2"] { try make(name, partOf: name == "s1" ? "v" : nil) }
        try commit(["s1"], of: "v")
        try store.parts.join(["v", "s1", "s2"].map(key), to: key("master"))
        #expect(try listed() == ["master", "v"] && parts(of: "v") == ["s1"] && parts(of: "master") == ["s1", "s2"])
        #expect(try store.remove(key("master"), isDryRun: false)?.parts == 1)
        #expect(try listed() == ["v"] && parts(of: "v") == ["s1"] && pinned("v") == ["s1"])
    }

    @Test func aCancelledDownloadLeavesWhatAnotherKeeps() throws {
        for name in ["a", "s1", "b"] { try make(name, partOf: name == "s1" ? "a" : nil) }
        try commit(["s1"], of: "a")
        let point = try store.restorePoints.point(of: key("b"))
        try make("s2", partOf: "b")
        try commit(["s1", "s2"], of: "b")
        #expect(try store.restorePoints.restore(point) > 0)
        #expect(try parts(of: "a") == ["s1"] && pinned("a") == ["s1"])
    }

    /// The one that had them first: they belong to the other, which alone decides from now on.
    @Test func whatACancelledDownloadSharesBelongsToTheOther() throws {
        let point = try store.restorePoints.point(of: key("a"))
        try makeTwo()
        #expect(try store.restorePoints.restore(point) > 0)
        #expect(try listed() == ["b"] && parts(of: "b") == ["s2", "s3"] && pinned("b") == ["s2", "s3"])
        #expect(try store.remove(key("b"), isDryRun: false)?.parts == 2)
        let rows = try store.core.index.database.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM resource") }
        #expect(rows == 0)
    }

    @Test func aPresentationThatIsNotPinnedBecomesAPartThatIs() throws {
        for name in ["v", "s1", "master"] { try make(name, partOf: name == "s1" ? "v" : nil) }
        try commit(["s1"], of: "v", isPinned: false)
        try commit(["v", "s1"], of: "master")
        #expect(try listed() == ["master"] && pinned("master") == ["s1", "v"])
    }

    @Test func whatTwoHaveIsFoundAgainInADamagedIndex() throws {
        try makeTwo()
        opened.checkpoint()
        let directory = opened.directory
        try opened.close()
        IndexDatabase.markDamaged(directory.file("index.sqlite"))
        let again = try OpenStore(directory)
        #expect(try parts(of: "a", in: again) == ["s1", "s2"] && parts(of: "b", in: again) == ["s2", "s3"])
        #expect(try again.store.remove(key("a"), isDryRun: false)?.parts == 1)
        #expect(try pinned("b", in: again) == ["s2", "s3"])
    }

    // MARK: What goes

    @Test func removingMeansTheWhole() throws {
        for name in ["m", "s1", "s2"] { try make(name, partOf: name == "m" ? nil : "m") }
        for number in 0..<300 { try make("t\(number)", partOf: "m") }
        try make("plain", partOf: nil)
        #expect(try store.setPinned(true, key("m")))
        let planned = try #require(try store.remove(key("m"), isDryRun: true))
        #expect(planned.resources == 1 && planned.parts == 302 && planned.bytes >= 303 * media.size)
        #expect(try store.remove(key("s1"), isDryRun: false)?.parts == nil)
        #expect(try report("m").parts == 301)
        let removed = try #require(try store.remove(key("m"), isDryRun: false))
        #expect(removed.resources == 1 && removed.parts == 301)
        #expect(try listed() == ["plain"])
        opened.catchUp()
        opened.closeUnused()
        #expect(opened.dataFiles.count == 1)
        #expect(try store.core.index.pins.pinned().isEmpty)
    }

    @Test func removalOfWhatIsOldLeavesWholesThatWereReadLater() throws {
        for whole in ["old", "new", "kept"] {
            try make(whole, partOf: nil).touch(at: 1_000_000_000)
            for number in 1...2 { try make("\(whole)\(number)", partOf: whole).touch(at: 1_000_000_000) }
        }
        try opened.load("new2")?.touch(at: 9_000_000_000_000)
        opened.checkpoint()
        #expect(try store.setPinned(true, key("kept")))
        let removed = try store.removeAll(.init(before: 5_000_000), isDryRun: false)
        #expect(removed.resources == 1 && removed.parts == 2 && removed.pinned == 1)
        #expect(try listed() == ["kept", "new"])
        #expect(try parts(of: "new") == ["new1", "new2"] && parts(of: "kept").count == 2)
    }

    @Test func touchingMeansTheWhole() throws {
        for name in ["m", "s1", "s2"] { try make(name, partOf: name == "m" ? nil : "m").touch(at: 1_000_000_000) }
        opened.checkpoint()
        opened.closeUnused()
        try make("plain", partOf: nil).touch(at: 2_000_000_000)
        #expect(try store.touch(key("m")))
        opened.closeUnused()
        opened.evict(4096)
        #expect(try listed() == ["m"] && parts(of: "m").count == 2)
    }

    @Test func whatIsDemotedGoesFirstUntilItIsReadAgain() throws {
        for name in ["live1", "live2", "film"] { try make(name, partOf: nil) }
        try opened.load("film")?.touch(at: 1_700_000_000_000_000)
        opened.checkpoint()
        let open = try #require(try opened.load("live1"))
        try store.parts.demote(["live1", "live2", "unknown"].map(key))
        open.touch(at: AccessClock.now())
        opened.checkpoint()
        opened.closeUnused()
        opened.evict(4096)
        #expect(try listed() == ["film", "live1"])
        #expect(open.isNeeded == false)
    }

    @Test func roomForAPresentationIsBesideItsParts() throws {
        try make("m", partOf: nil)
        let before = try store.room(for: key("m"))
        for number in 0..<10 { try make("s\(number)", partOf: "m") }
        opened.checkpoint()
        #expect(try before - store.room(for: key("m")) >= 10 * media.size)
        // Pinned, they are counted once.
        let unpinned = try store.room(for: key("m"))
        #expect(try store.setPinned(true, key("m")))
        #expect(try abs(unpinned - store.room(for: key("m"))) < 4 << 20)
    }

    // MARK: Restore points

    @Test func aCancelledDownloadLeavesThePartsThatWereThere() throws {
        try make("m", partOf: nil)
        try make("before", partOf: "m")
        let some = try store.makeGeneration(key("some"), head: OpenStore.head(), length: 200 * 4096, partOf: key("m"))
        let long = Media(seed: 3, size: 200 * 4096)
        try opened.fill(some, long, 0..<64 * 4096)
        opened.checkpoint()
        let point = try store.restorePoints.point(of: key("m"))
        #expect(try store.setPinned(true, key("m")))
        for name in ["new", "played"] { try make(name, partOf: "m") }
        try opened.fill(some, long, 64 * 4096..<200 * 4096)
        try opened.load("played")?.countHit()
        #expect(try store.restorePoints.restore(point) > 0)
        #expect(try parts(of: "m") == ["before", "played", "some"])
        #expect(try store.coverage(key("some"))?.ranges == [0..<64 * 4096])
        #expect(try store.parts.cached(of: key("m")).allSatisfy { !$0.isPinned } && !report("m").isPinned)
    }

    /// A player has met another version of one meanwhile.
    @Test func aCancelledDownloadLeavesWhatWasPinnedAndIsRenewed() throws {
        try make("m", partOf: nil)
        let former = try make("s1", partOf: "m")
        try make("s2", partOf: "m")
        try commit(["s1", "s2"], of: "m")
        let point = try store.restorePoints.point(of: key("m"))
        let next = try store.makeGeneration(
            key("s1"), head: OpenStore.head(etag: "\"v2\""), length: media.size, partOf: key("m"))
        store.retire(former)
        opened.catchUp()
        try opened.fill(next, media, 0..<media.size)
        try make("new", partOf: "m")
        opened.checkpoint()
        #expect(try store.restorePoints.restore(point) > 0)
        #expect(try parts(of: "m") == ["s1", "s2"])
    }

    @Test func whereMorePartsWereThereThanAreNotedNoneGoesThatIsNot() throws {
        for name in ["m", "a", "b"] { try make(name, partOf: name == "m" ? nil : "m") }
        let point = try store.restorePoints.point(of: key("m"))
        #expect(point.former.count == 3 && point.hasMoreParts == nil)
        try make("new", partOf: "m")
        let cut = RestorePoint(
            key: point.key, wasPinned: false, former: Array(point.former.prefix(2)), hasMoreParts: true)
        #expect(try store.restorePoints.restore(cut) == 0)
        #expect(try parts(of: "m") == ["a", "b", "new"])
    }

    @Test func partsOfAPinnedWholeStayPinnedWhenADownloadIsCancelled() throws {
        try make("m", partOf: nil)
        #expect(try store.setPinned(true, key("m")))
        let point = try store.restorePoints.point(of: key("m"))
        try make("played", partOf: "m").countHit()
        _ = try store.restorePoints.restore(point)
        #expect(try store.parts.cached(of: key("m")).map(\.isPinned) == [true])
    }
}
