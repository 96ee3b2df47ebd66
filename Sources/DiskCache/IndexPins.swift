import CachePolicy
import GRDB
import HTTPModel

extension IndexPins {
    /// Why a resource is kept.
    struct Kept: Sendable {
        var isPinned = false
        var isDownloaded = false
        /// Whether a person pinned it, or ordered it to stay.
        var isByHand = false

        init() {}

        /// An index of an earlier version has fewer columns.
        init(_ row: StoredRow) {
            func isSet(_ column: String) -> Bool { (try? row.flag(column)) ?? false }
            (isPinned, isDownloaded, isByHand) = (isSet("pinned"), isSet("downloaded"), isSet("by_hand"))
        }
    }
}

/// Which resources are kept: pinned or downloaded ones.
struct IndexPins: Sendable {
    let database: IndexDatabase

    /// Notes that a person has put a resource there.
    func noteByHand(_ key: CacheKey) throws(StoreError) {
        try database.write {
            try $0.execute(sql: "UPDATE resource SET by_hand = 1 WHERE key = ?", arguments: [key.text])
        }
    }

    /// Takes the extents of resources out of the order of eviction, or puts them back.
    /// - Parameter isByHand: whether a person does so. Such a pin stays one, whatever else pins later.
    /// - Returns: whether any of them has a row.
    func setPinned(_ isPinned: Bool, _ keys: [CacheKey], isByHand: Bool = false) throws(StoreError) -> Bool {
        let isKnown = try database.write { db in
            var changes = 0
            for key in keys {
                let sql = "UPDATE resource SET pinned = ?1, by_hand = ?1 AND (by_hand OR ?2) WHERE key = ?3"
                try db.cachedStatement(sql: sql).execute(arguments: [isPinned, isByHand, key.text])
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

    /// Uses small transactions, whether there are many generations or one with many extents.
    func setPinned(_ isPinned: Bool, extentsOf ids: [GenerationID]) throws(StoreError) {
        var rest = ids[...]
        while !rest.isEmpty {
            let done = try database.write { db in
                var (done, rows) = (0, 0)
                for id in rest where rows < IndexDatabase.rowsAtOnce {
                    let changed = try Self.setPinned(isPinned, someExtentsOf: id, in: db)
                    rows += changed
                    // After a full batch there may be more.
                    if changed < IndexDatabase.rowsAtOnce { done += 1 }
                }
                return done
            }
            rest = rest.dropFirst(done)
        }
    }

    /// Ordinals are compared within the database: a damaged one would become another number when read, and its row
    /// would never change.
    /// - Returns: the number of changed rows.
    private static func setPinned(_ isPinned: Bool, someExtentsOf id: GenerationID, in db: Database) throws -> Int {
        let sql = """
            UPDATE extent SET pinned = ?1 WHERE generation = ?2
            AND ordinal IN (SELECT ordinal FROM extent WHERE generation = ?2 AND pinned != ?1 LIMIT ?3)
            """
        try db.cachedStatement(sql: sql).execute(arguments: [isPinned, id, IndexDatabase.rowsAtOnce])
        return db.changesCount
    }

    /// Marks resources as downloaded, in one transaction.
    func setDownloaded(_ keys: [CacheKey]) throws(StoreError) {
        try database.write { db in
            let sql = "UPDATE resource SET downloaded = 1 WHERE key = ? AND downloaded = 0"
            for key in keys { try db.cachedStatement(sql: sql).execute(arguments: [key.text]) }
        }
    }

    /// Why a resource is kept.
    func kept(_ key: CacheKey) throws(StoreError) -> Kept {
        try database.readOne { db in
            let row = try Row.fetchOne(
                db.cachedStatement(sql: "SELECT pinned, downloaded, by_hand FROM resource WHERE key = ?"),
                arguments: [key.text])
            return row.map { Kept(StoredRow($0)) } ?? Kept()
        }
    }

    /// Whether a resource is pinned or downloaded.
    func isKept(_ key: CacheKey) throws(StoreError) -> Bool {
        let kept = try kept(key)
        return kept.isPinned || kept.isDownloaded
    }

    /// Restores the pin and the download mark of a resource.
    func restore(_ kept: Kept, of key: CacheKey) throws(StoreError) {
        if kept.isPinned { _ = try setPinned(true, [key], isByHand: kept.isByHand) }
        if kept.isDownloaded { try setDownloaded([key]) }
    }

    /// The keys of pinned resources.
    func pinned() throws(StoreError) -> [CacheKey] {
        try database.read {
            try String.fetchAll($0, sql: "SELECT key FROM resource WHERE pinned = 1").map(CacheKey.init(text:))
        }
    }

    /// Pins all extents of pinned resources: a crash between the transactions of a pin may have left some out.
    func completeExtents() throws(StoreError) {
        let ids = try database.read { db in
            let sql = "SELECT g.id FROM resource r JOIN generation g ON g.resource = r.id WHERE r.pinned = 1"
            return try GenerationID.fetchAll(db, sql: sql)
        }
        try setPinned(true, extentsOf: ids)
    }

    /// The cached bytes of pinned resources.
    func pinnedBytes() throws(StoreError) -> Int64 {
        // `sum` fails if damaged values overflow.
        let bytes = try database.readOne {
            try Double.fetchOne(
                $0, sql: "SELECT total(min(max(cached, 0), ?)) FROM resource WHERE pinned = 1",
                arguments: [ChunkGeometry.longestBody]) ?? 0
        }
        return min(max(Int64(saturating: bytes), 0), 1 << 60)
    }
}
