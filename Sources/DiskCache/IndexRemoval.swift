import CachePolicy
import GRDB
import HTTPModel

/// Removes rows.
struct IndexRemoval: Sendable {
    let database: IndexDatabase

    /// Removes extents, and then generations and resources without any extents left.
    /// - Returns: the removed generations, with the overhead of their files.
    func remove(_ extents: [(generation: GenerationID, ordinal: Int)]) throws(StoreError) -> [GenerationID: Int64] {
        try database.write { db in
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
        guard let (length, geometry, ordinal, present) = try? EvictionOrder.extent(row) else { return }
        try IndexDatabase.addDataBytes(0 -| geometry.blockBytes(of: present, inExtent: ordinal, length: length), in: db)
        try db.cachedStatement(sql: "UPDATE resource SET cached = cached - ? WHERE id = ?")
            .execute(arguments: [
                geometry.bodyBytes(of: present, inExtent: ordinal, length: length), row.databaseValue("resource"),
            ])
    }

    /// Removes generations, and their resources unless these are pinned.
    /// - Returns: those that had rows, with their disk usage according to these.
    func remove(_ ids: [GenerationID]) throws(StoreError) -> [GenerationID: Int64] {
        var (gone, rest) = ([GenerationID: Int64](), ids[...])
        while !rest.isEmpty {
            let (batch, thinned) = try thin(rest)
            let removed = try database.write { db in
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

    /// Takes a batch of generations whose rows fit into one transaction. Of a generation with too many rows, removes
    /// all but the last ones first.
    private func thin(_ ids: ArraySlice<GenerationID>) throws(StoreError) -> (
        batch: [GenerationID], thinned: [GenerationID: Int64]
    ) {
        var (batch, thinned, rows) = ([GenerationID](), [GenerationID: Int64](), 0)
        for id in ids {
            let sql = "SELECT count(*) FROM extent WHERE generation = ?"
            var count = try database.readOne { try Int.fetchOne($0.cachedStatement(sql: sql), arguments: [id]) ?? 0 }
            if !batch.isEmpty, rows + count > IndexDatabase.rowsAtOnce { break }
            while count > IndexDatabase.rowsAtOnce {
                let ordinals = try database.readOne {
                    try Int.fetchAll(
                        $0, sql: "SELECT ordinal FROM extent WHERE generation = ? LIMIT ?",
                        arguments: [id, IndexDatabase.rowsAtOnce])
                }
                guard !ordinals.isEmpty else { break }
                let before = try database.meta(.dataBytes) ?? 0
                try database.write { db in for ordinal in ordinals { try Self.remove(ordinal, of: id, in: db) } }
                thinned[id, default: 0] +|= before -| (try database.meta(.dataBytes) ?? 0)
                count -= ordinals.count
            }
            batch.append(id)
            rows += count + 8
        }
        return (batch, thinned)
    }

    /// - Returns: nil if it has no row.
    private static func remove(_ id: GenerationID, in db: Database) throws -> Int64? {
        let sql = "SELECT resource FROM generation WHERE id = ?"
        guard let resource = try Int64.fetchOne(db.cachedStatement(sql: sql), arguments: [id]) else { return nil }
        let taken = try IndexRows.taken(by: id, in: db)
        try db.cachedStatement(sql: "DELETE FROM generation WHERE id = ?").execute(arguments: [id])
        try IndexDatabase.addDataBytes(0 -| taken.blocks, in: db)
        try db.cachedStatement(sql: "DELETE FROM resource WHERE id = ? AND pinned = 0 AND \(Self.hasNoParts)").execute(
            arguments: [resource])
        // A pin outlives the generation, so that the next one is pinned too. Parts outlive the generation of their
        // whole.
        if db.changesCount == 0 {
            try db.cachedStatement(sql: "UPDATE resource SET cached = cached - ? WHERE id = ?").execute(arguments: [
                taken.body, resource,
            ])
        }
        return taken.blocks
    }

    private static let hasNoParts = """
        NOT EXISTS (SELECT 1 FROM resource p WHERE p.part_of = resource.id)
        AND NOT EXISTS (SELECT 1 FROM further_whole WHERE whole = resource.id)
        """

    /// Removes resources, pinned or not, except those that have parts.
    func remove(_ keys: [CacheKey]) throws(StoreError) {
        var ids: [GenerationID] = []
        for key in keys { ids += try IndexRows(database: database).identifiers(of: key) }
        _ = try remove(ids)
        try database.write { db in
            for key in keys {
                let delete = "DELETE FROM resource WHERE key = ? AND \(Self.hasNoParts)"
                try db.cachedStatement(sql: delete).execute(arguments: [key.text])
                guard db.changesCount == 0 else { continue }
                try db.cachedStatement(sql: "UPDATE resource SET pinned = 0, by_hand = 0 WHERE key = ?").execute(
                    arguments: [key.text])
            }
        }
    }

    /// Removes damaged rows of a generation: some extents, or all of it. The total is then computed again, because
    /// damaged rows do not tell what they stood for.
    /// - Returns: the key if it can be read, whether the whole generation was removed, and the change of the total.
    func removeDamage(of id: GenerationID) throws(StoreError) -> (key: String?, isGone: Bool, change: Int64) {
        try database.write { db in
            let sql = "SELECT g.*, r.key FROM generation g JOIN resource r ON r.id = g.resource WHERE g.id = ?"
            let row = try Row.fetchOne(db, sql: sql, arguments: [id]).map { StoredRow($0) }
            let generation = try? row.map { try IndexRows.generationRow($0) }
            let extents = try Row.fetchAll(db, sql: IndexRows.selectExtents, arguments: [id]).map { StoredRow($0) }
            for extent in extents where generation.flatMap({ try? IndexRows.extentRow(extent, $0) }) == nil {
                try db.execute(
                    sql: "DELETE FROM extent WHERE generation = ? AND ordinal = ?",
                    arguments: [id, extent.databaseValue("ordinal")])
            }
            if generation == nil {
                let resource = try row?.databaseValue("resource")
                try db.execute(sql: "DELETE FROM generation WHERE id = ?", arguments: [id])
                try db.execute(
                    sql: "DELETE FROM resource WHERE id = ? AND \(Self.hasNoParts)", arguments: [resource])
                try db.execute(sql: "UPDATE resource SET cached = 0 WHERE id = ?", arguments: [resource])
            }
            return (try? row?.text("key"), generation == nil, try Self.sumUp(in: db))
        }
    }

    /// - Returns: the change of the total.
    private static func sumUp(in db: Database) throws -> Int64 {
        var sum: Int64 = 0
        let ids = try GenerationID.fetchCursor(db, sql: "SELECT id FROM generation")
        while let id = try ids.next() { sum +|= try IndexRows.taken(by: id, in: db).blocks }
        let before =
            try Int64.fetchOne(
                db, sql: "SELECT value FROM meta WHERE name = ?", arguments: [IndexDatabase.Meta.dataBytes.rawValue])
            ?? 0
        let change = sum -| before
        try IndexDatabase.addDataBytes(change, in: db)
        return change
    }
}
