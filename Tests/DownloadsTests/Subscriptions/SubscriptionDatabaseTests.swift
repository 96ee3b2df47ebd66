import Downloads
import Foundation
import GRDB
import Logging
import TestSupport
import Testing

@testable import Downloads

/// What `feeds.sqlite` keeps, and what happens when it is damaged.
@Suite struct SubscriptionDatabaseTests {
    private static let feed = "https://feed.test/rss"

    private static func open(_ directory: TemporaryDirectory) throws -> SubscriptionDatabase {
        try SubscriptionDatabase(
            directory: directory.path, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    }

    private static func make(_ directory: TemporaryDirectory) throws {
        let database = try open(directory)
        _ = try database.save([], all: { [] })
        try database.close()
    }

    @Test func lookingCreatesNoFile() throws {
        let directory = try TemporaryDirectory()
        let database = try Self.open(directory)
        #expect(try database.load().isEmpty)
        #expect(try database.counts().isEmpty)
        #expect(!database.takeLoss())
        try database.close()
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path).isEmpty)
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
        subscription.skipped = ["One: it has no media file", "Two: an earlier item is the same"]
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
            var episode = KnownEpisode(
                file: "f\(number)", url: FeedWorld.url("https://a.test/"), found: 6, state: state)
            (episode.subscription, episode.title) = (subscription.id, "t")
            if number > 0 {
                (episode.guid, episode.published, episode.played) = ("g\(number)", 5, 7)
                episode.listed = FeedWorld.url("https://b.test/")
            }
            return episode
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

    /// What the former version has left: its subscriptions keep everything, as they did.
    @Test func aDatabaseOfFormat3IsTakenOver() throws {
        let directory = try TemporaryDirectory()
        let database = try Self.open(directory)
        var former = Self.full
        former.options.keep = nil
        let saved = try #require(try database.save([former], all: { [] }).first)
        try database.save(
            saved, [KnownEpisode(file: "f", url: saved.url, found: 6, state: .ordered)], all: { [] })
        try database.close()
        try DatabaseQueue(path: directory.file("feeds.sqlite")).write {
            try $0.execute(
                sql: """
                    ALTER TABLE episode DROP COLUMN played; ALTER TABLE episode DROP COLUMN listed;
                    PRAGMA user_version = 3;
                    DELETE FROM grdb_migrations WHERE identifier > '4'
                    """)
        }
        let read = try Self.open(directory)
        #expect(try read.load() == [saved] && saved.options.keep == nil)
        #expect(try read.episodes(of: saved.id).map(\.played) == [nil])
    }

    @Test func damagedValueCostsNeitherItsSubscriptionNorItsEpisodes() throws {
        let directory = try TemporaryDirectory()
        let database = try Self.open(directory)
        let saved = try #require(try database.save([Self.full], all: { [] }).first)
        var episode = KnownEpisode(file: "f", url: saved.url, found: 6, state: .ordered)
        episode.guid = "g"
        try database.save(saved, [episode], all: { [] })
        try database.close()
        try DatabaseQueue(path: directory.file("feeds.sqlite")).write {
            try $0.execute(
                sql:
                    "UPDATE subscription SET address = 'nonsense', latest = 'x', every = 0, keep = 'x', cap = 'x', lifetime = -1, due = 1e300, failures = -1, wants_latest = 'x', etag = 5, checked = 'x'"
            )
        }
        let read = try Self.open(directory)
        let subscription = try #require(try read.load().first)
        #expect(subscription.address == saved.url && subscription.due == saved.added && !subscription.wantsLatest)
        #expect(subscription.options.latest == 3 && subscription.options.every == 3600)
        #expect(subscription.options.category == "talks" && subscription.options.title == saved.options.title)
        #expect(subscription.title == "Title" && subscription.brokenSince == 2.75 && subscription.failures == 0)
        #expect(try read.episodes(of: subscription.id).count == 1)
    }

    /// Each column without which a row is worth nothing.
    @Test(arguments: ["url = 'nonsense'", "added = 'x'", "added = 1e300"])
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

    /// Damage that is met by a look at what to keep: the new database must not stay empty until the next check.
    @Test func processThatEndsRightAfterDamageLosesNoSubscription() throws {
        let world = try FeedWorld()
        world.origin.serve(Self.feed, FeedWriter.episodes([1]))
        try world.subscribe(Self.feed) { $0.keep = .limit(.episodes(1)) }
        try world.inDatabase { try $0.execute(sql: "DROP TABLE episode") }
        var order = DownloadOrder(url: FeedWorld.url("https://media.test/e0.mp3"))
        order.episode = EpisodeName(feed: Self.feed, identity: "g0")
        _ = try world.downloads.perform { [order] in try $0.add([order]) }
        world.catchUp()
        #expect(FileManager.default.fileExists(atPath: world.directory.file("feeds.sqlite.damaged")))
        let next = try FeedWorld(after: world)
        #expect(try next.manager.perform { try $0.reports() }.map(\.urlText) == [Self.feed])
    }

    @Test func laterFormatIsRefusedWithBothNumbers() throws {
        let directory = try TemporaryDirectory()
        try Self.make(directory)
        try DatabaseQueue(path: directory.file("feeds.sqlite")).writeWithoutTransaction {
            try $0.execute(
                sql: "INSERT INTO grdb_migrations VALUES ('9: later'); PRAGMA user_version = 9")
        }
        let error = #expect(throws: DownloadError.self) { try Self.open(directory) }
        #expect(error?.advice == .laterVersion)
    }

    /// `docs/dev/store-format.md` has the columns as the code makes them.
    @Test func columnsAndFormatAreThoseOfTheDocument() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
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
        try Self.make(directory)
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
        #expect(Set(columns) == Set(Subscription.columns.map(\.name) + KnownEpisode.columns.map(\.name)))
        #expect(section.contains("Format \(format)"))
    }
}
