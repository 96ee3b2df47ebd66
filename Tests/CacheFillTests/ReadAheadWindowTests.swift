import Testing

@testable import CacheFill

@Suite struct ReadAheadWindowTests {
    @Test(
        arguments: [
            // Read, how far past its reader a transfer goes, and how far once the reader has left.
            (0, 128 << 10, 0), (65_536, 256 << 10, 65_536), (1 << 20, 128 << 10 + 2 << 20, 1 << 20),
            (9 << 20, 128 << 10 + 18 << 20, 8 << 20),
            (16 << 20, 32 << 20, 8 << 20), (Int64.max, 32 << 20, 8 << 20), (-5, 128 << 10, 0),
        ] as [(Int64, Int64, Int64)])
    func windowGrowsWithWhatWasReadAndShrinksWhenItsReaderHasLeft(read: Int64, reading: Int64, left: Int64) {
        let window = ReadAheadWindow(limit: 32 << 20)
        #expect(window.reach(afterReading: read) == reading)
        #expect(window.reach(afterLeaving: read) == left)
    }

    @Test func oneThatIsNearIsNoFurtherForWhoHasLeft() {
        #expect(ReadAheadWindow(limit: 1 << 20).reach(afterLeaving: 6 << 20) == 1 << 20)
    }

    @Test(
        arguments: [(0, false), (1, false), (24_575, false), (24_576, true), (40_000, true), (65_535, true)]
            as [(Int64, Bool)])
    func leftChunkIsFinishedWhereThatCostsLessThanAskingAgain(received: Int64, isFinished: Bool) {
        #expect(FetchOutput.isWorthFinishing(received: received, of: 65_536) == isFinished)
    }

    // The last of a file.
    @Test func shortChunkIsFinishedOnceItHasBegun() {
        #expect(FetchOutput.isWorthFinishing(received: 1, of: 16_000))
        #expect(!FetchOutput.isWorthFinishing(received: 0, of: 16_000))
    }
}
