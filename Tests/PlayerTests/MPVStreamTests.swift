import Foundation
import TestSupport
import Testing

/// mpv shows the same pictures after seeks in a stream with and without the proxy.
///
/// Of fragmented MP4 in HLS it shows the wrong ones also without a proxy (FFmpeg 5.1): compared is what it does with
/// the origin itself.
@Suite(Player.areExpected(.ffmpeg, .mpv))
struct MPVStreamTests {
    private static let seeks = [11.0, 3.0, 17.0, 5.0, 15.0]

    private func play(_ url: String) throws -> SeekingPlay { try SeekingPlay(of: url, seeks: Self.seeks) }

    @Test(
        arguments: StreamForm.allCases.map { ($0, StreamAddresses.relative) }
            + [(.hlsTS, .absolute), (.hlsEncrypted, .rootRelative), (.hlsVariants, .redirected)]
            + [(.dashNumbers, .absolute), (.dashTimeline, .redirected)])
    func seeksShowTheSameNewCachedAndWithoutTheOrigin(form: StreamForm, addresses: StreamAddresses) throws {
        let cinema = try StreamCinema(form, addresses)
        let expected = try play(cinema.originURL)
        #expect(expected.stops.count == Self.seeks.count + 1 && expected.lines.last == "end eof", "\(expected)")

        for when in ["new", "cached"] {
            try cinema.throughTheProxy {
                let seen = try play($0)
                #expect(seen.lines == expected.lines && seen.exit == expected.exit, "\(when): \(seen.errors)")
            }
        }
        // Of several renditions those are listed then that are there as a whole.
        if form.hasRenditions { _ = try Frames(of: cinema.proxyURL) }
        try cinema.stopOrigin()
        let seen = try play(cinema.proxyURL)
        #expect(seen.lines == expected.lines && seen.exit == expected.exit, "without the origin: \(seen.errors)")
        try cinema.close()
    }

    @Test(arguments: [StreamForm.hlsEncrypted, .dashNumbers]) func streamGatedByACookieShowsTheSame(form: StreamForm)
        throws
    {
        let cinema = try StreamCinema(form)
        try cinema.gate()
        let expected = try play(cinema.originURL)
        #expect(expected.lines.last == "end eof", "\(expected)")
        try cinema.throughTheProxy {
            let seen = try play($0)
            #expect(seen.lines == expected.lines && seen.exit == expected.exit, "\(seen.errors)")
        }
        try cinema.close()
    }

    /// A slow line, so that the seeks overtake the transfers.
    @Test(arguments: [StreamForm.hlsTS, .dashSingleFile]) func seeksWorkOverASlowLine(form: StreamForm) throws {
        let cinema = try StreamCinema(form)
        let expected = try play(cinema.originURL)
        for name in try form.files().keys { cinema.origin.script("/stream/\(name)") { $0.bytesPerSecond = 500_000 } }

        try cinema.throughTheProxy {
            let seen = try play($0)
            #expect(seen.lines == expected.lines, "\(seen.errors)")
        }
        try cinema.close()
    }
}
