import CachePolicy
import Playlists
import Testing

@testable import Downloads

/// Which URLs a check requests, and what the answers mean together.
@Suite struct FeedReadingTests {
    private static let home = "https://feed.test/rss"

    /// Runs a check against texts by URL; a text that begins with `-> ` is a permanent redirect.
    private static func run(
        _ texts: [String: String], from start: String = home, wanted: Int = 0, validators: FeedValidators = .init()
    ) -> (requests: [String], outcome: FeedReading.Outcome) {
        var reading = FeedReading(
            FeedRequest(url: FeedWorld.url(start), validators: validators), wanted: wanted, pattern: nil)
        var (request, requests) = (reading.first, [String]())
        while requests.count < 100 {
            requests.append(request.url.absolute)
            switch reading.take(answer(request, texts)) {
            case .request(let next): request = next
            case .end(let outcome): return (requests, outcome)
            }
        }
        return (requests, .failed(FeedFailure("it does not end")))
    }

    private static func answer(_ request: FeedRequest, _ texts: [String: String]) -> FeedAnswer {
        var (url, hasMoved) = (request.url, false)
        while let target = texts[url.absolute]?.split(separator: "-> ").last, texts[url.absolute]!.hasPrefix("-> ") {
            (url, hasMoved) = (FeedWorld.url(String(target)), true)
        }
        guard let text = texts[url.absolute] else { return .failed(FeedFailure("the origin answered 404")) }
        var document = FeedDocument(bytes: Array(text.utf8), url: url)
        document.hasMoved = hasMoved
        return .document(document)
    }

    private static func finding(_ outcome: FeedReading.Outcome) -> FeedReading.Finding? {
        if case .read(let finding) = outcome { finding } else { nil }
    }

    private static func newAddress(_ url: String) -> String { "<itunes:new-feed-url>\(url)</itunes:new-feed-url>" }
    private static func next(_ url: String) -> String { "<atom:link rel=\"next\" href=\"\(url)\"/>" }

    @Test func feedIsReadWithOneRequest() throws {
        let (requests, outcome) = Self.run([Self.home: FeedWriter.episodes([2, 1])], wanted: 2)
        #expect(requests == [Self.home])
        let finding = try #require(Self.finding(outcome))
        #expect(finding.items.count == 2 && finding.title == "Talk" && finding.address.absolute == Self.home)
    }

    @Test func permanentRedirectMovesTheFeed() throws {
        let (_, outcome) = Self.run([
            Self.home: "-> https://new.test/rss", "https://new.test/rss": FeedWriter.episodes([1]),
        ])
        #expect(Self.finding(outcome)?.address.absolute == "https://new.test/rss")
    }

    @Test func newAddressIsTakenOnceThereIsAFeed() {
        let moved = FeedWriter.episodes([1], more: Self.newAddress("https://new.test/rss"))
        let (requests, outcome) = Self.run([Self.home: moved, "https://new.test/rss": FeedWriter.episodes([2, 1])])
        #expect(requests == [Self.home, "https://new.test/rss"])
        #expect(Self.finding(outcome)?.address.absolute == "https://new.test/rss")
        #expect(Self.finding(outcome)?.items.count == 2)
    }

    @Test(arguments: [nil, "<html><body>Welcome</body></html>"])
    func newAddressWithoutAFeedIsNotTaken(text: String?) throws {
        let moved = FeedWriter.episodes([1], more: Self.newAddress("https://new.test/rss"))
        let (_, outcome) = Self.run([Self.home: moved].merging(text.map { ["https://new.test/rss": $0] } ?? [:]) { $1 })
        #expect(Self.finding(outcome)?.address.absolute == Self.home)
        let gap = try #require(Self.finding(outcome)?.gap)
        #expect(gap.message.contains("https://new.test/rss") && !gap.hidesEpisodes)
        #expect(Self.finding(outcome)?.validators == FeedValidators(), "the address is to be read again")
        #expect(Self.finding(outcome)?.items.count == 1)
    }

    @Test func feedsThatNameEachOtherAsTheirNewAddressEnd() {
        let (requests, outcome) = Self.run([
            Self.home: FeedWriter.episodes([1], more: Self.newAddress("https://b.test/")),
            "https://b.test/": FeedWriter.episodes([1], more: Self.newAddress(Self.home)),
        ])
        #expect(requests == [Self.home, "https://b.test/"])
        #expect(Self.finding(outcome)?.address.absolute == "https://b.test/")
    }

    @Test func feedThatMovesAgainAndAgainIsFollowedAFewTimes() {
        let texts = Dictionary(
            uniqueKeysWithValues: (0..<50).map { number in
                (
                    "https://f\(number).test/",
                    FeedWriter.episodes([1], more: Self.newAddress("https://f\(number + 1).test/"))
                )
            })
        let (requests, outcome) = Self.run(texts, from: "https://f0.test/")
        #expect(requests.count == 1 + FeedReading.mostMoves)
        #expect(Self.finding(outcome) != nil)
    }

    @Test func furtherPagesAreRequestedOnlyForEpisodesThatAreWanted() {
        let texts = [
            Self.home: FeedWriter.episodes([6, 5], more: Self.next("https://feed.test/2")),
            "https://feed.test/2": FeedWriter.episodes([4, 3], more: Self.next("https://feed.test/3")),
            "https://feed.test/3": FeedWriter.episodes([2, 1]),
        ]
        #expect(Self.run(texts, wanted: 2).requests == [Self.home])
        let (requests, outcome) = Self.run(texts, wanted: 3)
        #expect(requests == [Self.home, "https://feed.test/2"])
        #expect(Self.finding(outcome)?.items.compactMap(\.guid) == ["g6", "g5", "g4", "g3"])
        #expect(Self.run(texts, wanted: 100).requests.count == 3)
    }

    @Test func pagesInACircleEnd() {
        let (requests, outcome) = Self.run(
            [
                Self.home: FeedWriter.episodes([2, 1], more: Self.next("https://feed.test/2")),
                "https://feed.test/2": FeedWriter.episodes([2, 1], more: Self.next(Self.home)),
            ], wanted: 100)
        #expect(requests == [Self.home, "https://feed.test/2"])
        #expect(Self.finding(outcome)?.items.count == 2, "what is on both pages counts once")
    }

    @Test func endlessPagesEnd() {
        let texts = Dictionary(
            uniqueKeysWithValues: (0..<90).map { number in
                (
                    "https://f.test/\(number)",
                    FeedWriter.episodes([number], more: Self.next("https://f.test/\(number + 1)"))
                )
            })
        let (requests, outcome) = Self.run(texts, from: "https://f.test/0", wanted: 1000)
        #expect(requests.count == 1 + FeedReading.mostPages)
        #expect(Self.finding(outcome)?.items.count == 1 + FeedReading.mostPages)
    }

    /// Each page has as many as it likes.
    @Test func skippedItemsOfAllPagesAreCountedAndTheFirstAreNamed() throws {
        let items = (1...30).map { "<item><title>\($0)</title></item>" }.joined()
        let texts = Dictionary(
            uniqueKeysWithValues: (0..<90).map { number in
                (
                    "https://f.test/\(number)",
                    FeedWriter.episodes([number], more: items + Self.next("https://f.test/\(number + 1)"))
                )
            })
        let finding = try #require(Self.finding(Self.run(texts, from: "https://f.test/0", wanted: 1000).outcome))
        #expect(finding.skippedCount == 30 * (1 + FeedReading.mostPages))
        #expect(finding.skipped.count == 20 && finding.skippedLines.first == "1: it has no media file")
    }

    @Test func pageThatCannotBeReadCostsOnlyItselfAndIsSaid() throws {
        let (_, outcome) = Self.run(
            [Self.home: FeedWriter.episodes([2, 1], more: Self.next("https://feed.test/2"))], wanted: 5)
        let finding = try #require(Self.finding(outcome))
        #expect(finding.items.count == 2 && finding.firstPage == 2)
        #expect(
            finding.gap == .page(FeedWorld.url("https://feed.test/2"), reason: "the origin answered 404")
                && finding.gap?.hidesEpisodes == true)
    }

    @Test func textThatEndsEarlyIsReadAndSaid() throws {
        let whole = FeedWriter.episodes([3, 2, 1])
        let (_, outcome) = Self.run([Self.home: String(whole.prefix(whole.count * 2 / 3))])
        let finding = try #require(Self.finding(outcome))
        #expect((1...2).contains(finding.items.count) && finding.gap?.isInText == true)
    }

    @Test func pageInPlaceOfAFeedIsAFailure() {
        let (_, outcome) = Self.run([Self.home: "<!DOCTYPE html><html></html>"])
        guard case .failed(let failure) = outcome else { return #expect(Bool(false), "it was read") }
        #expect(failure.message == "this is an HTML page, not a feed")
    }

    @Test func answer304IsAFailureIfNothingWasAsked() {
        var reading = FeedReading(
            FeedRequest(url: FeedWorld.url(Self.home), validators: FeedValidators()), wanted: 0, pattern: nil)
        guard case .end(.failed) = reading.take(.notModified(movedTo: nil)) else {
            return #expect(Bool(false), "taken")
        }
        reading = FeedReading(
            FeedRequest(url: FeedWorld.url(Self.home), validators: FeedValidators(etag: "\"1\"")), wanted: 0,
            pattern: nil)
        guard case .end(.unchanged) = reading.take(.notModified(movedTo: nil)) else {
            return #expect(Bool(false), "it failed")
        }
    }
}
