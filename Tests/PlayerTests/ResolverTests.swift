import Foundation
import TestSupport
import Testing

/// An origin with pages, below `/watch/`, and a proxy process whose configuration file names a program for them.
private final class PageCinema {
    let origin: ScriptedOrigin
    private let directory: TemporaryDirectory

    /// - Parameter command: the program and its arguments.
    init(_ origin: ScriptedOrigin, command: [String], rules: String = "") throws {
        self.origin = origin
        directory = try TemporaryDirectory()
        let words = command.map { "'\($0.replacing("'", with: "''"))'" }.joined(separator: ", ")
        let text = """
            resolvers:
            - host: 127.0.0.1
              path: /watch/*
              command: [\(words)]
              timeout: 2m
            \(rules)
            """
        try Data(text.utf8).write(to: URL(fileURLWithPath: directory.file("reelcache.yaml")))
    }

    var cache: String { directory.file("cache") }
    var configuration: [String] { ["--config", directory.file("reelcache.yaml")] }

    /// Starts a proxy on the cache.
    func proxy() throws -> ProxyProcess { try ProxyProcess(cacheDirectory: cache, arguments: configuration) }
}

/// What mpv decodes: a line with time, size and checksum for each frame and each piece of sound, in the order of the
/// lines, because mpv numbers picture and sound in the order in which they are ready.
private func frames(of url: String) throws -> [Substring] {
    let outcome = try Player.mpv.run([
        "--no-config", "--load-scripts=no", "--ytdl=no", "--msg-level=all=error", "--of=framemd5", "--ovc=rawvideo",
        "--oac=pcm_s16le", "--o=-", url,
    ])
    #expect(outcome.exit == .exited(0) && outcome.stderr == "", "\(outcome.exit) \(outcome.stderr)")
    return outcome.stdout.split(separator: "\n").filter { !$0.hasPrefix("#") }.compactMap { line in
        line.firstIndex(of: ",").map { line[$0...] }
    }.sorted()
}

/// mpv plays films whose signed links expire.
@Suite(Player.areExpected(.ffmpeg, .mpv))
struct ExpiringLinkTests {
    /// Serves the film at links of which the first five expire, each in the middle of its first long response.
    private func serve(_ film: Film, on origin: ScriptedOrigin) throws -> Int64 {
        let bytes = try film.bytes()
        origin.serve("/direct", bytes: bytes, contentType: film.contentType)
        for number in 1...6 {
            origin.serve("/film?sig=\(number)", bytes: bytes, contentType: film.contentType)
            guard number < 6 else { break }
            origin.script("/film?sig=\(number)") { $0.expiresAfter = Int64(bytes.count) / 8 }
        }
        return Int64(bytes.count)
    }

    /// Where bytes were sent that had been sent before, as ranges of the film.
    private func sentTwice(_ origin: ScriptedOrigin) -> [Range<Int64>] {
        let sent = origin.snapshot.requests.filter {
            $0.path.hasPrefix("/film") && ($0.status == 200 || $0.status == 206)
        }
        .map { ($0.range?.lowerBound ?? 0)..<($0.range?.lowerBound ?? 0) + $0.bodyBytesSent }
        return sent.enumerated().flatMap { index, range in
            sent[..<index].map { range.clamped(to: $0) }.filter { !$0.isEmpty }
        }
    }

    @Test(arguments: [Film.mp4MoovFront, .mp4MoovEnd, .mkv])
    func filmWhoseLinkExpiresFiveTimesShowsTheSameFramesAndIsFetchedOnce(film: Film) throws {
        let origin = try ScriptedOrigin()
        let size = try serve(film, on: origin)
        let resolver = try ScriptedResolver("echo \"\(origin.url("/film"))?sig=$n\"")
        let cinema = try PageCinema(origin, command: [resolver.path])
        let expected = try frames(of: origin.url("/direct"))
        #expect(expected.count > 200)

        let proxy = try cinema.proxy()
        let page = origin.url("/watch/film")
        let seen = try frames(of: proxy.url(page))
        #expect(seen == expected)
        #expect(resolver.runs.count == 6)
        // If mpv has left for the index at the end when a link expires, the unfinished chunk is requested again.
        let twice = sentTwice(origin)
        #expect(twice.count <= (film == .mp4MoovEnd ? 1 : 0) && twice.allSatisfy { $0.count < 65_536 }, "\(twice)")
        // All of it is cached under the page's URL.
        #expect(try proxy.get(page).body == film.bytes())
        #expect(try proxy.process.terminate() == .exited(0))
        #expect(!proxy.process.stderr.contains("error"))
        let sent = origin.snapshot.requests.filter { $0.path.hasPrefix("/film") && $0.status != 403 }
            .reduce(0) { $0 + $1.bodyBytesSent }
        #expect(sent == size + Int64(twice.reduce(0) { $0 + $1.count }))
    }

    @Test func playersOwnLinkThatExpiresFiveTimesIsRefreshedByARule() throws {
        let origin = try ScriptedOrigin()
        _ = try serve(.mp4MoovEnd, on: origin)
        origin.script("/play/film") { $0.redirects = (2...6).map { origin.url("/film?sig=\($0)") } }
        let cinema = try PageCinema(
            origin, command: ["true"],
            rules: """
                rules:
                - host: http://127.0.0.1:*
                  path: /film
                  ignore_query: [sig]
                  refresh: \(origin.url("/play{path}"))
                """)
        let proxy = try cinema.proxy()
        #expect(try frames(of: proxy.url(origin.url("/film?sig=1"))) == frames(of: origin.url("/direct")))
        #expect(origin.requestCount("/play/film") >= 5)
        #expect(sentTwice(origin).allSatisfy { $0.count < 65_536 })
        #expect(try proxy.process.terminate() == .exited(0))
    }
}

/// yt-dlp finds the media of pages for the proxy.
@Suite(Player.areExpected(.ffmpeg, .mpv, .ytDlp))
struct YtDlpResolverTests {
    /// As the configuration that is shipped has it.
    private func command() throws -> [String] {
        [
            try Player.ytDlp.location(), "--ignore-config", "--no-cache-dir", "--no-playlist", "--format",
            "best[protocol^=http]/best", "--print", "%(.{url,http_headers,title,ext})j",
        ]
    }

    private func serve(_ film: Film, signature: Int, on origin: ScriptedOrigin) throws {
        let page = """
            <html><head><title>A film</title></head><body><video src="/media/film.mp4?sig=\(signature)"></video></body></html>
            """
        origin.serve("/watch/film.html", bytes: Array(page.utf8), contentType: "text/html")
        origin.serve("/media/film.mp4?sig=\(signature)", bytes: try film.bytes(), contentType: film.contentType)
    }

    @Test func pageOfASitePlaysAndIsCachedUnderItsOwnURL() throws {
        let origin = try ScriptedOrigin()
        try serve(.mp4MoovFront, signature: 1, on: origin)
        let cinema = try PageCinema(origin, command: command())
        let page = origin.url("/watch/film.html")
        let expected = try frames(of: origin.url("/media/film.mp4?sig=1"))

        let proxy = try cinema.proxy()
        #expect(try frames(of: proxy.url(page)) == expected, "new")
        let visits = origin.requestCount("/watch/film.html")
        // yt-dlp has asked for the page, and the proxy for the media, with yt-dlp's fields.
        #expect(visits > 0 && origin.requests("/watch/film.html").allSatisfy { $0.headers["Via"] == nil })
        let fetched = origin.requests("/media/film.mp4?sig=1").filter { $0.headers["Via"] != nil }
        #expect(!fetched.isEmpty && fetched.allSatisfy { $0.headers["Referer"] == page })
        #expect(try proxy.process.terminate() == .exited(0))

        // Tomorrow the address is another one.
        try serve(.mp4MoovFront, signature: 2, on: origin)
        let next = try cinema.proxy()
        #expect(try frames(of: next.url(page)) == expected, "after a restart")
        #expect(origin.requestCount("/watch/film.html") == visits, "yt-dlp ran again")
        #expect(origin.requestCount("/media/film.mp4?sig=2") == 0)
        #expect(try next.process.terminate() == .exited(0))
    }

    @Test func linkOfASiteThatExpiresIsFoundAgain() throws {
        let origin = try ScriptedOrigin()
        try serve(.mp4MoovEnd, signature: 1, on: origin)
        let cinema = try PageCinema(origin, command: command())
        let proxy = try cinema.proxy()
        let page = origin.url("/watch/film.html"), bytes = try Film.mp4MoovEnd.bytes()
        #expect(try Array(proxy.get(page, range: 0..<100).body) == Array(bytes[..<100]))
        origin.script("/media/film.mp4?sig=1") { $0.status = 403 }
        try serve(.mp4MoovEnd, signature: 2, on: origin)
        #expect(try frames(of: proxy.url(page)) == frames(of: origin.url("/media/film.mp4?sig=2")))
        #expect(try proxy.process.terminate() == .exited(0))
    }

    @Test func prefetchTakesAPageAndNamesTheProblemOfABadOne() throws {
        let origin = try ScriptedOrigin()
        try serve(.mp4MoovFront, signature: 1, on: origin)
        let cinema = try PageCinema(origin, command: command())
        let prefetch = { (path: String) in
            try ReelcacheCommand.run(
                ["prefetch", origin.url(path), "--quiet", "--cache-dir", cinema.cache, "--allow", "127.0.0.1"]
                    + cinema.configuration)
        }
        let done = try prefetch("/watch/film.html")
        #expect(done.exit == .exited(0), "\(done)")
        origin.serve(
            "/watch/empty.html", bytes: Array("<html><body>Nothing</body></html>".utf8), contentType: "text/html")
        let failed = try prefetch("/watch/empty.html")
        #expect(failed.exit != .exited(0) && failed.stderr.contains("the resolver yt-dlp failed"), "\(failed)")
        origin.stop()
        let proxy = try cinema.proxy()
        #expect(try proxy.get(origin.url("/watch/film.html")).body == Film.mp4MoovFront.bytes())
        #expect(try proxy.process.terminate() == .exited(0))
    }
}
