import Foundation
import TestSupport
import Testing

/// gPodder subscribes to a feed through the proxy, and downloads its episodes through it.
@Suite(Player.areExpected(.gpodder))
struct GPodderTests {
    private static let episodes = ["/episode-1.mp3", "/episode-2.mp3", "/episode-3.mp3"]
    private static let size: Int64 = 300_000
    private static let media = episodes.indices.map { Media(seed: UInt64($0), size: size) }
    /// What is on the disk after everything was downloaded, by file name.
    private static let expected = Dictionary(uniqueKeysWithValues: zip(episodes, media.map { Data($0.allBytes) }))

    /// An origin with three episodes, and the feed that names them on another one, as hosters have it.
    private func publish() throws -> (media: ScriptedOrigin, feed: ScriptedOrigin) {
        let (origin, publisher) = (try ScriptedOrigin(), try ScriptedOrigin())
        for (path, media) in zip(Self.episodes, Self.media) { origin.serve(path, media, contentType: "audio/mpeg") }
        let items = Self.episodes.enumerated().map { index, path in
            """
            <item><title>Episode \(index + 1)</title><guid>episode-\(index + 1)</guid>\
            <pubDate>0\(index + 1) Oct 2024 10:00:00 GMT</pubDate>\
            <enclosure url="\(origin.url(path))" length="\(Self.size)" type="audio/mpeg"/></item>
            """
        }
        let text =
            "<?xml version=\"1.0\"?>\n<rss version=\"2.0\"><channel><title>Podcast</title>\(items.joined())</channel></rss>"
        publisher.serve("/feed.xml", bytes: [UInt8](text.utf8), contentType: "text/xml")
        return (origin, publisher)
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

    @Test func prefetchedEpisodesAreNotFetchedAgain() throws {
        let ((origin, publisher), cache) = (try publish(), try TemporaryDirectory())
        let proxy = try ProxyProcess(cacheDirectory: cache.path)
        let prefetch = try ReelcacheCommand.run(
            ["prefetch", "--quiet", "--cache-dir", cache.path] + Self.episodes.map { origin.url($0) })
        #expect(prefetch.exit == .exited(0), "\(prefetch)")
        let sent = Self.episodes.map { origin.bytesSent($0) }

        #expect(try downloads(subscribingTo: proxy.url(publisher.url("/feed.xml"))) == Self.expected)
        #expect(Self.episodes.map { origin.bytesSent($0) } == sent, "bytes of media came from the origin")
        #expect(publisher.requests("/feed.xml").allSatisfy { $0.headers["Via"] != nil }, "past the proxy")
        #expect(try proxy.process.terminate() == .exited(0))
    }

    /// The second subscriber comes when the origin of the media has gone.
    @Test func eachEpisodeIsFetchedOnceForAllSubscribers() throws {
        let ((origin, publisher), cache) = (try publish(), try TemporaryDirectory())
        let proxy = try ProxyProcess(cacheDirectory: cache.path)
        let feed = proxy.url(publisher.url("/feed.xml"))
        #expect(try downloads(subscribingTo: feed) == Self.expected, "the first subscriber")
        for path in Self.episodes {
            let requests = origin.requests(path)
            #expect(
                !requests.isEmpty && requests.allSatisfy { $0.headers["Via"] != nil }, "past the proxy: \(requests)")
            #expect(origin.bytesSent(path) == Self.size)
        }
        origin.stop()
        #expect(try downloads(subscribingTo: feed) == Self.expected, "without the origin")
        #expect(try proxy.process.terminate() == .exited(0))
    }
}
