import CLinux
import Glibc
import HTTPModel

/// Calls about files by name.
package enum FileSystem {
    /// What a file takes on the disk; 0 where there is none.
    static func allocatedBytes(_ path: String) -> Int64 {
        var info = stat()
        return stat(path, &info) == 0 ? allocatedBytes(info) : 0
    }

    /// What a file takes. File systems in user space and on the network tell what they like: more than
    /// `Generation.longest` is none that is here.
    static func allocatedBytes(_ info: stat) -> Int64 {
        min(max(0, Int64(info.st_blocks) *| 512), 2 *| Generation.longest)
    }

    static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

    /// Removes a file, if it is there.
    static func remove(_ path: String) throws(StoreError) {
        guard unlink(path) == 0 || errno == ENOENT else { throw .lastSystemError("remove", path) }
    }

    /// Makes a database's files readable for their owner alone, the empty file where there is none: SQLite gives the
    /// ones beside it the same mode. They are not opened, as closing a file gives up the locks that SQLite has on it.
    package static func makePrivateDatabase(_ path: String) throws(StoreError) {
        let descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        if descriptor >= 0 { close(descriptor) }
        guard descriptor >= 0 || errno == EEXIST else { throw .lastSystemError("open", path) }
        for file in IndexDatabase.files(path) { chmod(file, 0o600) }
    }

    static func rename(_ path: String, to other: String) throws(StoreError) {
        guard Glibc.rename(path, other) == 0 else { throw .lastSystemError("rename", path) }
    }

    /// The names in a directory; none where it cannot be read.
    static func entries(_ directory: String) -> [String] {
        guard let stream = opendir(directory) else { return [] }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != "." && name != ".." { names.append(name) }
        }
        return names
    }

    /// How large the disk of a directory is, and what ordinary users may still take of it, in bytes.
    static func disk(of directory: String) -> (size: Int64, free: Int64)? {
        var info = statvfs()
        guard statvfs(directory, &info) == 0 else { return nil }
        return (bytes(info.f_blocks, of: info.f_frsize), bytes(info.f_bavail, of: info.f_frsize))
    }

    /// What so many blocks are; `Int64.max` where that is more.
    static func bytes(_ blocks: UInt, of size: UInt) -> Int64 { Int64(clamping: blocks) *| Int64(clamping: size) }

    /// Makes the names in a directory durable (fsync(2): syncing a file does not promise that).
    static func syncDirectory(_ path: String) throws(StoreError) {
        let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw .lastSystemError("open", path) }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw .lastSystemError("fsync", path) }
    }

    /// Makes all durable that was written to the disk of a directory, by whomever.
    static func syncDisk(of path: String) throws(StoreError) {
        let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw .lastSystemError("open", path) }
        defer { close(descriptor) }
        guard syncfs(descriptor) == 0 else { throw .lastSystemError("syncfs", path) }
    }

    /// Whether holes can be punched into the files of a directory, tried with one of its own.
    static func canPunchHoles(in directory: String) throws(StoreError) -> Bool {
        let path = directory + "/punch-test"
        let descriptor = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw .lastSystemError("open", path) }
        defer {
            close(descriptor)
            unlink(path)
        }
        let block = [UInt8](repeating: 1, count: 8192)
        // A disk that is just full says nothing about it: then they are taken for possible, as nearly everywhere.
        guard pwrite(descriptor, block, block.count, 0) == block.count else { return true }
        return fallocate(descriptor, reel_falloc_punch_hole, 0, 4096) == 0
    }

    /// A number that changes when the machine starts anew; nil where it cannot be told.
    static var boot: Int64? {
        let descriptor = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = Glibc.read(descriptor, &bytes, bytes.count)
        guard count > 0 else { return nil }
        return Int64(bitPattern: bytes[..<count].withUnsafeBytes { ChunkDigest.of($0) })
    }
}
