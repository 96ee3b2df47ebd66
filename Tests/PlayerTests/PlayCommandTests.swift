import Foundation
import TestSupport
import Testing

/// `reelcache play` with a real mpv, in two steps: install, play.
@Suite(Player.areExpected(.ffmpeg, .mpv))
struct PlayCommandTests {
    /// The second time without the origin.
    @Test func mpvPlaysAndTheFilmIsCached() throws {
        let (origin, directory, film) = (try ScriptedOrigin(), try TemporaryDirectory(), Film.mp4MoovFront)
        origin.serve(film.path, bytes: try film.bytes(), contentType: film.contentType)
        for place in ["origin", "cache"] {
            let outcome = try ReelcacheCommand.run(
                [
                    "play", origin.url(film.path), "--player", try Player.mpv.location(), "--listen", "127.0.0.1:0",
                    "--allow", "127.0.0.1", "--cache-dir", directory.file("cache"), "--", "--no-config",
                    "--load-scripts=no", "--vo=null", "--ao=null", "--untimed", "--ao-null-untimed",
                    "--msg-level=all=error,ao=no,cplayer=info",
                ])
            #expect(outcome.exit == .exited(0), "\(place): \(outcome)")
            #expect(outcome.stdout.contains("End of file"), "\(place): \(outcome)")
            origin.stop()
        }
        let shown = try ReelcacheCommand.run(["ls", "--cache-dir", directory.file("cache")])
        #expect(shown.stdout.contains("complete"), "\(shown)")
    }
}
