import CachePolicy
import Glibc

/// The right to fill chunks of a generation, in order from a chunk's start. One transfer's.
///
/// Space is reserved before a chunk's first byte, and its bit is set after its last. Bytes of chunks that are present
/// already are passed over.
///
/// `@unchecked Sendable` because its one user makes the next call only when the last has returned, or has delivered.
package final class ChunkWriter: @unchecked Sendable {
    /// What became of bytes.
    package enum Outcome: Sendable {
        /// So many were taken: all, unless the writer has reached what another writer is filling.
        case taken(Int)
        /// So many were taken; the next chunk finds no room. `CacheStore.makeRoom`, then try again with the rest.
        case noRoom(taken: Int)
        /// The chunk ahead is being filled by another writer, or is present where `stopsAtPresent`.
        case met(taken: Int)
        case failed(StoreError)
    }

    package let generation: Generation
    /// Up to here bytes are in the file: the frontier.
    package private(set) var position: Int64
    /// Whether to end at the first chunk that is present, rather than pass over it.
    private let stopsAtPresent: Bool
    private let store: CacheStore
    private let id: Int
    private let digest = ChunkDigest()
    private var openChunk: Int?
    /// Reserved for it, and not yet written.
    private var reservedBytes: Int64 = 0
    private var isPassingOver = false
    /// Nothing may be written that the next session would not look for.
    private var refusal: StoreError?

    /// - Parameter offset: the start of a chunk.
    init(_ generation: Generation, at offset: Int64, stopsAtPresent: Bool, store: CacheStore) {
        self.generation = generation
        self.stopsAtPresent = stopsAtPresent
        self.store = store
        position = offset
        id = generation.beginWriting()
        precondition(
            generation.geometry.chunkStart(generation.geometry.chunk(at: offset)) == offset,
            "a writer starts at a chunk")
        if generation.isStored, !generation.isListed {
            do throws(StoreError) { try store.core.files.list([generation.id]) { _ in generation } } catch {
                refusal = error
            }
        }
    }

    deinit {
        close()
        generation.endUse()
    }

    /// Writes the buffer's first bytes on a thread of the store's, as the disk makes large writes wait. The writer and
    /// the buffer are not to be touched before it has delivered, there.
    package func append(_ buffer: StagingBuffer, count: Int, then deliver: @escaping @Sendable (Outcome) -> Void) {
        store.writers.run { deliver(self.append(UnsafeRawBufferPointer(rebasing: buffer.bytes[..<count]))) }
    }

    package func append(_ bytes: UnsafeRawBufferPointer) -> Outcome {
        if let refusal { return .failed(refusal) }
        var taken = 0
        while taken < bytes.count {
            if openChunk == nil {
                switch openNext() {
                case .opened: break
                case .noRoom: return .noRoom(taken: taken)
                case .met: return .met(taken: taken)
                case .tooLong: return .failed(.system(operation: "write", path: generation.file.path, code: EFBIG))
                }
            }
            let chunk = openChunk!
            let end = generation.geometry.chunkBytes(chunk, length: generation.length).upperBound
            let part = UnsafeRawBufferPointer(rebasing: bytes[taken..<min(bytes.count, taken + Int(end - position))])
            guard !part.isEmpty else { return .met(taken: taken) }
            if let error = write(part, of: chunk, endingAt: end) { return .failed(error) }
            taken += part.count
        }
        return .taken(taken)
    }

    /// Appends what another generation has in a range, part of which may be of a chunk in progress.
    /// - Returns: whether all of it is there.
    package func copy(_ range: Range<Int64>, of other: Generation) -> Bool {
        guard !range.isEmpty else { return true }
        return withUnsafeTemporaryAllocation(byteCount: range.count, alignment: 16) { buffer in
            guard (try? other.file.read(into: buffer, at: range.lowerBound)) == range.count,
                case .taken = append(UnsafeRawBufferPointer(buffer))
            else { return false }
            return true
        }
    }

    /// The body ended here: the length is known now, and the last chunk is whole.
    package func finish() {
        guard generation.length == nil else { return }
        // In this order: a reader that finds the last chunk present must know where it ends.
        generation.setLength(position)
        if let chunk = openChunk, !isPassingOver { complete(chunk) }
        openChunk = nil
        try? generation.file.truncate(to: position)
        if generation.isStored { store.noteWritten(generation, bytes: 0) }
    }

    /// Gives up what is not complete. Its blocks stay, and are counted, until the chunk is filled or evicted.
    package func close() {
        guard let chunk = openChunk else { return }
        openChunk = nil
        settleReservation()
        if !isPassingOver { generation.abandon(chunk, by: id) }
    }

    private enum Opening { case opened, noRoom, met, tooLong }

    private func openNext() -> Opening {
        let chunk = generation.geometry.chunk(at: position)
        guard generation.geometry.chunkBytes(chunk, length: generation.length).upperBound <= Generation.longest else {
            return .tooLong
        }
        switch generation.claim(chunk, by: id) {
        case .claimed:
            isPassingOver = false
        case .present where !stopsAtPresent:
            isPassingOver = true
        case .present, .taken:
            return .met
        case .evicting:
            return .noRoom
        case .needsBlocks(let bytes):
            guard !generation.isStored || store.ledger.reserveToWrite(bytes) else { return .noRoom }
            if generation.isStored { reservedBytes = bytes }
            guard generation.claimWithBlocks(chunk, by: id, bytes: bytes) else {
                if generation.isStored { store.ledger.release(bytes) }
                settleReservation()
                return .noRoom
            }
            isPassingOver = false
        }
        openChunk = chunk
        return .opened
    }

    private func write(_ part: UnsafeRawBufferPointer, of chunk: Int, endingAt end: Int64) -> StoreError? {
        if position == 0, let first = part.first { generation.begins(with: first) }
        if !isPassingOver {
            do { try generation.file.write(part, at: position) } catch { return error }
            digest.update(part)
        }
        position += Int64(part.count)
        if position == end {
            if !isPassingOver { complete(chunk) }
            openChunk = nil
        } else if !isPassingOver {
            generation.advance(id, to: position)
        }
        return nil
    }

    private func settleReservation() {
        if reservedBytes > 0 { store.ledger.wrote(reservedBytes) }
        reservedBytes = 0
    }

    private func complete(_ chunk: Int) {
        settleReservation()
        generation.complete(chunk, by: id, checksum: digest.finish())
        if generation.isStored { store.noteWritten(generation, bytes: generation.geometry.chunkSize) }
    }
}
