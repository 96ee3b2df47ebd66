import Foundation
import TestSupport
import Testing

/// ffmpeg decodes the same frames and samples with and without the proxy.
@Suite(Player.areExpected(.ffmpeg))
struct FFmpegTests {
    private func frames(_ url: String, from seconds: Int? = nil) throws -> Frames {
        let frames = try Frames(of: url, from: seconds)
        #expect(frames.ending == "exited(0) ", "\(url)")
        return frames
    }

    @Test(arguments: Film.allCases) func framesAreEqualNewCachedAndWithoutTheOrigin(film: Film) throws {
        let cinema = try Cinema(film)
        let expected = try frames(cinema.originURL)
        #expect(expected.lines.count > 200)

        try frames(cinema.proxyURL).expect(toBe: expected, "new")
        let sent = cinema.bytesFromOrigin
        try frames(cinema.proxyURL).expect(toBe: expected, "cached")
        #expect(cinema.bytesFromOrigin == sent)
        cinema.origin.stop()
        try frames(cinema.proxyURL).expect(toBe: expected, "without the origin")
        try cinema.expectTheOriginsBytes()
        try cinema.close()
    }

    /// The seeks come first, so that they lead to where nothing is.
    @Test(arguments: Film.allCases) func framesAfterSeeksAreEqual(film: Film) throws {
        let cinema = try Cinema(film)
        let expected = try [5, 2, 7].map { (seconds: Int) in (seconds, try frames(cinema.originURL, from: seconds)) }

        for (seconds, frames) in expected {
            try self.frames(cinema.proxyURL, from: seconds).expect(toBe: frames, "from \(seconds) s, new")
        }
        try cinema.expectTheOriginsBytes()
        cinema.origin.stop()
        for (seconds, frames) in expected {
            try self.frames(cinema.proxyURL, from: seconds)
                .expect(toBe: frames, "from \(seconds) s, without the origin")
        }
        try cinema.close()
    }

    /// The index at its end is there with its beginning: players start although the middle has not arrived.
    @Test func aFilmWithItsIndexAtTheEndStartsWithHeadAndTail() throws {
        let cinema = try Cinema(.mp4MoovEnd)
        let expected = try Frames(of: cinema.originURL, length: 1)
        #expect(expected.lines.count > 20 && expected.ending == "exited(0) ")
        // More than the beginning and the end have, and less than what is between them.
        cinema.origin.script(cinema.film.path) { $0.stallAfter = 1_100_000 }
        let order = try ReelcacheCommand.run([
            "prefetch", cinema.originURL, "--first", "1MB", "--last", "100kB", "--detach", "--cache-dir",
            cinema.cachePath,
        ])
        #expect(order.exit == .exited(0), "\(order)")
        try cinema.waitForDownload(bytes: 1_100_000)

        try Frames(of: cinema.proxyURL, length: 1).expect(toBe: expected, "before the middle has arrived")

        cinema.origin.release(cinema.film.path)
        try cinema.waitForDownload(bytes: Int64(cinema.bytes.count))
        let sent = cinema.bytesFromOrigin
        try cinema.expectTheOriginsBytes()
        #expect(cinema.bytesFromOrigin == sent)
        try cinema.close()
    }

    /// An origin that breaks off in the middle is not seen by the player.
    @Test(arguments: Film.allCases) func framesAreEqualWhereTheOriginBreaksOff(film: Film) throws {
        let cinema = try Cinema(film)
        let expected = try frames(cinema.originURL)
        cinema.origin.script(film.path) {
            $0.cutAfter = 150_000
            $0.cutTimes = 2
        }

        try frames(cinema.proxyURL).expect(toBe: expected, "broken off twice")
        try cinema.expectTheOriginsBytes()
        try cinema.close()
    }
}
