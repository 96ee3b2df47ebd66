import Foundation
import HTTPModel

/// A directory for the files of finished downloads. Existing files are never overwritten.
package struct FilePlacement: Sendable {
    private let directory: String
    /// See `FileExport.isNameless`.
    package var isNameless = true
    /// What the file system has no names for; nil if it has all.
    package var rule: FileNameRule?

    package struct Placed: Sendable {
        package let path: String
        package let bytes: Int64
        /// nil if an identical file existed already.
        package let method: FileExport.Method?
    }

    /// More files of one name than anyone has.
    private static let maxNumber = 10_000

    /// Creates the directory if it is missing, and its parents.
    /// - Throws: `FileError` if files cannot be created in it.
    package init(directory: String) throws {
        self.directory = directory
        var info = stat()
        if stat(directory, &info) != 0 {
            do { try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true) } catch {
                let reason = ((error as NSError).userInfo[NSUnderlyingErrorKey] as? NSError).map {
                    String(errno: Int32(clamping: $0.code))
                }
                throw FileError(
                    "cannot create the directory \(directory): \(reason ?? error.localizedDescription); name another")
            }
            guard stat(directory, &info) == 0 else {
                throw FileError("cannot write to \(directory): \(Self.lastError); name another directory")
            }
        }
        guard info.st_mode & S_IFMT == S_IFDIR else {
            throw FileError("\(directory) is not a directory: name one")
        }
        guard access(directory, W_OK | X_OK) == 0 else {
            throw FileError("cannot write to \(directory): \(Self.lastError); name another directory")
        }
        rule = FileNameRule(of: directory)
    }

    private static var lastError: String { String(errno: errno) }

    /// Begins a file in the directory.
    /// - Parameter label: its future path, for errors.
    package func begin(for label: String? = nil) throws -> UnfinishedFile {
        try UnfinishedFile(in: directory, for: label ?? "a file in \(directory)", isNameless: isNameless)
    }

    /// Creates a file for a resource, under its name, or the next free numbered name if another file has that one. A
    /// file with the same content counts as this one.
    /// - Parameters:
    ///   - copied: the content, if it was copied before.
    ///   - length: the number of bytes of `source` that are the resource.
    ///   - isHeld: called at the end: whether the source was held all the time.
    ///   - isWanted: called now and then with the number of bytes processed; false aborts with an error, and no file
    ///     remains.
    package func place(
        _ source: String, _ copied: (file: UnfinishedFile, method: FileExport.Method)? = nil, length: Int64,
        as name: SafeFileName,
        isHeld: () -> Bool = { true }, isWanted: (Int64) -> Bool
    ) throws -> Placed {
        let name = rule == nil ? name : name.forWindows
        var copied = copied
        var isSynced = false
        for number in 1...Self.maxNumber {
            let path =
                (directory.hasSuffix("/") ? directory : directory + "/")
                + (number == 1 ? name.description : name.numbered(number))
            if !Self.isThere(path) {
                let (file, method) = try copied ?? copy(source, length, to: path, isWanted)
                copied = (file, method)
                if !isSynced { try file.sync() }
                isSynced = true
                guard isHeld() else { throw FileError("the proxy ended meanwhile: try again") }
                // Another process may have taken the name meanwhile.
                if try file.publish(as: path, replaces: false) {
                    return Placed(path: path, bytes: length, method: method)
                }
            }
            if try isSame(path, source, length, isWanted) {
                guard isHeld() else { throw FileError("the proxy ended meanwhile: try again") }
                return Placed(path: path, bytes: length, method: nil)
            }
        }
        throw FileError(
            "there are \(Self.maxNumber) files named like \(name) in \(directory) already: name another directory")
    }

    private func copy(
        _ source: String, _ length: Int64, to path: String, _ isWanted: (Int64) -> Bool
    ) throws -> (UnfinishedFile, FileExport.Method) {
        let file = try begin(for: path)
        return (file, try file.copy(from: source, length: length, isWanted: isWanted))
    }

    /// Whether a path exists; a link counts, whatever its target.
    private static func isThere(_ path: String) -> Bool {
        var info = stat()
        return lstat(path, &info) == 0
    }

    /// Whether a file has exactly the resource's bytes; false if it cannot be read.
    private func isSame(_ path: String, _ source: String, _ length: Int64, _ isWanted: (Int64) -> Bool) throws -> Bool {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else { return false }
        defer { close(file) }
        var info = stat()
        guard fstat(file, &info) == 0, info.st_mode & S_IFMT == S_IFREG, Int64(info.st_size) == length else {
            return false
        }
        let cached = open(source, O_RDONLY | O_CLOEXEC)
        guard cached >= 0 else { throw FileError("cannot open \(source): \(Self.lastError)") }
        defer { close(cached) }
        return try Self.haveSameBytes(cached, file, length, isWanted)
    }

    private static func haveSameBytes(_ source: Int32, _ file: Int32, _ length: Int64, _ isWanted: (Int64) -> Bool)
        throws -> Bool
    {
        let size = 1 << 20
        let buffers = UnsafeMutableRawBufferPointer.allocate(byteCount: 2 * size, alignment: 4096)
        defer { buffers.deallocate() }
        let (one, other) = (
            UnsafeMutableRawBufferPointer(rebasing: buffers[..<size]),
            UnsafeMutableRawBufferPointer(rebasing: buffers[size...])
        )
        var done: Int64 = 0
        while done < length {
            guard isWanted(done) else { throw FileError.interrupted }
            let count = Int(min(Int64(size), length - done)) // no trap: at most the length was read
            guard fill(one, count, from: source, at: done) else {
                throw FileError("cannot read the cached file: \(lastError)")
            }
            guard fill(other, count, from: file, at: done), memcmp(one.baseAddress!, other.baseAddress!, count) == 0
            else { return false }
            done += Int64(count) // no trap: at most the size of a buffer
        }
        return true
    }

    /// - Returns: false if this many bytes cannot be read.
    private static func fill(_ buffer: UnsafeMutableRawBufferPointer, _ count: Int, from file: Int32, at offset: Int64)
        -> Bool
    {
        var filled = 0
        while filled < count {
            let got = pread(file, buffer.baseAddress! + filled, count - filled, off_t(offset) + off_t(filled))
            if got < 0 && errno == EINTR { continue }
            guard got > 0 else { return false }
            filled += got
        }
        return true
    }
}
