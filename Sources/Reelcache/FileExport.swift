import CLinux
import Foundation
import HTTPModel

/// A file on its way to a place of its own: under no name, or a temporary one, until it is complete.
package struct FileExport {
    /// How the bytes were copied.
    package enum Method: String, Sendable, Encodable {
        /// Both files share their blocks until one is changed.
        case reflink
        /// By the kernel.
        case copyFileRange = "copy_file_range"
        /// Through this process.
        case copy
    }

    private let target: String
    private let replaces: Bool
    private let directory: String
    /// Whether the file may be without a name until it is complete, where the file system can: then nothing is left of it, however this
    /// process ends.
    package var isNameless = true

    /// - Parameter replaces: whether a file that is there is replaced, when the new one is complete.
    /// - Throws: `CacheAccessError` where the target cannot be one.
    package init(to target: String, replaces: Bool) throws {
        self.target = target
        self.replaces = replaces
        directory = Self.directory(of: target)
        let isThere = try Self.replaceable(target) != nil
        guard replaces || !isThere else { throw Self.collision(target) }
        guard access(directory, W_OK | X_OK) == 0 else { throw CacheAccessError("cannot write to \(directory): \(Self.lastError)") }
    }

    private static func collision(_ target: String) -> CacheAccessError {
        CacheAccessError("\(target) is there already: choose another name, or --force to replace it")
    }

    /// What is there under the name of a target, where that may be replaced: a file, or a link to one or to nothing.
    /// - Returns: nil where nothing is there, else the mode that the new file gets; that of a new file for a link to nothing.
    private static func replaceable(_ target: String) throws -> ReplacedMode? {
        // Not even a name for a file, whatever is there.
        if target.utf8.last == UInt8(ascii: "/") { throw CacheAccessError("\(target) is a directory: name a file in it") }
        var info = stat()
        guard lstat(target, &info) == 0 else {
            if errno == ENOENT { return nil }
            throw CacheAccessError("cannot write \(target): \(lastError)")
        }
        if info.st_mode & S_IFMT == S_IFLNK, stat(target, &info) != 0 { return .standard }
        switch info.st_mode & S_IFMT {
        case S_IFREG: return .same(info.st_mode & 0o777)
        case S_IFDIR: throw CacheAccessError("\(target) is a directory: name a file in it")
        default: throw CacheAccessError("\(target) is no regular file: choose another name")
        }
    }

    private enum ReplacedMode {
        case same(mode_t)
        case standard
    }

    private static var lastError: String { String(cString: strerror(errno)) }

    /// Foundation's `deletingLastPathComponent` traps on names of one character.
    private static func directory(of path: String) -> String {
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// Short, however long the target's is.
    private var temporaryName: String { "\(directory)/.reelcache-export-\(getpid())" }

    /// Copies the first `length` bytes of `path`.
    /// - Parameters:
    ///   - isHeld: asked when all is copied: whether it has been one and the same file until then. False leaves nothing.
    ///   - isWanted: told now and then how many are copied; false ends it, and leaves nothing.
    package func run(from path: String, length: Int64, isHeld: () -> Bool = { true }, isWanted: (Int64) -> Bool) throws -> Method {
        let source = open(path, O_RDONLY | O_CLOEXEC)
        guard source >= 0 else { throw CacheAccessError("cannot open \(path): \(Self.lastError)") }
        defer { close(source) }
        let (file, name) = try openTemporary()
        defer {
            close(file)
            if let name { unlink(name) }
        }
        // Before a byte is in it: what is private is never anything else.
        if replaces, case .same(let mode) = try Self.replaceable(target) {
            guard fchmod(file, mode) == 0 else { throw failed() }
        }
        let method = try copy(source, file, length, isWanted)
        guard fsync(file) == 0 else { throw failed() }
        guard isHeld() else { throw CacheAccessError("the proxy ended meanwhile: try again") }
        try publish(file, name)
        return method
    }

    private func failed() -> CacheAccessError { CacheAccessError("cannot write \(target): \(Self.lastError)") }

    /// - Returns: the file, and its name where it has one.
    private func openTemporary() throws -> (Int32, String?) {
        // Without /proc it could not be given a name.
        if isNameless, access("/proc/self/fd", X_OK) == 0 {
            let file = open(directory, reel_o_tmpfile | O_RDWR | O_CLOEXEC, 0o666)
            if file >= 0 { return (file, nil) }
        }
        let name = temporaryName
        unlink(name)
        let file = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o666)
        guard file >= 0 else { throw failed() }
        return (file, name)
    }

    // MARK: Copying

    private func copy(_ source: Int32, _ file: Int32, _ length: Int64, _ isWanted: (Int64) -> Bool) throws -> Method {
        if reel_clone_file(file, source) == 0 {
            guard ftruncate(file, off_t(length)) == 0 else { throw failed() }
            return .reflink
        }
        var done: Int64 = 0
        if try copyInKernel(source, file, length, &done, isWanted) { return .copyFileRange }
        try copyThrough(source, file, length, &done, isWanted)
        return .copy
    }

    private static let stepBytes: Int64 = 32 << 20

    /// - Returns: false where the kernel does not copy between these files; `done` says how far it came.
    private func copyInKernel(_ source: Int32, _ file: Int32, _ length: Int64, _ done: inout Int64, _ isWanted: (Int64) -> Bool) throws -> Bool {
        while done < length {
            guard isWanted(done) else { throw CacheAccessError.interrupted }
            var (from, to) = (off_t(done), off_t(done))
            // no trap: what was copied is at most the length
            let count = copy_file_range(source, &from, file, &to, Int(min(Self.stepBytes, length - done)), 0)
            if count < 0 {
                if errno == EINTR { continue }
                if [EXDEV, EINVAL, ENOSYS, EOPNOTSUPP, EPERM].contains(errno) { return false }
                throw failed()
            }
            // Some file systems say so instead of an error; reading tells whether it is the end.
            if count == 0 { return false }
            done += Int64(count)  // no trap: at most what was asked for
        }
        return true
    }

    private func copyThrough(_ source: Int32, _ file: Int32, _ length: Int64, _ done: inout Int64, _ isWanted: (Int64) -> Bool) throws {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 4096)
        defer { buffer.deallocate() }
        while done < length {
            guard isWanted(done) else { throw CacheAccessError.interrupted }
            // no trap: what was copied is at most the length
            let count = pread(source, buffer.baseAddress, Int(min(Int64(buffer.count), length - done)), off_t(done))
            if count < 0 && errno == EINTR { continue }
            guard count >= 0 else { throw CacheAccessError("cannot read what is cached: \(Self.lastError)") }
            guard count > 0 else { throw CacheAccessError("what is cached has become shorter meanwhile: try again, or reelcache verify --repair") }
            var written = 0
            while written < count {
                let part = pwrite(file, buffer.baseAddress! + written, count - written, off_t(done) + off_t(written))
                if part < 0 && errno == EINTR { continue }
                guard part > 0 else { throw failed() }
                written += part
            }
            done += Int64(count)  // no trap: at most what was asked for
        }
    }

    // MARK: Publishing

    /// Gives the complete file its name, at once.
    private func publish(_ file: Int32, _ name: String?) throws {
        let source = name ?? "/proc/self/fd/\(file)"
        let flags = name == nil ? Int32(AT_SYMLINK_FOLLOW) : 0
        if replaces {
            let named = name ?? temporaryName
            if name == nil {
                unlink(named)
                guard linkat(AT_FDCWD, source, AT_FDCWD, named, flags) == 0 else { throw failed() }
            }
            guard rename(named, target) == 0 else {
                let error = failed()
                unlink(named)
                throw error
            }
        } else if linkat(AT_FDCWD, source, AT_FDCWD, target, flags) != 0 {
            if errno == EEXIST { throw Self.collision(target) }
            // File systems without links have temporary names.
            guard let name, rename(name, target) == 0 else { throw failed() }
        }
        let parent = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        if parent >= 0 {
            fsync(parent)
            close(parent)
        }
    }
}
