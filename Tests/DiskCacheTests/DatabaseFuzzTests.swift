import CachePolicy
import Foundation
import GRDB
import TestSupport
import Testing

@testable import DiskCache

/// Databases with bytes that were changed at random: the cache opens, whatever they say, and gives no wrong byte.
///
/// `REELCACHE_FUZZ_ROUNDS` makes it as many rounds.
@Suite struct DatabaseFuzzTests {
    private static let rounds = ProcessInfo.processInfo.environment["REELCACHE_FUZZ_ROUNDS"].flatMap { Int($0) } ?? 40

    private static let media = Media(seed: 77, size: 200 * 4096 + 50)
    private static let names = ["a", "b", "c"]

    /// A closed cache with several resources, one of them pinned and one partly there.
    private func closedCache() throws -> TemporaryDirectory {
        let opened = try OpenStore()
        for name in ["a", "b"] { _ = try opened.make(name, Self.media, filling: 0..<Self.media.size) }
        _ = try opened.make("c", Self.media, filling: 0..<8 * 4096, 100 * 4096..<120 * 4096)
        #expect(try opened.store.setPinned(true, OpenStore.key("a")))
        try opened.close()
        return opened.directory
    }

    private func copy(_ directory: TemporaryDirectory) throws -> TemporaryDirectory {
        let copy = try TemporaryDirectory()
        let outcome = try ChildProcess.run("/bin/cp", ["-a", "--sparse=always", directory.path + "/.", copy.path])
        guard outcome.exit == .exited(0) else { throw Unexpected("cp: \(outcome.stderr)") }
        return copy
    }

    /// Changes a few bytes: anywhere, in the definitions of tables, or in the head.
    private func damage(_ path: String, _ random: inout SplitMix64) throws {
        var bytes = try Data(contentsOf: URL(fileURLWithPath: path))
        let places = [0..<bytes.count, 100..<4096, 0..<100].map { $0.clamped(to: 0..<bytes.count) }
        let place = places[Int.random(in: 0..<8, using: &random) / 3]
        for _ in 0..<Int.random(in: 1...8, using: &random) {
            let index = Int.random(in: place, using: &random)
            bytes[index] =
                Bool.random(using: &random)
                ? bytes[index] ^ (1 << UInt8.random(in: 0..<8, using: &random))
                : UInt8.random(in: 0...255, using: &random)
        }
        try bytes.write(to: URL(fileURLWithPath: path))
    }

    /// All that is done with a cache.
    private func use(_ directory: TemporaryDirectory) throws {
        let opened = try OpenStore(directory)
        _ = try? opened.store.resources(ResourceQuery())
        _ = try? opened.store.report()
        for name in Self.names {
            _ = try? opened.store.resource(OpenStore.key(name))
            guard let generation = try? opened.load(name), generation.length == Self.media.size else { continue }
            for ordinal in 0..<generation.geometry.extentCount(length: Self.media.size) {
                try opened.verify(generation, extent: ordinal)
            }
            #expect(try generation.firstWrongChunk(Self.media) == nil)
            try? opened.fill(generation, Self.media, 130 * 4096..<131 * 4096)
        }
        _ = try? opened.store.setPinned(true, OpenStore.key("b"))
        opened.evict(200 * 4096)
        _ = try? opened.store.remove(OpenStore.key("c"), isDryRun: false)
        _ = try? opened.store.removeAll(RemovalSelection(), isDryRun: false)
        opened.evict(.max)
        try? opened.close()
    }

    @Test(arguments: ["index.sqlite", "pinned.sqlite", "index.sqlite pinned.sqlite"])
    func damagedBytesOfADatabaseNeverEndTheProgram(names: String) throws {
        let template = try closedCache()
        var random = SplitMix64.forTest("DatabaseFuzzTests \(names)")
        for round in 0..<Self.rounds {
            let directory = try copy(template)
            for name in names.split(separator: " ") { try damage(directory.file(String(name)), &random) }
            // What is met in the midst of work is mended at the next start.
            do {
                try use(directory)
                try use(directory)
            } catch { Issue.record("round \(round): \(error)") }
        }
    }

    /// Each letter of each definition, changed: found at the start, and what it speaks of comes back.
    @Test func changedLetterInADefinitionIsFoundAtTheStart() throws {
        let template = try closedCache()
        var random = SplitMix64.forTest("DatabaseFuzzTests definitions")
        let bytes = try Data(contentsOf: URL(fileURLWithPath: template.file("index.sqlite")))
        let words = [
            "length INTEGER", "final_url", "chunk_size", "last_access", "checksums", "pinned INTEGER", "cached INTEGER",
            "validated_at", "value INTEGER",
        ]
        for word in words {
            let place = try #require(bytes.range(of: Data(word.utf8)))
            var changed = bytes
            changed[place.lowerBound + Int.random(in: 0..<4, using: &random)] = UInt8(ascii: "q")
            let directory = try copy(template)
            try changed.write(to: URL(fileURLWithPath: directory.file("index.sqlite")))

            let opened = try OpenStore(directory)

            #expect(opened.metrics.errors.values["index-damaged"] == 1, "\(word)")
            for name in Self.names { #expect(try opened.load(name) != nil, "\(word): \(name) comes back") }
            opened.catchUp()
            #expect(try opened.store.report().pinned == 1)
        }
    }

    /// Values that a sum cannot take.
    @Test func valuesThatOverflowASumDoNoHarm() throws {
        let directory = try closedCache()
        do {
            let index = try CacheIndex(path: directory.file("index.sqlite"))
            try index.database.write { db in
                try db.execute(
                    sql: "UPDATE resource SET cached = 9223372036854775807, hits = 9223372036854775807, pinned = 1")
                try db.execute(sql: "UPDATE extent SET last_access = 9223372036854775807")
            }
            try index.database.close()
        }
        let opened = try OpenStore(directory)
        #expect(try opened.store.room(for: OpenStore.key("new")) <= 1 << 30)
        for name in Self.names {
            let generation = try #require(try opened.load(name))
            generation.countHit()
        }
        opened.checkpoint()
        #expect(try opened.store.resources(ResourceQuery()).total == 3)
        #expect(try opened.store.setPinned(false, OpenStore.key("a")))
        for name in Self.names { _ = try opened.store.remove(OpenStore.key(name), isDryRun: false) }
        opened.evict(.max)
    }
}
