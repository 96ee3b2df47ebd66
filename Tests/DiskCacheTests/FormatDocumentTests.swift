import Foundation
import GRDB
import TestSupport
import Testing

@testable import DiskCache

/// `docs/dev/store-format.md` has the tables, columns and numbers of the index as the code makes them.
@Suite struct FormatDocumentTests {
    private let section: String

    init() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let page = root.appendingPathComponent("docs/dev/store-format.md")
        let text = try String(contentsOf: page, encoding: .utf8)
        section = try #require(text.components(separatedBy: "\n## index.sqlite\n").last)
            .components(separatedBy: "\n## ")[0]
    }

    /// The first cells of a table's rows.
    private func names(of table: String) throws -> Set<String> {
        let part = try #require(
            section.components(separatedBy: "\n**`\(table)`**").dropFirst().first, "\(table) is not on the page")
        let rows = part.components(separatedBy: "\n**`")[0].split(separator: "\n").filter { $0.hasPrefix("| `") }
        return Set(
            rows.flatMap { row in
                row.split(separator: "|", omittingEmptySubsequences: false)[1].matches(of: /`([a-z_]+)`/).map {
                    String($0.1)
                }
            })
    }

    private func withIndex<Value>(_ look: (Database) throws -> Value) throws -> Value {
        let directory = try TemporaryDirectory()
        let index = try CacheIndex(path: directory.file("index.sqlite"))
        defer { try? index.database.close() }
        return try index.database.read(look)
    }

    @Test func tablesAndColumnsAreThoseOfTheIndex() throws {
        let columns = try withIndex { db in
            let tables = try String.fetchAll(
                db,
                sql: """
                    SELECT name FROM sqlite_master
                    WHERE type = 'table' AND name NOT LIKE 'sqlite%' AND name NOT LIKE 'grdb%'
                    """)
            return try tables.map { table in
                (table, Set(try String.fetchAll(db, sql: "SELECT name FROM pragma_table_info('\(table)')")))
            }
        }
        #expect(columns.count == 5)
        for (table, made) in columns where table != "meta" { #expect(try names(of: table) == made, "\(table)") }
    }

    @Test func numbersAboutTheWholeAreNamed() throws {
        #expect(try names(of: "meta") == Set(IndexDatabase.Meta.allCases.map(\.rawValue)))
    }

    @Test func formatIsTheNumberOfMigrations() throws {
        let format = try withIndex { try Int.fetchOne($0, sql: "PRAGMA user_version") ?? 0 }
        #expect(section.contains("\nFormat \(format)"))
    }
}
