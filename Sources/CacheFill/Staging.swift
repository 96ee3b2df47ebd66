import DiskCache

/// What a transfer has brought and is not written yet. While another thread writes one buffer, the other takes what
/// comes in.
///
///     written ─▶ [ in hand ][ next ] ◀─ received
struct Staging {
    /// To be written next.
    private(set) var next = StagingBuffer()
    /// Empty, for what comes while the other is being written.
    private var spare = StagingBuffer()
    /// Bytes that another thread is writing; nil while none does.
    private var inHand: Int?

    var isWriting: Bool { inHand != nil }

    /// Bytes, those in hand included.
    var count: Int { (inHand ?? 0) + next.count }

    /// Another thread writes what is next; `handedBack` when it has.
    mutating func handOver() -> StagingBuffer {
        let buffer = next
        inHand = buffer.count
        next = spare
        return buffer
    }

    mutating func handedBack() { inHand = nil }

    /// So many bytes of a buffer are written. The others go before what came later.
    mutating func wrote(_ count: Int, of buffer: StagingBuffer) {
        buffer.removeFirst(count)
        guard buffer !== next else { return }
        guard !buffer.isEmpty else { return spare = buffer }
        buffer.append(next.bytes)
        next.removeAll()
        (next, spare) = (buffer, next)
    }

    /// Gives the memory back, where nothing is in it.
    mutating func release() {
        guard !isWriting, next.isEmpty else { return }
        (next, spare) = (StagingBuffer(), StagingBuffer())
    }
}
