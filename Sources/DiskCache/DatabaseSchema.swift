import Foundation
import GRDB

/// The tables of a database. They are compared when it is opened: otherwise damage to them would appear in every query.
package struct DatabaseSchema: Sendable {
    private let migrator: DatabaseMigrator
    package let digest: UInt64

    /// - Parameter digest: that of the definitions which all migrations make (`currentDigest`). A database that has the
    ///   same is sound; for any other, one is made in memory to compare them, which takes longer.
    package init(_ migrator: DatabaseMigrator, digest: UInt64) { (self.migrator, self.digest) = (migrator, digest) }

    /// The digest to declare, which changes with each migration.
    package var currentDigest: UInt64 { get throws { Self.digest(of: try modelDefinitions) } }

    /// An empty database in memory.
    func emptyDatabase() throws -> DatabaseQueue {
        let database = try DatabaseQueue()
        try migrator.migrate(database)
        return database
    }

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
        var (found, definitions) = try database.read { (try state($0), try Self.definitions($0)) }
        try refuseOthers(found)
        if found.applied.count < version {
            try migrator.migrate(database)
            (found, definitions) = try database.read { (try state($0), try Self.definitions($0)) }
        }
        if found.version != version {
            try database.writeWithoutTransaction { try $0.execute(sql: "PRAGMA user_version = \(version)") }
        }
        guard Self.digest(of: definitions) != digest else { return }
        for (name, definition) in try modelDefinitions where definitions[name] != definition {
            throw Failure.damaged("the definition of \(name) is wrong")
        }
    }

    private func state(_ db: Database) throws -> (version: Int, applied: Set<String>) {
        (try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0, try migrator.appliedIdentifiers(db))
    }

    private func refuseOthers(_ found: (version: Int, applied: Set<String>)) throws {
        let known = migrator.migrations
        guard found.applied != Set(known.prefix(found.applied.count)) else { return }
        // Requires both signs of a newer version, so that one flipped bit does not make a cache unusable.
        throw found.applied.isSuperset(of: known) && found.version > version
            ? Failure.newer(version: found.version) : .damaged("its list of migrations is wrong")
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

    private var modelDefinitions: [String: String] { get throws { try emptyDatabase().read(Self.definitions) } }

    private static func digest(of definitions: [String: String]) -> UInt64 {
        let text = definitions.sorted { $0.key < $1.key }.map { "\($0.key)\0\($0.value)\0" }.joined()
        return Array(text.utf8).withUnsafeBytes { ChunkDigest.of($0) }
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
