import Foundation

/// Content whose every byte is a function of `seed` and the byte's offset: an origin can serve 100 GB of it without
/// storing any, and a test can tell of any byte whether it is the right one in the right place.
package struct Media: Sendable, Equatable {
    /// Selects the content. Media of two seeds agree in about one byte of 256.
    package let seed: UInt64
    /// Length in bytes.
    package let size: Int64
    private let key: UInt64

    package init(seed: UInt64, size: Int64) {
        precondition(size >= 0, "a size is not negative: \(size)")
        self.seed = seed
        self.size = size
        key = SplitMix64.mix(seed &+ SplitMix64.increment)
    }

    /// The byte at `offset`. Content goes on past `size` by the same rule, which endless responses use.
    package func byte(at offset: Int64) -> UInt8 {
        precondition(offset >= 0, "an offset is not negative: \(offset)")
        return UInt8(truncatingIfNeeded: word(UInt64(offset) &>> 3) &>> ((UInt64(offset) & 7) &* 8))
    }

    /// The bytes of the half-open `range`, which may reach past `size`.
    package func bytes(_ range: Range<Int64>) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: range.count) { buffer, count in
            guard let base = buffer.baseAddress, !range.isEmpty else { return }
            withWords(covering: range) { words, skip in _ = memcpy(base, words + skip, range.count) }
            count = range.count
        }
    }

    /// All bytes. For small media.
    package var allBytes: [UInt8] { bytes(0..<size) }

    /// The offset in the media of the first byte of `bytes`, taken to begin at `offset`, that is not this media's byte
    /// there, or `nil` when all agree. Bytes past `size` never agree.
    package func firstMismatch(_ bytes: [UInt8], at offset: Int64) -> Int64? {
        let inside = Int(Swift.max(0, Swift.min(Int64(bytes.count), size - offset)))
        var start = 0
        while start < inside {
            let end = Swift.min(start + 64 * 1024, inside)
            let expected = self.bytes(offset + Int64(start)..<offset + Int64(end))
            if let index = firstDifference(bytes[start..<end], expected) { return offset + Int64(start + index) }
            start = end
        }
        return inside < bytes.count ? offset + Int64(inside) : nil
    }

    /// What is wrong with `bytes` as the content of the half-open `range`, or `nil` when nothing is. For `#expect`,
    /// which takes minutes to describe two large arrays that differ.
    package func difference(_ bytes: [UInt8], from range: Range<Int64>) -> String? {
        if let offset = firstMismatch(bytes, at: range.lowerBound) { return "wrong from offset \(offset) on" }
        return bytes.count == range.count ? nil : "\(bytes.count) bytes instead of \(range.count)"
    }

    /// Calls `body` with the words that cover the half-open `range`, and with where in them it begins.
    ///
    ///     words     |0      |1      |2      |
    ///     range          [------------)
    ///                skip
    private func withWords(covering range: Range<Int64>, _ body: (UnsafeRawPointer, _ skip: Int) -> Void) {
        precondition(range.lowerBound >= 0, "an offset is not negative: \(range)")
        let first = UInt64(range.lowerBound) &>> 3
        let count = Int((UInt64(range.upperBound) + 7) &>> 3 - first)
        withUnsafeTemporaryAllocation(of: UInt64.self, capacity: count) { words in
            guard let base = words.baseAddress else { return }
            // As `word` has it, but without a call, which debug builds do not inline.
            let (increment, end) = (SplitMix64.increment, base + count)
            var (state, next) = (key &+ first &* increment, base)
            while next < end {
                state &+= increment
                var z = state
                z = (z ^ (z &>> 30)) &* 0xBF58_476D_1CE4_E5B9
                z = (z ^ (z &>> 27)) &* 0x94D0_49BB_1331_11EB
                next.pointee = (z ^ (z &>> 31)).littleEndian
                next += 1
            }
            body(base, Int(range.lowerBound & 7))
        }
    }

    /// The eight bytes from offset `8 × index` on, the first one lowest. Equal to step `index` of SplitMix64 from
    /// `key`.
    private func word(_ index: UInt64) -> UInt64 {
        SplitMix64.mix(key &+ (index &+ 1) &* SplitMix64.increment).littleEndian
    }

    private func firstDifference(_ actual: ArraySlice<UInt8>, _ expected: [UInt8]) -> Int? {
        if actual.elementsEqualInMemory(expected) { return nil }
        return zip(actual, expected).enumerated().first { $0.element.0 != $0.element.1 }?.offset
    }
}

extension ArraySlice<UInt8> {
    /// `elementsEqual` by memcmp: in debug builds a hundred times as fast.
    fileprivate func elementsEqualInMemory(_ other: [UInt8]) -> Bool {
        withUnsafeBytes { mine in
            other.withUnsafeBytes {
                mine.count == $0.count && memcmp(mine.baseAddress!, $0.baseAddress!, mine.count) == 0
            }
        }
    }
}
