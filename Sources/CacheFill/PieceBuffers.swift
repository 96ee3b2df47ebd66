/// A pool of buffers for the first pieces of responses. Loop-bound.
final class PieceBuffers {
    /// The size of a connection's first read.
    static let size = 64 << 10
    /// The number of spare buffers to keep.
    private static let most = 16

    private var spare: [UnsafeMutableRawBufferPointer] = []

    /// The number of unused buffers.
    var spareCount: Int { spare.count }

    deinit { for buffer in spare { buffer.deallocate() } }

    func take() -> UnsafeMutableRawBufferPointer {
        spare.popLast() ?? .allocate(byteCount: Self.size, alignment: 4096)
    }

    func give(_ buffer: UnsafeMutableRawBufferPointer) {
        if spare.count < Self.most { spare.append(buffer) } else { buffer.deallocate() }
    }
}
