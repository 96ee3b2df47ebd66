import Foundation
import TestSupport
import Testing

@testable import ReelcacheCLI

/// The manual pages of the program that was built, seen by the two programs that people read them with.
@Suite struct ManualPageTests {
    private let directory: TemporaryDirectory
    private let pages: [String]

    init() throws {
        let directory = try TemporaryDirectory()
        self.directory = directory
        let outcome = try ReelcacheCommand.run(
            ["generate", "man", directory.path], environment: ["SOURCE_DATE_EPOCH": "1764000000"])
        try #require(outcome.exit == .exited(0), "\(outcome)")
        pages = try ["man1", "man5"].flatMap { section in
            try FileManager.default.contentsOfDirectory(atPath: directory.file(section)).map { "\(section)/\($0)" }
        }.sorted()
    }

    @Test func everyCommandHasAPage() throws {
        let tool = try ToolInfo(json: ReelcacheCommand.run(["--experimental-dump-help"]).stdout)
        let commands = tool.command.visibleSubcommands.map { "man1/reelcache-\($0.commandName).1" }

        #expect(commands.contains("man1/reelcache-serve.1"))
        #expect(pages == (commands + ["man1/reelcache.1", "man5/reelcache.yaml.5"]).sorted())
    }

    @Test func theDateIsThatOfTheSources() throws {
        let text = try String(contentsOfFile: directory.file("man1/reelcache.1"), encoding: .utf8)
        #expect(text.contains("\n.Dd November 24, 2025\n"))
    }

    @Test func mandocHasNothingToWarnOf() throws {
        guard let mandoc = try Self.program("mandoc") else { return }
        for page in pages {
            let outcome = try ChildProcess.run(mandoc, ["-Tlint", "-W", "warning", directory.file(page)])
            #expect(outcome.exit == .exited(0) && outcome.stdout.isEmpty && outcome.stderr.isEmpty, "\(outcome)")
        }
    }

    @Test func manHasNothingToWarnOf() throws {
        guard let man = try Self.program("man") else { return }
        for page in pages {
            let outcome = try ChildProcess.run(
                man, ["--warnings", "-l", directory.file(page)],
                environment: ["MANWIDTH": "80", "MANPAGER": "cat", "LC_ALL": "C.UTF-8"])
            #expect(outcome.exit == .exited(0) && outcome.stderr.isEmpty, "\(page): \(outcome.stderr)")
            #expect(outcome.stdout.contains("NAME"), "\(page)")
        }
    }

    /// Nil where it is not installed; in continuous integration that is a failure.
    private static func program(_ name: String) throws -> String? {
        let environment = ProcessInfo.processInfo.environment
        let path = (environment["PATH"] ?? "").split(separator: ":").map { "\($0)/\(name)" }.first {
            FileManager.default.isExecutableFile(atPath: $0)
        }
        if path == nil, environment["CI"] == "true" {
            Issue.record("\(name) is missing: apt-get install man-db mandoc")
        }
        return path
    }
}
