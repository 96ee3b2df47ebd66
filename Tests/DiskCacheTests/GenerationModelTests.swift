import CachePolicy
import Foundation
import TestSupport
import Testing

@testable import DiskCache

/// A generation under random writers, next to an array of flags that says what it should be.
@Suite struct GenerationModelTests {
    @Test func generationBehavesAsAnArrayOfFlags() throws {
        var random = SplitMix64.forTest("generationBehavesAsAnArrayOfFlags")
        let opened = try OpenStore()
        for round in 0..<40 {
            let length = Int64.random(in: 1...200 * 4096, using: &random)
            let media = Media(seed: UInt64(round), size: length)
            let model = GenerationModel(try opened.make("\(round)", length: length), media, opened.store)
            for _ in 0..<150 {
                model.step(&random)
                try model.compare(&random)
            }
            try model.compareWhole()
        }
        // All of them are closed: nothing is left of the reservations for claims that were abandoned.
        opened.checkpoint()
        let real = opened.dataBytes
        #expect(opened.store.ledger.dataSize >= real)
        #expect(opened.store.ledger.dataSize <= real + Int64(opened.dataFiles.count) * CapacityLedger.fileOverhead)
    }
}

/// One generation, its writers, and what they should have made of it.
private final class GenerationModel {
    struct Claim {
        var chunk: Int
        var frontier: Int64
    }

    /// A writer as the model sees it.
    final class Hand {
        let writer: ChunkWriter
        let stopsAtPresent: Bool
        var position: Int64
        /// The chunk it is in the middle of; `isOurs` where it fills it, else it passes over it.
        var open: (chunk: Int, isOurs: Bool)?

        init(_ writer: ChunkWriter, stopsAtPresent: Bool) {
            self.writer = writer
            self.stopsAtPresent = stopsAtPresent
            position = writer.position
        }
    }

    let generation: Generation
    let media: Media
    let store: CacheStore
    let geometry: ChunkGeometry
    let length: Int64
    var present: [Bool]
    var hands: [Hand] = []

    init(_ generation: Generation, _ media: Media, _ store: CacheStore) {
        self.generation = generation
        self.media = media
        self.store = store
        geometry = generation.geometry
        length = media.size
        present = Array(repeating: false, count: geometry.chunkCount(length: length))
    }

    func step(_ random: inout SplitMix64) {
        switch Int.random(in: 0..<10, using: &random) {
        case 0, 1: begin(&random)
        case 2 where !hands.isEmpty: abandon(Int.random(in: hands.indices, using: &random))
        default:
            guard let hand = hands.randomElement(using: &random) else { return begin(&random) }
            append(Int.random(in: 0...[100, 5000, 40_000].randomElement(using: &random)!, using: &random), to: hand)
        }
    }

    private func begin(_ random: inout SplitMix64) {
        guard hands.count < 5 else { return abandon(0) }
        let stopsAtPresent = Bool.random(using: &random)
        let start = geometry.chunkStart(Int.random(in: present.indices, using: &random))
        hands.append(
            Hand(
                ChunkWriter(generation, at: start, stopsAtPresent: stopsAtPresent, in: store),
                stopsAtPresent: stopsAtPresent))
    }

    private func abandon(_ index: Int) {
        let hand = hands.remove(at: index)
        hand.writer.close()
    }

    private func append(_ count: Int, to hand: Hand) {
        let bytes = media.bytes(hand.position..<hand.position + Int64(count))
        let outcome = bytes.withUnsafeBytes { hand.writer.append($0) }
        #expect(Taken(outcome) == expectedAppend(count, hand))
        #expect(hand.writer.position == hand.position)
    }

    private func expectedAppend(_ count: Int, _ hand: Hand) -> Taken {
        var taken = 0
        while taken < count {
            if hand.open == nil {
                let chunk = geometry.chunk(at: hand.position)
                guard hand.position < length, !claims.contains(where: { $0.chunk == chunk }) else { return .met(taken) }
                if present[chunk] && hand.stopsAtPresent { return .met(taken) }
                hand.open = (chunk, isOurs: !present[chunk])
            }
            let (chunk, isOurs) = hand.open!
            let end = geometry.chunkBytes(chunk, length: length).upperBound
            let part = min(count - taken, Int(end - hand.position))
            hand.position += Int64(part)
            taken += part
            guard hand.position == end else { continue }
            if isOurs { present[chunk] = true }
            hand.open = nil
        }
        return .taken(taken)
    }

    /// Chunks that are being filled, and up to where.
    private var claims: [Claim] {
        hands.compactMap { hand in
            guard let open = hand.open, open.isOurs else { return nil }
            return Claim(chunk: open.chunk, frontier: hand.position)
        }
    }

    // MARK: Comparing

    func compare(_ random: inout SplitMix64) throws {
        #expect(generation.chunks.absentCount == present.count { !$0 })
        #expect(generation.isComplete == present.allSatisfy { $0 })
        let start = Int64.random(in: 0..<length, using: &random)
        let range = start..<Int64.random(in: start + 1...length, using: &random)
        #expect(generation.coverage(of: range) == coverage(range), "\(range)")
        #expect(generation.gap(in: range) == gap(range), "\(range)")
        try acquire(Int64.random(in: 0..<length, using: &random), limit: range.upperBound)
        // Where it is most likely to matter: around what is being written.
        for claim in claims {
            for offset in [claim.frontier - 1, claim.frontier] where offset >= 0 && offset < length {
                try acquire(offset, limit: length)
            }
        }
    }

    func compareWhole() throws {
        #expect(present.indices.map(generation.isPresent) == present)
        #expect(try generation.firstWrongChunk(media) == nil)
        for hand in hands { hand.writer.close() }
        hands = []
        #expect(!generation.chunks.isLeased)
        #expect(!generation.chunks.hasClaims)
    }

    private func acquire(_ offset: Int64, limit: Int64) throws {
        guard offset < limit else { return }
        var lease: ExtentLease?
        let found = generation.acquire(at: offset, limit: limit, lease: &lease)
        let end = readableEnd(offset)
        #expect(found == (end > offset ? .bytes(until: min(end, limit)) : .absent), "offset \(offset), limit \(limit)")
        if case .bytes(let until) = found {
            let ordinal = geometry.extent(at: offset)
            #expect(lease?.ordinal == ordinal)
            #expect(generation.leases(ordinal) == 1 + claims.count { geometry.extent(ofChunk: $0.chunk) == ordinal })
            #expect(media.difference(try generation.fileBytes(offset..<until), from: offset..<until) == nil)
        } else {
            #expect(lease?.ordinal == nil)
        }
    }

    /// Up to where bytes can be read from `offset` on: to the end of its run of present chunks, inside its extent, or
    /// to a frontier.
    private func readableEnd(_ offset: Int64) -> Int64 {
        let chunk = geometry.chunk(at: offset)
        guard present[chunk] else {
            return claims.first { $0.chunk == chunk && $0.frontier > offset }?.frontier ?? offset
        }
        let extentEnd = (geometry.extent(ofChunk: chunk) + 1) * ChunkGeometry.chunksPerExtent
        let end = (chunk..<min(extentEnd, present.count)).first { !present[$0] } ?? min(extentEnd, present.count)
        return min(geometry.chunkStart(end), length)
    }

    private func coverage(_ range: Range<Int64>) -> Generation.Coverage {
        let part = present[geometry.chunks(touching: range)]
        return part.allSatisfy { $0 } ? .whole : part.contains(true) ? .part : .none
    }

    private func gap(_ range: Range<Int64>) -> Range<Int64>? {
        let chunks = geometry.chunks(touching: range)
        guard let first = chunks.first(where: { !present[$0] }) else { return nil }
        let end = chunks[first...].first { present[$0] } ?? chunks.upperBound
        return geometry.chunkStart(first)..<min(geometry.chunkStart(end), length)
    }
}
