import CachePolicy
import Foundation
import GRDB
import HTTPModel

/// What people ask about.
struct IndexListing: Sendable {
    let database: IndexDatabase

    /// How many resources there are, and how many of them are pinned.
    func counts() throws(StoreError) -> (resources: Int, pinned: Int) {
        try database.read { db in
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
        return try database.read { db in
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
        try database.readOne { db in
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

    /// Resources and their generations, in the order of identifiers, after one. For work on all of them, page by page.
    /// - Parameter before: only what was read before this time, in microseconds since 1970; nil for all.
    func page(
        after id: Int64, readBefore before: Int64? = nil, limit: Int
    ) throws(StoreError) -> [(resource: Int64, key: CacheKey, isPinned: Bool, generation: GenerationID)] {
        try database.read { db in
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
}
