import Foundation

/// Another connection that holds the index's write lock, as a backup program or a curious user's `sqlite3` would.
///
/// SQLite is in this process through GRDB, which the tests do not import: its functions are looked up by name.
final class IndexBlocker {
    private typealias Open = @convention(c) (UnsafePointer<CChar>, UnsafeMutablePointer<OpaquePointer?>) -> Int32
    private typealias Execute =
        @convention(c) (OpaquePointer?, UnsafePointer<CChar>, OpaquePointer?, OpaquePointer?, OpaquePointer?) -> Int32
    private typealias Close = @convention(c) (OpaquePointer?) -> Int32

    private var connection: OpaquePointer?

    init(_ path: String) {
        precondition(Self.function("sqlite3_open", as: Open.self)(path, &connection) == 0)
        // The store may be writing at this moment.
        execute("PRAGMA busy_timeout = 60000")
        execute("BEGIN IMMEDIATE")
    }

    func release() {
        execute("ROLLBACK")
        _ = Self.function("sqlite3_close", as: Close.self)(connection)
    }

    private func execute(_ sql: String) {
        precondition(Self.function("sqlite3_exec", as: Execute.self)(connection, sql, nil, nil, nil) == 0, sql)
    }

    private static func function<Function>(_ name: String, as type: Function.Type) -> Function {
        unsafeBitCast(dlsym(nil, name)!, to: type)
    }
}
