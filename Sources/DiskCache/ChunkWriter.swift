import CachePolicy
import Glibc

/// Fills chunks of a generation in order, from a chunk's start, for one transfer.
///
/// Space is reserved before a chunk's first byte, and its bit is set after its last. Bytes of present chunks are
/// skipped.
///
/// `@unchecked Sendable` because its single user makes the next call only after the last one has returned or delivered.
package final class ChunkWriter: @unchecked Sendable {
    /// The result of a write.
    package enum Outcome: Sendable {
        /// This many bytes were taken: all, unless another writer fills the next chunk.
        case taken(Int)
        /// This many bytes were taken; there is no room for the next chunk. Call `CacheStore.makeRoom`, then try again
        /// with the rest.
        case noRoom(taken: Int)
        /// The next chunk is being filled by another writer, or is present and `stopsAtPresent` is set.
        case met(taken: Int)
        case failed(StoreError)
    }

    package let generation: Generation
    /// The frontier: bytes up to here are in the file.
    package private(set) var position: Int64
    /// Whether to end at the first present chunk rather than skip it.
    private let stopsAtPresent: Bool
    private let store: CacheStore
    private let id: Int
    private let digest = ChunkDigest()
    private var openChunk: Int?
    /// Reserved for the open chunk, and not written yet.
    private var reservedBytes: Int64 = 0
    private var isPassingOver = false
    /// Set if the file could not be listed as unfinished: without that, the next session would not examine it.
    private var refusal: StoreError?

    /// - Parameter offset: the start of a chunk.
    package init(_ generation: Generation, at offset: Int64, stopsAtPresent: Bool, in store: CacheStore) {
        self.generation = generation
        self.stopsAtPresent = stopsAtPresent
        self.store = store
        position = offset
        let isListed: Bool
        (id, isListed) = generation.beginWriting()
        precondition(
            generation.geometry.chunkStart(generation.geometry.chunk(at: offset)) == offset,
            "a writer starts at a chunk")
        if generation.isStored, !isListed {
            do throws(StoreError) { try store.core.files.list([generation.id]) { _ in generation } } catch {
                refusal = error
            }
        }
    }

    /// Whether a write may take long whatever its length, because the file system fills the gap before it with zeros.
    package var fillsGaps: Bool { !store.core.files.keepsHoles }

    deinit {
        close()
        generation.endUse()
    }

    /// Writes the buffer's first bytes on a thread of the store, as large writes wait for the disk. Neither the writer
    /// nor the buffer may be used until it has delivered, on that thread.
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
                case .impossible(let code):
                    return .failed(.system(operation: "write", path: generation.file.path, code: code))
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

    /// Copies a range from another generation; part of it may belong to a chunk in progress there.
    /// - Returns: whether all of it could be copied.
    package func copy(_ range: Range<Int64>, of other: Generation) -> Bool {
        guard !range.isEmpty else { return true }
        return withUnsafeTemporaryAllocation(byteCount: range.count, alignment: 16) { buffer in
            guard (try? other.file.read(into: buffer, at: range.lowerBound)) == range.count,
                case .taken = append(UnsafeRawBufferPointer(buffer))
            else { return false }
            return true
        }
    }

    /// Ends a body of unknown length here, which completes its last chunk.
    package func finish() {
        guard generation.length == nil else { return }
        // In this order: a reader that finds the last chunk present must know where it ends.
        generation.setLength(position)
        if generation.beginning == .text { generation.lookAtBeginning(upTo: position) }
        if let chunk = openChunk, !isPassingOver { complete(chunk) }
        openChunk = nil
        try? generation.file.truncate(to: position)
        // Its chunks are counted: the length is what is new.
        if generation.isStored { store.noteWritten(generation, bytes: 0, isEager: false) }
    }

    /// Gives up an incomplete chunk. Its blocks stay counted until the chunk is filled or evicted.
    package func close() {
        guard let chunk = openChunk else { return }
        openChunk = nil
        returnReservation()
        if !isPassingOver { generation.withChunks { $0.abandon(chunk, by: id) } }
    }

    private enum Opening { case opened, noRoom, met, impossible(Int32) }

    private func openNext() -> Opening {
        let chunk = generation.geometry.chunk(at: position)
        guard generation.geometry.chunkBytes(chunk, length: generation.length).upperBound <= ChunkGeometry.longestBody
        else {
            return .impossible(EFBIG)
        }
        // Nearly all chunks need their own blocks, and no more: these are reserved before anything is asked.
        let blocks = generation.geometry.blockBytes(ofChunk: chunk, length: generation.length)
        var found =
            isPassingOver
            ? generation.withChunks { $0.claim(chunk, by: id) } : claim(chunk, reserving: blocks, isSure: false)
        if case .needsBlocks(let bytes) = found { found = claim(chunk, reserving: bytes, isSure: true) }
        switch found {
        case .claimed:
            isPassingOver = false
        case .present where !stopsAtPresent:
            isPassingOver = true
        case .present, .taken:
            return .met
        case .evicting:
            return .noRoom
        case .needsBlocks(let bytes):
            // A gap that the file system fills with zeros may be more than can ever be had.
            let isGap = bytes > generation.geometry.chunkSize
            return isGap && bytes > store.ledger.attainable(beside: generation.allocated)
                ? .impossible(ENOSPC) : .noRoom
        }
        openChunk = chunk
        return .opened
    }

    /// Claims a chunk with blocks that are reserved for it; without them, if they cannot be had.
    /// - Parameter isSure: whether it needs them.
    private func claim(_ chunk: Int, reserving bytes: Int64, isSure: Bool) -> ChunkTable.ClaimResult {
        let isReserved = !generation.isStored || store.ledger.reserveToWrite(bytes, isSure: isSure)
        let (isClaimed, found) = generation.withChunks { chunks in
            isReserved && chunks.claimWithBlocks(chunk, by: id, bytes: bytes)
                ? (true, .claimed) : (false, chunks.claim(chunk, by: id))
        }
        guard isReserved, generation.isStored else { return found }
        reservedBytes = bytes
        guard !isClaimed else { return found }
        store.ledger.release(bytes)
        returnReservation()
        return found
    }

    private func write(_ part: UnsafeRawBufferPointer, of chunk: Int, endingAt end: Int64) -> StoreError? {
        if position == 0 {
            let isEnough = part.count >= PlaylistKind.sniffedBytes || Int64(part.count) == generation.length
            generation.begins(as: Listing.beginning(part, isEnough: isEnough))
        }
        if !isPassingOver {
            do { try generation.file.write(part, at: position) } catch { return error }
            digest.update(part)
        }
        let start = position
        position += Int64(part.count)
        if start > 0, start < PlaylistKind.sniffedBytes, generation.beginning == .text {
            generation.lookAtBeginning(upTo: position)
        }
        if position == end {
            if !isPassingOver { complete(chunk) }
            openChunk = nil
        } else if !isPassingOver {
            generation.withChunks { $0.advance(id, to: position) }
        }
        return nil
    }

    private func returnReservation() {
        if reservedBytes > 0 { store.ledger.wrote(reservedBytes) }
        reservedBytes = 0
    }

    private func complete(_ chunk: Int) {
        returnReservation()
        let checksum = digest.finish()
        let isEager = generation.state.withLock { state in
            state.chunks.complete(chunk, by: id, checksum: checksum, now: AccessClock.now())
            return state.news.eager > 0
        }
        if generation.isStored {
            store.noteWritten(generation, bytes: generation.geometry.chunkSize, isEager: isEager)
        }
    }
}
