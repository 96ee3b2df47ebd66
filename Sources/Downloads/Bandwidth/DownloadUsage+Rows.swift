import CachePolicy
import DiskCache
import GRDB
import HTTPModel

/// The table `usage` of `downloads.sqlite`.
extension DownloadUsage {
    /// Leaves out rows that are damaged: what they counted is forgotten.
    static func read(_ db: Database) throws -> [Row: Int64] {
        var found: [Row: Int64] = [:]
        let rows = try GRDB.Row.fetchCursor(
            db, sql: "SELECT * FROM usage ORDER BY day DESC LIMIT ?", arguments: [mostRows])
        while let row = try rows.next().map({ StoredRow($0) }) {
            guard let day = (try? row.text("day")).flatMap(day), let feed = try? row.text("feed"),
                let bytes = try? row.integer("bytes", in: 0...ByteNumber.greatest)
            else { continue }
            found[Row(day: day, feed: feed)] = bytes
        }
        return found
    }

    /// Writes rows, and removes those before a day.
    static func write(_ rows: [Row: Int64], since firstDay: Int64, in db: Database) throws {
        guard !rows.isEmpty else { return }
        let statement = try db.cachedStatement(
            sql:
                "INSERT INTO usage (day, feed, bytes) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET bytes = excluded.bytes"
        )
        for (row, bytes) in rows {
            try statement.execute(arguments: [
                LocalTime.date(ofDay: row.day), row.feed, min(bytes, ByteNumber.greatest),
            ])
        }
        try db.cachedStatement(sql: "DELETE FROM usage WHERE day < ?").execute(
            arguments: [LocalTime.date(ofDay: firstDay)])
    }

    /// Reads `2026-12-01`.
    private static func day(_ text: String) -> Int64? {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard text.utf8.count == 10, parts.count == 3, parts.map(\.utf8.count) == [4, 2, 2] else { return nil }
        let numbers = parts.compactMap { ASCII.decimal(Array($0.utf8), upTo: 9999) }
        guard numbers.count == 3 else { return nil }
        let date = CivilDate(year: numbers[0], month: numbers[1], day: numbers[2])
        return date.exists ? date.daysSince1970 : nil
    }
}
