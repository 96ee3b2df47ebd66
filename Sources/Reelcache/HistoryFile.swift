import Activity
import DiskCache
import Glibc
import HTTPModel

/// The history of the counters in the cache directory: a header and the slots of `History`, each at its place
/// (`HistorySlot`). The file never grows, and blocks of slots that were not written take no space.
///
/// Slots are written in place, without waiting until they are durable: the death of this process loses nothing that
/// was written, a power cut half a minute. Each slot has a checksum, so that one that was written in part is a gap.
struct HistoryFile: Sendable {
    let path: String

    /// The beginning of the file; the number is that of the format.
    private static let magic = Array("reelcache history 1\n".utf8)
    private static let headerLength = HistorySlot.length
    private static let length = headerLength + History.slotCount * HistorySlot.length

    /// - Parameter directory: the cache directory.
    init(in directory: String) { path = StoreConfiguration.history(in: directory) }

    /// Why the file cannot be used, in words that complete "... cannot be read: ".
    struct Fault: Error {
        let reason: String

        init(_ reason: String) { self.reason = reason }

        /// - Parameter operation: what failed, with `errno`.
        fileprivate static func last(_ operation: String) -> Fault { Fault("\(operation): \(String(errno: errno))") }
    }

    /// Reads all slots. Blocks.
    /// - Returns: the stored periods, and how many slots are damaged; nothing if there is no file.
    /// - Throws: if it is not such a file, or cannot be read.
    func read() throws(Fault) -> (periods: [Int: HistoryPeriod], damaged: Int) {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else {
            if errno == ENOENT { return ([:], 0) }
            throw .last("open")
        }
        defer { close(descriptor) }
        let size = try Self.size(of: descriptor)
        // There was no room for its beginning.
        guard size > 0 else { return ([:], 0) }
        guard size == Self.length else { throw Fault("it has another length") }
        let bytes = try Self.read(descriptor)
        guard bytes.starts(with: Self.magic) else { throw Fault("it does not begin as such a file") }
        var (periods, damaged) = ([Int: HistoryPeriod](), 0)
        for slot in 0..<History.slotCount {
            let offset = Self.offset(of: slot)
            switch HistorySlot.read(bytes[offset..<offset + HistorySlot.length]) {
            case .empty: break
            case .period(let period) where History.fits(period, slot): periods[slot] = period
            case .period, .damaged: damaged += 1
            }
        }
        return (periods, damaged)
    }

    /// Writes slots in place; a new file gets all of them. Blocks.
    /// - Parameter all: the slots of the whole history.
    func write(_ changed: [Int: HistoryPeriod], orAll all: () -> [Int: HistoryPeriod]) throws(Fault) {
        let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600)
        guard descriptor >= 0 else { throw .last("open") }
        defer { close(descriptor) }
        let size = try Self.size(of: descriptor)
        guard size == 0 || size == Self.length else { throw Fault("it has another length") }
        guard size == 0 else { return try Self.write(changed, to: descriptor) }
        do throws(Fault) {
            let header = Self.magic + Array(repeating: 0, count: Self.headerLength - Self.magic.count)
            try Self.write(header, to: descriptor, at: 0)
            try Self.write(all(), to: descriptor)
            guard ftruncate(descriptor, off_t(Self.length)) == 0 else { throw .last("write") }
        } catch {
            // With another length it could not be begun again.
            _ = ftruncate(descriptor, 0)
            throw error
        }
    }

    private static func write(_ periods: [Int: HistoryPeriod], to descriptor: Int32) throws(Fault) {
        for (slot, period) in periods {
            try write(HistorySlot.bytes(period), to: descriptor, at: offset(of: slot))
        }
    }

    /// Renames a file that cannot be used, so that another can take its place.
    func setAside() throws(Fault) {
        guard rename(path, path + ".damaged") == 0 else { throw .last("rename") }
    }

    private static func offset(of slot: Int) -> Int { headerLength + slot * HistorySlot.length }

    private static func size(of descriptor: Int32) throws(Fault) -> Int {
        var info = stat()
        guard fstat(descriptor, &info) == 0 else { throw .last("stat") }
        guard info.st_mode & S_IFMT == S_IFREG else { throw Fault("it is not a plain file") }
        return Int(info.st_size)
    }

    private static func read(_ descriptor: Int32) throws(Fault) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: length), filled = 0
        while filled < length {
            let count = bytes.withUnsafeMutableBytes {
                pread(descriptor, $0.baseAddress! + filled, $0.count - filled, off_t(filled))
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw count == 0 ? Fault("it has become shorter") : .last("read") }
            filled += count
        }
        return bytes
    }

    private static func write(_ bytes: [UInt8], to descriptor: Int32, at offset: Int) throws(Fault) {
        var written = 0
        while written < bytes.count {
            let count = bytes.withUnsafeBytes {
                pwrite(descriptor, $0.baseAddress! + written, $0.count - written, off_t(offset + written))
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw .last("write") }
            written += count
        }
    }
}
