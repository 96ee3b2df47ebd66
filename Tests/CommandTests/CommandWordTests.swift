import Foundation
import TestSupport
import Testing

/// How commands are named, and where options stand.
@Suite struct CommandWordTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    @Test(arguments: [
        (["prefech", "http://a.example/b"], "there is no command 'prefech'; did you mean reelcache prefetch?"),
        (["help", "downlaods"], "there is no command 'downlaods'; did you mean reelcache downloads?"),
        (["help", "nosuch"], "there is no command 'nosuch'; see reelcache --help"),
        (["config", "chek"], "there is no command 'chek'; did you mean reelcache config check?"),
        (["feeds", "lst"], "there is no command 'lst'; did you mean reelcache feeds list?"),
        (["downloads", "puase", "3"], "there is no command 'puase'; did you mean reelcache downloads pause?"),
        (["feeds", "http://a.example/b"], "there is no command 'http://a.example/b'; see reelcache feeds --help"),
    ])
    func unknownCommandIsWrongUsageThatNamesTheNearest(arguments: [String], message: String) throws {
        let outcome = try ReelcacheCommand.run(arguments)
        #expect(outcome.exit == .exited(2) && outcome.stdout == "", "\(outcome)")
        #expect(outcome.stderr.hasPrefix("Error: \(message)\n"), "\(outcome)")
    }

    @Test(arguments: [
        ["help", "prefetch"], ["help", "downloads", "watch"], ["help"],
    ])
    func helpIsForEachCommand(arguments: [String]) throws {
        let outcome = try ReelcacheCommand.run(arguments)
        #expect(outcome.exit == .exited(0) && outcome.stdout.hasPrefix("OVERVIEW: "), "\(outcome)")
    }

    /// `--` and what follows belong to a player.
    @Test(arguments: [["feeds", "--json"], ["downloads", "list", "--json"], ["downloads", "--json"]])
    func optionsOfAllCommandsMayStandBeforeThem(command: [String]) throws {
        let cache = directory.file("cache"), config = directory.file("c.yaml")
        try Data("min_free: 0".utf8).write(to: URL(fileURLWithPath: config))
        let behind = try ReelcacheCommand.run(command + ["--cache-dir", cache, "--config", config])
        let before = try ReelcacheCommand.run(["--cache-dir=\(cache)", "--config", config] + command)
        #expect(behind.exit == .exited(0) && before.exit == .exited(0) && before.stdout == behind.stdout, "\(before)")
        let missing = try ReelcacheCommand.run(["--config", directory.file("none.yaml")] + command)
        #expect(missing.exit != .exited(0) && missing.stderr.contains("none.yaml"), "\(missing)")
    }

    @Test func fileIsCreatedOnceAndEdited() throws {
        let path = directory.file("config/reelcache/reelcache.yaml")
        func run(_ command: String, editor: String = "false") throws -> ChildProcess.Outcome {
            try ReelcacheCommand.run(
                ["config", command],
                environment: [
                    "XDG_CONFIG_HOME": directory.file("config"), "REELCACHE_CONFIG": nil, "VISUAL": nil,
                    "EDITOR": editor,
                ])
        }
        #expect(try run("init").stdout.hasPrefix("created \(path)"))
        let text = try String(contentsOfFile: path, encoding: .utf8)
        #expect(text.contains("on_completed"))
        #expect(try run("check").exit == .exited(0))
        try Data("max_size: 30GB\n".utf8).write(to: URL(fileURLWithPath: path))
        let again = try run("init")
        #expect(again.exit == .exited(1) && again.stderr.contains("is there already"), "\(again)")
        #expect(try run("edit").exit == .exited(1))
        let edited = try run("edit", editor: "sed -i s/30/40/")
        #expect(edited.exit == .exited(0) && edited.stdout.contains(path), "\(edited)")
        #expect(try String(contentsOfFile: path, encoding: .utf8) == "max_size: 40GB\n")
        let broken = try run("edit", editor: "sed -i s/GB/x/")
        #expect(broken.exit == .exited(1) && broken.stdout.contains("reelcache.yaml:1"), "\(broken)")
    }

    /// Only the foreground process group may change and read it.
    @Test func anEditorHasTheTerminal() async throws {
        try await blocking {
            let path = directory.file("c.yaml")
            let edit = try TerminalProcess.reelcache(
                ["config", "edit", "--config", path],
                environment: [
                    "EDITOR":
                        "sh -c 'stty sane; trap : INT; echo ready; until read -r y; do :; done; echo \"got $y\"' sh"
                ],
                columns: 200)
            try edit.waitForLine(containing: "ready")
            try edit.interrupt()
            try edit.type("word\n")
            try edit.waitForLine(containing: "got word")
            #expect(try edit.waitForExit() == .exited(0))
        }
    }

    @Test(arguments: ["x", "my.yaml", "./a/b.yaml"]) func aFileMayHaveNoDirectory(name: String) throws {
        let outcome = try ChildProcess.run(
            "/bin/sh",
            [
                "-c", "cd \"$1\" && exec \"$0\" config init --config \"$2\"", try ReelcacheCommand.path(),
                directory.path, name,
            ],
            environment: ReelcacheCommand.neutral)
        #expect(
            outcome.exit == .exited(0) && FileManager.default.fileExists(atPath: directory.file(name)), "\(outcome)")
    }
}
