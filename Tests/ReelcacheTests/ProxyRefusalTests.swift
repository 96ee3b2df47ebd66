import Foundation
import Testing
import TestSupport

@testable import Reelcache

/// Programs that embed the proxy set what they like: what cannot work is refused there too.
@Suite struct ProxyRefusalTests {
    private static let mistakes: [(change: @Sendable (inout ProxyConfiguration) -> Void, named: String)] = [
        ({ @Sendable in $0.listen = "nonsense" }, "cannot listen on 'nonsense'"),
        ({ @Sendable in $0.names = ["tv.example:1"] }, "'tv.example:1' in names is not a host name"),
        ({ @Sendable in $0.threads = 0 }, "0 threads"),
        ({ @Sendable in $0.maxSize = 15_000_000 }, "15000000 bytes"),
        ({ @Sendable in $0.allow = ["not/valid"] }, "not/valid"),
        ({ @Sendable in $0.certificateFile = "/none.pem" }, "/none.pem"),
        ({ @Sendable in $0.transmission = "pigeon" }, "pigeon"),
        ({ @Sendable in $0.fill = .ahead(bytes: 0) }, "fill: ahead 0 means read"),
        ({ @Sendable in $0.mounts = ["/tv": "https://o/"] }, "mounts: '/tv' is not a mount path"),
        ({ @Sendable in $0.mountCaches = ["/tv/": .shared] }, "mounts: '/tv/' is not mounted"),
        ({ @Sendable in $0.defaultTTL = .seconds(-1) }, "default_ttl: a lifetime is 0 s to 10 years"),
        ({ @Sendable in $0.targetedFields = ["X"] }, "targeted_fields: 'X' is not a targeted field"),
        (
            { @Sendable in $0.targetedFields = (0...16).map { "A\($0)-Cache-Control" } },
            "targeted_fields: name at most 16 fields, not 17"
        ),
        ({ @Sendable in $0.mounts = ["/stats/": "https://o/"] }, "mounts: '/stats/' is reserved for the proxy"),
        ({ @Sendable in $0.largestMountBody = -1 }, "max_body: a body has 0 bytes or more, not -1"),
        (
            { @Sendable in $0.linger = .seconds(-1) },
            "linger of -1.0 seconds cannot work; choose 0.0 seconds to 600.0 seconds"
        ),
        ({ @Sendable in $0.connectTimeout = .milliseconds(999) }, "connectTimeout of 0.999 seconds"),
        ({ @Sendable in $0.stallTimeout = .zero }, "stallTimeout of 0.0 seconds"),
        ({ @Sendable in $0.maxDownloads = 0 }, "maxDownloads of 0 cannot work; choose 1 to 64"),
        ({ @Sendable in $0.maxDownloads = 65 }, "maxDownloads of 65"),
        ({ @Sendable in $0.downloadRate = 0 }, "downloadRate of 0 cannot work"),
        ({ @Sendable in $0.onCompleted = [""] }, "on_completed: names no program"),
        ({ @Sendable in $0.rules = [ResourceRule(), ResourceRule(hosts: ["a b"])] }, "rules[1]: 'a b' is not a host"),
        ({ @Sendable in $0.rules = [ResourceRule(paths: ["vod"])] }, "rules[0]: 'vod' is not a path pattern"),
        ({ @Sendable in $0.rules = [rule { $0.headers = ["Host": "a"] }] }, "rules[0]: the proxy writes Host itself"),
        ({ @Sendable in $0.rules = [rule { $0.headers = ["A": "b"] }] }, "rules[0]: every host would get these fields"),
        (
            { @Sendable in $0.rules = [rule { $0.key = "https://cdn.example{path}" }] },
            "rules[0]: this is for all hosts"
        ),
        ({ @Sendable in $0.rules = [rule { $0.key = "film" }] }, "rules[0]: 'film' is not a key"),
        (
            { @Sendable in $0.rules = [rule { $0.ignoredQuery = .parameters(["a=b"]) }] },
            "rules[0]: 'a=b' is not a parameter name"
        ),
        (
            { @Sendable in $0.rules = [rule { $0.cookies = "/none.txt" }] },
            "rules[0]: cookies: /none.txt: cannot be read (No such file or directory); name a readable cookie file"
        ),
        (
            { @Sendable in $0.rules = [rule { $0.cookies = "/etc/passwd" }] },
            "rules[0]: cookies: /etc/passwd: line 1 is no cookie; write it as yt-dlp"
        ),
        (
            { @Sendable in $0.rules = [rule { $0.cookies = "/" }] },
            "rules[0]: cookies: /: cannot be read; name a readable cookie file"
        ),
        ({ @Sendable in $0.rules = [rule { $0.ttl = .seconds(-1) }] }, "rules[0]: a ttl is 0 s or longer, not -1 s"),
        ({ @Sendable in $0.rules = [rule { $0.maxObject = -1 }] }, "rules[0]: max_object is 0 bytes or more, not -1"),
        ({ @Sendable in $0.rules = [rule { $0.fill = .ahead(bytes: .max) }] }, "rules[0]: that far ahead means end"),
    ]

    private static func rule(_ change: (inout ResourceRule) -> Void) -> ResourceRule {
        var rule = ResourceRule()
        change(&rule)
        return rule
    }

    @Test(arguments: mistakes.indices) func aConfigurationThatCannotWorkIsNamed(index: Int) throws {
        let (change, named) = Self.mistakes[index]
        let directory = try TemporaryDirectory()
        var configuration = ProxyConfiguration()
        configuration.listen = "127.0.0.1:0"
        configuration.cacheDirectory = directory.file("cache")
        change(&configuration)
        let error = try #require(throws: ProxyError.self) { try Proxy(configuration) }
        #expect(error.description.contains(named), "\(error)")
        // What was begun would have no owner that ends it.
        #expect(!FileManager.default.fileExists(atPath: configuration.cacheDirectory))
    }

    @Test func whatCannotWorkIsNotStoredEither() throws {
        let directory = try TemporaryDirectory()
        var configuration = ProxyConfiguration()
        (configuration.listen, configuration.cacheDirectory) = ("127.0.0.1:0", directory.file("cache"))
        let file = directory.file("own.pem")
        try Data("none".utf8).write(to: URL(fileURLWithPath: file))
        configuration.certificateFile = file
        let cache = try MediaCache(configuration)
        defer { try? cache.close(grace: .zero) }
        for (change, named) in Self.mistakes {
            let error = #expect(throws: ProxyError.self, "\(named)") { try cache.reconfigure(change) }
            #expect(error?.description.contains(named) != false, "\(error.debugDescription)")
        }
        // What it was opened with may be gone.
        try FileManager.default.removeItem(atPath: file)
        try cache.reconfigure { $0.isOffline = true }
        #expect(cache.configuration.isOffline)
        try cache.startProxy()
    }

    /// As it may be for programs: theirs is the directory that they run in.
    @Test func aDirectoryMayBeOneLetter() async throws {
        let directory = try TemporaryDirectory()
        await #expect(processExitsWith: .success) { [path = directory.path as String] in
            #expect(chdir(path) == 0)
            var configuration = ProxyConfiguration()
            configuration.cacheDirectory = "x"
            for _ in 1...2 { try MediaCache(configuration).close(grace: .zero) }
        }
        #expect(FileManager.default.fileExists(atPath: directory.file("x/index.sqlite")))
    }

    @Test func allowIsChangedAsAWholeOrNotAtAll() throws {
        let directory = try TemporaryDirectory()
        var configuration = ProxyConfiguration()
        configuration.listen = "127.0.0.1:0"
        configuration.cacheDirectory = directory.file("cache")
        let origin = try ScriptedOrigin()
        origin.serve("/a.mp4", Media(seed: 1, size: 1000))
        let proxy = try Proxy(configuration)
        defer { try? proxy.stop(grace: .zero) }
        func status() throws -> Int {
            try RawClient.get(port: proxy.port, path: ProxyProcess.target(origin.url("/a.mp4"))).status
        }

        #expect(throws: ProxyError.self) { try proxy.cache.reconfigure { $0.allow = ["127.0.0.1", "not/valid"] } }
        #expect(try status() == 403)
        try proxy.cache.reconfigure { $0.allow = ["127.0.0.1"] }
        #expect(try status() == 200)
    }

    @Test func anOpenCacheKeepsItsDirectory() throws {
        let directory = try TemporaryDirectory()
        var configuration = ProxyConfiguration()
        (configuration.listen, configuration.cacheDirectory) = ("127.0.0.1:0", directory.file("cache"))
        let cache = try MediaCache(configuration)
        defer { try? cache.close(grace: .zero) }
        try cache.reconfigure { $0.cacheDirectory = directory.file("other") }
        #expect(cache.configuration.cacheDirectory == directory.file("cache"))
        try cache.startProxy()
        #expect(!FileManager.default.fileExists(atPath: directory.file("other")))
    }
}
