// no traps: places are within the file that is copied, and no further than its length
import CLinux
import Foundation
import HTTPModel
import Synchronization

/// A file that is nameless, or has a temporary name, until it is complete, so that no file that looks complete
/// remains if this process ends early.
package final class UnfinishedFile {
    private let descriptor: Int32
    private let directory: String
    /// Its future path, for errors.
    private let label: String
    /// nil for a nameless file.
    private var temporaryName: String?
    private static let count = Atomic<Int>(0)

    /// - Parameters:
    ///   - label: its future path, for errors.
    ///   - isNameless: whether it may be nameless, if the file system permits that: then nothing at all remains of
    ///     it.
    package init(in directory: String, for label: String, isNameless: Bool = true) throws {
        (self.directory, self.label) = (directory, label)
        // Without /proc it could not be given a name later.
        if isNameless, access("/proc/self/fd", X_OK) == 0 {
            let file = Glibc.open(directory, reel_o_tmpfile | O_RDWR | O_CLOEXEC, 0o666)
            if file >= 0 {
                (descriptor, temporaryName) = (file, nil)
                return
            }
        }
        let name = Self.temporaryName(in: directory)
        unlink(name)
        descriptor = Glibc.open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o666)
        temporaryName = name
        guard descriptor >= 0 else { throw failed() }
    }

    deinit {
        if descriptor >= 0 { close(descriptor) }
        if let temporaryName { unlink(temporaryName) }
    }

    /// Short, whatever the length of the final name.
    private static func temporaryName(in directory: String) -> String {
        "\(directory)/.reelcache-export-\(getpid())-\(count.wrappingAdd(1, ordering: .relaxed).newValue)"
    }

    private static var lastError: String { String(errno: errno) }

    private func failed() -> FileError { FileError("cannot write \(label): \(Self.lastError)") }

    /// Why it did not get its name.
    private func refused(_ target: String) -> FileError {
        let failure = failed()
        return FileNameRule.objection(toPath: target, in: directory, isRefused: true).map {
            FileError("cannot write \(target): \($0)")
        } ?? failure
    }

    /// A path by which this process can read it.
    package var path: String { temporaryName ?? "/proc/self/fd/\(descriptor)" }

    package func setMode(_ mode: mode_t) throws {
        guard fchmod(descriptor, mode) == 0 else { throw failed() }
    }

    // MARK: Copying

    private static let stepBytes: Int64 = 32 << 20

    /// Copies the first `length` bytes of another file.
    /// - Parameter isWanted: called now and then with the number of bytes copied; false aborts with an error.
    package func copy(from path: String, length: Int64, isWanted: (Int64) -> Bool) throws -> FileExport.Method {
        let source = try Self.open(path)
        defer { close(source) }
        if try clone(source, length: length) { return .reflink }
        return try copy(from: source, 0..<length, isWanted: isWanted)
    }

    /// Opens the source of a copy.
    package static func open(_ path: String) throws -> Int32 {
        let source = Glibc.open(path, O_RDONLY | O_CLOEXEC)
        guard source >= 0 else { throw FileError("cannot open \(path): \(lastError)") }
        return source
    }

    /// Makes both files share their blocks, if the file system supports that.
    package func clone(_ source: Int32, length: Int64) throws -> Bool {
        guard reel_clone_file(descriptor, source) == 0 else { return false }
        guard ftruncate(descriptor, off_t(length)) == 0 else { throw failed() }
        return true
    }

    /// Copies a range to the same place in this file.
    /// - Parameter isWanted: called now and then with the offset up to which it is copied; false aborts with an
    ///   error.
    package func copy(from source: Int32, _ range: Range<Int64>, isWanted: (Int64) -> Bool) throws -> FileExport.Method
    {
        var place = range.lowerBound
        if try copyInKernel(source, range, &place, isWanted) { return .copyFileRange }
        try copyThrough(source, range, &place, isWanted)
        return .copy
    }

    /// Asks the kernel to start writing a range to the disk, so that less is left for `sync`.
    package func startWriting(_ range: Range<Int64>) {
        _ = reel_start_writing(descriptor, range.lowerBound, Int64(range.count))
    }

    /// - Returns: false if the kernel cannot copy between these files; `place` tells how far it got.
    private func copyInKernel(_ source: Int32, _ range: Range<Int64>, _ place: inout Int64, _ isWanted: (Int64) -> Bool)
        throws -> Bool
    {
        while place < range.upperBound {
            guard isWanted(place) else { throw FileError.interrupted }
            var (from, to) = (off_t(place), off_t(place))
            let count = copy_file_range(
                source, &from, descriptor, &to, Int(min(Self.stepBytes, range.upperBound - place)), 0)
            if count < 0 {
                if errno == EINTR { continue }
                if [EXDEV, EINVAL, ENOSYS, EOPNOTSUPP, EPERM].contains(errno) { return false }
                throw failed()
            }
            // Some file systems return 0 instead of an error; reading tells whether it is the end.
            if count == 0 { return false }
            place += Int64(count)
        }
        return true
    }

    private func copyThrough(_ source: Int32, _ range: Range<Int64>, _ place: inout Int64, _ isWanted: (Int64) -> Bool)
        throws
    {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 4096)
        defer { buffer.deallocate() }
        while place < range.upperBound {
            guard isWanted(place) else { throw FileError.interrupted }
            let count = pread(
                source, buffer.baseAddress, Int(min(Int64(buffer.count), range.upperBound - place)), off_t(place))
            if count < 0 && errno == EINTR { continue }
            guard count >= 0 else { throw FileError("cannot read the cached file: \(Self.lastError)") }
            guard count > 0 else {
                throw FileError(
                    "the cached file has become shorter meanwhile: try again, or run reelcache verify --repair")
            }
            try write(UnsafeRawBufferPointer(rebasing: buffer[..<count]), at: place)
            place += Int64(count)
        }
    }

    /// Appends a range of another file.
    /// - Parameter end: the current length of this file.
    package func append(_ range: Range<Int64>, of source: Int32, at end: inout Int64) throws {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 4096)
        defer { buffer.deallocate() }
        var place = range.lowerBound
        while place < range.upperBound {
            let wanted = Int(min(Int64(buffer.count), range.upperBound - place))
            let count = pread(source, buffer.baseAddress, wanted, off_t(place))
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else {
                throw FileError(
                    "the cached file has become shorter meanwhile: try again, or run reelcache verify --repair")
            }
            try write(UnsafeRawBufferPointer(rebasing: buffer[..<count]), at: end)
            place += Int64(count)
            end += Int64(count)
        }
    }

    /// Appends bytes.
    /// - Parameter end: the current length of this file.
    package func append(_ bytes: UnsafeRawBufferPointer, at end: inout Int64) throws {
        try write(bytes, at: end)
        end += Int64(bytes.count)
    }

    private func write(_ bytes: UnsafeRawBufferPointer, at place: Int64) throws {
        var written = 0
        while written < bytes.count {
            let part = pwrite(
                descriptor, bytes.baseAddress! + written, bytes.count - written, off_t(place) + off_t(written))
            if part < 0 && errno == EINTR { continue }
            guard part > 0 else { throw failed() }
            written += part
        }
    }

    // MARK: Publishing

    /// Makes the content durable.
    package func sync() throws {
        guard fsync(descriptor) == 0 else { throw failed() }
    }

    /// Gives the complete file its name, atomically.
    /// - Returns: false if the name exists already and is not to be replaced.
    package func publish(as target: String, replaces: Bool) throws -> Bool {
        let source = temporaryName ?? "/proc/self/fd/\(descriptor)"
        let flags = temporaryName == nil ? Int32(AT_SYMLINK_FOLLOW) : 0
        if replaces {
            let named = temporaryName ?? Self.temporaryName(in: directory)
            if temporaryName == nil {
                unlink(named)
                guard linkat(AT_FDCWD, source, AT_FDCWD, named, flags) == 0 else { throw failed() }
            }
            guard rename(named, target) == 0 else {
                let error = refused(target)
                unlink(named)
                throw error
            }
            temporaryName = nil
        } else if linkat(AT_FDCWD, source, AT_FDCWD, target, flags) != 0 {
            if errno == EEXIST { return false }
            // On file systems without links, files have temporary names.
            guard let temporaryName, rename(temporaryName, target) == 0 else { throw refused(target) }
            self.temporaryName = nil
        }
        let parent = Glibc.open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        if parent >= 0 {
            fsync(parent)
            close(parent)
        }
        return true
    }
}
