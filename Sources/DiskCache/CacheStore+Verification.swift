import CachePolicy
import Dispatch
import Foundation
import Metrics

extension CacheStore {
    /// An extent that is being verified, once for all who wait for it.
    struct VerifiedExtent: Hashable {
        let generation: GenerationID
        let ordinal: Int
    }

    /// Compares the checksums of an extent's unverified chunks; those that differ are absent afterwards. Calls back
    /// when done.
    package func verify(_ generation: Generation, extent ordinal: Int, then deliver: @escaping @Sendable () -> Void) {
        let place = VerifiedExtent(generation: generation.id, ordinal: ordinal)
        let isFirst = verifications.withLock { verifications in
            verifications[place, default: []].append(deliver)
            return verifications[place]?.count == 1
        }
        guard isFirst else { return }
        readers.run { [self] in
            verify(generation, extent: ordinal)
            for deliver in verifications.withLock({ $0.removeValue(forKey: place) }) ?? [] { deliver() }
        }
    }

    func verify(_ generation: Generation, extent ordinal: Int) {
        let unverified = generation.state.withLock { $0.extents[ordinal].unverified }
        guard !unverified.isEmpty else { return }
        var checksums: [UInt64]?
        // Without checksums nothing is sound: it is fetched again.
        report("read checksums") { () throws(StoreError) in
            checksums = try index.generation(generation.id).flatMap { row throws(StoreError) in
                try index.extent(ordinal, of: row)?.checksums
            }
        }
        let bad = damaged(unverified, of: generation, extent: ordinal, checksums)
        // What was fetched again meanwhile is sound.
        let stillBad = Presence(bits: bad.bits & generation.state.withLock { $0.extents[ordinal].unverified.bits })
        let dropped = generation.endVerification(of: unverified, bad: stillBad, inExtent: ordinal)
        guard dropped > 0 else { return }
        metrics.droppedChunks.add(Int64(dropped))
        logger.warning("\(dropped) damaged chunks are fetched again", metadata: ["resource": "\(generation.key.text)"])
    }

    /// Of an extent's chunks, those whose bytes differ from their checksums or cannot be read.
    func damaged(_ chunks: Presence, of generation: Generation, extent ordinal: Int, _ checksums: [UInt64]?) -> Presence
    {
        let buffer = UnsafeMutableRawBufferPointer.allocate(
            byteCount: Int(generation.geometry.chunkSize), alignment: 4096)
        defer { buffer.deallocate() }
        var bad = Presence(bits: 0)
        for bit in chunks.runs.joined()
        where !isSound(generation, ordinal * ChunkGeometry.chunksPerExtent + bit, checksums?[bit], buffer) {
            bad.insert(bit)
        }
        return bad
    }

    private func isSound(
        _ generation: Generation, _ chunk: Int, _ checksum: UInt64?, _ buffer: UnsafeMutableRawBufferPointer
    ) -> Bool {
        let bytes = generation.geometry.chunkBytes(chunk, length: generation.length)
        let part = UnsafeMutableRawBufferPointer(rebasing: buffer[0..<Int(bytes.upperBound - bytes.lowerBound)])
        do throws(StoreError) {
            let count = try generation.file.read(into: part, at: bytes.lowerBound)
            return count == part.count && ChunkDigest.of(UnsafeRawBufferPointer(part)) == checksum
        } catch {
            reportDisk("read chunks to verify them", error, label: "disk-read")
            return false
        }
    }

    /// Brings a range into memory off the loops. Calls back with whether the disk gave it.
    package func warm(_ generation: Generation, _ range: Range<Int64>, then deliver: @escaping @Sendable (Bool) -> Void)
    {
        readers.run { [self] in
            do throws(StoreError) {
                try generation.file.warm(range)
                deliver(true)
            } catch {
                reportDisk("read chunks, so they are dropped", error, label: "disk-read")
                generation.dropChunks(touching: range)
                deliver(false)
            }
        }
    }
}

extension Generation {
    func endVerification(of verified: Presence, bad: Presence, inExtent ordinal: Int) -> Int {
        let dropped = drop(bad, ofExtent: ordinal)
        state.withLock { state in
            state.extents[ordinal].unverified = Presence(bits: state.extents[ordinal].unverified.bits & ~verified.bits)
            // The next checkpoint tells the index that this extent is verified, and what of it is left.
            state.extents[ordinal].isTouched = true
        }
        return dropped
    }

    /// Chunks that cannot be read are absent from now on.
    package func dropChunks(touching range: Range<Int64>) {
        guard !range.isEmpty else { return }
        let chunks = geometry.chunks(touching: range)
        for ordinal in Set(chunks.map { geometry.extent(ofChunk: $0) }) {
            _ = drop(Presence(bits: geometry.mask(of: chunks, inExtent: ordinal)), ofExtent: ordinal)
        }
    }
}
