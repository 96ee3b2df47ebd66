import Foundation
import TestSupport
import Testing

/// A stream that was downloaded becomes one file, which shows the same pictures, also where it was encrypted.
@Suite(Player.areExpected(.ffmpeg))
struct ExportStreamTests {
    /// Checksums of the pictures, without their times: other containers count in other units.
    private func pictures(_ url: String) throws -> [Substring] {
        try Frames(of: url, tracks: "0:v:0").lines.filter { !$0.hasPrefix("#") }.compactMap {
            $0.split(separator: " ").last
        }
    }

    private func run(_ arguments: [String], cache: String) throws {
        let outcome = try ReelcacheCommand.run(arguments + ["--cache-dir", cache])
        #expect(outcome.exit == .exited(0), "\(arguments): \(outcome)")
    }

    @Test(arguments: [(StreamForm.hlsTS, "film.ts"), (.hlsTS, "film.mp4"), (.hlsEncrypted, "film.mkv")])
    func oneFileShowsTheSame(form: StreamForm, name: String) throws {
        let folder = try TemporaryDirectory(), cache = folder.file("cache"), file = folder.file(name)
        let cinema = try StreamCinema(form)
        let expected = try pictures(cinema.originURL)
        #expect(expected.count > 480, "\(expected.count) pictures")
        try run(["prefetch", cinema.originURL, "--allow", "127.0.0.1", "--quiet"], cache: cache)
        try cinema.stopOrigin()
        // Where no proxy runs, and where one does.
        for way in ["alone", "running"] {
            let proxy = way == "running" ? try ProxyProcess(cacheDirectory: cache) : nil
            try run(["export", cinema.originURL, "-o", file, "--force"], cache: cache)
            #expect(try pictures(file) == expected, "\(way)")
            _ = try proxy?.process.terminate()
        }
        try cinema.close()
    }
}
