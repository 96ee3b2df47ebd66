import CachePolicy
import Foundation
import GRDB
import HTTPModel

extension IndexRows {
    struct GenerationRow: Sendable {
        let id: GenerationID
        let key: CacheKey
        let head: GenerationHead
        let length: Int64
        let geometry: ChunkGeometry
        /// The file's overhead beside its chunks.
        let overhead: Int64
        /// The presentation that it is a part of.
        var whole: CacheKey?
        /// Whether its resource is pinned or downloaded.
        var isKept = false
    }

    struct ExtentRow: Sendable {
        let ordinal: Int
        let present: Presence
        let lastAccess: Int64
        /// The session in which it was written or last verified.
        let session: Int64
        /// By bit; 0 if unknown.
        let checksums: [UInt64]
    }
}

extension IndexRows.GenerationRow {
    /// The present ranges, in order; adjacent ranges are merged.
    func presentRanges(of extents: [IndexRows.ExtentRow]) -> [Range<Int64>] {
        geometry.ranges(
            of: extents.sorted { $0.ordinal < $1.ordinal }.map { ($0.ordinal, $0.present) }, length: length)
    }
}

/// Reads rows. Even in a sound database a value may be damaged, so all values are checked.
struct IndexRows: Sendable {
    let database: IndexDatabase

    /// Plausible times, in seconds since 1970.
    private static let times: ClosedRange<Int64> = 0...1 << 40

    /// - Throws: `.damagedRow` if the values cannot be right.
    func generation(of key: CacheKey) throws(StoreError) -> GenerationRow? {
        try database.readOne { db in
            let sql = "\(Self.selectGeneration) WHERE r.key = ?"
            return try Row.fetchOne(db.cachedStatement(sql: sql), arguments: [key.text]).map {
                try Self.generationRow(StoredRow($0))
            }
        }
    }

    func generation(_ id: GenerationID) throws(StoreError) -> GenerationRow? {
        try database.readOne { db in
            let sql = "\(Self.selectGeneration) WHERE g.id = ?"
            return try Row.fetchOne(db.cachedStatement(sql: sql), arguments: [id]).map {
                try Self.generationRow(StoredRow($0))
            }
        }
    }

    /// What is stored of a resource, in one statement: each request of a file that is not open waits for it. The
    /// extents come without checksums; damaged ones are left out.
    /// - Throws: `.damagedRow` if the generation's values cannot be right.
    func stored(_ key: CacheKey) throws(StoreError) -> Stored? {
        try database.lookUp { db in
            var found: Stored?
            try IndexStatement(Self.selectStored, in: db).each(.text(key.text)) { statement in
                let row = StoredRow(statement, names: Self.storedColumns)
                var stored = try found.take() ?? Stored(row: Self.generationRow(row, of: key))
                if try !row.databaseValue("ordinal").isNull {
                    if let extent = try? Self.extentRow(row, stored.row, checksums: []) {
                        stored.extents.append(extent)
                    } else {
                        stored.hasDamage = true
                    }
                }
                found = stored
            }
            return found
        }
    }

    struct Stored: Sendable {
        let row: GenerationRow
        var extents: [ExtentRow] = []
        var hasDamage = false
    }

    private static let storedColumns = [
        "ordinal", "present", "last_access", "session", "id", "length", "chunk_size", "overhead", "fields", "selecting",
        "stored_at", "validated_at", "status", "final_url", "is_public", "initial_age", "whole", "pinned", "downloaded",
    ]

    private static let selectStored = """
        SELECT e.ordinal, e.present, e.last_access, e.session, g.id, g.length, g.chunk_size, g.overhead, g.fields,
            g.selecting, g.stored_at, g.validated_at, g.status, g.final_url, g.is_public, g.initial_age,
            w.key, r.pinned, r.downloaded
        FROM resource r JOIN generation g ON g.resource = r.id LEFT JOIN resource w ON w.id = r.part_of
        LEFT JOIN extent e ON e.generation = g.id WHERE r.key = ?
        """

    private static let selectGeneration = """
        SELECT g.*, r.key, r.pinned, r.downloaded, (SELECT w.key FROM resource w WHERE w.id = r.part_of) AS whole
        FROM resource r JOIN generation g ON g.resource = r.id
        """

    static func generationRow(_ row: StoredRow) throws(StoreError) -> GenerationRow {
        guard let text = try? row.text("key") else { throw .damagedRow(key: nil, detail: "no key") }
        return try generationRow(row, of: CacheKey(text: text))
    }

    static func generationRow(_ row: StoredRow, of key: CacheKey) throws(StoreError) -> GenerationRow {
        do throws(RowDamage) {
            let id = try row.integer("id", in: 1 ... .max),
                length = try row.integer("length", in: 0...ChunkGeometry.longestBody)
            guard let geometry = ChunkGeometry(chunkSize: try row.integer("chunk_size")) else {
                throw RowDamage(column: "chunk_size", reason: "is out of bounds")
            }
            // The overhead beside the chunks is at most all of the file's blocks and the list of them.
            // no trap: of a length of at most `ChunkGeometry.longestBody`
            let overhead = try row.integer("overhead", in: 0...length + length / 64 + 1 << 20)
            return GenerationRow(
                // no trap: at least 1
                id: GenerationID(value: UInt64(id)), key: key, head: try head(row), length: length, geometry: geometry,
                overhead: overhead, whole: (try? row.optional("whole", row.text))?.map(CacheKey.init(text:)),
                isKept: (try? row.flag("pinned")) == true || (try? row.flag("downloaded")) == true)
        } catch { throw .damagedRow(key: key, detail: "\(error)") }
    }

    private static func head(_ row: StoredRow) throws(RowDamage) -> GenerationHead {
        let lines = try pairs("fields", in: row).map { name, value throws(RowDamage) in
            let line = value.map { HeaderFields.Line(name: name, value: $0) }
            guard let line, !line.isMalformed else { throw notAList("fields") }
            return line
        }
        let chosen = try pairs("selecting", in: row).map { Variant.Field(stored: $0, value: $1) }
        let storedAt = try row.integer("stored_at", in: times), validatedAt = try row.integer("validated_at", in: times)
        return GenerationHead(
            status: Int(try row.integer("status", in: 100...599)), fields: HeaderFields(lines),
            variant: Variant(chosen),
            finalURL: try row.text("final_url"), isPublic: try row.integer("is_public") == 1, storedAt: storedAt,
            times: ResponseTimes(
                validatedAt: validatedAt > 0 ? validatedAt : storedAt,
                initialAge: try row.integer("initial_age", in: 0 ... .max)))
    }

    private static func notAList(_ column: String) -> RowDamage {
        RowDamage(column: column, reason: "is not a list of header fields")
    }

    /// Pairs as `IndexStatement.pairs` encodes them.
    private static func pairs(_ column: String, in row: StoredRow) throws(RowDamage) -> [(String, String?)] {
        if let pairs = IndexStatement.plainPairs(try row.text(column)) { return pairs }
        let pairs = try row.decoded([[String?]].self, column)
        return try pairs.map { pair throws(RowDamage) in
            guard pair.count == 2, let name = pair[0] else { throw notAList(column) }
            return (name, pair[1])
        }
    }

    /// The extents of a generation and the file's overhead; nil if it is gone. Leaves out damaged rows.
    func contents(of row: GenerationRow) throws(StoreError) -> (
        extents: [ExtentRow], overhead: Int64, hasDamage: Bool
    )? {
        try database.readOne { db in
            let sql = """
                SELECT overhead, ordinal, present, last_access, session, checksums
                FROM generation g LEFT JOIN extent e ON e.generation = g.id WHERE g.id = ?
                """
            let rows = try Row.fetchAll(db.cachedStatement(sql: sql), arguments: [row.id]).map { StoredRow($0) }
            guard let first = rows.first else { return nil }
            let isEmpty = try rows.count == 1 && first.databaseValue("ordinal").isNull, stored = isEmpty ? [] : rows
            let extents = stored.compactMap { try? Self.extentRow($0, row) }
            return (extents, try first.integer("overhead"), extents.count < stored.count)
        }
    }

    func extents(of row: GenerationRow) throws(StoreError) -> [ExtentRow]? {
        try contents(of: row)?.extents
    }

    /// Some extents of a generation, in order, and whether these are the last. Leaves out damaged rows.
    func extents(of row: GenerationRow, from ordinal: Int, limit: Int) throws(StoreError)
        -> ([ExtentRow], areLast: Bool)
    {
        try database.readOne { db in
            let sql = Self.selectExtents + " AND ordinal >= ? ORDER BY ordinal LIMIT ?"
            let rows = try Row.fetchAll(db.cachedStatement(sql: sql), arguments: [row.id, ordinal, limit + 1])
            return (rows.prefix(limit).compactMap { try? Self.extentRow(StoredRow($0), row) }, rows.count <= limit)
        }
    }

    /// Whether a generation has more than `count` extents from an ordinal on.
    func hasExtents(of id: GenerationID, from ordinal: Int, beyond count: Int) throws(StoreError) -> Bool {
        try database.readOne { db in
            let sql = "SELECT 1 FROM extent WHERE generation = ? AND ordinal >= ? ORDER BY ordinal LIMIT 1 OFFSET ?"
            return try Bool.fetchOne(db.cachedStatement(sql: sql), arguments: [id, ordinal, count]) ?? false
        }
    }

    func extent(_ ordinal: Int, of row: GenerationRow) throws(StoreError) -> ExtentRow? {
        try database.readOne { db in
            try Row.fetchOne(
                db.cachedStatement(sql: Self.selectExtents + " AND ordinal = ?"), arguments: [row.id, ordinal]
            )
            .flatMap { try? Self.extentRow(StoredRow($0), row) }
        }
    }

    static let selectExtents =
        "SELECT ordinal, present, last_access, session, checksums FROM extent WHERE generation = ?"

    /// - Parameter checksums: nil to read them.
    static func extentRow(_ row: StoredRow, _ generation: GenerationRow, checksums: [UInt64]? = nil)
        throws(RowDamage) -> ExtentRow
    {
        let ordinal = try extent("ordinal", in: row, length: generation.length, generation.geometry)
        let bits = Presence(bits: UInt64(bitPattern: try row.integer("present")))
        return ExtentRow(
            ordinal: ordinal, present: generation.geometry.existing(bits, inExtent: ordinal, length: generation.length),
            lastAccess: try row.integer("last_access"), session: try row.integer("session"),
            checksums: checksums ?? ((try? row.bytes("checksums")) ?? Data()).withUnsafeBytes(IndexStatement.unpack))
    }

    /// The ordinal of an extent that exists in a resource of this length.
    static func extent(_ column: String, in row: StoredRow, length: Int64, _ geometry: ChunkGeometry) throws(RowDamage)
        -> Int
    {
        let count = geometry.extentCount(length: length)
        guard count > 0 else { throw RowDamage(column: column, reason: "is out of bounds") }
        return Int(try row.integer(column, in: 0...Int64(count - 1))) // no trap: at least one
    }

    /// The generations of a resource, even if their rows are damaged.
    func identifiers(of key: CacheKey) throws(StoreError) -> [GenerationID] {
        try database.readOne { db in
            let sql = "SELECT g.id FROM resource r JOIN generation g ON g.resource = r.id WHERE r.key = ?"
            return try GenerationID.fetchAll(db, sql: sql, arguments: [key.text])
        }
    }

    /// The keys of a resource's variants (`Variant.variantKey`).
    func variants(of key: CacheKey) throws(StoreError) -> [CacheKey] {
        try database.readOne { db in
            // A space follows the URL, and no URL contains one: the variants are adjacent in the order of keys.
            try String.fetchAll(
                db, sql: "SELECT key FROM resource WHERE key > ? AND key < ?",
                arguments: [key.text + " ", key.text + "!"]
            ).map(CacheKey.init(text:))
        }
    }

    func isKnown(_ id: GenerationID) throws(StoreError) -> Bool {
        try database.readOne {
            try Bool.fetchOne($0, sql: "SELECT 1 FROM generation WHERE id = ?", arguments: [id]) ?? false
        }
    }

    /// The disk usage of generations according to their rows.
    func taken(by ids: [GenerationID]) throws(StoreError) -> Int64 {
        try database.read { db in try ids.reduce(0) { $0 +| (try Self.taken(by: $1, in: db).blocks) } }
    }

    /// The disk usage of a generation according to its rows, and its cached bytes. Damaged rows do not count.
    static func taken(by id: GenerationID, in db: Database) throws -> (blocks: Int64, body: Int64) {
        let sql = "SELECT g.*, r.key FROM generation g JOIN resource r ON r.id = g.resource WHERE g.id = ?"
        guard let row = try Row.fetchOne(db.cachedStatement(sql: sql), arguments: [id]),
            let generation = try? generationRow(StoredRow(row))
        else { return (0, 0) }
        let select =
            "SELECT ordinal, present, 0 AS last_access, 0 AS session, NULL AS checksums FROM extent WHERE generation = ?"
        let extents = try Row.fetchAll(db.cachedStatement(sql: select), arguments: [id])
        return extents.compactMap { try? extentRow(StoredRow($0), generation) }.reduce((generation.overhead, 0)) {
            sum, extent in
            (
                sum.0
                    +| generation.geometry.blockBytes(
                        of: extent.present, inExtent: extent.ordinal, length: generation.length),
                sum.1
                    +| generation.geometry.bodyBytes(
                        of: extent.present, inExtent: extent.ordinal, length: generation.length)
            )
        }
    }
}
