import CachePolicy
import Foundation
import GRDB
import HTTPModel

/// What people ask about.
extension CacheIndex {
    /// How many resources there are, and how many of them are pinned.
    func counts() throws(StoreError) -> (resources: Int, pinned: Int) {
        try read { db in
            (
                try Int.fetchOne(db, sql: "SELECT count(*) FROM generation") ?? 0,
                try Int.fetchOne(
                    db,
                    sql:
                        "SELECT count(*) FROM resource JOIN generation ON generation.resource = resource.id WHERE pinned = 1"
                ) ?? 0
            )
        }
    }

    /// A page of resources. Costs what the page and those before it cost, and a count; with a filter, a look at all
    /// names.
    func resources(_ query: ResourceQuery) throws(StoreError) -> ResourceListing {
        // As who asks sees it.
        let name = query.mask == nil ? "r.key" : "\(Self.maskFunction)(r.key)"
        let order =
            switch query.order {
            case .size: "r.cached DESC, r.id DESC"
            case .recent: "r.last_access DESC, r.id DESC"
            case .hits: "r.hits DESC, r.id DESC"
            case .name: name
            }
        let condition = query.filter == nil ? "WHERE TRUE" : "WHERE \(name) LIKE ? ESCAPE '\\'"
        let (place, after) = query.after.map { ("AND \(name) > ?", [$0]) } ?? ("", [])
        let pattern =
            query.filter.map(Self.asInKeys).map {
                ["%\($0.replacing("\\", with: "\\\\").replacing("%", with: "\\%").replacing("_", with: "\\_"))%"]
            } ?? []
        return try read { db in
            if let mask = query.mask { Self.define(mask, in: db) }
            let rows = try Row.fetchAll(
                db.cachedStatement(
                    sql: "\(Self.selectResources) \(condition) \(place) ORDER BY \(order) LIMIT ? OFFSET ?"),
                arguments: StatementArguments(pattern + after) + [query.limit ?? -1, query.offset])
            let counted =
                query.filter == nil ? "generation" : "resource r JOIN generation g ON g.resource = r.id \(condition)"
            let total =
                try Int.fetchOne(
                    db.cachedStatement(sql: "SELECT count(*) FROM \(counted)"), arguments: StatementArguments(pattern))
                ?? 0
            return ResourceListing(resources: rows.compactMap(Self.resourceReport), total: total)
        }
    }

    private static let maskFunction = "reelcache_masked"

    /// The mask may be another each time; SQLite then prepares the statements that use it anew.
    private static func define(_ mask: URLMask, in db: Database) {
        db.add(
            function: DatabaseFunction(maskFunction, argumentCount: 1, pure: true) { values in
                String.fromDatabaseValue(values[0]).map(mask.masked)
            })
    }

    /// What people read in a URL as it stands in a key: keys are ASCII without spaces. What is percent-encoded already
    /// stays.
    private static func asInKeys(_ filter: String) -> String {
        PercentEncoding.encodingNonASCII(filter.utf8).replacing(" ", with: "%20")
    }

    func resource(_ key: CacheKey) throws(StoreError) -> ResourceReport? {
        try readOne { db in
            try Row.fetchOne(db.cachedStatement(sql: "\(Self.selectResources) WHERE r.key = ?"), arguments: [key.text])
                .flatMap(Self.resourceReport)
        }
    }

    private static let selectResources = """
        SELECT r.key, g.length, r.cached, r.pinned, r.hits, r.last_access, g.stored_at, g.fields FROM resource r JOIN generation g ON g.resource = r.id
        """

    /// nil for a row that cannot be: it is left out.
    private static func resourceReport(_ row: Row) -> ResourceReport? {
        let row = StoredRow(row)
        guard let url = try? row.text("key"), let length = try? row.integer("length", in: 0...Generation.longest) else {
            return nil
        }
        // no trap: the length is none below 0
        let cached = (try? row.integer("cached", in: 0...length)) ?? 0,
            fields = try? row.decoded([[String]].self, "fields")
        return ResourceReport(
            url: url, length: length, cached: cached, isComplete: cached == length,
            isPinned: (try? row.flag("pinned")) ?? false,
            hits: (try? row.integer("hits", in: 0...1 << 60)) ?? 0,
            lastAccess: ((try? row.integer("last_access")) ?? 0) / 1_000_000,
            storedAt: (try? row.integer("stored_at")) ?? 0,
            type: fields?.first { $0.count == 2 && $0[0].lowercased() == "content-type" }?[1])
    }

    /// Keeps the extents of a resource out of the order of eviction, or puts them back.
    /// - Returns: false where it is not known.
    func setPinned(_ isPinned: Bool, _ key: CacheKey) throws(StoreError) -> Bool {
        let isKnown = try write { db in
            try db.execute(sql: "UPDATE resource SET pinned = ? WHERE key = ?", arguments: [isPinned, key.text])
            guard db.changesCount > 0 else { return false }
            try countPinChange(in: db)
            return true
        }
        for id in try identifiers(of: key) {
            var changed = 1
            while changed > 0 { changed = try write { try Self.setPinned(isPinned, someExtentsOf: id, in: $0) } }
        }
        return isKnown
    }

    /// Ordinals are compared where they stand: a damaged one that was read as a number would be another, and its row
    /// never change.
    /// - Returns: how many rows are no longer as they were.
    private static func setPinned(_ isPinned: Bool, someExtentsOf id: GenerationID, in db: Database) throws -> Int {
        let sql = """
            UPDATE extent SET pinned = ?1 WHERE generation = ?2
            AND ordinal IN (SELECT ordinal FROM extent WHERE generation = ?2 AND pinned != ?1 LIMIT ?3)
            """
        try db.cachedStatement(sql: sql).execute(arguments: [isPinned, id, rowsAtOnce])
        return db.changesCount
    }

    /// Notes that somebody has had a resource downloaded.
    func setDownloaded(_ key: CacheKey) throws(StoreError) {
        try write {
            try $0.execute(
                sql: "UPDATE resource SET downloaded = 1 WHERE key = ? AND downloaded = 0", arguments: [key.text])
        }
    }

    /// Why a resource is kept.
    struct Kept: Sendable {
        var isPinned = false
        var isDownloaded = false
    }

    /// What somebody has done to keep a resource.
    func kept(_ key: CacheKey) throws(StoreError) -> Kept {
        try readOne { db in
            let row = try Row.fetchOne(
                db.cachedStatement(sql: "SELECT pinned, downloaded FROM resource WHERE key = ?"), arguments: [key.text]
            ).map { StoredRow($0) }
            return Kept(
                isPinned: (try? row?.flag("pinned")) ?? false, isDownloaded: (try? row?.flag("downloaded")) ?? false)
        }
    }

    /// Whether somebody has pinned or downloaded a resource.
    func isKept(_ key: CacheKey) throws(StoreError) -> Bool {
        let kept = try kept(key)
        return kept.isPinned || kept.isDownloaded
    }

    /// Has a resource that came back kept as it was.
    func restore(_ kept: Kept, of key: CacheKey) throws(StoreError) {
        if kept.isPinned { _ = try setPinned(true, key) }
        if kept.isDownloaded { try setDownloaded(key) }
    }

    /// Keys of pinned resources.
    func pinned() throws(StoreError) -> [CacheKey] {
        try read { try String.fetchAll($0, sql: "SELECT key FROM resource WHERE pinned = 1").map(CacheKey.init(text:)) }
    }

    /// What is cached of pinned resources.
    func pinnedBytes() throws(StoreError) -> Int64 {
        // `sum` fails where damaged values exceed its range.
        let bytes = try readOne {
            try Double.fetchOne(
                $0, sql: "SELECT total(min(max(cached, 0), ?)) FROM resource WHERE pinned = 1",
                arguments: [Generation.longest]) ?? 0
        }
        return min(max(Int64(saturating: bytes), 0), 1 << 60)
    }

    /// Resources and their generations, in the order of identifiers, after one. For work on all of them, page by page.
    /// - Parameter before: only what was read before this time, in microseconds since 1970; nil for all.
    func page(
        after id: Int64, readBefore before: Int64? = nil, limit: Int
    ) throws(StoreError) -> [(resource: Int64, key: CacheKey, isPinned: Bool, generation: GenerationID)] {
        try read { db in
            let rows = try Row.fetchAll(
                db.cachedStatement(
                    sql: """
                        SELECT r.id AS resource, r.key, r.pinned, g.id AS generation FROM resource r JOIN generation g ON g.resource = r.id
                        WHERE r.id > ? AND r.last_access < ? ORDER BY r.id LIMIT ?
                        """), arguments: [id, before ?? .max, limit])
            return rows.compactMap { row in
                let row = StoredRow(row)
                guard let resource = try? row.integer("resource"), let key = try? row.text("key"),
                    let generation = try? row.generation("generation")
                else { return nil }
                return (resource, CacheKey(text: key), (try? row.flag("pinned")) ?? false, generation)
            }
        }
    }

    func isKnown(_ id: GenerationID) throws(StoreError) -> Bool {
        try readOne { try Bool.fetchOne($0, sql: "SELECT 1 FROM generation WHERE id = ?", arguments: [id]) ?? false }
    }

    /// What the rows of generations say that they take on the disk.
    func taken(by ids: [GenerationID]) throws(StoreError) -> Int64 {
        try read { db in try ids.reduce(0) { $0 +| (try Self.taken(by: $1, in: db).blocks) } }
    }

    /// All that is known of a resource, to be kept elsewhere.
    func update(of key: CacheKey) throws(StoreError) -> Update? {
        guard let row = try generation(of: key), let extents = try extents(of: row) else { return nil }
        return Update(row, extents)
    }
}

extension CacheIndex.Update {
    init(_ row: CacheIndex.GenerationRow, _ extents: [CacheIndex.ExtentRow], overhead: Int64? = nil) {
        let extents = extents.map { extent in
            CacheIndex.ExtentUpdate(
                ordinal: extent.ordinal, present: extent.present,
                checksums: Dictionary(uniqueKeysWithValues: extent.checksums.enumerated().map { ($0, $1) }),
                lastAccess: extent.lastAccess, isVerified: false)
        }
        self.init(
            id: row.id, key: row.key, head: row.head, length: row.length, geometry: row.geometry,
            overhead: overhead ?? row.overhead, hits: 0,
            extents: extents)
    }
}
