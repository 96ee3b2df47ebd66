import Foundation
import TestSupport
import Testing

/// What ffmpeg decodes: a line with a checksum for each frame and each piece of sound, of all tracks and renditions.
struct Frames {
    let lines: [Substring]
    /// How ffmpeg ended, and what it complained about.
    let ending: String

    /// - Parameters:
    ///   - length: how many seconds to decode; nil for all.
    ///   - tracks: as ffmpeg writes it: `0` for all, `0:v:0` for the first picture.
    init(of url: String, from seconds: Int? = nil, length: Int? = nil, tracks: String = "0") throws {
        let seek = seconds.map { ["-ss", "\($0)"] } ?? []
        let outcome = try Player.ffmpeg.run(
            ["-nostdin", "-v", "error"] + seek + (length.map { ["-t", "\($0)"] } ?? []) + [
                "-i", url, "-map", tracks, "-f", "framemd5", "-",
            ])
        lines = outcome.stdout.split(separator: "\n")
        ending = "\(outcome.exit) \(outcome.stderr)"
    }

    /// Fails where a frame is missing, or another one.
    func expect(toBe expected: Frames, _ when: String) {
        #expect(lines.count == expected.lines.count, "\(when): \(ending)")
        if let (frame, wanted) = zip(lines, expected.lines).first(where: { $0 != $1 }) {
            Issue.record("\(when): \(frame) instead of \(wanted)")
        }
    }
}
