import Foundation
import TestSupport
import Testing

/// A form in which a packager cuts one short film into segments. ffmpeg makes all of them once per run.
///
/// The film has twenty seconds in segments of two. Where a form has renditions, there are two pictures, a large and a
/// small one, and one sound.
enum StreamForm: String, CaseIterable, CustomTestStringConvertible {
    case hlsTS = "hls-ts"
    case hlsFMP4 = "hls-fmp4"
    /// `single_file`: one file, whose byte ranges are the segments.
    case hlsRanges = "hls-ranges"
    /// AES-128.
    case hlsEncrypted = "hls-encrypted"
    /// A multivariant playlist with two variants and an audio group.
    case hlsVariants = "hls-variants"
    case dashTimeline = "dash-timeline"
    case dashNumbers = "dash-numbers"
    /// One file for each rendition, and a `sidx` box in it that says where its segments are.
    case dashSingleFile = "dash-single-file"

    var testDescription: String { rawValue }
    var isHLS: Bool { rawValue.hasPrefix("hls") }
    /// Whether there is more than one picture to choose from.
    var hasRenditions: Bool { [.hlsVariants, .dashTimeline, .dashNumbers, .dashSingleFile].contains(self) }
    /// The playlist that a player opens.
    var entry: String { isHLS ? "index.m3u8" : "index.mpd" }

    /// All files of the stream by name.
    func files() throws -> [String: [UInt8]] {
        try #require(try Self.made.get()[self])
    }

    static func contentType(of name: String) -> String {
        switch name.split(separator: ".").last {
        case "m3u8": "application/vnd.apple.mpegurl"
        case "mpd": "application/dash+xml"
        case "ts": "video/mp2t"
        case "m4s", "mp4": "video/mp4"
        default: "application/octet-stream"
        }
    }

    // MARK: - The packager

    private static let made = Result {
        let directory = try TemporaryDirectory()
        try encode(in: directory)
        return try Dictionary(uniqueKeysWithValues: allCases.map { ($0, try $0.make(in: directory)) })
    }

    /// A key picture at the beginning of each segment. The sound ends a little earlier, so that no segment holds a
    /// rest of it alone.
    private static func encode(in directory: TemporaryDirectory) throws {
        let video = [
            "-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-g", "50", "-sc_threshold", "0",
        ]
        let sources = [
            "-f", "lavfi", "-i", "testsrc2=size=192x108:rate=25:duration=20", "-f", "lavfi", "-i",
            "sine=frequency=440:duration=19.9",
        ]
        let (large, small) = (directory.file("large.mp4"), directory.file("small.mp4"))
        try ffmpeg(sources + video + ["-b:v", "400k", "-c:a", "aac", "-b:a", "64k", large])
        try ffmpeg(["-i", large] + video + ["-vf", "scale=96:54", "-b:v", "100k", "-an", small])
    }

    private static func ffmpeg(_ arguments: [String]) throws {
        let outcome = try Player.ffmpeg.run(["-nostdin", "-v", "error"] + arguments)
        guard outcome.exit == .exited(0) else {
            throw CannotPackage(description: "ffmpeg \(arguments) ended with \(outcome.exit): \(outcome.stderr)")
        }
    }

    /// Not `#require`: what that throws is reported once, and all tests but the first would pass.
    private struct CannotPackage: Error, CustomStringConvertible {
        let description: String
    }

    private func make(in directory: TemporaryDirectory) throws -> [String: [UInt8]] {
        let folder = directory.file(rawValue)
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        var extra = [String: [UInt8]]()
        if self == .hlsEncrypted {
            let key = [UInt8](repeating: 7, count: 16)
            try Data(key).write(to: URL(fileURLWithPath: "\(folder)/stream.key"))
            try Data("stream.key\n\(folder)/stream.key\n".utf8)
                .write(to: URL(fileURLWithPath: directory.file("key-info")))
            extra["stream.key"] = key
        }
        try Self.ffmpeg(
            ["-i", directory.file("large.mp4"), "-i", directory.file("small.mp4")] + packaging(folder, directory)
                + ["\(folder)/\(self == .hlsVariants ? "v%v.m3u8" : entry)"])
        var files = extra
        for name in try FileManager.default.contentsOfDirectory(atPath: folder) {
            files[name] = [UInt8](try Data(contentsOf: URL(fileURLWithPath: "\(folder)/\(name)")))
        }
        return self == .dashSingleFile ? try files.withSegmentBase(entry) : files
    }

    private func packaging(_ folder: String, _ directory: TemporaryDirectory) -> [String] {
        let one = ["-map", "0", "-c", "copy"]
        let all = ["-map", "0:v", "-map", "1:v", "-map", "0:a", "-c", "copy"]
        let hls = ["-f", "hls", "-hls_time", "2", "-hls_playlist_type", "vod"]
        let dash = all + ["-f", "dash", "-seg_duration", "2", "-adaptation_sets", "id=0,streams=0,1 id=1,streams=2"]
        return switch self {
        case .hlsTS: one + hls
        case .hlsFMP4: one + hls + ["-hls_segment_type", "fmp4"]
        case .hlsRanges: one + hls + ["-hls_segment_type", "fmp4", "-hls_flags", "single_file"]
        case .hlsEncrypted: one + hls + ["-hls_key_info_file", directory.file("key-info")]
        case .hlsVariants:
            all + hls + [
                "-hls_segment_type", "fmp4", "-var_stream_map",
                "v:0,agroup:sound v:1,agroup:sound a:0,agroup:sound,language:en,default:yes", "-master_pl_name", entry,
                "-hls_segment_filename", "\(folder)/v%v-%d.m4s", "-hls_fmp4_init_filename", "init-%v.mp4",
            ]
        case .dashTimeline: dash
        case .dashNumbers: dash + ["-use_timeline", "0"]
        case .dashSingleFile: dash + ["-single_file", "1", "-global_sidx", "1"]
        }
    }
}

extension [String: [UInt8]] {
    /// ffmpeg lists the segments of a single file one by one, although the file has a `sidx` box: here the MPD
    /// says where that is instead, as other packagers do.
    fileprivate func withSegmentBase(_ entry: String) throws -> Self {
        var files = self
        let text = String(decoding: try #require(self[entry]), as: UTF8.self)
        let list = try Regex(#"<BaseURL>([^<]*)</BaseURL>\s*<SegmentList(.|\n)*?</SegmentList>"#)
        let replaced = try text.replacing(list) { match in
            let name = String(match.output[1].substring ?? "")
            let index = try #require(files[name]?.box("sidx"), "\(name) has no sidx box")
            return """
                <BaseURL>\(name)</BaseURL><SegmentBase indexRange="\(index.lowerBound)-\(index.upperBound - 1)">\
                <Initialization range="0-\(index.lowerBound - 1)"/></SegmentBase>
                """
        }
        files[entry] = [UInt8](replaced.utf8)
        return files
    }
}

extension [UInt8] {
    /// Where the first box of this kind is among those of the outermost level (ISO/IEC 14496-12 §4.2). Its length is
    /// taken to be one of 32 bits.
    fileprivate func box(_ kind: String) -> Range<Int>? {
        var start = 0
        while start + 8 <= count {
            let length = self[start..<start + 4].reduce(0) { $0 << 8 | Int($1) }
            if self[start + 4..<start + 8].elementsEqual(kind.utf8) { return start..<start + length }
            start += Swift.max(length, 8)
        }
        return nil
    }
}
