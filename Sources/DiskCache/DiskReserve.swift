import Glibc
import Synchronization

/// Room on the disk for recording what is removed. Rows go before the bytes that they describe, so that nothing could
/// be freed once somebody else has filled the disk to its last byte.
///
/// A file in the cache directory, which counts with the files beside the data. Can be used from any thread.
final class DiskReserve: Sendable {
    private let directory: String
    /// In bytes.
    private let size: Int64
    private let isThere = Atomic(false)

    /// - Parameter maxSize: of the cache, of which it takes little.
    init(in directory: String, maxSize: Int64) {
        (self.directory, size) = (directory, min(256 << 10, max(0, maxSize) / 64))
    }

    var path: String { directory + "/reserve" }

    /// Sets the room aside, if that leaves as much again.
    func keep() {
        guard !isThere.load(ordering: .relaxed), free >= 2 * size else { return }
        let file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        guard file >= 0 else { return }
        defer { close(file) }
        let isKept = posix_fallocate(file, 0, off_t(size)) == 0
        if !isKept { ftruncate(file, 0) }
        isThere.store(isKept, ordering: .relaxed)
    }

    private var free: Int64 { FileSystem.disk(of: directory)?.free ?? 0 }

    /// Gives the room up where there is no other, until it is kept again: opening a cache writes, too.
    func releaseIfFull() { if free < size { _ = release() } }

    private func release() -> Bool {
        isThere.store(false, ordering: .relaxed)
        return FileSystem.allocatedBytes(path) > 0 && truncate(path, 0) == 0
    }

    /// Runs what frees room on the disk, with this room if there is no other.
    func lend<Value>(to body: () throws(StoreError) -> Value) throws(StoreError) -> Value {
        do throws(StoreError) { return try body() } catch {
            guard error.isShortageOfRoom, release() else { throw error }
            return try body()
        }
    }
}
