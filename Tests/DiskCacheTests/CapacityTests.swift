import CachePolicy
import Foundation
import TestSupport
import Testing

@testable import DiskCache

/// Random lives of a cache: what is present is right, and what is counted is there.
@Suite struct CapacityTests {
    private static let names = (0..<6).map { "r\($0)" }

    /// Index, file and oracle agree after each session; the ledger never counts less than the files take.
    @Test func rowsNeverSpeakOfHolesAndTheLedgerOfWhatIsThere() throws {
        var random = SplitMix64.forTest("rowsNeverSpeakOfHolesAndTheLedgerOfWhatIsThere")
        var opened = try OpenStore()
        for session in 0..<12 {
            do {
                var open: [String: Generation] = [:]
                for _ in 0..<60 { try step(opened, &open, &random) }
                opened.checkpoint()
                try compare(opened)
            }
            opened.catchUp()
            try compareSizes(opened)
            opened = session % 3 == 2 ? try opened.killed() : try opened.reopened()
            try compare(opened)
        }
    }

    private func media(_ name: String) -> Media {
        let number = Int64(name.dropFirst())!
        return Media(seed: UInt64(number), size: 64 * 4096 * number + 1000 * number + 1)
    }

    private func step(_ opened: OpenStore, _ open: inout [String: Generation], _ random: inout SplitMix64) throws {
        let name = Self.names.randomElement(using: &random)!
        let media = media(name)
        switch Int.random(in: 0..<20, using: &random) {
        case 0: opened.evict(Int64.random(in: 1...2_000_000, using: &random))
        case 1: opened.checkpoint()
        case 2:
            // A generation that was closed is found again only when the index knows it (see `ReopenTests`).
            opened.checkpoint()
            open[name] = nil
        case 3:
            guard let generation = open.removeValue(forKey: name) else { return }
            opened.store.retire(generation)
        default:
            let generation = try open[name] ?? opened.load(name) ?? opened.make(name, length: media.size)
            open[name] = generation
            let count = generation.geometry.chunkCount(length: media.size)
            let writer = ChunkWriter(
                generation, at: generation.geometry.chunkStart(Int.random(in: 0..<count, using: &random)),
                stopsAtPresent: Bool.random(using: &random), in: opened.store)
            _ = writer.append(media, Int.random(in: 1...200_000, using: &random))
        }
    }

    private func compare(_ opened: OpenStore) throws {
        for name in Self.names {
            guard let row = try opened.row(name) else { continue }
            let file = try SparseFile(
                path: opened.store.core.files.path(of: row.id), length: row.length, creating: false)
            for (ordinal, present) in try opened.rows(of: row.id) {
                for bit in present.runs.joined() {
                    let range = row.geometry.chunkBytes(
                        ordinal * ChunkGeometry.chunksPerExtent + bit, length: row.length)
                    var bytes = [UInt8](repeating: 0, count: range.count)
                    _ = try bytes.withUnsafeMutableBytes { try file.read(into: $0, at: range.lowerBound) }
                    #expect(media(name).difference(bytes, from: range) == nil, "\(name), extent \(ordinal), bit \(bit)")
                }
            }
        }
    }

    private func compareSizes(_ opened: OpenStore) throws {
        for path in opened.dataFiles { try sync(path) }
        let real = opened.dataBytes, counted = opened.store.ledger.dataSize
        #expect(counted >= real)
    }

    /// Blocks that were promised are counted only when they are written out.
    private func sync(_ path: String) throws {
        let descriptor = open(path, O_RDONLY)
        defer { close(descriptor) }
        try #require(fsync(descriptor) == 0)
    }

    /// Without kills, when nothing is open: what is counted is what the files take, and the overhead of each.
    @Test func ledgerCountsWhatTheFilesTake() throws {
        var random = SplitMix64.forTest("ledgerCountsWhatTheFilesTake")
        var opened = try OpenStore()
        for _ in 0..<10 {
            do {
                var open: [String: Generation] = [:]
                for _ in 0..<50 { try step(opened, &open, &random) }
            }
            opened.checkpoint()
            opened.closeUnused()
            for path in opened.dataFiles { try sync(path) }
            let overhead = Int64(opened.dataFiles.count) * CapacityLedger.fileOverhead
            #expect(opened.store.ledger.dataSize >= opened.dataBytes)
            #expect(opened.store.ledger.dataSize <= opened.dataBytes + overhead)
            opened = try opened.reopened()
        }
        opened.evict(.max)
        #expect(opened.dataFiles.isEmpty)
        #expect(opened.store.ledger.dataSize == 0)
    }

    /// Every other chunk: the file system has to list each run of blocks.
    @Test func listOfAFragmentedFilesPartsIsCounted() throws {
        let opened = try OpenStore()
        let media = Media(seed: 1, size: 4000 * 4096)
        let generation = try opened.make("a", length: media.size)
        for chunk in stride(from: Int64(0), to: 4000, by: 2) {
            try opened.fill(generation, media, chunk * 4096..<(chunk + 1) * 4096)
        }
        opened.checkpoint()
        #expect(opened.store.ledger.dataSize >= opened.dataBytes)
    }

    /// Writers, readers and the evictor at once, in a cache that holds a third of what they want: whoever has a lease
    /// reads the right bytes, and the limit holds.
    @Test func readersUnderEvictionNeverSeeAHole() throws {
        let seed = SplitMix64.forTest("readersUnderEvictionNeverSeeAHole")
        let opened = try OpenStore(maxSize: 16_000_000, geometry: ChunkGeometry(chunkSize: 16 << 10)!)
        let media = (0..<4).map { Media(seed: UInt64($0), size: 10_000_000 + Int64($0)) }
        let generations = try media.indices.map { try opened.make("\($0)", length: media[$0].size) }
        let reads = try concurrently(8) { thread -> Int in
            var random = seed
            for _ in 0...thread { _ = random.next() }
            var read = 0
            for _ in 0..<300 {
                let index = media.indices.randomElement(using: &random)!
                // Each does both: threads that only read are through before the first bytes, where others start late.
                if Bool.random(using: &random) {
                    try Self.write(opened, generations[index], media[index], &random)
                } else {
                    read += try Self.read(generations[index], media[index], &random)
                }
                guard opened.store.ledger.size <= 16_000_000 else { throw Unexpected("the limit is exceeded") }
            }
            return read
        }
        #expect(reads.reduce(0, +) > 0)
        #expect(opened.metrics.evictedExtents.value > 0)
        opened.checkpoint()
        for (generation, media) in zip(generations, media) { #expect(try generation.firstWrongChunk(media) == nil) }
        #expect(opened.metrics.errors.values.isEmpty)
    }

    private static func write(_ opened: OpenStore, _ generation: Generation, _ media: Media, _ random: inout SplitMix64)
        throws
    {
        let chunk = Int.random(in: 0..<generation.geometry.chunkCount(length: media.size), using: &random)
        let writer = ChunkWriter(
            generation, at: generation.geometry.chunkStart(chunk), stopsAtPresent: false, in: opened.store)
        switch writer.append(media, Int.random(in: 1...500_000, using: &random)) {
        case .noRoom: _ = try opened.makeRoom()
        case .failed(let error): throw error
        case .taken, .met: break
        }
    }

    /// - Returns: how many bytes it found.
    private static func read(_ generation: Generation, _ media: Media, _ random: inout SplitMix64) throws -> Int {
        var offset = Int64.random(in: 0..<media.size, using: &random)
        let end = min(media.size, offset + 300_000)
        let start = offset
        var lease: ExtentLease?
        while offset < end, case .bytes(let until) = generation.acquire(at: offset, limit: end, lease: &lease) {
            if let difference = media.difference(try generation.fileBytes(offset..<until), from: offset..<until) {
                throw Unexpected(difference)
            }
            offset = until
        }
        return Int(offset - start)
    }

    /// Nobody keeps a generation open for long: loading, closing, filling and evicting meet.
    @Test func generationsThatComeAndGoUnderEvictionHoldTheRightBytes() throws {
        let seed = SplitMix64.forTest("generationsThatComeAndGoUnderEvictionHoldTheRightBytes")
        var opened = try OpenStore(maxSize: 16_000_000, geometry: ChunkGeometry(chunkSize: 16 << 10)!)
        let media = (0..<6).map { Media(seed: UInt64($0), size: 5_000_000 + Int64($0)) }
        for index in media.indices { _ = try opened.make("\(index)", media[index], filling: 0..<16 << 10) }
        opened.checkpoint()
        let store = opened
        // One thread for each resource, as a resource is looked up once at a time, and two that evict.
        _ = try concurrently(8) { thread in
            var random = seed
            for _ in 0...thread { _ = random.next() }
            for _ in 0..<150 {
                guard thread < 6 else {
                    store.evict(Int64.random(in: 1...4_000_000, using: &random))
                    continue
                }
                guard
                    let generation = try store.load("\(thread)")
                        ?? (try? store.make("\(thread)", length: media[thread].size))
                else { continue }
                try Self.write(store, generation, media[thread], &random)
                _ = try Self.read(generation, media[thread], &random)
            }
        }
        #expect(opened.metrics.evictedExtents.value > 0)
        opened = try opened.reopened()
        for (index, media) in media.enumerated() {
            guard let generation = try opened.load("\(index)") else { continue }
            #expect(try generation.firstWrongChunk(media) == nil, "resource \(index)")
        }
    }
}
