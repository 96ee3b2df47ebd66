import DiskCache

/// Received bytes that are not written yet. While another thread writes one buffer, the other takes in what comes.
///
///     written ─▶ [ in hand ][ next ] ◀─ received
struct Staging {
    /// The bytes to write next.
    private(set) var next = StagingBuffer()
    /// Empty; used during a write on another thread.
    private var spare = StagingBuffer()
    /// The number of bytes that another thread is writing; nil if none does.
    private var inHand: Int?

    var isWriting: Bool { inHand != nil }

    /// The number of staged bytes, those in hand included.
    var count: Int { (inHand ?? 0) + next.count }

    /// The bytes of memory that both take.
    var capacity: Int { next.capacity + spare.capacity }

    /// Hands the next buffer to another thread; call `handedBack` when that has written it.
    mutating func handOver() -> StagingBuffer {
        let buffer = next
        inHand = buffer.count
        next = spare
        return buffer
    }

    mutating func handedBack() { inHand = nil }

    /// Removes written bytes from a buffer. Its remaining bytes go before those that came later.
    mutating func wrote(_ count: Int, of buffer: StagingBuffer) {
        buffer.removeFirst(count)
        guard buffer !== next else { return }
        guard !buffer.isEmpty else { return spare = buffer }
        buffer.append(next.bytes)
        next.removeAll()
        (next, spare) = (buffer, next)
    }

    /// Frees the memory, if the buffers are empty.
    mutating func release() {
        guard !isWriting, next.isEmpty else { return }
        (next, spare) = (StagingBuffer(), StagingBuffer())
    }
}
