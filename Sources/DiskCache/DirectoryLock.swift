import Foundation
import Synchronization

/// The process that owns a cache directory; stored in its `LOCK` file as JSON.
package struct CacheOwner: Codable, Sendable, Equatable {
    package var pid: Int32
    /// The URL of its proxy; empty if it has none.
    package var url: String
    /// Whether it is a command's, which ends with it; nil for false.
    package var isBrief: Bool?
    /// Whether it reads its configuration again on SIGHUP, which ends other processes; nil for false.
    package var reloads: Bool?
    /// The absolute paths at which its proxy looks for its configuration file, the first that exists; nil for none.
    package var configurationFiles: [String]?

    package init(
        pid: Int32, url: String, isBrief: Bool? = nil, reloads: Bool? = nil, configurationFiles: [String]? = nil
    ) {
        (self.pid, self.url, self.isBrief, self.reloads) = (pid, url, isBrief, reloads)
        self.configurationFiles = configurationFiles
    }

    /// Reads who holds a directory's lock; nil if nobody does.
    package static func current(of directory: String) -> CacheOwner? {
        let path = directory + "/LOCK"
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        if flock(descriptor, LOCK_SH | LOCK_NB) == 0 { return nil }
        return read(descriptor)
    }

    /// Whether a directory's lock is held, even if the file does not name the owner yet.
    package static func isThere(in directory: String) -> Bool {
        let descriptor = open(directory + "/LOCK", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        return flock(descriptor, LOCK_SH | LOCK_NB) != 0
    }

    fileprivate static func read(_ descriptor: Int32) -> CacheOwner? {
        // More than any path of a file, escaped.
        var bytes = [UInt8](repeating: 0, count: 1 << 15)
        let count = pread(descriptor, &bytes, bytes.count, 0)
        guard count > 0 else { return nil }
        return try? JSONDecoder().decode(CacheOwner.self, from: Data(bytes[0..<count]))
    }
}

/// The lock of a cache directory (`flock` on `LOCK`): held by one process at a time, and released when that ends.
final class DirectoryLock: Sendable {
    /// nil once released.
    private let descriptor: Mutex<Int32?>
    private let path: String

    init(directory: String) throws(StoreError) {
        path = directory + "/LOCK"
        let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw .lastSystemError("open", path) }
        guard Self.take(descriptor) else {
            let error: StoreError =
                errno == EWOULDBLOCK
                ? .locked(directory: directory, owner: CacheOwner.read(descriptor)) : .lastSystemError("flock", path)
            close(descriptor)
            throw error
        }
        self.descriptor = Mutex(descriptor)
        try write(CacheOwner(pid: getpid(), url: ""))
    }

    deinit { release() }

    /// Tries for a moment: a process that only looks at the lock (`CacheOwner.current`) also holds it briefly.
    private static func take(_ descriptor: Int32) -> Bool {
        for attempt in 0..<20 {
            if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return true }
            guard errno == EWOULDBLOCK else { return false }
            if attempt < 19 { usleep(2000) }
        }
        return false
    }

    /// Whether the lock is still that of the directory: not once somebody has removed that, or moved it away.
    var isInPlace: Bool {
        var (held, found) = (stat(), stat())
        guard let descriptor = descriptor.withLock({ $0 }), fstat(descriptor, &held) == 0 else { return true }
        guard stat(path, &found) == 0 else { return errno != ENOENT && errno != ENOTDIR }
        return (held.st_dev, held.st_ino) == (found.st_dev, found.st_ino)
    }

    func release() {
        descriptor.withLock { descriptor in
            guard let held = descriptor else { return }
            // A program that is being started has the descriptor, too, for a moment.
            flock(held, LOCK_UN)
            close(held)
            descriptor = nil
        }
    }

    /// Writes the owner, for processes that find the lock taken.
    func write(_ owner: CacheOwner) throws(StoreError) {
        guard let data = try? JSONEncoder().encode(owner), let descriptor = descriptor.withLock({ $0 }) else { return }
        let written = data.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, $0.count, 0) }
        guard written == data.count, ftruncate(descriptor, off_t(data.count)) == 0 else {
            throw .lastSystemError("write", path)
        }
    }
}
