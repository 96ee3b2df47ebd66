import Foundation
import GRDB

/// A cached resource as a glance at the index shows it: without the lock of the cache, which may have an owner, and
/// without a file that is made for it.
///
/// The database is read as if it could not change (`immutable`). What is only in its log is not seen, and where somebody
/// writes to it meanwhile the answer is an error, or old: good enough for a list of proposals, and for nothing else.
package struct CachedName: Sendable, Equatable {
    package let url: String
    /// Bytes, all parts included.
    package let cached: Int64
    package let isPinned: Bool

    package init(_ report: ResourceReport) { (url, cached, isPinned) = (report.url, report.cached, report.isPinned) }

    private init(_ row: StoredRow) throws {
        (url, cached, isPinned) = (try row.text("key"), try row.integer("cached"), try row.flag("pinned"))
    }

    /// Those whose URL begins with a text, the last read first.
    package static func all(in directory: String, beginningWith text: String, limit: Int) throws -> [CachedName] {
        try ReadOnlyGlance.rows(
            of: directory + "/index.sqlite",
            """
            SELECT key, cached + part_cached AS cached, pinned FROM resource WHERE part_of IS NULL AND cached + part_cached > 0
                AND key >= ?1 AND substr(key, 1, length(?1)) = ?1 ORDER BY last_access DESC LIMIT ?2
            """, [text, limit]
        ).compactMap { try? CachedName($0) }
    }

    /// What all of a cache takes on the disk, its index excepted; nil where nobody knows.
    package static func bytes(in directory: String) -> Int64? {
        let rows = try? ReadOnlyGlance.rows(
            of: directory + "/index.sqlite", "SELECT value FROM meta WHERE name = 'data_bytes'", [])
        return rows?.first.flatMap { try? $0.integer("value", in: 0...1 << 60) }
    }
}

/// A database that is read as it lies on the disk: nothing is locked, made or waited for.
package enum ReadOnlyGlance {
    package static func rows(of path: String, _ sql: String, _ arguments: StatementArguments) throws -> [StoredRow] {
        var configuration = Configuration()
        configuration.readonly = true
        configuration.label = "glance"
        let escaped = path.replacing("%", with: "%25").replacing("?", with: "%3f").replacing("#", with: "%23")
        let database = try DatabaseQueue(path: "file:\(escaped)?immutable=1", configuration: configuration)
        defer { try? database.close() }
        return try database.read { try Row.fetchAll($0, sql: sql, arguments: arguments).map { StoredRow($0) } }
    }
}
