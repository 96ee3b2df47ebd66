import CachePolicy
import Glibc
import Synchronization

/// A mapping of a part of a generation's bytes, for as long as this value lives. Bytes of a file on disk are only for
/// the kernel (`sendmsg`), which answers EFAULT if the file has shrunk.
///
/// `@unchecked Sendable` because address and size never change.
package final class MappedBytes: @unchecked Sendable {
    /// The mapped range of the generation.
    package let range: Range<Int64>
    let base: UnsafeMutableRawPointer
    private let isOnHeap: Bool
    /// When it was last requested, by `now`.
    private let lastUse: Atomic<Int64>

    private init(_ range: Range<Int64>, _ base: UnsafeMutableRawPointer, isOnHeap: Bool = false) {
        (self.range, self.base, self.isOnHeap) = (range, base, isOnHeap)
        lastUse = Atomic(Self.now())
    }

    /// Maps a part of a file for reading.
    convenience init(of descriptor: Int32, _ range: Range<Int64>, path: String) throws(StoreError) {
        let address = mmap(nil, range.count, PROT_READ, MAP_SHARED | MAP_NORESERVE, descriptor, off_t(range.lowerBound))
        guard let address, address != MAP_FAILED else { throw .lastSystemError("mmap", path) }
        self.init(range, address)
    }

    /// Maps anonymous memory.
    convenience init(inMemory range: Range<Int64>) throws(StoreError) {
        let address = mmap(nil, range.count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
        guard let address, address != MAP_FAILED else { throw .lastSystemError("mmap", "memory") }
        self.init(range, address)
    }

    /// Allocates memory for as much of a range as takes no mapping of its own.
    convenience init(onHeap range: Range<Int64>) {
        let part = range.prefix(64 << 10)
        self.init(part, .allocate(byteCount: part.count, alignment: 16), isOnHeap: true)
    }

    deinit { if isOnHeap { base.deallocate() } else { munmap(base, range.count) } }

    /// - Parameter part: within `range`.
    package func bytes(_ part: Range<Int64>) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: base + Int(part.lowerBound - range.lowerBound), count: part.count)
    }

    /// A monotonic clock in milliseconds.
    static func now() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC_COARSE, &time)
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }

    func noteUse() { lastUse.store(Self.now(), ordering: .relaxed) }

    var lastUsed: Int64 { lastUse.load(ordering: .relaxed) }
}

/// The bytes of a generation, in a file on disk or in memory.
package protocol GenerationBytes: AnyObject, Sendable {
    var path: String { get }
    /// nil for bytes in memory.
    var descriptor: Int32? { get }
    /// The mapping around an offset.
    func mapping(at offset: Int64) throws(StoreError) -> MappedBytes
    /// The mapping around an offset if it exists, or if bytes there were wanted before; nil the first time, as copying
    /// a few bytes is cheaper than mapping.
    func mappingOfSecondUse(at offset: Int64) throws(StoreError) -> MappedBytes?
    /// Copies bytes that are in memory, without waiting for the disk.
    /// - Returns: whether all of them were.
    func readAtOnce(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) -> Bool
    /// Where the bytes end at present; what is read from a mapping beyond it is zeros, or an error.
    var end: Int64 { get }
    /// Whether a range can be sent without waiting for the disk.
    func isResident(_ range: Range<Int64>) -> Bool
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(StoreError)
    /// - Returns: the number of bytes read; less than the buffer's size at the end.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(StoreError) -> Int
    /// Reads a range into memory.
    func warm(_ range: Range<Int64>) throws(StoreError)
    /// Frees the memory of bytes that all have passed, before its extent is.
    func release(before offset: Int64)
    /// Frees the blocks of a range.
    func punchHole(_ range: Range<Int64>) throws(StoreError)
    /// Cuts it off at its length, once that is known.
    func truncate(to length: Int64) throws(StoreError)
    func sync() throws(StoreError)
    var allocatedBytes: Int64 { get }
    func seal()
    /// Adds unused mappings, with their last use and size.
    func addIdleMappings(to idle: inout [(lastUse: Int64, bytes: Int64)])
    /// Drops unused mappings that were last used at this time or before.
    func dropMappings(usedUntil time: Int64)
}

extension GenerationBytes {
    func release(before offset: Int64) {}

    /// What the first bytes tell; unknown if they cannot be read, which whoever reads them meets, too. May wait for the
    /// disk.
    /// - Parameters:
    ///   - end: the end of those that are there.
    ///   - isAll: whether there are no more.
    func beginning(upTo end: Int64, isAll: Bool) -> Listing.Beginning {
        let count = Int(min(end, Int64(PlaylistKind.sniffedBytes)))
        return withUnsafeTemporaryAllocation(byteCount: count, alignment: 16) { buffer in
            guard (try? read(into: buffer, at: 0)) == count else { return .unknown }
            return Listing.beginning(
                UnsafeRawBufferPointer(buffer), isEnough: isAll || count == PlaylistKind.sniffedBytes)
        }
    }

    /// A copy of bytes in memory, where the file system maps no files. May wait for the disk.
    /// - Returns: only its beginning if there are no more mappings.
    func copy(_ range: Range<Int64>) throws(StoreError) -> MappedBytes {
        let copy = (try? MappedBytes(inMemory: range)) ?? MappedBytes(onHeap: range)
        let buffer = UnsafeMutableRawBufferPointer(start: copy.base, count: copy.range.count)
        guard try read(into: buffer, at: range.lowerBound) == buffer.count else {
            throw .system(operation: "pread", path: path, code: EIO)
        }
        return copy
    }
}
