import HTTPModel
import Testing

@Suite struct OutsideNumbersTests {
    @Test(
        arguments: [
            (1, 2, 3), (-1, 1, 0), (.max, 0, .max), (.max, 1, .max), (.max, .max, .max), (.max - 1, 1, .max),
            (.max, -1, .max - 1), (.min, 0, .min),
            (.min, -1, .min), (.min, .min, .min), (.min, .max, -1), (.max, .min, -1), (-1, .min, .min), (1, .max, .max),
            (.min + 1, -1, .min),
        ] as [(Int64, Int64, Int64)])
    func sumIsHeldAtTheLimits(a: Int64, b: Int64, sum: Int64) {
        #expect(a +| b == sum)
        var added = a
        added +|= b
        #expect(added == sum)
    }

    @Test(
        arguments: [
            (3, 2, 1), (.max, 0, .max), (.max, -1, .max), (.max, .min, .max), (.max, .max, 0), (.min, 0, .min),
            (.min, 1, .min), (.min, .max, .min),
            (.min, .min, 0), (0, .min, .max), (-1, .min, .max), (-2, .max, .min), (-1, .max, .min),
            (.min, -1, .min + 1), (1, .max, -.max + 1),
        ] as [(Int64, Int64, Int64)])
    func differenceIsHeldAtTheLimits(a: Int64, b: Int64, difference: Int64) {
        #expect(a -| b == difference)
        var subtracted = a
        subtracted -|= b
        #expect(subtracted == difference)
    }

    @Test(
        arguments: [
            (3, 2, 6), (.max, 0, 0), (.max, 1, .max), (.max, 2, .max), (.max, -1, -.max), (.max, -2, .min),
            (.min, 1, .min), (.min, -1, .max),
            (.min, 2, .min), (.min, .min, .max), (.max, .max, .max), (.min, .max, .min), (0, .min, 0),
            (1 << 31, 1 << 32, .max),
            (1 << 31, -(1 << 32), .min), (3_037_000_499, 3_037_000_499, 9_223_372_030_926_249_001),
            (3_037_000_500, 3_037_000_500, .max),
        ] as [(Int64, Int64, Int64)])
    func productIsHeldAtTheLimits(a: Int64, b: Int64, product: Int64) {
        #expect(a *| b == product)
        #expect(b *| a == product)
    }

    @Test func unsignedNumbersAreHeldAtZero() {
        #expect(UInt8(3) -| 5 == 0)
        #expect(UInt8(250) +| 10 == 255)
        #expect(UInt8(16) *| 16 == 255)
    }

    @Test func resultsOf8BitsAgreeWithWiderArithmetic() {
        for a in Int8.min...Int8.max {
            for b in Int8.min...Int8.max {
                #expect(a +| b == Int8(clamping: Int(a) + Int(b)))
                #expect(a -| b == Int8(clamping: Int(a) - Int(b)))
                #expect(a *| b == Int8(clamping: Int(a) * Int(b)))
            }
        }
    }

    // The greatest Double below 2^63 is 2^63 - 1024; 2^63 itself does not fit.
    @Test(
        arguments: [
            (0, 0, 0), (-0.0, 0, 0), (1.9, 1, 1), (-1.9, -1, -1),
            (9_223_372_036_854_774_784, 9_223_372_036_854_774_784, 9_223_372_036_854_774_784),
            (0x1p63, nil, .max), (-0x1p63, .min, .min), (-9_223_372_036_854_777_856, nil, .min), (1e300, nil, .max),
            (-1e300, nil, .min),
            (.infinity, nil, .max), (-.infinity, nil, .min), (.nan, nil, 0), (.signalingNaN, nil, 0),
            (.leastNonzeroMagnitude, 0, 0),
        ] as [(Double, Int64?, Int64)])
    func wholePartIsTakenWithoutATrap(number: Double, whole: Int64?, held: Int64) {
        #expect(Int64(whole: number) == whole)
        #expect(Int64(saturating: number) == held)
    }

    @Test(
        arguments: [
            (0, 0, 0..<0), (0, .max, 0..<Int64.max), (.max, 0, Int64.max..<Int64.max), (1, .max, nil), (.max, 1, nil),
            (.max, .max, nil), (-1, 5, nil),
            (5, -1, nil), (.min, .min, nil), (.max - 5, 5, Int64.max - 5..<Int64.max),
        ] as [(Int64, Int64, Range<Int64>?)])
    func rangeOfOffsetAndLength(offset: Int64, length: Int64, range: Range<Int64>?) {
        #expect(Range(offset: offset, length: length) == range)
    }

    @Test func rangeOfBoundsThatAreOutOfOrderIsNone() {
        #expect(Range(from: 5, upTo: 4) == nil)
        #expect(Range(from: .max, upTo: .min) == nil)
        #expect(Range(from: 4, upTo: 4) == 4..<4)
        #expect(Range(from: .min, upTo: .max) == Int64.min..<Int64.max)
    }

    @Test(
        arguments: [
            ("0", 0, 0), ("100", 100, 100), ("101", 100, nil), ("9223372036854775806", .max, .max - 1),
            ("9223372036854775807", .max, nil),
            ("9223372036854775808", .max, nil), ("99999999999999999999999999", .max, nil), ("-1", 100, nil),
            ("+1", 100, nil), ("", 100, nil),
            ("1 ", 100, nil), ("0x1", 100, nil), ("00000000000000000000000000007", 7, 7), ("5", -1, nil),
        ] as [(String, Int64, Int64?)])
    func decimalIsBounded(text: String, bound: Int64, number: Int64?) {
        #expect(ASCII.decimal(text.utf8, upTo: bound) == number)
    }
}
