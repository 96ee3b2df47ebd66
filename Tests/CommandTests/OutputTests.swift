import Foundation
import TestSupport
import Testing

/// What commands print, where to, and what no terminal may be made to do by it.
@Suite struct OutputTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// Runs a line of sh in which `$0` is the program.
    private func shell(_ line: String) throws -> ChildProcess.Outcome {
        try ChildProcess.run(
            "/bin/sh", ["-c", line, try ReelcacheCommand.path()], environment: ReelcacheCommand.neutral)
    }

    // MARK: Failures as JSON

    @Test(arguments: [
        ["ls"], ["show", "http://a/b"], ["pin", "http://a/b"], ["rm", "--all"], ["verify"], ["stats"],
        ["import", "/none", "--as", "http://a/b"],
    ])
    func withJSONAFailureIsAnObjectToo(command: [String]) throws {
        let outcome = try ReelcacheCommand.run(command + ["--json", "--cache-dir", directory.file("none")])
        #expect(outcome.failureLine(isJSON: true) != nil, "\(outcome)")
        #expect(try Set(outcome.members.keys) == ["error"])
    }

    @Test func withJSONASettingThatCannotWorkIsToldToo() throws {
        let outcome = try ReelcacheCommand.run(["ls", "--json"], environment: ["REELCACHE_MAX_SIZE": "much"])
        #expect(outcome.exit == .exited(2), "\(outcome)")
        #expect(try #require(outcome.members["error"] as? String).hasPrefix("REELCACHE_MAX_SIZE: "))
    }

    @Test func withJSONWhatIsMissingIsToldByItsBytes() throws {
        let shelf = try Shelf(parts: ["/a.mp4"])
        let outcome = try shelf.run("export", shelf.origin.url("/a.mp4"), "-o", directory.file("a.mp4"), "--json")
        #expect(outcome.failureLine(isJSON: true)?.contains(" lacks ") == true, "\(outcome)")
        let missing = try #require(try outcome.members["missing"] as? [[String: Int]])
        #expect(missing == [["first": 0, "last": 131_071], ["first": 196_608, "last": 999_999]])
    }

    // MARK: Places that take nothing

    @Test(arguments: ["ls", "ls --json", "config show", "verify", "url http://a/b"]) func aFullDiskIsAFailure(
        command: String
    ) throws {
        let shelf = try Shelf(.alone, whole: ["/a.mp4"])
        let outcome = try shell("\"$0\" \(command) --cache-dir '\(shelf.cache.path)' >/dev/full")
        #expect(
            outcome.failureLine == "reelcache: cannot write to standard output: No space left on device", "\(outcome)")
    }

    @Test func whereNobodyCanBeToldItFailsInOrder() throws {
        #expect(try shell("\"$0\" ls --cache-dir '\(directory.file("none"))' 2>/dev/full").exit == .exited(1))
    }

    // MARK: Texts of others

    @Test func whatATerminalObeysIsShown() throws {
        let shelf = try Shelf()
        shelf.origin.serve("/a.mp4", shelf.film, etag: "\"v\u{9B}31m\u{202E}\"")
        #expect(try #require(shelf.proxy).get(shelf.origin.url("/a.mp4")).status == 200)
        let shown = try shelf.say("show", shelf.origin.url("/a.mp4"))
        #expect(shown.lines.contains("etag        \"v\\u{009B}31m\\u{202E}\""), "\(shown)")

        shelf.origin.script("/gone.mp4") { ($0.status, $0.body) = (404, Array("\u{1B}]0;mine\u{7}\u{85}gone".utf8)) }
        let line = try #require(
            try shelf.run("export", shelf.origin.url("/gone.mp4"), "-o", directory.file("a.mp4"), "--fetch").failureLine
        )
        #expect(line.contains("404: \\u{1B}]0;mine\\u{07}"), "\(line)")
    }

    @Test(arguments: [
        ["show", "http://a/\u{1B}[31m"], ["pin", "http://a\u{9B}/b"], ["show\u{1B}[31m"], ["ls", "--sort", "\u{202E}"],
        ["ls", "--cache-dir", "/\u{1B}c"],
    ])
    func argumentsAreRepeatedAsTheyCanBeShown(command: [String]) throws {
        let shelf = try Shelf(.alone)
        let outcome = try ReelcacheCommand.run(
            command + ["--cache-dir", shelf.cache.path].prefix(command.contains("--cache-dir") ? 0 : 2))
        #expect(outcome.exit != .exited(0) && outcome.stderr != "")
        #expect(
            !outcome.stderr.unicodeScalars.contains {
                $0 != "\n" && [.control, .format].contains($0.properties.generalCategory)
            }, "\(outcome)")
    }

    // MARK: Arguments

    @Test(arguments: ["show 'http://a/'", "import --as http://a/b ", "ls --cache-dir "]) func whatIsNotUTF8IsRefused(
        command: String
    ) throws {
        let outcome = try shell("exec \"$0\" \(command)\"$(printf 'x\\377')\"")
        #expect(
            outcome.exit == .exited(2) && outcome.stdout == ""
                && outcome.stderr.hasSuffix("x\u{FFFD}' is not UTF-8: rename the file, or percent-encode the URL\n"))
    }
}
