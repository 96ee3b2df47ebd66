import Foundation

/// The program `reelcache`, run as people run it.
package enum ReelcacheCommand {
    /// Runs it to its end. Nothing of the machine's own settings reaches it.
    /// - Parameter environment: changes to this process's environment; `nil` removes a variable.
    package static func run(_ arguments: [String], environment: [String: String?] = [:]) throws -> ChildProcess.Outcome {
        try ChildProcess.run(try path(), arguments, environment: neutral.merging(environment) { $1 })
    }

    /// Starts it.
    package static func start(_ arguments: [String], environment: [String: String?] = [:]) throws -> ChildProcess {
        try ChildProcess(try path(), arguments, environment: neutral.merging(environment) { $1 })
    }

    /// Without what would lead programs to another cache, or a player around the proxy under test.
    package static let neutral: [String: String?] = [
        "REELCACHE_CACHE_DIR": nil, "http_proxy": nil, "HTTP_PROXY": nil, "https_proxy": nil, "HTTPS_PROXY": nil, "all_proxy": nil, "ALL_PROXY": nil,
    ]

    /// `$REELCACHE_BINARY`, else the one that was built together with the running tests: beside them, or above.
    private static func path() throws -> String {
        if let path = ProcessInfo.processInfo.environment["REELCACHE_BINARY"], !path.isEmpty { return path }
        var directory = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
        while directory.path != "/" {
            let path = directory.appendingPathComponent("reelcache").path
            var isDirectory: ObjCBool = false
            if FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory), !isDirectory.boolValue { return path }
            directory.deleteLastPathComponent()
        }
        throw MissingProgram()
    }

    private struct MissingProgram: Error, CustomStringConvertible {
        var description: String { "there is no program reelcache beside the tests: run swift build, or set REELCACHE_BINARY" }
    }
}
