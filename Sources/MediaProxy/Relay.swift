import DiskCache

/// Bytes on their way from one connection to another: one buffer is filled while the other is emptied, so that
/// neither outgrows the bytes in transit.
struct Relay {
    /// In bytes: beyond this, the sender has to wait.
    private static let limit = 256 << 10

    private var filling = StagingBuffer()
    private var emptying = StagingBuffer()
    private var given = 0

    var isFull: Bool { filling.count >= Self.limit }

    /// Whether all bytes have been taken.
    var isEmpty: Bool { filling.isEmpty && emptying.count <= given }

    mutating func append(_ bytes: UnsafeRawBufferPointer) { filling.append(bytes) }

    /// The next bytes; empty if there are none. Valid until the next call.
    mutating func next(limit: Int) -> UnsafeRawBufferPointer {
        emptying.removeFirst(given)
        if emptying.isEmpty { swap(&filling, &emptying) }
        let bytes = UnsafeRawBufferPointer(rebasing: emptying.bytes.prefix(limit))
        given = bytes.count
        return bytes
    }
}
