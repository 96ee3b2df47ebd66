import Foundation
import TestSupport
import Testing

/// The example program, run as its readers run it.
@Suite struct ExampleTests {
    private let origin: ScriptedOrigin
    private let directory: TemporaryDirectory
    private let film = Media(seed: 81, size: 1_000_000)

    init() throws {
        (origin, directory) = (try ScriptedOrigin(), try TemporaryDirectory())
        origin.serve("/film.mp4", film)
    }

    private func run(_ arguments: String...) throws -> ChildProcess.Outcome {
        let program = try BuiltFile.path("EmbeddingExample")
        return try ChildProcess.run(
            program, arguments, environment: ReelcacheCommand.neutral.merging(["TMPDIR": directory.path]) { $1 })
    }

    @Test func filmIsDownloadedAndPlayed() async throws {
        try await blocking {
            let outcome = try run("--allow", "127.0.0.1", origin.url("/film.mp4"))
            #expect(outcome.exit == .exited(0), "\(outcome)")
            let lines = outcome.stdout.split(separator: "\n").map(String.init)
            #expect(lines.first == "cached before: no")
            #expect(lines.contains("completed: 100 %"))
            #expect(lines.contains("cached: 1000000 of 1000000 bytes, pinned"))
            #expect(lines.contains("history: \(origin.url("/film.mp4")) completed"))
            #expect(lines.last?.hasPrefix("played 65536 bytes, reelcache; hit") == true, "\(outcome)")
            #expect(origin.requestCount("/film.mp4") == 1)
            // It leaves nothing behind.
            #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path) == [])
        }
    }

    @Test func cacheOfItsOwnStays() async throws {
        try await blocking {
            for before in ["no", "yes"] {
                let outcome = try run(
                    "--cache-dir", directory.file("cache"), "--allow", "127.0.0.1", origin.url("/film.mp4"))
                #expect(
                    outcome.exit == .exited(0) && outcome.stdout.hasPrefix("cached before: \(before)\n"), "\(outcome)")
            }
            #expect(origin.requestCount("/film.mp4") == 1)
        }
    }

    @Test func whatGoesWrongIsSaid() async throws {
        try await blocking {
            let refused = try run(origin.url("/film.mp4"))
            #expect(
                refused.exit == .exited(1) && refused.stderr.contains("127.0.0.1: address not permitted"), "\(refused)")
            #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path) == [])
        }
    }

    /// What readers copy is what is built and run here.
    @Test func piecesOfCodeInTheArticleArePartsOfTheExample() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../..")
            .standardizedFileURL
        func lines(_ path: String) throws -> [String] {
            try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8).split(
                separator: "\n", omittingEmptySubsequences: false
            )
            .map { $0.trimmingCharacters(in: .whitespaces) }
        }
        let example = try lines("Examples/Embedding/EmbeddingExample.swift")
        var (pieces, piece): ([[String]], [String]?) = ([], nil)
        for line in try lines("Sources/Reelcache/Reelcache.docc/Embedding.md") {
            if line == "```swift" {
                piece = []
            } else if line == "```", let whole = piece {
                (pieces, piece) = (pieces + [whole], nil)
            } else {
                piece?.append(line)
            }
        }
        #expect(pieces.count >= 5)
        for piece in pieces {
            #expect(example.indices.contains { example[$0...].starts(with: piece) }, "\(piece.joined(separator: "\n"))")
        }
    }
}
