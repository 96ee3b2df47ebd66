import CachePolicy
import GRDB
import HTTPModel

extension IndexParts {
    /// The row of a part.
    package struct Part: Sendable {
        /// The ID of its resource's row.
        let id: Int64
        package let key: CacheKey
        /// nil if nothing of it is cached.
        let generation: GenerationID?
        /// In bytes, as is `cached`.
        package let length: Int64
        package let cached: Int64
        package let isPinned: Bool
        let hits: Int64
        /// Microseconds since 1970.
        let lastAccess: Int64
        /// The ID of the row of its first whole.
        fileprivate let whole: Int64?
        /// Whether another whole that is pinned or downloaded has it, too; then, whether one of these is pinned.
        let isKeptElsewhere, isPinnedElsewhere: Bool

        package var isComplete: Bool { cached == length }
    }

    /// A page of a presentation's parts.
    struct Page: Sendable {
        /// The parts whose rows are sound.
        let parts: [Part]
        /// The ID of the last row, damaged or not, after which the next page begins; nil after the last row.
        let last: Int64?
    }
}

/// Which resources are parts of which presentation (`IndexDatabase.partsSchema`).
package struct IndexParts: Sendable {
    let database: IndexDatabase

    /// The number of parts handled in one transaction.
    static let pageSize = 128

    // MARK: Looking up

    /// A page of a presentation's parts, in the order of their rows' IDs.
    func page(of whole: CacheKey, after id: Int64, limit: Int = pageSize) throws(StoreError) -> Page {
        try database.readOne { db in
            let find = "SELECT id FROM resource WHERE key = ?"
            guard let wholeID = try Int64.fetchOne(db.cachedStatement(sql: find), arguments: [whole.text]) else {
                return Page(parts: [], last: nil)
            }
            let sql = """
                SELECT p.id, p.key, p.cached, p.pinned, p.hits, p.last_access, p.part_of, g.id AS generation, g.length,
                    (SELECT max(w.pinned) FROM resource w WHERE w.id <> ?1 AND \(Self.isKept("w"))
                        AND w.id IN (SELECT p.part_of UNION ALL SELECT whole FROM further_whole WHERE part = p.id)
                    ) AS elsewhere
                FROM (
                    SELECT id FROM resource WHERE part_of = ?1 AND id > ?2
                    UNION ALL SELECT part FROM further_whole WHERE whole = ?1 AND part > ?2 ORDER BY 1 LIMIT ?3
                ) JOIN resource p USING (id) LEFT JOIN generation g ON g.resource = p.id ORDER BY p.id
                """
            let rows = try Row.fetchAll(db.cachedStatement(sql: sql), arguments: [wholeID, id, limit]).map {
                StoredRow($0)
            }
            return Page(
                parts: rows.compactMap { try? Self.part($0) }, last: rows.last.flatMap { try? $0.integer("id") })
        }
    }

    private static func part(_ row: StoredRow) throws(RowDamage) -> Part {
        let length = (try? row.integer("length", in: 0...ChunkGeometry.longestBody)) ?? 0
        return Part(
            id: try row.integer("id"), key: CacheKey(text: try row.text("key")),
            generation: try? row.generation("generation"), length: length,
            // no trap: a length is not negative
            cached: (try? row.integer("cached", in: 0...length)) ?? 0, isPinned: (try? row.flag("pinned")) ?? false,
            hits: (try? row.integer("hits", in: 0...1 << 60)) ?? 0,
            lastAccess: (try? row.integer("last_access")) ?? 0, whole: try? row.integer("part_of"),
            isKeptElsewhere: (try? row.integer("elsewhere")) != nil,
            isPinnedElsewhere: (try? row.flag("elsewhere")) ?? false)
    }

    /// The presentation that a resource is a part of; of several, the first.
    func whole(of key: CacheKey) throws(StoreError) -> CacheKey? {
        try database.readOne { try Self.whole(of: key, in: $0) }
    }

    private static func whole(of key: CacheKey, in db: Database) throws -> CacheKey? {
        let sql = "SELECT w.key FROM resource p JOIN resource w ON w.id = p.part_of WHERE p.key = ?"
        return try String.fetchOne(db.cachedStatement(sql: sql), arguments: [key.text]).map(CacheKey.init(text:))
    }

    /// The cached bytes of the presentation's parts that are not pinned, without those that another has, too.
    func evictableBytes(of whole: CacheKey) throws(StoreError) -> Int64 {
        let sql = """
            SELECT total(min(max(cached, 0), ?)) FROM resource
            WHERE part_of = (SELECT id FROM resource WHERE key = ?) AND pinned = 0
            """
        let bytes = try database.readOne {
            try Double.fetchOne(
                $0.cachedStatement(sql: sql), arguments: [ChunkGeometry.longestBody, whole.text]) ?? 0
        }
        return min(max(Int64(saturating: bytes), 0), 1 << 60)
    }

    // MARK: Joining

    /// Makes resources parts of a presentation, together with their own parts. Skips resources without a row, and the
    /// presentation itself.
    /// - Returns: those that become pinned because the presentation is.
    func join(_ keys: [CacheKey], to whole: CacheKey) throws(StoreError) -> [CacheKey] {
        var pinned: [CacheKey] = []
        for start in stride(from: 0, to: keys.count, by: Self.pageSize) {
            let batch = keys[start..<min(start + Self.pageSize, keys.count)]
            for key in batch { pinned += try moveParts(of: key, to: whole) }
            pinned += try database.write { db in try batch.filter { try Self.join($0, to: whole, in: db) } }
        }
        if !pinned.isEmpty { try database.write { try database.countPinChange(in: $0) } }
        return pinned
    }

    /// - Returns: whether it becomes pinned.
    private static func join(_ key: CacheKey, to whole: CacheKey, in db: Database) throws -> Bool {
        let sql = "SELECT id, part_of, pinned FROM resource WHERE key = ?"
        guard let row = try Row.fetchOne(db.cachedStatement(sql: sql), arguments: [key.text]).map({ StoredRow($0) })
        else { return false }
        let id = try row.integer("id"), present = try? row.integer("part_of")
        guard key != whole, let wholeID = try Self.whole(whole, of: id, in: db), present != wholeID else {
            return false
        }
        // It is a presentation of its own, whose parts have become this one's, too.
        if present == nil, (try? row.flag("pinned")) == true, try hasParts(id, in: db) { return false }
        return try join(id, from: present, to: wholeID, in: db) && (try? row.flag("pinned")) != true
    }

    /// Moves the parts of a resource that is about to become a part itself: first, so that no part ever has parts.
    /// Those of one that is pinned stay its own, too.
    private func moveParts(of key: CacheKey, to whole: CacheKey) throws(StoreError) -> [CacheKey] {
        var (pinned, place) = ([CacheKey](), 0 as Int64)
        while true {
            let some = try page(of: key, after: place)
            guard let last = some.last else { return pinned }
            place = last
            guard !some.parts.isEmpty else { continue }
            let moved: [CacheKey]? = try database.write { db in
                let sql = "SELECT id, pinned FROM resource WHERE key = ?"
                let row = try Row.fetchOne(db.cachedStatement(sql: sql), arguments: [key.text]).map { StoredRow($0) }
                let id = try row?.integer("id"), isPinned = (try? row?.flag("pinned")) ?? false
                // nil if it is the whole itself, or if the whole is one of its parts: there is nothing to move.
                guard let wholeID = try Self.whole(whole, of: id, in: db) else { return nil }
                let leave = try db.cachedStatement(sql: "DELETE FROM further_whole WHERE whole = ? AND part = ?")
                return try some.parts.filter { part in
                    guard part.id != wholeID else { return false }
                    let present = part.whole == id && !isPinned ? nil : part.whole
                    if present != nil, !isPinned { try leave.execute(arguments: [id, part.id]) }
                    return try Self.join(part.id, from: present, to: wholeID, in: db) && !part.isPinned
                }.map(\.key)
            }
            guard let moved else { return pinned }
            pinned += moved
        }
    }

    /// The row of a presentation, created if there is none; if the presentation is a part itself, the row of its whole.
    /// - Parameter part: the row that is about to become its part.
    /// - Returns: nil if that is the same row.
    static func whole(_ key: CacheKey, of part: Int64?, in db: Database) throws -> Int64? {
        let sql = "SELECT coalesce(part_of, id) FROM resource WHERE key = ?"
        let known = try Int64.fetchOne(db.cachedStatement(sql: sql), arguments: [key.text])
        if let known { return known == part ? nil : known }
        try db.cachedStatement(sql: "INSERT INTO resource (key) VALUES (?)").execute(arguments: [key.text])
        return db.lastInsertedRowID
    }

    static func hasParts(_ id: Int64, in db: Database) throws -> Bool {
        let sql = """
            SELECT 1 FROM resource WHERE part_of = ?1 UNION ALL SELECT 1 FROM further_whole WHERE whole = ?1 LIMIT 1
            """
        return try Bool.fetchOne(db.cachedStatement(sql: sql), arguments: [id]) ?? false
    }

    private static func isKept(_ id: Int64, in db: Database) throws -> Bool {
        let sql = "SELECT \(isKept("r")) FROM resource r WHERE id = ?"
        return try Bool.fetchOne(db.cachedStatement(sql: sql), arguments: [id]) ?? false
    }

    /// Whether a presentation is pinned, or was downloaded and is not evicted yet.
    private static func isKept(_ row: String) -> String {
        "(\(row).pinned = 1 OR \(row).downloaded = 1 AND EXISTS (SELECT 1 FROM generation WHERE resource = \(row).id))"
    }

    /// Makes a row without parts a part of a whole. Of another whole that is pinned or downloaded it stays a part, too.
    /// - Parameter present: its whole until now; nil if it has none, or is to leave it.
    /// - Returns: whether the whole is pinned, and the part with it.
    static func join(_ id: Int64, from present: Int64?, to whole: Int64, in db: Database) throws -> Bool {
        let stays = try present.map { try $0 != whole && isKept($0, in: db) } ?? false
        let join =
            stays
            ? "INSERT OR IGNORE INTO further_whole (whole, part) VALUES (?, ?)"
            : "UPDATE resource SET part_of = ? WHERE id = ?"
        try db.cachedStatement(sql: join).execute(arguments: [whole, id])
        let sql = "SELECT pinned FROM resource WHERE id = ?"
        guard try Bool.fetchOne(db.cachedStatement(sql: sql), arguments: [whole]) == true else { return false }
        try db.cachedStatement(sql: "UPDATE resource SET pinned = 1 WHERE id = ?").execute(arguments: [id])
        try db.cachedStatement(
            sql: """
                UPDATE extent SET pinned = 1
                WHERE pinned = 0 AND generation IN (SELECT id FROM generation WHERE resource = ?)
                """
        ).execute(arguments: [id])
        return true
    }

    // MARK: Changing many

    /// Takes the extents of a page of parts out of the order of eviction, or puts them back.
    func setPinned(_ isPinned: Bool, _ parts: [Part]) throws(StoreError) {
        let pins = IndexPins(database: database)
        try database.write { db in
            for part in parts {
                let sql = "UPDATE resource SET pinned = ?1, by_hand = ?1 AND by_hand WHERE id = ?2"
                try db.cachedStatement(sql: sql).execute(arguments: [isPinned, part.id])
            }
            try database.countPinChange(in: db)
        }
        // Most parts have a single extent: use as few transactions as possible.
        try pins.setPinned(isPinned, extentsOf: parts.compactMap(\.generation))
    }

    /// Leaves parts to the other presentations that keep them.
    /// - Returns: the presentation that each of them belongs to from now on.
    func leave(_ parts: [Part], of whole: CacheKey) throws(StoreError) -> [(part: CacheKey, whole: CacheKey?)] {
        let move = """
            UPDATE resource SET part_of = (
                SELECT w.id FROM further_whole f JOIN resource w ON w.id = f.whole
                WHERE f.part = ?1 AND \(Self.isKept("w")) ORDER BY w.pinned DESC, w.id LIMIT 1)
            WHERE id = ?1 AND part_of = (SELECT id FROM resource WHERE key = ?2)
            """
        let leave = "DELETE FROM further_whole WHERE part = ?1 AND whole = (SELECT id FROM resource WHERE key = ?2)"
        return try database.write { db in
            try parts.map { part in
                for sql in [move, leave] {
                    try db.cachedStatement(sql: sql).execute(arguments: [part.id, whole.text])
                }
                return (part.key, try Self.whole(of: part.key, in: db))
            }
        }
    }

    /// Pinned presentations.
    func pinnedWholes() throws(StoreError) -> [CacheKey] {
        try database.read {
            let sql = """
                SELECT key FROM resource
                WHERE pinned = 1 AND (parts > 0 OR EXISTS (SELECT 1 FROM further_whole WHERE whole = resource.id))
                """
            return try String.fetchAll($0, sql: sql).map(CacheKey.init(text:))
        }
    }

    /// Counts parts as read at a time.
    /// - Parameter time: microseconds since 1970.
    func touch(_ parts: [Part], at time: Int64) throws(StoreError) {
        try database.write { db in
            for part in parts {
                try db.cachedStatement(sql: "UPDATE resource SET last_access = ? WHERE id = ?").execute(
                    arguments: [time, part.id])
                try db.cachedStatement(sql: "UPDATE extent SET last_access = ? WHERE generation = ?").execute(
                    arguments: [time, part.generation])
            }
        }
    }

    /// Moves resources to the front of the order of eviction; their order among themselves stays.
    func demote(_ keys: [CacheKey]) throws(StoreError) {
        let sets = "SET last_access = last_access - ?1 WHERE last_access > ?1"
        try database.write { db in
            for key in keys {
                try db.cachedStatement(
                    sql: """
                        UPDATE extent \(sets) AND generation IN
                            (SELECT g.id FROM resource r JOIN generation g ON g.resource = r.id WHERE r.key = ?2)
                        """
                ).execute(arguments: [AccessClock.demotion, key.text])
                try db.cachedStatement(sql: "UPDATE resource \(sets) AND key = ?2").execute(
                    arguments: [AccessClock.demotion, key.text])
            }
        }
    }
}
