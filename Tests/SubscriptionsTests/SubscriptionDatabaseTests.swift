import Foundation
import GRDB
import Logging
import TestSupport
import Testing

@testable import Subscriptions

/// What `feeds.sqlite` keeps, and what happens when it is damaged.
@Suite struct SubscriptionDatabaseTests {
    private static let feed = "https://feed.test/rss"

    private static func open(_ directory: TemporaryDirectory) throws -> SubscriptionDatabase {
        try SubscriptionDatabase(
            directory: directory.path, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    }

    private static var full: Subscription {
        var options = SubscriptionOptions()
        (options.latest, options.category, options.every) = (7, "talks", 7200)
        (options.keep, options.title) = (.bytes(2_000_000_001), TitlePattern("*news*"))
        var subscription = Subscription(FeedWorld.url(feed), options: options, added: 1.5, due: 9.25)
        subscription.address = FeedWorld.url("https://new.test/rss")
        (subscription.title, subscription.validators) = ("Title", FeedValidators(etag: "\"e\"", lastModified: "Mon"))
        (subscription.lifetime, subscription.wantsLatest) = (60, false)
        (subscription.checked, subscription.read, subscription.failures) = (3.5, 2.5, 4)
        (subscription.brokenSince, subscription.message) = (2.75, "it broke")
        return subscription
    }

    @Test func subscriptionIsReadAsItWasSaved() throws {
        let directory = try TemporaryDirectory()
        let saved = try Self.open(directory).save([Self.full], all: { [] })
        #expect(saved.map(\.id) == [1])
        #expect(try Self.open(directory).load() == saved)
    }

    @Test func episodesAreReadAsTheyWereSaved() throws {
        let directory = try TemporaryDirectory()
        let database = try Self.open(directory)
        let subscription = try #require(try database.save([Self.full], all: { [] }).first)
        let episodes = KnownEpisode.State.allCases.enumerated().map { number, state in
            KnownEpisode(
                id: 0, guid: number == 0 ? nil : "g\(number)", file: "f\(number)",
                url: FeedWorld.url("https://a.test/"),
                title: "t", published: number == 0 ? nil : 5, found: 6, state: state)
        }
        try database.save(subscription, episodes, all: { [] })
        var read = try database.episodes(of: subscription.id)
        #expect(read.map(\.id) == [1, 2, 3])
        for place in read.indices { read[place].id = 0 }
        #expect(read == episodes)
        #expect(try database.episodes(of: subscription.id, in: [.ordered]).map(\.id) == [2])
        #expect(try database.counts()[subscription.id] == [.passedOver: 1, .ordered: 1, .removed: 1])
        try database.save(subscription, [], forgetting: [1, 2], all: { [] })
        #expect(try database.episodes(of: subscription.id).map(\.id) == [3])
    }

    /// Each column with what does not belong there.
    @Test(arguments: [
        "url = 'nonsense'", "address = 'nonsense'", "latest = -1", "latest = 'x'", "every = 0", "keep = 'x'",
        "lifetime = -1", "due = 1e300", "failures = -1", "added = 'x'", "wants_latest = 'x'",
    ])
    func damagedRowIsDroppedAndTheOthersStay(change: String) throws {
        let directory = try TemporaryDirectory()
        var other = Self.full
        other = Subscription(FeedWorld.url("https://b.test/"), options: SubscriptionOptions(), added: 0, due: 0)
        let database = try Self.open(directory)
        _ = try database.save([Self.full, other], all: { [] })
        try database.close()
        try DatabaseQueue(path: directory.file("feeds.sqlite")).write {
            try $0.execute(sql: "UPDATE subscription SET \(change) WHERE id = 1")
        }
        #expect(try Self.open(directory).load().map(\.url) == [other.url])
        #expect(try Self.open(directory).load().count == 1)
    }

    @Test func damagedDatabaseIsSetAside() throws {
        let directory = try TemporaryDirectory()
        let database = try Self.open(directory)
        _ = try database.save([Self.full], all: { [] })
        try database.close()
        try Data(repeating: 7, count: 9000).write(to: URL(fileURLWithPath: directory.file("feeds.sqlite")))
        #expect(try Self.open(directory).load().isEmpty)
        #expect(FileManager.default.fileExists(atPath: directory.file("feeds.sqlite.damaged")))
    }

    @Test func databaseThatIsDamagedMeanwhileIsFilledAgainAndOrdersNothingTwice() throws {
        let world = try FeedWorld()
        world.origin.serve(Self.feed, FeedWriter.episodes([3, 2, 1]))
        try world.subscribe(Self.feed) { $0.latest = 1 }
        try world.inDatabase { try $0.execute(sql: "DROP TABLE episode") }
        world.origin.serve(Self.feed, FeedWriter.episodes([4, 3, 2, 1]))
        world.pass(3600)
        #expect(FileManager.default.fileExists(atPath: world.directory.file("feeds.sqlite.damaged")))
        world.pass(3600)
        #expect(world.shelf.begun == ["e3.mp3"], "what the feed has then is passed over")
        world.origin.serve(Self.feed, FeedWriter.episodes([5, 4, 3, 2, 1]))
        world.pass(3600)
        #expect(world.shelf.begun == ["e3.mp3", "e5.mp3"])
    }

    @Test func laterFormatIsRefusedWithBothNumbers() throws {
        let directory = try TemporaryDirectory()
        try Self.open(directory).close()
        try DatabaseQueue(path: directory.file("feeds.sqlite")).writeWithoutTransaction {
            try $0.execute(
                sql: "INSERT INTO grdb_migrations VALUES ('9: later'); PRAGMA user_version = 9")
        }
        let error = #expect(throws: SubscriptionError.self) { try Self.open(directory) }
        #expect(error?.advice == .laterVersion)
    }

    /// `docs/dev/store-format.md` has the columns as the code makes them.
    @Test func columnsAndFormatAreThoseOfTheDocument() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let page = try String(
            contentsOf: root.appendingPathComponent("docs/dev/store-format.md"), encoding: .utf8)
        let section = try #require(page.components(separatedBy: "\n## feeds.sqlite\n").last)
            .components(separatedBy: "\n## ")[0]
        let rows = section.split(separator: "\n").filter { $0.hasPrefix("| `") }
        let named = rows.flatMap { row in
            row.split(separator: "|", omittingEmptySubsequences: false)[1].matches(of: /`([a-z_]+)`/).map {
                String($0.1)
            }
        }
        let directory = try TemporaryDirectory()
        try Self.open(directory).close()
        let (columns, format) = try DatabaseQueue(path: directory.file("feeds.sqlite")).read { db in
            (
                try String.fetchAll(
                    db,
                    sql:
                        "SELECT name FROM pragma_table_info('subscription') UNION SELECT name FROM pragma_table_info('episode')"
                ), try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
            )
        }
        #expect(Set(named) == Set(columns))
        #expect(Set(columns) == Set(Subscription.columnNames + KnownEpisode.columnNames))
        #expect(section.contains("Format \(format)"))
    }
}
