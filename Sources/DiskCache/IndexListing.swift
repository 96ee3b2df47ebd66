import CachePolicy
import Foundation
import GRDB
import HTTPModel

extension IndexListing {
    /// A resource by itself, without parts. Sizes are in bytes.
    struct OwnRow: Sendable {
        let length: Int64
        let cached: Int64
        let isPinned: Bool
        /// Requests answered from it.
        let hits: Int64

        var isComplete: Bool { cached == length }
    }

    /// A resource in a walk over all rows.
    struct Listed: Sendable {
        /// The row's ID.
        let resource: Int64
        let key: CacheKey
        let isPinned: Bool
        /// Whether it is a part of a presentation.
        let isPart: Bool
        let generation: GenerationID
    }
}

/// Queries for people.
struct IndexListing: Sendable {
    let database: IndexDatabase

    /// The number of listed resources, and of pinned ones. A presentation counts as one.
    func counts() throws(StoreError) -> (resources: Int, pinned: Int) {
        try database.read { db in
            // Starts from the few pinned rows rather than from all that are not parts.
            let pinned = """
                SELECT count(*) FROM resource r INDEXED BY resource_pinned LEFT JOIN generation g ON g.resource = r.id
                WHERE \(Self.isListed) AND r.pinned = 1
                """
            return (try Self.count(db), try Int.fetchOne(db.cachedStatement(sql: pinned)) ?? 0)
        }
    }

    /// The number of listed resources, without visiting each.
    private static func count(_ db: Database) throws -> Int {
        // The rows of presentations know their number of parts.
        let sql = """
            SELECT (SELECT count(*) FROM generation)
                - (SELECT total(parts - NOT EXISTS (SELECT 1 FROM generation g WHERE g.resource = r.id))
                    FROM resource r WHERE parts > 0)
            """
        return max(0, Int(saturating: try Double.fetchOne(db.cachedStatement(sql: sql)) ?? 0))
    }

    private static let resources = "resource r LEFT JOIN generation g ON g.resource = r.id"

    /// Lists what is cached and is not a part. A presentation is listed even if its first playlist is not cached.
    private static let isListed = "r.part_of IS NULL AND (g.id IS NOT NULL OR r.parts > 0)"

    /// A page of resources. It costs as much as this page, the pages before it, and a count; a filter or a category
    /// visits all rows.
    func resources(_ query: ResourceQuery) throws(StoreError) -> ResourceListing {
        let condition = Self.condition(query), after = query.after.map { [$0] } ?? []
        let category = query.category.map { [$0] } ?? []
        let pattern =
            query.filter.map(Self.asInKeys).map {
                ["%\($0.replacing("\\", with: "\\\\").replacing("%", with: "\\%").replacing("_", with: "\\_"))%"]
            } ?? []
        // A longer one is an error of SQLite, as damage is; no name is so long.
        if pattern.contains(where: { $0.utf8.count > Self.longestPattern }) {
            return ResourceListing(resources: [], total: 0)
        }
        return try database.read { db in
            if let mask = query.mask { Self.define(mask, in: db) }
            let rows = try Row.fetchAll(
                db.cachedStatement(sql: Self.page(query)),
                arguments: StatementArguments(pattern + category + after) + [query.limit ?? -1, query.offset])
            let counted = "SELECT count(*) FROM \(Self.resources) \(condition)"
            let total =
                query.filter == nil && query.category == nil
                ? try Self.count(db)
                : try Int.fetchOne(db.cachedStatement(sql: counted), arguments: StatementArguments(pattern + category))
                    ?? 0
            return ResourceListing(resources: rows.compactMap(Self.resourceReport), total: total)
        }
    }

    /// `SQLITE_MAX_LIKE_PATTERN_LENGTH`, in bytes.
    private static let longestPattern = 50_000

    /// The statement for a page. Its arguments are the filter's pattern, the category, the name before the page, the
    /// limit and the offset.
    static func page(_ query: ResourceQuery) -> String {
        let name = name(query)
        let order =
            switch query.order {
            case .size: "r.cached + r.part_cached DESC, r.id DESC"
            case .recent: "r.last_access DESC, r.id DESC"
            case .hits: "r.hits + r.part_hits DESC, r.id DESC"
            case .name: name
            }
        let place = query.after == nil ? "" : "AND \(name) > ?"
        return "\(selectResources) \(condition(query)) \(place) ORDER BY \(order) LIMIT ? OFFSET ?"
    }

    private static func condition(_ query: ResourceQuery) -> String {
        "WHERE \(isListed)" + (query.filter == nil ? "" : " AND \(name(query)) LIKE ? ESCAPE '\\'")
            + (query.category == nil ? "" : " AND r.category = ?")
    }

    /// The name as the caller sees it.
    private static func name(_ query: ResourceQuery) -> String {
        query.mask == nil ? "r.key" : "\(maskFunction)(r.key)"
    }

    private static let maskFunction = "reelcache_masked"

    /// The mask may change with each query; SQLite then prepares the statements that use it again.
    private static func define(_ mask: URLMask, in db: Database) {
        db.add(
            function: DatabaseFunction(maskFunction, argumentCount: 1, pure: true) { values in
                String.fromDatabaseValue(values[0]).map(mask.masked)
            })
    }

    /// Encodes a filter like keys, which are ASCII without spaces. Percent-encoded text stays as it is.
    private static func asInKeys(_ filter: String) -> String {
        PercentEncoding.encodingNonASCII(filter.utf8).replacing(" ", with: "%20")
    }

    func resource(_ key: CacheKey) throws(StoreError) -> CachedResource? {
        try database.readOne { db in
            try Row.fetchOne(
                db.cachedStatement(
                    sql: "\(Self.selectResources) WHERE r.key = ? AND (g.id IS NOT NULL OR r.parts > 0)"),
                arguments: [key.text]
            )
            .flatMap(Self.resourceReport)
        }
    }

    /// The pinned resources that people miss least: those that were played first, then those that were read longest
    /// ago.
    func leastMissed(limit: Int) throws(StoreError) -> [CachedResource] {
        try database.read { db in
            let rows = try Row.fetchAll(
                db,
                sql: """
                    \(Self.selectResources) WHERE \(Self.isListed) AND r.pinned = 1
                    ORDER BY r.played IS NULL, r.last_access LIMIT ?
                    """, arguments: [limit])
            return rows.compactMap(Self.resourceReport)
        }
    }

    /// The keys of all that was played, with the time, in seconds since 1970.
    func played() throws(StoreError) -> [CacheKey: Int64] {
        try database.read { db in
            let rows = try Row.fetchAll(
                db, sql: "SELECT key, played FROM resource WHERE played IS NOT NULL AND part_of IS NULL")
            return rows.map { StoredRow($0) }.reduce(into: [:]) { played, row in
                if let key = try? row.text("key") { played[CacheKey(text: key)] = (try? row.integer("played")) ?? 0 }
            }
        }
    }

    /// A resource by itself, without parts; nil if nothing of it is cached.
    func own(_ key: CacheKey) throws(StoreError) -> OwnRow? {
        try database.readOne { db in
            let sql = """
                SELECT r.cached, r.pinned, r.hits, g.length FROM resource r JOIN generation g ON g.resource = r.id
                WHERE r.key = ?
                """
            return try Row.fetchOne(db.cachedStatement(sql: sql), arguments: [key.text]).flatMap {
                let row = StoredRow($0)
                guard let length = try? row.integer("length", in: 0...ChunkGeometry.longestBody) else { return nil }
                return OwnRow(
                    // no trap: the length is never negative
                    length: length, cached: (try? row.integer("cached", in: 0...length)) ?? 0,
                    isPinned: (try? row.flag("pinned")) ?? false,
                    hits: (try? row.integer("hits", in: 0...1 << 60)) ?? 0)
            }
        }
    }

    private static let selectResources = """
        SELECT r.key, g.length, r.cached, r.pinned, r.hits, r.last_access, r.played, r.title, r.category, g.stored_at, g.fields,
            r.parts, r.part_length, r.part_cached, r.part_hits, (SELECT w.key FROM resource w WHERE w.id = r.part_of) AS whole
        FROM \(resources)
        """

    /// nil for a damaged row, which is left out.
    private static func resourceReport(_ row: Row) -> CachedResource? {
        let row = StoredRow(row)
        let parts = Int((try? row.integer("parts", in: 0...1 << 40)) ?? 0)
        guard let url = try? row.text("key"),
            let own = try? row.optional(
                "length", { (column) throws(RowDamage) in try row.integer(column, in: 0...ChunkGeometry.longestBody) })
                ?? 0
        else { return nil }
        func sum(_ column: String, upTo most: Int64) -> Int64 {
            // no trap: the bound is never negative
            parts > 0 ? (try? row.integer(column, in: 0...most)) ?? 0 : 0
        }
        // no trap: a length is never negative
        let length = own +| sum("part_length", upTo: 1 << 60),
            // no trap: a length is never negative
            cached = ((try? row.integer("cached", in: 0...own)) ?? 0) +| sum("part_cached", upTo: length -| own),
            fields = try? row.decoded([[String]].self, "fields")
        func field(_ name: String) -> String? {
            fields?.first { $0.count == 2 && $0[0].lowercased() == name }?[1]
        }
        return CachedResource(
            urlText: url, length: length, cachedBytes: cached, isComplete: parts == 0 && cached == length,
            isPinned: (try? row.flag("pinned")) ?? false,
            hits: ((try? row.integer("hits", in: 0...1 << 60)) ?? 0) +| sum("part_hits", upTo: 1 << 60),
            lastAccess: ((try? row.integer("last_access")) ?? 0) / 1_000_000,
            storedAt: (try? row.integer("stored_at")) ?? 0,
            played: try? row.integer("played"),
            contentType: field("content-type"), parts: parts > 0 ? parts : nil, partOf: try? row.text("whole"),
            title: (try? row.text("title"))
                ?? field("content-disposition").flatMap { ContentDisposition(parsing: $0)?.fileName },
            category: try? row.text("category"))
    }

    /// Resources with their generations after an ID, in order, for work on all of them page by page. A part counts as
    /// read and pinned when its presentation was, or it itself.
    /// - Parameters:
    ///   - before: only resources last read before this time, in microseconds since 1970; nil for all.
    ///   - isPlayed: only resources that were played, and the parts of those.
    func page(after id: Int64, readBefore before: Int64? = nil, isPlayed: Bool = false, limit: Int) throws(StoreError)
        -> [Listed]
    {
        try database.read { db in
            let rows = try Row.fetchAll(
                db.cachedStatement(
                    sql: """
                        SELECT r.id AS resource, r.key, r.pinned OR coalesce(w.pinned, 0) AS pinned, g.id AS generation,
                            w.id IS NOT NULL AS is_part
                        FROM resource r JOIN generation g ON g.resource = r.id LEFT JOIN resource w ON w.id = r.part_of
                        WHERE r.id > ?1 AND r.last_access < ?2 AND coalesce(w.last_access, 0) < ?2
                            AND (?4 = 0 OR iif(w.id IS NULL, r.played, w.played) IS NOT NULL) ORDER BY r.id LIMIT ?3
                        """), arguments: [id, before ?? .max, limit, isPlayed])
            return rows.compactMap { row in
                let row = StoredRow(row)
                guard let resource = try? row.integer("resource"), let key = try? row.text("key"),
                    let generation = try? row.generation("generation")
                else { return nil }
                return Listed(
                    resource: resource, key: CacheKey(text: key), isPinned: (try? row.flag("pinned")) ?? false,
                    isPart: (try? row.flag("is_part")) ?? false, generation: generation)
            }
        }
    }
}
