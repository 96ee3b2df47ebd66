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

        /// Splits the update, so that no part has many extents. The first of a generation replaces the rows of the
        /// former, and so is one part up to 16 times as many: 32 GiB in chunks of the standard size.
        func parts(of count: Int) -> [Update] {
            let count = wasIndexed ? count : 16 * count
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

        /// All checksums, by bit, without those after the last known one.
        /// - Parameter known: those in the row.
        func checksums(besides known: [UInt64]) -> [UInt64] {
            var all = known + repeatElement(0, count: max(0, (checksums.keys.max() ?? -1) + 1 - known.count))
            for (bit, checksum) in checksums { all[bit] = checksum }
            while all.last == 0 { all.removeLast() }
            return all
        }
    }

    /// What was read of a generation since the index was last told.
    struct Touch: Sendable {
        let id: GenerationID
        var reads: [Read]
        /// What its resource's row is to say of it; nil leaves that for later.
        var resource: Use?

        struct Read: Sendable {
            let ordinal: Int
            /// Microseconds since 1970, as is `Use.lastAccess`.
            let time: Int64
        }

        struct Use: Sendable {
            let hits: Int64
            let lastAccess: Int64
            /// What players have read.
            var played = ReadRanges()
        }

        /// With what was read later.
        func followed(by later: Touch) -> Touch {
            let ordinals = Set(later.reads.map(\.ordinal))
            var use = later.resource ?? resource
            if let resource, let next = later.resource {
                var played = resource.played
                for range in next.played.ranges { played.insert(range) }
                use = Use(
                    hits: resource.hits +| next.hits, lastAccess: max(resource.lastAccess, next.lastAccess),
                    played: played)
            }
            return Touch(id: id, reads: reads.filter { !ordinals.contains($0.ordinal) } + later.reads, resource: use)
        }

        /// The number of pages that it changes, at most: a row and its places in indexes.
        private var pages: Int { 3 * reads.count + (resource.map { $0.played.ranges.isEmpty ? 8 : 11 } ?? 0) }

        /// Groups touches into batches for one transaction each.
        static func batches(_ touches: [Touch]) -> [ArraySlice<Touch>] {
            var (batches, start, pages) = ([ArraySlice<Touch>](), 0, 0)
            for (place, touch) in touches.enumerated() {
                if place > start, pages + touch.pages > IndexDatabase.rowsAtOnce {
                    batches.append(touches[start..<place])
                    (start, pages) = (place, 0)
                }
                pages += touch.pages
            }
            return start < touches.count ? batches + [touches[start...]] : batches
        }
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
            // Not before: the filter may be emptied while another transaction is waited for.
            for update in updates { keys.enter(update.key) }
            var transaction = try Transaction(db, session: session)
            for update in updates { try transaction.save(update) }
            try IndexDatabase.addDataBytes(transaction.growth, in: db)
            if !transaction.saved.pinned.isEmpty { try database.countPinChange(in: db) }
            return transaction.saved
        }
    }

    /// Saves in one transaction; `batches` keeps each small. Rows that are gone stay gone.
    func save(_ touches: ArraySlice<Touch>) throws(StoreError) {
        try database.write { db in
            let read = try IndexStatement(
                "UPDATE extent SET last_access = ?3 WHERE generation = ?1 AND ordinal = ?2", in: db)
            let use = try IndexStatement(
                """
                UPDATE resource SET hits = hits + ?2, last_access = max(last_access, ?3)
                WHERE id = (SELECT resource FROM generation WHERE id = ?1)
                """, in: db)
            for touch in touches {
                for extent in touch.reads {
                    try read.run(.id(touch.id), .integer(Int64(extent.ordinal)), .integer(extent.time))
                }
                guard let resource = touch.resource else { continue }
                try use.run(.id(touch.id), .integer(resource.hits), .integer(resource.lastAccess))
                if !resource.played.ranges.isEmpty { try Self.save(resource.played, of: touch.id, in: db) }
            }
        }
    }
}

extension IndexSaving {
    /// Adds what players have read of a generation. At three quarters of it, its resource counts as played, and what
    /// was read is counted from the beginning. A presentation that was downloaded counts as played when three quarters
    /// of its parts' bytes do; of any other, the parts that are known are those that were read.
    private static func save(_ played: ReadRanges, of id: GenerationID, in db: Database) throws {
        let row = try IndexStatement(
            """
            SELECT length, read_ranges, resource, part_of FROM generation g JOIN resource r ON r.id = resource
            WHERE g.id = ?1
            """, in: db
        ).first(.id(id)) {
            ($0.integer(0), String.fromDatabaseValue($0.value(1)), $0.integer(2), $0.integer(3))
        }
        guard case (let length?, let saved, let resource, let whole)? = row,
            (1...ChunkGeometry.longestBody).contains(length)
        else { return }
        var ranges = played
        if let saved { ranges.insert(saved) }
        let isPlayed = ranges.count >= ReadRanges.threeQuarters(of: length)
        // Most are played in one go, and have none.
        if !isPlayed || saved != nil {
            try IndexStatement("UPDATE generation SET read_ranges = nullif(?2, '') WHERE id = ?1", in: db)
                .run(.id(id), .text(isPlayed ? "" : ranges.text))
        }
        guard isPlayed, let resource else { return }
        let update = "UPDATE resource SET played = last_access / 1000000 WHERE id = ?1 AND"
        try IndexStatement("\(update) parts = 0", in: db).run(.integer(resource))
        guard let whole else { return }
        try IndexStatement(
            """
            \(update) downloaded = 1 AND 4 * (
                SELECT total(g.length) FROM resource p JOIN generation g ON g.resource = p.id
                WHERE p.part_of = ?1 AND p.played IS NOT NULL) >= 3.0 * part_length
            """, in: db
        ).run(.integer(whole))
    }
}
