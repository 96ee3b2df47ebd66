import Foundation
import TestSupport
import Testing

/// A live stream that ffmpeg makes in real time: segments of two seconds, of which the playlist names the last twelve.
/// A player that stands still for some seconds misses none.
final class LiveStream {
    /// What an origin says of the playlist.
    enum Fields: String, CaseIterable {
        /// Nothing of its age.
        case none
        /// `Last-Modified`, by which a cache might guess for how long it holds.
        case dated
        /// `Cache-Control`, with a lifetime that no live playlist has.
        case lasting
        /// As `none`, for players that do without the proxy.
        case direct

        /// Those whose players use the proxy.
        static let proxied: [Fields] = [.none, .dated, .lasting]
    }

    private static let seconds = 30
    private let directory: TemporaryDirectory
    private let packager: ChildProcess

    init() throws {
        directory = try TemporaryDirectory()
        packager = try ChildProcess(
            try Player.ffmpeg.location(),
            [
                "-nostdin", "-v", "info", "-re", "-f", "lavfi", "-i", "testsrc2=size=192x108:rate=25", "-re", "-f",
                "lavfi", "-i", "sine=frequency=440", "-t", "\(Self.seconds)", "-c:v", "libx264", "-preset",
                "ultrafast", "-pix_fmt", "yuv420p", "-b:v", "200k", "-g", "50", "-sc_threshold", "0", "-c:a", "aac",
                "-f", "hls", "-hls_time", "2", "-hls_list_size", "12", "-hls_flags", "delete_segments+temp_file",
                directory.file("live.m3u8"),
            ])
    }

    /// Serves it in a folder for each kind of fields.
    func serve(on origin: ScriptedOrigin) {
        for fields in Fields.allCases {
            origin.script(playlist(fields)) {
                ($0.file, $0.contentType) = (directory.file("live.m3u8"), "application/vnd.apple.mpegurl")
                $0.isFileDated = fields == .dated
                if fields == .lasting { $0.headers = [("Cache-Control", "max-age=3600")] }
            }
            for number in 0...Self.seconds {
                origin.script("/\(fields)/live\(number).ts") {
                    ($0.file, $0.contentType) = (directory.file("live\(number).ts"), "video/mp2t")
                }
            }
        }
    }

    func playlist(_ fields: Fields) -> String { "/\(fields)/live.m3u8" }

    /// Waits until there are so many whole segments in the playlist.
    func waitForSegments(_ count: Int) throws {
        // It says so when it opens the next one.
        try packager.waitForLine(containing: "live\(count + 1).ts", on: .stderr)
    }
}
