import Downloads
import Testing

@testable import Downloads

/// Episodes that others download.
@Suite struct LostDownloadTests {
    private static let feed = "https://feed.test/rss"
    private static let url = "https://media.test/e1.mp3"
    private let world: FeedWorld

    init() throws { world = try FeedWorld() }

    @Test func episodeThatAnotherFeedDownloadsIsDownloadedOnWithoutThatFeed() throws {
        let other = "https://all.test/rss"
        for feed in [other, Self.feed] { world.origin.serve(feed, FeedWriter.episodes([1])) }
        world.shelf.holds(Self.url)
        let id = try #require(try world.subscribe(other).downloads.first)
        #expect(try world.subscribe(Self.feed).downloads == [])
        _ = try world.manager.perform { try $0.remove(FeedWorld.url(other)) }
        world.shelf.letGo(Self.url)
        for action in [DownloadChange.Action.pause, .resume] {
            _ = try world.downloads.perform { try $0.change(.ids([id]), DownloadChange(action: action)) }
        }
        world.pass(86_400)
        #expect(world.shelf.cached == ["e1.mp3"] && world.ordered == ["e1.mp3"])
        #expect(try world.episodes(Self.feed).map(\.state) == [.cached])
    }

    @Test func downloadThatAFormerFeedHasLeftEndsWithTheFeed() throws {
        let other = "https://all.test/rss"
        for feed in [other, Self.feed] { world.origin.serve(feed, FeedWriter.episodes([1])) }
        world.shelf.holds(Self.url)
        let id = try #require(try world.subscribe(other).downloads.first)
        _ = try world.subscribe(Self.feed)
        for feed in [other, Self.feed] { _ = try world.manager.perform { try $0.remove(FeedWorld.url(feed)) } }
        #expect(world.downloads.snapshots[id]?.state == .cancelled)
    }

    /// Then it is the feed's to download.
    @Test(arguments: [SubscriptionChange.Keep.all, .limit(.episodes(5))], [false, true])
    func episodeWhoseOnlyDownloadWasAPersonsAndCameToNothing(keep: SubscriptionChange.Keep, isCancelled: Bool) throws {
        world.origin.serve(Self.feed, FeedWriter.episodes([1]))
        world.shelf.holds(Self.url)
        let order = DownloadOrder(url: FeedWorld.url(Self.url))
        let id = try #require(try world.downloads.perform { try $0.add([order]) }.first?.id)
        #expect(try world.subscribe(Self.feed) { $0.keep = keep }.downloads == [])
        world.shelf.fails(Self.url)
        world.shelf.letGo(Self.url)
        for action in isCancelled ? [DownloadChange.Action.cancel] : [.pause, .resume] {
            _ = try world.downloads.perform { try $0.change(.ids([id]), DownloadChange(action: action)) }
        }
        world.catchUp()
        #expect(world.downloads.snapshots[id]?.state == (isCancelled ? .cancelled : .failed))
        world.pass(86_400)
        world.shelf.works(Self.url)
        world.pass(3 * 86_400)
        #expect(world.shelf.cached == ["e1.mp3"] && world.ordered == ["e1.mp3", "e1.mp3"])
        #expect(try world.episodes(Self.feed).map(\.state) == [.cached])
    }
}
