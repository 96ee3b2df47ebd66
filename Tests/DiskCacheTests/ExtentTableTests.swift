import CachePolicy
import TestSupport
import Testing

@testable import DiskCache

/// A table of extents beside a plain list of all chunks.
@Suite struct ExtentTableTests {
    private static let extents = 40

    @Test func tableIsWhatAListOfAllChunksWouldBe() {
        var random = SplitMix64.forTest("ExtentTableTests")
        var table = ExtentTable()
        var chunks = [Bool](repeating: false, count: Self.extents * 64)
        for _ in 0..<400 {
            let start = Int.random(in: 0..<chunks.count, using: &random), isPresent = Bool.random(using: &random)
            for chunk in start..<min(chunks.count, start + Int.random(in: 1...300, using: &random)) {
                chunks[chunk] = isPresent
                if isPresent {
                    table[chunk / 64].present.insert(chunk % 64)
                } else {
                    table[chunk / 64].present.remove(chunk % 64)
                }
            }
            #expect(table.ordinals == table.ordinals.sorted() && table.ordinals.count == table.values.count)
            #expect(table.ordinals == (0..<Self.extents).filter { chunks[$0 * 64..<$0 * 64 + 64].contains(true) })
            for _ in 0..<20 {
                let from = Int.random(in: 0..<chunks.count, using: &random),
                    limit = Int.random(in: from...chunks.count, using: &random)
                #expect(
                    table.nextPresent(from: from, limit: limit) == chunks[from..<limit].firstIndex(of: true) ?? limit)
                #expect(
                    table.nextAbsent(from: from, limit: limit) == chunks[from..<limit].firstIndex(of: false) ?? limit)
            }
        }
    }

    @Test func whatIsBlankAgainIsForgotten() {
        var table = ExtentTable()
        table[1 << 30].leases += 1
        #expect(table.ordinals == [1 << 30])
        table[1 << 30].leases -= 1
        #expect(table.ordinals.isEmpty)
        #expect(table[7].present.isEmpty && table.ordinals.isEmpty, "looking leaves nothing")
    }
}

/// What is announced takes nothing: neither memory nor address space.
@Suite struct AnnouncedLengthTests {
    private let media = Media(seed: 8, size: 1 << 20)
    private static let longest = ChunkGeometry.longestBody

    private static var addressSpace: Int64 {
        let text = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)) ?? ""
        return (text.split(separator: " ").first.flatMap { Int64($0) } ?? 0) * 4096
    }

    @Test(arguments: [nil, ChunkGeometry.longestBody]) func manyLongBodiesTakeWhatHasCome(length: Int64?) throws {
        let opened = try OpenStore(geometry: .standard)
        let before = Self.addressSpace
        var generations: [Generation] = []
        for number in 0..<300 {
            let generation = try opened.make("\(number)", length: length)
            try opened.fill(generation, media, 0..<64 << 10)
            #expect(generation.chunks.extents.ordinals == [0])
            #expect(generation.coverage(of: 0..<Self.longest) == .part)
            #expect(generation.gap(in: 0..<Self.longest)?.lowerBound == 64 << 10)
            _ = try generation.file.mapping(at: 0)
            generations.append(generation)
        }
        #expect(Self.addressSpace - before < 8 << 30)
    }

    @Test func offsetFarOutTakesNoTable() throws {
        let opened = try OpenStore(geometry: .standard)
        for length in [nil, Self.longest] {
            let buffer = opened.store.makeBuffer(OpenStore.key("w"), head: OpenStore.head(), length: length)
            let start = Self.longest - (1 << 20)
            let writer = ChunkWriter(buffer, at: start, stopsAtPresent: false, in: opened.store)
            guard case .taken = media.bytes(0..<media.size).withUnsafeBytes({ writer.append($0) }) else {
                throw Unexpected("not taken")
            }
            #expect(buffer.chunks.extents.ordinals.count == 1)
            #expect(buffer.file.allocatedBytes == 1 << 20)
            #expect(try buffer.fileBytes(start..<Self.longest) == media.bytes(0..<media.size))
            var lease: ExtentLease?
            #expect(buffer.acquire(at: start, limit: .max, lease: &lease) == .bytes(until: Self.longest))
            lease = nil
            buffer.discard(below: Self.longest)
            #expect(buffer.file.allocatedBytes == 0 && buffer.chunks.extents.ordinals.isEmpty)
        }
    }
}

/// What was read and is idle does not stay mapped.
@Suite struct MappingTests {
    @Test func idlePartsStayUpTo64MiBForAMinute() {
        let part: Int64 = 4 << 20
        func last(_ uses: [Int64]) -> Int64? { MappedBytes.lastToDrop(uses.map { ($0, part) }, now: 100_000) }
        #expect(last([]) == nil)
        #expect(last([99_000, 60_000, 50_000]) == nil)
        #expect(last([99_000, 40_000]) == 40_000, "idle for a minute")
        #expect(last([99_000, 39_000]) == 40_000)
        let many = (0..<20).map { 90_000 - Int64($0) }
        #expect(last(many) == many[16], "sixteen stay")
        #expect(last((0..<20).map { 99_999 - Int64($0) }) == nil, "what was read just now stays")
    }

    /// The sizes of a generation's unused mappings.
    private func idle(_ generation: Generation) -> [Int64] {
        var idle: [(lastUse: Int64, bytes: Int64)] = []
        generation.file.addIdleMappings(to: &idle)
        return idle.map(\.bytes)
    }

    @Test func partThatIsInNobodysHandIsUnmapped() throws {
        let media = Media(seed: 4, size: 9 << 20)
        let opened = try OpenStore(geometry: .standard)
        let generation = try opened.make("a", media, filling: 0..<media.size)
        let held = try generation.file.mapping(at: 5 << 20)
        _ = try generation.file.mapping(at: 0)
        #expect(held.range == 4 << 20..<8 << 20)
        #expect(idle(generation) == [4 << 20])
        MappedBytes.dropIdle(of: [generation.file], now: MappedBytes.now() + 61_000)
        #expect(idle(generation).isEmpty)
        #expect(media.difference(Array(held.bytes(5 << 20..<6 << 20)), from: 5 << 20..<6 << 20) == nil)
        #expect(media.difference(Array(try generation.file.mapping(at: 0).bytes(0..<1000)), from: 0..<1000) == nil)
    }
}
