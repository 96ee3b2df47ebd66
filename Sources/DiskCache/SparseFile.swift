import CLinux
import Glibc
import Synchronization

/// A generation's bytes in a sparse file. Parts are mapped when they are read, and stay mapped for a while for the next
/// reader.
///
/// This process itself reads bytes with `pread`, never from a mapping.
final class SparseFile: GenerationBytes {
    let path: String
    private let file: Int32
    /// nil while unknown.
    private let length: Int64?
    private let parts = Mutex(Mappings())

    /// Parts of 4 MiB, by index.
    private struct Mappings {
        var mapped: [Int64: MappedBytes] = [:]
        /// Parts from which bytes were copied since mappings were last dropped.
        var copied: Set<Int64> = []
    }

    static let mappingSize: Int64 = 4 << 20

    var descriptor: Int32? { file }

    /// Opens or creates the file.
    /// - Parameters:
    ///   - length: its final length; nil while unknown.
    ///   - keepsHoles: whether it may have that length at once, without taking blocks for it.
    init(path: String, length: Int64?, creating: Bool, keepsHoles: Bool = true) throws(StoreError) {
        file = open(path, creating ? O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC : O_RDWR | O_CLOEXEC, 0o600)
        (self.path, self.length) = (path, length)
        guard file >= 0 else { throw .lastSystemError("open", path) }
        if creating, keepsHoles, let length, ftruncate(file, off_t(length)) != 0 {
            throw .lastSystemError("ftruncate", path)
        }
    }

    deinit { if file >= 0 { close(file) } }

    func mapping(at offset: Int64) throws(StoreError) -> MappedBytes {
        let index = offset / Self.mappingSize
        if let known = parts.withLock({ $0.mapped[index] }) {
            known.noteUse()
            return known
        }
        let start = index * Self.mappingSize,
            end = min(start + Self.mappingSize, CapacityLedger.rounded(length ?? .max / 2))
        let made = try MappedBytes(of: file, start..<end, path: path)
        return parts.withLock { parts in
            if let known = parts.mapped[index] { return known }
            parts.mapped[index] = made
            return made
        }
    }

    func mappingOfSecondUse(at offset: Int64) throws(StoreError) -> MappedBytes? {
        let index = offset / Self.mappingSize
        let (known, isFirst) = parts.withLock { parts in
            let known = parts.mapped[index]
            return (known, known == nil && parts.copied.insert(index).inserted)
        }
        guard !isFirst else { return nil }
        known?.noteUse()
        if let known { return known }
        return try mapping(at: offset)
    }

    func readAtOnce(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) -> Bool {
        var vector = iovec(iov_base: buffer.baseAddress, iov_len: buffer.count)
        return preadv2(file, &vector, 1, off_t(offset), reel_rwf_nowait) == buffer.count
    }

    func addIdleMappings(to idle: inout [(lastUse: Int64, bytes: Int64)]) {
        parts.withLock { parts in
            var place = parts.mapped.startIndex
            while place != parts.mapped.endIndex {
                // In place: a second reference to a mapping, or to the table, would make it look used.
                let isIdle = isKnownUniquelyReferenced(&parts.mapped.values[place]), part = parts.mapped[place].value
                if isIdle { idle.append((part.lastUsed, Int64(part.range.count))) } else { part.noteUse() }
                parts.mapped.formIndex(after: &place)
            }
        }
    }

    func dropMappings(usedUntil time: Int64) {
        let dropped = parts.withLock { parts in
            parts.copied = []
            return Array(parts.mapped.keys).compactMap { index -> MappedBytes? in
                guard isKnownUniquelyReferenced(&parts.mapped[index]!), parts.mapped[index]!.lastUsed <= time else {
                    return nil
                }
                return parts.mapped.removeValue(forKey: index)
            }
        }
        // Unmapped here, outside the lock.
        _ = dropped
    }

    /// Whether a range can be sent without waiting for the disk.
    func isResident(_ range: Range<Int64>) -> Bool {
        // Pages beyond the end of a truncated file may be resident nonetheless.
        let fileEnd = end
        guard fileEnd >= range.upperBound else { return false }
        // Where blocks are smaller than pages, mincore(2) calls the page in which the file ends absent for ever.
        let wholePages = fileEnd / Self.pageSize * Self.pageSize
        var offset = range.lowerBound / Self.pageSize * Self.pageSize
        while offset < min(range.upperBound, wholePages) {
            guard let mapping = try? mapping(at: offset) else { return true }
            let pages = (range.upperBound - 1) / Self.pageSize + 1
            let end = min(pages * Self.pageSize, wholePages, mapping.range.upperBound)
            guard Self.isResident(mapping.bytes(offset..<end)) else { return false }
            offset = end
        }
        guard range.upperBound > wholePages else { return true }
        let isAtHand = withUnsafeTemporaryAllocation(byteCount: 1, alignment: 1) {
            readAtOnce(into: $0, at: range.upperBound - 1)
        }
        // A tmpfs cannot read at once; its blocks are pages.
        guard !isAtHand, errno == EOPNOTSUPP, let mapping = try? mapping(at: wholePages) else { return isAtHand }
        return Self.isResident(mapping.bytes(wholePages..<min(wholePages + Self.pageSize, mapping.range.upperBound)))
    }

    private static let pageSize = Int64(getpagesize())

    /// - Parameter bytes: whole pages.
    private static func isResident(_ bytes: UnsafeRawBufferPointer) -> Bool {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: bytes.count / Int(pageSize)) { flags in
            guard mincore(UnsafeMutableRawPointer(mutating: bytes.baseAddress), bytes.count, flags.baseAddress!) == 0
            else { return true }
            return flags.allSatisfy { $0 & 1 == 1 }
        }
    }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(StoreError) {
        var done = 0
        while done < bytes.count {
            let count = pwrite(file, bytes.baseAddress! + done, bytes.count - done, off_t(offset) + off_t(done))
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { throw .lastSystemError("pwrite", path) }
            done += count
        }
    }

    /// Fills the buffer from `offset`. May wait for the disk.
    /// - Returns: the number of bytes read; less than the buffer's size at the end of the file.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(StoreError) -> Int {
        var done = 0
        while done < buffer.count {
            let count = pread(file, buffer.baseAddress! + done, buffer.count - done, off_t(offset) + off_t(done))
            if count < 0 && errno == EINTR { continue }
            guard count >= 0 else { throw .lastSystemError("pread", path) }
            if count == 0 { break }
            done += count
        }
        return done
    }

    /// Reads a range into the page cache. Waits for the disk.
    func warm(_ range: Range<Int64>) throws(StoreError) {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: Int(Self.pageSize))
        defer { buffer.deallocate() }
        var offset = range.lowerBound
        while offset < range.upperBound {
            let part = UnsafeMutableRawBufferPointer(
                rebasing: buffer[0..<min(buffer.count, Int(range.upperBound - offset))])
            let count = try read(into: part, at: offset)
            guard count > 0 else { throw .system(operation: "pread", path: path, code: EIO) }
            offset += Int64(count)
        }
    }

    /// Makes written data durable, with the metadata needed to read it.
    func sync() throws(StoreError) {
        guard fdatasync(file) == 0 else { throw .lastSystemError("fdatasync", path) }
    }

    /// Frees the blocks of a range. A range that ends within a block is the file's last: the whole block is freed,
    /// which the file system would otherwise only fill with zeros.
    func punchHole(_ range: Range<Int64>) throws(StoreError) {
        let largestBlock: Int64 = 64 << 10
        let isWhole = range.upperBound % CapacityLedger.blockSize == 0
        let end = isWhole ? range.upperBound : (range.upperBound / largestBlock + 1) * largestBlock
        guard fallocate(file, reel_falloc_punch_hole, off_t(range.lowerBound), off_t(end - range.lowerBound)) == 0
        else {
            throw .lastSystemError("punch hole in", path)
        }
    }

    /// The file's disk usage, including its list of extents.
    var allocatedBytes: Int64 {
        var info = stat()
        return fstat(file, &info) == 0 ? FileSystem.allocatedBytes(info) : 0
    }

    /// Where the file ends; before its length on a file system that keeps no holes, until it is complete.
    var end: Int64 {
        var info = stat()
        return fstat(file, &info) == 0 ? Int64(info.st_size) : 0
    }

    // MARK: The seal

    /// A modification time that no write produces: a file that has it is as this store left it.
    private static let sealTime = timespec(tv_sec: 981_173_106, tv_nsec: 0)

    /// Marks the file as complete until it is opened for writing again.
    func seal() {
        // Most closed files were only read, and setting the time again would write their inode.
        guard !hasSeal else { return }
        var times = (timespec(tv_sec: 0, tv_nsec: reel_utime_omit), Self.sealTime)
        withUnsafePointer(to: &times) { pair in
            // Without a seal, the only harm is that its chunks are verified once more.
            _ = pair.withMemoryRebound(to: timespec.self, capacity: 2) { futimens(file, $0) }
        }
    }

    /// Whether the seal is intact and the file has its length.
    func isSealed(length: Int64) -> Bool { hasSeal && end == length }

    private var hasSeal: Bool {
        var info = stat()
        return fstat(file, &info) == 0 && info.st_mtim.tv_sec == Self.sealTime.tv_sec && info.st_mtim.tv_nsec == 0
    }

    /// Cuts the file off at its length, once that is known.
    func truncate(to length: Int64) throws(StoreError) {
        guard ftruncate(file, off_t(length)) == 0 else { throw .lastSystemError("ftruncate", path) }
    }
}
