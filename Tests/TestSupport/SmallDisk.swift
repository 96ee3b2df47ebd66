import Foundation

/// A small file system of its own (tmpfs) on a temporary directory; unmounted when this object goes. Mounting takes
/// root, or the like.
package final class SmallDisk: Sendable {
    private let directory: TemporaryDirectory
    /// Where it is mounted.
    package var path: String { directory.path }

    /// - Parameter size: bytes.
    /// - Throws: `MountError` where it cannot be mounted.
    package init(size: Int64) throws {
        directory = try TemporaryDirectory()
        try Self.run("mount", ["-t", "tmpfs", "-o", "size=\(size),mode=700", "reelcache-test", directory.path])
    }

    deinit {
        // Lazily: a program that was killed may not be gone for good.
        _ = try? Self.run("umount", ["-l", directory.path])
    }

    /// Makes it read-only, or writable again. While somebody has a file open for writing, the system refuses that.
    package func setReadOnly(_ isReadOnly: Bool) throws {
        try Self.run("mount", ["-o", "remount,\(isReadOnly ? "ro" : "rw")", directory.path])
    }

    /// Why none can be mounted here; nil where one can.
    package static let obstacle: String? = {
        do {
            _ = try SmallDisk(size: 1 << 20)
            return nil
        } catch { return "\(error)" }
    }()

    private static func run(_ program: String, _ arguments: [String]) throws {
        let places = ["/usr/bin", "/bin", "/usr/sbin", "/sbin"].map { directory in "\(directory)/\(program)" }
        guard let path = places.first(where: { access($0, X_OK) == 0 }) else {
            throw MountError(description: "there is no \(program)")
        }
        let outcome = try ChildProcess.run(path, arguments)
        guard outcome.exit == .exited(0) else {
            throw MountError(description: "\(program): \(outcome.stderr.trimmingCharacters(in: .newlines))")
        }
    }

    package struct MountError: Error, CustomStringConvertible {
        package let description: String
    }
}
