import Activity
import Testing

@Suite struct CoverageTests {
    private static func strip(
        _ present: [Range<Int64>], length: Int64 = 1000, from: Int64? = nil, to: Int64? = nil, count: Int = 4,
        arriving: [CoverageStrip.Arrival] = [], readers: [CoverageStrip.Reader] = []
    ) -> CoverageStrip {
        CoverageStrip(
            unit: .bytes, present: present, length: length, in: .init(from: from, to: to, count: count),
            .init(arriving: arriving, readers: readers))
    }

    @Test(
        arguments: [
            ([], [0, 0, 0, 0]), ([0..<1000], [100, 100, 100, 100]), ([0..<1], [1, 0, 0, 0]),
            ([0..<249, 250..<1000], [99, 100, 100, 100]), ([100..<600], [60, 100, 40, 0]),
            ([0..<25, 50..<75, 100..<125], [30, 0, 0, 0]),
        ] as [([Range<Int64>], [Int])])
    func cellsTellHowMuchOfThemIsCached(present: [Range<Int64>], cells: [Int]) {
        #expect(Self.strip(present).cells == cells)
    }

    @Test(
        arguments: [
            (500, nil, 500..<1000, [80, 0, 0, 0]), (nil, 400, 0..<400, [0, 100, 100, 100]),
            (590, 610, 590..<610, [100, 100, 0, 0]), (900, 100, 900..<900, []), (2000, 3000, 1000..<1000, []),
            (nil, .max, 0..<1000, [60, 100, 40, 0]), (998, nil, 998..<1000, [0, 0]),
        ] as [(Int64?, Int64?, Range<Int64>, [Int])])
    func aWindowIsClampedToWhatThereIs(from: Int64?, to: Int64?, shown: Range<Int64>, cells: [Int]) {
        let strip = Self.strip([100..<600], from: from, to: to)
        #expect((strip.from, strip.to) == (shown.lowerBound, shown.upperBound) && strip.cells == cells)
        #expect(strip.length == 1000)
    }

    @Test func whatLiesBesideTheWindowIsLeftOut() {
        let arriving: [CoverageStrip.Arrival] = [
            .init(transfer: "1", from: 0, at: 100, to: 200), .init(transfer: "2", from: 100, at: 300, to: 600),
            .init(transfer: "3", from: 800, at: 800, to: nil), .init(transfer: "4", from: 0, at: 1, to: nil),
        ]
        let readers = [0, 499, 500, 700, 1000].map { CoverageStrip.Reader(play: $0, player: "mpv", at: $0) }
        let middle = Self.strip([], from: 500, to: 750, arriving: arriving, readers: readers)
        #expect(middle.arriving.map(\.transfer) == ["2", "4"] && middle.readers.map(\.at) == [500, 700])
        #expect(Self.strip([], from: 750, to: 1000, readers: readers).readers.map(\.at) == [1000])
        let many = [CoverageStrip.Reader](repeating: readers[0], count: 5000)
        #expect(Self.strip([], readers: many).readers.count == CoverageStrip.mostMarks)
    }

    @Test(
        arguments: [
            ([100, 100, 0, 0], 4, [100, 100, 0, 0]), ([100, 100, 0, 0], 2, [100, 0]),
            ([100, 0, 0, 0], 2, [50, 0]), ([0, 1, 0, 0], 1, [1]), ([100, 99, 100], 1, [99]), ([], 4, []),
            ([50], 10, [50]),
        ] as [([UInt8], Int, [Int])])
    func aCellOfSeveralSegmentsHasTheirAverage(segments: [UInt8], count: Int, cells: [Int]) {
        let strip = CoverageStrip(
            name: "1080p", segments: segments, in: .init(count: count), .init())
        #expect(strip.cells == cells && strip.unit == .segments && strip.length == Int64(segments.count))
        #expect(strip.unexamined == nil)
        let part = CoverageStrip(
            name: "1080p", segments: segments, unexamined: 7, in: .init(count: count), .init())
        #expect(part.cells == cells && part.unexamined == 7)
    }

    @Test func numbersAtTheirLimitsDoNotTrap() {
        let strip = Self.strip([0..<Int64.max], length: .max, from: .max, to: .min, count: .max)
        #expect(strip.cells.isEmpty)
        #expect(Self.strip([0..<Int64.max], length: .max, count: 3).cells == [100, 100, 100])
        #expect(Self.strip([5..<9], length: .min).cells.isEmpty)
    }
}
