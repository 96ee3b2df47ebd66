import CLinux
import ControlAPI
import DiskCache
import Foundation
import HTTPModel
import Reelcache

// no traps: constants, and numbers of the system that are clamped.

/// Examines the disk of a cache.
struct DiskLook {
    let directory: DirectoryFacts
    /// nil if the file system cannot be queried.
    let space: SpaceFacts?
    /// Set if a process that was killed has left the index's log; not beside one that runs.
    let log: Finding?
    let sparse: SparseFacts
    /// Tokens with which neither the proxy nor a command starts.
    let tokens: [Finding]

    /// - Parameters:
    ///   - cached: the size of the cache, in bytes, as its proxy reports it: what that has stored last is not in the
    ///     index's file yet. nil to read the file.
    ///   - isOwned: whether a process has the cache.
    init(_ configuration: ProxyConfiguration, cached: Int64?, isOwned: Bool) {
        let path = configuration.cacheDirectory
        let place = Self.place(path)
        // If the cache does not exist yet, the file system that it would be on.
        let existing = if case .missing(let above, _) = place { above } else { path }
        var volume = statvfs()
        let isKnown = statvfs(existing, &volume) == 0
        let kind = FileSystemKind(
            magic: Int64(reel_file_system(existing)) & 0xFFFF_FFFF,
            isReadOnly: isKnown && volume.f_flag & UInt(ST_RDONLY) != 0)
        directory = DirectoryFacts(path: path, place: place, user: geteuid(), fileSystem: kind)
        tokens = [ControlToken.Scope.all, .reading].compactMap { scope in
            guard access("\(path)/\(scope.rawValue)", F_OK) == 0 else { return nil }
            do throws(TokenError) { _ = try ControlToken(of: path, for: scope) } catch {
                return Finding(check: "token", severity: .problem, text: "\(error)", advice: nil)
            }
            return nil
        }
        let logged = isOwned ? 0 : CachedName.logBytes(in: path)
        log =
            logged > 0
            ? .ok(
                "index", "\(ByteSize(bytes: logged)) in its log, as the last proxy was killed; the next start uses them"
            )
            : nil
        space =
            isKnown
            ? SpaceFacts(
                free: Int64(clamping: volume.f_bavail) *| Int64(clamping: volume.f_frsize),
                cached: cached ?? CachedName.bytes(in: path) ?? 0, maxSize: configuration.maxSize,
                minFree: configuration.minFree) : nil
        sparse =
            if case .directory(_, _, isWritable: true) = place {
                SparseTrial.run(in: path)
            } else {
                SparseFacts(
                    holes: .untried("there is no cache yet"), reportsHoles: true,
                    reflinks: .untried("there is no cache yet"))
            }
    }

    private static func place(_ path: String) -> DirectoryFacts.Place {
        var info = stat()
        guard stat(path, &info) == 0 else {
            guard errno == ENOENT else { return .unreachable(String(errno: errno)) }
            let above = nearestDirectory(above: path)
            return .missing(above: above, canBeMade: access(above, W_OK | X_OK) == 0)
        }
        guard info.st_mode & S_IFMT == S_IFDIR else { return .notDirectory }
        return .directory(
            owner: info.st_uid, mode: info.st_mode & 0o7777, isWritable: access(path, R_OK | W_OK | X_OK) == 0)
    }

    private static func nearestDirectory(above path: String) -> String {
        var url = URL(fileURLWithPath: path).deletingLastPathComponent()
        while url.path != "/", access(url.path, F_OK) != 0 { url.deleteLastPathComponent() }
        return url.path
    }
}

extension DiskLook {
    /// Tries the operations that a cache needs on two files of its own. They are unlinked before they have content.
    private enum SparseTrial {
        private static let size = 1 << 20

        static func run(in directory: String) -> SparseFacts {
            guard let file = temporaryFile(directory), let copy = temporaryFile(directory) else {
                let reason = String(errno: errno)
                return SparseFacts(holes: .untried(reason), reportsHoles: true, reflinks: .untried(reason))
            }
            defer { for descriptor in [file, copy] { close(descriptor) } }
            let block = [UInt8](repeating: 1, count: size)
            guard pwrite(file, block, size, 0) == size, fsync(file) == 0 else {
                let reason = "no test file can be written"
                return SparseFacts(holes: .untried(reason), reportsHoles: true, reflinks: .untried(reason))
            }
            let reflinks = reel_clone_file(copy, file) == 0
            let holes = fallocate(file, reel_falloc_punch_hole, 0, off_t(size / 2)) == 0
            return SparseFacts(
                holes: holes ? .works : .refused, reportsHoles: lseek(file, 0, seekData) == off_t(size / 2),
                reflinks: reflinks ? .works : .refused)
        }

        /// Linux's SEEK_DATA, which glibc declares only with _GNU_SOURCE.
        private static let seekData: Int32 = 3

        private static func temporaryFile(_ directory: String) -> Int32? {
            var name = Array((directory + "/doctor-XXXXXX").utf8CString)
            let descriptor = mkostemp(&name, O_CLOEXEC)
            guard descriptor >= 0 else { return nil }
            unlink(name)
            return descriptor
        }
    }
}
