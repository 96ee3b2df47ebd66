import ReelcacheCLI
import TestSupport
import Testing

@Suite struct CoverageBarTests {
    private static func bar(_ present: [Range<Int64>], _ length: Int64, _ width: Int) -> String {
        CoverageBar(present: present, length: length, width: width).text(isUnicode: false)
    }

    @Test(
        arguments: [
            ([], 100, 10, ".........."), ([0..<100], 100, 10, "##########"), ([0..<1], 100, 10, "+........."),
            ([99..<100], 100, 10, ".........+"),
            ([0..<20, 25..<30, 90..<100], 100, 10, "##+......#"), ([5..<15], 100, 10, "++........"),
            ([0..<3], 5, 10, "###.."), ([0..<7], 10, 3, "##+"),
            ([], 0, 10, ""), ([0..<5], 5, 0, ""), ([0..<2, 3..<10], 10, 1, "+"),
        ] as [([Range<Int64>], Int64, Int, String)])
    func cellsShowWhatIsThere(present: [Range<Int64>], length: Int64, width: Int, bar: String) {
        #expect(Self.bar(present, length, width) == bar)
    }

    /// Each cell by its definition: every byte of its part, some, or none.
    @Test func cellsAreRightForAnyRanges() {
        var random = SplitMix64.forTest("cellsAreRightForAnyRanges")
        for _ in 0..<300 {
            let length = Int64.random(in: 1...200, using: &random), width = Int.random(in: 1...40, using: &random)
            let bytes = (0..<length).map { _ in Bool.random(using: &random) }
            var ranges: [Range<Int64>] = []
            for (offset, isPresent) in bytes.enumerated() where isPresent {
                let byte = Int64(offset)..<Int64(offset) + 1
                if let last = ranges.last, last.upperBound == byte.lowerBound {
                    ranges[ranges.count - 1] = last.lowerBound..<byte.upperBound
                } else {
                    ranges.append(byte)
                }
            }
            let count = min(width, Int(length))
            let expected = (0..<count).map { cell -> CoverageBar.Cell in
                let part = bytes[Int(length) * cell / count..<Int(length) * (cell + 1) / count]
                return part.allSatisfy { $0 } ? .full : part.contains(true) ? .partial : .empty
            }
            #expect(CoverageBar(present: ranges, length: length, width: width).cells == expected)
        }
    }

    @Test func theLongestResourceHasABar() {
        #expect(Self.bar([0..<Int64.max / 2], .max, 4) == "##+.".replacing("+", with: "."))
    }

    @Test func aTerminalWithBlocksGetsBlocks() {
        #expect(CoverageBar(present: [0..<15], length: 30, width: 3).text(isUnicode: true) == "█▒░")
    }
}
