import DiskCache
import GRDB
import HTTPModel
import Logging

/// Stores all downloads in `downloads.sqlite`. A save is durable when it returns. Blocks.
///
/// For use on one thread. A damaged database is set aside (`downloads.sqlite.damaged`), and a new one is started.
final class DownloadDatabase {
    private let path: String
    private let logger: Logger
    private let database: SideDatabase

    /// The content left by the last process.
    struct Contents {
        var jobs: [DownloadJob] = []
        /// Greater than all IDs ever assigned.
        var nextID: Int64 = 1
        /// The bytes fetched, by day and feed.
        var usage: [DownloadUsage.Row: Int64] = [:]
    }

    init(directory: String, logger: Logger) throws(DownloadError) {
        path = StoreConfiguration.downloads(in: directory)
        self.logger = logger
        do throws(SideDatabase.Failure) {
            database = try SideDatabase(path, of: "downloads", schema: Self.schema, logger: logger)
        } catch { throw DownloadError(error) }
    }

    static var schema: DatabaseSchema { DatabaseSchema(migrator, digest: 0x52c8_d5c0_be2d_aee4) }

    private static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        // `place` orders waiting downloads, `ended` counts up as downloads end, `key` is the resource's, and `claim` is
        // the restore point as JSON. The ID of a forgotten download is not assigned again.
        migrator.registerMigration("1: downloads") { db in
            try db.execute(
                sql: """
                    CREATE TABLE download (
                        id INTEGER PRIMARY KEY AUTOINCREMENT, url TEXT NOT NULL, first INTEGER, priority TEXT NOT NULL, connections INTEGER NOT NULL,
                        limit_rate INTEGER, category TEXT, pinned INTEGER NOT NULL, state TEXT NOT NULL, place REAL NOT NULL, ended INTEGER,
                        bytes INTEGER NOT NULL, total INTEGER, file_name TEXT, network_failures INTEGER NOT NULL, busy_failures INTEGER NOT NULL,
                        retry_at REAL, added REAL NOT NULL, started REAL, finished REAL, message TEXT, key TEXT, claim TEXT);
                    """)
        }
        // Which renditions of a playlist are wanted (NULL for the default), and how many of its segments are cached.
        migrator.registerMigration("2: presentations") { db in
            for column in [
                "quality TEXT", "audio TEXT", "subtitles TEXT", "everything INTEGER", "record_for INTEGER",
                "segments INTEGER", "total_segments INTEGER",
            ] { try db.execute(sql: "ALTER TABLE download ADD COLUMN \(column)") }
        }
        // The subscription that ordered it, and the episode's identity.
        migrator.registerMigration("3: feeds") { db in
            for column in ["feed TEXT", "episode TEXT"] {
                try db.execute(sql: "ALTER TABLE download ADD COLUMN \(column)")
            }
        }
        // The order in which a file arrives, and whether limits bind it; the bytes that downloads fetched from origins, by
        // day of local time and by feed (empty for none).
        migrator.registerMigration("4: usage") { db in
            for column in ["last INTEGER", "at_once INTEGER"] {
                try db.execute(sql: "ALTER TABLE download ADD COLUMN \(column)")
            }
            try db.execute(
                sql: """
                    CREATE TABLE usage (
                        day TEXT NOT NULL, feed TEXT NOT NULL, bytes INTEGER NOT NULL, PRIMARY KEY (day, feed)) WITHOUT ROWID;
                    """)
        }
        migrator.registerMigration("5: held") { db in
            try db.execute(sql: "ALTER TABLE download ADD COLUMN failing_since REAL")
        }
        migrator.registerMigration("6: titles") { db in
            try db.execute(sql: "ALTER TABLE download ADD COLUMN title TEXT")
        }
        migrator.registerMigration("7: first failures") { db in
            try db.execute(sql: "ALTER TABLE download ADD COLUMN failed_first REAL")
        }
        return migrator
    }

    // MARK: Reading and writing

    /// Drops damaged rows, and removes them from the database.
    func load() throws(DownloadError) -> Contents {
        do throws(SideDatabase.Failure) { return try database.read(read) { Contents() } } catch {
            throw DownloadError(error)
        }
    }

    private func read(_ database: DatabaseQueue) throws -> Contents {
        let (contents, damaged) = try database.read { db in
            var contents = Contents()
            var damaged: [Int64] = []
            let rows = try Row.fetchCursor(db, sql: "SELECT * FROM download")
            while let row = try rows.next().map({ StoredRow($0) }) {
                if let job = try? DownloadJob(row) {
                    contents.jobs.append(job)
                } else {
                    damaged.append(try row.integer("id"))
                }
            }
            let last = try Int64.fetchOne(db, sql: "SELECT seq FROM sqlite_sequence WHERE name = 'download'") ?? 0
            // Ignore an implausible number: the rows show how far the IDs have got.
            if (0..<DownloadJob.lastID).contains(last) { contents.nextID = last +| 1 }
            contents.usage = try DownloadUsage.read(db)
            return (contents, damaged)
        }
        if !damaged.isEmpty {
            logger.error(
                "\(damaged.count) of the downloads in \(path) cannot be read and were dropped: order them again")
            try database.write { db in try Self.remove(damaged, in: db) }
        }
        return contents
    }

    /// Saves all changes or none, in one transaction.
    /// - Parameters:
    ///   - usage: of which the unsaved rows are written.
    ///   - firstDay: the first day of usage to keep, in days since 1970-01-01.
    ///   - all: returns all other downloads, to fill a new database if this one turns out to be damaged.
    func save(
        _ jobs: [DownloadJob], removing ids: Set<Int64> = [], _ usage: DownloadUsage, since firstDay: Int64,
        all: () -> [DownloadJob]
    ) throws(DownloadError) {
        do throws(SideDatabase.Failure) {
            try database.write {
                try Self.write(jobs, removing: ids, usage.unsavedRows, since: firstDay, in: $0)
            } ifDamaged: {
                try Self.write(all() + jobs, removing: [], usage.rows, since: firstDay, in: $0)
            }
        } catch { throw DownloadError(error) }
    }

    private static let insertion = DownloadJob.columns.insertion(into: "download")

    private static func write(
        _ jobs: [DownloadJob], removing ids: Set<Int64>, _ usage: [DownloadUsage.Row: Int64], since firstDay: Int64,
        in db: Database
    ) throws {
        try remove(ids, in: db)
        try DownloadUsage.write(usage, since: firstDay, in: db)
        let statement = try db.cachedStatement(sql: insertion)
        for job in jobs { try statement.execute(arguments: DownloadJob.columns.arguments(of: job)) }
    }

    private static func remove(_ ids: some Sequence<Int64>, in db: Database) throws {
        let statement = try db.cachedStatement(sql: "DELETE FROM download WHERE id = ?")
        for id in ids { try statement.execute(arguments: [id]) }
    }

    func close() throws(DownloadError) {
        do throws(SideDatabase.Failure) { try database.close() } catch { throw DownloadError(error) }
    }
}
