import Foundation
import Reelcache
import TestSupport
import Testing

@testable import Configuration

/// `resolvers` in the configuration file, and nowhere else.
@Suite struct ResolverSettingTests {
    @Test func eachKeyOfAResolverIsRead() throws {
        let resolvers = try settings(
            """
            resolvers:
              - host: [site.example, "*.site.example"]
                path: /watch
                command: [yt-dlp, --no-playlist, "%(.{url})j", "{url}"]
                timeout: 2m
              - {path: "*.html", command: [find]}
            """
        ).proxy.resolvers
        #expect(
            resolvers == [
                MediaResolver(
                    hosts: ["site.example", "*.site.example"], paths: ["/watch"],
                    command: ["yt-dlp", "--no-playlist", "%(.{url})j", "{url}"], timeout: .seconds(120)),
                MediaResolver(paths: ["*.html"], command: ["find"], timeout: .seconds(30)),
            ])
    }

    /// It is logged when it changes: arguments may be secrets.
    @Test func aResolverIsShownOnALineWithoutItsArguments() throws {
        let shown = try settings("resolvers: [{host: a.example, path: [/a, /b], command: [find, --password, secret]}]")
        let setting = try #require(Setting["resolvers"])
        #expect(setting.texts(in: shown) == ["{host: [a.example], path: [/a, /b], command: [find, ...]}"])
        #expect([shown, Settings()].map { setting.description(in: $0) } == ["1 resolver", "(none)"])
    }

    @Test(arguments: [
        ("resolvers: [{host: a}]", "r.yaml:1:13: resolvers[0]: has no command; write command: [yt-dlp, --get-url]"),
        (
            "resolvers: [{command: [a]}]",
            "r.yaml:1:13: resolvers[0]: the program would run for every URL; name the hosts or paths of the pages, such as host: video.example"
        ),
        (
            "resolvers: [{host: a, command: yt-dlp --get-url}]",
            "r.yaml:1:32: resolvers[0].command: is a list of the program and its arguments, not a line for a shell; write command: [yt-dlp, --get-url]"
        ),
        (
            "resolvers: [{host: a, command: []}]",
            "r.yaml:1:23: resolvers[0].command: names no program; write it like [yt-dlp, --get-url]"
        ),
        (
            "resolvers: [{host: a, command: [a], shell: true}]",
            "r.yaml:1:37: resolvers[0].shell: is not a key of a resolver; the keys are host, path, command, timeout"
        ),
        (
            "resolvers: [{host: a, command: [a], timeout: 1h}]",
            "r.yaml:1:46: resolvers[0].timeout: '1h' is out of range; write a time from 1s to 5m"
        ),
        (
            "resolvers: [{host: a/b, command: [a]}]",
            "r.yaml:1:20: resolvers[0].host: 'a/b' is not a host; write it like example.org, *.example.org or nas.local:8080"
        ),
        (
            "resolvers: [{path: [], command: [a]}]",
            "r.yaml:1:20: resolvers[0].path: is an empty list; write path: /vod/*, or remove it to match all"
        ),
        (
            "resolvers: {host: a}",
            "r.yaml:1:12: resolvers: takes no keys of its own; write resolvers: [{host: video.example, command: [yt-dlp, --get-url]}, ...]"
        ),
    ]) func mistakeIsNamedWithItsPlace(text: String, problem: String) {
        #expect(problems(text) == [problem])
    }

    @Test func resolversAreForTheFileAlone() throws {
        let setting = try #require(Setting["resolvers"])
        #expect(setting.isFileOnly)
        let directory = try TemporaryDirectory()
        var sources = SettingSources(environment: [
            "HOME": directory.path, "REELCACHE_RESOLVERS": "[{host: a, command: [id]}]",
        ])
        sources.systemDirectory = directory.path
        let error = #expect(throws: SettingsError.self) { try sources.read() }
        #expect(
            error?.lines == [
                "REELCACHE_RESOLVERS: resolvers can be set in the configuration file only; write them there"
            ])
    }
}
