extension [UInt8] {
    package mutating func append(_ text: StaticString) {
        append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    /// Appends the digits of a number, without an intermediate string.
    /// - Parameter number: not negative.
    package mutating func append(decimal number: Int64) {
        precondition(number >= 0)
        append(decimal: number.magnitude)
    }

    package mutating func append(decimal number: UInt64) {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 20) { digits in
            var (left, place) = (number, 20)
            repeat {
                place -= 1
                digits[place] = UInt8(ascii: "0") + UInt8(left % 10) // no trap: a digit
                left /= 10
            } while left > 0
            append(contentsOf: UnsafeBufferPointer(rebasing: digits[place..<20]))
        }
    }
}
