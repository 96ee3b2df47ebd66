import Foundation
import TestSupport
import Testing

/// gPodder downloads episodes through the proxy from a feed whose enclosures name the proxy's URLs.
@Suite(Player.areExpected(.gpodder))
struct GPodderTests {
    private static let episodes = ["/episode-1.mp3", "/episode-2.mp3"]
    private static let size: Int64 = 300_000

    /// An RSS feed with one item for each enclosure.
    private func feed(_ enclosures: [String]) -> String {
        let items = enclosures.enumerated().map { index, url in
            """
            <item><title>Episode \(index + 1)</title><guid>episode-\(index + 1)</guid>\
            <enclosure url="\(url)" length="\(Self.size)" type="audio/mpeg"/></item>
            """
        }
        return "<rss version=\"2.0\"><channel><title>Podcast</title>\(items.joined())</channel></rss>"
    }

    /// What somebody who subscribes to the feed and downloads everything then has on the disk, by file name.
    private func downloads(subscribingTo feed: String) throws -> [String: Data] {
        let home = try TemporaryDirectory()
        for command in [["subscribe", feed], ["download"]] {
            let outcome = try ChildProcess.run(
                try Player.gpodder.location(), command,
                environment: ReelcacheCommand.neutral.merging(["HOME": home.path, "GPODDER_HOME": home.path]) { $1 })
            #expect(outcome.exit == .exited(0), "gpo \(command): \(outcome)")
        }
        let folder = URL(fileURLWithPath: home.file("Downloads/Podcast"))
        return try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
            .filter { $0.pathExtension == "mp3" }
            .reduce(into: [:]) { try $0["/\($1.lastPathComponent)"] = Data(contentsOf: $1) }
    }

    /// The first episode was prefetched, the second one was not; a second subscriber comes when the origin has gone.
    @Test func prefetchedEpisodeIsNotFetchedAgainAndAnotherOnlyOnce() throws {
        let (origin, publisher, cache) = (try ScriptedOrigin(), try ScriptedOrigin(), try TemporaryDirectory())
        let media = Self.episodes.indices.map { Media(seed: UInt64($0), size: Self.size) }
        for (path, media) in zip(Self.episodes, media) { origin.serve(path, media, contentType: "audio/mpeg") }
        let expected = Dictionary(uniqueKeysWithValues: zip(Self.episodes, media.map { Data($0.allBytes) }))
        let proxy = try ProxyProcess(cacheDirectory: cache.path)
        let text = feed(Self.episodes.map { proxy.url(origin.url($0)) })
        publisher.serve("/feed.xml", bytes: [UInt8](text.utf8), contentType: "application/rss+xml")
        let prefetch = try ReelcacheCommand.run([
            "prefetch", origin.url(Self.episodes[0]), "--quiet", "--cache-dir", cache.path,
        ])
        #expect(prefetch.exit == .exited(0), "\(prefetch)")
        let prefetched = origin.requestCount(Self.episodes[0])

        #expect(try downloads(subscribingTo: publisher.url("/feed.xml")) == expected, "the first subscriber")
        #expect(origin.requestCount(Self.episodes[0]) == prefetched, "a prefetched episode was fetched again")
        let requests = origin.requests(Self.episodes[1])
        #expect(!requests.isEmpty && requests.allSatisfy { $0.headers["Via"] != nil }, "past the proxy")
        origin.stop()
        #expect(try downloads(subscribingTo: publisher.url("/feed.xml")) == expected, "without the origin")
        #expect(try proxy.process.terminate() == .exited(0))
    }
}
