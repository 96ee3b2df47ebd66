import Foundation
import GRDB
import Testing

@testable import Downloads

/// `docs/dev/store-format.md` has the columns of `downloads.sqlite` as the code makes them.
@Suite struct FormatDocumentTests {
    @Test func columnsAndFormatAreThoseOfTheDatabase() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let page = root.appendingPathComponent("docs/dev/store-format.md")
        let section = try #require(
            String(contentsOf: page, encoding: .utf8).components(separatedBy: "\n## downloads.sqlite\n").last
        ).components(separatedBy: "\n## ")[0]
        let rows = section.split(separator: "\n").filter { $0.hasPrefix("| `") }
        let named = rows.flatMap { row in
            row.split(separator: "|", omittingEmptySubsequences: false)[1].matches(of: /`([a-z_]+)`/).map {
                String($0.1)
            }
        }
        let desk = try Desk()
        let (columns, format) = try desk.inDatabase { db in
            (
                try String.fetchAll(db, sql: "SELECT name FROM pragma_table_info('download')"),
                try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
            )
        }
        #expect(Set(named) == Set(columns))
        #expect(Set(columns) == Set(DownloadJob.columns.map(\.name)))
        #expect(section.contains("Format \(format):"))
    }

    /// Without the right one, each start takes longer.
    @Test func digestsAreThoseOfTheDefinitions() throws {
        for schema in [DownloadDatabase.schema, SubscriptionDatabase.schema] {
            let (declared, current) = (schema.digest, try schema.currentDigest)
            #expect(declared == current)
        }
    }
}
