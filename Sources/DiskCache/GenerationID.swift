import GRDB

/// Identifies a generation and its file.
package struct GenerationID: Hashable, Sendable, CustomStringConvertible {
    let value: UInt64

    func isMade(in session: Int64) -> Bool { value & 0xFFFF == UInt64(session & 0xFFFF) }

    /// 16 hexadecimal digits.
    package var description: String {
        String(unsafeUninitializedCapacity: 16) { digits in
            for place in 0..<16 {
                let digit = UInt8(value >> UInt64(60 - 4 * place) & 0xF)
                digits[place] = digit + (digit < 10 ? UInt8(ascii: "0") : UInt8(ascii: "a") - 10)
            }
            return 16
        }
    }

    init(value: UInt64) { self.value = value }

    package init?(fileName: String) {
        guard fileName.utf8.count == 16, let value = UInt64(fileName, radix: 16),
            (1...UInt64(Int64.max)).contains(value)
        else { return nil }
        self.value = value
    }
}

/// The value in a row: the same bits with a sign. A damaged row may contain a value that no generation ever had.
extension GenerationID: DatabaseValueConvertible {
    package var databaseValue: DatabaseValue { Int64(bitPattern: value).databaseValue }

    package static func fromDatabaseValue(_ value: DatabaseValue) -> GenerationID? {
        Int64.fromDatabaseValue(value).map { GenerationID(value: UInt64(bitPattern: $0)) }
    }
}

extension GenerationID {
    /// Makes the identifiers of one session, in runs that start at random places. Neighbours have neighbouring rows and
    /// share a directory, so that generations made at the same time change few pages of the index and few directories,
    /// and yet all generations spread over both.
    struct Series {
        /// The last four digits identify the session, so that its own files are never taken for leftovers.
        let session: Int64
        private var next: UInt64 = 0
        private var left = 0
        /// About as many as one transaction of the index holds (`IndexDatabase.rowsAtOnce`).
        private static let runLength = 64
        private let driver: (any StoreDriver)?
        private static let places = 1...UInt64(Int64.max >> 16) - UInt64(runLength)

        init(session: Int64, _ driver: (any StoreDriver)? = nil) { (self.session, self.driver) = (session, driver) }

        mutating func make() -> GenerationID {
            if left == 0 { (next, left) = (driver.map(Self.place) ?? .random(in: Self.places), Self.runLength) }
            defer { (next, left) = (next + 1, left - 1) }
            return GenerationID(value: next << 16 | UInt64(session & 0xFFFF))
        }

        private static func place(_ driver: any StoreDriver) -> UInt64 {
            driver.random() % (places.upperBound - places.lowerBound) + places.lowerBound // no trap: within the places
        }
    }
}
