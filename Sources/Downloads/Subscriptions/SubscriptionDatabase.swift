import CachePolicy
import DiskCache
import GRDB
import HTTPModel
import Logging

/// Stores all subscriptions and their episodes in `feeds.sqlite`. A save is durable when it returns. Blocks.
///
/// For use on one thread. A damaged database is set aside (`feeds.sqlite.damaged`), and a new one is started. It has
/// the subscriptions in memory, but not their episodes (`takeLoss`).
final class SubscriptionDatabase {
    private let path: String
    private let logger: Logger
    private let database: SideDatabase
    private var hasLost = false

    init(directory: String, logger: Logger) throws(DownloadError) {
        path = StoreConfiguration.feeds(in: directory)
        self.logger = logger
        do throws(SideDatabase.Failure) {
            database = try SideDatabase(path, of: "feeds", schema: Self.schema, logger: logger)
        } catch { throw DownloadError(error) }
    }

    static var schema: DatabaseSchema { DatabaseSchema(migrator, digest: 0x8c03_ad98_7160_a4ef) }

    static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        // `keep` is a number of episodes, a size or `until-played`, as the option is written. `lifetime` is the feed's own. The ID of a
        // removed subscription is not assigned again.
        migrator.registerMigration("1: feeds") { db in
            try db.execute(
                sql: """
                    CREATE TABLE subscription (
                        id INTEGER PRIMARY KEY AUTOINCREMENT, url TEXT NOT NULL UNIQUE, address TEXT NOT NULL, latest INTEGER NOT NULL,
                        category TEXT, every INTEGER NOT NULL, keep TEXT, title_pattern TEXT, title TEXT, etag TEXT, last_modified TEXT,
                        lifetime INTEGER, wants_latest INTEGER NOT NULL, added REAL NOT NULL, checked REAL, read REAL, due REAL NOT NULL,
                        failures INTEGER NOT NULL, broken_since REAL, message TEXT);
                    CREATE TABLE episode (
                        id INTEGER PRIMARY KEY AUTOINCREMENT, subscription INTEGER NOT NULL REFERENCES subscription(id) ON DELETE CASCADE,
                        guid TEXT, file TEXT NOT NULL, url TEXT NOT NULL, title TEXT, published INTEGER, found INTEGER NOT NULL,
                        state TEXT NOT NULL);
                    CREATE INDEX episode_subscription ON episode(subscription, state);
                    """)
        }
        // The most bytes that downloads of a feed may fetch, as text.
        migrator.registerMigration("2: caps") { db in
            try db.execute(sql: "ALTER TABLE subscription ADD COLUMN cap TEXT")
        }
        migrator.registerMigration("3: skipped items, gaps, and episodes by URL") { db in
            // Readings in a row that were not complete.
            try db.execute(sql: "ALTER TABLE subscription ADD COLUMN gaps INTEGER NOT NULL DEFAULT 0")
            // Items of the last reading without media, a line each.
            try db.execute(sql: "ALTER TABLE subscription ADD COLUMN skipped TEXT")
            try db.execute(sql: "CREATE INDEX episode_url ON episode(url)")
        }
        // When it had been played, in seconds since 1970.
        migrator.registerMigration("4: played episodes") { db in
            try db.execute(sql: "ALTER TABLE episode ADD COLUMN played INTEGER")
        }
        // The URL that the feed has for it by now, if that is not the one of its download.
        migrator.registerMigration("5: URLs that feeds list") { db in
            try db.execute(sql: "ALTER TABLE episode ADD COLUMN listed TEXT")
        }
        return migrator
    }

    // MARK: Subscriptions

    /// Replaces damaged values, if that is possible; otherwise drops their rows, and removes them from the database.
    func load() throws(DownloadError) -> [Subscription] {
        try reading(ifDamaged: []) { [self] database in
            let (subscriptions, dropped) = try database.read { db in
                var (subscriptions, dropped): ([Subscription], [Int64]) = ([], [])
                let rows = try Row.fetchCursor(db, sql: "SELECT * FROM subscription ORDER BY id")
                while let row = try rows.next().map({ StoredRow($0) }) {
                    if let subscription = load(row) {
                        subscriptions.append(subscription)
                    } else {
                        dropped.append(try row.integer("id"))
                    }
                }
                return (subscriptions, dropped)
            }
            if !dropped.isEmpty {
                try database.write { db in
                    for id in dropped { try db.execute(sql: "DELETE FROM subscription WHERE id = ?", arguments: [id]) }
                }
            }
            return subscriptions
        }
    }

    private func load(_ row: StoredRow) -> Subscription? {
        var columns: [String] = []
        do throws(RowDamage) {
            let subscription = try Subscription(row) { columns.append($0) }
            if !columns.isEmpty {
                logger.error(
                    "the subscription to \(subscription.url.absolute) in \(path) was damaged: \(columns.joined(separator: ", ")) took the default"
                )
            }
            return subscription
        } catch {
            let url = (try? row.text("url"))?.printable ?? "an unknown feed"
            logger.error("the subscription to \(url) in \(path) is damaged (\(error)) and was dropped: subscribe again")
            return nil
        }
    }

    /// Saves subscriptions, all or none. Those with the ID 0 are new.
    /// - Parameter all: returns all other subscriptions, to fill a new database if this one turns out to be damaged.
    /// - Returns: the subscriptions with their IDs.
    func save(_ subscriptions: [Subscription], all: () -> [Subscription]) throws(DownloadError) -> [Subscription] {
        try writing {
            try Self.write(subscriptions, in: $0)
        } ifDamaged: { db in
            _ = try Self.write(all(), in: db)
            return try Self.write(subscriptions, in: db)
        }
    }

    /// Saves a subscription and some of its episodes in one transaction.
    /// - Parameters:
    ///   - episodes: new ones, with the ID 0, and changed ones.
    ///   - forgotten: the IDs of episodes to remove.
    func save(
        _ subscription: Subscription, _ episodes: [KnownEpisode], forgetting forgotten: [Int64] = [],
        all: () -> [Subscription]
    ) throws(DownloadError) {
        func save(_ db: Database) throws {
            _ = try Self.write([subscription], in: db)
            let insert = try db.cachedStatement(sql: KnownEpisode.columns.insertion(into: "episode"))
            for var episode in episodes {
                episode.subscription = subscription.id
                try insert.execute(arguments: KnownEpisode.columns.arguments(of: episode))
            }
            let delete = try db.cachedStatement(sql: "DELETE FROM episode WHERE id = ?")
            for id in forgotten { try delete.execute(arguments: [id]) }
        }
        try writing(save) { db in
            _ = try Self.write(all(), in: db)
            try save(db)
        }
    }

    /// Removes a subscription and its episodes.
    func remove(_ id: Int64, all: () -> [Subscription]) throws(DownloadError) {
        try writing {
            try $0.execute(sql: "DELETE FROM subscription WHERE id = ?", arguments: [id])
        } ifDamaged: {
            _ = try Self.write(all(), in: $0)
        }
    }

    private static func write(_ subscriptions: [Subscription], in db: Database) throws -> [Subscription] {
        let statement = try db.cachedStatement(sql: Subscription.columns.insertion(into: "subscription"))
        return try subscriptions.map { subscription in
            var saved = subscription
            try statement.execute(arguments: Subscription.columns.arguments(of: subscription))
            if saved.id == 0 { saved.id = db.lastInsertedRowID }
            return saved
        }
    }

    // MARK: Episodes

    /// The episodes of a subscription, oldest row first. Damaged rows are dropped.
    /// - Parameter states: only these.
    func episodes(of id: Int64, in states: [KnownEpisode.State] = KnownEpisode.State.allCases)
        throws(DownloadError) -> [KnownEpisode]
    {
        try reading(ifDamaged: []) { database in
            try database.read { db in
                let marks = states.map { _ in "?" }.joined(separator: ", ")
                let rows = try Row.fetchCursor(
                    db, sql: "SELECT * FROM episode WHERE subscription = ? AND state IN (\(marks)) ORDER BY id",
                    arguments: StatementArguments([id] + states.map(\.rawValue) as [any DatabaseValueConvertible]))
                return try Self.episodes(rows)
            }
        }
    }

    private static func episodes(_ rows: RowCursor) throws -> [KnownEpisode] {
        var episodes: [KnownEpisode] = []
        while let row = try rows.next() {
            if let episode = try? KnownEpisode(StoredRow(row)) { episodes.append(episode) }
        }
        return episodes
    }

    /// Which of some URLs are those of ordered episodes of other subscriptions than this one.
    func ordered(among urls: [OriginURL], except id: Int64) throws(DownloadError) -> Set<OriginURL> {
        try reading(ifDamaged: []) { database in
            try database.read { db in
                let query = try db.cachedStatement(
                    sql: "SELECT 1 FROM episode WHERE url = ? AND subscription != ? AND state = ? LIMIT 1")
                return try Set(
                    urls.filter { url in
                        let state = KnownEpisode.State.ordered.rawValue
                        return try Row.fetchOne(query, arguments: [url.absolute, id, state]) != nil
                    })
            }
        }
    }

    /// The episodes whose media has this URL; a hundred at most. Damaged rows are left out.
    func episodes(at url: OriginURL) throws(DownloadError) -> [KnownEpisode] {
        try reading(ifDamaged: []) { database in
            try database.read { db in
                // The feed may have it normalized although the player does not.
                let rows = try Row.fetchCursor(
                    db, sql: "SELECT * FROM episode WHERE url IN (?, ?) ORDER BY id LIMIT 100",
                    arguments: [url.absolute, url.normalized.absolute])
                return try Self.episodes(rows)
            }
        }
    }

    /// How many episodes of each subscription there are in each state.
    func counts() throws(DownloadError) -> [Int64: [KnownEpisode.State: Int]] {
        try reading(ifDamaged: [:]) { database in
            try database.read { db in
                var counts: [Int64: [KnownEpisode.State: Int]] = [:]
                let rows = try Row.fetchCursor(
                    db, sql: "SELECT subscription, state, count(*) AS number FROM episode GROUP BY subscription, state")
                while let row = try rows.next().map({ StoredRow($0) }) {
                    guard let state = KnownEpisode.State(rawValue: try row.text("state")) else { continue }
                    let number = try row.integer("number", in: 0...Int64(Int32.max))
                    counts[try row.integer("subscription"), default: [:]][state] = Int(number)
                }
                return counts
            }
        }
    }

    /// Whether all episodes were lost since the last call.
    func takeLoss() -> Bool {
        defer { hasLost = false }
        return hasLost
    }

    func close() throws(DownloadError) {
        do throws(SideDatabase.Failure) { try database.close() } catch { throw DownloadError(error) }
    }

    // MARK: Errors

    private func reading<Value>(ifDamaged lost: Value, _ body: (DatabaseQueue) throws -> Value)
        throws(DownloadError) -> Value
    {
        do throws(SideDatabase.Failure) {
            return try database.read(body) {
                hasLost = true
                return lost
            }
        } catch { throw DownloadError(error) }
    }

    private func writing<Value>(_ body: (Database) throws -> Value, ifDamaged again: (Database) throws -> Value)
        throws(DownloadError) -> Value
    {
        do throws(SideDatabase.Failure) {
            return try database.write(body) { db in
                hasLost = true
                return try again(db)
            }
        } catch { throw DownloadError(error) }
    }
}
