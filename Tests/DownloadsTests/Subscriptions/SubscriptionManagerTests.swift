import CachePolicy
import Downloads
import Foundation
import GRDB
import Playlists
import Testing

@testable import Downloads

/// Subscriptions from the first check to the last, with a real database.
@Suite struct SubscriptionManagerTests {
    private static let feed = "https://feed.test/rss"
    private let world: FeedWorld

    init() throws { world = try FeedWorld() }

    // MARK: Subscribing

    @Test func subscribingOrdersTheNewestEpisodes() throws {
        world.origin.serve(Self.feed, FeedWriter.episodes([5, 4, 3, 2, 1]))
        let check = try world.subscribe(Self.feed) { ($0.latest, $0.category) = (2, "talks") }
        #expect(check.outcome == .read && check.title == "Talk" && check.episodes == 5 && check.downloads.count == 2)
        #expect(world.ordered == ["e5.mp3", "e4.mp3"])
        let downloads = world.downloads.snapshots.listing { _ in true }.downloads
        #expect(downloads.allSatisfy { $0.priority == .low && $0.category == "talks" && $0.feed == Self.feed })
        #expect(
            try world.episodes(Self.feed).map(\.state) == [.cached, .cached, .passedOver, .passedOver, .passedOver])
        #expect(try world.report(Self.feed).ordered == 2)
    }

    @Test(arguments: [
        ("<!DOCTYPE html><html></html>", "this is an HTML page, not a feed"),
        ("{\"version\": 1}", "this is not a feed: it is JSON"), ("", "the feed is empty"),
        ("<opml version=\"2.0\"><body/></opml>", "this is not a feed: it is an OPML file, a list of feeds"),
    ])
    func whatIsNoFeedIsRefusedAndNothingIsSaved(text: String, reason: String) throws {
        world.origin.serve(Self.feed, text)
        #expect(throws: DownloadError(.unreadable, "\(Self.feed): \(reason)")) { try world.subscribe(Self.feed) }
        #expect(try world.manager.perform { try $0.reports() }.isEmpty)
        #expect(world.ordered.isEmpty)
    }

    @Test func feedThatCannotBeReachedIsRefused() throws {
        #expect(throws: DownloadError(.unreadable, "\(Self.feed): the origin answered 404")) {
            try world.subscribe(Self.feed)
        }
        world.origin.isOffline = true
        #expect(throws: DownloadError(.unreadable, "\(Self.feed): \(FeedReadings.offline.message)")) {
            try world.subscribe(Self.feed)
        }
    }

    @Test func aCapHoldsTheFeedsDownloadsAlsoInTheNextProcess() throws {
        world.origin.serve(Self.feed, FeedWriter.episodes([5, 4, 3, 2, 1]))
        try world.subscribe(Self.feed) { ($0.latest, $0.caps) = (5, DownloadCap.list("1/day")) }
        let held = "1/day of the feed used up until 00:00"
        #expect(world.downloads.snapshots.listing().downloads.map(\.message) == Array(repeating: held, count: 4))

        let next = try FeedWorld(after: world)
        let completed = { next.downloads.snapshots.listing { $0.state == .completed }.downloads.count }
        #expect(completed() == 1)
        next.pass(86400)
        #expect(completed() == 2)
        next.pass(3 * 86400)
        #expect(completed() == 5)
        _ = try next.manager.perform { try $0.remove(FeedWorld.url(Self.feed)) }
        #expect(next.downloads.perform { $0.snapshots.summary.settings.feedCaps.isEmpty })
    }

    @Test func subscribingAgainChangesTheGivenOptionsOnly() throws {
        world.origin.serve(Self.feed, FeedWriter.episodes([5, 4, 3, 2, 1]))
        try world.subscribe(Self.feed) { ($0.latest, $0.category, $0.keep) = (1, "talks", .limit(.episodes(9))) }
        try world.subscribe(Self.feed) { $0.every = 7200 }
        var report = try world.report(Self.feed)
        #expect(report.every == 7200 && report.category == "talks" && report.keep == "9" && report.latest == 1)
        #expect(world.ordered == ["e5.mp3"])
        try world.subscribe(Self.feed) { $0.caps = DownloadCap.list("500MB/day,5GB/month") }
        #expect(try world.report(Self.feed).cap == "500MB/day,5GB/month")
        try world.subscribe(Self.feed) { $0.caps = [] }
        #expect(try world.report(Self.feed).cap == nil)
        try world.subscribe(Self.feed) { ($0.keep, $0.caps) = (.limit(.untilPlayed), DownloadCap.list("1MB/day")) }
        #expect(world.downloads.snapshots.summary.settings.feedCaps.count == 1, "with episodes that are forgotten")
        try world.subscribe(Self.feed) { ($0.keep, $0.caps) = (.limit(.episodes(9)), []) }
        try world.subscribe(Self.feed) { ($0.latest, $0.category, $0.keep) = (3, "", .all) }
        report = try world.report(Self.feed)
        #expect(report.category == nil && report.keep == nil && report.latest == 3)
        #expect(world.ordered == ["e5.mp3", "e4.mp3", "e3.mp3"], "older ones that were passed over")
    }

    @Test func optionsOutOfRangeAreRefused() throws {
        world.origin.serve(Self.feed, FeedWriter.episodes([1]))
        let changes: [(inout SubscriptionChange) -> Void] = [
            { $0.latest = -1 }, { $0.latest = 1001 }, { $0.every = 299 }, { $0.every = 2_592_001 },
            { $0.category = "a\nb" }, { $0.category = String(repeating: "a", count: 101) },
            { $0.title = String(repeating: "a", count: 201) }, { $0.keep = .limit(.episodes(0)) },
            { $0.keep = .limit(.bytes(-1)) },
        ]
        for change in changes {
            #expect(throws: DownloadError.self) { try world.subscribe(Self.feed, change) }
        }
        #expect(world.origin.requests.isEmpty)
    }

    @Test func sameFeedUnderAnotherURLIsRefused() throws {
        world.origin.serve(Self.feed, FeedWriter.episodes([1]))
        world.origin.serve("https://old.test/rss") { _ in .redirect(Self.feed, isMoved: true) }
        try world.subscribe(Self.feed)
        #expect(throws: DownloadError.self) { try world.subscribe("https://old.test/rss") }
        #expect(try world.manager.perform { try $0.reports() }.count == 1)
    }

    /// Lists of older programs have `http://`. A filter of the subscription would be undone.
    @Test func importedFeedThatIsSubscribedUnderAnotherURLIsRemovedByItsFirstCheck() throws {
        let (world, old) = (try FeedWorld(isStarted: false), "http://feed.test/rss")
        world.origin.serve(Self.feed, FeedWriter.episodes([3, 2, 1]))
        world.origin.serve(old) { _ in .redirect(Self.feed, isMoved: true) }
        try world.subscribe(Self.feed) { ($0.latest, $0.title) = (1, "Episode 2") }
        let list = OPML(feeds: [OPMLFeed(title: "Old", url: FeedWorld.url(old))])
        #expect(try world.manager.perform { try $0.importList(list, SubscriptionChange()) }.added == [old])
        let check = try #require(try world.check(old).first)
        #expect(check.outcome == .read && check.title == "Old" && check.downloads.isEmpty)
        #expect(
            check.message
                == "it is the same feed as \(Self.feed), which is subscribed: this subscription was removed")
        #expect(try world.manager.perform { try $0.reports() }.map(\.urlText) == [Self.feed])
        #expect(world.ordered == ["e2.mp3"])
    }

    @Test func feedThatMergesIntoASubscribedOneOrdersNothingUntilOneIsRemoved() throws {
        let other = "https://other.test/rss"
        world.origin.serve(Self.feed, FeedWriter.episodes([3, 2, 1]))
        world.origin.serve(other, FeedWriter.episodes([1], prefix: "o"))
        try world.subscribe(Self.feed) { ($0.latest, $0.title) = (1, "Episode 2") }
        try world.subscribe(other)
        world.origin.serve(other) { _ in .redirect(Self.feed, isMoved: true) }
        #expect(try world.check().map(\.outcome) == [.read, .failed])
        #expect(
            try world.report(other).message
                == "it is the same feed as \(Self.feed), which is subscribed, too: remove one of them")
        #expect(world.ordered == ["e2.mp3", "oe1.mp3"])
        _ = try world.manager.perform { try $0.remove(FeedWorld.url(Self.feed)) }
        #expect(try world.check(other).map(\.outcome) == [.read])
        #expect(try world.report(other).address == Self.feed)
    }

    @Test func enclosuresThatCannotBeFetchedNeverBecomeDownloads() throws {
        var writer = FeedWriter(host: "")
        writer.items = [
            .init(guid: "a", file: "file:///etc/passwd", title: "A", date: 3),
            .init(guid: "b", file: "ftp://media.test/b.mp3", title: "B", date: 2),
            .init(guid: "c", file: "https://media.test/c.mp3", title: "C", date: 1),
        ]
        world.origin.serve(Self.feed, writer.text)
        let check = try world.subscribe(Self.feed)
        #expect(world.ordered == ["c.mp3"] && check.skipped == 2)
    }

    // MARK: Checks

    @Test func unchangedFeedIsRequestedOnConditionAlone() throws {
        world.origin.serve(Self.feed, FeedWriter.episodes([1]), etag: "\"1\"")
        try world.subscribe(Self.feed)
        world.pass(3600)
        #expect(world.origin.requests.map(\.isConditional) == [false, true])
        #expect(try world.check(Self.feed).first?.outcome == .unchanged)
    }

    @Test func newEpisodeBecomesADownloadWithTheNextCheck() throws {
        world.origin.serve(Self.feed, FeedWriter.episodes([1]))
        try world.subscribe(Self.feed)
        world.origin.serve(Self.feed, FeedWriter.episodes([2, 1]))
        world.pass(3590)
        #expect(world.ordered == ["e1.mp3"])
        world.pass(10)
        #expect(world.ordered == ["e1.mp3", "e2.mp3"])
    }

    @Test func feedsOwnLifetimeDelaysItsChecks() throws {
        world.origin.serve(Self.feed, FeedWriter.episodes([1], more: "<ttl>180</ttl>"))
        try world.subscribe(Self.feed)
        world.pass(3 * 3600 - 1)
        #expect(world.origin.requests.count == 1)
        world.pass(1)
        #expect(world.origin.requests.count == 2)
    }

    @Test func retryAfterIsRespected() throws {
        world.origin.serve(Self.feed, FeedWriter.episodes([1]))
        try world.subscribe(Self.feed)
        world.origin.serve(Self.feed) { _ in .failure("the origin answered 503", retryAfter: 5000) }
        world.pass(3600)
        #expect(world.origin.requests.count == 2)
        world.pass(4999)
        #expect(world.origin.requests.count == 2)
        world.pass(1)
        #expect(world.origin.requests.count == 3)
    }

    @Test(arguments: [
        FeedOrigin.Response.text("<!DOCTYPE html><html></html>", etag: nil), .text("", etag: nil),
        .text("<rss><channel><item>", etag: nil), .failure("the origin answered 404"),
        .failure("the origin answered 410: the feed is gone"), .failure("more than 10 redirects"),
    ])
    func brokenFeedStaysSaysWhatIsWrongSinceWhenAndGoesOn(_ fault: FeedOrigin.Response) throws {
        world.origin.serve(Self.feed, FeedWriter.episodes([1]), etag: "\"1\"")
        try world.subscribe(Self.feed)
        world.origin.serve(Self.feed) { _ in fault }
        world.pass(3600)
        let broken = try world.report(Self.feed)
        guard broken.message != nil else {
            // A text that ends early is read as far as it goes.
            #expect(broken.failures == 0)
            return
        }
        #expect(broken.brokenSince?.seconds == Int64(world.time.now) && broken.failures == 1)
        world.pass(600)
        #expect(try world.report(Self.feed).failures == 2)
        #expect(try world.report(Self.feed).brokenSince == broken.brokenSince)
        world.origin.serve(Self.feed, FeedWriter.episodes([2, 1]), etag: "\"2\"")
        world.pass(1200)
        let healed = try world.report(Self.feed)
        #expect(healed.message == nil && healed.failures == 0 && healed.brokenSince == nil)
        #expect(world.ordered == ["e1.mp3", "e2.mp3"])
    }

    /// A person without a network, or a timer.
    @Test func checksOnDemandOfABrokenFeedDoNotPutOffTheNextOne() throws {
        world.origin.serve(Self.feed, FeedWriter.episodes([1]))
        try world.subscribe(Self.feed)
        world.origin.serve(Self.feed) { _ in .missing }
        for _ in 1...9 { try world.check() }
        let report = try world.report(Self.feed)
        #expect(report.failures == 1 && report.nextCheck.seconds <= Int64(world.time.now) + 660)
        world.pass(1900)
        #expect(try world.report(Self.feed).failures == 3, "after 10 minutes, and 20 more")
    }

    @Test func brokenFeedIsCheckedSoonAfterAChangeOfTheNetwork() throws {
        world.origin.serve(Self.feed, FeedWriter.episodes([1]))
        try world.subscribe(Self.feed)
        world.origin.serve(Self.feed) { _ in .missing }
        world.pass(8000)
        #expect(try world.report(Self.feed).failures == 4)
        world.origin.serve(Self.feed, FeedWriter.episodes([2, 1]))
        world.manager.perform { $0.networkChanged() }
        world.pass(60)
        #expect(world.ordered == ["e1.mp3", "e2.mp3"])
        #expect(try world.report(Self.feed).message == nil)
    }

    @Test func whatIsWrongOutlivesTheProcess() throws {
        world.origin.serve(Self.feed, FeedWriter.episodes([1]))
        try world.subscribe(Self.feed)
        world.origin.serve(Self.feed, "<html></html>")
        world.pass(3600)
        let broken = try world.report(Self.feed)
        let next = try FeedWorld(after: world, isStarted: false)
        #expect(try next.report(Self.feed) == broken)
    }

    @Test func feedThatMovedUnchangedIsFetchedWhereItIsNow() throws {
        world.origin.serve(Self.feed, FeedWriter.episodes([1]), etag: "\"1\"")
        try world.subscribe(Self.feed)
        world.origin.serve("https://new.test/rss", FeedWriter.episodes([1]), etag: "\"1\"")
        world.origin.serve(Self.feed) { _ in .redirect("https://new.test/rss", isMoved: true) }
        #expect(try world.check(Self.feed).first?.outcome == .unchanged)
        world.origin.serve(Self.feed) { _ in .missing }
        #expect(try world.check(Self.feed).first?.outcome == .unchanged)
        #expect(world.origin.requests.map(\.url) == [Self.feed, Self.feed, "https://new.test/rss"])
    }

    @Test func movedFeedIsFetchedWhereItIsNow() throws {
        world.origin.serve(Self.feed, FeedWriter.episodes([1]))
        try world.subscribe(Self.feed)
        world.origin.serve(Self.feed) { _ in .redirect("https://new.test/rss", isMoved: true) }
        world.origin.serve("https://new.test/rss", FeedWriter.episodes([2, 1]))
        world.pass(3600)
        #expect(try world.report(Self.feed).address == "https://new.test/rss")
        world.pass(3600)
        #expect(world.origin.requests.map(\.url) == [Self.feed, Self.feed, "https://new.test/rss"])
        #expect(world.ordered == ["e1.mp3", "e2.mp3"], "its episodes are the same")
        #expect(try world.check("https://new.test/rss").count == 1, "it is found under both")
    }

    /// The old feed does not change any more, so that its 304 says nothing about the new one.
    @Test func newAddressThatFailsAtFirstIsTriedAgain() throws {
        let more = "<itunes:new-feed-url>https://new.test/rss</itunes:new-feed-url>"
        world.origin.serve(Self.feed, FeedWriter.episodes([1], more: more), etag: "\"1\"")
        let check = try world.subscribe(Self.feed)
        #expect(check.outcome == .read && check.message?.contains("https://new.test/rss") == true)
        world.pass(5 * 3600)
        #expect(try world.report(Self.feed).movedTo == nil)
        world.origin.serve("https://new.test/rss", FeedWriter.episodes([2, 1]))
        world.pass(3600)
        #expect(try world.report(Self.feed).address == "https://new.test/rss")
        #expect(world.ordered == ["e1.mp3", "e2.mp3"])
    }

    @Test func temporaryRedirectMovesNothing() throws {
        world.origin.serve(Self.feed) { _ in .redirect("https://today.test/rss", isMoved: false) }
        world.origin.serve("https://today.test/rss", FeedWriter.episodes([1]))
        try world.subscribe(Self.feed)
        #expect(try world.report(Self.feed).movedTo == nil)
    }

    @Test func feedThatMovedAwayAndFailsThereIsTriedWhereItWas() throws {
        world.origin.serve(Self.feed) { _ in .redirect("https://new.test/rss", isMoved: true) }
        world.origin.serve("https://new.test/rss", FeedWriter.episodes([1]))
        try world.subscribe(Self.feed)
        world.origin.serve("https://new.test/rss") { _ in .missing }
        world.origin.serve(Self.feed, FeedWriter.episodes([2, 1]))
        world.pass(3 * 3600)
        #expect(world.ordered == ["e1.mp3", "e2.mp3"])
        #expect(try world.report(Self.feed).movedTo == nil)
    }

    private static func pages(_ first: [Int]) -> String {
        FeedWriter.episodes(first, more: "<atom:link rel=\"next\" href=\"https://feed.test/2\"/>")
    }

    @Test func olderPageThatFailsIsReadByTheNextCheck() throws {
        world.origin.serve(Self.feed, Self.pages([4, 3]), etag: "\"1\"")
        let check = try world.subscribe(Self.feed) { $0.latest = 4 }
        #expect(check.message?.hasSuffix("the origin answered 404; the next check tries again") == true)
        #expect(world.ordered == ["e4.mp3", "e3.mp3"])
        world.origin.serve("https://feed.test/2", FeedWriter.episodes([2, 1]))
        world.pass(3600)
        #expect(world.ordered == ["e4.mp3", "e3.mp3", "e2.mp3", "e1.mp3"])
        world.pass(3600)
        #expect(world.origin.count("https://feed.test/2") == 2, "it is read once")
    }

    @Test func olderPageThatIsGoneIsGivenUp() throws {
        world.origin.serve(Self.feed, Self.pages([4, 3]), etag: "\"1\"")
        try world.subscribe(Self.feed) { $0.latest = 4 }
        world.pass(86_400)
        #expect(world.origin.count("https://feed.test/2") == 1 + Subscription.mostGaps)
        #expect(try world.check(Self.feed).map(\.outcome) == [.unchanged])
    }

    @Test func restOfATextThatEndedEarlyIsNotNewWhenItComes() throws {
        let whole = FeedWriter.episodes(Array(1...20))
        world.origin.serve(Self.feed, String(whole.prefix(whole.count / 2)), etag: "\"1\"")
        let check = try world.subscribe(Self.feed) { $0.latest = 2 }
        #expect(check.message == "the text of the feed ends early; the next check tries again")
        #expect(check.downloads.count == 2)
        world.origin.serve(Self.feed, whole, etag: "\"1\"")
        world.pass(3600)
        #expect(world.ordered.dropFirst(2) == ["e20.mp3", "e19.mp3"], "the newest two, as was asked for")
        world.pass(3600)
        #expect(world.ordered.count == 4)
    }

    /// A timer runs a process for each check.
    @Test func feedThatIsAlwaysCutHasNewEpisodesAllTheSame() throws {
        func cut(_ numbers: [Int]) -> String { String(FeedWriter.episodes(numbers).dropLast(10)) }
        world.origin.serve(Self.feed, cut([2, 1]))
        try world.subscribe(Self.feed) { $0.latest = 0 }
        var last = world
        for _ in 0..<Subscription.mostGaps {
            last = try FeedWorld(after: last, isStarted: false)
            try last.check()
        }
        #expect(last.ordered.isEmpty)
        last = try FeedWorld(after: last, isStarted: false)
        last.origin.serve(Self.feed, cut([3, 2, 1]))
        try last.check()
        #expect(last.ordered == ["e3.mp3"])
    }

    @Test func checkThatRunsWhileOptionsChangeBeginsAgain() throws {
        world.origin.serve(Self.feed, FeedWriter.episodes([5, 4, 3, 2, 1]), etag: "\"1\"")
        try world.subscribe(Self.feed) { $0.latest = 1 }
        world.origin.hold()
        let (former, changed) = (Box<FeedCheckResult?>(nil), Box<FeedCheckResult?>(nil))
        world.manager.perform { $0.check(nil) { former.value = try? $0.get().first } }
        var change = SubscriptionChange()
        change.latest = 3
        world.manager.perform { [change] in
            $0.subscribe(FeedWorld.url(Self.feed), change) { changed.value = try? $0.get() }
        }
        world.origin.release()
        world.catchUp()
        #expect(changed.value?.outcome == .read && changed.value?.downloads.count == 2)
        #expect(former.value == changed.value)
        #expect(world.ordered == ["e5.mp3", "e4.mp3", "e3.mp3"])
    }

    @Test func twoWhoSubscribeAtOnceSubscribeOnce() throws {
        world.origin.serve(Self.feed, FeedWriter.episodes([3, 2, 1]))
        world.origin.hold()
        let outcomes = [Box<FeedCheckResult?>(nil), Box<FeedCheckResult?>(nil)]
        for box in outcomes {
            world.manager.perform {
                $0.subscribe(FeedWorld.url(Self.feed), SubscriptionChange()) { box.value = try? $0.get() }
            }
        }
        world.origin.release()
        world.catchUp()
        #expect(outcomes.map { $0.value?.outcome } == [.read, .read])
        #expect(try world.manager.perform { try $0.reports() }.count == 1)
        #expect(world.shelf.begun.sorted() == ["e1.mp3", "e2.mp3", "e3.mp3"])
    }

    @Test func optionsOfABrokenFeedAreChangedAllTheSame() throws {
        world.origin.serve(Self.feed, FeedWriter.episodes([1]))
        try world.subscribe(Self.feed)
        world.origin.serve(Self.feed) { _ in .missing }
        #expect(try world.subscribe(Self.feed) { $0.keep = .limit(.episodes(5)) }.outcome == .failed)
        #expect(try world.report(Self.feed).keep == "5")
    }

    @Test func skippedItemsAreSaidOnceAndShownAlways() throws {
        var writer = FeedWriter()
        writer.items = [.init(guid: "g1", file: "e1.mp3", title: "One", date: 1_690_000_000)]
        let text = { (more: String) in
            writer.text.replacing("</channel>", with: "\(more)</channel>")
        }
        let two = "<item><title>Two</title><enclosure url=\"file:///two.mp3\" type=\"audio/mpeg\"/></item>"
        world.origin.serve(Self.feed, text(two))
        let line = try #require(try world.subscribe(Self.feed).skippedItems?.first)
        #expect(line.hasPrefix("Two: "))
        world.origin.serve(Self.feed, text(two + "<item><title>Three</title></item>"))
        let check = try #require(try world.check(Self.feed).first)
        #expect(check.skipped == 2 && check.skippedItems == ["Three: it has no media file"])
        let next = try FeedWorld(after: world)
        let detail = try next.manager.perform { try $0.detail(of: FeedWorld.url(Self.feed), limit: nil) }
        #expect(detail.skippedItems == [line, "Three: it has no media file"])
        #expect(try next.check(Self.feed).first?.skippedItems == nil)
    }

    @Test func fewFeedsAreFetchedAtOnce() throws {
        let feeds = (0..<10).map { "https://feed.test/\($0)" }
        for (number, feed) in feeds.enumerated() { world.origin.serve(feed, FeedWriter.episodes([number])) }
        for feed in feeds { try world.subscribe(feed) }
        let before = world.origin.requests.count
        world.origin.hold()
        world.pass(7200)
        #expect(world.origin.requests.count == before + SubscriptionManager.mostAtOnce)
        world.origin.release()
        world.catchUp()
        #expect(Set(world.origin.requests.dropFirst(before).map(\.url)) == Set(feeds))
    }

    @Test func offlineProxyChecksNothingAndGoesOnLater() throws {
        world.origin.serve(Self.feed, FeedWriter.episodes([1]))
        try world.subscribe(Self.feed)
        world.origin.isOffline = true
        world.pass(7200)
        #expect(world.origin.requests.count == 1)
        let check = try #require(try world.check(Self.feed).first)
        #expect(check.outcome == .failed && check.message == FeedReadings.offline.message)
        #expect(try world.report(Self.feed).failures == 0, "that is not the feed's fault")
        world.origin.isOffline = false
        world.pass(60)
        #expect(world.origin.requests.count == 2)
    }

    @Test func nothingIsCheckedByItselfBeforeTheStart() throws {
        world.origin.serve(Self.feed, FeedWriter.episodes([1]))
        try world.subscribe(Self.feed)
        let next = try FeedWorld(after: world, isStarted: false)
        next.pass(86_400)
        #expect(next.origin.requests.count == 1)
        #expect(try next.check().map(\.outcome) == [.read])
    }

    @Test func checkOfAnUnknownFeedIsAnError() {
        #expect(throws: DownloadError.notSubscribed(FeedWorld.url(Self.feed))) { try world.check(Self.feed) }
    }

    @Test func thoseWhoWaitAreToldWhenItStops() throws {
        world.origin.serve(Self.feed, FeedWriter.episodes([1]))
        try world.subscribe(Self.feed)
        world.origin.hold()
        let outcome = Box<[FeedCheckResult]>([])
        world.manager.perform { $0.check(nil) { outcome.value = (try? $0.get()) ?? [] } }
        world.manager.perform { $0.stop() }
        #expect(outcome.value.map(\.message) == [DownloadError.closed.reason])
        #expect(throws: DownloadError.closed) { try world.check() }
    }

    @Test func tenThousandEpisodesAreKnownAndOneIsNew() throws {
        world.origin.serve(Self.feed, FeedWriter.episodes(Array(1...10_000).reversed()))
        try world.subscribe(Self.feed) { $0.latest = 1 }
        world.origin.serve(Self.feed, FeedWriter.episodes(Array(1...10_001).reversed()))
        world.pass(3600)
        #expect(world.ordered == ["e10000.mp3", "e10001.mp3"])
        #expect(try world.report(Self.feed).episodes == 10_001)
    }

    // MARK: Episodes

    @Test func episodeThatWasRemovedByHandIsNotFetchedAgain() throws {
        world.origin.serve(Self.feed, FeedWriter.episodes([2, 1]))
        try world.subscribe(Self.feed)
        world.shelf.takeAway("https://media.test/e2.mp3")
        #expect(try world.episodes(Self.feed).first?.state == .removed)
        world.pass(86_400)
        try world.subscribe(Self.feed) { $0.latest = 5 }
        _ = try world.downloads.perform { try $0.clearHistory() }
        world.pass(86_400)
        #expect(world.shelf.begun.sorted() == ["e1.mp3", "e2.mp3"])
    }

    /// A rerun.
    @Test func fileOfTwoEpisodesStaysWithTheNewest() throws {
        let (items, old) = (FeedWriter.episodes([3, 2, 1]), "e2.mp3")
        world.origin.serve(Self.feed, items.replacing("e3.mp3", with: old))
        try world.subscribe(Self.feed) { $0.latest = 3 }
        #expect(world.shelf.cached == ["e1.mp3", old])
        try world.subscribe(Self.feed) { $0.keep = .limit(.episodes(1)) }
        world.pass(3600)
        #expect(world.shelf.cached == [old])
        world.origin.serve(Self.feed, FeedWriter.episodes([4, 3, 2, 1]).replacing("e3.mp3", with: old))
        world.pass(3600)
        #expect(world.shelf.cached == ["e4.mp3"])
    }

    @Test func episodeThatFailedIsRetriedAfterTheHistoryWasCleared() throws {
        world.shelf.fails("https://media.test/e1.mp3", after: 0)
        world.origin.serve(Self.feed, FeedWriter.episodes([1]))
        try world.subscribe(Self.feed)
        #expect(try world.downloads.perform { try $0.clearHistory() } == 0)
        #expect(try world.episodes(Self.feed).map(\.state) == [.failed])
        world.shelf.works("https://media.test/e1.mp3")
        world.pass(86_400)
        #expect(world.shelf.cached == ["e1.mp3"])
        #expect(try world.downloads.perform { try $0.clearHistory() } == 1)
    }

    /// Nor while its feed is one no more.
    @Test(arguments: [true, false]) func episodeThatFailsForGoodIsForgotten(isRemoved: Bool) throws {
        world.shelf.fails("https://media.test/e1.mp3", after: 0)
        world.origin.serve(Self.feed, FeedWriter.episodes([1]))
        try world.subscribe(Self.feed)
        if isRemoved {
            _ = try world.manager.perform { try $0.remove(FeedWorld.url(Self.feed)) }
        } else {
            for _ in 1...15 { world.pass(86_400) }
        }
        #expect(try world.downloads.perform { try $0.clearHistory() } == 1)
    }

    @Test func episodeThatWasRemovedByHandAfterItFailedIsNotFetchedAgain() throws {
        world.shelf.fails("https://media.test/e1.mp3", after: 40)
        world.origin.serve(Self.feed, FeedWriter.episodes([1]))
        try world.subscribe(Self.feed)
        #expect(try world.episodes(Self.feed).map(\.state) == [.failed])
        world.shelf.takeAway("https://media.test/e1.mp3")
        world.shelf.works("https://media.test/e1.mp3")
        world.pass(86_400)
        #expect(world.shelf.begun == ["e1.mp3"] && world.shelf.cached == [])
        #expect(try world.report(Self.feed).failed == 0)
    }

    @Test func episodeThatFailedAndIsOneTooManyIsNotFetchedAgain() throws {
        world.shelf.fails("https://media.test/e2.mp3", after: 40)
        world.origin.serve(Self.feed, FeedWriter.episodes([2, 1]))
        try world.subscribe(Self.feed) { $0.keep = .limit(.episodes(2)) }
        world.origin.serve(Self.feed, FeedWriter.episodes([4, 3, 2, 1]))
        try world.check()
        #expect(world.shelf.cached == ["e3.mp3", "e4.mp3"])
        world.shelf.works("https://media.test/e2.mp3")
        world.pass(86_400)
        #expect(world.shelf.begun.filter { $0 == "e2.mp3" }.count == 1)
        world.origin.serve(Self.feed, FeedWriter.episodes([5, 4, 3, 2, 1]))
        world.pass(86_400)
        #expect(world.shelf.cached == ["e4.mp3", "e5.mp3"])
    }

    @Test func feedIsCheckedAsOftenAfterTheClockWasSetBack() throws {
        world.origin.serve(Self.feed, FeedWriter.episodes([1]))
        try world.subscribe(Self.feed)
        world.time.setBack(86_400)
        // It is noticed within a minute.
        world.pass(3 * 3600 + 60)
        #expect(world.origin.requests.count == 4)
    }

    @Test func failedEpisodeWithAnotherGUIDByNowIsRetried() throws {
        world.shelf.fails(Self.url(1))
        world.origin.serve(Self.feed, FeedWriter.episodes([1]))
        try world.subscribe(Self.feed) { $0.keep = .limit(.episodes(1)) }
        world.origin.serve(Self.feed, FeedWriter.episodes([1]).replacing("<guid>g", with: "<guid>other"))
        try world.check()
        world.shelf.works(Self.url(1))
        world.pass(86_400)
        #expect(world.shelf.cached == ["e1.mp3"])
    }

    @Test func failedEpisodeIsRetriedThoughTheClockWasAheadWhenItsFeedWasSubscribed() throws {
        world.origin.serve(Self.feed, FeedWriter.episodes([1]))
        try world.subscribe(Self.feed) { $0.keep = .limit(.episodes(2)) }
        world.time.setBack(10 * 86_400)
        world.shelf.fails(Self.url(2))
        world.origin.serve(Self.feed, FeedWriter.episodes([2, 1]))
        world.pass(2 * 3600)
        #expect(try world.episodes(Self.feed).map(\.state) == [.failed, .cached])
        world.shelf.works(Self.url(2))
        world.pass(86_400)
        #expect(world.shelf.cached == ["e1.mp3", "e2.mp3"])
    }

    @Test func failedDownloadIsRetriedForAWeekLessAndLessOften() throws {
        world.shelf.fails("https://media.test/e2.mp3")
        world.origin.serve(Self.feed, FeedWriter.episodes([2, 1]))
        try world.subscribe(Self.feed) { $0.every = 4 * 3600 }
        #expect(try world.episodes(Self.feed).map(\.state) == [.failed, .cached])
        #expect(try world.episodes(Self.feed).first?.message == "the origin answered 404")
        #expect(try world.report(Self.feed).failed == 1)
        world.pass(12 * 86_400)
        // At once, and after 4, 8, 16, 32, 64, 128 and 256 hours.
        #expect(world.shelf.begun.filter { $0 == "e2.mp3" }.count == 8)
        world.pass(12 * 86_400)
        #expect(world.shelf.begun.filter { $0 == "e2.mp3" }.count == 8)
        #expect(world.ordered == ["e2.mp3", "e1.mp3"], "it is the same download")
    }

    /// A link that has expired, or an address that its author corrects.
    @Test(arguments: [0, 3000]) func failedDownloadIsTriedWhereTheFeedHasItByNow(seconds: Double) throws {
        func serve(_ host: String) {
            var writer = FeedWriter(host: host)
            writer.items = [.init(guid: "g1", file: "e1.mp3", title: "", date: 1_690_000_000)]
            world.origin.serve(Self.feed, writer.text, etag: "\"\(host)\"")
        }
        serve("https://media.test/old/")
        world.shelf.fails("https://media.test/old/e1.mp3")
        try world.subscribe(Self.feed)
        #expect(try world.episodes(Self.feed).map(\.state) == [.failed])
        world.pass(seconds)
        serve("https://media.test/new/")
        try world.check()
        // Not within ten minutes; then by the next check, although the feed has not changed since.
        #expect(try world.episodes(Self.feed).map(\.state) == [seconds < 600 ? .failed : .cached])
        world.pass(3600)
        let episode = try #require(try world.episodes(Self.feed).first)
        #expect(episode.state == .cached && episode.urlText == "https://media.test/new/e1.mp3")
        #expect(try world.report(Self.feed).failed == 0, "the former download is cancelled")
        world.pass(86_400)
        #expect(world.shelf.begun.count == 2)
    }

    /// By a cap or a schedule, or a person. A link expires meanwhile, and the feed has another.
    @Test func aDownloadThatWasHeldForLongIsTriedWhereTheFeedHasItByNow() throws {
        func serve(_ host: String) {
            var writer = FeedWriter(host: host)
            writer.items = [.init(guid: "g1", file: "e1.mp3", title: "", date: 1_690_000_000)]
            world.origin.serve(Self.feed, writer.text, etag: "\"\(host)\"")
        }
        serve("https://media.test/old/")
        let old = "https://media.test/old/e1.mp3", url = FeedWorld.url(old)
        world.shelf.holds(old)
        try world.subscribe(Self.feed)
        let download = try #require(world.downloads.snapshots.downloads(of: url).first)
        #expect(download.state == .downloading)
        _ = try world.downloads.perform { try $0.change(.ids([download.id]), DownloadChange(action: .pause)) }
        world.pass(20 * 86_400)
        world.shelf.letGo(old)
        world.shelf.fails(old)
        serve("https://media.test/new/")
        _ = try world.downloads.perform { try $0.change(.ids([download.id]), DownloadChange(action: .resume)) }
        world.pass(86_400)
        #expect(world.shelf.cached == ["e1.mp3"])
        #expect(try world.episodes(Self.feed).map(\.state) == [.cached])
    }

    /// Who plays the newest that is downloaded, without network, needs all of it.
    @Test func anEpisodeOfWhichAPartWasEvictedIsNotCached() throws {
        world.origin.serve(Self.feed, FeedWriter.episodes([2, 1]))
        try world.subscribe(Self.feed)
        #expect(try world.episodes(Self.feed).map(\.state) == [.cached, .cached])
        world.shelf.evictPart(of: "https://media.test/e2.mp3")
        #expect(try world.episodes(Self.feed).map(\.state) == [.removed, .cached])
    }

    @Test func episodeThatIsBeingDownloadedKeepsThatDownload() throws {
        world.origin.serve(Self.feed, FeedWriter.episodes([2, 1]))
        world.downloads.perform { manager in
            var settings = manager.snapshots.summary.settings
            settings.maxActive = 1
            manager.set(settings)
        }
        world.shelf.holds("https://media.test/e2.mp3")
        let url = FeedWorld.url("https://media.test/e2.mp3")
        _ = try world.downloads.perform {
            try $0.add([DownloadOrder(url: url, options: .init { ($0.priority, $0.category) = (.high, "mine") })])
        }
        #expect(try world.subscribe(Self.feed).downloads.count == 1)
        let download = try #require(world.downloads.snapshots.downloads(of: url).first)
        #expect(download.priority == .high && download.category == "mine" && download.feed == nil)
        world.pass(86_400)
        #expect(world.ordered == ["e2.mp3", "e1.mp3"])
    }

    /// It may end with whoever waits for it, or be evicted before anybody has played it.
    @Test(arguments: [true, false]) func episodeWhoseDownloadMayNotLastIsDownloadedForTheFeed(waits: Bool) throws {
        world.origin.serve(Self.feed, FeedWriter.episodes([1]))
        world.shelf.holds(Self.url(1))
        let url = FeedWorld.url(Self.url(1))
        let order = DownloadOrder(url: url, options: .init { $0.isPinned = waits })
        let id = try world.downloads.perform { try $0.add([order], waits: waits).map(\.id) }
        #expect(try world.subscribe(Self.feed).downloads == id)
        let download = try #require(world.downloads.snapshots.downloads(of: url).first)
        #expect(download.isPinned && download.feed == Self.feed)
    }

    @Test func oldestEpisodesGoAsNewOnesArrive() throws {
        world.origin.serve(Self.feed, FeedWriter.episodes([2, 1]))
        try world.subscribe(Self.feed) { $0.keep = .limit(.episodes(2)) }
        world.origin.serve(Self.feed, FeedWriter.episodes([4, 3, 2, 1]))
        world.pass(3600)
        #expect(world.shelf.cached == ["e3.mp3", "e4.mp3"] && world.shelf.removed == ["e1.mp3", "e2.mp3"])
        #expect(try world.episodes(Self.feed).map(\.state) == [.cached, .cached, .removed, .removed])
    }

    @Test func oldestEpisodesGoAlthoughTheirURLsChange() throws {
        func serve(_ numbers: [Int], _ host: String) {
            var writer = FeedWriter(host: host)
            writer.items = numbers.map {
                .init(guid: "g\($0)", file: "e\($0).mp3", title: "", date: 1_690_000_000 + 86_400 * Double($0))
            }
            world.origin.serve(Self.feed, writer.text)
        }
        serve([1], "https://media.test/a/")
        try world.subscribe(Self.feed) { $0.keep = .limit(.episodes(1)) }
        serve([2, 1], "https://media.test/b/")
        world.pass(3600)
        #expect(world.shelf.cached == ["e2.mp3"] && world.shelf.removed == ["e1.mp3"])
    }

    // MARK: Until played

    private static func url(_ number: Int) -> String { "https://media.test/e\(number).mp3" }

    @Test func newSubscriptionKeepsEpisodesUntilTheyArePlayed() throws {
        world.origin.serve(Self.feed, FeedWriter.episodes([2, 1]))
        try world.subscribe(Self.feed)
        #expect(try world.report(Self.feed).keep == "until-played")
        world.pass(86_400)
        #expect(world.shelf.unpinned.isEmpty)
        world.shelf.finish(Self.url(1), at: 77)
        // It is not taken from its player.
        world.shelf.play(Self.url(1))
        world.pass(3600)
        #expect(world.shelf.unpinned.isEmpty)
        world.shelf.play(Self.url(1), false)
        world.pass(3600)
        #expect(world.shelf.unpinned == ["e1.mp3"] && world.shelf.cached == ["e1.mp3", "e2.mp3"])
        #expect(try world.episodes(Self.feed).map { $0.played?.seconds } == [nil, 77])
        // It only unpins, and once: whoever pins it again keeps it, also after a restart.
        let next = try FeedWorld(after: world)
        next.pass(86_400)
        #expect(next.shelf.unpinned == ["e1.mp3"] && next.shelf.removed.isEmpty)
        #expect(try next.episodes(Self.feed).map { $0.played?.seconds } == [nil, 77])
        // When its room was needed, it is not fetched again.
        next.shelf.takeAway(Self.url(1))
        next.pass(86_400)
        #expect(next.shelf.begun.sorted() == ["e1.mp3", "e2.mp3"])
        #expect(try next.episodes(Self.feed).map(\.state) == [.cached, .removed])
    }

    /// Its publisher puts a measuring prefix before it; whoever reads the feed plays it there.
    @Test func episodeThatIsPlayedWhereItsFeedListsItByNowWasPlayed() throws {
        world.origin.serve(Self.feed, FeedWriter.episodes([1]))
        try world.subscribe(Self.feed)
        var writer = FeedWriter(host: "https://count.test/media.test/")
        writer.items = [.init(guid: "g1", file: "e1.mp3", title: "Episode 1", date: 1_690_086_400)]
        world.origin.serve(Self.feed, writer.text)
        try world.check()
        world.shelf.finish("https://count.test/media.test/e1.mp3", at: 77)
        world.pass(3600)
        #expect(world.shelf.begun == ["e1.mp3"] && world.shelf.unpinned == ["e1.mp3"])
        let episode = try #require(try world.episodes(Self.feed).first)
        #expect(episode.urlText == Self.url(1) && episode.played?.seconds == 77)
    }

    @Test func whatAPersonOrAnotherFeedKeepsStaysPinnedWhenPlayed() throws {
        let other = "https://all.test/rss"
        _ = try world.downloads.perform { try $0.add([DownloadOrder(url: FeedWorld.url(Self.url(1)))]) }
        for feed in [Self.feed, other] { world.origin.serve(feed, FeedWriter.episodes([3, 2, 1])) }
        try world.subscribe(Self.feed)
        world.origin.serve(other, FeedWriter.episodes([2]))
        try world.subscribe(other) { $0.keep = .all }
        for number in 1...3 { world.shelf.finish(Self.url(number), at: 77) }
        world.pass(3600)
        #expect(world.shelf.unpinned == ["e3.mp3"])
        #expect(try world.episodes(other).map { $0.played?.seconds } == [77])
    }

    @Test(arguments: [.all, .limit(.episodes(9))] as [SubscriptionChange.Keep])
    func otherWaysOfKeepingUnpinNothing(keep: SubscriptionChange.Keep) throws {
        world.origin.serve(Self.feed, FeedWriter.episodes([1]))
        try world.subscribe(Self.feed) { $0.keep = keep }
        world.shelf.finish(Self.url(1), at: 77)
        world.pass(3600)
        #expect(world.shelf.unpinned.isEmpty)
        #expect(try world.episodes(Self.feed).map { $0.played?.seconds } == [77])
    }

    @Test func whatAPersonOrderedTooStays() throws {
        let url = FeedWorld.url("https://media.test/e1.mp3")
        _ = try world.downloads.perform { try $0.add([DownloadOrder(url: url)]) }
        world.origin.serve(Self.feed, FeedWriter.episodes([1]))
        try world.subscribe(Self.feed) { $0.keep = .limit(.episodes(1)) }
        world.origin.serve(Self.feed, FeedWriter.episodes([2, 1]))
        world.pass(3600)
        world.origin.serve(Self.feed, FeedWriter.episodes([3, 2, 1]))
        _ = try world.downloads.perform { try $0.clearHistory() }
        world.pass(3600)
        #expect(world.shelf.cached == ["e1.mp3", "e3.mp3"])
        #expect(try world.episodes(Self.feed).map(\.state) == [.cached, .removed, .cached])
    }

    /// It is not the feed's to cancel, either.
    @Test(arguments: [false, true]) func whatAPersonOrdersWhileItsFeedDownloadsItStays(isRemoved: Bool) throws {
        world.origin.serve(Self.feed, FeedWriter.episodes([1]))
        world.shelf.holds(Self.url(1))
        try world.subscribe(Self.feed) { $0.keep = .limit(.episodes(1)) }
        let order = DownloadOrder(url: FeedWorld.url(Self.url(1)))
        let id = try #require(try world.downloads.perform { try $0.add([order]) }.first?.id)
        if isRemoved {
            _ = try world.manager.perform { try $0.remove(FeedWorld.url(Self.feed)) }
            #expect(world.downloads.snapshots[id]?.state == .downloading)
            return
        }
        // Nor does the feed take it again.
        var again = order
        again.episode = EpisodeName(feed: Self.feed, identity: "g1")
        _ = try world.downloads.perform { [again] in try $0.add([again]) }
        #expect(world.downloads.snapshots[id]?.feed == nil)
        world.shelf.letGo(Self.url(1))
        _ = try world.downloads.perform { try $0.change(.ids([id]), DownloadChange(action: .pause)) }
        _ = try world.downloads.perform { try $0.change(.ids([id]), DownloadChange(action: .resume)) }
        world.origin.serve(Self.feed, FeedWriter.episodes([2, 1]))
        world.pass(3600)
        #expect(world.ordered == ["e1.mp3", "e2.mp3"] && world.shelf.cached == ["e1.mp3", "e2.mp3"])
    }

    @Test func whatAnotherFeedKeepsStaysUntilThatLetsGo() throws {
        let other = "https://all.test/rss"
        for numbers in [[1], [2, 1]] {
            for feed in [Self.feed, other] { world.origin.serve(feed, FeedWriter.episodes(numbers)) }
            if numbers == [1] {
                try world.subscribe(Self.feed) { $0.keep = .limit(.episodes(1)) }
                try world.subscribe(other)
            } else {
                world.pass(3600)
            }
        }
        #expect(world.shelf.cached == ["e1.mp3", "e2.mp3"])
        try world.subscribe(other) { $0.keep = .limit(.episodes(1)) }
        #expect(world.shelf.cached == ["e2.mp3"])
    }

    @Test func waitingDownloadOfAnEpisodeWithAnotherGUIDByNowCountsAsKept() throws {
        world.downloads.perform { manager in
            var settings = manager.snapshots.summary.settings
            settings.maxActive = 1
            manager.set(settings)
        }
        world.shelf.holds("https://media.test/long.mp3")
        let long = DownloadOrder(url: FeedWorld.url("https://media.test/long.mp3"))
        let id = try #require(try world.downloads.perform { try $0.add([long]) }.first?.id)
        world.origin.serve(Self.feed, FeedWriter.episodes([1]))
        try world.subscribe(Self.feed) { $0.keep = .limit(.episodes(1)) }
        let items = { (numbers: [Int]) in FeedWriter.episodes(numbers).replacing("<guid>g", with: "<guid>other") }
        world.origin.serve(Self.feed, items([1]))
        world.pass(3600)
        #expect(try world.episodes(Self.feed).map(\.state) == [.waiting])
        _ = try world.downloads.perform { try $0.change(.ids([id]), DownloadChange(action: .cancel)) }
        world.origin.serve(Self.feed, items([2, 1]))
        world.pass(3600)
        #expect(world.shelf.cached == ["e2.mp3"] && world.shelf.removed == ["e1.mp3"])
    }

    @Test func sizeLimitsWhatIsKept() throws {
        for number in 1...4 { world.shelf.setSize(400, of: "https://media.test/e\(number).mp3") }
        world.origin.serve(Self.feed, FeedWriter.episodes([3, 2, 1]))
        try world.subscribe(Self.feed) { $0.keep = .limit(.bytes(1000)) }
        #expect(world.shelf.cached == ["e2.mp3", "e3.mp3"])
    }

    @Test func episodeThatIsBeingPlayedStaysUntilItIsOver() throws {
        world.origin.serve(Self.feed, FeedWriter.episodes([1]))
        try world.subscribe(Self.feed) { $0.keep = .limit(.episodes(1)) }
        world.shelf.play("https://media.test/e1.mp3")
        world.origin.serve(Self.feed, FeedWriter.episodes([2, 1]))
        world.pass(3600)
        #expect(world.shelf.cached == ["e1.mp3", "e2.mp3"])
        world.shelf.play("https://media.test/e1.mp3", false)
        world.pass(3600)
        #expect(world.shelf.cached == ["e2.mp3"])
    }

    // MARK: Unsubscribing, lists

    @Test func unsubscribingKeepsWhatIsCached() throws {
        world.origin.serve(Self.feed, FeedWriter.episodes([1]))
        try world.subscribe(Self.feed)
        #expect(try world.manager.perform { try $0.remove(FeedWorld.url(Self.feed)) }.title == "Talk")
        world.pass(86_400)
        #expect(world.origin.requests.count == 1 && world.shelf.cached == ["e1.mp3"])
        #expect(try world.inDatabase { try Int.fetchOne($0, sql: "SELECT count(*) FROM episode") } == 0)
        #expect(throws: DownloadError.notSubscribed(FeedWorld.url(Self.feed))) {
            try world.manager.perform { try $0.remove(FeedWorld.url(Self.feed)) }
        }
    }

    /// Nobody could name its downloads any more.
    @Test func feedWhoseDownloadsCannotBeCancelledStaysSubscribed() throws {
        world.shelf.holds("https://media.test/e1.mp3")
        world.origin.serve(Self.feed, FeedWriter.episodes([1]))
        try world.subscribe(Self.feed)
        world.downloads.perform { $0.stop() }
        #expect(throws: DownloadError.self) {
            try world.manager.perform { try $0.remove(FeedWorld.url(Self.feed)) }
        }
        #expect(try world.manager.perform { try $0.reports() }.count == 1)
    }

    @Test func subscribingAfterUnsubscribingBeginsAnew() throws {
        world.origin.serve(Self.feed, FeedWriter.episodes([2, 1]))
        try world.subscribe(Self.feed) { $0.latest = 1 }
        _ = try world.manager.perform { try $0.remove(FeedWorld.url(Self.feed)) }
        world.shelf.takeAway("https://media.test/e2.mp3")
        world.pass(10)
        try world.subscribe(Self.feed) { $0.latest = 1 }
        #expect(world.shelf.begun == ["e2.mp3", "e2.mp3"])
    }

    @Test func feedThatIsRemovedWhileItIsCheckedStaysRemoved() throws {
        world.origin.serve(Self.feed, FeedWriter.episodes([1]))
        try world.subscribe(Self.feed)
        world.origin.serve(Self.feed, FeedWriter.episodes([2, 1]))
        world.origin.hold()
        let outcome = Box<[FeedCheckResult]>([])
        world.manager.perform { $0.check(nil) { outcome.value = (try? $0.get()) ?? [] } }
        _ = try world.manager.perform { try $0.remove(FeedWorld.url(Self.feed)) }
        world.origin.release()
        world.catchUp()
        #expect(outcome.value.map(\.message) == ["it is no longer subscribed"])
        #expect(outcome.value.map(\.urlText) == [Self.feed])
        #expect(world.ordered == ["e1.mp3"])
        #expect(try world.manager.perform { try $0.reports() }.isEmpty)
    }

    @Test func listsGoInAndOut() throws {
        let feeds = (1...3).map { "https://feed.test/\($0)" }
        let list = OPML(feeds: [
            OPMLFeed(title: "One", url: FeedWorld.url(feeds[0]), categories: ["Talks"]),
            OPMLFeed(title: "Two", url: FeedWorld.url(feeds[1])),
            OPMLFeed(title: "Three", url: FeedWorld.url(feeds[2]), categories: ["Music", "Live"]),
        ])
        for (number, feed) in feeds.enumerated() {
            world.origin.serve(feed, FeedWriter.episodes([3, 2, 1], title: "T\(number)", prefix: "\(number)"))
        }
        try world.subscribe(feeds[1]) { $0.latest = 0 }
        var change = SubscriptionChange()
        change.latest = 1
        let result = try world.manager.perform { [change] in try $0.importList(list, change) }
        #expect(result.added == [feeds[0], feeds[2]] && result.known == 1 && result.skipped.isEmpty)
        world.pass(60)
        #expect(world.ordered.sorted() == ["0e3.mp3", "2e3.mp3"])
        let text = try Array(world.manager.perform { try $0.exportList() }.text.utf8)
        let out = try OPML(reading: text, within: WorkBudget(bytes: text.count))
        #expect(out.feeds.map(\.url.absolute) == [feeds[1], feeds[0], feeds[2]])
        #expect(out.feeds.map(\.categories) == [[], ["Talks"], ["Live"]])
        #expect(out.feeds.map(\.title) == ["T1", "T0", "T2"], "as the feeds say themselves")
    }

    @Test func previewReadsAFeedAndSavesNothing() throws {
        world.origin.serve(Self.feed, FeedWriter.episodes([3, 2, 1]))
        let box = Box<FeedPreview?>(nil)
        world.manager.perform {
            $0.preview(FeedWorld.url(Self.feed), latest: 2, title: nil) { box.value = try? $0.get() }
        }
        world.catchUp()
        #expect(box.value?.episodes.map(\.title) == ["Episode 3", "Episode 2"])
        #expect(world.ordered.isEmpty)
        #expect(try world.manager.perform { try $0.reports() }.isEmpty)
    }
}
