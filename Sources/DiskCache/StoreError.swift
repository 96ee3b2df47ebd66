import CachePolicy
import Glibc
import HTTPModel

/// An error of the store. System errors keep operation, path and errno.
package enum StoreError: AdvisedError, Sendable {
    /// The cache directory belongs to another running process.
    case locked(directory: String, owner: CacheOwner?)
    /// A system call failed.
    case system(operation: String, path: String, code: Int32)
    /// The index could not be opened, read or written.
    case index(detail: String)
    /// The index as a whole is damaged; the next start rebuilds it from whatever is still readable.
    case damagedIndex(path: String, detail: String)
    /// A row of the index is damaged.
    case damagedRow(key: CacheKey?, detail: String)
    /// A setting that cannot work.
    case setting(String)
    /// The cache directory cannot be used.
    case directory(String, Advice)
    /// The cache is being closed, and waits for nothing that only reads.
    case closing

    package var reason: String {
        switch self {
        case .locked(let directory, let owner?):
            "the cache \(directory) is in use by process \(owner.pid)\(owner.url.isEmpty ? "" : ", which serves \(owner.url)")"
        case .locked(let directory, nil):
            "the cache \(directory) is in use by another process"
        case .system(let operation, let path, let code):
            "\(operation) \(path): \(String(errno: code))"
        case .index(let detail): "the cache index: \(detail)"
        case .damagedIndex(let path, let detail):
            "the cache index \(path) is damaged (\(detail)); restart to rebuild it from whatever is still readable"
        case .damagedRow(let key, let detail):
            "the cache index has a damaged row for \(key?.text ?? "a resource"): \(detail)"
        case .setting(let detail), .directory(let detail, _): detail
        case .closing: "the cache is being closed"
        }
    }

    package var advice: Advice? {
        switch self {
        case .locked: .stopOwner
        case .directory(_, let advice): advice
        case .system, .index, .damagedIndex, .damagedRow, .setting, .closing: nil
        }
    }

    /// Whether this process, or the machine, has too many files open.
    package var isShortageOfFiles: Bool {
        if case .system(_, _, let code) = self { code == EMFILE || code == ENFILE } else { false }
    }

    /// Whether there was no room.
    package var isShortageOfRoom: Bool { if case .system(_, _, ENOSPC) = self { true } else { false } }

    /// Whether the file system maps no files, or not these.
    package var isUnmappable: Bool {
        if case .system("mmap", _, let code) = self { code == ENODEV || code == EINVAL } else { false }
    }

    /// Whether no more can be mapped, by a limit of the machine or of this process; files are sound.
    package var isShortageOfMemory: Bool {
        if case .system("mmap", _, let code) = self { code == ENOMEM || code == EAGAIN } else { false }
    }

    static func lastSystemError(_ operation: String, _ path: String) -> StoreError {
        .system(operation: operation, path: path, code: errno)
    }
}
