import Foundation
import TestSupport
import Testing

/// Players that choose by themselves what they take of a stream, and programs that fetch one.
enum FurtherPlayer: String, CaseIterable, CustomTestStringConvertible {
    case vlc, gstreamer, streamlink, ytDlp

    var testDescription: String { rawValue }

    /// Whether it takes the rendition that its line is good for, and so another one each time.
    var adapts: Bool { self == .vlc || self == .gstreamer }

    /// Plays or fetches the stream to its end.
    /// - Returns: a checksum for each frame of its picture.
    func checksums(_ url: String, _ when: String) throws -> [Substring] {
        let directory = try TemporaryDirectory()
        let (outcome, file) = try run(url, directory)
        #expect(outcome.exit == .exited(0), "\(when): \(outcome.exit) \(outcome.stderr)")
        guard let file else {
            // checksumsink: `0:00:00.040000000 3f786850e387550fdab836ed7e6dc881de23001b`
            return outcome.stdout.split(separator: "\n").filter {
                $0.wholeMatch(of: #/\d+:\d+:\d+\.\d+ [0-9a-f]{40}/#) != nil
            }
            .map(Self.lastWord)
        }
        return try Frames(of: file, tracks: "0:v:0").lines.filter { !$0.hasPrefix("#") }.map(Self.lastWord)
    }

    private static func lastWord(_ line: Substring) -> Substring { line.split(separator: " ").last ?? "" }

    /// Runs it to its end.
    /// - Returns: also the file with what it has got; nil where it has written checksums.
    private func run(_ url: String, _ directory: TemporaryDirectory) throws -> (ChildProcess.Outcome, file: String?) {
        switch self {
        case .vlc:
            let file = directory.file("film.ts")
            return (try Self.vlc(url, directory, into: file), file)
        case .gstreamer:
            return (try gstreamer(url), nil)
        case .streamlink:
            let file = directory.file("film")
            let kind = url.hasSuffix(".mpd") ? "dash" : "hls"
            return (
                try Player.streamlink.run([
                    "--no-config", "--loglevel", "error", "-o", file, "\(kind)://\(url)", "best",
                ]),
                file
            )
        case .ytDlp:
            let file = directory.file("film.mp4")
            return (
                try Player.ytDlp.run([
                    "--ignore-config", "--no-cache-dir", "--quiet", "--retries", "0", "--fragment-retries", "0", "-o",
                    file, url,
                ]), file
            )
        }
    }

    /// GStreamer 1.22 sometimes stops in the middle for ever, also without a proxy: it gets six attempts.
    private func gstreamer(_ url: String) throws -> ChildProcess.Outcome {
        let arguments = [
            "-q", "playbin", "uri=\(url)",
            "video-sink=videoconvert ! video/x-raw,format=I420 ! checksumsink sync=false",
            "audio-sink=fakesink sync=false",
        ]
        for _ in 0..<5 {
            if let outcome = try? Player.gstreamer.run(arguments, within: .seconds(60)) { return outcome }
        }
        return try Player.gstreamer.run(arguments, within: .seconds(60))
    }

    /// It refuses to run as root.
    static func vlc(_ url: String, _ directory: TemporaryDirectory, into file: String) throws -> ChildProcess.Outcome {
        chmod(directory.path, 0o777)
        let arguments = [
            "-q", "-I", "dummy", "--play-and-exit", "--sout", "#std{access=file,mux=ts,dst=\(file)}", url, "vlc://quit",
        ]
        let someone = getuid() == 0 ? ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"] : []
        let environment = ReelcacheCommand.neutral
            .merging(["HOME": directory.path, "XDG_RUNTIME_DIR": directory.path]) { $1 }
        return try ChildProcess.run(
            "/usr/bin/env", someone + [try Player.vlc.location()] + arguments, environment: environment)
    }
}

/// VLC and GStreamer play streams through the proxy, streamlink and yt-dlp fetch them: the same frames as without it.
@Suite(Player.areExpected(.ffmpeg, .vlc, .gstreamer, .streamlink, .ytDlp))
struct FurtherPlayerTests {
    /// In encrypted streams GStreamer stops too often.
    private static let plays = FurtherPlayer.allCases.flatMap { player in
        let single: StreamForm = player == .gstreamer ? .hlsRanges : .hlsEncrypted
        return [
            (player, StreamForm.hlsTS, StreamAddresses.relative), (player, single, .rootRelative),
            (player, .hlsVariants, .absolute), (player, .dashTimeline, .redirected),
        ]
    }

    /// What a player shows. On a busy machine VLC now and then misses ten pictures, also without a proxy: it gets three
    /// attempts.
    private static func pictures(
        _ player: FurtherPlayer, _ url: String, _ when: String, until isRight: ([Substring]) -> Bool
    ) throws -> [Substring] {
        for _ in 0..<(player == .vlc ? 2 : 0) {
            let seen = try player.checksums(url, when)
            if isRight(seen) { return seen }
        }
        return try player.checksums(url, when)
    }

    @Test(arguments: FurtherPlayer.allCases) func streamGatedByACookiePlays(player: FurtherPlayer) throws {
        let cinema = try StreamCinema(.hlsTS)
        try cinema.gate()
        let direct = try Self.pictures(player, cinema.originURL, "direct") { $0.count > 480 }
        #expect(direct.count > 480, "\(direct.count) pictures, direct")
        try cinema.throughTheProxy {
            let seen = try Self.pictures(player, $0, "new") { $0 == direct }
            #expect(seen == direct, "\(seen.count) pictures instead of \(direct.count)")
        }
        try cinema.close()
    }

    /// VLC asks with `Cache-Control: no-cache`, and does not get anything anew for that.
    @Test(arguments: plays)
    func picturesAreEqualNewCachedAndWithoutTheOrigin(
        player: FurtherPlayer, form: StreamForm, addresses: StreamAddresses
    ) throws {
        let cinema = try StreamCinema(form, addresses)
        let direct = try Self.pictures(player, cinema.originURL, "direct") { $0.count > 480 }
        #expect(direct.count > 480, "\(direct.count) pictures, direct")
        let isRight = { (seen: [Substring]) in
            player.adapts && form.hasRenditions ? seen.count > 480 : seen == direct
        }
        let play = { (url: String, when: String) in
            let seen = try Self.pictures(player, url, when, until: isRight)
            #expect(isRight(seen), "\(when): \(seen.count) pictures instead of \(direct.count)")
        }

        try cinema.throughTheProxy { try play($0, "new") }
        // What a player has not chosen yet.
        if form.hasRenditions { _ = try Frames(of: cinema.proxyURL) }
        let (sent, segments) = (cinema.bytesFromOrigin, cinema.segmentRequests)
        if addresses == .relative {
            try cinema.throughTheProxy { try play($0, "cached") }
            #expect(cinema.bytesFromOrigin == sent, "what is cached came once more")
            #expect(cinema.segmentRequests == segments, "what is cached was asked for once more")
        }
        try cinema.stopOrigin()
        try play(cinema.proxyURL, "without the origin")
        try cinema.close()
    }
}
