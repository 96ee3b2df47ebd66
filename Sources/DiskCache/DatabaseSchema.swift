import Foundation
import GRDB

/// The tables of a database. They are compared when it is opened: otherwise damage to them would appear in every query.
package struct DatabaseSchema: Sendable {
    private let migrator: DatabaseMigrator

    package init(_ migrator: DatabaseMigrator) { self.migrator = migrator }

    /// The number of migrations, stored in the database as `user_version`.
    package var version: Int { migrator.migrations.count }

    /// Why a database cannot be used.
    package enum Failure: Error, Equatable {
        /// A later version of the program made it.
        case newer(version: Int)
        /// It differs from what any version would have made.
        case damaged(String)
    }

    /// Migrates a database to this version.
    /// - Throws: `Failure`, or a database error.
    package func prepare(_ database: some DatabaseWriter) throws {
        try refuseOthers(database)
        try migrator.migrate(database)
        let (version, made) = (
            try database.read { try Int.fetchOne($0, sql: "PRAGMA user_version") }, try database.read(Self.definitions)
        )
        if version != self.version {
            try database.writeWithoutTransaction { try $0.execute(sql: "PRAGMA user_version = \(self.version)") }
        }
        for (name, definition) in try Self.definitions(of: migrator) where made[name] != definition {
            throw Failure.damaged("the definition of \(name) is wrong")
        }
    }

    private func refuseOthers(_ database: some DatabaseReader) throws {
        let (version, applied) = try database.read { db in
            (try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0, try migrator.appliedIdentifiers(db))
        }
        let known = migrator.migrations
        guard applied != Set(known.prefix(applied.count)) else { return }
        // Requires both signs of a newer version, so that one flipped bit does not make a cache unusable.
        throw applied.isSuperset(of: known) && version > self.version
            ? Failure.newer(version: version) : .damaged("its list of migrations is wrong")
    }

    /// Tables and indexes by name, with their definitions. Additional ones do no harm.
    private static func definitions(_ db: Database) throws -> [String: String] {
        let rows = try Row.fetchAll(
            db,
            sql: "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite!_%' ESCAPE '!'")
        return Dictionary(try rows.map { (try StoredRow($0).text("name"), try StoredRow($0).text("sql")) }) {
            first, _ in first
        }
    }

    private static func definitions(of migrator: DatabaseMigrator) throws -> [String: String] {
        let model = try DatabaseQueue()
        try migrator.migrate(model)
        return try model.read(definitions)
    }
}

/// Classifies database errors.
package enum DatabaseDamage {
    /// Larger databases are not checked when they are opened; damage found later is repaired at the next start.
    package static let longestCheck: Int64 = 32 << 20

    /// Whether the database itself is damaged. Other causes are the disk, missing rights, or another program.
    /// - Parameter path: the database file.
    package static func isMeant(by error: any Error, _ path: String) -> Bool {
        switch error {
        case is RowDecodingError, is RowDamage: return true
        case DatabaseSchema.Failure.damaged: return true
        case let error as DatabaseError:
            switch error.resultCode {
            case .SQLITE_CORRUPT, .SQLITE_NOTADB, .SQLITE_ERROR, .SQLITE_SCHEMA, .SQLITE_MISMATCH, .SQLITE_FORMAT:
                return true
            // The version number in the file's header forbids writing.
            case .SQLITE_READONLY: return access(path, W_OK) == 0
            default: return false
            }
        default: return false
        }
    }

    /// One line for people.
    package static func reason(_ error: any Error) -> String {
        switch error {
        case let error as DatabaseError: error.message ?? "\(error.resultCode)"
        case DatabaseSchema.Failure.damaged(let detail): detail
        case is RowDecodingError: "an invalid value"
        default: "\(error)"
        }
    }

    /// Checks a database, unless it is large.
    /// - Throws: an error that `isMeant(by:_:)` classifies as damage.
    package static func check(_ database: some DatabaseReader, _ path: String) throws {
        guard FileSystem.allocatedBytes(path) <= longestCheck else { return }
        let found = try database.read { try String.fetchOne($0, sql: "PRAGMA quick_check(1)") }
        // The result's first line names the database.
        guard found != "ok" else { return }
        throw DatabaseError(
            resultCode: .SQLITE_CORRUPT,
            message: found?.split(separator: "\n").last.map(String.init) ?? "it cannot be checked")
    }
}
