import CachePolicy
import EventIO
import Foundation
import Logging
import Testing
import TestSupport

@testable import Reelcache

/// What goes to the log, whoever writes it.
@Suite struct GuardedLogTests {
    @Test(arguments: Logger.Level.allCases) func secretsAndControlCharactersStayOut(level: Logger.Level) throws {
        let book = LogBook()
        var policy = ProxyPolicy()
        policy.mask = try URLMask(adding: ["viewer"])
        let current = Current(policy)
        let logger = book.logger.guarded(by: current)
        logger.log(
            level: level, "https://me:pw@h/a?token=abc&viewer=7 \u{1B}[2J\u{202E}",
            metadata: [
                "resource": "/b?sig=def\r\n", "more": .array(["/c?key=ghi"]),
                "most": .dictionary(["x": .stringConvertible("/d?pwd=jkl\u{9B}2J")]),
            ])
        let line = try #require(book.lines.first)
        #expect(line.contains("https://***@h/a?token=***&viewer=*** \\u{1B}[2J\\u{202E}"), "\(line)")
        for secret in ["abc", "def", "ghi", "jkl", "pw@", "viewer=7", "\u{1B}", "\r", "\u{9B}"] {
            #expect(!line.contains(secret), "\(line)")
        }
        current.change { $0.mask = .standard }
        logger.log(level: level, "/a?viewer=7")
        #expect(book.lines.last?.contains("viewer=7") == true)
    }

    /// An origin's `Location` is what it wants it to be.
    @Test func originSpeaksToNoTerminal() throws {
        let (book, origin, directory) = (LogBook(), try ScriptedOrigin(), try TemporaryDirectory())
        defer { origin.stop() }
        var configuration = ProxyConfiguration()
        (configuration.listen, configuration.cacheDirectory) = ("127.0.0.1:0", directory.file("cache"))
        (configuration.allow, configuration.threads, configuration.minFree) = (["127.0.0.1"], 1, 1_000_000)
        let cache = try MediaCache(configuration, logger: book.logger)
        defer { try? cache.close(grace: .zero) }
        origin.script("/film.mp4") {
            ($0.status, $0.headers) = (302, [("Location", "ftp://me:pw@h/\u{1B}[2J?token=abc")])
        }
        let proxy = try cache.startProxy()
        let response = try RawClient.get(port: proxy.port, path: "/http/127.0.0.1:\(origin.port)/film.mp4?token=abc")
        #expect(response.status == 502 && !response.text.contains("\u{1B}"), "\(response.text)")
        let lines = book.lines
        #expect(
            lines.contains {
                $0.hasPrefix("info not fetched") && $0.contains("ftp://***@h/") && $0.contains("[2J")
                    && $0.contains("/film.mp4?token=***")
            }, "\(lines)")
        #expect(!lines.contains { $0.contains("\u{1B}") || $0.contains("abc") || $0.contains("pw@") }, "\(lines)")
    }
}
