import Foundation

/// What was built together with the running tests.
package enum BuiltFile {
    /// Looks beside the tests, and above.
    /// - Parameter advice: what to do where it is missing.
    package static func path(_ name: String, orElse advice: String = "run swift build --build-tests") throws -> String {
        var directory = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
        while directory.path != "/" {
            let path = directory.appendingPathComponent(name).path
            var isDirectory: ObjCBool = false
            if FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory), !isDirectory.boolValue {
                return path
            }
            directory.deleteLastPathComponent()
        }
        throw MissingFile(description: "there is no \(name) beside the tests: \(advice)")
    }

    private struct MissingFile: Error, CustomStringConvertible {
        let description: String
    }
}
