import Foundation
import TestSupport
import Testing

/// A program that plays or fetches media, or helps with that, and that a machine may lack.
enum Player: String, CaseIterable {
    case ffmpeg, mpv, chromium, python3, vlc, streamlink
    case gstreamer = "gst-launch-1.0"
    case ytDlp = "yt-dlp"
    case gpodder = "gpo"
    /// A file that a page loads.
    case hlsJS = "hls.js"

    /// Where `scripts/setup-players` puts what Debian does not have.
    private static let downloads: String = {
        let environment = ProcessInfo.processInfo.environment
        let caches = environment["XDG_CACHE_HOME"] ?? "\(environment["HOME"] ?? "/root")/.cache"
        return environment["REELCACHE_PLAYERS"] ?? "\(caches)/reelcache-players"
    }()

    /// Where it is, by `$PATH`.
    private var path: String? {
        let directories = (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin").split(separator: ":").map(
            String.init)
        let places = self == .hlsJS ? [Self.downloads] : ["\(Self.downloads)/venv/bin"] + directories
        let mode = self == .hlsJS ? R_OK : X_OK
        // An environment of Python has python3 too, which is not the one that is meant.
        return (self == .python3 ? directories : places).lazy.map { "\($0)/\(rawValue)" }.first {
            access($0, mode) == 0
        }
    }

    /// Whether tests with it are to run: where it is missing they are skipped, but fail under `CI=true`.
    private var isExpected: Bool { path != nil || ProcessInfo.processInfo.environment["CI"] == "true" }

    /// The condition of tests that need these players.
    static func areExpected(_ players: Player...) -> some SuiteTrait & TestTrait {
        let missing = players.filter { !$0.isExpected }.map(\.rawValue)
        return ConditionTrait.enabled(
            if: missing.isEmpty, "not installed (scripts/setup-players does that): \(missing.joined(separator: ", "))")
    }

    func location() throws -> String {
        try #require(path, "\(rawValue) is not installed, and CI=true makes that a failure: run scripts/setup-players")
    }

    /// Runs it to its end.
    func run(_ arguments: [String], within patience: Duration = .patience) throws -> ChildProcess.Outcome {
        try ChildProcess.run(try location(), arguments, environment: ReelcacheCommand.neutral, within: patience)
    }
}
