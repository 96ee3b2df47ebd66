import CachePolicy
import GRDB
import HTTPModel

/// What goes, and in which order.
extension CacheIndex {
    /// An extent that may be evicted.
    struct Victim: Sendable {
        let generation: GenerationID
        let ordinal: Int
        let lastAccess: Int64
        let present: Presence
        let length: Int64
        let geometry: ChunkGeometry
    }

    /// A place in the order of last reads: the values as they stand in a row, damaged or not, as that is how the
    /// database orders them.
    struct Place: Sendable {
        private var values: [DatabaseValue]

        /// Before all rows.
        init() { values = [Int64.min.databaseValue, Int64.min.databaseValue, (-1).databaseValue] }

        fileprivate init(_ row: StoredRow, _ columns: String...) throws(RowDamage) {
            values = try columns.map { column throws(RowDamage) in try row.databaseValue(column) }
        }

        fileprivate func arguments(_ count: Int) -> StatementArguments { StatementArguments(values.prefix(count)) }

        /// Whether it lies behind another. Where the database's own order is damaged, what comes next may not, and a
        /// walk would not end.
        fileprivate func isBehind(_ other: Place, in db: Database) throws -> Bool {
            let places = Array(repeating: "?", count: values.count).joined(separator: ", ")
            return try Bool.fetchOne(
                db.cachedStatement(sql: "SELECT (\(places)) > (\(places))"),
                arguments: arguments(values.count) + other.arguments(values.count)) ?? false
        }
    }

    /// The least recently read extents that are not pinned, after a place in that order. The cost does not depend on
    /// how many there are.
    /// - Returns: the place after them, nil where there are none; and the generations among them whose rows are
    ///   damaged.
    func leastRecent(after place: Place, limit: Int) throws(StoreError) -> (
        victims: [Victim], damaged: Set<GenerationID>, next: Place?
    ) {
        try read { db in
            let sql = """
                SELECT e.generation, e.ordinal, e.last_access, e.present, g.length, g.chunk_size FROM extent e INDEXED BY extent_last_access
                LEFT JOIN generation g ON g.id = e.generation
                WHERE e.pinned = 0 AND (e.last_access, e.generation, e.ordinal) > (?, ?, ?)
                ORDER BY e.last_access, e.generation, e.ordinal LIMIT ?
                """
            let rows = try Row.fetchAll(db.cachedStatement(sql: sql), arguments: place.arguments(3) + [limit]).map {
                StoredRow($0)
            }
            var (victims, damaged) = ([Victim](), Set<GenerationID>())
            for row in rows {
                if let victim = try? Self.victim(row) {
                    victims.append(victim)
                } else if let id = try? row.generation("generation") {
                    damaged.insert(id)
                }
            }
            let next = try rows.last.map { try Place($0, "last_access", "generation", "ordinal") }
            return (victims, damaged, try next.flatMap { try $0.isBehind(place, in: db) ? $0 : nil })
        }
    }

    private static func victim(_ row: StoredRow) throws(RowDamage) -> Victim {
        let (length, geometry, ordinal, present) = try extent(row)
        return Victim(
            // no trap: at least 1
            generation: GenerationID(value: UInt64(try row.integer("generation", in: 1 ... .max))), ordinal: ordinal,
            lastAccess: try row.integer("last_access"), present: present, length: length, geometry: geometry)
    }

    /// An extent's row beside what its generation's says of its size.
    private static func extent(_ row: StoredRow) throws(RowDamage) -> (
        length: Int64, ChunkGeometry, ordinal: Int, present: Presence
    ) {
        let length = try row.integer("length", in: 0...Generation.longest)
        guard let geometry = ChunkGeometry(chunkSize: try row.integer("chunk_size")) else {
            throw RowDamage(column: "chunk_size", reason: "is out of bounds")
        }
        let ordinal = try extent("ordinal", in: row, length: length, geometry)
        let bits = Presence(bits: UInt64(bitPattern: try row.integer("present")))
        return (length, geometry, ordinal, geometry.existing(bits, inExtent: ordinal, length: length))
    }

    /// The least recently read resources that are not pinned, after a place in that order.
    func leastRecentResources(after place: Place, limit: Int) throws(StoreError) -> (
        generations: [GenerationID], next: Place?
    ) {
        try read { db in
            let sql = """
                SELECT r.last_access, r.id AS resource, g.id AS generation, r.pinned FROM resource r INDEXED BY resource_last_access LEFT JOIN generation g ON g.resource = r.id
                WHERE (r.last_access, r.id) > (?, ?) ORDER BY r.last_access, r.id LIMIT ?
                """
            let rows = try Row.fetchAll(db.cachedStatement(sql: sql), arguments: place.arguments(2) + [limit]).map {
                StoredRow($0)
            }
            let evictable = rows.filter { (try? $0.flag("pinned")) == false }.compactMap {
                try? $0.generation("generation")
            }
            let next = try rows.last.map { try Place($0, "last_access", "resource") }
            return (evictable, try next.flatMap { try $0.isBehind(place, in: db) ? $0 : nil })
        }
    }

    /// Forgets extents, and generations and resources that have none left.
    /// - Returns: the generations that are gone, and what their files took beside the extents.
    func remove(_ extents: [(generation: GenerationID, ordinal: Int)]) throws(StoreError) -> [GenerationID: Int64] {
        try write { db in
            for extent in extents { try Self.remove(extent.ordinal, of: extent.generation, in: db) }
            var gone: [GenerationID: Int64] = [:]
            for id in Set(extents.map(\.generation)) {
                let known = try Bool.fetchOne(
                    db.cachedStatement(sql: "SELECT 1 FROM extent WHERE generation = ? LIMIT 1"), arguments: [id])
                if known == nil { gone[id] = try Self.remove(id, in: db) }
            }
            return gone
        }
    }

    private static func remove(_ ordinal: Int, of id: GenerationID, in db: Database) throws {
        let sql = """
            SELECT e.ordinal, e.present, g.length, g.chunk_size, g.resource FROM extent e JOIN generation g ON g.id = e.generation
            WHERE e.generation = ? AND e.ordinal = ?
            """
        guard let row = try Row.fetchOne(db.cachedStatement(sql: sql), arguments: [id, ordinal]).map({ StoredRow($0) })
        else { return }
        try db.cachedStatement(sql: "DELETE FROM extent WHERE generation = ? AND ordinal = ?").execute(arguments: [
            id, ordinal,
        ])
        guard let (length, geometry, ordinal, present) = try? extent(row) else { return }
        try addDataBytes(0 -| geometry.blockBytes(of: present, inExtent: ordinal, length: length), in: db)
        try db.cachedStatement(sql: "UPDATE resource SET cached = cached - ? WHERE id = ?")
            .execute(arguments: [
                geometry.bodyBytes(of: present, inExtent: ordinal, length: length), row.databaseValue("resource"),
            ])
    }

    /// Forgets generations, and their resources unless these are pinned.
    /// - Returns: those that were known, and what their rows said that they take on the disk.
    func remove(_ ids: [GenerationID]) throws(StoreError) -> [GenerationID: Int64] {
        var (gone, rest) = ([GenerationID: Int64](), ids[...])
        while !rest.isEmpty {
            let (batch, thinned) = try thin(rest)
            let removed = try write { db in
                var removed: [GenerationID: Int64] = [:]
                for id in batch { removed[id] = try Self.remove(id, in: db) }
                return removed
            }
            gone.merge(removed) { $0 +| $1 }
            for (id, bytes) in thinned { gone[id]? +|= bytes }
            rest = rest.dropFirst(batch.count)
        }
        return gone
    }

    /// Takes the first generations that have few rows together; of one that has many, all but the last are forgotten
    /// before.
    private func thin(_ ids: ArraySlice<GenerationID>) throws(StoreError) -> (
        batch: [GenerationID], thinned: [GenerationID: Int64]
    ) {
        var (batch, thinned, rows) = ([GenerationID](), [GenerationID: Int64](), 0)
        for id in ids {
            let sql = "SELECT count(*) FROM extent WHERE generation = ?"
            var count = try readOne { try Int.fetchOne($0.cachedStatement(sql: sql), arguments: [id]) ?? 0 }
            if !batch.isEmpty, rows + count > Self.rowsAtOnce { break }
            while count > Self.rowsAtOnce {
                let ordinals = try readOne {
                    try Int.fetchAll(
                        $0, sql: "SELECT ordinal FROM extent WHERE generation = ? LIMIT ?",
                        arguments: [id, Self.rowsAtOnce])
                }
                guard !ordinals.isEmpty else { break }
                let before = try meta(.dataBytes) ?? 0
                try write { db in for ordinal in ordinals { try Self.remove(ordinal, of: id, in: db) } }
                thinned[id, default: 0] +|= before -| (try meta(.dataBytes) ?? 0)
                count -= ordinals.count
            }
            batch.append(id)
            rows += count + 8
        }
        return (batch, thinned)
    }

    /// - Returns: nil where it is not known.
    private static func remove(_ id: GenerationID, in db: Database) throws -> Int64? {
        let sql = "SELECT resource FROM generation WHERE id = ?"
        guard let resource = try Int64.fetchOne(db.cachedStatement(sql: sql), arguments: [id]) else { return nil }
        let taken = try taken(by: id, in: db)
        try db.cachedStatement(sql: "DELETE FROM generation WHERE id = ?").execute(arguments: [id])
        try addDataBytes(0 -| taken.blocks, in: db)
        try db.cachedStatement(sql: "DELETE FROM resource WHERE id = ? AND pinned = 0").execute(arguments: [resource])
        // A pin outlives the generation: the next one is pinned, too.
        if db.changesCount == 0 {
            try db.cachedStatement(sql: "UPDATE resource SET cached = cached - ? WHERE id = ?").execute(arguments: [
                taken.body, resource,
            ])
        }
        return taken.blocks
    }

    /// The generations of a resource, whatever their rows say.
    func identifiers(of key: CacheKey) throws(StoreError) -> [GenerationID] {
        try readOne { db in
            let sql = "SELECT g.id FROM resource r JOIN generation g ON g.resource = r.id WHERE r.key = ?"
            return try GenerationID.fetchAll(db, sql: sql, arguments: [key.text])
        }
    }

    /// The keys of what an origin chose by other request fields (`Variant.variantKey`).
    func variants(of key: CacheKey) throws(StoreError) -> [CacheKey] {
        try readOne { db in
            // A space follows the URL, and no URL has one: they stand in a row in the order of keys.
            try String.fetchAll(
                db, sql: "SELECT key FROM resource WHERE key > ? AND key < ?",
                arguments: [key.text + " ", key.text + "!"]
            ).map(CacheKey.init(text:))
        }
    }

    /// Forgets a resource, pinned or not.
    func remove(_ key: CacheKey) throws(StoreError) {
        _ = try remove(identifiers(of: key))
        try write { try $0.execute(sql: "DELETE FROM resource WHERE key = ?", arguments: [key.text]) }
    }

    /// Forgets what the index has of a generation and cannot be: damaged extents, or all of it. What all rows take is
    /// summed up anew, as nobody knows what the damaged ones stood for.
    /// - Returns: its key, if that can be read, whether the generation is gone, and by how much the sum has changed.
    func removeDamage(of id: GenerationID) throws(StoreError) -> (key: String?, isGone: Bool, change: Int64) {
        try write { db in
            let sql = "SELECT g.*, r.key FROM generation g JOIN resource r ON r.id = g.resource WHERE g.id = ?"
            let row = try Row.fetchOne(db, sql: sql, arguments: [id]).map { StoredRow($0) }
            let generation = try? row.map { try Self.generationRow($0) }
            let extents = try Row.fetchAll(db, sql: Self.selectExtents, arguments: [id]).map { StoredRow($0) }
            for extent in extents where generation.flatMap({ try? Self.extentRow(extent, $0) }) == nil {
                try db.execute(
                    sql: "DELETE FROM extent WHERE generation = ? AND ordinal = ?",
                    arguments: [id, extent.databaseValue("ordinal")])
            }
            if generation == nil {
                try db.execute(
                    sql: "DELETE FROM resource WHERE id IN (SELECT resource FROM generation WHERE id = ?)",
                    arguments: [id])
                try db.execute(sql: "DELETE FROM generation WHERE id = ?", arguments: [id])
            }
            return (try? row?.text("key"), generation == nil, try Self.sumUp(in: db))
        }
    }

    /// - Returns: by how much the sum has changed.
    private static func sumUp(in db: Database) throws -> Int64 {
        var sum: Int64 = 0
        let ids = try GenerationID.fetchCursor(db, sql: "SELECT id FROM generation")
        while let id = try ids.next() { sum +|= try taken(by: id, in: db).blocks }
        let before =
            try Int64.fetchOne(db, sql: "SELECT value FROM meta WHERE name = ?", arguments: [Meta.dataBytes.rawValue])
            ?? 0
        let change = sum -| before
        try addDataBytes(change, in: db)
        return change
    }
}
