import Glibc
import Synchronization

/// A part of a generation's bytes in this process's address space, for as long as this lives. The bytes of a file on
/// the disk are only for the kernel (`sendmsg`), which answers EFAULT where the file shrank under it.
///
/// `@unchecked Sendable` because place and size never change.
package final class MappedBytes: @unchecked Sendable {
    /// Which of the generation's bytes.
    package let range: Range<Int64>
    let base: UnsafeMutableRawPointer
    /// When it was last asked for, by `MappingClock`.
    private let lastUse: Atomic<Int64>

    private init(_ range: Range<Int64>, _ base: UnsafeMutableRawPointer) {
        (self.range, self.base) = (range, base)
        lastUse = Atomic(MappingClock.now())
    }

    /// A part of a file, to be read.
    convenience init(of descriptor: Int32, _ range: Range<Int64>, path: String) throws(StoreError) {
        let address = mmap(nil, range.count, PROT_READ, MAP_SHARED | MAP_NORESERVE, descriptor, off_t(range.lowerBound))
        guard let address, address != MAP_FAILED else { throw .lastSystemError("mmap", path) }
        self.init(range, address)
    }

    /// Memory of its own.
    convenience init(inMemory range: Range<Int64>) throws(StoreError) {
        let address = mmap(nil, range.count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
        guard let address, address != MAP_FAILED else { throw .lastSystemError("mmap", "memory") }
        self.init(range, address)
    }

    deinit { munmap(base, range.count) }

    /// - Parameter part: within `range`.
    package func bytes(_ part: Range<Int64>) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: base + Int(part.lowerBound - range.lowerBound), count: part.count)
    }

    func noteUse() { lastUse.store(MappingClock.now(), ordering: .relaxed) }

    var lastUsed: Int64 { lastUse.load(ordering: .relaxed) }
}

/// Milliseconds that never go back.
enum MappingClock {
    static func now() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC_COARSE, &time)
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }
}

/// Where a generation's bytes are: in a file on the disk, or in memory.
protocol GenerationBytes: AnyObject, Sendable {
    var path: String { get }
    /// nil for what is in memory.
    var descriptor: Int32? { get }
    /// The part around an offset.
    func mapping(at offset: Int64) throws(StoreError) -> MappedBytes
    /// The part around an offset where it is mapped, or was wanted before lately; nil the first time, as a copy of a few
    /// bytes costs less than to map the part for them.
    func mappingOfSecondUse(at offset: Int64) throws(StoreError) -> MappedBytes?
    /// Copies bytes that are in memory, without waiting for the disk.
    /// - Returns: whether all of them were there.
    func readAtOnce(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) -> Bool
    /// Whether a range can be sent without waiting for the disk.
    func isResident(_ range: Range<Int64>) -> Bool
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(StoreError)
    /// - Returns: the bytes read; fewer than asked at the end.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(StoreError) -> Int
    /// Brings a range into memory.
    func warm(_ range: Range<Int64>) throws(StoreError)
    /// Gives the room of a range back.
    func punchHole(_ range: Range<Int64>) throws(StoreError)
    /// Ends it at its length, once that is known.
    func truncate(to length: Int64) throws(StoreError)
    func sync() throws(StoreError)
    var allocatedBytes: Int64 { get }
    func seal()
    /// What of it is mapped and in nobody's hand: each part's last use and size.
    func idleMappings() -> [(lastUse: Int64, bytes: Int64)]
    /// Unmaps what is in nobody's hand and was last used at this time or before.
    func dropMappings(usedUntil time: Int64)
}
