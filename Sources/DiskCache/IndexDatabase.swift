import CLinux
import CachePolicy
import Foundation
import GRDB
import Glibc
import HTTPModel
import Synchronization

/// The database of an index: its tables, files, errors and totals.
///
/// It blocks on the disk, so it must not be used on a loop. Writers wait for each other, readers for nobody. Totals are
/// kept in `meta` and change in the same transactions as the rows, so that they are right after any crash: `data_bytes`
/// is the disk usage of all chunks and files in the rows.
///
/// A transaction is durable when it returns (`synchronous = FULL`): a hole is punched only when no power cut can
/// deliver its row back.
final class IndexDatabase: Sendable {
    /// The copy of pinned rows has the same tables.
    enum Role { case index, pinnedCopy }

    /// The number of rows in a transaction, approximately: until it ends, the index's log grows by every page that it
    /// touches.
    static let rowsAtOnce = 512

    let path: String
    let role: Role
    let pool: DatabasePool
    /// Idle connections for look-ups, the last used one at the end: GRDB's pool takes longer to hand one out than
    /// SQLite to answer. There are as many as threads have looked something up at once.
    private let lookups = Mutex<[DatabaseQueue]>([])

    private static let countsNoMemory: Void = reel_sqlite_count_no_memory()

    init(path: String, role: Role) throws(StoreError) {
        Self.countsNoMemory
        (self.path, self.role) = (path, role)
        do {
            try FileSystem.makePrivateDatabase(path)
            let pool = try DatabasePool(path: FileSystem.databaseName(path), configuration: Self.configuration)
            // GRDB sets NORMAL when it opens a connection.
            try pool.writeWithoutTransaction { try $0.execute(sql: "PRAGMA synchronous = FULL") }
            try Self.schema.prepare(pool)
            self.pool = pool
        } catch { throw Self.storeError(error, path) }
    }

    private static var configuration: Configuration {
        var configuration = Configuration()
        configuration.label = "index"
        configuration.maximumReaderCount = 4
        // Wait while another program has the index open.
        configuration.busyMode = .timeout(5)
        configuration.prepareDatabase { db in
            // Lets free pages be given back; this takes effect only in a new database, and writes to any other.
            if !db.configuration.readonly, try Int.fetchOne(db, sql: "PRAGMA page_count") == 0 {
                try db.execute(sql: "PRAGMA auto_vacuum = INCREMENTAL")
            }
            // The log is bounded because it counts against the limit. Each connection gets a small page cache.
            try db.execute(
                sql: """
                    PRAGMA wal_autocheckpoint = 256; PRAGMA journal_size_limit = 1048576; PRAGMA cache_size = -2000;
                    PRAGMA temp_store = MEMORY
                    """)
        }
        return configuration
    }

    static var schema: DatabaseSchema { DatabaseSchema(migrator, digest: 0xb17c_99af_fb39_46c6) }

    private static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        // `cached` is the sum of the present chunks' bytes, `overhead` the file's disk usage beside its chunks. An
        // extent's `pinned` repeats that of its resource, so that the order of eviction has no pinned extents in it.
        migrator.registerMigration("1: resources, generations, extents, pins") { db in
            try db.execute(
                sql: """
                    CREATE TABLE resource (
                        id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, pinned INTEGER NOT NULL DEFAULT 0, hits INTEGER NOT NULL DEFAULT 0,
                        last_access INTEGER NOT NULL DEFAULT 0, cached INTEGER NOT NULL DEFAULT 0);
                    CREATE INDEX resource_last_access ON resource(last_access);
                    CREATE INDEX resource_hits ON resource(hits);
                    CREATE INDEX resource_cached ON resource(cached);
                    CREATE INDEX resource_pinned ON resource(key) WHERE pinned = 1;
                    CREATE TABLE generation (
                        id INTEGER PRIMARY KEY, resource INTEGER NOT NULL UNIQUE REFERENCES resource(id) ON DELETE CASCADE,
                        length INTEGER NOT NULL, status INTEGER NOT NULL, fields TEXT NOT NULL, final_url TEXT NOT NULL,
                        chunk_size INTEGER NOT NULL, stored_at INTEGER NOT NULL, overhead INTEGER NOT NULL);
                    CREATE TABLE extent (
                        generation INTEGER NOT NULL REFERENCES generation(id) ON DELETE CASCADE, ordinal INTEGER NOT NULL,
                        present INTEGER NOT NULL, checksums BLOB NOT NULL, last_access INTEGER NOT NULL, session INTEGER NOT NULL,
                        pinned INTEGER NOT NULL, PRIMARY KEY (generation, ordinal)) WITHOUT ROWID;
                    CREATE INDEX extent_last_access ON extent(last_access) WHERE pinned = 0;
                    CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
                    """)
        }
        // `validated_at` and `initial_age` are the times from which the age counts; 0 in rows older than the columns.
        // `selecting` has the request fields that selected the variant, as JSON.
        migrator.registerMigration("2: freshness, selecting fields") { db in
            try db.execute(
                sql: """
                    ALTER TABLE generation ADD COLUMN validated_at INTEGER NOT NULL DEFAULT 0;
                    ALTER TABLE generation ADD COLUMN initial_age INTEGER NOT NULL DEFAULT 0;
                    ALTER TABLE generation ADD COLUMN selecting TEXT NOT NULL DEFAULT '[]';
                    ALTER TABLE generation ADD COLUMN is_public INTEGER NOT NULL DEFAULT 0;
                    """)
        }
        // `downloaded`: a download has fetched it, pinned or not.
        migrator.registerMigration("3: downloaded") { db in
            try db.execute(sql: "ALTER TABLE resource ADD COLUMN downloaded INTEGER NOT NULL DEFAULT 0")
        }
        migrator.registerMigration("4: parts") { try $0.execute(sql: partsSchema) }
        // `played`: when players had read three quarters of it, in seconds since 1970. `read_ranges`: what they have
        // read of it since. `title`: what its feed or playlist calls it.
        migrator.registerMigration("5: played, titles") { db in
            try db.execute(
                sql: """
                    ALTER TABLE resource ADD COLUMN played INTEGER;
                    ALTER TABLE resource ADD COLUMN title TEXT;
                    ALTER TABLE generation ADD COLUMN read_ranges TEXT;
                    CREATE INDEX resource_played ON resource(key) WHERE played IS NOT NULL;
                    """)
        }
        // `category`: the word that its download was ordered under. `by_hand`: a person pinned it, or ordered it to stay.
        migrator.registerMigration("6: categories") { db in
            try db.execute(
                sql: """
                    ALTER TABLE resource ADD COLUMN category TEXT;
                    ALTER TABLE resource ADD COLUMN by_hand INTEGER NOT NULL DEFAULT 0;
                    """)
        }
        // A trigger looked for the whole of each new generation, most of which have none. No row changes, so foreign
        // keys need no check.
        migrator.registerMigration("7: further wholes", foreignKeyChecks: .immediate) {
            try $0.execute(sql: furtherWholesSchema)
        }
        return migrator
    }

    func read<Value>(_ body: (Database) throws -> Value) throws(StoreError) -> Value {
        do { return try pool.read(body) } catch { throw Self.storeError(error, path) }
    }

    /// A single statement needs no transaction around it.
    func readOne<Value>(_ body: (Database) throws -> Value) throws(StoreError) -> Value {
        do { return try pool.unsafeRead(body) } catch { throw Self.storeError(error, path) }
    }

    /// The same for a statement that runs for each file.
    func lookUp<Value>(_ body: (Database) throws -> Value) throws(StoreError) -> Value {
        do {
            let connection = try lookups.withLock { $0.popLast() } ?? newLookup()
            defer { lookups.withLock { $0.append(connection) } }
            return try connection.unsafeRead(body)
        } catch { throw Self.storeError(error, path) }
    }

    private func newLookup() throws -> DatabaseQueue {
        var configuration = Self.configuration
        configuration.readonly = true
        return try DatabaseQueue(path: FileSystem.databaseName(path), configuration: configuration)
    }

    func write<Value>(_ body: (Database) throws -> Value) throws(StoreError) -> Value {
        do { return try pool.write(body) } catch { throw Self.storeError(error, path) }
    }

    private static func storeError(_ error: any Error, _ path: String) -> StoreError {
        switch error {
        case let error as StoreError: return error
        case DatabaseSchema.Failure.newer(let version):
            return .directory(
                "\(path) was written by a later version of reelcache (format \(version); this version reads up to \(schema.version))",
                .laterVersion)
        case let error as DatabaseError where error.resultCode == .SQLITE_FULL:
            return .system(operation: "write", path: path, code: ENOSPC)
        case _ where DatabaseDamage.isMeant(by: error, path):
            // Damage found during operation is repaired at the next start.
            markDamaged(path)
            return .damagedIndex(path: path, detail: DatabaseDamage.reason(error))
        default: return .index(detail: "\(error)")
        }
    }

    func close() throws(StoreError) {
        do {
            for connection in lookups.withLock({ $0 }) { try connection.close() }
            _ = try pool.writeWithoutTransaction { try $0.checkpoint(.truncate) }
            try pool.close()
        } catch { throw Self.storeError(error, path) }
    }

    /// The disk usage of the index and its log.
    var allocatedBytes: Int64 { FileSystem.databaseFiles(path).reduce(0) { $0 +| FileSystem.allocatedBytes($1) } }

    /// The file whose presence says that damage was found during operation.
    static func damageMark(_ path: String) -> String { path + ".damaged" }

    static func markDamaged(_ path: String) {
        let descriptor = open(damageMark(path), O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        if descriptor >= 0 { Glibc.close(descriptor) }
    }

    /// Gives some free pages back to the disk, if they are a good part of all pages.
    /// - Returns: whether it did.
    func shrink() throws(StoreError) -> Bool {
        let (free, all) = try readOne { db in
            (
                try Int.fetchOne(db.cachedStatement(sql: "PRAGMA freelist_count")) ?? 0,
                try Int.fetchOne(db.cachedStatement(sql: "PRAGMA page_count")) ?? 0
            )
        }
        guard free > 64, free > all / 8 else { return false }
        try write { try $0.execute(sql: "PRAGMA incremental_vacuum(256)") }
        return true
    }

    /// If the clock was set back, last reads in the future would be the last to be evicted until that future comes.
    /// They are moved, in proportion, between the last read before now and now, so that the order of all stays.
    /// - Parameter now: microseconds since 1970.
    func endFuture(at now: Int64) throws(StoreError) {
        try write { db in
            for (table, condition) in [("extent", "pinned = 0"), ("resource", "TRUE")] {
                // Answered by an index.
                let latest = "SELECT max(last_access) FROM \(table) WHERE \(condition)"
                let last = try Int64.fetchOne(db, sql: latest) ?? 0
                guard last > now else { continue }
                let former = try Int64.fetchOne(db, sql: "\(latest) AND last_access <= ?1", arguments: [now])
                try db.execute(
                    sql: """
                        UPDATE \(table) SET last_access = ?1
                            - CAST((?2 - min(last_access, ?2)) * 1.0 * (?1 - ?3) / (?2 - ?3) AS INTEGER)
                        WHERE last_access > ?1
                        """, arguments: [now, last, former ?? 0])
            }
        }
    }

    // MARK: Totals

    enum Meta: String, CaseIterable {
        /// The current session, or the last one.
        case session
        /// Whether that session was closed cleanly.
        case isClean = "clean"
        /// Chunks written in this session or an earlier one are verified before they are served.
        case suspectSession = "suspect_session"
        /// The allocated bytes of all data, according to the rows.
        case dataBytes = "data_bytes"
        /// The boot in which that session ran.
        case boot
        /// Whether there may be files that have not been examined.
        case isRecountDue = "recount_due"
        /// Counts changes of pins. In the copy of pinned rows: the version that it has caught up with.
        case pinVersion = "pin_version"
        /// The seed for fingerprints of credentials.
        case fingerprintSeed = "fingerprint_seed"
    }

    func meta(_ name: Meta) throws(StoreError) -> Int64? {
        try readOne { try Int64.fetchOne($0, sql: "SELECT value FROM meta WHERE name = ?", arguments: [name.rawValue]) }
    }

    /// Checks whether the values are plausible.
    /// - Throws: `.damagedIndex`.
    func checkMeta(diskSize: Int64?) throws(StoreError) {
        for name in Meta.allCases { _ = try meta(name) }
        let bytes = try meta(.dataBytes) ?? 0
        guard bytes >= 0, bytes <= min(diskSize ?? .max, 1 << 60) else {
            throw .damagedIndex(path: path, detail: "the total data size is wrong")
        }
        guard (0...1 << 60).contains(try meta(.pinVersion) ?? 0) else {
            throw .damagedIndex(path: path, detail: "the version of the pins is wrong")
        }
    }

    func setMeta(_ values: [(Meta, Int64)]) throws(StoreError) {
        try write { db in
            for (name, value) in values {
                try db.cachedStatement(sql: "INSERT OR REPLACE INTO meta VALUES (?, ?)").execute(arguments: [
                    name.rawValue, value,
                ])
            }
        }
    }

    /// Within a transaction that changes rows.
    static func addDataBytes(_ delta: Int64, in db: Database) throws {
        if delta != 0 { try add(delta, to: .dataBytes, in: db) }
    }

    /// Within a transaction that changes pins.
    func countPinChange(in db: Database) throws {
        if role == .index { try Self.add(1, to: .pinVersion, in: db) }
    }

    private static func add(_ delta: Int64, to name: Meta, in db: Database) throws {
        try db.cachedStatement(
            sql: "INSERT INTO meta VALUES (?1, ?2) ON CONFLICT(name) DO UPDATE SET value = value + ?2"
        )
        .execute(arguments: [name.rawValue, delta])
    }

    /// Writes committed pages from the log into the database, so that they survive the loss of the log.
    func checkpointLog() throws(StoreError) {
        do { _ = try pool.writeWithoutTransaction { try $0.checkpoint(.passive) } } catch {
            throw Self.storeError(error, path)
        }
    }
}
