import Foundation
import TestSupport

/// A machine of its own for a page's commands: network, mounts, home directory, and an origin with films. What it is like
/// is said in `World/world.py`.
struct GuideWorld {
    /// How long a block may take. Only a command that does not end takes this long.
    private static let blockSeconds = 600

    private static let directory = Documents.root.appendingPathComponent("Tests/GuideTests/World").path

    /// The films that the origin serves, created once.
    private static let media: Result<TemporaryDirectory, any Error> = Result {
        let directory = try TemporaryDirectory()
        let outcome = try ChildProcess.run("\(Self.directory)/make-media", [directory.path])
        guard outcome.exit == .exited(0) else { throw WorldError(description: "make-media: \(outcome.stderr)") }
        return directory
    }

    /// Why this machine cannot have such a world; nil if it can.
    static let obstacle: String? = {
        let needed = ["ffmpeg", "openssl", "curl", "python3", "ip", "nsenter", "setsid"]
        let test =
            "for program in \(needed.joined(separator: " ")); do command -v $program >/dev/null || exit 1; done; "
            + "mount --make-rprivate / && ip link add veth0 type veth peer name veth1"
        let outcome = try? ChildProcess.run(
            "/usr/bin/env", ["unshare", "--net", "--mount", "--pid", "--fork", "bash", "-c", test])
        if outcome?.exit == .exited(0) { return nil }
        return "no network with a machine of its own can be made here, or one of \(needed.joined(separator: ", ")) is "
            + "missing: \(outcome?.stderr ?? "no unshare")"
    }()

    /// A fresh Debian system in place of this one: `World/world.py` boots it.
    struct FreshSystem: Encodable {
        /// The system that `scripts/fresh-root` created. It stays unchanged.
        let root: String
        /// Copied into the reader's home directory.
        var files: [String] = []
        /// Variables of the reader's environment.
        var variables: [String: String] = [:]
    }

    /// The outcome of a block.
    struct BlockResult: Decodable {
        /// Of the block in its page.
        let line: Int
        /// The exit code, or that it took too long.
        let status: String
        /// The line in the block, counted from 1, and the command at which it ended.
        let at: Int
        let command: String
        let output: String
    }

    private struct Plan: Encodable {
        struct Block: Encodable {
            let line: Int
            let text: String
            let proxyRuns: Bool
            let seconds: Int
        }

        let work: String
        let media: String
        let reelcache: String
        let players: [String]
        let blocks: [Block]
        let system: FreshSystem?
    }

    /// If none can be created, tests that need one are skipped; under `CI=true` they fail.
    static let isExpected = obstacle == nil || isCI
    static let isCI = ProcessInfo.processInfo.environment["CI"] == "true"

    /// - Throws: if none can be created.
    static func check() throws {
        if let obstacle { throw WorldError(description: obstacle) }
    }

    /// Runs the blocks in order.
    /// - Parameters:
    ///   - blocks: the blocks, each with whether a proxy runs meanwhile.
    ///   - system: the system that runs the commands; nil for this one.
    static func run(
        _ blocks: [(block: MarkdownPage.Block, proxyRuns: Bool)], on system: FreshSystem? = nil
    ) throws -> [BlockResult] {
        let work = try TemporaryDirectory(), files = try TemporaryDirectory()
        let plan = Plan(
            work: work.path, media: try media.get().path, reelcache: try ReelcacheCommand.path(), players: players,
            blocks: blocks.map {
                .init(line: $0.block.line, text: $0.block.text, proxyRuns: $0.proxyRuns, seconds: blockSeconds)
            }, system: system)
        try JSONEncoder().encode(plan).write(to: URL(fileURLWithPath: files.file("plan")))
        let outcome = try ChildProcess.run(
            "\(directory)/enter", [files.file("plan"), files.file("result")], environment: ReelcacheCommand.neutral,
            within: .seconds(blockSeconds * (blocks.count + 1)))
        guard outcome.exit == .exited(0) else { throw WorldError(description: outcome.stderr + outcome.stdout) }
        return try String(contentsOfFile: files.file("result"), encoding: .utf8).split(separator: "\n").map {
            try JSONDecoder().decode(BlockResult.self, from: Data($0.utf8))
        }
    }

    /// Where `scripts/setup-players` installs players that Debian lacks.
    private static var players: [String] {
        let environment = ProcessInfo.processInfo.environment
        let caches = environment["XDG_CACHE_HOME"] ?? "\(environment["HOME"] ?? "/root")/.cache"
        return ["\(environment["REELCACHE_PLAYERS"] ?? "\(caches)/reelcache-players")/venv/bin"]
    }
}

struct WorldError: Error, CustomStringConvertible {
    let description: String
}
