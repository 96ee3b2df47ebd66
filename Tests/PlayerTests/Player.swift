import Foundation
import TestSupport
import Testing

/// A program that plays media, and that a machine may lack.
enum Player: String, CaseIterable {
    case ffmpeg, mpv, chromium, python3

    /// Where it is, by `$PATH`.
    private var path: String? {
        let directories = (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin").split(separator: ":")
        return directories.lazy.map { "\($0)/\(rawValue)" }.first { access($0, X_OK) == 0 }
    }

    /// Whether tests with it are to run: where it is missing they are skipped, but fail under `CI=true`.
    private var isExpected: Bool { path != nil || ProcessInfo.processInfo.environment["CI"] == "true" }

    /// The condition of tests that need these players.
    static func areExpected(_ players: Player...) -> some SuiteTrait & TestTrait {
        let missing = players.filter { !$0.isExpected }.map(\.rawValue)
        return ConditionTrait.enabled(if: missing.isEmpty, "not installed: \(missing.joined(separator: ", "))")
    }

    func location() throws -> String {
        try #require(path, "\(rawValue) is not installed, and CI=true makes that a failure")
    }

    /// Runs it to its end.
    func run(_ arguments: [String]) throws -> ChildProcess.Outcome {
        try ChildProcess.run(try location(), arguments, environment: ReelcacheCommand.neutral)
    }
}
