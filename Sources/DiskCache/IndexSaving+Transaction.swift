import CachePolicy
import GRDB
import HTTPModel

extension IndexSaving {
    /// A transaction that saves updates of generations: its statements, prepared once for all of them.
    struct Transaction {
        private let db: Database
        private let session: Int64
        private(set) var saved = Saved()
        /// By how much the allocated bytes of all data grow.
        private(set) var growth: Int64 = 0

        private let findResource, addResource, changeResource: IndexStatement
        private let findGeneration, findOlder, addGeneration, countPart, changeHead, changeOverhead: IndexStatement
        private let findExtent, addExtent, changeExtent, removeExtent: IndexStatement

        init(_ db: Database, session: Int64) throws {
            (self.db, self.session) = (db, session)
            let prepare = { try IndexStatement($0, in: db) }
            findResource = try prepare("SELECT id, pinned, downloaded, part_of FROM resource WHERE key = ?")
            // An error ends the transaction anyway. Without FAIL, SQLite would copy each page that the statement
            // changes, to be able to undo it alone.
            addResource = try prepare(
                """
                INSERT OR FAIL INTO resource (key, hits, last_access, cached) VALUES (?, ?, ?, ?)
                ON CONFLICT (key) DO NOTHING
                """)
            changeResource = try prepare(
                """
                UPDATE resource SET hits = hits + ?2, last_access = max(last_access, ?3), cached = cached + ?4
                WHERE id = ?1
                """)
            findGeneration = try prepare("SELECT overhead FROM generation WHERE id = ?")
            findOlder = try prepare("SELECT id, overhead FROM generation WHERE resource = ?")
            addGeneration = try prepare(
                """
                INSERT INTO generation (id, resource, length, status, final_url, chunk_size, stored_at, overhead, fields, validated_at, initial_age, selecting, is_public)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                """)
            countPart = try prepare(
                """
                UPDATE resource SET parts = parts + 1, part_length = part_length + ?2
                WHERE id = (SELECT part_of FROM resource WHERE id = ?1)
                """)
            changeHead = try prepare(
                """
                UPDATE generation SET fields = ?2, validated_at = ?3, initial_age = ?4, selecting = ?5, is_public = ?6
                WHERE id = ?1
                """)
            changeOverhead = try prepare("UPDATE generation SET overhead = ?2 WHERE id = ?1")
            findExtent = try prepare(
                "SELECT present, session, checksums FROM extent WHERE generation = ? AND ordinal = ?")
            addExtent = try prepare("INSERT INTO extent VALUES (?, ?, ?, ?, ?, ?, ?)")
            changeExtent = try prepare(
                """
                UPDATE extent SET present = ?3, checksums = ?4, last_access = ?5, session = ?6, pinned = ?7
                WHERE generation = ?1 AND ordinal = ?2
                """)
            removeExtent = try prepare("DELETE FROM extent WHERE generation = ? AND ordinal = ?")
        }

        /// The row of a resource.
        private struct Resource {
            let id: Int64
            var isPinned = false
            var isDownloaded = false
            /// The row of its whole.
            var whole: Int64?
            /// Whether the transaction has made it.
            var isNew = false
        }

        mutating func save(_ update: Update) throws {
            if update.extents.isEmpty, update.wasIndexed,
                try findGeneration.first(.id(update.id), read: { _ in true }) == nil
            {
                // Rows that are gone stay gone.
                return
            }
            let lastAccess = update.extents.lazy.map(\.lastAccess).max() ?? 0
            // A new generation is nearly always that of a new resource, which is then not looked for.
            let added = try update.wasIndexed ? nil : add(update, lastAccess)
            guard var resource = try added ?? find(update) ?? add(update, lastAccess) else {
                throw RowDamage(column: "key", reason: "is there, and is not found")
            }
            if let whole = update.whole, try join(update, resource, to: whole) { resource.isPinned = true }
            if resource.isPinned { saved.pinned.insert(update.id) }
            if resource.isPinned || resource.isDownloaded { saved.kept.insert(update.id) }
            let (overhead, removed) = try knownOverhead(of: update, in: resource)
            try saveHead(update, resource, known: overhead)
            // The sums of its whole, which triggers keep otherwise.
            if overhead == nil, resource.whole != nil || update.whole != nil {
                try countPart.run(.integer(resource.id), .integer(update.length))
            }
            var cached = 0 -| removed
            for extent in update.extents {
                let before = try save(extent, of: update, isPinned: resource.isPinned, isNew: overhead == nil)
                growth +|= Self.blocks(extent.present, extent, update) -| Self.blocks(before, extent, update)
                cached +|= Self.body(extent.present, extent, update) -| Self.body(before, extent, update)
            }
            // The row of a new resource has this already.
            guard !resource.isNew else { return }
            try changeResource.run(.integer(resource.id), .integer(update.hits), .integer(lastAccess), .integer(cached))
        }

        private static func blocks(_ chunks: Presence, _ extent: ExtentUpdate, _ update: Update)
            -> Int64
        {
            update.geometry.blockBytes(of: chunks, inExtent: extent.ordinal, length: update.length)
        }

        private static func body(_ chunks: Presence, _ extent: ExtentUpdate, _ update: Update)
            -> Int64
        {
            update.geometry.bodyBytes(of: chunks, inExtent: extent.ordinal, length: update.length)
        }

        private func find(_ update: Update) throws -> Resource? {
            try findResource.first(.text(update.key.text)) { row in
                Resource(
                    id: row.integer(0) ?? 0, isPinned: row.flag(1), isDownloaded: row.flag(2), whole: row.integer(3))
            }
        }

        /// - Returns: nil if it has a row.
        private func add(_ update: Update, _ lastAccess: Int64) throws -> Resource? {
            let cached = update.extents.reduce(0) { $0 +| Self.body($1.present, $1, update) }
            try addResource.run(.text(update.key.text), .integer(update.hits), .integer(lastAccess), .integer(cached))
            return db.changesCount > 0 ? Resource(id: db.lastInsertedRowID, isNew: true) : nil
        }

        /// Makes a resource a part of a presentation. One with parts of its own is left to the caller, as moving them
        /// takes too long.
        /// - Returns: whether it becomes pinned with its whole.
        private mutating func join(_ update: Update, _ resource: Resource, to whole: CacheKey) throws -> Bool {
            guard whole != update.key, let wholeID = try IndexParts.whole(whole, of: resource.id, in: db),
                resource.whole != wholeID
            else { return false }
            guard try resource.isNew || !IndexParts.hasParts(resource.id, in: db) else {
                // It stays a presentation of its own.
                if resource.isPinned, resource.whole == nil { return false }
                saved.toBeJoined.append((update.key, whole))
                return false
            }
            let isPinned = try IndexParts.join(resource.id, from: resource.whole, to: wholeID, in: db)
            if isPinned, update.wasIndexed { saved.newlyPinned.append(update.key) }
            return isPinned
        }

        /// A resource has one current generation: removes the row of an older one.
        /// - Returns: the overhead in the generation's row, nil if it has none, and the cached bytes that were removed.
        private mutating func knownOverhead(of update: Update, in resource: Resource) throws -> (
            overhead: Int64?, removed: Int64
        ) {
            let overhead = { (value: Int64?) throws(RowDamage) in
                guard let value else { throw RowDamage(column: "overhead", reason: "is of another type") }
                return value
            }
            if update.wasIndexed,
                let known = try findGeneration.first(.id(update.id), read: { try overhead($0.integer(0)) })
            {
                return (known, 0)
            }
            let found =
                try resource.isNew
                ? nil : findOlder.first(.integer(resource.id)) { (id: $0.integer(0) ?? 0, overhead: $0.integer(1)) }
            guard let found else { return (nil, 0) }
            let id = GenerationID(value: UInt64(bitPattern: found.id))
            guard id != update.id else { return (try overhead(found.overhead), 0) }
            let taken = try IndexRows.taken(by: id, in: db)
            try db.cachedStatement(sql: "DELETE FROM generation WHERE id = ?").execute(arguments: [id])
            saved.replaced[id] = taken.blocks
            growth -|= taken.blocks
            return (nil, taken.body)
        }

        private mutating func saveHead(_ update: Update, _ resource: Resource, known: Int64?) throws {
            let head = update.head
            var fields: IndexStatement.Value {
                .utf8(IndexStatement.pairs(head.fields.lines.lazy.map { ($0.name, $0.value) }))
            }
            var selecting: IndexStatement.Value {
                .utf8(IndexStatement.pairs(head.variant.fields.lazy.map { ($0.name, $0.value) }))
            }
            growth +|= update.overhead -| (known ?? 0)
            guard let known else {
                return try addGeneration.run(
                    .id(update.id), .integer(resource.id), .integer(update.length), .integer(Int64(head.status)),
                    .text(head.finalURL), .integer(update.geometry.chunkSize), .integer(head.storedAt),
                    .integer(update.overhead), fields, .integer(head.times.validatedAt),
                    .integer(head.times.initialAge),
                    selecting, .flag(head.isPublic))
            }
            // The columns that a validation changes.
            if update.isHeadChanged {
                try changeHead.run(
                    .id(update.id), fields, .integer(head.times.validatedAt), .integer(head.times.initialAge),
                    selecting,
                    .flag(head.isPublic))
            }
            if known != update.overhead { try changeOverhead.run(.id(update.id), .integer(update.overhead)) }
        }

        /// - Parameter isNew: whether the generation had no row, and so has no extents.
        /// - Returns: the row's previous bits.
        private func save(
            _ extent: ExtentUpdate, of update: Update, isPinned: Bool, isNew: Bool
        ) throws -> Presence {
            let ordinal = IndexStatement.Value.integer(Int64(extent.ordinal))
            let known =
                try isNew
                ? nil
                : findExtent.first(.id(update.id), ordinal) { row in
                    (bits: row.integer(0) ?? 0, session: row.integer(1), checksums: row.numbers(2))
                }
            let before = update.geometry.existing(
                Presence(bits: UInt64(bitPattern: known?.bits ?? 0)), inExtent: extent.ordinal, length: update.length)
            guard !extent.present.isEmpty else {
                if known != nil { try removeExtent.run(.id(update.id), ordinal) }
                return before
            }
            let checksums = extent.checksums(besides: known?.checksums ?? [])
            try (known == nil ? addExtent : changeExtent).run(
                .id(update.id), ordinal, .integer(Int64(bitPattern: extent.present.bits)), .numbers(checksums),
                .integer(extent.lastAccess), .integer(extent.isVerified ? session : known?.session ?? session),
                .flag(isPinned))
            return before
        }
    }
}
