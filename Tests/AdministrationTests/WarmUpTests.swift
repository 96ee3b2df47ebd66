import HTTPModel
import Testing

@testable import Administration

/// Parts of a warm-up from another node.
@Suite struct WarmUpTests {
    private static let end = #"{"end":true,"resources":40,"left_out":3}"#

    /// Wherever a piece ends, the line with the sums is not among the resources.
    @Test(arguments: [1, 7, 100, 101, 4096, 1 << 20]) func aListMayArriveInAnyPieces(size: Int) throws {
        let resources = (0..<40).map { "resource \($0) " + String(repeating: "x", count: 80 + $0) + "\n" }.joined()
        let bytes = Array((resources + Self.end + "\n").utf8)
        var lines = ArchiveListLines(longest: 200), taken: [UInt8] = [], groups = 0
        for start in stride(from: 0, to: bytes.count, by: size) {
            let full = lines.take(bytes[start..<min(bytes.count, start + size)])
            for group in try #require(full) {
                #expect(group.last == ASCII.lineFeed && group.count < 400)
                (taken, groups) = (taken + group, groups + 1)
            }
        }
        let (rest, end) = try #require(lines.finish())
        #expect(String(decoding: taken + rest, as: UTF8.self) == resources)
        #expect(groups > 10 && end.resources == 40 && end.leftOut == 3)
    }

    @Test func aListThatIsCutOrHasTooLongALineIsNone() {
        var lines = ArchiveListLines(longest: 200)
        func take(_ text: String) -> [[UInt8]]? { lines.take(text.utf8) }
        for text in ["a\n", Self.end] {
            #expect(take(text) == [])
            #expect(lines.finish() == nil)
        }
        #expect(take("\n") == [])
        #expect(lines.finish() != nil)
        let long = String(repeating: "x", count: 200)
        #expect(take(long) == nil)
        lines = ArchiveListLines(longest: 200)
        #expect(take(long + "\n") == nil)
    }

    @Test func onlyAttemptsWithoutProgressCount() {
        var attempts = WarmUpAttempts(most: 6)
        func pauses(_ count: Int, _ hasProgressed: Bool) -> [Double?] {
            (0..<count).map { _ in attempts.pause(hasProgressed: hasProgressed) }
        }
        #expect(pauses(4, false) == [0.5, 1, 2, 4])
        #expect(pauses(20, true).allSatisfy { $0 == 0.5 })
        #expect(pauses(5, false) == [1, 2, 4, 8, nil])
    }

    /// The cache stalls: an interruption does not wait for it.
    @Test func aWarmUpThatNobodyReadsCanBeInterrupted() throws {
        let channel = try ImportChannel(), bytes = [UInt8](repeating: 1, count: 4 << 20)
        var asked = 0
        let error = #expect(throws: CacheAccessError.self) {
            try bytes.withUnsafeBytes { bytes in
                try channel.write(bytes) {
                    asked += 1
                    return asked < 2
                }
            }
        }
        #expect(asked == 2 && error?.description == CacheAccessError.interrupted.description)
    }
}
