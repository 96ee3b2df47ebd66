/// Arithmetic and conversions for numbers that somebody else wrote: offsets, lengths, ages, dates, sizes and counts
/// from the network, the disk, the configuration and the command line.
///
/// Swift's own operators trap on overflow, which would let one field of a response end the process. Here a result that
/// does not fit is held at the type's nearest limit (`+|`, `-|`, `*|`), or is nil and the caller refuses the input
/// (`Int64(whole:)`, `Range(offset:length:)`, `ASCII.decimal(_:upTo:)`). Hold where the limit means the same ("for
/// ever", "to the end"); refuse where it would be a wrong number. `scripts/check-arithmetic` looks for raw arithmetic
/// in the modules that read such numbers.
infix operator +| : AdditionPrecedence
infix operator -| : AdditionPrecedence
infix operator *| : MultiplicationPrecedence
infix operator +|= : AssignmentPrecedence
infix operator -|= : AssignmentPrecedence

extension FixedWidthInteger {
    /// The sum, held at `Self.min` or `Self.max` where it does not fit.
    @inlinable package static func +| (a: Self, b: Self) -> Self {
        let (sum, isOver) = a.addingReportingOverflow(b)
        // Terms of different signs always fit, so both have the sign of `b`.
        return isOver ? (b < 0 ? .min : .max) : sum
    }

    /// The difference, held at `Self.min` or `Self.max` where it does not fit.
    @inlinable package static func -| (a: Self, b: Self) -> Self {
        let (difference, isOver) = a.subtractingReportingOverflow(b)
        return isOver ? (b < 0 ? .max : .min) : difference
    }

    /// The product, held at `Self.min` or `Self.max` where it does not fit.
    @inlinable package static func *| (a: Self, b: Self) -> Self {
        let (product, isOver) = a.multipliedReportingOverflow(by: b)
        return isOver ? ((a < 0) != (b < 0) ? .min : .max) : product
    }

    /// Adds as `+|` does.
    @inlinable package static func +|= (a: inout Self, b: Self) { a = a +| b }

    /// Subtracts as `-|` does.
    @inlinable package static func -|= (a: inout Self, b: Self) { a = a -| b }

    /// The whole part of `number`, held at `Self.min` or `Self.max` where it does not fit; 0 for what is not a number.
    @inlinable package init(saturating number: Double) {
        if let fitting = Self(whole: number) {
            self = fitting
        } else {
            self = number.isNaN ? 0 : number < 0 ? .min : .max
        }
    }

    /// The whole part of `number`; nil where it does not fit, is infinite or is not a number.
    @inlinable package init?(whole number: Double) {
        self.init(exactly: number.rounded(.towardZero))
    }
}

extension Range<Int64> {
    /// The bytes from `offset`, `length` of them; nil where either is negative or the end is beyond `Int64`.
    @inlinable package init?(offset: Int64, length: Int64) {
        let (end, isOver) = offset.addingReportingOverflow(length)
        guard offset >= 0, length >= 0, !isOver else { return nil }
        self = offset..<end // no trap: what is added is not negative
    }

    /// `lower..<upper`, where `a..<b` would trap on an upper bound below the lower: nil.
    @inlinable package init?(from lower: Int64, upTo upper: Int64) {
        guard lower <= upper else { return nil }
        self = lower..<upper // no trap: compared above
    }
}

extension ASCII {
    /// `1*DIGIT` of at most `bound`; nil where it is greater or anything else, a sign included.
    @inlinable package static func decimal(_ digits: some Collection<UInt8>, upTo bound: Int64) -> Int64? {
        guard let value = decimal(digits), value <= bound else { return nil }
        return value
    }
}
