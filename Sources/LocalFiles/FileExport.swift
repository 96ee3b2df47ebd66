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
    /// Whether the file may be without a name until it is complete, where the file system can: then nothing is left of
    /// it, however this process ends.
    package var isNameless = true

    /// - Parameter replaces: whether a file that is there is replaced, when the new one is complete.
    /// - Throws: `FileError` where the target cannot be one.
    package init(to target: String, replaces: Bool) throws {
        self.target = target
        self.replaces = replaces
        directory = Self.directory(of: target)
        let isThere = try Self.replaceable(target) != nil
        guard replaces || !isThere else { throw Self.collision(target) }
        guard access(directory, W_OK | X_OK) == 0 else {
            throw FileError("cannot write to \(directory): \(Self.lastError)")
        }
    }

    private static func collision(_ target: String) -> FileError {
        FileError("\(target) is there already: choose another name, or --force to replace it")
    }

    /// What is there under the name of a target, where that may be replaced: a file, or a link to one or to nothing.
    /// - Returns: nil where nothing is there, else the mode that the new file gets; that of a new file for a link to
    ///   nothing.
    private static func replaceable(_ target: String) throws -> ReplacedMode? {
        // Not even a name for a file, whatever is there.
        if target.utf8.last == UInt8(ascii: "/") {
            throw FileError("\(target) is a directory: name a file in it")
        }
        var info = stat()
        guard lstat(target, &info) == 0 else {
            if errno == ENOENT { return nil }
            throw FileError("cannot write \(target): \(lastError)")
        }
        if info.st_mode & S_IFMT == S_IFLNK, stat(target, &info) != 0 { return .standard }
        switch info.st_mode & S_IFMT {
        case S_IFREG: return .same(info.st_mode & 0o777)
        case S_IFDIR: throw FileError("\(target) is a directory: name a file in it")
        default: throw FileError("\(target) is not a regular file: choose another name")
        }
    }

    private enum ReplacedMode {
        case same(mode_t)
        case standard
    }

    private static var lastError: String { String(errno: errno) }

    /// The directory of a file. Foundation's `deletingLastPathComponent` traps on names of one character.
    package static func directory(of path: String) -> String {
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// Copies the first `length` bytes of `path`.
    /// - Parameters:
    ///   - isHeld: asked when all is copied: whether it has been one and the same file until then. False leaves
    ///     nothing.
    ///   - isWanted: told now and then how many are copied; false ends it, and leaves nothing.
    package func run(from path: String, length: Int64, isHeld: () -> Bool = { true }, isWanted: (Int64) -> Bool) throws
        -> Method
    {
        try write { file in
            let method = try file.copy(from: path, length: length, isWanted: isWanted)
            guard isHeld() else { throw FileError("the proxy ended meanwhile: try again") }
            return method
        }
    }

    /// Puts a file together. It gets its name when `body` has returned.
    package func write<Result>(_ body: (UnfinishedFile) throws -> Result) throws -> Result {
        let file = try UnfinishedFile(in: directory, for: target, isNameless: isNameless)
        // Before a byte is in it: what is private is never anything else.
        if replaces, case .same(let mode) = try Self.replaceable(target) { try file.setMode(mode) }
        let result = try body(file)
        try file.sync()
        guard try file.publish(as: target, replaces: replaces) else { throw Self.collision(target) }
        return result
    }
}
