import Activity
import CachePolicy
import Glibc
import Synchronization

/// The bytes of a pass-through buffer: in memory, and only as many as have arrived and were not passed yet. They have
/// no descriptor, and limits on files (`RLIMIT_FSIZE`) do not apply.
final class MemoryBytes: GenerationBytes {
    private static let blockSize: Int64 = 1 << 20

    private let blocks = Mutex<[Int64: MappedBytes]>([:])
    /// The bytes that are in memory, in whole pages.
    private let present = Mutex<Range<Int64>>(0..<0)
    private let transit: ProxyMetrics.Transit.Share?

    /// - Parameter transit: what it takes of the bytes in transit.
    init(_ transit: ProxyMetrics.Transit.Share? = nil) { self.transit = transit }

    var path: String { "memory" }
    var descriptor: Int32? { nil }
    var end: Int64 { .max }
    var allocatedBytes: Int64 { blocks.withLock { Int64($0.count) } * Self.blockSize }

    /// - Throws: if the byte was released, as its page would be zeros.
    func mapping(at offset: Int64) throws(StoreError) -> MappedBytes {
        guard offset >= present.withLock({ $0.lowerBound }) else {
            throw .system(operation: "read", path: path, code: ENODATA)
        }
        return try block(offset / Self.blockSize)
    }

    private func block(_ index: Int64) throws(StoreError) -> MappedBytes {
        if let known = blocks.withLock({ $0[index] }) { return known }
        let made = try MappedBytes(inMemory: index * Self.blockSize..<(index + 1) * Self.blockSize)
        return blocks.withLock { blocks in
            if let known = blocks[index] { return known }
            blocks[index] = made
            return made
        }
    }

    func mappingOfSecondUse(at offset: Int64) throws(StoreError) -> MappedBytes? { try mapping(at: offset) }

    func readAtOnce(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) -> Bool { false }

    func isResident(_ range: Range<Int64>) -> Bool { true }

    func warm(_ range: Range<Int64>) {}

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(StoreError) {
        var done = 0
        while done < bytes.count {
            let place = offset + Int64(done), block = try block(place / Self.blockSize)
            let part = UnsafeRawBufferPointer(
                rebasing: bytes[done..<min(bytes.count, done + Int(block.range.upperBound - place))])
            (block.base + Int(place - block.range.lowerBound)).copyMemory(
                from: part.baseAddress!, byteCount: part.count)
            done += part.count
        }
        setPresent {
            let start = $0.isEmpty ? Self.page(offset) : $0.lowerBound
            return start..<max($0.upperBound, Self.page(offset + Int64(done) + Self.pageSize - 1))
        }
    }

    private static let pageSize = Int64(sysconf(Int32(_SC_PAGESIZE)))

    /// The start of the page that contains an offset.
    private static func page(_ offset: Int64) -> Int64 { offset / pageSize * pageSize }

    private func setPresent(_ change: (Range<Int64>) -> Range<Int64>) {
        let count = present.withLock { present in
            present = change(present)
            return present.upperBound - present.lowerBound
        }
        transit?.hold(count)
    }

    func release(before offset: Int64) {
        // Otherwise its blocks are freed soon enough.
        guard let transit, transit.window < Self.wideWindow else { return }
        let former = present.withLock { $0 }
        let free = former.lowerBound..<max(former.lowerBound, min(Self.page(offset), former.upperBound))
        guard free.count >= Self.leastRelease else { return }
        for block in blocks.withLock({ Array($0.values) }) where block.range.overlaps(free) {
            let part = block.range.clamped(to: free)
            madvise(block.base + Int(part.lowerBound - block.range.lowerBound), part.count, MADV_DONTNEED)
        }
        setPresent { max($0.lowerBound, free.upperBound)..<max($0.upperBound, free.upperBound) }
    }

    /// Each call of the kernel has its cost.
    private static let leastRelease = 64 << 10
    private static let wideWindow: Int64 = 2 << 20

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(StoreError) -> Int {
        guard offset >= present.withLock({ $0.lowerBound }) else { return 0 }
        var done = 0
        while done < buffer.count {
            let place = offset + Int64(done)
            guard let block = blocks.withLock({ $0[place / Self.blockSize] }) else { break }
            let part = place..<min(block.range.upperBound, place + Int64(buffer.count - done))
            UnsafeMutableRawBufferPointer(rebasing: buffer[done...]).copyMemory(from: block.bytes(part))
            done += part.count
        }
        return done
    }

    /// Buffers are passed in order: everything before the range has been freed already.
    func punchHole(_ range: Range<Int64>) {
        let passed = blocks.withLock { blocks in
            let passed = blocks.filter { $0.value.range.upperBound <= range.upperBound }
            for index in passed.keys { blocks[index] = nil }
            return passed
        }
        // Unmapped here, outside the lock.
        _ = passed
        setPresent { max($0.lowerBound, range.upperBound)..<max($0.upperBound, range.upperBound) }
    }

    func truncate(to length: Int64) {}
    func sync() {}
    func seal() {}
    func addIdleMappings(to idle: inout [(lastUse: Int64, bytes: Int64)]) {}
    func dropMappings(usedUntil time: Int64) {}
}

extension ChunkGeometry {
    /// Extents of 1 MiB, so that memory is soon freed behind a reader.
    package static let ofBuffers = ChunkGeometry(chunkSize: 16 << 10)!
}
