import Foundation
import Reelcache
import Testing
import TestSupport

@testable import Configuration

/// Which of flags, environment, files and defaults has the last word.
@Suite struct SettingSourcesTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// Sources that know nothing of this machine.
    private func sources(_ environment: [String: String] = [:]) -> SettingSources {
        var sources = SettingSources(environment: ["HOME": directory.file("home")].merging(environment) { $1 })
        sources.systemDirectory = directory.file("etc")
        return sources
    }

    /// - Returns: its path.
    @discardableResult
    private func write(_ text: String, to name: String) throws -> String {
        let file = URL(fileURLWithPath: directory.file(name))
        try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(text.utf8).write(to: file)
        return file.path
    }

    /// A valid value for each key, as it is written in a file, and another one.
    private static let values = [
        "trusted": ("10.0.0.1", "fd00::/8"), "proxy_protocol": ("true", "false"), "drain_time": ("1h", "0s"),
        "max_connections": ("1", "1000000"), "max_connections_per_client": ("2", "3"),
        "max_requests_per_client": ("5/s", "600/min"),
        "listen": ("127.0.0.1:1", "127.0.0.1:2"), "names": ("a.example", "b.example"), "cache_dir": ("/one", "/two"),
        "max_size": ("1GB", "2GB"), "min_free": ("3MB", "4MB"),
        "max_short_responses": ("0", "16MiB"), "max_buffered": ("4MiB", "1GB"),
        "allow": ("a.local", "b.local"), "mounts": ("/a/=https://a.example/", "/b/=https://b.example/"),
        "any_origin": ("false", "true"),
        "cache": ("shared", "private"), "default_ttl": ("0s", "1h"),
        "targeted_fields": ("A-Cache-Control", "B-Cache-Control"),
        "tunnel": ("true", "false"), "tunnel_ports": ("444", "8443"), "access_log": ("/one.log", "-"),
        "max_body": ("0", "5MB"), "offline": ("true", "false"), "play_pinned": ("false", "true"),
        "ahead_segments": ("0", "20"), "prefetch_next": ("true", "false"), "ignore_reload": ("true", "false"),
        "fill": ("ahead 1MiB", "whole"),
        "max_downloads": ("1", "64"),
        "download_rate": ("2MB", "none"), "linger": ("1s", "2m"), "connect_timeout": ("2s", "1m"),
        "stall_timeout": ("3s", "1h"), "max_fetches": ("1", "300"), "max_fetches_per_host": ("2", "300"),
        "web_origins": ("https://a.example", "http://b.example:8080"), "secret_parameters": ("ticket_of", "member"),
        "threads": ("1", "2"), "ca_file": ("/one.pem", "/two.pem"), "log_level": ("info", "error"),
        "schedule": ("01:00-06:30=unlimited", "else=500kB"), "download_cap": ("2GB/day", "40GB/month"),
        "download_retry_time": ("2d", "0s"),
        "access_log_format": ("combined", "json"), "player": ("mpv", "/opt/player"),
        "parents": ("http://10.0.0.5:7335", "http://edge.local"),
        "upstream_proxy": ("http://proxy.example:3128", "socks5h://10.0.0.1:1080"),
        "upstream_proxy_except": ("nas.local", "10.0.0.0/8"),
    ]

    @Test(arguments: Setting.all.filter { !$0.isFileOnly }.map(\.key)) func eachSettingIsTakenFromTheFirstThatSaysIt(
        key: String
    ) throws {
        let setting = try #require(Setting[key])
        let (one, other) = try #require(Self.values[key], "a new setting wants values here")
        func check(_ sources: SettingSources, _ value: String?, _ origin: String) throws {
            let settings = try sources.read()
            if let value { #expect(setting.texts(in: settings) == [value]) }
            #expect("\(settings.origin(of: setting))" == origin)
        }
        // It works only with `trusted`.
        var sources = sources(key == "proxy_protocol" ? ["REELCACHE_TRUSTED": "10.0.0.1"] : [:])
        try check(sources, nil, "default")
        let isMapping = ["mounts", "schedule"].contains(key)
        let inFile = isMapping ? "{\(one.replacing("=", with: ": "))}" : setting.isList ? "[\(one)]" : one
        sources.configFlag = try write("\(key): \(inFile)\n", to: "r.yaml")
        try check(sources, one, "\(directory.file("r.yaml")):1")
        sources.environment[setting.variable] = other
        try check(sources, other, setting.variable)
        sources.flags[key] = [one]
        try check(sources, one, setting.flag)
        sources.environment[setting.variable] = ""
        sources.flags = [:]
        try check(sources, one, "\(directory.file("r.yaml")):1")
    }

    @Test func rulesAreForTheFileAlone() throws {
        #expect(Setting.all.filter(\.isFileOnly).map(\.key) == ["resolvers", "on_completed", "on_failed", "rules"])
        let error = try #require(throws: SettingsError.self) { try sources(["REELCACHE_RULES": "{ttl: 1d}"]).read() }
        #expect(error.lines == ["REELCACHE_RULES: rules can be set in the configuration file only; write them there"])
    }

    @Test func mountsAreRepeatedFlagsAndAListInAVariable() throws {
        var sources = sources(["REELCACHE_MOUNTS": "/b/=http://b.example:81/x/, /a/=https://a.example"])
        #expect(try sources.read().proxy.mounts == ["/a/": "https://a.example/", "/b/": "http://b.example:81/x/"])
        sources.flags["mounts"] = ["/c/=https://c.example/", "/d/e/=https://d.example/"]
        #expect(try sources.read().proxy.mounts == ["/c/": "https://c.example/", "/d/e/": "https://d.example/"])
        sources.flags["mounts"] = ["/c/=https://c.example/", "/d", "/c/=https://d.example/"]
        sources.environment = [:]
        #expect(
            sources.flagProblems.map(\.description) == [
                "--mount: '/d' does not name the origin to mount; write it like /tv/=https://origin.example/vod/"
            ])
        sources.flags["mounts"] = ["/c/=https://c.example/ shared", "/d/=https://d.example private"]
        #expect(try sources.read().proxy.mounts == ["/c/": "https://c.example/", "/d/": "https://d.example/"])
        #expect(try sources.read().proxy.mountCaches == ["/c/": .shared, "/d/": .private])
        sources.flags["mounts"] = ["/c/=https://c.example/", "/c/=https://d.example/"]
        #expect(sources.flagProblems.map(\.description) == ["--mount: '/c/' is mounted twice; remove one of them"])
    }

    @Test func windowsOfAVariableMayNameSeveralDays() throws {
        var sources = sources(["REELCACHE_SCHEDULE": "Sat, Sun 08:00-12:00=2MB, else=500kB"])
        #expect(try sources.read().proxy.downloadSchedule == ["Sat,Sun 08:00-12:00=2MB", "else=500kB"])
        sources.flags["schedule"] = ["Sat,Sun 08:00-12:00=2MB", "22:00-06:00=off"]
        #expect(try sources.read().proxy.downloadSchedule == ["Sat,Sun 08:00-12:00=2MB", "22:00-06:00=off"])
        sources.flags["schedule"] = ["else=1MB", "always"]
        sources.environment = [:]
        #expect(
            sources.flagProblems.map(\.description) == [
                "--schedule: 'always' has no rate; write it like 01:00-06:30=unlimited or else=500kB"
            ])
        sources.flags["schedule"] = ["else=1MB", "else=2MB"]
        #expect(sources.flagProblems.map(\.description) == ["--schedule: else is written twice; remove one of them"])
    }

    @Test func namesFollowTheKey() throws {
        let setting = try #require(Setting["max_size"])
        #expect(setting.flag == "--max-size" && setting.variable == "REELCACHE_MAX_SIZE")
    }

    @Test func aListReplacesAnother() throws {
        var sources = sources(["REELCACHE_ALLOW": "a.local, 10.0.0.0/8,"])
        sources.configFlag = try write("allow: [x.local]", to: "r.yaml")
        #expect(try sources.read().proxy.allow == ["a.local", "10.0.0.0/8"])
        sources.flags["allow"] = ["b.local", "c.local"]
        #expect(try sources.read().proxy.allow == ["b.local", "c.local"])
    }

    /// They are told to others, who may be elsewhere.
    @Test func relativePathsAreForFlagsAndVariablesAndBecomeAbsolute() throws {
        var sources = sources(["REELCACHE_CA_FILE": "own.pem"])
        sources.flags["cache_dir"] = ["films"]
        let (proxy, here) = (try sources.read().proxy, FileManager.default.currentDirectoryPath)
        #expect(proxy.cacheDirectory == "\(here)/films" && proxy.certificateFile == "\(here)/own.pem")
    }

    // MARK: Which file

    @Test func theFileThatIsNamedFirstIsRead() throws {
        try write("threads: 1", to: "etc/reelcache/reelcache.yaml")
        #expect(try sources().read().proxy.threads == 1)
        try write("threads: 2", to: "home/.config/reelcache/reelcache.yaml")
        #expect(try sources().read().proxy.threads == 2)
        try write("threads: 3", to: "xdg/reelcache/reelcache.yaml")
        var environment = ["XDG_CONFIG_HOME": directory.file("xdg")]
        #expect(try sources(environment).read().proxy.threads == 3)
        environment["REELCACHE_CONFIG"] = try write("threads: 4", to: "variable.yaml")
        #expect(try sources(environment).read().proxy.threads == 4)
        var all = sources(environment)
        all.configFlag = try write("threads: 5", to: "flag.yaml")
        let settings = try all.read()
        #expect(settings.proxy.threads == 5 && settings.file == directory.file("flag.yaml"))
    }

    /// Nothing of the others: who writes a file sees in it what holds.
    @Test func filesAreNotMixed() throws {
        try write("max_size: 1GB", to: "etc/reelcache/reelcache.yaml")
        try write("threads: 2", to: "home/.config/reelcache/reelcache.yaml")
        let proxy = try sources().read().proxy
        #expect(proxy.threads == 2 && proxy.maxSize == ProxyConfiguration().maxSize)
    }

    @Test(arguments: ["relative", ""]) func aRelativeDirectoryOfTheDesktopCountsAsNone(path: String) throws {
        #expect(
            sources(["XDG_CONFIG_HOME": path]).standardPaths.first
                == directory.file("home/.config/reelcache/reelcache.yaml"))
    }

    @Test func anEmptyHomeCountsAsNone() throws {
        for path in [
            sources(["HOME": ""]).standardPaths[0],
            HomeDirectory.directory("XDG_CACHE_HOME", orElse: ".cache", ["HOME": ""]),
        ] {
            #expect(path.hasPrefix("/") && !path.hasPrefix("/.c"), "\(path)")
        }
    }

    @Test func withoutAFileTheDefaultsHold() throws {
        let settings = try sources().read()
        #expect(settings.file == nil && settings.origins.isEmpty && settings.proxy.maxSize == 20_000_000_000)
        #expect(
            ConfigurationReport(nil, sources: sources()).lines == [
                "there is no configuration file; looked for \(directory.file("home/.config/reelcache/reelcache.yaml")) and \(directory.file("etc/reelcache/reelcache.yaml"))"
            ])
    }

    @Test func aNamedFileMustBeThere() throws {
        var flag = sources()
        flag.configFlag = directory.file("none.yaml")
        for sources in [flag, sources(["REELCACHE_CONFIG": directory.file("none.yaml")])] {
            let error = try #require(throws: SettingsError.self) { try sources.read() }
            #expect(
                error.lines == [
                    "cannot read the configuration \(directory.file("none.yaml")): No such file or directory; name another with --config"
                ])
        }
    }

    /// It is there, so somebody meant it.
    @Test func aStandardFileThatCannotBeReadIsNotPassedOver() throws {
        try FileManager.default.createDirectory(
            atPath: directory.file("home/.config/reelcache/reelcache.yaml"), withIntermediateDirectories: true)
        let error = try #require(throws: SettingsError.self) { try sources().read() }
        #expect(error.lines.count == 1 && error.description.contains("Is a directory"), "\(error)")
    }

    @Test func aFileThatIsFarTooLargeIsNotRead() throws {
        var sources = sources()
        sources.configFlag = try write(String(repeating: "#", count: 2 << 20), to: "film.mp4")
        let error = try #require(throws: SettingsError.self) { try sources.read() }
        #expect(error.description.contains("File too large"), "\(error)")
    }

    // MARK: Mistakes

    /// Also those that something else overrules: the file is wrong nevertheless.
    @Test func allMistakesAreNamedWithWhoMadeThem() throws {
        var sources = sources(["REELCACHE_MIN_FREE": "much", "REELCACHE_ALLOW": "a.local,b c"])
        sources.configFlag = try write("threads: 0\nlisten: x\n", to: "r.yaml")
        sources.flags = ["threads": ["300"], "listen": ["127.0.0.1:0"]]
        let error = try #require(throws: SettingsError.self) { try sources.read() }
        let file = directory.file("r.yaml")
        #expect(
            error.lines == [
                "\(file):1:10: threads: 0 is out of range; write a number from 1 to 256",
                "\(file):2:9: listen: cannot listen on 'x'; write HOST:PORT, such as 127.0.0.1:7335",
                "REELCACHE_MIN_FREE: 'much' is not a size; write it like 20GB or 500MiB",
                "REELCACHE_ALLOW: 'b c' is not a host name, IP address or network; write it like nas.local, 192.168.1.5 or 192.168.1.0/24",
                "--threads: 300 is out of range; write a number from 1 to 256",
            ])
        #expect(sources.flagProblems.map(\.description) == Array(error.lines.suffix(1)))
    }

    // MARK: Writing values

    @Test(arguments: [
        (0, "0"), (999, "999"), (1000, "1kB"), (16_000_000, "16MB"), (1_500_000_000, "1500MB"),
        (20_000_000_000, "20GB"), (4 << 20, "4MiB"), (4_194_305, "4194305"),
    ])
    func sizesAreWrittenToTheByte(bytes: Int64, text: String) throws {
        var settings = Settings()
        settings.proxy.minFree = bytes
        #expect(try #require(Setting["min_free"]).texts(in: settings) == [text])
    }
}
