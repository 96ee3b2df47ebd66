import Foundation
import TestSupport
import Testing

/// A browser plays what the proxy gives it.
@Suite(Player.areExpected(.ffmpeg, .chromium, .python3))
struct BrowserTests {
    /// Says whether the film in a tab of its own plays. While it chooses its source, it has none either.
    private static let look = """
        new Promise(done => { let without = 0; const look = () => { const film = document.querySelector("video");
            without = film && film.networkState == 3 ? without + 1 : 0;
            if (film && film.error || without == 600) done("dead");
            else if (film && film.readyState >= 3) done("plays"); else setTimeout(look, 50) }; look() })
        """

    /// In a sandbox its origin would be none, and the browser would not read it.
    @Test func privateVideoPlaysInATabOfItsOwn() throws {
        let cinema = try Cinema(.mp4MoovFront)
        #expect(try Browser.open(cinema.proxyURL, evaluating: Self.look) == "plays\n", "new")
        #expect(try Browser.open(cinema.proxyURL, evaluating: Self.look) == "plays\n", "cached")
        try cinema.close()
    }
}
