import Foundation
import TestSupport
import Testing

/// Whether a proxy runs while a command works on its cache, or the command runs one of its own. What differs between
/// the two is where a proxy comes from; only some tests try both.
enum Ownership: CaseIterable {
    case running, alone
}

/// A cache in which films are, for commands to work on.
final class Shelf {
    let cache: TemporaryDirectory
    let origin: ScriptedOrigin
    /// nil where the cache is alone.
    private(set) var proxy: ProxyProcess?
    /// For the proxy and for commands.
    private let environment: [String: String?]
    var settingsEnvironment: [String: String?] { environment }
    private let settings: TemporaryDirectory?
    let film = Media(seed: 9, size: 1_000_000)
    /// The proxy's: an origin may be held for as long as a test takes on a busy machine.
    private static let flags = ["--stall-timeout", "1h"]

    /// - Parameters:
    ///   - whole: paths of the origin that are played as a whole.
    ///   - parts: paths of which one chunk in the middle is played.
    ///   - configuration: the text of the configuration file, for the proxy and for commands; nil for none.
    init(
        _ ownership: Ownership = .running, whole: [String] = [], parts: [String] = [], configuration: String? = nil
    ) throws {
        cache = try TemporaryDirectory()
        origin = try ScriptedOrigin()
        if let configuration {
            let directory = try TemporaryDirectory()
            try Data(configuration.utf8).write(to: URL(fileURLWithPath: directory.file("r.yaml")))
            (settings, environment) = (directory, ["REELCACHE_CONFIG": directory.file("r.yaml")])
        } else {
            (settings, environment) = (nil, [:])
        }
        let proxy = try ProxyProcess(cacheDirectory: cache.path, arguments: Self.flags, environment: environment)
        for path in whole + parts { origin.serve(path, film) }
        for path in whole { #expect(try proxy.get(origin.url(path)).status == 200) }
        for path in parts { #expect(try proxy.get(origin.url(path), range: 131_072..<196_608).status == 206) }
        self.proxy = proxy
        if ownership == .alone { try close() }
    }

    /// Ends the proxy, if one runs.
    func close() throws {
        if let proxy { #expect(try proxy.process.terminate() == .exited(0)) }
        proxy = nil
    }

    func run(_ arguments: String..., environment: [String: String?] = [:]) throws -> ChildProcess.Outcome {
        try ReelcacheCommand.run(
            arguments + ["--cache-dir", cache.path], environment: self.environment.merging(environment) { $1 })
    }

    /// Runs a command that must succeed.
    /// - Returns: what it says.
    func say(
        _ arguments: String..., environment: [String: String?] = [:], sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> String {
        let outcome = try ReelcacheCommand.run(
            arguments + ["--cache-dir", cache.path], environment: self.environment.merging(environment) { $1 })
        #expect(outcome.exit == .exited(0) && outcome.stderr == "", "\(outcome)", sourceLocation: sourceLocation)
        return outcome.stdout
    }

    /// Runs a command that must succeed, with `--json`.
    func json(_ arguments: String..., sourceLocation: SourceLocation = #_sourceLocation) throws -> [String: Any] {
        let outcome = try ReelcacheCommand.run(
            arguments + ["--json", "--cache-dir", cache.path], environment: environment)
        #expect(outcome.exit == .exited(0) && outcome.stderr == "", "\(outcome)", sourceLocation: sourceLocation)
        return try outcome.members
    }

    /// The paths of what is cached, in the order of their names.
    var names: [String] {
        get throws {
            try (json("ls", "--sort", "name")["resources"] as? [[String: Any]] ?? []).map {
                ($0["url"] as? String ?? "none").replacing(origin.url(""), with: "")
            }
        }
    }

    /// Whether the film can be had without its origin, all of it right.
    func plays(_ path: String) throws -> Bool {
        origin.stop()
        let proxy =
            try proxy ?? ProxyProcess(cacheDirectory: cache.path, arguments: Self.flags, environment: environment)
        self.proxy = proxy
        let response = try proxy.get(origin.url(path))
        return response.headers["Cache-Status"]?.hasPrefix("reelcache; hit;") == true
            && film.difference(response.body, from: 0..<film.size) == nil
    }

    /// Takes the cache's lock in the place of another process, until the handle is closed.
    /// - Parameter url: of the proxy that the process is to run; empty for none.
    func pretendOwner(url: String) throws -> FileHandle {
        let lock = try #require(FileHandle(forUpdatingAtPath: cache.file("LOCK")))
        #expect(flock(lock.fileDescriptor, LOCK_EX) == 0)
        try lock.truncate(atOffset: 0)
        try lock.write(contentsOf: Data("{\"pid\":4242,\"url\":\"\(url)\"}".utf8))
        return lock
    }

    /// Overwrites a few bytes of a film's second chunk.
    func damage() throws {
        let files = try #require(FileManager.default.enumerator(atPath: "\(cache.path)/data")).compactMap {
            $0 as? String
        }.filter { $0.contains("/") }
        let file = try #require(files.first)
        let handle = try #require(FileHandle(forUpdatingAtPath: "\(cache.path)/data/\(file)"))
        try handle.seek(toOffset: 70_000)
        try handle.write(contentsOf: Data([1, 2, 3, 4]))
        try handle.close()
    }
}

extension ChildProcess.Outcome {
    /// Standard output as a JSON object.
    var members: [String: Any] {
        get throws { try #require(JSONSerialization.jsonObject(with: Data(stdout.utf8)) as? [String: Any], "\(self)") }
    }

    /// What it says on standard output, line by line.
    var lines: [String] { stdout.split(separator: "\n").map(String.init) }
}

extension String {
    var lines: [String] { split(separator: "\n").map(String.init) }
}
