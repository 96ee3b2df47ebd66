import Foundation
import HTTPModel

/// Writes a file of its own, which is nameless or has a temporary name until it is complete.
package struct FileExport {
    /// How the bytes were copied.
    package enum Method: String, Sendable, Encodable {
        /// Both files share their blocks until one is changed.
        case reflink
        /// The kernel copied the bytes.
        case copyFileRange = "copy_file_range"
        /// The bytes went through this process.
        case copy
    }

    private let target: String
    private let replaces: Bool
    private let directory: String
    /// Whether the file may be nameless until it is complete, if the file system permits that: then nothing remains
    /// of it if this process ends early.
    package var isNameless = true

    /// - Parameter replaces: whether to replace an existing file, once the new one is complete.
    /// - Throws: `FileError` if the target cannot be a file.
    package init(to target: String, replaces: Bool) throws {
        self.target = target
        self.replaces = replaces
        directory = Self.directory(of: target)
        if let objection = FileNameRule.objection(toPath: target, in: directory) {
            throw FileError("cannot write \(target): \(objection)")
        }
        let isThere = try Self.replaceable(target) != nil
        guard replaces || !isThere else { throw Self.collision(target) }
        guard access(directory, W_OK | X_OK) == 0 else {
            throw FileError("cannot write to \(directory): \(Self.lastError)")
        }
    }

    private static func collision(_ target: String) -> FileError {
        FileError("\(target) exists already: choose another name, or use --force to replace it")
    }

    /// Checks that an existing target may be replaced: a file, or a link to a file or to nothing.
    /// - Returns: nil if the target does not exist; otherwise the mode of the new file, which for a link to nothing
    ///   is the standard one.
    private static func replaceable(_ target: String) throws -> ReplacedMode? {
        // Not the name of a file, whatever exists there.
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
    ///   - isHeld: called after copying: whether the source was held all the time. If false, no file remains.
    ///   - isWanted: called now and then with the number of bytes copied; false aborts, and no file remains.
    package func run(from path: String, length: Int64, isHeld: () -> Bool = { true }, isWanted: (Int64) -> Bool) throws
        -> Method
    {
        try write { file in
            let method = try file.copy(from: path, length: length, isWanted: isWanted)
            guard isHeld() else { throw FileError("the proxy ended meanwhile: try again") }
            return method
        }
    }

    /// Writes a file. It gets its name after `body` has returned.
    package func write<Result>(_ body: (UnfinishedFile) throws -> Result) throws -> Result {
        let file = try UnfinishedFile(in: directory, for: target, isNameless: isNameless)
        // Set before the first byte is written, so that a private file is never readable by others.
        if replaces, case .same(let mode) = try Self.replaceable(target) { try file.setMode(mode) }
        let result = try body(file)
        try file.sync()
        guard try file.publish(as: target, replaces: replaces) else { throw Self.collision(target) }
        return result
    }
}
