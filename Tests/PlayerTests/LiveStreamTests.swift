import Foundation
import TestSupport
import Testing

/// A live stream goes on through the proxy, however many watch it and whatever its origin says of the playlist.
@Suite(Player.areExpected(.ffmpeg))
struct LiveStreamTests {
    /// Pictures for fourteen seconds: six that are there, eight that come while they are watched.
    private static let pictures = 14 * 25

    /// Players that read the stream as it comes, at an address each.
    private func watch(_ urls: [String]) throws -> [[Substring]] {
        let players = try urls.map {
            try ChildProcess(
                try Player.ffmpeg.location(),
                [
                    "-nostdin", "-v", "error", "-max_reload", "10", "-i", $0, "-map", "0:v", "-copyts", "-frames:v",
                    "\(Self.pictures)", "-f", "framemd5", "-",
                ], environment: ReelcacheCommand.neutral)
        }
        return players.map { player in
            // One that a frozen playlist keeps waiting has fewer pictures.
            _ = try? player.waitForExit(within: .seconds(120))
            return player.stdout.split(separator: "\n").filter { !$0.hasPrefix("#") }
        }
    }

    /// Their numbers, of which none may be missing.
    private func times(_ pictures: [Substring]) -> [Int] {
        pictures.compactMap { line in
            let words = line.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
            return words.count > 2 ? Int(words[2]) : nil
        }
    }

    @Test func playersOfALiveStreamAskOncePerRefreshAndMissNothing() throws {
        let (origin, live, cache) = (try ScriptedOrigin(), try LiveStream(), try TemporaryDirectory())
        live.serve(on: origin)
        let proxy = try ProxyProcess(cacheDirectory: cache.path)
        try live.waitForSegments(3)
        let begin = ContinuousClock.now
        // Two would hardly ask more often than is allowed, also each for itself.
        let kinds = LiveStream.Fields.proxied.flatMap { Array(repeating: $0, count: 3) }
        let direct = origin.url(live.playlist(.direct))
        let watched = try watch([direct] + kinds.map { proxy.url(origin.url(live.playlist($0))) })

        for (fields, pictures) in zip([.direct] + kinds, watched) {
            let times = times(pictures)
            let jumps = zip(times, times.dropFirst()).filter { $1 - $0 != 1 }.count
            #expect(times.count == Self.pictures && jumps == 0, "\(fields): \(times.count) pictures, \(jumps) jumps")
        }
        // Half a target duration holds a playlist: one second, whatever the packager has done in it.
        let refreshes = (ContinuousClock.now - begin).components.seconds + 2
        for fields in LiveStream.Fields.proxied {
            let asked = origin.requestCount(live.playlist(fields))
            #expect(
                Double(asked) <= 1.1 * Double(refreshes), "\(fields): asked \(asked) times in \(refreshes) refreshes")
        }
        #expect(try proxy.process.terminate() == .exited(0))
    }

    /// In a browser, where the page comes from elsewhere.
    @Test(Player.areExpected(.chromium, .python3, .hlsJS)) func pagePlaysALiveStream() throws {
        let (origin, live, cache, page) = (
            try ScriptedOrigin(), try LiveStream(), try TemporaryDirectory(), try StreamPage()
        )
        live.serve(on: origin)
        let proxy = try ProxyProcess(cacheDirectory: cache.path)
        try live.waitForSegments(3)
        let seen = try page.play(proxy.url(origin.url(live.playlist(.dated))), "live")
        #expect(seen == ["live"])
        #expect(try proxy.process.terminate() == .exited(0))
    }
}
