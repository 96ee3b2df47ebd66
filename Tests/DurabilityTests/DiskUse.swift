import Foundation

/// What a cache directory takes on the disk, as `du` counts it: data, index, log and all.
enum DiskUse {
    static func bytes(of directory: String) -> Int64 {
        var sum: Int64 = 0
        for name in FileManager.default.enumerator(atPath: directory)?.compactMap({ $0 as? String }) ?? [] {
            var info = stat()
            // Files come and go meanwhile.
            guard lstat("\(directory)/\(name)", &info) == 0, info.st_mode & S_IFMT == S_IFREG else { continue }
            sum += Int64(info.st_blocks) * 512
        }
        return sum
    }

    /// Bytes over the limit at this moment; 0 where it holds.
    ///
    /// The files are looked at one after the other. What was evicted from one behind the look may be in another before
    /// it, and count twice: so it takes three sums in a row that are too much.
    static func overshoot(of directory: String, limit: Int64) -> Int64 {
        var least = Int64.max
        for _ in 0..<3 where least > 0 { least = min(least, max(0, bytes(of: directory) - limit)) }
        return least
    }

    /// Bytes that the disk would still take from a user, as `df` counts them.
    static func free(_ directory: String) -> Int64 {
        var info = statvfs()
        return statvfs(directory, &info) == 0 ? Int64(info.f_bavail) * Int64(info.f_frsize) : 0
    }
}
