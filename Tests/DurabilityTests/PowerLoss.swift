import CLinux
import Foundation
import TestSupport

/// A directory as a disk would hold it had the power gone at a point of a log.
///
/// The model is a journalling file system that promises what its documentation promises and, within that, is unkind:
///
/// - fsync(2) and fdatasync(2) of a file: what was written to it before is there. Nothing is said of other files.
/// - Later writes, holes and truncations of it: each is there or not, whatever became of those before. A write may be
///   torn: the disk has some of its pages (4096 bytes; of writes no larger than that, some of its sectors of 512), as
///   the kernel writes pages back in any order. Where the size came through and the bytes did not, there are zeros.
/// - Names (create, unlink, rename, mkdir, rmdir) go through the journal in their order: a prefix of them is there.
///   fsync(2) warns that a file's sync need not save its name. In ext4 it does where it commits the journal, that is
///   where the file itself is new, or has a new size or new blocks; syncing what was only written over commits nothing,
///   as with a log of SQLite that is used again.
/// - Bytes beside a torn write are not harmed ("powersafe overwrite" in SQLite's documentation).
/// - SQLite's `-shm` is not there: it is an index of the write-ahead log that is made anew, and never synced.
struct PowerLoss {
    /// What becomes of that which was not synced.
    enum Fate: Sendable {
        /// All of it is there, as after a mere `kill -9`.
        case kept
        /// Chance decides, each time by other odds.
        case random
    }

    private final class File {
        let number: Int
        /// Where it was before the log began.
        let base: String?
        /// Writes, holes and truncations.
        var changes: [FaultLog.Change] = []
        /// So many of them are durable.
        var durable = 0
        var size: Int64
        var writtenPages: Set<Int64> = []
        /// Whether a sync of it commits the journal.
        var isUncommitted: Bool

        init(number: Int, base: String?, size: Int64) {
            (self.number, self.base, self.size) = (number, base, size)
            isUncommitted = base == nil
        }
    }

    private enum NameChange {
        case file(String, File)
        case directory(String)
        case gone(String)
        case moved(String, to: String)
    }

    private let base: String
    private let bytes: Data
    private var baseFiles: [String: File] = [:]
    private var baseDirectories: [String] = []
    private var files: [File] = []
    private var names: [NameChange] = []
    private var durableNames = 0

    /// - Parameters:
    ///   - base: a copy of the directory as it was when the log began.
    ///   - count: the power goes after so many records; nil for all.
    init(base: String, log: FaultLog, after count: Int? = nil) throws {
        self.base = base
        bytes = log.bytes
        try readBase()
        var byName = baseFiles, byInode: [UInt64: File] = [:]
        for record in log.records.prefix(count ?? .max) { take(record, &byName, &byInode) }
    }

    private mutating func readBase() throws {
        for path in try FileManager.default.subpathsOfDirectory(atPath: base).sorted() where !path.hasSuffix("-shm") {
            var info = stat()
            guard lstat("\(base)/\(path)", &info) == 0 else { throw SystemError("lstat \(path)") }
            if info.st_mode & S_IFMT == S_IFDIR {
                baseDirectories.append(path)
            } else {
                baseFiles[path] = add(base: path, size: Int64(info.st_size))
            }
        }
    }

    private mutating func add(base: String?, size: Int64) -> File {
        files.append(File(number: files.count, base: base, size: size))
        return files[files.count - 1]
    }

    // MARK: What the program did

    private mutating func take(
        _ record: FaultLog.Record, _ byName: inout [String: File], _ byInode: inout [UInt64: File]
    ) {
        switch record.change {
        case .create(let path):
            let file = add(base: nil, size: 0)
            (byName[path], byInode[record.file]) = (file, file)
            names.append(.file(path, file))
        case .open(let path):
            // nil for a directory.
            byInode[record.file] = byName[path]
        case .unlink(let path), .removeDirectory(let path):
            byName[path] = nil
            names.append(.gone(path))
        case .rename(let path, let other):
            byName[other] = byName.removeValue(forKey: path)
            names.append(.moved(path, to: other))
        case .makeDirectory(let path):
            names.append(.directory(path))
        case .sync:
            sync(byInode[record.file])
        case .syncAll:
            for file in files { sync(file) }
            commit()
        case .write, .truncate, .punch, .allocate:
            guard let file = byInode[record.file] else {
                preconditionFailure("a change of a file that was never opened: \(record)")
            }
            take(record.change, of: file)
        }
    }

    private func take(_ change: FaultLog.Change, of file: File) {
        file.changes.append(change)
        switch change {
        case .write(let offset, let data):
            let end = offset + Int64(data.count)
            let pages = offset / 4096...max(offset, end - 1) / 4096
            // Which blocks an older file has is not known: the unkind guess is that nothing new is needed.
            if end > file.size || file.base == nil && !file.writtenPages.isSuperset(of: pages) {
                file.isUncommitted = true
            }
            if file.base == nil { file.writtenPages.formUnion(pages) }
            file.size = max(file.size, end)
        case .truncate(let length):
            file.size = length
            file.isUncommitted = true
        case .allocate(let end):
            file.size = max(file.size, end)
            file.isUncommitted = true
        default:
            file.isUncommitted = true
        }
    }

    /// - Parameter file: nil for a directory.
    private mutating func sync(_ file: File?) {
        file.map { $0.durable = $0.changes.count }
        if file?.isUncommitted ?? true { commit() }
    }

    private mutating func commit() {
        durableNames = names.count
        for file in files { file.isUncommitted = false }
    }

    // MARK: What the disk has

    /// Makes the directory `target` as the disk would hold it.
    func makeImage(_ target: String, _ fate: Fate, _ random: inout SplitMix64) throws {
        let lost = names.count - durableNames
        let kept = fate == .kept ? names.count : durableNames + Int.random(in: 0...lost, using: &random)
        let (directories, tree) = tree(of: names.prefix(kept))
        try FileManager.default.createDirectory(atPath: target, withIntermediateDirectories: true)
        for directory in directories.sorted() {
            try FileManager.default.createDirectory(atPath: "\(target)/\(directory)", withIntermediateDirectories: true)
        }
        let odds: Double = fate == .kept ? 1 : [0, 0.2, 0.5, 0.8, 1][Int.random(in: 0..<5, using: &random)]
        for (path, file) in tree.sorted(by: { $0.value.number < $1.value.number }) {
            try make(file, at: "\(target)/\(path)", odds: odds, mayTear: fate == .random, &random)
        }
    }

    private func tree(of names: some Sequence<NameChange>) -> (directories: Set<String>, files: [String: File]) {
        var directories = Set(baseDirectories), files = baseFiles
        for change in names {
            switch change {
            case .file(let path, let file): files[path] = file
            case .directory(let path): directories.insert(path)
            case .moved(let path, let other): files[other] = files.removeValue(forKey: path)
            case .gone(let path):
                files[path] = nil
                directories.remove(path)
            }
        }
        return (directories, files)
    }

    private func make(_ file: File, at path: String, odds: Double, mayTear: Bool, _ random: inout SplitMix64) throws {
        let descriptor = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw SystemError("open \(path)") }
        defer { close(descriptor) }
        if let base = file.base { try copySparsely("\(self.base)/\(base)", to: descriptor) }
        for (index, change) in file.changes.enumerated() {
            let isDurable = index < file.durable
            guard isDurable || Double.random(in: 0..<1, using: &random) < odds else { continue }
            let isTorn = !isDurable && mayTear && Int.random(in: 0..<4, using: &random) == 0
            try apply(change, isTorn: isTorn, to: descriptor, &random)
        }
    }

    private func apply(_ change: FaultLog.Change, isTorn: Bool, to descriptor: Int32, _ random: inout SplitMix64) throws
    {
        switch change {
        case .write(let offset, let data):
            let unit = data.count > 4096 ? 4096 : 512 as Int64
            var start = offset
            let end = offset + Int64(data.count)
            while start < end {
                let next = isTorn ? min(end, (start / unit + 1) * unit) : end
                if !isTorn || Bool.random(using: &random) {
                    let part = data.lowerBound + Int(start - offset)..<data.lowerBound + Int(next - offset)
                    try bytes.withUnsafeBytes {
                        try check(
                            "pwrite",
                            pwrite(descriptor, $0.baseAddress! + part.lowerBound, part.count, off_t(start))
                                == part.count)
                    }
                }
                start = next
            }
        case .truncate(let length): try check("ftruncate", ftruncate(descriptor, off_t(length)) == 0)
        case .punch(let range):
            try check(
                "fallocate",
                fallocate(descriptor, reel_falloc_punch_hole, off_t(range.lowerBound), off_t(range.count)) == 0)
        case .allocate(let end):
            var info = stat()
            try check("fstat", fstat(descriptor, &info) == 0)
            if info.st_size < end { try check("ftruncate", ftruncate(descriptor, off_t(end)) == 0) }
        default: preconditionFailure("no change of a file's content: \(change)")
        }
    }
}

/// Copies a file without filling its holes.
func copySparsely(_ path: String, to target: Int32) throws {
    let source = open(path, O_RDONLY | O_CLOEXEC)
    guard source >= 0 else { throw SystemError("open \(path)") }
    defer { close(source) }
    var info = stat()
    try check("fstat", fstat(source, &info) == 0)
    try check("ftruncate", ftruncate(target, info.st_size) == 0)
    let (seekData, seekHole): (Int32, Int32) = (3, 4)
    var end: off_t = 0
    while case let start = lseek(source, end, seekData), start >= 0 {
        end = lseek(source, start, seekHole)
        var buffer = [UInt8](repeating: 0, count: end - start)
        try check("pread", pread(source, &buffer, buffer.count, start) == buffer.count)
        try check("pwrite", pwrite(target, buffer, buffer.count, start) == buffer.count)
    }
}

private func check(_ operation: String, _ succeeded: Bool) throws {
    if !succeeded { throw SystemError(operation) }
}
