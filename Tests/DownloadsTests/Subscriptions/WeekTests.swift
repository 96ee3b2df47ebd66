import Foundation
import Testing

@testable import Downloads

/// A week of three subscriptions in simulated time, with real databases.
@Suite struct WeekTests {
    private static let (daily, hourly, moving) = (
        "https://daily.test/rss", "https://hourly.test/rss", "https://old.test/rss"
    )
    private static let day = 86_400.0

    /// The numbers of the episodes that are out: one each `interval`, beginning with three before the start.
    private static func numbers(_ now: Double, every interval: Double) -> [Int] {
        Array(1...(3 + max(0, Int((now - ManualTime.start) / interval)))).reversed()
    }

    /// A daily podcast that sends validators; news each six hours, of which four are kept; a podcast that moves on the
    /// third day, after its host was down for twelve hours, and whose new host signs its URLs; two of it are kept.
    private static func script(_ origin: FeedOrigin) {
        origin.serve(daily) { now in
            let numbers = numbers(now, every: day)
            return .text(FeedWriter.episodes(numbers, title: "Daily", prefix: "d"), etag: "\"\(numbers.count)\"")
        }
        origin.serve(hourly) { now in
            .text(FeedWriter.episodes(numbers(now, every: day / 4), title: "News", prefix: "n"), etag: nil)
        }
        let text: @Sendable (Double, String) -> String = { now, host in
            var writer = FeedWriter(title: "Moving")
            writer.items = numbers(now, every: 2 * day).map {
                .init(guid: "m\($0)", file: "\(host)m\($0).mp3", title: "M\($0)", date: 1_690_000_000 + Double($0))
            }
            return writer.text
        }
        origin.serve(moving) { now in
            switch now - ManualTime.start {
            case ..<(2 * day): .text(text(now, ""), etag: nil)
            case ..<(2.5 * day): .failure("the origin answered 503")
            default: .redirect("https://new.test/rss", isMoved: true)
            }
        }
        origin.serve("https://new.test/rss") { now in .text(text(now, "signed-\(Int(now))/"), etag: nil) }
    }

    private static func subscribe(_ world: FeedWorld, every: Int64 = 3600) throws {
        try world.subscribe(daily) { ($0.latest, $0.every) = (2, every) }
        try world.subscribe(hourly) { ($0.latest, $0.every, $0.keep) = (2, every, .limit(.episodes(4))) }
        try world.subscribe(moving) { ($0.latest, $0.every, $0.keep) = (1, every, .limit(.episodes(2))) }
    }

    /// - Parameter prefix: the files of one feed.
    private static func episodes(_ names: [String], _ prefix: String) -> [Int] {
        names.filter { $0.hasPrefix(prefix) }.compactMap {
            Int($0.drop { !$0.isNumber }.prefix { $0.isNumber })
        }.sorted()
    }

    private static func expectWeek(_ world: FeedWorld) throws {
        // Downloads: each once, none lost.
        #expect(episodes(world.shelf.begun, "d") == [2, 3] + Array(4...10))
        #expect(episodes(world.shelf.begun, "n") == [2, 3] + Array(4...31))
        #expect(episodes(world.shelf.begun, "m") == [3, 4, 5, 6])
        #expect(world.shelf.begun.count == 9 + 30 + 4)
        // Evictions: the news, but for the last four, and the signed ones, under the URLs of their downloads.
        #expect(episodes(world.shelf.cached, "n") == [28, 29, 30, 31])
        #expect(episodes(world.shelf.removed, "n") == Array(2...27))
        #expect(episodes(world.shelf.cached, "m") == [5, 6])
        #expect(episodes(world.shelf.removed, "m") == [3, 4])
        #expect(world.shelf.removed.count == 26 + 2)
        #expect(try world.report(moving).address == "https://new.test/rss")
        #expect(try world.manager.perform { try $0.reports() }.allSatisfy { $0.message == nil })
    }

    @Test func weekOfThreeSubscriptionsFetchesEachEpisodeOnce() throws {
        let world = try FeedWorld()
        Self.script(world.origin)
        try Self.subscribe(world)
        world.pass(7 * Self.day + 3600)
        try Self.expectWeek(world)
        // Requests: each hour; conditional wherever the origin sends validators, and fewer while one is down.
        let daily = world.origin.requests.filter { $0.url == Self.daily }
        #expect((167...170).contains(daily.count) && daily.dropFirst().allSatisfy(\.isConditional))
        #expect((167...170).contains(world.origin.count(Self.hourly)))
        let down = world.origin.requests.filter {
            $0.url == Self.moving && (2 * Self.day..<2.5 * Self.day).contains($0.time - ManualTime.start)
        }
        #expect((5...8).contains(down.count), "10, 20, 40, 80, 160, 320 minutes")
    }

    /// Processes that are killed three times a day: nothing is closed, and databases are opened as they are.
    @Test func weekWithKillsFetchesEachEpisodeOnce() throws {
        var world = try FeedWorld()
        Self.script(world.origin)
        try Self.subscribe(world, every: 4 * 3600)
        for _ in 0..<21 {
            world.pass(Self.day / 3)
            world.catchUp()
            world = try FeedWorld(after: world)
        }
        world.pass(5 * 3600)
        try Self.expectWeek(world)
    }

    /// What is saved of a check comes in two steps: the orders, and then the episodes. Everything between them is
    /// undone here, again and again.
    @Test func checkThatIsKilledBetweenItsSavesOrdersNothingTwice() throws {
        var world = try FeedWorld()
        Self.script(world.origin)
        let database = world.directory.file("feeds.sqlite")
        try Self.subscribe(world, every: 4 * 3600)
        for _ in 0..<20 {
            let copy = world.directory.file("copy.sqlite")
            try? FileManager.default.removeItem(atPath: copy)
            try world.backUp(to: copy)
            world.pass(Self.day / 4)
            // The process ends after its orders are saved, and before anything else is.
            world = try FeedWorld(after: world) {
                for suffix in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: database + suffix) }
                try FileManager.default.copyItem(atPath: copy, toPath: database)
            }
        }
        world.pass(2 * Self.day + 5 * 3600)
        try Self.expectWeek(world)
    }
}
