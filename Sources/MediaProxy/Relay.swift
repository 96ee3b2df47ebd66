import Activity
import CachePolicy
import DiskCache
import HTTPModel

/// Bytes on their way from one connection to another: one buffer is filled while the other is emptied, so that
/// neither outgrows the bytes in transit.
struct Relay {
    /// In bytes, of both buffers: beyond this, or what the bytes in transit leave, the sender has to wait.
    private static let limit: Int64 = 512 << 10
    /// What comes at a time, at least (curl's pieces).
    private static let piece: Int64 = 16 << 10

    private let transit: ProxyMetrics.Transit
    private let client: IPAddress?
    /// nil before the first byte.
    private var share: ProxyMetrics.Transit.Share?

    /// - Parameter client: the address under which its client is counted; nil for a balancer.
    init(in transit: ProxyMetrics.Transit, for client: IPAddress?) { (self.transit, self.client) = (transit, client) }

    private var window: Int64 { min(Self.limit, share?.window ?? Self.limit) }

    /// Whether its sender is paused.
    var isHeld = false
    private var filling = StagingBuffer()
    private var emptying = StagingBuffer()
    private var given = 0

    var isFull: Bool { Int64(filling.count) +| Self.piece > window / 2 } // no trap: half of it

    /// Whether all bytes have been taken.
    var isEmpty: Bool { filling.isEmpty && emptying.count <= given }

    mutating func append(_ bytes: UnsafeRawBufferPointer) {
        filling.append(bytes)
        share = share ?? transit.share(of: client)
        count()
    }

    private func count() { share?.hold(Int64(filling.capacity + emptying.capacity)) }

    /// The next bytes; empty if there are none. Valid until the next call.
    mutating func next(limit: Int) -> UnsafeRawBufferPointer {
        emptying.removeFirst(given)
        if emptying.isEmpty, !filling.isEmpty {
            swap(&filling, &emptying)
            // What is empty keeps its memory while there is enough.
            if window < Self.limit { filling = StagingBuffer() }
            count()
        }
        let bytes = UnsafeRawBufferPointer(rebasing: emptying.bytes.prefix(limit))
        given = bytes.count
        return bytes
    }
}
