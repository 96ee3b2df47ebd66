import Foundation
import Playlists
import Testing

@testable import Downloads

/// What follows from a reading of a feed, by tables.
@Suite struct SubscriptionPlanTests {
    private static func items(_ text: String) throws -> [FeedItem] {
        let budget = WorkBudget(bytes: text.utf8.count)
        return try Feed(reading: Array(text.utf8), at: FeedWorld.url("https://feed.test/rss"), within: budget).items
    }

    private static func items(_ items: [FeedWriter.Item]) throws -> [FeedItem] {
        try Self.items(FeedWriter(items: items).text)
    }

    private static func items(_ numbers: [Int], prefix: String = "") throws -> [FeedItem] {
        try items(FeedWriter.episodes(numbers, prefix: prefix))
    }

    /// Carries a plan out as the database does.
    private static func saved(_ plan: SubscriptionPlan, over known: [KnownEpisode] = []) -> [KnownEpisode] {
        var rows = Dictionary(known.map { ($0.id, $0) }) { $1 }
        for id in plan.forgotten { rows[id] = nil }
        for var episode in plan.changed {
            if episode.id == 0 { episode.id = (rows.keys.max() ?? 0) + 1 }
            rows[episode.id] = episode
        }
        return rows.values.sorted { $0.id < $1.id }
    }

    private static func plan(
        _ items: [FeedItem], known: [KnownEpisode] = [], latest: Int = 3, title: String? = nil,
        keep: EpisodeLimit? = nil, isFirst: Bool = false, wantsLatest: Bool = false, firstPage: Int = .max,
        downloads: [String: SubscriptionPlan.Download] = [:]
    ) -> SubscriptionPlan {
        var options = SubscriptionOptions()
        (options.latest, options.title, options.keep) = (latest, title.flatMap(TitlePattern.init), keep)
        return SubscriptionPlan(
            items, firstPage: firstPage, known: known, options: options, isFirst: isFirst, wantsLatest: wantsLatest,
            downloads: downloads, now: 1_700_000_000)
    }

    private static func first(_ items: [FeedItem], latest: Int = 3, title: String? = nil, keep: EpisodeLimit? = nil)
        -> SubscriptionPlan
    {
        plan(items, latest: latest, title: title, keep: keep, isFirst: true, wantsLatest: true)
    }

    private static func files(_ episodes: [KnownEpisode]) -> [String] {
        episodes.map { String($0.url.pathAndQuery.dropFirst()) }
    }

    // MARK: The first reading

    @Test func newestAreOrderedAtFirstAndTheOthersPassedOver() throws {
        let plan = Self.first(try Self.items([5, 4, 3, 2, 1]), latest: 2)
        #expect(Self.files(plan.orders) == ["e5.mp3", "e4.mp3"])
        #expect(Self.files(plan.changed) == ["e1.mp3", "e2.mp3", "e3.mp3", "e4.mp3", "e5.mp3"])
        #expect(plan.changed.map(\.state) == [.passedOver, .passedOver, .passedOver, .ordered, .ordered])
        #expect(plan.newCount == 5)
    }

    @Test func datesDecideWhatIsNewestNotTheOrderOfTheFeed() throws {
        #expect(Self.files(Self.first(try Self.items([1, 3, 2]), latest: 2).orders) == ["e3.mp3", "e2.mp3"])
    }

    @Test func withoutDatesTheFeedBeginsWithTheNewest() throws {
        let items = try Self.items(
            (1...4).map { FeedWriter.Item(guid: "g\($0)", file: "\($0).mp3", title: "", date: nil) })
        #expect(Self.files(Self.first(items, latest: 2).orders) == ["1.mp3", "2.mp3"])
    }

    @Test func episodeWithoutADateHasThatOfItsNeighbour() throws {
        let items = try Self.items([
            .init(guid: "a", file: "a.mp3", title: "", date: 1_690_300_000),
            .init(guid: "b", file: "b.mp3", title: "", date: nil),
            .init(guid: "c", file: "c.mp3", title: "", date: 1_690_200_000),
        ])
        #expect(Self.files(Self.first(items, latest: 2).orders) == ["a.mp3", "b.mp3"])
    }

    @Test func onlyMatchingTitlesCount() throws {
        let items = try Self.items(
            (1...6).reversed().map {
                FeedWriter.Item(
                    guid: "g\($0)", file: "\($0).mp3", title: $0.isMultiple(of: 2) ? "News \($0)" : "Music \($0)",
                    date: 1_690_000_000 + 86_400 * Double($0))
            })
        #expect(Self.files(Self.first(items, latest: 2, title: "news").orders) == ["6.mp3", "4.mp3"])
    }

    @Test func noMoreAreOrderedThanAreKept() throws {
        let items = try Self.items([5, 4, 3, 2, 1])
        #expect(Self.files(Self.first(items, latest: 4, keep: .episodes(1)).orders) == ["e5.mp3"])
    }

    // MARK: Later readings

    @Test func eachNewOneIsOrderedOnce() throws {
        let first = Self.saved(Self.first(try Self.items([3, 2, 1]), latest: 1))
        let plan = Self.plan(try Self.items([5, 4, 3, 2, 1]), known: first, latest: 1)
        #expect(Self.files(plan.orders) == ["e5.mp3", "e4.mp3"] && plan.newCount == 2)
        let again = Self.plan(try Self.items([5, 4, 3, 2, 1]), known: Self.saved(plan, over: first), latest: 1)
        #expect(again.orders.isEmpty && again.changed.isEmpty)
    }

    /// What became a download is cached under the URL of that.
    @Test(arguments: [(0, "moved.mp3"), (1, "a.mp3")]) func episodeThatMovesIsTheSame(latest: Int, url: String) throws {
        let items = try Self.items([.init(guid: "g", file: "a.mp3", title: "A", date: 1)])
        let first = Self.saved(Self.first(items, latest: latest))
        let plan = Self.plan(try Self.items([.init(guid: "g", file: "moved.mp3", title: "A", date: 1)]), known: first)
        #expect(plan.orders.isEmpty && plan.newCount == 0)
        #expect(Self.files(Self.saved(plan, over: first)) == [url])
    }

    @Test func episodeThatGetsAGUIDIsTheSame() throws {
        let first = Self.saved(Self.first(try Self.items([.init(guid: nil, file: "a.mp3", title: "A", date: 1)])))
        let given = Self.plan(try Self.items([.init(guid: "g", file: "a.mp3", title: "A", date: 1)]), known: first)
        #expect(given.orders.isEmpty)
        let moved = Self.plan(
            try Self.items([.init(guid: "g", file: "b.mp3", title: "A", date: 1)]),
            known: Self.saved(given, over: first))
        #expect(moved.orders.isEmpty)
    }

    @Test func episodeThatLosesItsGUIDIsTheSame() throws {
        let first = Self.saved(Self.first(try Self.items([.init(guid: "g", file: "a.mp3", title: "A", date: 1)])))
        let plan = Self.plan(try Self.items([.init(guid: nil, file: "a.mp3", title: "A", date: 1)]), known: first)
        #expect(plan.orders.isEmpty)
        #expect(Self.saved(plan, over: first).map(\.guid) == ["g"], "it may come back")
    }

    @Test func feedThatGivesAllItsItemsOtherGUIDsHasNothingNew() throws {
        let first = Self.saved(Self.first(try Self.items([3, 2, 1])))
        let items = try Self.items(
            (1...3).reversed().map {
                FeedWriter.Item(
                    guid: "other\($0)", file: "e\($0).mp3", title: "", date: 1_690_000_000 + 86_400 * Double($0))
            })
        #expect(Self.plan(items, known: first).orders.isEmpty)
    }

    @Test func feedThatGivesAllItsItemsOtherIdentitiesOrdersAFewOnly() throws {
        let first = Self.saved(Self.first(try Self.items(Array(1...50))))
        let plan = Self.plan(try Self.items(Array(1...50), prefix: "x"), known: first)
        #expect(plan.newCount == 50 && plan.orders.count == SubscriptionPlan.mostAtOnce)
        #expect(Self.files(plan.orders).first == "xe50.mp3")
    }

    @Test func removedEpisodeIsNotOrderedAgain() throws {
        var known = Self.saved(Self.first(try Self.items([2, 1])))
        for place in known.indices { known[place].state = .removed }
        #expect(Self.plan(try Self.items([2, 1]), known: known, wantsLatest: true).orders.isEmpty)
    }

    @Test func episodeThatReturnsIsNotNew() throws {
        let first = Self.saved(Self.first(try Self.items([3, 2, 1])))
        let without = Self.saved(Self.plan(try Self.items([3]), known: first), over: first)
        #expect(Self.plan(try Self.items([3, 2, 1]), known: without).orders.isEmpty)
    }

    @Test func raisingLatestOrdersOlderOnesThatWerePassedOver() throws {
        let first = Self.saved(Self.first(try Self.items([5, 4, 3, 2, 1]), latest: 1))
        let plan = Self.plan(try Self.items([5, 4, 3, 2, 1]), known: first, latest: 3, wantsLatest: true)
        #expect(Self.files(plan.orders) == ["e4.mp3", "e3.mp3"])
    }

    @Test func orderedEpisodeWhoseRowIsMissingIsNotOrderedAgain() throws {
        let plan = Self.plan(
            try Self.items([2, 1]), latest: 2, isFirst: true, wantsLatest: true,
            downloads: ["g2": Self.download("signed-e2.mp3", .open)])
        #expect(Self.files(plan.orders) == ["e1.mp3"])
        #expect(plan.changed.map(\.state) == [.ordered, .ordered])
        #expect(Self.files(plan.changed) == ["e1.mp3", "signed-e2.mp3"], "it is cached under the URL of its download")
    }

    private static func download(_ file: String, _ state: SubscriptionPlan.Download.State) -> SubscriptionPlan.Download
    {
        SubscriptionPlan.Download(id: 7, url: FeedWorld.url("https://media.test/\(file)"), state: state)
    }

    @Test(
        arguments: [
            (.due, ["b.mp3"], false, "b.mp3"), (.open, [], true, "a.mp3"), (.over, [], false, "a.mp3"),
        ] as [(SubscriptionPlan.Download.State, [String], Bool, String)])
    func failedDownloadWithAnotherURLByNowIsReplaced(
        state: SubscriptionPlan.Download.State, renewed: [String], awaitsRenewal: Bool, url: String
    ) throws {
        let first = Self.saved(Self.first(try Self.items([.init(guid: "g", file: "a.mp3", title: "A", date: 1)])))
        let plan = Self.plan(
            try Self.items([.init(guid: "g", file: "b.mp3", title: "A", date: 1)]), known: first,
            downloads: ["g": Self.download("a.mp3", state)])
        #expect(
            Self.files(plan.renewals.map(\.episode)) == renewed && plan.renewals.allSatisfy { $0.replaced == 7 }
                && plan.orders.isEmpty && plan.awaitsRenewal == awaitsRenewal)
        #expect(Self.files(Self.saved(plan, over: first)) == [url])
    }

    @Test func failedDownloadWithTheSameURLStays() throws {
        let first = Self.saved(Self.first(try Self.items([1])))
        let plan = Self.plan(try Self.items([1]), known: first, downloads: ["g1": Self.download("e1.mp3", .due)])
        #expect(plan.renewals.isEmpty && !plan.awaitsRenewal && plan.changed.isEmpty)
    }

    @Test func olderPageHasNothingNew() throws {
        let first = Self.saved(Self.first(try Self.items(Array(26...50).reversed()), latest: 3))
        let plan = Self.plan(
            try Self.items(Array(1...50).reversed()), known: first, latest: 30, wantsLatest: true, firstPage: 25)
        #expect(plan.orders.count == 27 && Self.files(plan.orders).last == "e21.mp3")
        #expect(plan.newCount == 25)
    }

    @Test func olderPageOfAFeedWithoutDatesHasNothingNew() throws {
        func items(_ numbers: [Int]) throws -> [FeedItem] {
            try Self.items(numbers.map { .init(guid: "g\($0)", file: "e\($0).mp3", title: "", date: nil) })
        }
        let first = Self.saved(Self.first(try items([6, 5, 4]), latest: 1))
        let plan = Self.plan(
            try items([7, 6, 5, 4, 3, 2, 1]), known: first, latest: 5, wantsLatest: true, firstPage: 4)
        #expect(Self.files(plan.orders) == ["e7.mp3", "e5.mp3", "e4.mp3", "e3.mp3"])
    }

    @Test func feedThatListsMoreOfItsPastHasNothingNew() throws {
        let first = Self.saved(Self.first(try Self.items([9, 8, 7])))
        let plan = Self.plan(try Self.items(Array(1...10).reversed()), known: first)
        #expect(Self.files(plan.orders) == ["e10.mp3"])
    }

    @Test func tenThousandItemsArePlannedAtOnce() throws {
        let first = Self.saved(Self.first(try Self.items(Array(1...10_000).reversed())))
        #expect(first.count == 10_000)
        let plan = Self.plan(try Self.items(Array(1...10_001).reversed()), known: first)
        #expect(Self.files(plan.orders) == ["e10001.mp3"] && plan.changed.count == 1)
    }

    @Test func notEverythingIsRememberedForever() throws {
        let template = try #require(Self.first(try Self.items([1])).changed.first)
        let known = (1...Int64(SubscriptionPlan.mostRemembered + 5)).map { number in
            var episode = KnownEpisode(file: "old\(number)", url: template.url, found: 0, state: .passedOver)
            (episode.id, episode.guid) = (number, "old\(number)")
            return episode
        }
        #expect(Self.plan(try Self.items([1]), known: known).forgotten == [1, 2, 3, 4, 5])
        // What became a download may be cached, and must not be ordered again.
        let mixed = known.map { episode in
            var episode = episode
            episode.state = episode.id == 1 ? .ordered : episode.id == 2 ? .removed : .passedOver
            return episode
        }
        #expect(Self.plan(try Self.items([1]), known: mixed).forgotten == [3, 4, 5])
    }

    @Test func longRowsAreRememberedForLessLong() throws {
        let template = try #require(Self.first(try Self.items([1])).changed.first)
        let long = String(repeating: "a", count: SubscriptionPlan.mostRememberedBytes / 8)
        let known = (1...20).map { number in
            var episode = KnownEpisode(file: "\(long)\(number)", url: template.url, found: 0, state: .passedOver)
            (episode.id, episode.guid) = (Int64(number), "old\(number)")
            return episode
        }
        #expect(Self.plan(try Self.items([1]), known: known).forgotten == Array(1...13))
    }

    // MARK: What is kept

    @Test(
        arguments: [
            ("5", []), ("2", [1]), ("1", [1, 2]), ("250B", [1]), ("100B", [1, 2]), ("99B", [1, 2]), ("1kB", []),
        ] as [(String, [Int])])
    func oldestGoBeyondTheLimitButNeverTheNewest(limit: String, removed: [Int]) throws {
        let known = Self.saved(Self.first(try Self.items([3, 2, 1])))
        let surplus = EpisodeRetention.surplus(known.map { ($0, 100) }, limit: try #require(EpisodeLimit(limit)))
        #expect(Self.files(surplus) == removed.map { "e\($0).mp3" })
    }

    // MARK: Options

    @Test(
        arguments: [
            ("news", "The News", true), ("news", "Music", false), ("news", nil, false), ("*", nil, true),
            ("the*", "The News", true), ("the*", "On the News", false), ("*news", "The NEWS", true),
            ("*news", "News of today", false), ("*a*b*", "xaxxbx", true), ("*a*b*", "ba", false), ("a*a", "a", false),
            ("a*a", "aa", true), ("*ab*ab", "abab", true), ("*ab*ab", "xab", false), ("für", "FÜR ALLE", true),
        ] as [(String, String?, Bool)])
    func patternsMatchTitles(pattern: String, title: String?, isMatch: Bool) throws {
        #expect(try #require(TitlePattern(pattern)).matches(title) == isMatch)
    }

    @Test func patternsOfNothingOrTooMuchAreRefused() {
        #expect(TitlePattern("") == nil && TitlePattern("  ") == nil)
        #expect(TitlePattern(String(repeating: "a", count: 201)) == nil)
    }

    @Test(
        arguments: [
            ("until-played", .untilPlayed), ("5", EpisodeLimit.episodes(5)), ("2GB", .bytes(2_000_000_000)),
            ("500 kB", .bytes(500_000)),
            ("1B", .bytes(1)), ("1234567B", .bytes(1_234_567)),
            ("5.0", nil), ("2.5", nil), ("6 ", nil), ("1_000", nil),
            ("0", nil), ("-1", nil), ("0GB", nil), ("", nil), ("all", nil), ("999999999", nil), ("5 episodes", nil),
        ] as [(String, EpisodeLimit?)])
    func limitsAreNumbersOrSizes(text: String, limit: EpisodeLimit?) {
        #expect(EpisodeLimit(text) == limit)
        if let limit { #expect(EpisodeLimit(limit.text) == limit) }
    }

    @Test(arguments: [1, 999, 1000, 1023, 1024, 123_456, 2_000_000_000, 1 << 60] as [Int64])
    func sizesAreWrittenAsTheyAreRead(bytes: Int64) {
        #expect(EpisodeLimit(EpisodeLimit.bytes(bytes).text) == .bytes(bytes))
    }
}
