import CachePolicy
import GRDB
import HTTPModel

extension CacheIndex {
    /// Why a resource is kept.
    struct Kept: Sendable {
        var isPinned = false
        var isDownloaded = false
    }
}

/// Which resources are kept: pinned, or downloaded by somebody.
struct IndexPins: Sendable {
    let database: IndexDatabase

    /// Keeps the extents of a resource out of the order of eviction, or puts them back.
    /// - Returns: false where it is not known.
    func setPinned(_ isPinned: Bool, _ key: CacheKey) throws(StoreError) -> Bool {
        try setPinned(isPinned, [key])
    }

    /// The same for some.
    /// - Returns: whether one of them is known.
    func setPinned(_ isPinned: Bool, _ keys: [CacheKey]) throws(StoreError) -> Bool {
        let isKnown = try database.write { db in
            var changes = 0
            for key in keys {
                try db.cachedStatement(sql: "UPDATE resource SET pinned = ? WHERE key = ?").execute(
                    arguments: [isPinned, key.text])
                changes += db.changesCount
            }
            guard changes > 0 else { return false }
            try database.countPinChange(in: db)
            return true
        }
        var ids: [GenerationID] = []
        for key in keys { ids += try IndexRows(database: database).identifiers(of: key) }
        try setPinned(isPinned, extentsOf: ids)
        return isKnown
    }

    /// In transactions that are small, whether there are many generations or one has many extents.
    func setPinned(_ isPinned: Bool, extentsOf ids: [GenerationID]) throws(StoreError) {
        var rest = ids[...]
        while !rest.isEmpty {
            let done = try database.write { db in
                var (done, rows) = (0, 0)
                for id in rest where rows < IndexSaving.rowsAtOnce {
                    let changed = try Self.setPinned(isPinned, someExtentsOf: id, in: db)
                    rows += changed
                    // That many are not all, perhaps.
                    if changed < IndexSaving.rowsAtOnce { done += 1 }
                }
                return done
            }
            rest = rest.dropFirst(done)
        }
    }

    /// Ordinals are compared where they stand: a damaged one that was read as a number would be another, and its row
    /// never change.
    /// - Returns: how many rows are no longer as they were.
    private static func setPinned(_ isPinned: Bool, someExtentsOf id: GenerationID, in db: Database) throws -> Int {
        let sql = """
            UPDATE extent SET pinned = ?1 WHERE generation = ?2
            AND ordinal IN (SELECT ordinal FROM extent WHERE generation = ?2 AND pinned != ?1 LIMIT ?3)
            """
        try db.cachedStatement(sql: sql).execute(arguments: [isPinned, id, IndexSaving.rowsAtOnce])
        return db.changesCount
    }

    /// Notes that somebody has had a resource downloaded.
    func setDownloaded(_ key: CacheKey) throws(StoreError) { try setDownloaded([key]) }

    /// The same for some, in one transaction.
    func setDownloaded(_ keys: [CacheKey]) throws(StoreError) {
        try database.write { db in
            let sql = "UPDATE resource SET downloaded = 1 WHERE key = ? AND downloaded = 0"
            for key in keys { try db.cachedStatement(sql: sql).execute(arguments: [key.text]) }
        }
    }

    /// What somebody has done to keep a resource.
    func kept(_ key: CacheKey) throws(StoreError) -> CacheIndex.Kept {
        try database.readOne { db in
            let row = try Row.fetchOne(
                db.cachedStatement(sql: "SELECT pinned, downloaded FROM resource WHERE key = ?"), arguments: [key.text]
            ).map { StoredRow($0) }
            return CacheIndex.Kept(
                isPinned: (try? row?.flag("pinned")) ?? false, isDownloaded: (try? row?.flag("downloaded")) ?? false)
        }
    }

    /// Whether somebody has pinned or downloaded a resource.
    func isKept(_ key: CacheKey) throws(StoreError) -> Bool {
        let kept = try kept(key)
        return kept.isPinned || kept.isDownloaded
    }

    /// Has a resource that came back kept as it was.
    func restore(_ kept: CacheIndex.Kept, of key: CacheKey) throws(StoreError) {
        if kept.isPinned { _ = try setPinned(true, key) }
        if kept.isDownloaded { try setDownloaded(key) }
    }

    /// Keys of pinned resources.
    func pinned() throws(StoreError) -> [CacheKey] {
        try database.read {
            try String.fetchAll($0, sql: "SELECT key FROM resource WHERE pinned = 1").map(CacheKey.init(text:))
        }
    }

    /// Has the extents of pinned resources pinned as these are: an end between the transactions of a pin has left them
    /// as they were.
    func completeExtents() throws(StoreError) {
        let ids = try database.read { db in
            let sql = "SELECT g.id FROM resource r JOIN generation g ON g.resource = r.id WHERE r.pinned = 1"
            return try GenerationID.fetchAll(db, sql: sql)
        }
        try setPinned(true, extentsOf: ids)
    }

    /// What is cached of pinned resources.
    func pinnedBytes() throws(StoreError) -> Int64 {
        // `sum` fails where damaged values exceed its range.
        let bytes = try database.readOne {
            try Double.fetchOne(
                $0, sql: "SELECT total(min(max(cached, 0), ?)) FROM resource WHERE pinned = 1",
                arguments: [Generation.longest]) ?? 0
        }
        return min(max(Int64(saturating: bytes), 0), 1 << 60)
    }
}
