import Foundation
import GRDB

/// Which tables a database has to have. Each is looked at when it is opened: what is damaged there would be met at each
/// query.
package struct DatabaseSchema: Sendable {
    private let migrator: DatabaseMigrator

    package init(_ migrator: DatabaseMigrator) { self.migrator = migrator }

    /// Counts up with each change. Stands in the database as `user_version`.
    package var version: Int { migrator.migrations.count }

    /// Why a database cannot be used.
    package enum Failure: Error, Equatable {
        /// A later version of the program made it.
        case newer(version: Int)
        /// It is not as any version has made it.
        case damaged(String)
    }

    /// Brings a database to this version.
    /// - Throws: `Failure`, or an error of the database.
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
            throw Failure.damaged("\(name) is not as it was made")
        }
    }

    private func refuseOthers(_ database: some DatabaseReader) throws {
        let (version, applied) = try database.read { db in
            (try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0, try migrator.appliedIdentifiers(db))
        }
        let known = migrator.migrations
        guard applied != Set(known.prefix(applied.count)) else { return }
        // Both say so: a bit that flipped in one of them does not keep a cache from being used.
        throw applied.isSuperset(of: known) && version > self.version
            ? Failure.newer(version: version) : .damaged("its list of changes to the tables")
    }

    /// Tables and indexes by name, as they were defined. What else somebody has added does no harm.
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

/// What errors of a database mean.
package enum DatabaseDamage {
    /// Larger ones are not read through when they are opened: what is met later is mended at the next start.
    package static let longestCheck: Int64 = 32 << 20

    /// Whether the database is at fault, rather than the disk, the rights, or another program.
    /// - Parameter path: of its file.
    package static func isMeant(by error: any Error, _ path: String) -> Bool {
        switch error {
        case is RowDecodingError, is RowDamage: return true
        case DatabaseSchema.Failure.damaged: return true
        case let error as DatabaseError:
            switch error.resultCode {
            case .SQLITE_CORRUPT, .SQLITE_NOTADB, .SQLITE_ERROR, .SQLITE_SCHEMA, .SQLITE_MISMATCH, .SQLITE_FORMAT:
                return true
            // A number in its head says which versions may write to it.
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
        case is RowDecodingError: "a value that cannot be"
        default: "\(error)"
        }
    }

    /// Reads a database through, unless it is large.
    /// - Throws: what `isMeant(by:_:)` calls damage, where something is found.
    package static func check(_ database: some DatabaseReader, _ path: String) throws {
        guard FileSystem.allocatedBytes(path) <= longestCheck else { return }
        let found = try database.read { try String.fetchOne($0, sql: "PRAGMA quick_check(1)") }
        // The first of its lines names the database.
        guard found != "ok" else { return }
        throw DatabaseError(
            resultCode: .SQLITE_CORRUPT,
            message: found?.split(separator: "\n").last.map(String.init) ?? "it cannot be checked")
    }
}
