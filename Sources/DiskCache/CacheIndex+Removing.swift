import CachePolicy
import GRDB

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

    /// A place in the order of last reads.
    struct Place: Sendable {
        var lastAccess = Int64.min
        var identifier = Int64.min
        var ordinal = -1
    }

    /// The least recently read extents that are not pinned, after a place in that order. The cost does not depend on how many there are.
    /// - Returns: the place after them, nil where there are none; and the generations among them whose rows are damaged.
    func leastRecent(after place: Place, limit: Int) throws(StoreError) -> (victims: [Victim], damaged: Set<GenerationID>, next: Place?) {
        try read { db in
            let sql = """
                SELECT e.generation, e.ordinal, e.last_access, e.present, g.length, g.chunk_size FROM extent e INDEXED BY extent_last_access
                LEFT JOIN generation g ON g.id = e.generation
                WHERE e.pinned = 0 AND (e.last_access, e.generation, e.ordinal) > (?, ?, ?)
                ORDER BY e.last_access, e.generation, e.ordinal LIMIT ?
                """
            let rows = try Row.fetchAll(db.cachedStatement(sql: sql), arguments: [place.lastAccess, place.identifier, place.ordinal, limit])
            var (victims, damaged, next) = ([Victim](), Set<GenerationID>(), Place?.none)
            for row in rows {
                let id = Int64.fromDatabaseValue(row[0]) ?? 0
                next = Place(lastAccess: Int64.fromDatabaseValue(row[2]) ?? place.lastAccess, identifier: id, ordinal: Int.fromDatabaseValue(row[1]) ?? 0)
                if let victim = Self.victim(row) { victims.append(victim) } else { damaged.insert(GenerationID(value: UInt64(bitPattern: id))) }
            }
            return (victims, damaged, next)
        }
    }

    private static func victim(_ row: Row) -> Victim? {
        guard let id = Int64.fromDatabaseValue(row[0]), id > 0, let ordinal = Int.fromDatabaseValue(row[1]),
            let lastAccess = Int64.fromDatabaseValue(row[2]), let bits = Int64.fromDatabaseValue(row[3]), let length = Int64.fromDatabaseValue(row[4]),
            (0...Generation.longest).contains(length), let size = Int64.fromDatabaseValue(row[5]), let geometry = ChunkGeometry(chunkSize: size),
            (0..<geometry.extentCount(length: length)).contains(ordinal)
        else { return nil }
        let present = geometry.existing(Presence(bits: UInt64(bitPattern: bits)), inExtent: ordinal, length: length)
        return Victim(
            generation: GenerationID(value: UInt64(id)), ordinal: ordinal, lastAccess: lastAccess, present: present, length: length, geometry: geometry)
    }

    /// The least recently read resources that are not pinned, after a place in that order.
    func leastRecentResources(after place: Place, limit: Int) throws(StoreError) -> (generations: [GenerationID], next: Place?) {
        try read { db in
            let sql = """
                SELECT r.last_access, r.id, g.id, r.pinned FROM resource r INDEXED BY resource_last_access LEFT JOIN generation g ON g.resource = r.id
                WHERE (r.last_access, r.id) > (?, ?) ORDER BY r.last_access, r.id LIMIT ?
                """
            let rows = try Row.fetchAll(db.cachedStatement(sql: sql), arguments: [place.lastAccess, place.identifier, limit])
            let evictable = rows.filter { Int64.fromDatabaseValue($0[3]) == 0 }.compactMap { Int64.fromDatabaseValue($0[2]) }
            let next = rows.last.map { Place(lastAccess: Int64.fromDatabaseValue($0[0]) ?? 0, identifier: Int64.fromDatabaseValue($0[1]) ?? 0) }
            return (evictable.map { GenerationID(value: UInt64(bitPattern: $0)) }, next)
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
                    db.cachedStatement(sql: "SELECT 1 FROM extent WHERE generation = ? LIMIT 1"), arguments: [Int64(bitPattern: id.value)])
                if known == nil { gone[id] = try Self.remove(id, in: db) }
            }
            return gone
        }
    }

    private static func remove(_ ordinal: Int, of id: GenerationID, in db: Database) throws {
        let identifier = Int64(bitPattern: id.value)
        let sql = """
            SELECT e.present, g.length, g.chunk_size, g.resource FROM extent e JOIN generation g ON g.id = e.generation
            WHERE e.generation = ? AND e.ordinal = ?
            """
        guard let row = try Row.fetchOne(db.cachedStatement(sql: sql), arguments: [identifier, ordinal]) else { return }
        try db.cachedStatement(sql: "DELETE FROM extent WHERE generation = ? AND ordinal = ?").execute(arguments: [identifier, ordinal])
        guard let length = Int64.fromDatabaseValue(row[1]), (0...Generation.longest).contains(length),
            let size = Int64.fromDatabaseValue(row[2]), let geometry = ChunkGeometry(chunkSize: size),
            (0..<geometry.extentCount(length: length)).contains(ordinal)
        else { return }
        let present = geometry.existing(Presence(bits: UInt64(bitPattern: Int64.fromDatabaseValue(row[0]) ?? 0)), inExtent: ordinal, length: length)
        try addDataBytes(-geometry.blockBytes(of: present, inExtent: ordinal, length: length), in: db)
        try db.cachedStatement(sql: "UPDATE resource SET cached = cached - ? WHERE id = ?")
            .execute(arguments: [geometry.bodyBytes(of: present, inExtent: ordinal, length: length), row[3] as DatabaseValue])
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
            gone.merge(removed) { $0 + $1 }
            for (id, bytes) in thinned { gone[id]? += bytes }
            rest = rest.dropFirst(batch.count)
        }
        return gone
    }

    /// Takes the first generations that have few rows together; of one that has many, all but the last are forgotten before.
    private func thin(_ ids: ArraySlice<GenerationID>) throws(StoreError) -> (batch: [GenerationID], thinned: [GenerationID: Int64]) {
        var (batch, thinned, rows) = ([GenerationID](), [GenerationID: Int64](), 0)
        for id in ids {
            let identifier = Int64(bitPattern: id.value)
            let sql = "SELECT count(*) FROM extent WHERE generation = ?"
            var count = try readOne { try Int.fetchOne($0.cachedStatement(sql: sql), arguments: [identifier]) ?? 0 }
            if !batch.isEmpty, rows + count > Self.rowsAtOnce { break }
            while count > Self.rowsAtOnce {
                let ordinals = try readOne {
                    try Int.fetchAll($0, sql: "SELECT ordinal FROM extent WHERE generation = ? LIMIT ?", arguments: [identifier, Self.rowsAtOnce])
                }
                let before = try meta(.dataBytes) ?? 0
                try write { db in for ordinal in ordinals { try Self.remove(ordinal, of: id, in: db) } }
                thinned[id, default: 0] += before - (try meta(.dataBytes) ?? 0)
                count -= ordinals.count
            }
            batch.append(id)
            rows += count + 8
        }
        return (batch, thinned)
    }

    /// - Returns: nil where it is not known.
    private static func remove(_ id: GenerationID, in db: Database) throws -> Int64? {
        let identifier = Int64(bitPattern: id.value)
        let sql = "SELECT resource FROM generation WHERE id = ?"
        guard let resource = try Int64.fetchOne(db.cachedStatement(sql: sql), arguments: [identifier]) else { return nil }
        let taken = try taken(by: identifier, in: db)
        try db.cachedStatement(sql: "DELETE FROM generation WHERE id = ?").execute(arguments: [identifier])
        try addDataBytes(-taken.blocks, in: db)
        try db.cachedStatement(sql: "DELETE FROM resource WHERE id = ? AND pinned = 0").execute(arguments: [resource])
        // A pin outlives the generation: the next one is pinned, too.
        if db.changesCount == 0 {
            try db.cachedStatement(sql: "UPDATE resource SET cached = cached - ? WHERE id = ?").execute(arguments: [taken.body, resource])
        }
        return taken.blocks
    }

    /// The generations of a resource, whatever their rows say.
    func identifiers(of key: CacheKey) throws(StoreError) -> [GenerationID] {
        try readOne { db in
            let sql = "SELECT g.id FROM resource r JOIN generation g ON g.resource = r.id WHERE r.key = ?"
            return try Int64.fetchAll(db, sql: sql, arguments: [key.text]).map { GenerationID(value: UInt64(bitPattern: $0)) }
        }
    }

    /// The keys of what an origin chose by other request fields (`SelectingFields.variantKey`).
    func variants(of key: CacheKey) throws(StoreError) -> [CacheKey] {
        try readOne { db in
            // A space follows the URL, and no URL has one: they stand in a row in the order of keys.
            try String.fetchAll(db, sql: "SELECT key FROM resource WHERE key > ? AND key < ?", arguments: [key.text + " ", key.text + "!"]).map(CacheKey.init(text:))
        }
    }

    /// Forgets a resource, pinned or not.
    func remove(_ key: CacheKey) throws(StoreError) {
        _ = try remove(identifiers(of: key))
        try write { try $0.execute(sql: "DELETE FROM resource WHERE key = ?", arguments: [key.text]) }
    }

    /// Forgets what the index has of a generation and cannot be: damaged extents, or all of it. What all rows take is summed up anew, as
    /// nobody knows what the damaged ones stood for.
    /// - Returns: its key, if that can be read, whether the generation is gone, and by how much the sum has changed.
    func removeDamage(of id: GenerationID) throws(StoreError) -> (key: String?, isGone: Bool, change: Int64) {
        try write { db in
            let identifier = Int64(bitPattern: id.value)
            let sql = "SELECT g.*, r.key FROM generation g JOIN resource r ON r.id = g.resource WHERE g.id = ?"
            let row = try Row.fetchOne(db, sql: sql, arguments: [identifier])
            let generation = try? row.map(Self.generationRow)
            let extents = try Row.fetchAll(db, sql: Self.selectExtents, arguments: [identifier])
            for extent in extents where generation.flatMap({ Self.extentRow(extent, $0) }) == nil {
                try db.execute(sql: "DELETE FROM extent WHERE generation = ? AND ordinal = ?", arguments: [identifier, extent[0] as DatabaseValue])
            }
            if generation == nil {
                try db.execute(sql: "DELETE FROM resource WHERE id IN (SELECT resource FROM generation WHERE id = ?)", arguments: [identifier])
                try db.execute(sql: "DELETE FROM generation WHERE id = ?", arguments: [identifier])
            }
            return (row.flatMap { String.fromDatabaseValue($0["key"]) }, generation == nil, try Self.sumUp(in: db))
        }
    }

    /// - Returns: by how much the sum has changed.
    private static func sumUp(in db: Database) throws -> Int64 {
        var sum: Int64 = 0
        let ids = try Int64.fetchCursor(db, sql: "SELECT id FROM generation")
        while let id = try ids.next() { sum += try taken(by: id, in: db).blocks }
        let before = try Int64.fetchOne(db, sql: "SELECT value FROM meta WHERE name = ?", arguments: [Meta.dataBytes.rawValue]) ?? 0
        try addDataBytes(sum - before, in: db)
        return sum - before
    }
}
