import Foundation
import TestSupport
import Testing

/// Players open plain lists of files through the proxy, and play the files through it.
@Suite(Player.areExpected(.ffmpeg, .mpv, .vlc))
struct FileListTests {
    enum Format: String, CaseIterable {
        case m3u, pls, xspf

        var contentType: String {
            switch self {
            case .m3u: "audio/x-mpegurl"
            case .pls: "audio/x-scpls"
            case .xspf: "application/xspf+xml"
            }
        }

        func text(_ urls: [String]) -> String {
            switch self {
            case .m3u: urls.map { $0 + "\n" }.joined()
            case .pls:
                "[playlist]\n" + urls.enumerated().map { "File\($0 + 1)=\($1)\n" }.joined()
                    + "NumberOfEntries=\(urls.count)\n"
            case .xspf:
                "<playlist version=\"1\" xmlns=\"http://xspf.org/ns/0/\"><trackList>"
                    + urls.map { "<track><location>\($0)</location></track>" }.joined() + "</trackList></playlist>"
            }
        }
    }

    private static let files = ["/one.mp3", "/two.mp3"]

    /// Plays a list new, cached, and without its origin.
    /// - Parameter play: plays a URL to its end; called with a name for the occasion.
    private func expect(_ format: Format, _ play: (_ url: String, _ when: String) throws -> Void) throws {
        let (origin, cache) = (try ScriptedOrigin(), try TemporaryDirectory())
        for path in Self.files { origin.serve(path, bytes: try Film.mp3.bytes(), contentType: Film.mp3.contentType) }
        let list = "/list.\(format.rawValue)"
        origin.serve(
            list, bytes: Array(format.text(Self.files.map { origin.url($0) }).utf8), contentType: format.contentType)
        let proxy = try ProxyProcess(cacheDirectory: cache.path)
        try play(proxy.url(origin.url(list)), "new")
        let requests = Self.files.flatMap { origin.requests($0) }
        for path in Self.files { #expect(!origin.requests(path).isEmpty, "\(path) was not played") }
        #expect(requests.allSatisfy { $0.headers["Via"] != nil }, "past the proxy: \(requests)")
        let sent = Self.files.map { origin.bytesSent($0) }
        try play(proxy.url(origin.url(list)), "cached")
        #expect(Self.files.map { origin.bytesSent($0) } == sent, "what is cached was fetched again")
        origin.stop()
        try play(proxy.url(origin.url(list)), "without the origin")
        #expect(try proxy.process.terminate() == .exited(0))
    }

    /// mpv 0.35 does not know XSPF.
    @Test(arguments: [Format.m3u, .pls]) func mpvPlaysAList(format: Format) throws {
        try expect(format) { url, when in
            let outcome = try Player.mpv.run([
                "--no-config", "--load-scripts=no", "--vo=null", "--ao=null", "--untimed", "--ao-null-untimed",
                "--msg-level=all=error,ao=no,cplayer=info", url,
            ])
            #expect(outcome.exit == .exited(0), "\(when): \(outcome)")
            let played = outcome.stdout.split(separator: "\n").filter {
                $0.hasPrefix("Playing: ") && $0.hasSuffix(".mp3")
            }
            #expect(played.count == Self.files.count, "\(when): \(outcome.stdout)")
        }
    }

    @Test(arguments: Format.allCases) func vlcPlaysAList(format: Format) throws {
        try expect(format) { url, when in
            let directory = try TemporaryDirectory()
            let file = directory.file("sound.ts")
            let outcome = try FurtherPlayer.vlc(url, directory, into: file)
            #expect(outcome.exit == .exited(0), "\(when): \(outcome.exit) \(outcome.stderr)")
            let size = try FileManager.default.attributesOfItem(atPath: file)[.size] as? Int
            #expect(size ?? 0 > 100_000, "\(when): \(size ?? 0) bytes of sound")
        }
    }
}
