import Foundation

/// A new directory under `$TMPDIR` (else `/tmp`), removed with all that is in it when this object goes.
package final class TemporaryDirectory: Sendable {
    /// Absolute, without a trailing slash.
    package let path: String

    package init() throws {
        let parent = ProcessInfo.processInfo.environment["TMPDIR"].flatMap { $0.isEmpty ? nil : $0 } ?? "/tmp"
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
}
