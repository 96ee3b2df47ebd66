import Foundation
import TestSupport
import Testing

/// The directory of a stopped cache, copied, is a backup of it.
@Suite struct BackupTests {
    private let elsewhere: TemporaryDirectory

    init() throws { elsewhere = try TemporaryDirectory() }

    /// What commands tell of a cache that no proxy runs: resources, the queue, what has ended, subscriptions.
    private func told(of cache: String, _ feed: String) throws -> [String] {
        try [
            ["ls"], ["downloads"], ["history"], ["feeds"], ["feeds", "show", feed],
        ].map { command in
            let outcome = try ReelcacheCommand.run(command + ["--json", "--cache-dir", cache])
            #expect(outcome.exit == .exited(0) && outcome.stderr == "", "\(outcome)")
            return outcome.stdout
        }
    }

    /// The requests of the last month, by the history of the counters.
    private func requests(_ proxy: ProxyProcess) throws -> Int {
        let body = try proxy.get("/api/v1/history?span=month").body
        let history = try #require(JSONSerialization.jsonObject(with: Data(body)) as? [String: Any])
        return try #require(history["periods"] as? [[String: Any]]).compactMap { $0["requests"] as? Int }.reduce(0, +)
    }

    @Test func aCopyOfAStoppedCacheHasEverything() throws {
        let shelf = try Shelf(whole: ["/a.mp4"], parts: ["/b.mp4"]), origin = shelf.origin
        _ = try shelf.say("pin", origin.url("/a.mp4"))
        origin.serve("/done.mp4", bytes: [UInt8](repeating: 1, count: 50_000))
        _ = try shelf.run("prefetch", origin.url("/done.mp4"), "--category", "talks")
        origin.serve("/c.mp4", shelf.film)
        origin.script("/c.mp4") { $0.stallAfter = 524_288 }
        _ = try shelf.say("prefetch", "--detach", origin.url("/c.mp4"))
        let feed = origin.url("/talk/feed.xml"), episode = "<enclosure url='\(origin.url("/e.mp4"))' type='video/mp4'/>"
        let text = "<item><title>Episode</title><guid>e</guid>\(episode)</item>"
        origin.serve(
            "/talk/feed.xml",
            bytes: Array("<rss version='2.0'><channel><title>Talk</title>\(text)</channel></rss>".utf8))
        #expect(try shelf.run("feeds", "add", feed, "--latest", "1").exit == .exited(0))
        let asked = try requests(#require(shelf.proxy))
        #expect(asked > 1)
        try shelf.close()
        let former = try told(of: shelf.cache.path, feed), copy = elsewhere.file("copy")

        #expect(try ChildProcess.run("/bin/cp", ["-a", shelf.cache.path, copy]).exit == .exited(0))
        try FileManager.default.removeItem(atPath: shelf.cache.path)
        origin.stop()
        #expect(try told(of: copy, feed) == former)
        #expect(former[0].contains("/b.mp4") && former[0].contains("\"is_pinned\" : true"))
        #expect(former[1].contains("/c.mp4") && former[2].contains("/done.mp4") && former[3].contains("Talk"))
        let verified = try ReelcacheCommand.run(["verify", "--cache-dir", copy])
        #expect(verified.exit == .exited(0) && verified.stdout.hasSuffix("everything is sound\n"), "\(verified)")
        let proxy = try ProxyProcess(cacheDirectory: copy)
        #expect(try requests(proxy) == asked)
        for (path, range) in [("/a.mp4", 0..<shelf.film.size), ("/b.mp4", 131_072..<196_608)] {
            let response = try proxy.get(origin.url(path), range: range)
            #expect(response.headers["Cache-Status"]?.hasPrefix("reelcache; hit") == true, "\(response.headers)")
            #expect(shelf.film.difference(response.body, from: range) == nil)
        }
        #expect(try proxy.process.terminate() == .exited(0))
    }
}
