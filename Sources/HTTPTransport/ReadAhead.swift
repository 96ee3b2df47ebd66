import Activity
import CachePolicy

/// The bytes that a connection has received and not used yet.
struct ReadAhead {
    private var bytes: [UInt8] = []
    /// The bytes before this index are used.
    private var start = 0

    var count: Int { bytes.count - start }
    var isEmpty: Bool { count == 0 }

    /// What it takes of the bytes in transit; nil if it is empty.
    private var share: ProxyMetrics.Transit.Share?

    /// - Parameter client: who sent the first of them, as it is counted.
    mutating func append(_ more: UnsafeRawBufferPointer, in transit: ProxyMetrics.Transit, for client: IPAddress?) {
        bytes.append(contentsOf: more)
        share = share ?? transit.share(of: client)
        share?.hold(Int64(bytes.capacity))
    }

    func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        bytes.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[start...])) }
    }

    /// Keeps the last `count` bytes. Used bytes are not removed each time, as a sink may take only a few at a
    /// time.
    mutating func keep(last count: Int) {
        start = bytes.count - count
        if count == 0 {
            share = nil
            bytes.removeAll(keepingCapacity: bytes.capacity <= 8192)
            start = 0
        } else if start > bytes.count / 2 {
            bytes.removeFirst(start)
            start = 0
        }
    }
}
