import Foundation
import TestSupport
import Testing

/// A page with hls.js, which comes from another place than the stream, plays it through the proxy: it seeks, and switches
/// renditions.
@Suite(Player.areExpected(.ffmpeg, .chromium, .python3, .hlsJS))
struct HLSJSTests {
    private static let steps = ["plays 192x108", "at 11 192x108", "at 17 192x108", "at 3 192x108"]
    private static let ofOne = steps + ["level 0 192x108", "ended"]
    private static let ofTwo = steps + ["level 0 96x54", "level 1 192x108", "ended"]

    @Test(arguments: [
        (StreamForm.hlsVariants, StreamAddresses.relative), (.hlsVariants, .absolute), (.hlsRanges, .rootRelative),
        (.hlsEncrypted, .redirected),
    ])
    func pagePlaysNewAndWithoutTheOrigin(form: StreamForm, addresses: StreamAddresses) throws {
        let (cinema, page) = (try StreamCinema(form, addresses), try StreamPage())
        let expected = form == .hlsVariants ? Self.ofTwo : Self.ofOne

        let seen = try cinema.throughTheProxy { try page.play($0, "film") }
        try #require(seen == expected, "new")
        // hls.js chooses by time which segments of a rendition it loads: this brings the rest.
        _ = try Frames(of: cinema.proxyURL)
        try cinema.stopOrigin()
        #expect(try page.play(cinema.proxyURL, "film") == expected, "without the origin")
        try cinema.close()
    }
}
