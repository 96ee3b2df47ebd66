import Foundation
import TestSupport
import Testing

@testable import DiskCache

/// What files really take, also those that have no name any more, is never more than what is counted.
@Suite struct LedgerTests {
    private let film = Media(seed: 5, size: 3000)

    /// Blocks of files that are open, by their descriptors.
    private func taken(_ generations: [Generation]) -> Int64 { generations.reduce(0) { $0 + $1.file.allocatedBytes } }

    /// The block in which a file ends is punched with the rest.
    @Test func evictedFileTakesNothingWhileItIsOpen() throws {
        let opened = try OpenStore()
        let generation = try opened.make("a", film, filling: 0..<3000)
        opened.checkpoint()
        #expect(taken([generation]) >= 3000)
        opened.evict(.max)
        #expect(taken([generation]) == 0)
        #expect(opened.dataFiles.isEmpty)
    }

    /// Far more small files than there is room for, each kept open by somebody.
    @Test func manySmallFilesThatAreOpenStayWithinTheLimit() throws {
        let limit: Int64 = 16_000_000
        let opened = try OpenStore(maxSize: limit)
        var open: [Generation] = []
        for number in 0..<2500 {
            guard let generation = try? opened.make("\(number)", length: 3000) else {
                _ = try opened.makeRoom(); continue
            }
            open.append(generation)
            do { try opened.fill(generation, film, 0..<3000) } catch {
                _ = try opened.makeRoom()
                try? opened.fill(generation, film, 0..<3000)
            }
        }
        let closed = opened.dataFiles.filter { path in !open.contains { opened.path($0) == path } }.reduce(0) {
            $0 + allocatedBytes($1)
        }
        #expect(taken(open) + closed <= opened.store.ledger.dataSize)
        #expect(taken(open) + closed <= limit)
        let before = opened.store.ledger.dataSize
        open = []
        opened.closeUnused()
        #expect(
            opened.store.ledger.dataSize < before, "what was evicted while it was open is given back when it is closed")
        #expect(opened.dataBytes <= opened.store.ledger.dataSize)
    }

    /// Unlinked with blocks in it: counted until it is gone.
    @Test func removedFileIsCountedUntilItIsClosed() throws {
        let opened = try OpenStore()
        var generation: Generation? = try opened.make("a", film, filling: 0..<3000)
        opened.checkpoint()
        let counted = opened.store.ledger.dataSize
        _ = try opened.store.remove(OpenStore.key("a"), isDryRun: false)
        #expect(opened.dataFiles.isEmpty && generation.map { taken([$0]) > 0 } == true)
        #expect(opened.store.ledger.dataSize == counted)
        generation = nil
        opened.closeUnused()
        #expect(opened.store.ledger.dataSize == 0)
    }

    /// Whoever has it in case lets go of it.
    @Test func whoHasAnEvictedFileIsTold() throws {
        let opened = try OpenStore()
        let told = Monitor<[String]>([])
        opened.store.listeners.whenChanged { key, _ in told.update { $0.append(key.text) } }
        let generation = try opened.make("a", film, filling: 0..<3000)
        opened.evict(.max)
        #expect(generation.isRetired)
        #expect(try told.wait(for: "the news") { $0.isEmpty ? nil : $0 } == [OpenStore.key("a").text])
    }
}
