import Foundation
import TestSupport
import Testing

/// A short film in one of the containers that players treat differently, made by ffmpeg once per run.
enum Film: String, CaseIterable, CustomTestStringConvertible {
    case mp4MoovFront = "front.mp4"
    case mp4MoovEnd = "end.mp4"
    case mkv = "film.mkv"
    case mp3 = "sound.mp3"

    var path: String { "/\(rawValue)" }
    var testDescription: String { rawValue }

    var contentType: String {
        switch self {
        case .mp4MoovFront, .mp4MoovEnd: "video/mp4"
        case .mkv: "video/x-matroska"
        case .mp3: "audio/mpeg"
        }
    }

    func bytes() throws -> [UInt8] {
        try #require(try Self.made.get()[self])
    }

    private static let made = Result {
        let directory = try TemporaryDirectory()
        return try Dictionary(uniqueKeysWithValues: allCases.map { ($0, try $0.make(in: directory)) })
    }

    private func make(in directory: TemporaryDirectory) throws -> [UInt8] {
        let file = directory.file(rawValue)
        let outcome = try Player.ffmpeg.run(["-nostdin", "-v", "error"] + Self.sources + encoding + [file])
        try #require(outcome.exit == .exited(0), "ffmpeg cannot make \(rawValue): \(outcome.stderr)")
        return [UInt8](try Data(contentsOf: URL(fileURLWithPath: file)))
    }

    private static let sources = [
        "-f", "lavfi", "-i", "testsrc2=size=320x240:rate=25:duration=8", "-f", "lavfi", "-i",
        "sine=frequency=440:duration=8",
    ]

    /// Some 3 MB, so that seeks lead to chunks that are not there yet.
    private var encoding: [String] {
        let video = [
            "-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-b:v", "3M", "-g", "25", "-c:a", "aac",
            "-shortest",
        ]
        return switch self {
        case .mp4MoovFront: video + ["-movflags", "+faststart"]
        case .mp4MoovEnd, .mkv: video
        case .mp3: ["-map", "1:a", "-c:a", "libmp3lame", "-b:a", "320k"]
        }
    }
}
