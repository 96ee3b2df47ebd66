import CachePolicy
import Foundation
import TestSupport
import Testing

@testable import DiskCache

/// On a file system that cannot punch holes, whole files go.
@Suite struct WholeFileEvictionTests {
    private let media = Media(seed: 41, size: 100 * 4096)

    @Test func leastRecentlyReadFileGoesAsAWhole() throws {
        let opened = try OpenStore(punchesHoles: false)
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
        let opened = try OpenStore(punchesHoles: false)
        let generation = try opened.make("a", media, filling: 0..<media.size)
        generation.beginUse()
        opened.checkpoint()
        #expect(opened.evict(1) == 0)
        #expect(generation.isComplete)
        generation.endUse()
        #expect(try opened.makeRoom())
    }

    @Test func fileThatIsOpenAndUnusedIsLetGoOf() throws {
        let opened = try OpenStore(punchesHoles: false)
        let table = Table()
        table.generation = try opened.make("a", media, filling: 0..<media.size)
        opened.store.whenChanged { _, _ in table.generation = nil }
        opened.checkpoint()
        #expect(opened.evict(1) >= media.size)
        #expect(opened.dataFiles.isEmpty && opened.store.ledger.dataSize == 0)
    }

    /// What is kept in case somebody asks.
    private final class Table: @unchecked Sendable {
        var generation: Generation?
    }

    @Test func pinnedFilesStay() throws {
        let opened = try OpenStore(punchesHoles: false)
        do { _ = try opened.make("a", media, filling: 0..<media.size) }
        #expect(try opened.store.setPinned(true, OpenStore.key("a")))
        #expect(opened.evict(1) == 0)
        #expect(try opened.load("a")?.isComplete == true)
    }

    /// Blocks without a bit cannot be given back: they are counted until the file goes.
    @Test func whatAKillLeftInAFileIsCounted() throws {
        let opened = try OpenStore(punchesHoles: false)
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
}
