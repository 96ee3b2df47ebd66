import Foundation
import Reelcache
import TestSupport
import Testing

/// Subscriptions as a program uses them.
@Suite(.timeLimit(.minutes(10))) struct CacheFeedTests {
    private static func feed(_ numbers: [Int], _ stage: CacheStage) -> [UInt8] {
        let items = numbers.map {
            "<item><title>Episode \($0)</title><guid>g\($0)</guid><enclosure url=\"\(stage.origin.url("/e\($0).mp3"))\"/></item>"
        }
        return Array("<rss version=\"2.0\"><channel><title>Talk</title>\(items.joined())</channel></rss>".utf8)
    }

    private static func serve(_ numbers: [Int], _ stage: CacheStage) {
        stage.origin.serve("/feed.xml", bytes: feed(numbers, stage), etag: nil, contentType: "application/rss+xml")
        for number in numbers { stage.serve("/e\(number).mp3") }
    }

    @Test func aProgramSubscribesChecksAndUnsubscribes() async throws {
        try await cacheStory { stage in
            Self.serve([3, 2, 1], stage)
            let (feeds, url) = (stage.cache.feeds, stage.url("/feed.xml"))
            let options = FeedOptions(latest: 1, category: "talks", every: .seconds(7200), keep: .episodes(5))
            let first = try await feeds.subscribe(to: url, options: options)
            #expect(first.title == "Talk" && first.downloads.count == 1 && first.failure == nil)
            let subscription = try #require(try await feeds.subscription(of: url))
            #expect(subscription.url == url && subscription.address == url.absoluteString)
            #expect(subscription.category == "talks" && subscription.episodes == 3 && subscription.ordered == 1)
            #expect(subscription.checked != nil && subscription.brokenSince == nil && subscription.message == nil)
            #expect(subscription.nextCheck > Date(timeIntervalSinceNow: 6000))
            try await stage.cache.download(stage.url("/e3.mp3"))
            let episodes = try await feeds.episodes(of: url)
            #expect(episodes.map(\.title) == ["Episode 3", "Episode 2", "Episode 1"])
            #expect(episodes.map(\.state) == [.cached, .passedOver, .passedOver])
            #expect(episodes.first?.download == first.downloads.first)

            Self.serve([4, 3, 2, 1], stage)
            #expect(try await feeds.check().map(\.downloads.count) == [1])
            stage.origin.serve("/feed.xml", bytes: Array("<html></html>".utf8), etag: nil, contentType: "text/html")
            #expect(try await feeds.check(url).first?.failure == "this is an HTML page, not a feed")
            #expect(try await feeds.subscriptions().first?.brokenSince != nil)

            let list = try await feeds.exportList()
            try await feeds.remove(url)
            #expect(try await feeds.subscriptions().isEmpty)
            #expect(try await feeds.importList(Data(list.utf8)) == [url.absoluteString])
        }
    }

    /// Whatever the history of downloads has of it.
    @Test(arguments: [false, true]) func whatAPersonKeepsIsNotTheFeedsToRemove(isOrdered: Bool) async throws {
        try await cacheStory { stage in
            Self.serve([1], stage)
            let (cache, url, first) = (stage.cache, stage.url("/feed.xml"), stage.url("/e1.mp3"))
            if isOrdered {
                try await cache.download(first)
                try await cache.downloads.clearHistory()
            }
            func end(_ check: FeedCheckResult) async {
                for id in check.downloads { _ = await cache.downloads.events(of: id).last() }
            }
            let options = FeedOptions(latest: 1, keep: .episodes(1))
            await end(try await cache.feeds.subscribe(to: url, options: options))
            if !isOrdered { try await cache.pin(first) }
            for newest in [2, 3, 4] {
                Self.serve(Array((1...newest).reversed()), stage)
                for check in try await cache.feeds.check() { await end(check) }
            }
            try await cache.feeds.check()
            #expect([1, 2, 3, 4].filter { cache.isCached(stage.url("/e\($0).mp3")) } == [1, 4])
        }
    }

    @Test func errorsOfFeedsHaveCasesOfTheirOwn() async throws {
        try await cacheStory { stage in
            let (feeds, url) = (stage.cache.feeds, stage.url("/none.xml"))
            stage.origin.script("/none.xml") { $0.status = 404 }
            #expect(try await feeds.subscription(of: url) == nil)
            func name(_ body: () async throws -> Void) async -> String {
                do { try await body() } catch CacheError.unknownFeed { return "unknown" } catch CacheError
                    .unreadableFeed
                { return "unreadable" } catch CacheError.invalid { return "invalid" } catch CacheError.unsupportedURL {
                    return "URL"
                } catch CacheError.closed { return "closed" } catch { return "\(error)" }
                return "none"
            }
            #expect(await name { try await feeds.remove(url) } == "unknown")
            #expect(await name { try await feeds.check(url) } == "unknown")
            #expect(await name { _ = try await feeds.episodes(of: url) } == "unknown")
            #expect(await name { try await feeds.subscribe(to: url) } == "unreadable")
            #expect(await name { try await feeds.subscribe(to: url, options: FeedOptions(latest: -1)) } == "invalid")
            #expect(await name { try await feeds.subscribe(to: URL(string: "file:///a")!) } == "URL")
            #expect(await name { try await feeds.importList(Data("nonsense".utf8)) } == "invalid")
            try await stage.cache.close(grace: .zero)
            #expect(await name { _ = try await feeds.subscriptions() } == "closed")
            #expect(await name { try await feeds.subscribe(to: url) } == "closed")
        }
    }
}
