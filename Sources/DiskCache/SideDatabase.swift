import CachePolicy
import Foundation
import GRDB
import HTTPModel
import Logging

/// A database beside the index, such as that of downloads. What is written is durable when a write returns. Blocks.
///
/// Its file is created by the first write, so that looking at a cache leaves none behind.
///
/// For use on one thread. A damaged database is set aside (`downloads.sqlite.damaged`), and a new one is started.
package final class SideDatabase {
    /// Why it cannot be opened, read or written.
    package struct Failure: AdvisedError, Sendable, Equatable {
        package let reason: String
        package let advice: Advice?
    }

    private let path: String
    /// What it contains, in the plural: `downloads`.
    private let contents: String
    private let schema: DatabaseSchema
    private let logger: Logger
    private var database: DatabaseQueue
    /// Whether the file exists; until then, an empty database in memory is read.
    private var isOnDisk: Bool

    /// Opens the database and migrates it, if there is one.
    /// - Parameter contents: what it contains, for messages, in the plural.
    package init(_ path: String, of contents: String, schema: DatabaseSchema, logger: Logger) throws(Failure) {
        (self.path, self.contents, self.schema, self.logger) = (path, contents, schema, logger)
        isOnDisk = FileSystem.exists(path)
        do {
            do { database = try isOnDisk ? Self.open(path, contents, schema) : schema.emptyDatabase() } catch let error
                where DatabaseDamage.isMeant(by: error, path)
            {
                try Self.setAside(path, contents, error, logger)
                database = try Self.open(path, contents, schema)
            }
        } catch { throw Self.failure("open", contents, path, error) }
    }

    private static func open(_ path: String, _ contents: String, _ schema: DatabaseSchema) throws -> DatabaseQueue {
        do throws(StoreError) { try FileSystem.makePrivateDatabase(path) } catch {
            throw Failure(reason: "cannot create \(path): \(error)", advice: nil)
        }
        var configuration = Configuration()
        configuration.label = contents
        // Wait while another program has it open.
        configuration.busyMode = .timeout(5)
        configuration.prepareDatabase { db in
            try db.execute(
                sql:
                    "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 256; PRAGMA journal_size_limit = 1048576; PRAGMA cache_size = -2000; PRAGMA temp_store = MEMORY"
            )
        }
        let database = try DatabaseQueue(path: FileSystem.databaseName(path), configuration: configuration)
        try DatabaseDamage.check(database, path)
        do { try schema.prepare(database) } catch DatabaseSchema.Failure.newer(let version) {
            throw Failure(
                reason:
                    "\(path) was written by a later version of reelcache (format \(version); this version reads up to \(schema.version))",
                advice: .laterVersion)
        }
        return database
    }

    // MARK: Damage

    private static func setAside(_ path: String, _ contents: String, _ error: any Error, _ logger: Logger) throws {
        let aside = path + ".damaged"
        for suffix in ["-wal", "-shm"] { unlink(aside + suffix) }
        guard rename(path, aside) == 0 else {
            throw Failure(
                reason: "cannot rename \(path), which is damaged: \(String(errno: errno)); move it away", advice: nil)
        }
        // The log may contain rows that can still be read.
        rename(path + "-wal", aside + "-wal")
        unlink(path + "-shm")
        logger.error(
            "the \(contents) database \(path) is damaged (\(DatabaseDamage.reason(error))): kept it as \(aside), and started a new one"
        )
    }

    /// Replaces a database that turns out to be damaged.
    private func startAnew(_ error: any Error) throws {
        try? database.close()
        try Self.setAside(path, contents, error, logger)
        database = try Self.open(path, contents, schema)
    }

    // MARK: Reading and writing

    /// Reads the database in `body`, which may also remove damaged rows.
    /// - Parameter lost: returns the result if the database turns out to be damaged, and a new one was started.
    package func read<Value>(_ body: (DatabaseQueue) throws -> Value, ifDamaged lost: () -> Value) throws(Failure)
        -> Value
    {
        do {
            do { return try body(database) } catch let error where DatabaseDamage.isMeant(by: error, path) {
                try startAnew(error)
                return lost()
            }
        } catch { throw Self.failure("read", contents, path, error) }
    }

    /// Changes the database in one transaction.
    /// - Parameter again: runs in place of `body` in the new database, if this one turns out to be damaged.
    package func write<Value>(_ body: (Database) throws -> Value, ifDamaged again: (Database) throws -> Value)
        throws(Failure) -> Value
    {
        do {
            if !isOnDisk { (database, isOnDisk) = (try Self.open(path, contents, schema), true) }
            do { return try database.write(body) } catch let error where DatabaseDamage.isMeant(by: error, path) {
                try startAnew(error)
                return try database.write(again)
            }
        } catch { throw Self.failure("write", contents, path, error) }
    }

    package func close() throws(Failure) {
        do {
            if isOnDisk { _ = try database.writeWithoutTransaction { try $0.checkpoint(.truncate) } }
            try database.close()
        } catch { throw Self.failure("close", contents, path, error) }
    }

    private static func failure(_ operation: String, _ contents: String, _ path: String, _ error: any Error) -> Failure
    {
        if let error = error as? Failure { return error }
        let remedy =
            switch (error as? DatabaseError)?.resultCode {
            case .SQLITE_FULL?: "the disk is full: make room, then try again"
            case .SQLITE_BUSY?, .SQLITE_LOCKED?: "another program is using it: close that program, then try again"
            case .SQLITE_CORRUPT?, .SQLITE_NOTADB?: "\(DatabaseDamage.reason(error)): restart to create a new one"
            default: DatabaseDamage.reason(error)
            }
        return Failure(reason: "cannot \(operation) the \(contents) in \(path): \(remedy)", advice: nil)
    }
}
