import Activity
import CachePolicy
import Synchronization

/// Compares chunks with their checksums, each extent only once however many callers wait for it. On any thread that may
/// wait for the disk.
package final class Verifier: Sendable {
    private let core: StoreCore
    private let readers: BlockingPool
    /// The extents being verified, with the callers that wait.
    private let waiting = Mutex<[Place: [@Sendable () -> Void]]>([:])

    private struct Place: Hashable {
        let generation: GenerationID
        let ordinal: Int
    }

    init(_ core: StoreCore, _ readers: BlockingPool) { (self.core, self.readers) = (core, readers) }

    /// Compares the checksums of an extent's unverified chunks, and drops those that differ. Calls back when done, on a
    /// thread of the store.
    package func verify(_ generation: Generation, extent ordinal: Int, then deliver: @escaping @Sendable () -> Void) {
        let place = Place(generation: generation.id, ordinal: ordinal)
        let isFirst = waiting.withLock { waiting in
            waiting[place, default: []].append(deliver)
            return waiting[place]?.count == 1
        }
        guard isFirst else { return }
        readers.run { [self] in
            verify(generation, extent: ordinal)
            for deliver in waiting.withLock({ $0.removeValue(forKey: place) }) ?? [] { deliver() }
        }
    }

    /// The same on the current thread.
    func verify(_ generation: Generation, extent ordinal: Int) {
        let unverified = generation.withChunks { $0.extents[ordinal].unverified }
        guard !unverified.isEmpty else { return }
        var checksums: [UInt64]?
        // Without checksums, no chunk counts as sound: all are fetched again.
        core.faults.report("read checksums") { () throws(StoreError) in
            checksums = try core.index.rows.generation(generation.id).flatMap { row throws(StoreError) in
                try core.index.rows.extent(ordinal, of: row)?.checksums
            }
        }
        let bad = damaged(unverified, of: generation, extent: ordinal, checksums)
        // Chunks that were fetched again meanwhile are sound.
        let stillBad = bad.intersection(generation.withChunks { $0.extents[ordinal].unverified })
        let dropped = generation.withChunks { $0.endVerification(of: unverified, bad: stillBad, inExtent: ordinal) }
        guard dropped > 0 else { return }
        core.metrics.droppedChunks.add(Int64(dropped))
        core.logger.warning(
            "dropped \(dropped) damaged chunks, which will be fetched again",
            metadata: ["resource": "\(generation.key.text)"])
    }

    /// The chunks whose bytes differ from their checksums or cannot be read.
    func damaged(_ chunks: Presence, of generation: Generation, extent ordinal: Int, _ checksums: [UInt64]?) -> Presence
    {
        let buffer = UnsafeMutableRawBufferPointer.allocate(
            byteCount: Int(generation.geometry.chunkSize), alignment: 4096)
        defer { buffer.deallocate() }
        return Presence(
            chunks.runs.joined().filter { bit in
                !isSound(generation, ordinal * ChunkGeometry.chunksPerExtent + bit, checksums?[bit], buffer)
            })
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
            core.faults.note("read chunks to verify them", error, label: "disk-read")
            return false
        }
    }
}
