import CLinux
import Foundation

/// A new directory under `$TMPDIR` (else `/tmp`), removed with all that is in it when this object goes.
package final class TemporaryDirectory: Sendable {
    /// Absolute, without a trailing slash.
    package let path: String

    /// `$TMPDIR` (else `/tmp`).
    package static let usualParent =
        ProcessInfo.processInfo.environment["TMPDIR"].flatMap { $0.isEmpty ? nil : $0 } ?? "/tmp"

    /// - Parameter parent: nil for the usual one.
    package init(in parent: String? = nil) throws {
        let parent = parent ?? Self.usualParent
        let template = strdup("\(parent)/reelcache-test-XXXXXX")!
        defer { free(template) }
        guard mkdtemp(template) != nil else { throw SystemError("mkdtemp \(parent)") }
        path = String(cString: template)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }

    package var url: URL { URL(fileURLWithPath: path, isDirectory: true) }

    /// The absolute path of `name` in the directory; nothing is created.
    package func file(_ name: String) -> String { "\(path)/\(name)" }

    /// Whether its file system reads what is in memory without waiting (preadv2(2), RWF_NOWAIT). A tmpfs does not.
    package var readsAtOnce: Bool {
        let file = open(file("at-once"), O_RDWR | O_CREAT, 0o600)
        defer { close(file) }
        var byte: UInt8 = 1
        guard write(file, &byte, 1) == 1 else { return false }
        return withUnsafeMutableBytes(of: &byte) { bytes in
            var vector = iovec(iov_base: bytes.baseAddress, iov_len: 1)
            return preadv2(file, &vector, 1, 0, reel_rwf_nowait) == 1
        }
    }

    /// The same of the usual parent.
    package static let usuallyReadsAtOnce = (try? TemporaryDirectory())?.readsAtOnce == true

    /// Makes a program of a script for the shell, without its first line.
    ///
    /// Another process writes it. Otherwise a program that another test starts at that moment could inherit the open file,
    /// and the system would refuse to run what is open for writing (`ETXTBSY`).
    /// - Returns: its absolute path.
    @discardableResult
    package func makeProgram(_ name: String, _ script: String) throws -> String {
        let program = file(name)
        let writer = Process()
        writer.executableURL = URL(fileURLWithPath: "/bin/sh")
        writer.arguments = ["-c", #"printf '%s\n' '#!/bin/sh' "$1" >"$0" && chmod 755 "$0""#, program, script]
        try writer.run()
        writer.waitUntilExit()
        guard writer.terminationStatus == 0 else { throw SystemError("sh, which writes \(program)") }
        return program
    }
}
