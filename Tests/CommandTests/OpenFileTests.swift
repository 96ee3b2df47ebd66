import Foundation
import TestSupport
import Testing

/// A proxy that may have few files open (`ulimit -n`).
@Suite struct OpenFileTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func limited(_ files: Int) throws -> [String] {
        [
            "-c", "ulimit -n \(files) && exec \"$0\" \"$@\"", try ReelcacheCommand.path(), "serve", "--listen",
            "127.0.0.1:0", "--cache-dir", directory.file("cache"),
            "--allow", "127.0.0.1",
        ]
    }

    @Test func tooLowALimitIsSaidWithWhatIsNeeded() throws {
        let outcome = try ChildProcess.run(
            "/bin/sh", limited(60) + ["--threads", "2"], environment: ReelcacheCommand.neutral)
        let line = try #require(outcome.failureLine)
        #expect(
            line.contains("only 60 files open") && line.contains("with 2 threads it needs")
                && line.contains("ulimit -n"), "\(line)")
    }

    /// More resources than files may be open, one after the other and then many at once.
    @Test func idleResourcesMakeRoomForPlayers() throws {
        let origin = try ScriptedOrigin()
        defer { origin.stop() }
        let films = (0..<200).map { Media(seed: UInt64($0), size: 20_000) }
        for (number, film) in films.enumerated() { origin.serve("/\(number).mp4", film) }
        let process = try ChildProcess(
            "/bin/sh", limited(192) + ["--threads", "2"], environment: ReelcacheCommand.neutral)
        let line = try process.waitForLine(containing: " serves at ")
        let port = try #require(line.firstMatch(of: /127\.0\.0\.1:(\d+),/).flatMap { Int($0.1) })
        @Sendable func play(_ number: Int) throws -> Bool {
            let path = ProxyProcess.target(origin.url("/\(number).mp4"))
            // RFC 9112 §9.3.1: a connection whose request is long in coming (this machine may be busy) makes room for
            // others, and is made anew.
            var response = try? RawClient.get(port: port, path: path)
            for _ in 0..<4 where response == nil { response = try? RawClient.get(port: port, path: path) }
            guard let response else { return false }
            return response.status == 200 && response.body == films[number].bytes(0..<20_000)
        }
        for number in films.indices { #expect(try play(number), "\(number)") }
        let outcomes = try concurrently(60) { player in
            try (0..<5).map { try play((player * 7 + $0 * 41) % films.count) }
        }
        #expect(outcomes.joined().allSatisfy { $0 })
        #expect(try process.terminate() == .exited(0))
    }
}
