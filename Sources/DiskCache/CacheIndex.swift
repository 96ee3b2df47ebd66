import CachePolicy
import Foundation
import GRDB
import HTTPModel

/// What survives a restart: resources, generations and the bitmaps of their extents, in SQLite.
///
/// Blocks on the disk; not to be called on a loop. Writers wait for each other, readers for nobody. What the rows count is kept
/// in `meta` in the same transactions, so that it is right after any end: `data_bytes` is what all rows' chunks and files take.
///
/// A transaction is durable when it returns (`synchronous = FULL`): a hole is punched only where no power cut brings the row back.
final class CacheIndex: Sendable {
    let path: String
    let database: DatabasePool

    init(path: String) throws(StoreError) {
        self.path = path
        var configuration = Configuration()
        configuration.label = "index"
        configuration.maximumReaderCount = 4
        // Somebody looks into the index with another program.
        configuration.busyMode = .timeout(5)
        configuration.prepareDatabase { db in
            // Pages that are free can be given back; only a new database takes that.
            if !db.configuration.readonly { try db.execute(sql: "PRAGMA auto_vacuum = INCREMENTAL") }
            // The log is bounded, as it counts against the limit. Each connection has a small page cache.
            try db.execute(sql: """
                PRAGMA wal_autocheckpoint = 256; PRAGMA journal_size_limit = 1048576; PRAGMA cache_size = -2000;
                PRAGMA temp_store = MEMORY
                """)
        }
        do {
            let pool = try DatabasePool(path: path, configuration: configuration)
            guard try !pool.read(Self.migrator.hasBeenSuperseded) else {
                throw StoreError.setting("the cache index \(path) was made by another version of reelcache; use that one, or choose another --cache-dir")
            }
            // GRDB sets NORMAL when it has made the connection.
            try pool.writeWithoutTransaction { try $0.execute(sql: "PRAGMA synchronous = FULL") }
            try Self.migrator.migrate(pool)
            database = pool
        } catch { throw Self.storeError(error, path) }
    }

    private static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        // `cached` is the sum of the present chunks' bytes; `overhead` what a file takes on the disk beside its chunks; `pinned` of an
        // extent repeats that of its resource, so that the order of eviction has no pinned ones in it.
        migrator.registerMigration("1: resources, generations, extents, pins") { db in
            try db.execute(sql: """
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
        // `validated_at` and `initial_age`: from when the age counts; 0 where the row is older than the columns. `selecting`: the request
        // fields by which the origin chose, as JSON.
        migrator.registerMigration("2: freshness, selecting fields") { db in
            try db.execute(sql: """
                ALTER TABLE generation ADD COLUMN validated_at INTEGER NOT NULL DEFAULT 0;
                ALTER TABLE generation ADD COLUMN initial_age INTEGER NOT NULL DEFAULT 0;
                ALTER TABLE generation ADD COLUMN selecting TEXT NOT NULL DEFAULT '[]';
                ALTER TABLE generation ADD COLUMN is_public INTEGER NOT NULL DEFAULT 0;
                """)
        }
        // `downloaded`: somebody has had it downloaded, pinned or not.
        migrator.registerMigration("3: downloaded") { db in
            try db.execute(sql: "ALTER TABLE resource ADD COLUMN downloaded INTEGER NOT NULL DEFAULT 0")
        }
        return migrator
    }

    func read<Value>(_ body: (Database) throws -> Value) throws(StoreError) -> Value {
        do { return try database.read(body) } catch { throw Self.storeError(error, path) }
    }

    /// A single statement needs no transaction around it.
    func readOne<Value>(_ body: (Database) throws -> Value) throws(StoreError) -> Value {
        do { return try database.unsafeRead(body) } catch { throw Self.storeError(error, path) }
    }

    func write<Value>(_ body: (Database) throws -> Value) throws(StoreError) -> Value {
        do { return try database.write(body) } catch { throw Self.storeError(error, path) }
    }

    private static func storeError(_ error: any Error, _ path: String) -> StoreError {
        switch error {
        case let error as StoreError: return error
        case let error as DatabaseError where error.resultCode == .SQLITE_CORRUPT || error.resultCode == .SQLITE_NOTADB:
            // Found in the midst of work, it is mended at the next start.
            IndexDamage.mark(path)
            return .damagedIndex(path: path, detail: error.message ?? "\(error.resultCode)")
        default: return .index(detail: "\(error)")
        }
    }

    func close() throws(StoreError) {
        do {
            _ = try database.writeWithoutTransaction { try $0.checkpoint(.truncate) }
            try database.close()
        } catch { throw Self.storeError(error, path) }
    }

    /// What the index and its log take on the disk.
    var allocatedBytes: Int64 { Self.files(path).reduce(0) { $0 + FileSystem.allocatedBytes($1) } }

    /// The files that SQLite keeps for a database.
    static func files(_ path: String) -> [String] { ["", "-wal", "-shm"].map { path + $0 } }

    /// Gives some of the pages back to the disk that hold nothing any more, where these are a good part of all.
    func shrink() throws(StoreError) {
        let (free, all) = try readOne { db in
            (try Int.fetchOne(db, sql: "PRAGMA freelist_count") ?? 0, try Int.fetchOne(db, sql: "PRAGMA page_count") ?? 0)
        }
        guard free > 64, free > all / 8 else { return }
        try write { try $0.execute(sql: "PRAGMA incremental_vacuum(256)") }
    }

    // MARK: Numbers about the whole

    enum Meta: String {
        /// The session that is running or ran last.
        case session
        /// Whether that session ended in order.
        case isClean = "clean"
        /// What was written in this session or before is verified before it is served.
        case suspectSession = "suspect_session"
        /// Allocated bytes of data, as the rows have it.
        case dataBytes = "data_bytes"
        /// Which start of the machine that session ran in.
        case boot
        /// Whether files may be there that have not been looked at.
        case isRecountDue = "recount_due"
        /// What credentials are mixed with before their fingerprint is taken.
        case fingerprintSeed = "fingerprint_seed"
    }

    func meta(_ name: Meta) throws(StoreError) -> Int64? {
        try readOne { try Int64.fetchOne($0, sql: "SELECT value FROM meta WHERE name = ?", arguments: [name.rawValue]) }
    }

    func setMeta(_ values: [(Meta, Int64)]) throws(StoreError) {
        try write { db in
            for (name, value) in values {
                try db.cachedStatement(sql: "INSERT OR REPLACE INTO meta VALUES (?, ?)").execute(arguments: [name.rawValue, value])
            }
        }
    }

    /// Within a transaction that changes rows.
    static func addDataBytes(_ delta: Int64, in db: Database) throws {
        guard delta != 0 else { return }
        try db.cachedStatement(sql: "INSERT INTO meta VALUES (?1, ?2) ON CONFLICT(name) DO UPDATE SET value = value + ?2")
            .execute(arguments: [Meta.dataBytes.rawValue, delta])
    }

    // MARK: Generations

    struct GenerationRow: Sendable {
        let id: GenerationID
        let key: CacheKey
        let head: GenerationHead
        let length: Int64
        let geometry: ChunkGeometry
        /// What its file takes beside its chunks.
        let overhead: Int64
    }

    struct ExtentRow: Sendable {
        let ordinal: Int
        let present: Presence
        let lastAccess: Int64
        /// The session in which it was written or last verified.
        let session: Int64
        /// By bit; 0 where none is known.
        let checksums: [UInt64]
    }

    /// - Throws: `.damagedRow` where what the index has of it cannot be.
    func generation(of key: CacheKey) throws(StoreError) -> GenerationRow? {
        try readOne { db in
            let sql = "SELECT g.*, r.key FROM resource r JOIN generation g ON g.resource = r.id WHERE r.key = ?"
            return try Row.fetchOne(db.cachedStatement(sql: sql), arguments: [key.text]).map(Self.generationRow)
        }
    }

    func generation(_ id: GenerationID) throws(StoreError) -> GenerationRow? {
        try readOne { db in
            let sql = "SELECT g.*, r.key FROM generation g JOIN resource r ON r.id = g.resource WHERE g.id = ?"
            return try Row.fetchOne(db.cachedStatement(sql: sql), arguments: [Int64(bitPattern: id.value)]).map(Self.generationRow)
        }
    }

    /// The values of a row may be damaged though the database as such can be read: none of them is believed.
    static func generationRow(_ row: Row) throws -> GenerationRow {
        guard let key = String.fromDatabaseValue(row["key"]), let id = Int64.fromDatabaseValue(row["id"]), id > 0 else {
            throw StoreError.damagedRow(key: nil, detail: "no key or identifier")
        }
        func damaged(_ what: String) -> StoreError { .damagedRow(key: CacheKey(text: key), detail: what) }
        guard let size = Int64.fromDatabaseValue(row["chunk_size"]), let geometry = ChunkGeometry(chunkSize: size) else { throw damaged("chunk size") }
        guard let length = Int64.fromDatabaseValue(row["length"]), (0...Generation.longest).contains(length) else { throw damaged("length") }
        guard let status = Int.fromDatabaseValue(row["status"]), (100...599).contains(status) else { throw damaged("status") }
        guard let text = String.fromDatabaseValue(row["fields"]), let fields = try? JSONDecoder().decode([[String]].self, from: Data(text.utf8)),
            fields.allSatisfy({ $0.count == 2 }), let finalURL = String.fromDatabaseValue(row["final_url"]),
            let storedAt = Int64.fromDatabaseValue(row["stored_at"]), (0...1 << 40).contains(storedAt)
        else { throw damaged("head") }
        // Of a file, what is not in its chunks: at the most all of its blocks, and what lists them.
        guard let overhead = Int64.fromDatabaseValue(row["overhead"]), (0...length + length / 64 + 1 << 20).contains(overhead) else { throw damaged("overhead") }
        guard let validatedAt = Int64.fromDatabaseValue(row["validated_at"]), (0...1 << 40).contains(validatedAt),
            let initialAge = Int64.fromDatabaseValue(row["initial_age"]), initialAge >= 0,
            let chosen = String.fromDatabaseValue(row["selecting"]), let selecting = try? JSONDecoder().decode([[String?]].self, from: Data(chosen.utf8)),
            selecting.allSatisfy({ $0.count == 2 && $0[0] != nil })
        else { throw damaged("freshness") }
        let head = GenerationHead(
            status: status, fields: FieldLines(fields.map { FieldLines.Line(name: $0[0], value: $0[1]) }),
            selecting: SelectingFields(selecting.map { .init(name: $0[0] ?? "", value: $0[1]) }), finalURL: finalURL,
            isPublic: Int.fromDatabaseValue(row["is_public"]) == 1, storedAt: storedAt,
            times: ResponseTimes(validatedAt: validatedAt > 0 ? validatedAt : storedAt, initialAge: initialAge))
        return GenerationRow(
            id: GenerationID(value: UInt64(id)), key: CacheKey(text: key), head: head, length: length, geometry: geometry, overhead: overhead)
    }

    /// The extents of a generation, and what its file takes beside its chunks; nil where it is gone. Rows that cannot be are left out.
    func contents(of row: GenerationRow) throws(StoreError) -> (extents: [ExtentRow], overhead: Int64, hasDamage: Bool)? {
        try read { db in
            let identifier = Int64(bitPattern: row.id.value)
            guard let overhead = try Int64.fetchOne(db, sql: "SELECT overhead FROM generation WHERE id = ?", arguments: [identifier]) else { return nil }
            let rows = try Row.fetchAll(db.cachedStatement(sql: Self.selectExtents), arguments: [identifier])
            let extents = rows.compactMap { Self.extentRow($0, row) }
            return (extents, overhead, extents.count < rows.count)
        }
    }

    func extents(of row: GenerationRow) throws(StoreError) -> [ExtentRow]? { try contents(of: row)?.extents }

    func extent(_ ordinal: Int, of row: GenerationRow) throws(StoreError) -> ExtentRow? {
        try readOne { db in
            try Row.fetchOne(db.cachedStatement(sql: Self.selectExtents + " AND ordinal = ?"), arguments: [Int64(bitPattern: row.id.value), ordinal])
                .flatMap { Self.extentRow($0, row) }
        }
    }

    static let selectExtents = "SELECT ordinal, present, last_access, session, checksums FROM extent WHERE generation = ?"

    static func extentRow(_ row: Row, _ generation: GenerationRow) -> ExtentRow? {
        guard let ordinal = Int.fromDatabaseValue(row[0]), (0..<generation.geometry.extentCount(length: generation.length)).contains(ordinal),
            let bits = Int64.fromDatabaseValue(row[1]), let lastAccess = Int64.fromDatabaseValue(row[2]), let session = Int64.fromDatabaseValue(row[3])
        else { return nil }
        let present = generation.geometry.existing(Presence(bits: UInt64(bitPattern: bits)), inExtent: ordinal, length: generation.length)
        return ExtentRow(ordinal: ordinal, present: present, lastAccess: lastAccess, session: session, checksums: unpack(Data.fromDatabaseValue(row[4]) ?? Data()))
    }

    /// Checksums as they stand in a row: without the zeros at their end.
    static func pack(_ checksums: [UInt64]) -> Data {
        let count = (checksums.lastIndex { $0 != 0 } ?? -1) + 1
        return checksums[..<count].map(\.littleEndian).withUnsafeBytes { Data($0) }
    }

    static func unpack(_ data: Data) -> [UInt64] {
        var checksums = [UInt64](repeating: 0, count: ChunkGeometry.chunksPerExtent)
        _ = checksums.withUnsafeMutableBytes { data.copyBytes(to: $0) }
        return checksums.map(UInt64.init(littleEndian:))
    }
}

extension ChunkGeometry {
    /// Of an extent's bits, those of chunks that a resource of this length has.
    func existing(_ bits: Presence, inExtent ordinal: Int, length: Int64) -> Presence {
        Presence(bits: bits.bits & Presence.mask(0..<chunkCount(inExtent: ordinal, length: length)))
    }

    /// The bytes of an extent's chunks.
    func bodyBytes(of bits: Presence, inExtent ordinal: Int, length: Int64?) -> Int64 {
        bits.runs.reduce(0) { sum, run in
            let first = ordinal * Self.chunksPerExtent
            return sum + chunkBytes(first + run.upperBound - 1, length: length).upperBound - chunkStart(first + run.lowerBound)
        }
    }
}
