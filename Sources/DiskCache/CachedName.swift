import Foundation
import GRDB
import HTTPModel

/// A cached resource, read from the index without the cache's lock, which another process may hold, and without
/// creating files.
///
/// The database is read as if it could not change (`immutable`): rows that are only in its write-ahead log are missing,
/// and while another process writes, the answer may be an error or outdated. That is good enough for a list of
/// suggestions, and for nothing else.
package struct CachedName: Sendable, Equatable {
    package let url: String
    /// Cached bytes, including those of all parts.
    package let cached: Int64
    package let isPinned: Bool

    package init(_ report: CachedResource) {
        (url, cached, isPinned) = (report.urlText, report.cachedBytes, report.isPinned)
    }

    private init(_ row: StoredRow) throws {
        (url, cached, isPinned) = (try row.text("key"), try row.integer("cached"), try row.flag("pinned"))
    }

    /// The resources whose URLs begin with a text, most recently read first.
    package static func all(in directory: String, beginningWith text: String, limit: Int) throws -> [CachedName] {
        try StoredRow.glance(
            of: directory + "/index.sqlite",
            """
            SELECT key, cached + part_cached AS cached, pinned FROM resource WHERE part_of IS NULL AND cached + part_cached > 0
                AND key >= ?1 AND substr(key, 1, length(?1)) = ?1 ORDER BY last_access DESC LIMIT ?2
            """, [text, limit]
        ).compactMap { try? CachedName($0) }
    }

    /// The categories of cached resources.
    package static func categories(in directory: String, limit: Int) throws -> [String] {
        try StoredRow.glance(
            of: directory + "/index.sqlite",
            "SELECT DISTINCT category FROM resource WHERE category IS NOT NULL AND part_of IS NULL LIMIT ?", [limit]
        ).compactMap { try? $0.text("category") }
    }

    /// The bytes in the index's log, which `all` and the like don't see. The next start takes them over, after a process
    /// that was killed; an orderly end leaves none.
    package static func logBytes(in directory: String) -> Int64 {
        var info = stat()
        return stat(directory + "/index.sqlite-wal", &info) == 0 ? Int64(info.st_size) : 0
    }

    /// How many bytes a cache occupies on the disk, without its index; nil if that is unknown. With a log, its files are
    /// counted, however many they are.
    package static func bytes(in directory: String) -> Int64? {
        if logBytes(in: directory) > 0, let files = FileManager.default.enumerator(atPath: directory + "/data") {
            return files.reduce(into: 0) { $0 +|= FileSystem.allocatedBytes("\(directory)/data/\($1)") }
        }
        let rows = try? StoredRow.glance(
            of: directory + "/index.sqlite", "SELECT value FROM meta WHERE name = 'data_bytes'", [])
        return rows?.first.flatMap { try? $0.integer("value", in: 0...1 << 60) }
    }
}

extension StoredRow {
    /// Reads rows of a database file as it is on the disk, without locking, creating files or waiting.
    package static func glance(of path: String, _ sql: String, _ arguments: StatementArguments) throws -> [StoredRow] {
        var configuration = Configuration()
        configuration.readonly = true
        configuration.label = "glance"
        let name = FileSystem.databaseName(path, "immutable=1")
        let database = try DatabaseQueue(path: name, configuration: configuration)
        defer { try? database.close() }
        return try database.read { try Row.fetchAll($0, sql: sql, arguments: arguments).map { StoredRow($0) } }
    }
}
