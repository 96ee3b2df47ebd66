import CLinux
import Foundation
import Glibc
import HTTPModel

/// What a power cut leaves of a cache's files. Of the data, only what was synced; of the index, all that was written, the
/// worst case where data go first; or only what was synced, the worst case where a hole follows its row.
///
/// It stands between this program and libc's `fdatasync`, `syncfs`, `fallocate` and `pwrite`, which nothing but a
/// simulation notices.
final class SimulatedDisk {
    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        pthread_key_create(&key, nil)
        return key
    }()
    /// That of the simulation on this thread.
    fileprivate static var current: SimulatedDisk? {
        get { pthread_getspecific(key).map { Unmanaged<SimulatedDisk>.fromOpaque($0).takeUnretainedValue() } }
        set { pthread_setspecific(key, newValue.map { UnsafeRawPointer(Unmanaged.passUnretained($0).toOpaque()) }) }
    }
    private let directory: String
    /// Data of each file, by inode, as of its last sync.
    private var synced: [UInt: [Range<Int64>]] = [:]
    /// The files of the index as of their last syncs, by path in the directory; nil if all that was written stays.
    private var syncedIndex: [String: [UInt8]]?
    /// When the power may fail.
    enum Moment { case sync, hole }
    /// Called before each sync, and after each hole.
    private let mayFail: (Moment) -> Void
    private let schedule: Schedule
    /// Whether a write fails.
    private let refuses: () -> Bool

    init(
        _ directory: String, _ schedule: Schedule, losesIndex: Bool, mayFail: @escaping (Moment) -> Void,
        refuses: @escaping () -> Bool
    ) {
        (self.directory, self.schedule, self.mayFail, self.refuses) = (directory, schedule, mayFail, refuses)
        if losesIndex { syncedIndex = [:] }
        Self.current = self
    }

    func end() { Self.current = nil }

    fileprivate func sync(_ file: Int32?, with call: () -> Int32) -> Int32 {
        wait(for: file)
        mayFail(.sync)
        let result = call()
        guard result == 0 else { return result }
        if let file {
            synced[Self.status(file).st_ino] = Self.data(of: file)
            noteIndex(file)
        } else {
            forEachFile { synced[Self.status($0).st_ino] = Self.data(of: $0) }
        }
        wait(for: file)
        return result
    }

    fileprivate func punch(_ file: Int32, with call: () -> Int32) -> Int32 {
        wait(for: file)
        defer { wait(for: file) }
        let result = call()
        mayFail(.hole)
        return result
    }

    fileprivate func write(_ file: Int32, with call: () -> Int) -> Int {
        wait(for: file)
        defer { wait(for: file) }
        guard !refuses() || !isData(file) else {
            errno = EIO
            return -1
        }
        return call()
    }

    /// SQLite's files are waited for within its locks.
    private func wait(for file: Int32?) {
        guard schedule.mayWaitForDisk(), HeldLocks.areNone, file.map(isData) ?? true else { return }
        let code = errno
        schedule.waitForDisk()
        errno = code
    }

    private func isData(_ file: Int32) -> Bool {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { path in
            let length = readlink("/proc/self/fd/\(file)", path.baseAddress!, path.count - 1)
            guard length > 0 else { return false }
            path[length] = 0
            return strstr(path.baseAddress!, "/data/") != nil
        }
    }

    private func noteIndex(_ file: Int32) {
        guard syncedIndex != nil else { return }
        for name in ["/index.sqlite", "/index.sqlite-wal"] {
            var status = stat()
            guard stat(directory + name, &status) == 0, status.st_ino == Self.status(file).st_ino else { continue }
            var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
            if pread(file, &bytes, bytes.count, 0) == bytes.count { syncedIndex?[name] = bytes }
        }
    }

    /// The data files, and the bytes that they take.
    func measure() -> (files: Int, bytes: Int64) {
        var (files, blocks) = (0, 0 as Int64)
        forEachFile {
            files += 1
            blocks += Int64(Self.status($0).st_blocks)
        }
        return (files, blocks * 512)
    }

    /// Copies the cache as a power cut would leave it now.
    func copy(to other: String) throws {
        try FileManager.default.copyItem(atPath: directory, toPath: other)
        for path in Self.files(in: directory) {
            let file = open(directory + path, O_RDONLY), copy = open(other + path, O_RDWR)
            defer { for descriptor in [file, copy] where descriptor >= 0 { close(descriptor) } }
            guard file >= 0, copy >= 0 else { continue }
            let there = Self.data(of: file)
            let kept = (synced[Self.status(file).st_ino] ?? []).flatMap { range in
                there.filter(range.overlaps).map { $0.clamped(to: range) }
            }
            let size = Self.status(copy).st_size
            guard ftruncate(copy, 0) == 0, ftruncate(copy, size) == 0 else { throw Violation("no image: \(errno)") }
            for range in kept {
                var bytes = [UInt8](repeating: 0, count: range.count)
                let count = pread(file, &bytes, bytes.count, off_t(range.lowerBound))
                guard count <= 0 || realWrite(copy, bytes, count, off_t(range.lowerBound)) == count else {
                    throw Violation("no image: \(errno)")
                }
            }
        }
        try copyIndex(to: other)
    }

    private func copyIndex(to other: String) throws {
        guard let syncedIndex else { return }
        for (name, bytes) in syncedIndex {
            guard FileManager.default.createFile(atPath: other + name, contents: Data(bytes)) else {
                throw Violation("no image of the index")
            }
        }
        // It describes what is not there.
        try? FileManager.default.removeItem(atPath: other + "/index.sqlite-shm")
    }

    private func forEachFile(_ body: (Int32) -> Void) {
        for path in Self.files(in: directory) {
            let file = open(directory + path, O_RDONLY)
            guard file >= 0 else { continue }
            body(file)
            close(file)
        }
    }

    private static func files(in directory: String) -> [String] {
        let paths = (try? FileManager.default.subpathsOfDirectory(atPath: directory + "/data")) ?? []
        return paths.map { "/data/" + $0 }.filter {
            var status = stat()
            return stat(directory + $0, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
        }
    }

    private static func status(_ file: Int32) -> stat {
        var status = stat()
        fstat(file, &status)
        return status
    }

    private static func data(of file: Int32) -> [Range<Int64>] {
        var ranges: [Range<Int64>] = [], end = 0 as off_t
        let former = lseek(file, 0, SEEK_CUR)
        defer { lseek(file, former, SEEK_SET) }
        while true {
            let start = lseek(file, end, 3) // SEEK_DATA
            guard start >= 0 else { return ranges }
            end = lseek(file, start, 4) // SEEK_HOLE
            ranges.append(Int64(start)..<Int64(end))
        }
    }
}

private typealias Sync = @convention(c) (Int32) -> Int32

/// libc's own function.
private func real<Function>(_ name: String, _ type: Function.Type) -> Function {
    // RTLD_NEXT
    unsafeBitCast(dlsym(UnsafeMutableRawPointer(bitPattern: -1), name), to: type)
}

private let realSync = real("fdatasync", Sync.self), realSyncAll = real("syncfs", Sync.self)

@_cdecl("fdatasync") func fdatasyncOfASimulation(_ file: Int32) -> Int32 {
    SimulatedDisk.current?.sync(file) { realSync(file) } ?? realSync(file)
}

private typealias Allocate = @convention(c) (Int32, Int32, off_t, off_t) -> Int32
private typealias Write = @convention(c) (Int32, UnsafeRawPointer?, Int, off_t) -> Int

private let realAllocate = real("fallocate", Allocate.self), realWrite = real("pwrite", Write.self)

@_cdecl("fallocate")
func fallocateOfASimulation(_ file: Int32, _ mode: Int32, _ start: off_t, _ length: off_t) -> Int32 {
    SimulatedDisk.current?.punch(file) { realAllocate(file, mode, start, length) }
        ?? realAllocate(file, mode, start, length)
}

@_cdecl("pwrite")
func pwriteOfASimulation(_ file: Int32, _ bytes: UnsafeRawPointer?, _ count: Int, _ offset: off_t) -> Int {
    SimulatedDisk.current?.write(file) { realWrite(file, bytes, count, offset) }
        ?? realWrite(file, bytes, count, offset)
}

@_cdecl("syncfs") func syncfsOfASimulation(_ file: Int32) -> Int32 {
    SimulatedDisk.current?.sync(nil) { realSyncAll(file) } ?? realSyncAll(file)
}
