import CachePolicy
import HTTPModel

/// How much of a resource is cached, what of it is arriving, and where players read it. A presentation has a strip for
/// each rendition.
package struct CoverageReport: Codable, Sendable, Equatable {
    package var url: String
    package var strips: [CoverageStrip]

    package init(url: String, strips: [CoverageStrip]) { (self.url, self.strips) = (url, strips) }
}

/// A window of a resource or of a rendition, as cells of equal length. Places are bytes, or segments of a rendition,
/// counted from 0.
package struct CoverageStrip: Codable, Sendable, Equatable {
    package enum Unit: String, Codable, Sendable { case bytes, segments }

    /// Something that is arriving.
    package struct Arrival: Codable, Sendable, Equatable {
        /// The ID of the transfer.
        package var transfer: String
        /// What it fetches, half-open, and up to where that has arrived; without `to` while its end is unknown.
        package var from: Int64
        package var at: Int64
        package var to: Int64?

        package init(transfer: String, from: Int64, at: Int64, to: Int64?) {
            (self.transfer, self.from, self.at, self.to) = (transfer, from, at, to)
        }
    }

    /// Where a player reads.
    package struct Reader: Codable, Sendable, Equatable {
        /// The ID of the play.
        package var play: Int64
        package var player: String
        package var at: Int64

        package init(play: Int64, player: String, at: Int64) {
            (self.play, self.player, self.at) = (play, player, at)
        }
    }

    /// The rendition; nil for a resource by itself.
    package var name: String?
    package var unit: Unit
    /// Of all of it, as far as it was examined.
    package var length: Int64
    /// How many more segments there are, of which nobody knows what is cached; nil for none.
    package var unexamined: Int64?
    /// The window, half-open.
    package var from: Int64
    package var to: Int64
    /// The length of a chunk, the smallest unit that is cached; nil for segments.
    package var chunkSize: Int64?
    /// How much of each cell is cached, from 0 (nothing) to 100 (all of it).
    package var cells: [Int]
    package var arriving: [Arrival]
    package var readers: [Reader]

    /// What is shown besides the cells.
    package struct Marks {
        var arriving: [Arrival]
        var readers: [Reader]

        package init(arriving: [Arrival] = [], readers: [Reader] = []) {
            (self.arriving, self.readers) = (arriving, readers)
        }
    }

    /// The most arrivals and readers of a strip.
    package static let mostMarks = 100
}

extension CoverageStrip {
    /// What to show: a window, clamped to what there is, in a number of cells.
    package struct Window: Sendable {
        package var from: Int64?
        package var to: Int64?
        package var count: Int

        package init(from: Int64? = nil, to: Int64? = nil, count: Int) {
            (self.from, self.to, self.count) = (from, to, count)
        }

        fileprivate func range(of length: Int64) -> Range<Int64> {
            let length = max(0, length), from = min(max(0, from ?? 0), length)
            return from..<min(max(from, to ?? length), length) // no trap: `from` is at most either
        }
    }

    /// - Parameter present: what is cached, as half-open ranges in order that do not touch.
    package init(
        name: String? = nil, unit: Unit, present: [Range<Int64>], length: Int64, chunkSize: Int64? = nil,
        in window: Window, _ marks: Marks
    ) {
        let range = window.range(of: length)
        self.init(
            name: name, unit: unit, length: length, range, chunkSize: chunkSize,
            cells: CoverageCells(present: present, window: range, count: window.count).cells.map(\.percent),
            marks)
    }

    /// - Parameters:
    ///   - cached: how much of each segment is cached, in percent. A cell with several segments has their average.
    ///   - unexamined: how many more segments there are.
    package init(
        name: String, segments cached: [UInt8], unexamined: Int = 0, in window: Window, _ marks: Marks
    ) {
        let length = Int64(cached.count), range = window.range(of: length)
        let cells = CoverageCells(present: [], window: range, count: window.count).cells.map { cell in
            // no trap: a cell lies within the list
            Self.percent(of: cached[Int(cell.range.lowerBound)..<Int(cell.range.upperBound)])
        }
        self.init(
            name: name, unit: .segments, length: length, range, chunkSize: nil, cells: cells, marks)
        if unexamined > 0 { self.unexamined = Int64(unexamined) }
    }

    private init(
        name: String?, unit: Unit, length: Int64, _ window: Range<Int64>, chunkSize: Int64?, cells: [Int],
        _ marks: Marks
    ) {
        (self.name, self.unit, self.length, self.chunkSize) = (name, unit, length, chunkSize)
        (from, to, self.cells) = (window.lowerBound, window.upperBound, cells)
        let arriving = marks.arriving.filter { $0.from < window.upperBound && $0.to ?? .max > window.lowerBound }
        self.arriving = Array(arriving.prefix(Self.mostMarks))
        // Who has read everything stands at the end.
        let readers = marks.readers.filter { window.contains($0.at) || $0.at == length && window.upperBound == length }
        self.readers = Array(readers.prefix(Self.mostMarks))
    }

    /// The average, 0 only if all are 0, and 100 only if all are 100.
    private static func percent(of parts: ArraySlice<UInt8>) -> Int {
        guard !parts.isEmpty, parts.contains(where: { $0 > 0 }) else { return 0 }
        if parts.allSatisfy({ $0 >= 100 }) { return 100 }
        return min(99, max(1, parts.reduce(0) { $0 + Int($1) } / parts.count))
    }
}
