import CachePolicy
import Foundation
import GRDB
import HTTPModel

/// What is done about an index that is damaged.
///
/// It is set aside (`index.damaged.sqlite`), a new one is made, and what can still be read of the old one is taken over, row by row, to
/// be verified before it is served. A crash meanwhile is no harm: the next start goes on with what was set aside.
enum IndexDamage {
    /// Larger ones are not read through at the start: what is found in the midst of work is mended at the next start.
    private static let longestCheck: Int64 = 32 << 20

    private static func markPath(_ path: String) -> String { path + ".damaged" }
    static func asidePath(_ path: String) -> String { path.replacing(".sqlite", with: ".damaged.sqlite") }

    /// Notes that damage was met in the midst of work.
    static func mark(_ path: String) {
        let descriptor = open(markPath(path), O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        if descriptor >= 0 { close(descriptor) }
    }

    /// - Throws: `.damagedIndex` where a database cannot be what it was.
    static func check(_ path: String) throws(StoreError) {
        if FileSystem.exists(markPath(path)) { throw .damagedIndex(path: path, detail: "damage was met while it was in use") }
        guard FileSystem.exists(path), FileSystem.allocatedBytes(path) <= longestCheck else { return }
        do {
            let queue = try DatabaseQueue(path: path)
            defer { try? queue.close() }
            let found = try queue.read { try String.fetchOne($0, sql: "PRAGMA quick_check(1)") }
            guard found == "ok" else {
                // The first of its lines names the database.
                throw StoreError.damagedIndex(path: path, detail: found?.split(separator: "\n").last.map(String.init) ?? "it cannot be checked")
            }
        } catch let error as StoreError {
            throw error
        } catch let error as DatabaseError where error.resultCode == .SQLITE_CORRUPT || error.resultCode == .SQLITE_NOTADB {
            throw .damagedIndex(path: path, detail: error.message ?? "\(error.resultCode)")
        } catch { throw .index(detail: "\(error)") }
    }

    static func removeFiles(_ path: String) throws(StoreError) {
        for file in CacheIndex.files(path) + [markPath(path)] { try FileSystem.remove(file) }
    }

    /// Sets a damaged database aside, its log with it.
    static func setAside(_ path: String) throws(StoreError) {
        let aside = asidePath(path)
        try removeFiles(aside)
        try FileSystem.remove(path + "-shm")
        if FileSystem.exists(path + "-wal") { try FileSystem.rename(path + "-wal", to: aside + "-wal") }
        if FileSystem.exists(path) { try FileSystem.rename(path, to: aside) }
        try FileSystem.remove(markPath(path))
    }

    /// Gives what can still be read of a damaged database, a resource at a time. Damaged rows are left out, and extents after the first
    /// that cannot be read.
    static func rescue(_ path: String, _ take: (CacheIndex.Update, _ isPinned: Bool) throws -> Void) rethrows {
        guard let queue = try? DatabaseQueue(path: path) else { return }
        defer { try? queue.close() }
        // From both ends, as reading ends where the damage begins.
        let ids = ["ASC", "DESC"].reduce(into: Set<Int64>()) { ids, direction in
            try? queue.read { db in
                let cursor = try Int64.fetchCursor(db, sql: "SELECT id FROM generation ORDER BY id \(direction)")
                while let id = try cursor.next() { ids.insert(id) }
            }
        }
        for id in ids {
            guard let (update, isPinned) = (try? queue.read { try read(id, in: $0) }) ?? nil else { continue }
            try take(update, isPinned)
        }
    }

    private static func read(_ id: Int64, in db: Database) throws -> (CacheIndex.Update, Bool)? {
        let sql = "SELECT g.*, r.key, r.pinned FROM generation g JOIN resource r ON r.id = g.resource WHERE g.id = ?"
        guard let row = try Row.fetchOne(db, sql: sql, arguments: [id]) else { return nil }
        let generation = try CacheIndex.generationRow(row)
        var extents: [CacheIndex.ExtentRow] = []
        do {
            let cursor = try Row.fetchCursor(db, sql: CacheIndex.selectExtents, arguments: [id])
            while let row = try cursor.next() {
                if let extent = CacheIndex.extentRow(row, generation) { extents.append(extent) }
            }
        } catch is DatabaseError {
            // What was read up to here is of use.
        }
        return (CacheIndex.Update(generation, extents), Int64.fromDatabaseValue(row["pinned"]) ?? 0 != 0)
    }
}
