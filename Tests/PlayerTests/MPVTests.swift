import Foundation
import TestSupport
import Testing

/// mpv plays and seeks through the proxy.
@Suite(Player.areExpected(.ffmpeg, .mpv))
struct MPVTests {
    /// Seconds.
    private static let seeks = [5.0, 1.0, 7.0, 3.0, 6.0]

    /// Plays the film at `url` with all seeks; it must say nothing else, and end at the end.
    private func play(_ url: String, _ when: String) throws {
        let play = try SeekingPlay(of: url, seeks: Self.seeks)
        #expect(play.exit == .exited(0) && play.errors == "", "\(when): \(play.exit) \(play.errors)")
        let targets = [0] + Self.seeks
        // An audio frame may begin a little before.
        let areRight =
            play.stops.count == targets.count && zip(play.stops, targets).allSatisfy { abs($0.seconds - $1) < 0.2 }
        #expect(areRight && play.lines.last == "end eof", "\(when): \(play.lines)")
    }

    @Test(arguments: Film.allCases) func seeksWorkNewCachedAndWithoutTheOrigin(film: Film) throws {
        let cinema = try Cinema(film)

        try play(cinema.proxyURL, "new")
        #expect(cinema.bytesFromOrigin > 0)
        try cinema.expectTheOriginsBytes()
        let sent = cinema.bytesFromOrigin
        try play(cinema.proxyURL, "cached")
        #expect(cinema.bytesFromOrigin == sent)
        cinema.origin.stop()
        try play(cinema.proxyURL, "without the origin")
        try cinema.expectTheOriginsBytes()
        try cinema.close()
    }

    /// A slow line, so that the seeks overtake the transfer.
    @Test(arguments: Film.allCases) func seeksWorkOverASlowLine(film: Film) throws {
        let cinema = try Cinema(film)
        cinema.origin.script(film.path) { $0.bytesPerSecond = 500_000 }

        try play(cinema.proxyURL, "slow")
        cinema.origin.script(film.path) { $0.bytesPerSecond = nil }
        try cinema.expectTheOriginsBytes()
        try cinema.close()
    }
}
