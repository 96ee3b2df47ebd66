/// A set of chunks of one extent, which has up to 64: those that are present in the file (the extent's bitmap), or
/// those with some other property. Bit 0 is the extent's first chunk.
package struct Presence: Sendable, Hashable {
    package var bits: UInt64

    package init(bits: UInt64 = 0) { self.bits = bits }

    /// The chunks of a run, within 0..<64.
    package init(_ run: Range<Int>) { bits = Self.mask(run) }

    package init(_ chunks: some Sequence<Int>) { self = chunks.reduce(into: Presence()) { $0.insert($1) } }

    package func contains(_ bit: Int) -> Bool { bits & Self.mask(bit..<bit + 1) != 0 }

    package mutating func insert(_ bit: Int) { insert(bit..<bit + 1) }
    package mutating func insert(_ range: Range<Int>) { bits |= Self.mask(range) }

    package mutating func remove(_ bit: Int) { remove(bit..<bit + 1) }
    package mutating func remove(_ range: Range<Int>) { bits &= ~Self.mask(range) }

    // MARK: - Sets

    package func union(_ other: Presence) -> Presence { Presence(bits: bits | other.bits) }
    package func intersection(_ other: Presence) -> Presence { Presence(bits: bits & other.bits) }
    package func subtracting(_ other: Presence) -> Presence { Presence(bits: bits & ~other.bits) }
    package func isSuperset(of other: Presence) -> Bool { other.subtracting(self).isEmpty }

    package mutating func formUnion(_ other: Presence) { self = union(other) }
    package mutating func subtract(_ other: Presence) { self = subtracting(other) }

    /// The chunks of a run that are not in the set.
    package func complement(within run: Range<Int>) -> Presence { Presence(run).subtracting(self) }

    // MARK: - Runs

    package var count: Int { bits.nonzeroBitCount }
    package var isEmpty: Bool { bits == 0 }

    /// How many chunks in a row are present, beginning with `bit`; 0 to `64 - bit`.
    package func runOfPresent(from bit: Int) -> Int { complement(within: 0..<64).runOfAbsent(from: bit) }

    /// How many chunks in a row are absent, beginning with `bit`; 0 to `64 - bit`.
    package func runOfAbsent(from bit: Int) -> Int {
        precondition(0...64 ~= bit, "an extent has bits 0 to 63")
        return min((bits >> UInt64(bit)).trailingZeroBitCount, 64 - bit) // no trap: checked above
    }

    /// A word in which the bits of a range, within 0..<64, are set.
    package static func mask(_ range: Range<Int>) -> UInt64 {
        precondition(range.lowerBound >= 0 && range.upperBound <= 64, "an extent has bits 0 to 63")
        // Swift's `<<` by 64 gives 0, so that 0..<64 becomes 0 - 1, all ones.
        return (1 << UInt64(range.upperBound)) &- (1 << UInt64(range.lowerBound)) // no trap: checked above
    }

    /// The maximal runs of present chunks, in order.
    package var runs: [Range<Int>] {
        var runs: [Range<Int>] = []
        var bit = runOfAbsent(from: 0)
        while bit < 64 {
            let end = bit + runOfPresent(from: bit)
            runs.append(bit..<end)
            bit = end + runOfAbsent(from: end)
        }
        return runs
    }
}
