import Foundation
import TestSupport
import Testing

/// ffmpeg decodes the same frames and samples of all renditions of a stream with and without the proxy.
@Suite(Player.areExpected(.ffmpeg))
struct FFmpegStreamTests {
    @Test(arguments: StreamForm.allCases, StreamAddresses.allCases)
    func framesAreEqualNewCachedAndWithoutTheOrigin(form: StreamForm, addresses: StreamAddresses) throws {
        let cinema = try StreamCinema(form, addresses)
        let expected = try Frames(of: cinema.originURL)
        #expect(expected.lines.count > 1300, "\(expected.ending)")

        try cinema.throughTheProxy { try Frames(of: $0).expect(toBe: expected, "new") }
        if addresses == .relative {
            let sent = cinema.bytesFromOrigin
            try cinema.throughTheProxy { try Frames(of: $0).expect(toBe: expected, "cached") }
            #expect(cinema.bytesFromOrigin == sent, "what is cached came once more")
        }
        try cinema.stopOrigin()
        try Frames(of: cinema.proxyURL).expect(toBe: expected, "without the origin")
        try cinema.close()
    }

    @Test(arguments: [StreamForm.hlsVariants, .hlsEncrypted, .dashTimeline])
    func streamGatedByACookieIsEqual(form: StreamForm) throws {
        let cinema = try StreamCinema(form)
        try cinema.gate()
        let expected = try Frames(of: cinema.originURL)
        #expect(expected.lines.count > 1300, "\(expected.ending)")

        try cinema.throughTheProxy { try Frames(of: $0).expect(toBe: expected, "new") }
        try cinema.stopOrigin()
        try Frames(of: cinema.proxyURL).expect(toBe: expected, "without the origin")
        try cinema.close()
    }

    /// The seeks come first, so that they lead to where nothing is.
    @Test(arguments: StreamForm.allCases) func framesAfterSeeksAreEqual(form: StreamForm) throws {
        let cinema = try StreamCinema(form)
        let expected = try [11, 5, 17].map { (seconds: Int) in
            (seconds, try Frames(of: cinema.originURL, from: seconds))
        }

        for (seconds, frames) in expected {
            try cinema.throughTheProxy {
                try Frames(of: $0, from: seconds).expect(toBe: frames, "from \(seconds) s, new")
            }
        }
        try cinema.stopOrigin()
        for (seconds, frames) in expected {
            try Frames(of: cinema.proxyURL, from: seconds)
                .expect(toBe: frames, "from \(seconds) s, without the origin")
        }
        try cinema.close()
    }

    /// Only the first request for each file fails.
    @Test(arguments: [StreamForm.hlsTS, .hlsRanges, .dashTimeline])
    func framesAreEqualWhereTheOriginBreaksOff(form: StreamForm) throws {
        let cinema = try StreamCinema(form)
        let expected = try Frames(of: cinema.originURL)
        for name in try form.files().keys where !name.hasSuffix(".m3u8") && !name.hasSuffix(".mpd") {
            cinema.origin.script("/stream/\(name)") { $0.cutAfter = 5_000 }
        }

        try cinema.throughTheProxy { try Frames(of: $0).expect(toBe: expected, "broken off") }
        try cinema.close()
    }
}
