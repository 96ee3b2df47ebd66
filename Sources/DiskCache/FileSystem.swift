import CLinux
import CachePolicy
import Glibc
import HTTPModel

/// Operations on files by name.
package enum FileSystem {
    /// The disk usage of a file; 0 if there is none.
    static func allocatedBytes(_ path: String) -> Int64 {
        var info = stat()
        return stat(path, &info) == 0 ? allocatedBytes(info) : 0
    }

    /// The disk usage of a file. File systems in user space or on the network may report anything, so the result is
    /// bounded: no file here is longer than `ChunkGeometry.longestBody`.
    static func allocatedBytes(_ info: stat) -> Int64 {
        min(max(0, Int64(info.st_blocks) *| 512), 2 *| ChunkGeometry.longestBody)
    }

    static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

    /// Removes a file, if it exists.
    static func remove(_ path: String) throws(StoreError) {
        guard unlink(path) == 0 || errno == ENOENT else { throw .lastSystemError("remove", path) }
    }

    /// Makes the files of a database readable only by their owner, and creates an empty one if there is none: SQLite
    /// gives the files beside it the same mode. Existing files are not opened, because closing one would release
    /// SQLite's locks on it.
    package static func makePrivateDatabase(_ path: String) throws(StoreError) {
        let descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        if descriptor >= 0 { close(descriptor) }
        guard descriptor >= 0 || errno == EEXIST else { throw .lastSystemError("open", path) }
        for file in databaseFiles(path) { chmod(file, 0o600) }
    }

    /// The name by which SQLite opens a database, for this process alone: the cache's lock keeps others away in any
    /// case. Its connections then share ordinary memory rather than a mapped file, which some file systems do not have
    /// (FUSE with `direct_io`, 9p), and others cannot write to when the disk is full (Btrfs: SIGBUS).
    static func databaseName(_ path: String) -> String { databaseName(path, "vfs=unix-excl") }

    /// - Parameter options: parameters of SQLite's URIs.
    static func databaseName(_ path: String, _ options: String) -> String {
        let escaped = path.replacing("%", with: "%25").replacing("?", with: "%3f").replacing("#", with: "%23")
        // Without the two slashes, a path that begins with two would be the name of a host.
        return "file:\(path.hasPrefix("/") ? "//" : "")\(escaped)?\(options)"
    }

    /// The files that SQLite keeps for a database.
    static func databaseFiles(_ path: String) -> [String] { ["", "-wal", "-shm"].map { path + $0 } }

    static func rename(_ path: String, to other: String) throws(StoreError) {
        guard Glibc.rename(path, other) == 0 else { throw .lastSystemError("rename", path) }
    }

    /// The names in a directory; none if it cannot be read.
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

    /// The size of a directory's disk, and the space that ordinary users may still take, in bytes.
    static func disk(of directory: String) -> (size: Int64, free: Int64)? {
        var info = statvfs()
        guard statvfs(directory, &info) == 0 else { return nil }
        return (bytes(info.f_blocks, of: info.f_frsize), bytes(info.f_bavail, of: info.f_frsize))
    }

    /// What the smallest file of a directory's disk takes, in bytes.
    static func blockSize(of directory: String) -> Int64 {
        var info = statvfs()
        return statvfs(directory, &info) == 0 ? Int64(clamping: info.f_frsize) : 0
    }

    /// The size of this many blocks; at most `Int64.max`.
    static func bytes(_ blocks: UInt, of size: UInt) -> Int64 { Int64(clamping: blocks) *| Int64(clamping: size) }

    /// Makes the names in a directory durable; syncing a file does not (fsync(2)).
    static func syncDirectory(_ path: String) throws(StoreError) {
        let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw .lastSystemError("open", path) }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw .lastSystemError("fsync", path) }
    }

    /// Makes everything durable that anybody has written to a directory's disk.
    static func syncDisk(of path: String) throws(StoreError) {
        let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw .lastSystemError("open", path) }
        defer { close(descriptor) }
        guard syncfs(descriptor) == 0 else { throw .lastSystemError("syncfs", path) }
    }

    /// Finds out what becomes of holes in a directory, with a file made for that.
    static func holes(in directory: String) throws(StoreError) -> StoreConfiguration.Holes {
        let path = directory + "/punch-test"
        let descriptor = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw .lastSystemError("open", path) }
        defer {
            close(descriptor)
            unlink(path)
        }
        let block = [UInt8](repeating: 1, count: 8192)
        // On a full disk, what is there to punch is a hole already.
        _ = pwrite(descriptor, block, block.count, 0)
        if fallocate(descriptor, reel_falloc_punch_hole, 0, 4096) == 0 { return .punched }
        // More than nearly any file system's block. A full disk has room for a hole, but none for zeros.
        let hole: Int64 = 1 << 20
        var info = stat()
        guard ftruncate(descriptor, off_t(hole)) == 0 else { return .filled }
        return fstat(descriptor, &info) == 0 && allocatedBytes(info) >= hole ? .filled : .kept
    }

    /// Makes a write beyond the system's limit on the size of files (`ulimit -f`, `LimitFSIZE=`) fail with EFBIG rather
    /// than end the process with SIGXFSZ, unless the program handles that signal.
    static func makeSizeLimitAnError() {
        var action = sigaction()
        guard sigaction(SIGXFSZ, nil, &action) == 0, action.__sigaction_handler.sa_handler == nil else { return }
        signal(SIGXFSZ, SIG_IGN)
    }

    /// That limit, in bytes.
    static var sizeLimit: Int64 {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0 else { return .max }
        return Int64(clamping: limit.rlim_cur)
    }

    /// A number that changes with each boot; nil if it is unknown.
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
