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
