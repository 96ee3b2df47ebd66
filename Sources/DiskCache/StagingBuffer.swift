import Glibc

/// Bytes on their way to a `ChunkWriter`. It keeps its storage when it is emptied: freeing and allocating large buffers
/// costs more than copying the bytes.
///
/// `@unchecked Sendable` because it has one user at a time: the one that fills it, or the writer until it has
/// delivered.
package final class StagingBuffer: @unchecked Sendable {
    /// What comes before the first write is one allocation.
    private static let leastBytes = 64 << 10

    // Unchecked: no method of it calls out, so that no use of these overlaps another. Each piece that curl delivers
    // would be checked for that again and again.
    @exclusivity(unchecked) private var storage = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    @exclusivity(unchecked) private var start = 0
    @exclusivity(unchecked) private var size = 0

    package init() {}

    deinit { free(storage.baseAddress) }

    // No stored property: each access of another module to one would be checked for another at the same time.
    package var count: Int { size }
    package var isEmpty: Bool { size == 0 }

    /// The bytes of memory that it takes.
    package var capacity: Int { storage.count }

    /// Valid until the next change.
    package var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: storage[start..<start + size]) }

    package func append(_ bytes: UnsafeRawBufferPointer) {
        guard !bytes.isEmpty else { return }
        if start + size + bytes.count > storage.count { grow(by: bytes.count) }
        UnsafeMutableRawBufferPointer(rebasing: storage[(start + size)...]).copyMemory(from: bytes)
        size += bytes.count
    }

    package func removeFirst(_ count: Int) {
        size -= count
        start = isEmpty ? 0 : start + count
    }

    package func removeAll() { (start, size) = (0, 0) }

    private func grow(by more: Int) {
        let capacity = max(start + size + more, 2 * storage.count, Self.leastBytes)
        guard let start = realloc(storage.baseAddress, capacity) else { fatalError("out of memory") }
        storage = UnsafeMutableRawBufferPointer(start: start, count: capacity)
    }
}
