import DiskCache
import Foundation
import GRDB
import HTTPModel
import Logging

/// Stores all downloads in `downloads.sqlite`. A save is durable when it returns. Blocks.
///
/// For use on one thread. A damaged database is set aside (`downloads.sqlite.damaged`), and a new one is started.
final class DownloadDatabase {
    private let path: String
    private let logger: Logger
    private var database: DatabaseQueue

    /// The content left by the last process.
    struct Contents {
        var jobs: [DownloadJob] = []
        /// Greater than all IDs ever assigned.
        var nextID: Int64 = 1
    }

    init(directory: String, logger: Logger) throws(DownloadError) {
        path = CacheStore.downloads(in: directory)
        self.logger = logger
        do {
            do { database = try Self.open(path) } catch let error where DatabaseDamage.isMeant(by: error, path) {
                try Self.setAside(path, error, logger)
                database = try Self.open(path)
            }
        } catch { throw Self.error("open", path, error) }
    }

    private static func open(_ path: String) throws -> DatabaseQueue {
        do throws(StoreError) { try FileSystem.makePrivateDatabase(path) } catch {
            throw DownloadError(.disk, "cannot create \(path): \(error)")
        }
        var configuration = Configuration()
        configuration.label = "downloads"
        configuration.journalMode = .wal
        // Wait while another program has it open.
        configuration.busyMode = .timeout(5)
        configuration.prepareDatabase { db in
            try db.execute(
                sql:
                    "PRAGMA wal_autocheckpoint = 256; PRAGMA journal_size_limit = 1048576; PRAGMA cache_size = -2000; PRAGMA temp_store = MEMORY"
            )
        }
        let database = try DatabaseQueue(path: path, configuration: configuration)
        // GRDB sets NORMAL when it opens a connection.
        try database.writeWithoutTransaction { try $0.execute(sql: "PRAGMA synchronous = FULL") }
        try DatabaseDamage.check(database, path)
        do { try DatabaseSchema(migrator).prepare(database) } catch DatabaseSchema.Failure.newer(let version) {
            throw DownloadError(
                .disk,
                "\(path) was written by a later version of reelcache (format \(version); this version reads up to \(migrator.migrations.count))",
                .laterVersion)
        }
        return database
    }

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
        return migrator
    }

    // MARK: Damage

    private static func setAside(_ path: String, _ error: any Error, _ logger: Logger) throws {
        let aside = path + ".damaged"
        for suffix in ["-wal", "-shm"] { unlink(aside + suffix) }
        guard rename(path, aside) == 0 else {
            throw DownloadError(
                .disk, "cannot rename \(path), which is damaged: \(String(errno: errno)); move it away")
        }
        // The log may contain rows that can still be read.
        rename(path + "-wal", aside + "-wal")
        unlink(path + "-shm")
        logger.error(
            "the downloads database \(path) is damaged (\(DatabaseDamage.reason(error))): kept it as \(aside), and started a new one"
        )
    }

    /// Replaces a database that turns out to be damaged.
    private func startAnew(_ error: any Error) throws {
        try? database.close()
        try Self.setAside(path, error, logger)
        database = try Self.open(path)
    }

    // MARK: Reading and writing

    /// Drops damaged rows, and removes them from the database.
    func load() throws(DownloadError) -> Contents {
        do {
            do { return try read() } catch let error where DatabaseDamage.isMeant(by: error, path) {
                try startAnew(error)
                return Contents()
            }
        } catch { throw Self.error("read", path, error) }
    }

    private func read() throws -> Contents {
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
    /// - Parameter all: returns all other downloads, to fill a new database if this one turns out to be damaged.
    func save(_ jobs: [DownloadJob], removing ids: Set<Int64> = [], all: () -> [DownloadJob]) throws(DownloadError) {
        do {
            do { try write(jobs, removing: ids) } catch let error where DatabaseDamage.isMeant(by: error, path) {
                try startAnew(error)
                try write(all() + jobs, removing: [])
            }
        } catch { throw Self.error("write", path, error) }
    }

    private func write(_ jobs: [DownloadJob], removing ids: Set<Int64>) throws {
        try database.write { db in
            try Self.remove(ids, in: db)
            let statement = try db.cachedStatement(sql: Self.insert)
            for job in jobs { try statement.execute(arguments: StatementArguments(try job.columns)) }
        }
    }

    private static func remove(_ ids: some Sequence<Int64>, in db: Database) throws {
        let statement = try db.cachedStatement(sql: "DELETE FROM download WHERE id = ?")
        for id in ids { try statement.execute(arguments: [id]) }
    }

    private static let insert: String = {
        let names = DownloadJob.columnNames
        let updates = names.dropFirst().map { "\($0) = excluded.\($0)" }.joined(separator: ", ")
        let marks = names.map { _ in "?" }.joined(separator: ", ")
        return
            "INSERT INTO download (\(names.joined(separator: ", "))) VALUES (\(marks)) ON CONFLICT(id) DO UPDATE SET \(updates)"
    }()

    func close() throws(DownloadError) {
        do {
            _ = try database.writeWithoutTransaction { try $0.checkpoint(.truncate) }
            try database.close()
        } catch { throw Self.error("close", path, error) }
    }

    private static func error(_ operation: String, _ path: String, _ error: any Error) -> DownloadError {
        if let error = error as? DownloadError { return error }
        let advice =
            switch (error as? DatabaseError)?.resultCode {
            case .SQLITE_FULL?: "the disk is full: make room, then try again"
            case .SQLITE_BUSY?, .SQLITE_LOCKED?: "another program is using it: close that program, then try again"
            case .SQLITE_CORRUPT?, .SQLITE_NOTADB?: "\(DatabaseDamage.reason(error)): restart to create a new one"
            default: DatabaseDamage.reason(error)
            }
        return DownloadError(.disk, "cannot \(operation) the downloads in \(path): \(advice)")
    }

}
