/// Arithmetic and conversions for numbers from outside: offsets, lengths, ages, dates, sizes and counts from the
/// network, the disk, the configuration and the command line.
///
/// Swift's own operators trap on overflow, which would let one field of a response end the process. Here, a result
/// that does not fit is clamped to the type's nearest limit (`+|`, `-|`, `*|`), or is nil and the caller rejects
/// the input (`Int64(whole:)`, `Range(offset:length:)`, `ASCII.decimal(_:upTo:)`). Clamp if the limit means the
/// same ("forever", "to the end"); reject if it would be a wrong number. `scripts/check-arithmetic` looks for raw
/// arithmetic in the modules that read such numbers.
infix operator +| : AdditionPrecedence
infix operator -| : AdditionPrecedence
infix operator *| : MultiplicationPrecedence
infix operator +|= : AssignmentPrecedence
infix operator -|= : AssignmentPrecedence

extension FixedWidthInteger {
    /// The sum, clamped to `Self.min` or `Self.max`.
    @inlinable package static func +| (a: Self, b: Self) -> Self {
        let (sum, isOver) = a.addingReportingOverflow(b)
        // Terms of different signs always fit, so both have the sign of `b`.
        return isOver ? (b < 0 ? .min : .max) : sum
    }

    /// The difference, clamped to `Self.min` or `Self.max`.
    @inlinable package static func -| (a: Self, b: Self) -> Self {
        let (difference, isOver) = a.subtractingReportingOverflow(b)
        return isOver ? (b < 0 ? .max : .min) : difference
    }

    /// The product, clamped to `Self.min` or `Self.max`.
    @inlinable package static func *| (a: Self, b: Self) -> Self {
        let (product, isOver) = a.multipliedReportingOverflow(by: b)
        return isOver ? ((a < 0) != (b < 0) ? .min : .max) : product
    }

    /// Adds as `+|` does.
    @inlinable package static func +|= (a: inout Self, b: Self) { a = a +| b }

    /// Subtracts as `-|` does.
    @inlinable package static func -|= (a: inout Self, b: Self) { a = a -| b }

    /// The whole part of `number`, clamped to `Self.min` or `Self.max`; 0 for NaN.
    @inlinable package init(saturating number: Double) {
        if let fitting = Self(whole: number) {
            self = fitting
        } else {
            self = number.isNaN ? 0 : number < 0 ? .min : .max
        }
    }

    /// The whole part of `number`; nil if it does not fit, is infinite or is NaN.
    @inlinable package init?(whole number: Double) {
        self.init(exactly: number.rounded(.towardZero))
    }
}

extension Range<Int64> {
    /// The range of `length` bytes from `offset`; nil if either is negative or the end is beyond `Int64`.
    @inlinable package init?(offset: Int64, length: Int64) {
        let (end, isOver) = offset.addingReportingOverflow(length)
        guard offset >= 0, length >= 0, !isOver else { return nil }
        self = offset..<end // no trap: the addend is not negative
    }

    /// `lower..<upper`; nil if the upper bound is below the lower, where `a..<b` would trap.
    @inlinable package init?(from lower: Int64, upTo upper: Int64) {
        guard lower <= upper else { return nil }
        self = lower..<upper // no trap: compared above
    }
}

extension ASCII {
    /// Parses `1*DIGIT` of at most `bound`; nil for a greater number or anything else, including a sign.
    @inlinable package static func decimal(_ digits: some Collection<UInt8>, upTo bound: Int64) -> Int64? {
        guard let value = decimal(digits), value <= bound else { return nil }
        return value
    }
}
