import CachePolicy
import Testing

@Suite struct ReadRangesTests {
    @Test func textIsReadAsItWasWritten() {
        var ranges = ReadRanges()
        for range in [200..<300, 0..<100, 290..<310, 500..<501] as [Range<Int64>] { ranges.insert(range) }
        #expect(ranges.text == "0-99,200-309,500-500" && ranges.count == 211)
        var read = ReadRanges()
        read.insert(ranges.text)
        #expect(read == ranges)
    }

    @Test(arguments: [
        "", "x", "5", "9-3", "-5-7", "1-2-3", "9223372036854775807-9223372036854775807", "3-99999999999999999999",
    ])
    func whatIsDamagedIsLeftOut(text: String) {
        var ranges = ReadRanges()
        ranges.insert(text + ",10-19")
        #expect(ranges.ranges.contains(10..<20) && ranges.count <= 11)
    }
}
