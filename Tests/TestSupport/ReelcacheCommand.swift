import Foundation

/// The program `reelcache`, run as people run it.
package enum ReelcacheCommand {
    /// Runs it to its end. Nothing of the machine's own settings reaches it.
    /// - Parameter environment: changes to this process's environment; `nil` removes a variable.
    package static func run(_ arguments: [String], environment: [String: String?] = [:]) throws -> ChildProcess.Outcome
    {
        try ChildProcess.run(try path(), arguments, environment: neutral.merging(environment) { $1 })
    }

    /// Starts it.
    package static func start(_ arguments: [String], environment: [String: String?] = [:]) throws -> ChildProcess {
        try ChildProcess(try path(), arguments, environment: neutral.merging(environment) { $1 })
    }

    /// Without what would make the program work otherwise, or lead a player around the proxy under test. The
    /// configuration is an empty file; a test that is about where files are found removes `REELCACHE_CONFIG`.
    package static let neutral: [String: String?] = {
        let settings = ProcessInfo.processInfo.environment.keys.filter { $0.hasPrefix("REELCACHE_") }
        let proxies = ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
        var neutral = [String: String?](uniqueKeysWithValues: (settings + proxies).map { ($0, nil) })
        neutral["REELCACHE_CONFIG"] = "/dev/null"
        return neutral
    }()

    /// `$REELCACHE_BINARY`, else the one that was built together with the running tests: beside them, or above.
    package static func path() throws -> String {
        if let path = ProcessInfo.processInfo.environment["REELCACHE_BINARY"], !path.isEmpty { return path }
        return try BuiltFile.path("reelcache", orElse: "run swift build, or set REELCACHE_BINARY")
    }
}
