import CachePolicy
import DiskCache
import Foundation
import GRDB
import HTTPModel

/// A column of a table whose rows are values: its name, and where the value has what it stores.
struct TableColumn<Root>: Sendable {
    let name: String
    let stored: @Sendable (Root) throws -> (any DatabaseValueConvertible)?
    let read: @Sendable (StoredRow, inout Root) throws(RowDamage) -> Void

    init(
        _ name: String, stored: @escaping @Sendable (Root) throws -> (any DatabaseValueConvertible)?,
        read: @escaping @Sendable (StoredRow, inout Root) throws(RowDamage) -> Void
    ) {
        (self.name, self.stored, self.read) = (name, stored, read)
    }

    init<Value>(_ name: String, _ path: WritableKeyPath<Root, Value> & Sendable, _ form: StoredForm<Value>) {
        self.init(name) {
            try form.write($0[keyPath: path])
        } read: { (row, root) throws(RowDamage) in
            root[keyPath: path] = try form.read(row, name)
        }
    }

    /// NULL stands for nil.
    init<Value>(_ name: String, _ path: WritableKeyPath<Root, Value?> & Sendable, _ form: StoredForm<Value>) {
        self.init(name) {
            try $0[keyPath: path].flatMap(form.write)
        } read: { (row, root) throws(RowDamage) in
            root[keyPath: path] = try form.optional(row, name)
        }
    }

    /// NULL stands for a value.
    init<Value: Equatable>(
        _ name: String, _ path: WritableKeyPath<Root, Value> & Sendable, _ form: StoredForm<Value>, nullFor null: Value
    ) {
        self.init(name) {
            $0[keyPath: path] == null ? nil : try form.write($0[keyPath: path])
        } read: { (row, root) throws(RowDamage) in
            root[keyPath: path] = try form.optional(row, name) ?? null
        }
    }
}

extension Array {
    /// The values of the columns.
    func arguments<Root>(of root: Root) throws -> StatementArguments where Element == TableColumn<Root> {
        StatementArguments(try map { try $0.stored(root) })
    }

    /// Inserts a row, or updates the one with the same ID, the first column.
    func insertion<Root>(into table: String) -> String where Element == TableColumn<Root> {
        let names = map(\.name).joined(separator: ", ")
        let marks = map { _ in "?" }.joined(separator: ", ")
        let updates = dropFirst().map { "\($0.name) = excluded.\($0.name)" }.joined(separator: ", ")
        return "INSERT INTO \(table) (\(names)) VALUES (\(marks)) ON CONFLICT(id) DO UPDATE SET \(updates)"
    }
}

/// How a column stores a value.
struct StoredForm<Value: Sendable>: Sendable {
    let write: @Sendable (Value) throws -> (any DatabaseValueConvertible)?
    let read: @Sendable (StoredRow, _ column: String) throws(RowDamage) -> Value

    init(
        write: @escaping @Sendable (Value) throws -> (any DatabaseValueConvertible)?,
        read: @escaping @Sendable (StoredRow, _ column: String) throws(RowDamage) -> Value
    ) {
        (self.write, self.read) = (write, read)
    }

    func optional(_ row: StoredRow, _ column: String) throws(RowDamage) -> Value? {
        try row.optional(column) { (column) throws(RowDamage) in try read(row, column) }
    }

    /// A text that people could read.
    static func text(_ parse: @escaping @Sendable (String) -> Value?, _ text: @escaping @Sendable (Value) -> String)
        -> StoredForm
    {
        StoredForm {
            text($0)
        } read: { (row, column) throws(RowDamage) in
            guard let value = parse(try row.text(column)) else { throw RowDamage(column: column, reason: "is invalid") }
            return value
        }
    }
}

extension StoredForm<Int64> {
    /// A number of bytes or of something else, bounded, so that counting on from it cannot overflow.
    static let whole = integer(in: 0...ByteNumber.greatest)

    static func integer(in bounds: ClosedRange<Int64> = .min ... .max) -> Self {
        .init {
            $0
        } read: { (row, column) throws(RowDamage) in
            try row.integer(column, in: bounds)
        }
    }
}

extension StoredForm<Int> {
    static func integer(in bounds: ClosedRange<Int>) -> Self {
        let range = Int64(bounds.lowerBound)...Int64(bounds.upperBound) // no trap: of the same order
        return .init {
            $0
        } read: { (row, column) throws(RowDamage) in
            Int(try row.integer(column, in: range))
        }
    }
}

extension StoredForm<Double> {
    /// A plausible time in seconds since 1970, or the like.
    static let time = Self(
        write: { $0 }, read: { (row, column) throws(RowDamage) in try row.real(column, in: -1e15...1e15) })
}

extension StoredForm<Bool> {
    static let flag = Self(write: { $0 }, read: { (row, column) throws(RowDamage) in try row.flag(column) })
}

extension StoredForm<String> {
    static let text = Self(write: { $0 }, read: { (row, column) throws(RowDamage) in try row.text(column) })
}

extension StoredForm where Value: RawRepresentable<String> {
    static var name: Self { .text({ Value(rawValue: $0) }, { $0.rawValue }) }
}

extension StoredForm where Value: Codable {
    static var json: Self {
        .init {
            String(decoding: try JSONEncoder().encode($0), as: UTF8.self)
        } read: { (row, column) throws(RowDamage) in
            try row.decoded(Value.self, column)
        }
    }
}

extension StoredForm<OriginURL> {
    static let url = text({ try? OriginURL(url: $0) }, { $0.absolute })
}
