import CachePolicy
import Dispatch
import Foundation
import Metrics

extension CacheStore {
    /// Compares the checksums of an extent's unverified chunks; those that differ are absent afterwards. Calls back when done.
    package func verify(_ generation: Generation, extent ordinal: Int, then deliver: @escaping @Sendable () -> Void) {
        readers.run { [self] in
            verify(generation, extent: ordinal)
            deliver()
        }
    }

    private func verify(_ generation: Generation, extent ordinal: Int) {
        let unverified = generation.state.withLock { $0.extents[ordinal].unverified }
        guard !unverified.isEmpty else { return }
        var checksums: [UInt64] = []
        // Without checksums nothing is sound: it is fetched again.
        report("read checksums") { () throws(StoreError) in checksums = try index.checksums(of: generation.id, ordinal: ordinal) ?? [] }
        var bad = Presence(bits: 0)
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Int(generation.geometry.chunkSize), alignment: 4096)
        defer { buffer.deallocate() }
        for bit in unverified.runs.joined() where !isSound(generation, ordinal * ChunkGeometry.chunksPerExtent + bit, bit < checksums.count ? checksums[bit] : nil, buffer) {
            bad.insert(bit)
        }
        let dropped = generation.endVerification(of: unverified, bad: bad, inExtent: ordinal)
        guard dropped > 0 else { return }
        metrics.droppedChunks.add(Int64(dropped))
        logger.warning("\(dropped) damaged chunks are fetched again", metadata: ["resource": "\(generation.key.text)"])
    }

    /// What cannot be read is not sound either.
    private func isSound(_ generation: Generation, _ chunk: Int, _ checksum: UInt64?, _ buffer: UnsafeMutableRawBufferPointer) -> Bool {
        let bytes = generation.geometry.chunkBytes(chunk, length: generation.length)
        let part = UnsafeMutableRawBufferPointer(rebasing: buffer[0..<Int(bytes.upperBound - bytes.lowerBound)])
        guard let checksum, let count = try? generation.file.read(into: part, at: bytes.lowerBound), count == part.count else { return false }
        return ChunkDigest.of(UnsafeRawBufferPointer(part)) == checksum
    }

    /// Brings a range into memory off the loops. Calls back with whether the disk gave it.
    package func warm(_ generation: Generation, _ range: Range<Int64>, then deliver: @escaping @Sendable (Bool) -> Void) {
        readers.run { [self] in
            do throws(StoreError) {
                try generation.file.warm(range)
                deliver(true)
            } catch {
                logger.error("chunks are dropped, as they cannot be read: \(error)")
                metrics.errors.add("disk-read")
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
