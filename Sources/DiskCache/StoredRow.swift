import Foundation
import GRDB

/// An invalid value in a row. The description names the column, never its value, which may be a secret.
package struct RowDamage: Error, CustomStringConvertible {
    package let column: String
    package let reason: String

    package init(column: String, reason: String) { (self.column, self.reason) = (column, reason) }

    package var description: String { "\(column) \(reason)" }
}

/// A row whose values are checked: a missing column, a value of another type or one out of bounds throws `RowDamage`.
///
/// GRDB's own subscripts trap on all three. A database may be damaged, or changed by somebody else, so no module reads
/// its rows in any other way.
package struct StoredRow {
    private let names: [String]
    private let source: Source

    private enum Source {
        case row(Row)
        case statement(IndexStatement)
    }

    /// - Parameter names: replace the database's own column names, which may be damaged.
    package init(_ row: Row, names: [String]? = nil) {
        (source, self.names) = (.row(row), names ?? Array(row.columnNames))
    }

    /// The current row of a statement, until its next one.
    init(_ statement: IndexStatement, names: [String]) { (source, self.names) = (.statement(statement), names) }

    package func integer(_ column: String, in bounds: ClosedRange<Int64> = .min ... .max) throws(RowDamage) -> Int64 {
        let value: Int64 = try value(column)
        guard bounds.contains(value) else { throw RowDamage(column: column, reason: "is out of bounds") }
        return value
    }

    package func text(_ column: String) throws(RowDamage) -> String { try value(column) }

    func generation(_ column: String) throws(RowDamage) -> GenerationID { try value(column) }

    package func bytes(_ column: String) throws(RowDamage) -> Data { try value(column) }

    package func flag(_ column: String) throws(RowDamage) -> Bool { try integer(column) != 0 }

    package func real(_ column: String, in bounds: ClosedRange<Double>) throws(RowDamage) -> Double {
        let value: Double = try value(column)
        guard bounds.contains(value) else { throw RowDamage(column: column, reason: "is out of bounds") }
        return value
    }

    /// Reads a column that may be NULL.
    package func optional<Value>(_ column: String, _ read: (String) throws(RowDamage) -> Value) throws(RowDamage)
        -> Value?
    {
        try databaseValue(column).isNull ? nil : read(column)
    }

    /// Decodes JSON.
    package func decoded<Value: Decodable>(_ type: Value.Type, _ column: String) throws(RowDamage) -> Value {
        let text = try text(column)
        guard let value = try? JSONDecoder().decode(type, from: Data(text.utf8)) else {
            throw RowDamage(column: column, reason: "is not the expected JSON")
        }
        return value
    }

    package func databaseValue(_ column: String) throws(RowDamage) -> DatabaseValue {
        // Most names differ in their lengths, which takes a fraction of the time to see.
        let index = names.firstIndex { $0.utf8.count == column.utf8.count && $0 == column } ?? .max
        switch source {
        case .row(let row) where index < row.count: return row[index]
        case .statement(let statement) where index < statement.columnCount: return statement.value(index)
        default: throw RowDamage(column: column, reason: "is missing")
        }
    }

    private func value<Value: DatabaseValueConvertible>(_ column: String) throws(RowDamage) -> Value {
        guard let value = Value.fromDatabaseValue(try databaseValue(column)) else {
            throw RowDamage(column: column, reason: "is of another type")
        }
        return value
    }
}
