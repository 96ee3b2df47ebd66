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
    private var writer: ChunkWriter?

    init(_ generation: Generation, lastAccess: Int64, _ store: CacheStore) {
        (self.generation, self.lastAccess, self.store) = (generation, lastAccess, store)
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
                let isRoom = store.queue.sync { $0.evictor.makeRoom(Int64(bytes.count), readBefore: lastAccess) }
                guard isRoom else { return false }
            case .failed(let error): throw error
            }
        }
    }

    func close() {
        writer?.close()
        writer = nil
    }
}
