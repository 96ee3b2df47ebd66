import CachePolicy
import Foundation
import GRDB
import TestSupport
import Testing

@testable import DiskCache

/// What players have read three quarters of was played, also over restarts.
@Suite struct PlayedTests {
    private let media = Media(seed: 3, size: 400_000)

    private func opened() throws -> OpenStore {
        let opened = try OpenStore()
        _ = try opened.make("a", media, filling: 0..<media.size)
        opened.checkpoint()
        return opened
    }

    private func play(_ opened: OpenStore, _ range: Range<Int64>) throws {
        let generation = try #require(try opened.load("a"))
        generation.beginReading()
        generation.endReading(having: range)
    }

    private func isPlayed(_ opened: OpenStore) throws -> Bool {
        try opened.store.played()[OpenStore.key("a")] != nil
    }

    @Test func partsCountTogetherOverARestart() throws {
        var opened = try opened()
        try play(opened, 0..<200_000)
        try play(opened, 100_000..<250_000)
        #expect(try !isPlayed(opened))
        opened = try opened.reopened()
        try play(opened, 390_000..<400_000)
        #expect(try !isPlayed(opened))
        opened = try opened.reopened()
        try play(opened, 250_000..<290_000)
        #expect(try isPlayed(opened))
        #expect(try opened.store.resource(OpenStore.key("a"))?.resource.played != nil)
        opened = try opened.reopened()
        #expect(try isPlayed(opened))
    }

    /// It was not saved before it was read.
    @Test func aNewResourceCountsFromItsFirstPlay() throws {
        let opened = try OpenStore()
        let generation = try opened.make("a", media, filling: 0..<media.size)
        generation.beginReading()
        generation.endReading(having: 0..<400_000)
        #expect(try isPlayed(opened))
    }

    @Test func downloadsAndOtherReadersPlayNothing() throws {
        let opened = try opened()
        try play(opened, 0..<0)
        #expect(try !isPlayed(opened))
    }

    @Test func playedResourcesAreRemovedUnlessPinned() throws {
        let opened = try opened()
        _ = try opened.make("b", media, filling: 0..<media.size)
        opened.checkpoint()
        try play(opened, 0..<400_000)
        let key = OpenStore.key("a")
        #expect(try opened.store.setPinned(true, key))
        var selection = RemovalSelection()
        selection.isPlayed = true
        let kept = try opened.store.removeAll(selection, isDryRun: false)
        #expect(kept.resources == 0 && kept.pinned == 1)
        selection.includesPinned = true
        let needed = try opened.store.removeAll(selection, isDryRun: false) { $0 == key }
        #expect(needed.resources == 0 && needed.pinned == 1)
        let tried = try opened.store.removeAll(selection, isDryRun: true)
        #expect(tried.resources == 1 && tried.bytes >= 400_000)
        let removed = try opened.store.removeAll(selection, isDryRun: false)
        #expect(removed.resources == 1 && removed.bytes == tried.bytes && removed.pinned == 0)
        #expect(try opened.store.resources(ResourceQuery()).resources.map(\.urlText) == [OpenStore.key("b").text])
    }

    @Test func playedOnesAreMissedLeast() throws {
        let opened = try opened()
        for name in ["b", "c"] { _ = try opened.make(name, media, filling: 0..<media.size) }
        opened.checkpoint()
        for name in ["a", "b", "c"] { _ = try opened.store.setPinned(true, OpenStore.key(name)) }
        try opened.store.core.index.database.write { db in
            for (time, name) in ["c", "b", "a"].enumerated() {
                try db.execute(
                    sql: "UPDATE resource SET last_access = ?, played = ? WHERE key = ?",
                    arguments: [time * 1_000_000, name == "a" ? 5 : nil, OpenStore.key(name).text])
            }
        }
        try opened.store.restorePoints.noteOrder(
            title: "A title", category: nil, isByHand: false, of: OpenStore.key("a"))
        let found = try opened.store.restorePoints.leastMissed(limit: 2)
        #expect(found.map(\.urlText) == ["a", "c"].map { OpenStore.key($0).text })
        #expect(found.first?.title == "A title")
    }

    /// What a person pinned, or ordered to stay, is not unpinned with being played; what only a feed pinned is.
    @Test func pinByHandOutlivesBeingPlayed() throws {
        let opened = try opened(), (store, key) = (opened.store, OpenStore.key("a"))
        func isPinned() throws -> Bool? { try store.resource(key)?.resource.isPinned }
        _ = try store.setPinned(true, key)
        #expect(try store.unpinPlayed(key) && isPinned() == false)
        // Ordered, but not to stay.
        try store.restorePoints.noteOrder(title: nil, category: nil, isByHand: true, of: key)
        _ = try store.setPinned(true, key)
        #expect(try store.unpinPlayed(key) && isPinned() == false)
        for isOrder in [true, false] {
            _ = try store.setPinned(true, key, isByHand: !isOrder)
            if isOrder { try store.restorePoints.noteOrder(title: nil, category: nil, isByHand: true, of: key) }
            _ = try store.setPinned(true, key)
            #expect(try store.unpinPlayed(key) && isPinned() == true)
            _ = try store.setPinned(false, key, isByHand: true)
            _ = try store.setPinned(true, key)
            #expect(try store.unpinPlayed(key) && isPinned() == false)
        }
        #expect(try !store.unpinPlayed(OpenStore.key("none")))
    }

    @Test func categoryIsThatOfTheLastOrderThatNamesOne() throws {
        let opened = try opened(), key = OpenStore.key("a")
        for (category, expected) in [("a", "a"), (nil, "a"), ("b", "b")] {
            try opened.store.restorePoints.noteOrder(title: nil, category: category, isByHand: false, of: key)
            #expect(try opened.store.resource(key)?.resource.category == expected)
        }
        try opened.close()
        #expect(try CachedName.categories(in: opened.directory.path, limit: 9) == ["b"])
    }

    /// The index of an earlier version gets the new columns, and keeps its rows.
    @Test func anIndexOfFormat4IsTakenOver() throws {
        let opened = try opened()
        _ = try opened.store.setPinned(true, OpenStore.key("a"))
        try opened.close()
        try DatabaseQueue(path: opened.directory.file("index.sqlite")).write { db in
            try db.execute(
                sql: """
                    DROP INDEX resource_played; ALTER TABLE resource DROP COLUMN played;
                    ALTER TABLE resource DROP COLUMN title; ALTER TABLE generation DROP COLUMN read_ranges;
                    ALTER TABLE resource DROP COLUMN category; ALTER TABLE resource DROP COLUMN by_hand;
                    DELETE FROM grdb_migrations WHERE identifier >= '5'; PRAGMA user_version = 4
                    """)
        }
        let next = try OpenStore(opened.directory)
        let resource = try #require(try next.store.resource(OpenStore.key("a"))?.resource)
        #expect(resource.isComplete && resource.isPinned && resource.played == nil)
        #expect(!FileManager.default.fileExists(atPath: opened.directory.file("index.damaged.sqlite")))
    }
}
