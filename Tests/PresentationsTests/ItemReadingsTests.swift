import Activity
import CachePolicy
import TestSupport
import Testing

@testable import Presentations

@Suite struct ItemReadingsTests {
    private static func id(_ item: String = "a", _ player: String = "p") -> ItemReadings.ID {
        ItemReadings.ID(player: PlayerID(address: player, agent: nil), item: CacheKey(text: item))
    }

    private static let readings: [([Range<Int64>], Bool)] = [
        ([0..<75], true), ([0..<74], false), ([25..<100], true), ([99..<100], false),
        // The index at the end first, then from the beginning.
        ([90..<100, 0..<64], false), ([90..<100, 0..<65], true),
        // What is read again counts once.
        ([0..<40, 0..<40, 20..<60], false), ([0..<40, 30..<75], true), ([50..<75, 0..<25, 25..<50], true),
        ([0..<10, 20..<30, 40..<50, 60..<70, 80..<90], false), ([0..<10, 20..<30, 5..<95], true),
        // Beyond the end.
        ([80..<1000], false), ([0..<0], false), ([10..<Int64.max], true),
    ]

    @Test(arguments: readings)
    func distinctBytesCount(ranges: [Range<Int64>], isRead: Bool) {
        var readings = ItemReadings()
        let news = ranges.map { readings.read($0, of: Self.id(), length: 100) }
        #expect(news.contains(true) == isRead)
    }

    @Test func itIsReportedOnceForEachPlayerAndItem() {
        var readings = ItemReadings()
        for id in [Self.id(), Self.id("b"), Self.id("a", "q")] {
            let news = (0..<3).map { _ in readings.read(0..<80, of: id, length: 100) }
            let mark = readings.begin(id, at: 0, length: 100)
            #expect(news == [true, false, false] && mark == nil)
        }
        // A new version is another item.
        let mark = readings.begin(Self.id(), at: 0, length: 200)
        #expect(mark == 150)
    }

    private static let marks: [([Range<Int64>], Int64, Int64?)] = [
        ([], 0, 75), ([], 20, 95), ([], 26, nil), ([0..<50], 50, 75), ([0..<50], 0, 75), ([90..<100], 0, 65),
        ([10..<20, 30..<40], 0, 75), ([10..<20, 30..<40], 35, 95), ([0..<30], 40, 85), ([70..<80], 0, 65),
        ([60..<70], 0, 75), ([0..<10, 50..<60], 35, 100), ([0..<10, 50..<60], 36, nil),
    ]

    @Test(arguments: marks)
    func theMarkIsWhereThreeQuartersWillHaveBeenRead(before: [Range<Int64>], offset: Int64, mark: Int64?) {
        var readings = ItemReadings()
        for range in before { _ = readings.read(range, of: Self.id(), length: 100) }
        let found = readings.begin(Self.id(), at: offset, length: 100)
        #expect(found == mark)
        guard let mark else { return }
        // The last byte is the one that counts.
        let news = [mark - 1, mark].map { readings.read(offset..<$0, of: Self.id(), length: 100) }
        #expect(news == [false, true])
    }

    @Test(arguments: [0, -1, 1, 3, .max])
    func oddLengthsDoNoHarm(length: Int64) {
        var readings = ItemReadings()
        for offset in [0, -1, 1, .max] as [Int64] { _ = readings.begin(Self.id(), at: offset, length: length) }
        _ = readings.read(0..<Int64.max, of: Self.id(), length: length)
    }

    @Test func theLongestUnusedIsForgotten() {
        var readings = ItemReadings()
        for number in 0..<ItemReadings.most { _ = readings.read(0..<70, of: Self.id("\(number)"), length: 100) }
        _ = readings.begin(Self.id("0"), at: 0, length: 100)
        _ = readings.begin(Self.id("new"), at: 0, length: 100)
        #expect(readings.entries.count == ItemReadings.most)
        let news = ["0", "2", "1"].map { readings.read(70..<75, of: Self.id($0), length: 100) }
        #expect(news == [true, true, false])
    }

    /// Each byte may be requested by itself.
    @Test func manyPiecesAreBounded() {
        var readings = ItemReadings()
        let pieces = stride(from: Int64(0), to: 1000, by: 2).map { $0..<($0 + 1) } + [0..<1000]
        let news = pieces.map { readings.read($0, of: Self.id(), length: 1000) }
        #expect(news.last == true && !news.dropLast().contains(true))
    }

    /// Compared with a set of all bytes.
    @Test func randomReadingsCountAsASetDoes() {
        var random = SplitMix64.forTest("readings of items")
        for _ in 0..<200 {
            var (readings, bytes, isRead) = (ItemReadings(), Set<Int64>(), false)
            for _ in 0..<30 {
                let start = Int64.random(in: 0..<60, using: &random)
                let range = start..<(start + Int64.random(in: 0..<12, using: &random))
                bytes.formUnion(range.filter { $0 < 60 })
                let news = readings.read(range, of: Self.id(), length: 60)
                #expect(news == (!isRead && bytes.count >= 45))
                isRead = isRead || news
            }
        }
    }
}
