import CachePolicy
import HTTPModel

/// Writes chunks of an archive into a generation, in order. For a single user.
final class ChunkFill {
    let generation: Generation
    /// Bytes of chunks that were written.
    private(set) var written: Int64 = 0
    private let store: CacheStore
    /// What was read before this time may be evicted for it.
    private let lastAccess: Int64
    /// The bytes that are announced.
    private let expected: Int64
    private var writer: ChunkWriter?
    /// An eviction for each chunk would take too long, and one for all that is announced could be in vain.
    private static let roomAhead: Int64 = 16 << 20
    /// What a chunk may take beside its bytes.
    private static let roomBeside: Int64 = 64 << 10

    init(_ generation: Generation, _ resource: ArchivedResource, _ store: CacheStore) {
        (self.generation, self.store) = (generation, store)
        (lastAccess, expected) = (resource.lastAccess, resource.cached)
    }

    /// - Parameters:
    ///   - bytes: all of the chunk.
    ///   - time: the last read of its extent.
    /// - Returns: false if there is no room.
    func write(_ bytes: UnsafeRawBufferPointer, chunk: Int, lastAccess time: Int64) throws(StoreError) -> Bool {
        let start = generation.geometry.chunkStart(chunk), ordinal = generation.geometry.extent(ofChunk: chunk)
        let former = generation.lastAccess(ofExtent: ordinal)
        if writer?.position != start { writer = store.writer(generation, at: start, stopsAtPresent: false) }
        guard let writer else { return false }
        let isAbsent = !generation.isChunkPresent(chunk)
        while true {
            switch writer.append(bytes) {
            case .taken:
                if isAbsent { written +|= Int64(bytes.count) }
                generation.touch(ordinal, at: max(former, time))
                return true
            case .met:
                // Somebody else fills it.
                close()
                return true
            case .noRoom:
                guard makeRoom(Int64(bytes.count)) else { return false }
            case .failed(let error): throw error
            }
        }
    }

    private func makeRoom(_ bytes: Int64) -> Bool {
        let least = max(bytes, store.ledger.takeRefused()) +| Self.roomBeside,
            ahead = min(Self.roomAhead, expected -| written)
        return store.queue.sync { work in
            work.evictor.makeRoom(max(least, ahead), readBefore: lastAccess)
                || work.evictor.makeRoom(least, readBefore: lastAccess)
        }
    }

    func close() {
        writer?.close()
        writer = nil
    }
}
