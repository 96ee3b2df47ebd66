import CachePolicy
import Foundation
import GRDB
import HTTPModel

/// Recovers from a damaged index.
///
/// The damaged index is set aside (`index.damaged.sqlite`), and a new one takes over the rows that can still be read;
/// their chunks are verified before they are served. A crash meanwhile does no harm: the next start continues from the
/// database that was set aside.
enum IndexDamage {
    static func asidePath(_ path: String) -> String { path.replacing(".sqlite", with: ".damaged.sqlite") }

    /// - Throws: `.damagedIndex` if the database is damaged.
    static func check(_ path: String) throws(StoreError) {
        if FileSystem.exists(IndexDatabase.damageMark(path)) {
            throw .damagedIndex(path: path, detail: "damage was found while it was in use")
        }
        guard FileSystem.exists(path) else { return }
        do {
            let queue = try DatabaseQueue(path: FileSystem.databaseName(path))
            defer { try? queue.close() }
            try DatabaseDamage.check(queue, path)
        } catch {
            guard DatabaseDamage.isMeant(by: error, path) else { throw .index(detail: "\(error)") }
            throw .damagedIndex(path: path, detail: DatabaseDamage.reason(error))
        }
    }

    static func removeFiles(_ path: String) throws(StoreError) {
        for file in FileSystem.databaseFiles(path) + [IndexDatabase.damageMark(path)] { try FileSystem.remove(file) }
    }

    /// Sets a damaged database aside, with its log.
    static func setAside(_ path: String) throws(StoreError) {
        let aside = asidePath(path)
        try removeFiles(aside)
        try FileSystem.remove(path + "-shm")
        if FileSystem.exists(path + "-wal") { try FileSystem.rename(path + "-wal", to: aside + "-wal") }
        if FileSystem.exists(path) { try FileSystem.rename(path, to: aside) }
        try FileSystem.remove(IndexDatabase.damageMark(path))
    }

    /// Reads a damaged database, one resource at a time. Skips damaged rows, and the extents after the first one that
    /// cannot be read.
    static func rescue(_ path: String, _ take: (IndexSaving.Update, IndexPins.Kept) throws -> Void) rethrows {
        guard let queue = open(path) else { return }
        defer { try? queue.close() }
        // Read from both ends, because reading stops at the damage.
        let ids = ["ASC", "DESC"].reduce(into: Set<Int64>()) { ids, direction in
            try? queue.read { db in
                let cursor = try Int64.fetchCursor(db, sql: "SELECT rowid FROM generation ORDER BY rowid \(direction)")
                while let id = try cursor.next() { ids.insert(id) }
            }
        }
        for id in ids {
            guard let (update, kept) = (try? queue.read { try read(id, in: $0) }) ?? nil else { continue }
            try take(update, kept)
        }
    }

    /// The parts of a damaged database that several presentations have, as far as it can be read.
    static func furtherWholes(_ path: String) -> [(part: CacheKey, whole: CacheKey)] {
        guard FileSystem.exists(path), let queue = open(path) else { return [] }
        defer { try? queue.close() }
        let sql = """
            SELECT p.key, w.key FROM further_whole JOIN resource p ON p.id = part JOIN resource w ON w.id = whole
            """
        let rows = try? queue.read { try Row.fetchAll($0, sql: sql).map { StoredRow($0, names: ["part", "whole"]) } }
        return (rows ?? []).compactMap { row in
            try? (CacheKey(text: row.text("part")), CacheKey(text: row.text("whole")))
        }
    }

    private static func open(_ path: String) -> DatabaseQueue? {
        var configuration = Configuration()
        // Allows reading even if the definition of a table or an index is damaged.
        configuration.prepareDatabase { try $0.execute(sql: "PRAGMA writable_schema = ON") }
        return try? DatabaseQueue(path: FileSystem.databaseName(path), configuration: configuration)
    }

    /// Reads columns by position, because their names may be damaged.
    private static func read(_ id: Int64, in db: Database) throws -> (IndexSaving.Update, IndexPins.Kept)? {
        func row(_ table: String, _ id: Int64, _ names: [String]) throws -> StoredRow? {
            try Row.fetchOne(db, sql: "SELECT * FROM \(table) WHERE rowid = ?", arguments: [id]).map {
                StoredRow($0, names: names)
            }
        }
        guard let generation = try row("generation", id, generationColumns) else { return nil }
        guard let resource = try row("resource", try generation.integer("resource"), resourceColumns) else {
            return nil
        }
        var found = try IndexRows.generationRow(generation, of: CacheKey(text: try resource.text("key")))
        // An index of an earlier version has no `part_of`.
        if let whole = try? resource.integer("part_of") {
            found.whole = (try row("resource", whole, resourceColumns)).flatMap { try? CacheKey(text: $0.text("key")) }
        }
        var extents: [IndexRows.ExtentRow] = []
        do {
            guard let name = try String.fetchOne(db, sql: "SELECT name FROM pragma_table_info('extent') WHERE cid = 0")
            else { return nil }
            let condition = "\(name.quotedDatabaseIdentifier) = ?"
            let cursor = try Row.fetchCursor(db, sql: "SELECT * FROM extent WHERE \(condition)", arguments: [id])
            while let row = try cursor.next() {
                if let extent = try? IndexRows.extentRow(StoredRow(row, names: extentColumns), found) {
                    extents.append(extent)
                }
            }
        } catch is DatabaseError {
            // Keep the extents read so far.
        }
        return (IndexSaving.Update(found, extents), IndexPins.Kept(resource))
    }

    private static let resourceColumns =
        ["id", "key", "pinned", "hits", "last_access", "cached", "downloaded"] + IndexDatabase.partsColumns + [
            "played", "title", "category", "by_hand",
        ]
    private static let generationColumns = [
        "id", "resource", "length", "status", "fields", "final_url", "chunk_size", "stored_at", "overhead",
        "validated_at", "initial_age", "selecting", "is_public", "read_ranges",
    ]
    private static let extentColumns = [
        "generation", "ordinal", "present", "checksums", "last_access", "session", "pinned",
    ]
}
