import CachePolicy
import GRDB
import GRDBSQLite

/// A prepared statement that is bound and read by position, for what runs for each file: SQLite itself takes a fraction
/// of the time that GRDB spends on arguments and rows.
///
/// A write belongs into a transaction, which GRDB rolls back when a statement throws.
struct IndexStatement {
    enum Value {
        case integer(Int64)
        case text(String)
        /// Text as UTF-8.
        case utf8([UInt8])
        /// Little-endian numbers.
        case numbers([UInt64])

        static func id(_ id: GenerationID) -> Value { .integer(Int64(bitPattern: id.value)) }
        static func flag(_ flag: Bool) -> Value { .integer(flag ? 1 : 0) }
    }

    private let statement: Statement
    private var handle: SQLiteStatement { statement.sqliteStatement }

    init(_ sql: String, in db: Database) throws { statement = try db.cachedStatement(sql: sql) }

    func run(_ values: Value...) throws { try step(values) { false } }

    /// - Parameter read: reads the first row.
    /// - Returns: nil if there is no row.
    func first<Found>(_ values: Value..., read: (IndexStatement) throws -> Found) throws -> Found? {
        var found: Found?
        try step(values) {
            found = try read(self)
            return false
        }
        return found
    }

    /// - Parameter read: reads a row.
    func each(_ values: Value..., read: (IndexStatement) throws -> Void) throws {
        try step(values) {
            try read(self)
            return true
        }
    }

    /// - Parameter hasNext: called for each row; whether to step to the next one.
    private func step(_ values: [Value], _ hasNext: () throws -> Bool) throws {
        defer { sqlite3_reset(handle) }
        for (place, value) in zip((1 as Int32)..., values) { try check(bind(value, at: place)) }
        var code = sqlite3_step(handle)
        while code == SQLITE_ROW {
            guard try hasNext() else { return }
            code = sqlite3_step(handle)
        }
        try check(code)
    }

    private func bind(_ value: Value, at place: Int32) -> Int32 {
        switch value {
        case .integer(let number): return sqlite3_bind_int64(handle, place, number)
        case .text(var text):
            return text.withUTF8 { bindText(UnsafeRawBufferPointer($0), at: place) }
        case .utf8(let bytes): return bytes.withUnsafeBytes { bindText($0, at: place) }
        case .numbers(let numbers):
            // A closure: a key path would be looked up for each number.
            return numbers.map { $0.littleEndian }.withUnsafeBytes {
                sqlite3_bind_blob(handle, place, $0.baseAddress ?? Self.nothing, Int32(clamping: $0.count), Self.copied)
            }
        }
    }

    private func bindText(_ text: UnsafeRawBufferPointer, at place: Int32) -> Int32 {
        let start = (text.baseAddress ?? Self.nothing).assumingMemoryBound(to: CChar.self)
        return sqlite3_bind_text(handle, place, start, Int32(clamping: text.count), Self.copied)
    }

    /// SQLite copies what it is given.
    private static var copied: sqlite3_destructor_type { unsafeBitCast(-1, to: sqlite3_destructor_type.self) }
    /// Where no bytes are: a null pointer would be NULL.
    private static var nothing: UnsafeRawPointer { UnsafeRawPointer(bitPattern: 1)! }

    private func check(_ code: Int32) throws {
        guard code != SQLITE_OK, code != SQLITE_DONE else { return }
        throw DatabaseError(
            resultCode: ResultCode(rawValue: code),
            message: sqlite3_db_handle(handle).map { String(cString: sqlite3_errmsg($0)) })
    }

    // MARK: The current row

    var columnCount: Int { Int(sqlite3_column_count(handle)) }

    // no trap: a statement has at most 32,767 columns
    func value(_ column: Int) -> DatabaseValue { DatabaseValue(sqliteStatement: handle, index: CInt(column)) }

    /// nil if the value is not an integer.
    func integer(_ column: Int32) -> Int64? {
        sqlite3_column_type(handle, column) == SQLITE_INTEGER ? sqlite3_column_int64(handle, column) : nil
    }

    func flag(_ column: Int32) -> Bool { integer(column).map { $0 != 0 } ?? false }

    /// Little-endian numbers; none if the value is no blob.
    func numbers(_ column: Int32) -> [UInt64] {
        guard sqlite3_column_type(handle, column) == SQLITE_BLOB, let bytes = sqlite3_column_blob(handle, column) else {
            return []
        }
        let count = Int(sqlite3_column_bytes(handle, column))
        return Self.unpack(UnsafeRawBufferPointer(start: bytes, count: count))
    }

    /// Checksums as stored in a row: little-endian, without trailing zeros.
    static func unpack(_ bytes: UnsafeRawBufferPointer) -> [UInt64] {
        var checksums = [UInt64](repeating: 0, count: ChunkGeometry.chunksPerExtent)
        checksums.withUnsafeMutableBytes { $0.copyMemory(from: .init(rebasing: bytes.prefix($0.count))) }
        return checksums.map(UInt64.init(littleEndian:))
    }
}
