import CachePolicy
import GRDB
import HTTPModel

extension EvictionOrder {
    /// An extent that may be evicted.
    struct Victim: Sendable {
        let generation: GenerationID
        let ordinal: Int
        let lastAccess: Int64
        let present: Presence
        let length: Int64
        let geometry: ChunkGeometry
    }

    /// A position in the order of last reads. Keeps the row's values as they are, damaged or not, because the database
    /// sorts by these.
    struct Place: Sendable {
        private var values: [DatabaseValue]

        /// Before all rows.
        init() { values = [Int64.min.databaseValue, Int64.min.databaseValue, (-1).databaseValue] }

        fileprivate init(_ row: StoredRow, _ columns: String...) throws(RowDamage) {
            values = try columns.map { column throws(RowDamage) in try row.databaseValue(column) }
        }

        fileprivate func arguments(_ count: Int) -> StatementArguments { StatementArguments(values.prefix(count)) }

        /// Whether it lies behind another. If the database's order is damaged, the next row may not, and a walk would
        /// never end.
        fileprivate func isBehind(_ other: Place, in db: Database) throws -> Bool {
            let places = Array(repeating: "?", count: values.count).joined(separator: ", ")
            return try Bool.fetchOne(
                db.cachedStatement(sql: "SELECT (\(places)) > (\(places))"),
                arguments: arguments(values.count) + other.arguments(values.count)) ?? false
        }
    }
}

/// The order of eviction: the least recently read first.
struct EvictionOrder: Sendable {
    let database: IndexDatabase

    /// The least recently read extents that are not pinned, after a position in that order. The cost does not depend on
    /// their number.
    /// - Returns: the extents, the generations among them whose rows are damaged, and the next position; nil if there
    ///   are no more.
    func leastRecent(after place: Place, limit: Int) throws(StoreError) -> (
        victims: [Victim], damaged: Set<GenerationID>, next: Place?
    ) {
        try database.read { db in
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

    /// Reads an extent's row, joined with its generation's length and chunk size.
    static func extent(_ row: StoredRow) throws(RowDamage) -> (
        length: Int64, ChunkGeometry, ordinal: Int, present: Presence
    ) {
        let length = try row.integer("length", in: 0...ChunkGeometry.longestBody)
        guard let geometry = ChunkGeometry(chunkSize: try row.integer("chunk_size")) else {
            throw RowDamage(column: "chunk_size", reason: "is out of bounds")
        }
        let ordinal = try IndexRows.extent("ordinal", in: row, length: length, geometry)
        let bits = Presence(bits: UInt64(bitPattern: try row.integer("present")))
        return (length, geometry, ordinal, geometry.existing(bits, inExtent: ordinal, length: length))
    }

    /// The least recently read resources that are not pinned, after a position in that order.
    func leastRecentResources(after place: Place, limit: Int) throws(StoreError) -> (
        generations: [GenerationID], next: Place?
    ) {
        try database.read { db in
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
}
