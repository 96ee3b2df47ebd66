import Foundation
import HTTPModel

/// A file to import into a cache, open for reading.
package final class ImportedFile {
    package let path: String
    package let descriptor: Int32
    package let length: Int64
    private let opened: stat

    /// - Throws: `FileError` if it cannot be read, or is not a regular file with content.
    package init(_ path: String) throws {
        self.path = path
        descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            throw FileError("cannot open \(path): \(String(errno: errno))")
        }
        var info = stat()
        let isKnown = fstat(descriptor, &info) == 0
        opened = info
        length = Int64(info.st_size)
        guard isKnown, info.st_mode & S_IFMT == S_IFREG else {
            throw FileError("\(path) is not a regular file: name another")
        }
        guard length > 0 else { throw FileError("\(path) is empty: name another file") }
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    /// Whether the file was written to since it was opened. The bytes read may then belong to neither version.
    package var hasChanged: Bool {
        var info = stat()
        guard fstat(descriptor, &info) == 0 else { return true }
        return info.st_size != opened.st_size || !Self.isSame(info.st_mtim, opened.st_mtim)
            || !Self.isSame(info.st_ctim, opened.st_ctim)
    }

    private static func isSame(_ one: timespec, _ other: timespec) -> Bool {
        one.tv_sec == other.tv_sec && one.tv_nsec == other.tv_nsec
    }

    package var changeError: FileError { FileError("\(path) has changed while it was read: try again") }
}
