import Administration
import CachePolicy
import ControlAPI
import Foundation
import Logging
import Reelcache
import TestSupport
import Testing

@testable import Downloads
@testable import ReelcacheCLI

/// Names that are looked up through a proxy that another process runs.
@Suite struct KnownNamesTests {
    private static let tree = """
        {"serializationVersion": 0, "command": {"commandName": "reelcache", "subcommands": [
            {"commandName": "rm", "arguments": [
                {"kind": "option", "names": [{"kind": "long", "name": "cache-dir"}],
                 "completionKind": {"directory": {}}},
                {"kind": "positional", "completionKind": {"shellCommand": {"command": "feeds"}}}]}]}}
        """
    private let origin: ScriptedOrigin
    private let directory: TemporaryDirectory
    private let lock: Int32

    /// The proxy of the cache is the origin.
    init() throws {
        (origin, directory) = (try ScriptedOrigin(), try TemporaryDirectory())
        lock = open(directory.file("LOCK"), O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        let owner = "{\"pid\":4242,\"url\":\"\(origin.url(""))\"}"
        #expect(flock(lock, LOCK_EX) == 0 && pwrite(lock, owner, owner.utf8.count, 0) == owner.utf8.count)
        let token = directory.file("control-token")
        try Data((String(repeating: "0a", count: 32) + "\n").utf8).write(to: URL(fileURLWithPath: token))
        chmod(token, 0o600)
    }

    private func feeds(within seconds: Double) throws -> [String] {
        defer { close(lock) }
        let words = ["rm", "--cache-dir", directory.path]
        let place = CompletionPlace(in: try CommandTree(dump: Self.tree.utf8), words: words, current: "")
        return KnownNames.feeds.candidates(for: place, within: seconds).map(\.value)
    }

    @Test func proxyThatDoesNotAnswerIsNotWaitedFor() throws {
        let database = try SubscriptionDatabase(
            directory: directory.path, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let feed = Subscription(
            try OriginURL(url: "https://feed.test/rss"), options: SubscriptionOptions(), added: 1, due: 1)
        _ = try database.save([feed], all: { [] })
        try database.close()
        origin.holdHeads("/api/v1/feeds")
        #expect(try feeds(within: 0.05) == ["https://feed.test/rss"])
        origin.releaseAll()
    }

    @Test func secretsAreNotRequested() throws {
        origin.serve("/api/v1/feeds", bytes: Array(#"{"feeds":[]}"#.utf8), contentType: "application/json")
        #expect(try feeds(within: 60).isEmpty)
        #expect(origin.requests("/api/v1/feeds").map(\.target) == ["/api/v1/feeds"])
    }

    @Test func downloadsAreListedOnceForAllNames() throws {
        for path in ["/api/v1/downloads?secrets=true", "/api/v1/downloads/history?secrets=true"] {
            let body = #"{"downloads":[],"summary":\#(try Self.json(DownloadTotals())),"total":0}"#
            origin.serve(path, bytes: Array(body.utf8), contentType: "application/json")
        }
        let proxy = try #require(RunningProxy(cacheDirectory: directory.path))
        var listed: [Download]?
        for name in ["https://a.test/1", "https://a.test/2"] {
            #expect(throws: ControlError.self) { try proxy.downloadID(name, in: &listed) { _ in true } }
        }
        #expect(try proxy.downloadID("7", in: &listed) { _ in true } == 7)
        #expect(origin.requestCount("/api/v1/downloads?secrets=true") == 1)
        close(lock)
    }

    private static func json(_ totals: DownloadTotals) throws -> String {
        String(decoding: try ControlJSON.line(totals), as: UTF8.self)
    }
}
