import Foundation
import TestSupport
import Testing

/// ffmpeg decodes the same frames and samples with and without the proxy.
@Suite(Player.areExpected(.ffmpeg))
struct FFmpegTests {
    /// The checksums of all frames and samples that ffmpeg decodes, a line for each.
    private func frames(_ url: String, from seconds: Int? = nil) throws -> [Substring] {
        let seek = seconds.map { ["-ss", "\($0)"] } ?? []
        let outcome = try Player.ffmpeg.run(
            ["-nostdin", "-v", "error"] + seek + ["-i", url, "-map", "0", "-f", "framemd5", "-"])
        #expect(outcome.exit == .exited(0) && outcome.stderr == "", "\(url): \(outcome.exit) \(outcome.stderr)")
        return outcome.stdout.split(separator: "\n")
    }

    private func expectEqual(_ frames: [Substring], _ expected: [Substring], _ when: String) {
        #expect(frames.count == expected.count, "\(when)")
        if let (frame, wanted) = zip(frames, expected).first(where: { $0 != $1 }) {
            Issue.record("\(when): \(frame) instead of \(wanted)")
        }
    }

    @Test(arguments: Film.allCases) func framesAreEqualNewCachedAndWithoutTheOrigin(film: Film) throws {
        let cinema = try Cinema(film)
        let expected = try frames(cinema.originURL)
        #expect(expected.count > 200)

        expectEqual(try frames(cinema.proxyURL), expected, "new")
        let sent = cinema.bytesFromOrigin
        expectEqual(try frames(cinema.proxyURL), expected, "cached")
        #expect(cinema.bytesFromOrigin == sent)
        cinema.origin.stop()
        expectEqual(try frames(cinema.proxyURL), expected, "without the origin")
        try cinema.expectTheOriginsBytes()
        try cinema.close()
    }

    /// The seeks come first, so that they lead to where nothing is.
    @Test(arguments: Film.allCases) func framesAfterSeeksAreEqual(film: Film) throws {
        let cinema = try Cinema(film)
        let expected = try [5, 2, 7].map { (seconds: Int) in (seconds, try frames(cinema.originURL, from: seconds)) }

        for (seconds, frames) in expected {
            expectEqual(try self.frames(cinema.proxyURL, from: seconds), frames, "from \(seconds) s, new")
        }
        try cinema.expectTheOriginsBytes()
        cinema.origin.stop()
        for (seconds, frames) in expected {
            expectEqual(
                try self.frames(cinema.proxyURL, from: seconds), frames, "from \(seconds) s, without the origin")
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

        expectEqual(try frames(cinema.proxyURL), expected, "broken off twice")
        try cinema.expectTheOriginsBytes()
        try cinema.close()
    }
}
