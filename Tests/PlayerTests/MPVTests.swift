import Foundation
import TestSupport
import Testing

/// mpv plays and seeks through the proxy.
@Suite(Player.areExpected(.ffmpeg, .mpv))
struct MPVTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// Seconds to which the script seeks, one after the other. It then plays to the end.
    private static let seeks = [5.0, 1.0, 7.0, 3.0, 6.0]

    /// Seeks while it is paused, each time when the player has come to rest after the one before, and says where it is.
    /// Then it lets the film play to its end.
    private static let script = """
        local seeks, next = {\(seeks.map { "\($0)" }.joined(separator: ", "))}, 1
        local function say(...) io.stdout:write(string.format(...), "\\n") io.stdout:flush() end
        mp.register_event("playback-restart", function()
            say("at %.2f", mp.get_property_number("time-pos"))
            if seeks[next] then mp.commandv("seek", seeks[next], "absolute+exact") else mp.set_property_bool("pause", false) end
            next = next + 1
        end)
        mp.register_event("end-file", function(event) say("end %s", event.reason) end)
        """

    /// Plays the film at `url` with all seeks; it must say nothing else, and end at the end.
    private func play(_ url: String, _ when: String) throws {
        let script = directory.file("seeks.lua")
        try Self.script.write(toFile: script, atomically: true, encoding: .utf8)
        let outcome = try Player.mpv.run([
            "--no-config", "--load-scripts=no", "--script=\(script)", "--pause",
            // As fast as it can. Its null output complains when it runs dry; everything else is quiet unless there is
            // an error.
            "--vo=null", "--ao=null", "--untimed", "--ao-null-untimed", "--msg-level=all=error,ao=no",
            // Without a cache of its own every seek is a request.
            "--cache=no", url,
        ])
        #expect(outcome.exit == .exited(0) && outcome.stderr == "", "\(when): \(outcome.exit) \(outcome.stderr)")
        let lines = outcome.stdout.split(separator: "\n")
        let positions = lines.dropLast().map { Double($0.dropFirst("at ".count)) ?? .nan }
        let targets = [0] + Self.seeks
        // An audio frame may begin a little before.
        let areRight = positions.count == targets.count && zip(positions, targets).allSatisfy { abs($0 - $1) < 0.2 }
        #expect(areRight && lines.last == "end eof", "\(when): \(lines)")
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
