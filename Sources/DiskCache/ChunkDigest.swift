import CXXHash

/// The checksum of a chunk (XXH3, 64 bits), computed while its bytes stream in.
struct ChunkDigest: ~Copyable {
    private let state: OpaquePointer

    init() {
        state = XXH3_createState()!
        XXH3_64bits_reset(state)
    }

    deinit { XXH3_freeState(state) }

    func update(_ bytes: UnsafeRawBufferPointer) {
        _ = reel_xxh3_update(state, bytes.baseAddress, bytes.count)
    }

    /// Returns the checksum of all bytes since the last call, and starts over.
    func finish() -> UInt64 {
        defer { XXH3_64bits_reset(state) }
        return XXH3_64bits_digest(state)
    }

    static func of(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
        reel_xxh3(bytes.baseAddress, bytes.count)
    }
}
