import Foundation
import TestSupport

/// The library of `Tests/FaultLayer` between a proxy and its cache directory: it records every change, fails on demand,
/// and kills.
final class FaultLayer: Sendable {
    struct Call: OptionSet {
        let rawValue: UInt64
        static let write = Call(rawValue: 1), read = Call(rawValue: 2), create = Call(rawValue: 4),
            openForWriting = Call(rawValue: 8)
        static let truncate = Call(rawValue: 16), punch = Call(rawValue: 32), allocate = Call(rawValue: 64),
            sync = Call(rawValue: 128)
        static let remove = Call(rawValue: 256), name = Call(rawValue: 512)
        static let openDirectory = Call(rawValue: 1024)
        /// Finding or reading what is in memory: as if nothing were.
        static let inMemory = Call(rawValue: 2048)
        /// Sending mapped bytes.
        static let sendMapped = Call(rawValue: 4096)
        /// Mapping files, or memory for what they hold.
        static let map = Call(rawValue: 8192)
        /// All that a disk refuses that has become read-only.
        static let everyChange: Call = [.write, .create, .openForWriting, .truncate, .punch, .allocate, .remove, .name]
    }

    /// Files by their place in the cache.
    struct Place: OptionSet {
        let rawValue: UInt64
        static let data = Place(rawValue: 1), index = Place(rawValue: 2), other = Place(rawValue: 4),
            sharedMemory = Place(rawValue: 8)
        static let everywhere: Place = [.data, .index, .other, .sharedMemory]
    }

    /// When the layer kills the program: after `count` changes of a kind (`nil`: any; the letters are those of
    /// `FaultLog`), and `more` of any.
    struct Moment {
        var kind: Character?
        var count: UInt64
        var more: UInt64 = 0
    }

    private static let name = "libreelcache-faults.so"
    /// Built once for all, when it is first wanted: it is of no use to anybody but these tests.
    private static let library = Result { try build() }

    private static func build() throws -> TemporaryDirectory {
        let source = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("FaultLayer/layer.c").path
        let directory = try TemporaryDirectory()
        let outcome = try ChildProcess.run(
            "/usr/bin/env", ["cc", "-O1", "-shared", "-fPIC", "-pthread", "-o", directory.file(name), source, "-ldl"])
        guard outcome.exit == .exited(0) else {
            throw BuildError(description: "cc cannot build \(source): \(outcome.stderr)")
        }
        return directory
    }

    private struct BuildError: Error, CustomStringConvertible {
        let description: String
    }

    private let directory: TemporaryDirectory
    private let watched: String
    private let isRecording: Bool
    private let control: FileHandle

    /// - Parameter watched: the cache directory, which must exist.
    init(watching watched: String, isRecording: Bool = false) throws {
        self.watched = URL(fileURLWithPath: watched).resolvingSymlinksInPath().path
        self.isRecording = isRecording
        directory = try TemporaryDirectory()
        try Data(count: Self.words * 8).write(to: URL(fileURLWithPath: directory.file("control")))
        control = try FileHandle(forUpdating: URL(fileURLWithPath: directory.file("control")))
    }

    /// What a program needs that is to run above the layer.
    var environment: [String: String?] {
        get throws {
            [
                "LD_PRELOAD": try Self.library.get().file(Self.name), "FAULT_LAYER_DIRECTORY": watched,
                "FAULT_LAYER_CONTROL": directory.file("control"),
                "FAULT_LAYER_LOG": isRecording ? directory.file("log") : nil,
            ]
        }
    }

    /// All changes so far.
    var log: FaultLog {
        get throws { try FaultLog(path: directory.file("log")) }
    }

    // MARK: The words of `struct control`, which the program maps

    /// From now on calls fail, in place of what failed before.
    /// - Parameter passes: so many more succeed.
    func fail(_ calls: Call, in files: Place, with code: Int32, after passes: UInt64 = 0) {
        heal()
        for (index, value) in [files.rawValue, UInt64(code), passes, 0].enumerated() { self[5 + index] = value }
        self[4] = calls.rawValue
    }

    /// From now on nothing fails.
    func heal() { self[4] = 0 }

    /// How many calls have failed since the last `fail`.
    var failures: UInt64 { self[8] }

    func kill(at moment: Moment) {
        self[3] = moment.more
        self[2] = moment.count
        self[1] = UInt64((moment.kind ?? "*").asciiValue ?? 0)
    }

    /// Whether it has killed the program.
    var hasKilled: Bool { self[3] == .max }

    private static let words = 24

    private subscript(_ word: Int) -> UInt64 {
        get {
            var value: UInt64 = 0
            precondition(pread(control.fileDescriptor, &value, 8, off_t(word * 8)) == 8)
            return value
        }
        set {
            var value = newValue
            precondition(pwrite(control.fileDescriptor, &value, 8, off_t(word * 8)) == 8)
        }
    }
}
