import Foundation
import TestSupport
import Testing

/// `reelcache url` and the program's own flags.
@Suite struct URLTests {
    private let cache: TemporaryDirectory

    init() throws {
        cache = try TemporaryDirectory()
    }

    @Test(arguments: [
        ("https://example.org/film.mp4", "/https/example.org/film.mp4"),
        ("http://example.org:8080/a/b.mkv?token=x%2Fy&t=1", "/http/example.org:8080/a/b.mkv?token=x%2Fy&t=1"),
        ("https://example.org/film.mp4#t=30", "/https/example.org/film.mp4"),
        ("HTTPS://Example.ORG:443", "/https/example.org/"),
        ("https://example.org?a=b", "/https/example.org/?a=b"),
        ("http://[::1]:8000/film.mp4", "/http/[::1]:8000/film.mp4"),
        ("https://example.org/ü.mp3", "/https/example.org/%C3%BC.mp3"),
    ])
    func withoutAProxyTheDefaultAddressIsPrinted(url: String, path: String) throws {
        let outcome = try ReelcacheCommand.run(["url", url, "--cache-dir", cache.path])
        #expect(
            outcome.exit == .exited(0) && outcome.stdout == "http://127.0.0.1:7335\(path)\n" && outcome.stderr == "",
            "\(outcome)")
    }

    @Test func aRunningProxyIsFoundByItsCache() throws {
        let proxy = try ProxyProcess(cacheDirectory: cache.path)
        let expected = "\(proxy.baseURL)/https/example.org/film.mp4\n"

        let byFlag = try ReelcacheCommand.run(["url", "https://example.org/film.mp4", "--cache-dir", cache.path])
        let byVariable = try ReelcacheCommand.run(
            ["url", "https://example.org/film.mp4"], environment: ["REELCACHE_CACHE_DIR": cache.path])

        #expect(byFlag.stdout == expected && byVariable.stdout == expected)
        #expect(try proxy.process.terminate() == .exited(0))
        let afterwards = try ReelcacheCommand.run(["url", "https://example.org/film.mp4", "--cache-dir", cache.path])
        #expect(afterwards.stdout == "http://127.0.0.1:7335/https/example.org/film.mp4\n")
    }

    /// A player would lose it with the command.
    @Test func addressOfACommandsOwnProxyIsNotPrinted() async throws {
        let origin = try ScriptedOrigin()
        origin.serve("/film.mp4", Media(seed: 3, size: 100_000))
        origin.hold("/film.mp4")
        let command = try ReelcacheCommand.start(
            ["prefetch", origin.url("/film.mp4"), "--allow", "127.0.0.1", "--cache-dir", cache.path])
        try await blocking { try origin.waitForRequests("/film.mp4", count: 1) }
        let outcome = try ReelcacheCommand.run(["url", "https://a.example/b", "--cache-dir", cache.path])
        #expect(outcome.stdout == "http://127.0.0.1:7335/https/a.example/b\n", "\(outcome)")
        origin.releaseAll()
        #expect(try command.waitForExit() == .exited(0))
    }

    /// By the configuration, whether or not the proxy runs.
    @Test func whereOnlyMountsAreServedItIsBelowOne() throws {
        let mounts: [String: String?] = [
            "REELCACHE_MOUNTS": "/tv/=https://o.example/vod/,/hd/=https://o.example/vod/hd/",
            "REELCACHE_ANY_ORIGIN": "false",
        ]
        func run(_ url: String) throws -> ChildProcess.Outcome {
            try ReelcacheCommand.run(["url", url, "--cache-dir", cache.path], environment: mounts)
        }
        #expect(try run("https://O.example/vod/a.mp4?b=1").stdout == "http://127.0.0.1:7335/tv/a.mp4?b=1\n")
        #expect(try run("https://o.example:443/vod/hd/a.mp4").stdout == "http://127.0.0.1:7335/hd/a.mp4\n")
        for url in [
            "http://o.example/vod/a.mp4", "https://o.example:444/vod/a.mp4", "https://o.example/a.mp4",
            "https://p.example/vod/a.mp4",
        ] {
            let line = try #require(try run(url).failureLine)
            #expect(line.contains(url) && line.contains("any_origin"), "\(line)")
        }
    }

    @Test func theDefaultCacheIsThatOfTheDesktop() throws {
        let environment = ["XDG_CACHE_HOME": cache.path]
        let serve = try ReelcacheCommand.start(["serve", "--listen", "127.0.0.1:0"], environment: environment)
        try serve.waitForLine(containing: "cache in \(cache.path)/reelcache ")
        let outcome = try ReelcacheCommand.run(["url", "https://example.org/"], environment: environment)
        #expect(outcome.exit == .exited(0))
        #expect(
            serve.stdout.contains("serves at \(outcome.stdout.replacing("/https/example.org/\n", with: ","))"),
            "\(outcome.stdout)")
        #expect(try serve.terminate() == .exited(0))
    }

    @Test(arguments: [
        ("ftp://example.org/film.mp4", "ftp"), ("https://user:secret@example.org/", "credentials"),
        ("film.mp4", "http"), ("https://", "host"),
        ("https://example.org:99999/", "99999"), ("https://example.org/a film.mp4", "%20"), ("", "http"),
    ])
    func whatNoPlayerCouldOpenIsRefused(url: String, named: String) throws {
        let line = try #require(try ReelcacheCommand.run(["url", url, "--cache-dir", cache.path]).failureLine)
        #expect(line.contains(named) && !line.contains("secret"), "\(line)")
    }

    @Test(arguments: [
        ("example.org/film.mp4", "https://example.org/film.mp4"),
        ("localhost:8000/film.mp4", "https://localhost:8000/film.mp4"),
        ("example.org", "https://example.org"),
    ])
    func urlWithoutASchemeIsToldSo(url: String, meant: String) throws {
        let line = try #require(try ReelcacheCommand.run(["url", url, "--cache-dir", cache.path]).failureLine)
        #expect(line.hasSuffix("the URL has no scheme: write https:// before it, as in \(meant)"), "\(line)")
        let secret = try #require(
            try ReelcacheCommand.run(["url", "user:1secret@example.org/", "--cache-dir", cache.path]).failureLine)
        #expect(secret.contains("write https:// before it") && !secret.contains("secret"), "\(secret)")
    }

    @Test(arguments: [
        (["serve", "--port", "8080"], "write --listen 127.0.0.1:8080"),
        (["serve", "--host", "0.0.0.0"], "write --listen 0.0.0.0:7335"),
        (["prefetch", "ftp://example.org/a.mp4"], "ftp is not supported"),
        (["prefetch", "example.org/a.mp4"], "write https:// before it"),
    ])
    func wrongUsageShowsTheUsageOfItsCommand(arguments: [String], advice: String) throws {
        let outcome = try ReelcacheCommand.run(arguments)
        #expect(
            outcome.exit == .exited(2) && outcome.stderr.contains(advice) && !outcome.stderr.contains("--mount"),
            "\(outcome)")
        #expect(
            outcome.stderr.contains("Usage: reelcache \(arguments[0]) ")
                && outcome.stderr.contains("See 'reelcache \(arguments[0]) --help'"), "\(outcome)")
    }

    @Test func whatStandsForAURLIsCalledSo() throws {
        let help = try ReelcacheCommand.run(["import", "--help"]).stdout
        #expect(help.contains("--as <url>") && !help.contains("<as>"), "\(help)")
    }

    @Test(arguments: [["url"], ["url", "https://a/", "https://b/"], ["url", "--json", "https://a/"], ["play-it"]])
    func wrongUsageIs2(arguments: [String]) throws {
        let outcome = try ReelcacheCommand.run(arguments)
        #expect(outcome.exit == .exited(2) && outcome.stdout == "" && outcome.stderr.hasPrefix("Error: "), "\(outcome)")
    }

    @Test(arguments: [["--help"], ["help"], [], ["serve", "--help"], ["url", "--help"], ["stats", "-h"]])
    func helpIsNoError(arguments: [String]) throws {
        let outcome = try ReelcacheCommand.run(arguments)
        #expect(
            outcome.exit == .exited(0) && outcome.stderr == "" && outcome.stdout.contains("USAGE: reelcache"),
            "\(outcome)")
    }
}
