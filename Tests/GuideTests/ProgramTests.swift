import Foundation
import TestSupport
import Testing

/// The short program of `docs/programs/embedding.md`, with the settings that it has.
@Suite struct ProgramTests {
    @Test(.enabled(if: GuideWorld.isExpected, "\(GuideWorld.obstacle ?? "")"))
    func shortProgramDownloadsAFilm() async throws {
        try GuideWorld.check()
        let text = """
            '\(try BuiltFile.path("ShortExample"))' https://example.org/film.mp4
            cmp ~/.cache/reelcache/data/*/* <(curl -s https://example.org/film.mp4)
            """
        let block = MarkdownPage.Block(language: "sh", line: 1, text: text, marker: nil)
        let result = try #require(try await blocking { try GuideWorld.run([(block, false)]) }.first)
        let lines = result.output.split(separator: "\n")
        #expect(result.status == "0", "\(result.command): \(result.output)")
        #expect(lines.first == "a player opens http://127.0.0.1:7335/https/example.org/film.mp4")
        #expect(lines.last == "downloaded; it plays at http://127.0.0.1:7335/https/example.org/film.mp4")
    }

    /// Its manifest, which is not part of this package's build.
    @Test func manifestIsAManifest() async throws {
        let directory = Documents.root.appendingPathComponent("Examples/Short").path
        let scratch = try TemporaryDirectory()
        let outcome = try await blocking {
            try ChildProcess.run(
                "/usr/bin/env",
                [
                    "swift", "package", "dump-package", "--package-path", directory, "--scratch-path", scratch.path,
                ])
        }
        #expect(outcome.exit == .exited(0), "\(outcome.stderr)")
        #expect(outcome.stdout.contains("\"ShortExample\""))
    }
}
