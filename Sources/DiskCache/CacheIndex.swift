import CachePolicy
import Foundation
import GRDB
import HTTPModel

/// What survives a restart: resources, generations and the bitmaps of their extents, in SQLite.
///
/// Blocks on the disk; not to be called on a loop. One writer (the store's queue), any number of readers.
final class CacheIndex: Sendable {
    let path: String
    private let database: DatabasePool

    init(path: String) throws(StoreError) {
        self.path = path
        var configuration = Configuration()
        configuration.label = "index"
        configuration.maximumReaderCount = 4
        // Somebody looks into the index with another program.
        configuration.busyMode = .timeout(5)
        configuration.prepareDatabase { db in
            // The log is bounded, as it counts against the limit. Readers and writer share a small page cache.
            try db.execute(sql: "PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 256; PRAGMA journal_size_limit = 1048576; PRAGMA cache_size = -2000")
        }
        database = try Self.attempt {
            let pool = try DatabasePool(path: path, configuration: configuration)
            try Self.migrator.migrate(pool)
            return pool
        }
    }

    private static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1: resources, generations, extents") { db in
            try db.execute(sql: """
                CREATE TABLE resource (
                    id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, url TEXT NOT NULL,
                    pinned INTEGER NOT NULL DEFAULT 0, hits INTEGER NOT NULL DEFAULT 0, last_access INTEGER NOT NULL DEFAULT 0);
                CREATE TABLE generation (
                    id INTEGER PRIMARY KEY, resource INTEGER NOT NULL UNIQUE REFERENCES resource(id) ON DELETE CASCADE,
                    length INTEGER NOT NULL, status INTEGER NOT NULL, fields TEXT NOT NULL, final_url TEXT NOT NULL,
                    chunk_size INTEGER NOT NULL, stored_at INTEGER NOT NULL);
                CREATE TABLE extent (
                    generation INTEGER NOT NULL REFERENCES generation(id) ON DELETE CASCADE, ordinal INTEGER NOT NULL,
                    present INTEGER NOT NULL, checksums BLOB NOT NULL, last_access INTEGER NOT NULL, session INTEGER NOT NULL,
                    PRIMARY KEY (generation, ordinal)) WITHOUT ROWID;
                CREATE INDEX extent_last_access ON extent(last_access);
                CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
                """)
        }
        return migrator
    }

    /// Runs statements against the database; its errors become the store's.
    private static func attempt<Value>(_ body: () throws -> Value) throws(StoreError) -> Value {
        do { return try body() } catch let error as StoreError { throw error } catch { throw .index(detail: "\(error)") }
    }

    func close() throws(StoreError) {
        try Self.attempt {
            _ = try database.writeWithoutTransaction { try $0.checkpoint(.truncate) }
            try database.close()
        }
    }

    /// What the index and its log take on the disk.
    var allocatedBytes: Int64 {
        ["", "-wal", "-shm"].reduce(0) { sum, suffix in
            var info = stat()
            return stat(path + suffix, &info) == 0 ? sum + Int64(info.st_blocks) * 512 : sum
        }
    }

    // MARK: Numbers about the whole

    enum Meta: String {
        /// The session that is running or ran last.
        case session
        /// Whether that session ended in order.
        case isClean = "clean"
        /// What was written in this session or before is verified before it is served.
        case suspectSession = "suspect_session"
        /// Allocated bytes of data at the last checkpoint.
        case dataBytes = "data_bytes"
    }

    func meta(_ name: Meta) throws(StoreError) -> Int64? {
        try Self.attempt { try database.read { try Int64.fetchOne($0, sql: "SELECT value FROM meta WHERE name = ?", arguments: [name.rawValue]) } }
    }

    func setMeta(_ values: [(Meta, Int64)]) throws(StoreError) {
        try Self.attempt { try database.write { for (name, value) in values { try Self.setMeta(name, value, in: $0) } } }
    }

    private static func setMeta(_ name: Meta, _ value: Int64, in db: Database) throws {
        try db.cachedStatement(sql: "INSERT OR REPLACE INTO meta VALUES (?, ?)").execute(arguments: [name.rawValue, value])
    }

    // MARK: Generations

    struct GenerationRow: Sendable {
        let id: GenerationID
        let head: GenerationHead
        let length: Int64
        let geometry: ChunkGeometry
    }

    struct ExtentRow: Sendable {
        let ordinal: Int
        let present: Presence
        let lastAccess: Int64
        /// The session in which it was written or last verified.
        let session: Int64
    }

    func generation(of key: CacheKey) throws(StoreError) -> GenerationRow? {
        try Self.attempt {
            // A single statement needs no transaction around it.
            try database.unsafeRead { db in
                let sql = "SELECT g.* FROM resource r JOIN generation g ON g.resource = r.id WHERE r.key = ?"
                guard let row = try Row.fetchOne(db.cachedStatement(sql: sql), arguments: [key.text]) else { return nil }
                return try Self.generationRow(row)
            }
        }
    }

    private static func generationRow(_ row: Row) throws -> GenerationRow {
        let fields = try JSONDecoder().decode([[String]].self, from: Data((row["fields"] as String).utf8))
        let chunkSize: Int64 = row["chunk_size"]
        guard let geometry = ChunkGeometry(chunkSize: chunkSize) else { throw StoreError.index(detail: "a chunk size of \(chunkSize)") }
        let head = GenerationHead(
            status: row["status"], fields: FieldLines(fields.filter { $0.count == 2 }.map { FieldLines.Line(name: $0[0], value: $0[1]) }),
            finalURL: row["final_url"], storedAt: row["stored_at"])
        return GenerationRow(id: GenerationID(value: UInt64(row["id"] as Int64)), head: head, length: row["length"], geometry: geometry)
    }

    /// The extents of a generation; nil where it is gone.
    func extents(of id: GenerationID) throws(StoreError) -> [ExtentRow]? {
        try Self.attempt {
            try database.read { db in
                let identifier = Int64(id.value)
                guard try Bool.fetchOne(db, sql: "SELECT 1 FROM generation WHERE id = ?", arguments: [identifier]) != nil else { return nil }
                let sql = "SELECT ordinal, present, last_access, session FROM extent WHERE generation = ?"
                return try Row.fetchAll(db.cachedStatement(sql: sql), arguments: [identifier]).map { row in
                    ExtentRow(ordinal: row[0], present: Presence(bits: UInt64(bitPattern: row[1])), lastAccess: row[2], session: row[3])
                }
            }
        }
    }

    /// The checksums of an extent's chunks, by bit; 0 where none is known.
    func checksums(of id: GenerationID, ordinal: Int) throws(StoreError) -> [UInt64]? {
        try Self.attempt {
            try database.read { db in
                let sql = "SELECT checksums FROM extent WHERE generation = ? AND ordinal = ?"
                return try Data.fetchOne(db.cachedStatement(sql: sql), arguments: [Int64(id.value), ordinal]).map(Self.unpack)
            }
        }
    }

    /// Length and chunk size of a generation; nil where it is not known.
    func shape(of id: GenerationID) throws(StoreError) -> (length: Int64, geometry: ChunkGeometry)? {
        try Self.attempt {
            try database.read { db in
                let row = try Row.fetchOne(db, sql: "SELECT length, chunk_size FROM generation WHERE id = ?", arguments: [Int64(id.value)])
                return row.flatMap { row in ChunkGeometry(chunkSize: row[1]).map { (row[0], $0) } }
            }
        }
    }

    // MARK: Checkpoint

    /// What a checkpoint tells about a generation.
    struct Update: Sendable {
        let id: GenerationID
        let key: CacheKey
        let head: GenerationHead
        let length: Int64
        let chunkSize: Int64
        let hits: Int64
        var extents: [ExtentUpdate]
    }

    struct ExtentUpdate: Sendable {
        let ordinal: Int
        let present: Presence
        /// New checksums, by bit.
        let checksums: [Int: UInt64]
        let lastAccess: Int64
        /// Whether all of the extent is verified, and so belongs to this session.
        let isVerified: Bool
    }

    /// - Returns: older generations whose rows went, as a resource has one.
    func save(_ updates: [Update], session: Int64, dataBytes: Int64) throws(StoreError) -> [GenerationID] {
        try Self.attempt {
            try database.write { db in
                let replaced = try updates.flatMap { try Self.save($0, session: session, in: db) }
                try Self.setMeta(.dataBytes, dataBytes, in: db)
                return replaced
            }
        }
    }

    private static func save(_ update: Update, session: Int64, in db: Database) throws -> [GenerationID] {
        let lastAccess = update.extents.map(\.lastAccess).max() ?? 0
        let resource = try Int64.fetchOne(
            db.cachedStatement(sql: """
                INSERT INTO resource (key, url, hits, last_access) VALUES (?1, ?1, ?2, ?3)
                ON CONFLICT(key) DO UPDATE SET hits = hits + ?2, last_access = max(last_access, ?3) RETURNING id
                """), arguments: [update.key.text, update.hits, lastAccess])
        let fields = String(decoding: try JSONEncoder().encode(update.head.fields.lines.map { [$0.name, $0.value] }), as: UTF8.self)
        let identifier = Int64(update.id.value)
        // A resource has one current generation: an older one's rows go.
        let replaced = try Int64.fetchAll(
            db.cachedStatement(sql: "DELETE FROM generation WHERE resource = ? AND id != ? RETURNING id"), arguments: [resource, identifier])
        try db.cachedStatement(sql: "INSERT OR IGNORE INTO generation VALUES (?, ?, ?, ?, ?, ?, ?, ?)").execute(arguments: [
            identifier, resource, update.length, update.head.status, fields, update.head.finalURL, update.chunkSize, update.head.storedAt,
        ])
        for extent in update.extents { try save(extent, of: identifier, session: session, in: db) }
        return replaced.map { GenerationID(value: UInt64($0)) }
    }

    private static func save(_ extent: ExtentUpdate, of generation: Int64, session: Int64, in db: Database) throws {
        guard !extent.present.isEmpty else {
            return try db.cachedStatement(sql: "DELETE FROM extent WHERE generation = ? AND ordinal = ?").execute(arguments: [generation, extent.ordinal])
        }
        let known = try Row.fetchOne(
            db.cachedStatement(sql: "SELECT checksums, session FROM extent WHERE generation = ? AND ordinal = ?"), arguments: [generation, extent.ordinal])
        var checksums = known.map { unpack($0[0]) } ?? Array(repeating: 0, count: ChunkGeometry.chunksPerExtent)
        for (bit, checksum) in extent.checksums { checksums[bit] = checksum }
        let written = extent.isVerified ? session : (known?[1] ?? session)
        try db.cachedStatement(sql: "INSERT OR REPLACE INTO extent VALUES (?, ?, ?, ?, ?, ?)").execute(arguments: [
            generation, extent.ordinal, Int64(bitPattern: extent.present.bits), pack(checksums), extent.lastAccess, written,
        ])
    }

    private static func pack(_ checksums: [UInt64]) -> Data {
        checksums.map(\.littleEndian).withUnsafeBytes { Data($0) }
    }

    private static func unpack(_ data: Data) -> [UInt64] {
        var checksums = [UInt64](repeating: 0, count: ChunkGeometry.chunksPerExtent)
        _ = checksums.withUnsafeMutableBytes { data.copyBytes(to: $0) }
        return checksums.map(UInt64.init(littleEndian:))
    }

    // MARK: Eviction

    struct Victim: Sendable {
        let generation: GenerationID
        let ordinal: Int
        let lastAccess: Int64
        let present: Presence
        let length: Int64
        let geometry: ChunkGeometry
    }

    /// The least recently read extents that are not pinned, after a place in that order. The cost does not depend on how many there are.
    func leastRecent(after place: (lastAccess: Int64, generation: GenerationID?, ordinal: Int), limit: Int) throws(StoreError) -> [Victim] {
        try Self.attempt {
            try database.read { db in
                let sql = """
                    SELECT e.generation, e.ordinal, e.last_access, e.present, g.length, g.chunk_size FROM extent e INDEXED BY extent_last_access
                    JOIN generation g ON g.id = e.generation JOIN resource r ON r.id = g.resource
                    WHERE (e.last_access, e.generation, e.ordinal) > (?, ?, ?) AND r.pinned = 0
                    ORDER BY e.last_access, e.generation, e.ordinal LIMIT ?
                    """
                let from = place.generation.map { Int64($0.value) } ?? -1
                return try Row.fetchAll(db.cachedStatement(sql: sql), arguments: [place.lastAccess, from, place.ordinal, limit]).compactMap { row in
                    ChunkGeometry(chunkSize: row[5]).map {
                        Victim(
                            generation: GenerationID(value: UInt64(row[0] as Int64)), ordinal: row[1], lastAccess: row[2],
                            present: Presence(bits: UInt64(bitPattern: row[3])), length: row[4], geometry: $0)
                    }
                }
            }
        }
    }

    /// Forgets extents, and generations and resources that have none left.
    /// - Returns: the generations that are gone.
    func remove(_ extents: [(generation: GenerationID, ordinal: Int)]) throws(StoreError) -> [GenerationID] {
        try Self.attempt {
            try database.write { db in
                for extent in extents {
                    try db.cachedStatement(sql: "DELETE FROM extent WHERE generation = ? AND ordinal = ?")
                        .execute(arguments: [Int64(extent.generation.value), extent.ordinal])
                }
                return try Set(extents.map(\.generation)).filter { try Self.removeIfEmpty($0, in: db) }
            }
        }
    }

    private static func removeIfEmpty(_ id: GenerationID, in db: Database) throws -> Bool {
        let identifier = Int64(id.value)
        guard try Bool.fetchOne(db.cachedStatement(sql: "SELECT 1 FROM extent WHERE generation = ? LIMIT 1"), arguments: [identifier]) == nil else { return false }
        try db.cachedStatement(sql: "DELETE FROM resource WHERE pinned = 0 AND id = (SELECT resource FROM generation WHERE id = ?)")
            .execute(arguments: [identifier])
        return db.changesCount > 0
    }

    /// Forgets a generation and its extents.
    /// - Returns: whether it was known.
    func remove(_ id: GenerationID) throws(StoreError) -> Bool {
        try Self.attempt {
            try database.write { db in
                try db.execute(sql: "DELETE FROM generation WHERE id = ?", arguments: [Int64(id.value)])
                return db.changesCount > 0
            }
        }
    }
}
