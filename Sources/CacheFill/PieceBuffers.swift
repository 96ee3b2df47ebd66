/// Memory for the first pieces of answers. Loop-bound.
final class PieceBuffers {
    /// As much as a connection asks for first.
    static let size = 64 << 10
    /// So many are kept for the next.
    private static let most = 16

    private var spare: [UnsafeMutableRawBufferPointer] = []

    /// How many nobody uses now.
    var spareCount: Int { spare.count }

    deinit { for buffer in spare { buffer.deallocate() } }

    func take() -> UnsafeMutableRawBufferPointer {
        spare.popLast() ?? .allocate(byteCount: Self.size, alignment: 4096)
    }

    func give(_ buffer: UnsafeMutableRawBufferPointer) {
        if spare.count < Self.most { spare.append(buffer) } else { buffer.deallocate() }
    }
}
