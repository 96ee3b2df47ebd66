import CLinux
import Glibc
import Synchronization

/// One generation's bytes: a sparse file and a read-only mapping of it that is kept as long as the file is open.
///
/// The mapping is only handed to the kernel (`sendmsg`), which answers EFAULT where the file shrank under it; this process
/// reads bytes with `pread`.
///
/// `@unchecked Sendable` because descriptor and mapping never change, and the kernel serialises what is done through them.
package final class SparseFile: @unchecked Sendable {
    package let descriptor: Int32
    let path: String
    private let base: UnsafeMutableRawPointer
    private let mappedBytes: Atomic<Int>

    /// Where the length is unknown, so much address space is set aside until it is known (none of it costs memory until it is used).
    private static let unknownLength: Int64 = 64 << 30

    /// No byte beyond this can be served.
    var capacity: Int64 { Int64(mappedBytes.load(ordering: .relaxed)) }

    /// Opens or makes the file.
    /// - Parameter length: the length it will have; nil while unknown.
    convenience init(path: String, length: Int64?, creating: Bool) throws(StoreError) {
        let descriptor = open(path, creating ? O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC : O_RDWR | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw .lastSystemError("open", path) }
        try self.init(descriptor: descriptor, path: path, length: length, creating: creating)
    }

    /// Makes a file in memory, for bytes that must not be kept.
    convenience init(inMemory name: String, length: Int64?) throws(StoreError) {
        let descriptor = memfd_create(name, reel_memfd_cloexec)
        guard descriptor >= 0 else { throw .lastSystemError("memfd_create", name) }
        try self.init(descriptor: descriptor, path: name, length: length, creating: true)
    }

    private init(descriptor: Int32, path: String, length: Int64?, creating: Bool) throws(StoreError) {
        if creating, let length, ftruncate(descriptor, off_t(length)) != 0 {
            let error = StoreError.lastSystemError("ftruncate", path)
            close(descriptor)
            throw error
        }
        let mappedBytes = Int(max(length ?? Self.unknownLength, 1))
        let address = mmap(nil, mappedBytes, PROT_READ, MAP_SHARED | MAP_NORESERVE, descriptor, 0)
        guard let address, address != MAP_FAILED else {
            let error = StoreError.lastSystemError("mmap", path)
            close(descriptor)
            throw error
        }
        self.mappedBytes = Atomic(mappedBytes)
        self.descriptor = descriptor
        self.path = path
        base = address
    }

    deinit {
        munmap(base, mappedBytes.load(ordering: .relaxed))
        close(descriptor)
    }

    /// The mapped bytes of a range, for the kernel only.
    func mapped(_ range: Range<Int64>) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: base + Int(range.lowerBound), count: Int(range.upperBound - range.lowerBound))
    }

    /// Whether a range can be sent without waiting for the disk.
    func isResident(_ range: Range<Int64>) -> Bool {
        // Behind the end of a file that was truncated under us, pages may be resident all the same.
        var info = stat()
        guard fstat(descriptor, &info) == 0, info.st_size >= range.upperBound else { return false }
        let page: Int64 = 4096
        let start = range.lowerBound / page * page
        let pages = Int((range.upperBound - start + page - 1) / page)
        return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: pages) { flags in
            guard mincore(base + Int(start), pages * Int(page), flags.baseAddress!) == 0 else { return true }
            return flags.allSatisfy { $0 & 1 == 1 }
        }
    }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(StoreError) {
        var done = 0
        while done < bytes.count {
            let count = pwrite(descriptor, bytes.baseAddress! + done, bytes.count - done, off_t(offset) + off_t(done))
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { throw .lastSystemError("pwrite", path) }
            done += count
        }
    }

    /// Fills the buffer from `offset`. May wait for the disk.
    /// - Returns: the bytes read; fewer than asked at the end of the file.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(StoreError) -> Int {
        var done = 0
        while done < buffer.count {
            let count = pread(descriptor, buffer.baseAddress! + done, buffer.count - done, off_t(offset) + off_t(done))
            if count < 0 && errno == EINTR { continue }
            guard count >= 0 else { throw .lastSystemError("pread", path) }
            if count == 0 { break }
            done += count
        }
        return done
    }

    /// Brings a range into the page cache. Waits for the disk.
    func warm(_ range: Range<Int64>) throws(StoreError) {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 4096)
        defer { buffer.deallocate() }
        var offset = range.lowerBound
        while offset < range.upperBound {
            let part = UnsafeMutableRawBufferPointer(rebasing: buffer[0..<min(buffer.count, Int(range.upperBound - offset))])
            let count = try read(into: part, at: offset)
            guard count > 0 else { throw .system(operation: "pread", path: path, code: EIO) }
            offset += Int64(count)
        }
    }

    /// Makes what was written durable (data, and what is needed to read it).
    func sync() throws(StoreError) {
        guard fdatasync(descriptor) == 0 else { throw .lastSystemError("fdatasync", path) }
    }

    /// Gives the blocks of a range back to the disk. A range that ends within a block ends with the file: all of that block goes, which the
    /// file system would otherwise only fill with zeros.
    func punchHole(_ range: Range<Int64>) throws(StoreError) {
        let largestBlock: Int64 = 64 << 10
        let isWhole = range.upperBound % CapacityLedger.blockSize == 0
        let end = isWhole ? range.upperBound : (range.upperBound / largestBlock + 1) * largestBlock
        guard fallocate(descriptor, reel_falloc_punch_hole, off_t(range.lowerBound), off_t(end - range.lowerBound)) == 0 else {
            throw .lastSystemError("punch hole in", path)
        }
    }

    /// What the file takes on the disk, its list of parts included.
    var allocatedBytes: Int64 {
        var info = stat()
        return fstat(descriptor, &info) == 0 ? Int64(info.st_blocks) * 512 : 0
    }

    // MARK: The seal

    /// A time of modification that no writing gives: a file that has it is as this store left it.
    private static let sealTime = timespec(tv_sec: 981_173_106, tv_nsec: 0)

    /// Notes that nobody will write to it until it is opened again.
    func seal() {
        var times = (timespec(tv_sec: 0, tv_nsec: reel_utime_omit), Self.sealTime)
        withUnsafePointer(to: &times) { pair in
            // Without a seal its chunks are verified once more, and that is all.
            _ = pair.withMemoryRebound(to: timespec.self, capacity: 2) { futimens(descriptor, $0) }
        }
    }

    /// Whether it is as it was sealed, and as long as it was.
    func isSealed(length: Int64) -> Bool {
        var info = stat()
        return fstat(descriptor, &info) == 0 && info.st_mtim.tv_sec == Self.sealTime.tv_sec && info.st_mtim.tv_nsec == 0 && Int64(info.st_size) == length
    }

    /// Ends the file at its length, once that is known.
    func truncate(to length: Int64) throws(StoreError) {
        let kept = (Int(max(length, 1)) + 4095) / 4096 * 4096, mapped = mappedBytes.load(ordering: .relaxed)
        if kept < mapped, munmap(base + kept, mapped - kept) == 0 { mappedBytes.store(kept, ordering: .relaxed) }
        guard ftruncate(descriptor, off_t(length)) == 0 else { throw .lastSystemError("ftruncate", path) }
    }
}
