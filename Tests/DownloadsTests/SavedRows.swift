import GRDB

/// What another connection than the manager's reads.
enum SavedRows {
    static func read(_ path: String, _ sql: String, _ argument: String) throws -> String? {
        try DatabaseQueue(path: path).read { try String.fetchOne($0, sql: sql, arguments: [argument]) }
    }
}
