import Glibc

/// One range of bytes in a request (RFC 9110 §14.1.2). Positions are offsets; `last` is inclusive, as on the wire.
package enum ByteRangeSpec: Sendable, Equatable {
    case bounded(first: Int64, last: Int64)
    case from(Int64)
    /// The last bytes, this many.
    case suffix(Int64)

    /// The bytes that it means in a representation of `length` bytes, half-open; nil if there are none (§14.1.2).
    ///
    ///     bounded(2, 5)      |  [=======)    |       2..<6
    ///     bounded(2, 999)    |  [============)       2..<length
    ///     suffix(4)          |        [======)       length-4..<length
    ///
    /// Every range is unsatisfiable for an empty representation, as a `Content-Range` cannot state an empty range.
    package func resolve(length: Int64) -> Range<Int64>? {
        guard length > 0 else { return nil }
        switch self {
        case .bounded(let first, let last):
            guard 0 <= first, first < length, first <= last else { return nil }
            return Range(from: first, upTo: min(last +| 1, length))
        case .from(let first):
            guard 0 <= first, first < length else { return nil }
            return Range(from: first, upTo: length)
        case .suffix(let count):
            guard count > 0 else { return nil }
            return Range(from: length -| min(count, length), upTo: length)
        }
    }
}

/// The ranges that a `Range` field requests (RFC 9110 §14.2).
package enum RangeRequest: Sendable, Equatable {
    /// No field, or a unit other than bytes, which is ignored (§14.2).
    case none
    case single(ByteRangeSpec)
    /// Two or more, in the requested order.
    case multiple([ByteRangeSpec])
    /// Invalid by the grammar of §14.1.1, or a range that ends before it begins.
    case malformed

    /// Clamps numbers to `ByteNumber.greatest`, as no file has a byte beyond it, and skips empty elements of the
    /// list (§5.6.1.2).
    package static func parse(_ value: String?) -> RangeRequest {
        guard let value else { return .none }
        if let spec = value.utf8.withContiguousStorageIfAvailable(ByteRangeSpec.init(usual:)) ?? nil {
            return .single(spec)
        }
        let field = ASCII.trimmed(value.utf8)
        guard let equals = field.firstIndex(of: UInt8(ascii: "=")) else { return .malformed }
        let unit = field[..<equals]
        guard !unit.isEmpty, unit.allSatisfy(ASCII.isToken) else { return .malformed }
        // RFC 9110 §14.1: names of units are case-insensitive.
        guard ASCII.equalIgnoringCase(unit, "bytes".utf8) else { return .none }
        return parse(set: field[field.index(after: equals)...])
    }

    private static func parse(set: Substring.UTF8View) -> RangeRequest {
        var specs: [ByteRangeSpec] = []
        for element in set.split(separator: ASCII.comma) {
            let trimmed = ASCII.trimmed(element)
            if trimmed.isEmpty { continue }
            guard let spec = ByteRangeSpec(trimmed) else { return .malformed }
            specs.append(spec)
        }
        switch specs.count {
        case 0: return .malformed
        case 1: return .single(specs[0])
        default: return .multiple(specs)
        }
    }
}

extension ByteRangeSpec {
    /// Parses the forms that players send, `bytes=first-last` and `bytes=first-`, without copying; nil leaves other
    /// forms to the full grammar.
    fileprivate init?(usual field: UnsafeBufferPointer<UInt8>) {
        let unit: StaticString = "bytes="
        guard field.count > unit.utf8CodeUnitCount,
            memcmp(field.baseAddress!, unit.utf8Start, unit.utf8CodeUnitCount) == 0
        else { return nil }
        var place = unit.utf8CodeUnitCount
        guard let first = Self.digits(field, &place), place < field.count, field[place] == UInt8(ascii: "-") else {
            return nil
        }
        place += 1
        if place == field.count {
            self = .from(first)
            return
        }
        guard let last = Self.digits(field, &place), place == field.count, first <= last else { return nil }
        self = .bounded(first: first, last: last)
    }

    /// Parses one to eighteen digits, which are always below `ByteNumber.greatest`.
    private static func digits(_ field: UnsafeBufferPointer<UInt8>, _ place: inout Int) -> Int64? {
        let start = place
        var number: Int64 = 0
        while place < field.count, place - start < 18, case let digit = field[place] &- UInt8(ascii: "0"), digit < 10 {
            number = number * 10 + Int64(digit) // no trap: eighteen digits
            place += 1
        }
        return place > start ? number : nil
    }

    /// Parses `first-last`, `first-` or `-count` (RFC 9110 §14.1.1).
    fileprivate init?(_ text: Substring.UTF8View) {
        guard let dash = text.firstIndex(of: UInt8(ascii: "-")) else { return nil }
        let before = text[..<dash]
        let after = text[text.index(after: dash)...]
        switch (ASCII.saturatingDecimal(before), ASCII.saturatingDecimal(after)) {
        case (let first?, let last?) where first <= last:
            self = .bounded(first: ByteNumber.bounded(first), last: ByteNumber.bounded(last))
        case (let first?, nil) where after.isEmpty: self = .from(ByteNumber.bounded(first))
        case (nil, let count?) where before.isEmpty: self = .suffix(ByteNumber.bounded(count))
        default: return nil
        }
    }
}
