import CachePolicy
import Foundation
import GRDB
import HTTPModel

extension IndexSaving {
    /// Changes of a generation to be saved.
    struct Update: Sendable {
        let id: GenerationID
        let key: CacheKey
        let head: GenerationHead
        let length: Int64
        let geometry: ChunkGeometry
        var overhead: Int64
        var hits: Int64
        /// Whether the index already had its row.
        var wasIndexed = true
        /// Whether the head differs from the one in the index.
        var isHeadChanged = false
        /// The presentation that it is a part of; nil leaves this as it is.
        var whole: CacheKey?
        var extents: [ExtentUpdate]

        /// Splits the update, so that no part has many extents.
        func parts(of count: Int) -> [Update] {
            guard extents.count > count else { return [self] }
            return stride(from: 0, to: extents.count, by: count).map { start in
                var part = self
                part.extents = Array(extents[start..<min(start + count, extents.count)])
                part.hits = start == 0 ? hits : 0
                return part
            }
        }

        /// Groups updates into batches for one transaction each.
        static func batches(_ updates: [Update]) -> [[Update]] {
            var (batches, rows) = ([[Update]](), IndexDatabase.rowsAtOnce)
            for part in updates.flatMap({ $0.parts(of: IndexDatabase.rowsAtOnce) }) {
                // The head counts for several rows: its keys are spread over all indexes.
                let cost = part.extents.count + 8
                if rows + cost > IndexDatabase.rowsAtOnce { (batches, rows) = (batches + [[]], 0) }
                batches[batches.count - 1].append(part)
                rows += cost
            }
            return batches
        }
    }

    struct ExtentUpdate: Sendable {
        let ordinal: Int
        let present: Presence
        /// New checksums, by bit.
        let checksums: [Int: UInt64]
        let lastAccess: Int64
        /// Whether the whole extent is verified, and so belongs to this session.
        let isVerified: Bool
    }

    /// Further results of saving.
    struct Saved: Sendable {
        /// Older generations of the same resources, whose rows were removed, with their disk usage according to these.
        var replaced: [GenerationID: Int64] = [:]
        /// The saved generations that are pinned.
        var pinned: Set<GenerationID> = []
        /// The saved generations that are pinned or downloaded.
        var kept: Set<GenerationID> = []
        /// Resources that had a row and become pinned with their whole.
        var newlyPinned: [CacheKey] = []
        /// Presentations with parts of their own that are to become parts of another.
        var toBeJoined: [(key: CacheKey, whole: CacheKey)] = []
    }
}

extension IndexSaving.Update {
    init(_ row: IndexRows.GenerationRow, _ extents: [IndexRows.ExtentRow], overhead: Int64? = nil) {
        let extents = extents.map { extent in
            IndexSaving.ExtentUpdate(
                ordinal: extent.ordinal, present: extent.present,
                checksums: Dictionary(uniqueKeysWithValues: extent.checksums.enumerated().map { ($0, $1) }),
                lastAccess: extent.lastAccess, isVerified: false)
        }
        self.init(
            id: row.id, key: row.key, head: row.head, length: row.length, geometry: row.geometry,
            overhead: overhead ?? row.overhead, hits: 0, whole: row.whole, extents: extents)
    }
}

/// Saves checkpoints.
struct IndexSaving: Sendable {
    let database: IndexDatabase
    let keys: KeyFilter

    /// Saves in one transaction; `batches` keeps each small.
    func save(_ updates: [Update], session: Int64) throws(StoreError) -> Saved {
        try database.write { db in
            var saved = Saved()
            for update in updates { try save(update, session: session, &saved, in: db) }
            if !saved.pinned.isEmpty { try database.countPinChange(in: db) }
            return saved
        }
    }

    private func save(_ update: Update, session: Int64, _ saved: inout Saved, in db: Database)
        throws
    {
        keys.enter(update.key)
        let resource = try Row.fetchOne(
            db.cachedStatement(
                sql: """
                    INSERT INTO resource (key, hits, last_access) VALUES (?1, ?2, ?3)
                    ON CONFLICT(key) DO UPDATE SET hits = hits + ?2, last_access = max(last_access, ?3)
                    RETURNING id, pinned, downloaded, part_of
                    """), arguments: [update.key.text, update.hits, update.extents.map(\.lastAccess).max() ?? 0])
        guard let resource = resource.map({ StoredRow($0) }) else {
            throw StoreError.index(detail: "cannot save a resource")
        }
        let resourceID = try resource.integer("id"), isDownloaded = (try? resource.flag("downloaded")) ?? false
        var isPinned = (try? resource.flag("pinned")) ?? false
        if let whole = update.whole, try Self.join(update, resource, to: whole, &saved, in: db) { isPinned = true }
        if isPinned { saved.pinned.insert(update.id) }
        if isPinned || isDownloaded { saved.kept.insert(update.id) }
        var cached: Int64 = 0
        // A resource has one current generation: remove the rows of older ones.
        let older = try GenerationID.fetchAll(
            db.cachedStatement(sql: "SELECT id FROM generation WHERE resource = ? AND id != ?"),
            arguments: [resourceID, update.id])
        for id in older {
            let taken = try IndexRows.taken(by: id, in: db)
            try db.cachedStatement(sql: "DELETE FROM generation WHERE id = ?").execute(arguments: [id])
            saved.replaced[id] = taken.blocks
            cached -|= taken.body
            try IndexDatabase.addDataBytes(0 -| taken.blocks, in: db)
        }
        var blocks = try Self.saveHead(update, resourceID, in: db)
        for extent in update.extents {
            let before = try Self.save(extent, of: update, isPinned: isPinned, session: session, in: db)
            blocks +|= update.geometry.blockBytes(of: extent.present, inExtent: extent.ordinal, length: update.length)
                -| update.geometry.blockBytes(of: before, inExtent: extent.ordinal, length: update.length)
            cached +|= update.geometry.bodyBytes(of: extent.present, inExtent: extent.ordinal, length: update.length)
                -| update.geometry.bodyBytes(of: before, inExtent: extent.ordinal, length: update.length)
        }
        if cached != 0 {
            try db.cachedStatement(sql: "UPDATE resource SET cached = cached + ? WHERE id = ?").execute(arguments: [
                cached, resourceID,
            ])
        }
        try IndexDatabase.addDataBytes(blocks, in: db)
    }

    /// Makes a resource a part of a presentation. One with parts of its own is left to the caller, as moving them takes
    /// too long.
    /// - Returns: whether it becomes pinned with its whole.
    private static func join(
        _ update: Update, _ resource: StoredRow, to whole: CacheKey, _ saved: inout Saved,
        in db: Database
    ) throws -> Bool {
        let id = try resource.integer("id")
        guard whole != update.key, let wholeID = try IndexParts.whole(whole, of: id, in: db),
            (try? resource.integer("part_of")) != wholeID
        else { return false }
        guard try !IndexParts.hasParts(id, in: db) else {
            saved.toBeJoined.append((update.key, whole))
            return false
        }
        let isPinned = try IndexParts.join(id, to: wholeID, in: db)
        if isPinned, update.wasIndexed { saved.newlyPinned.append(update.key) }
        return isPinned
    }

    /// - Returns: the growth of the file's overhead compared with the row.
    private static func saveHead(_ update: Update, _ resource: Int64, in db: Database) throws -> Int64 {
        let known = try Int64.fetchOne(
            db.cachedStatement(sql: "SELECT overhead FROM generation WHERE id = ?"), arguments: [update.id])
        guard let known else {
            try db.cachedStatement(
                sql: """
                    INSERT INTO generation (id, resource, length, status, final_url, chunk_size, stored_at, overhead, fields, validated_at, initial_age, selecting, is_public)
                    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                    """
            ).execute(
                arguments: [
                    update.id, resource, update.length, update.head.status, update.head.finalURL,
                    update.geometry.chunkSize, update.head.storedAt, update.overhead,
                ] + headArguments(update.head))
            return update.overhead
        }
        if update.isHeadChanged {
            try db.cachedStatement(
                sql:
                    "UPDATE generation SET fields = ?, validated_at = ?, initial_age = ?, selecting = ?, is_public = ? WHERE id = ?"
            )
            .execute(arguments: headArguments(update.head) + [update.id])
        }
        if known != update.overhead {
            try db.cachedStatement(sql: "UPDATE generation SET overhead = ? WHERE id = ?").execute(arguments: [
                update.overhead, update.id,
            ])
        }
        return update.overhead -| known
    }

    /// The columns that a validation changes.
    private static func headArguments(_ head: GenerationHead) -> StatementArguments {
        [
            pairs(head.fields.lines.map { ($0.name, $0.value) }), head.times.validatedAt, head.times.initialAge,
            pairs(head.variant.fields.map { ($0.name, $0.value) }), head.isPublic,
        ]
    }

    /// Encodes pairs as JSON (RFC 8259): an array of arrays of two. Written by hand because it runs for each small
    /// file.
    static func pairs(_ pairs: [(String, String?)]) -> String {
        var text = "["
        for (name, value) in pairs {
            text += text.utf8.count == 1 ? "[" : ",["
            append(name, to: &text)
            text += ","
            if let value { append(value, to: &text) } else { text += "null" }
            text += "]"
        }
        return text + "]"
    }

    private static func append(_ string: String, to text: inout String) {
        text += "\""
        if string.utf8.contains(where: { $0 < 0x20 || $0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: "\\") }) {
            for scalar in string.unicodeScalars {
                switch scalar {
                case "\"", "\\": text += "\\\(scalar)"
                case "\0"..<" ":
                    let digits = String(scalar.value, radix: 16)
                    text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
                default: text.unicodeScalars.append(scalar)
                }
            }
        } else {
            text += string
        }
        text += "\""
    }

    /// - Returns: the row's previous bits.
    private static func save(
        _ extent: ExtentUpdate, of update: Update, isPinned: Bool, session: Int64, in db: Database
    )
        throws -> Presence
    {
        let known = try Row.fetchOne(
            db.cachedStatement(
                sql: "SELECT checksums, session, present FROM extent WHERE generation = ? AND ordinal = ?"),
            arguments: [update.id, extent.ordinal]
        ).map { StoredRow($0) }
        let bits = known.flatMap { try? $0.integer("present") } ?? 0
        let before = update.geometry.existing(
            Presence(bits: UInt64(bitPattern: bits)), inExtent: extent.ordinal, length: update.length)
        guard !extent.present.isEmpty else {
            try db.cachedStatement(sql: "DELETE FROM extent WHERE generation = ? AND ordinal = ?").execute(arguments: [
                update.id, extent.ordinal,
            ])
            return before
        }
        var checksums = IndexRows.unpack(known.flatMap { try? $0.bytes("checksums") } ?? Data())
        for (bit, checksum) in extent.checksums { checksums[bit] = checksum }
        let written = extent.isVerified ? session : known.flatMap { try? $0.integer("session") } ?? session
        try db.cachedStatement(sql: "INSERT OR REPLACE INTO extent VALUES (?, ?, ?, ?, ?, ?, ?)").execute(arguments: [
            update.id, extent.ordinal, Int64(bitPattern: extent.present.bits), IndexRows.pack(checksums),
            extent.lastAccess,
            written, isPinned,
        ])
        return before
    }
}
