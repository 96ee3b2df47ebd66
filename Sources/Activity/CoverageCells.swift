import HTTPModel

/// A window of something that is cached in part, as cells of equal length.
package struct CoverageCells: Sendable, Equatable {
    /// A cell's bounds, and how much of it is cached.
    package struct Cell: Sendable, Equatable {
        package let range: Range<Int64>
        package let cached: Int64

        package var length: Int64 { range.upperBound -| range.lowerBound }

        /// 0 only if nothing of it is cached, and 100 only if all of it is.
        package var percent: Int {
            if cached <= 0 { return 0 }
            if cached >= length { return 100 }
            return min(99, max(1, Int(saturating: Double(cached) / Double(length) * 100)))
        }
    }

    package let cells: [Cell]

    /// - Parameters:
    ///   - present: what is cached, as half-open ranges in order that do not touch.
    ///   - window: what to show.
    ///   - count: the number of cells; fewer if the window is shorter.
    package init(present: [Range<Int64>], window: Range<Int64>, count: Int) {
        let length = max(0, window.upperBound -| window.lowerBound)
        let count = max(0, min(Int64(count), length))
        var cells: [Cell] = []
        cells.reserveCapacity(Int(count)) // no trap: at most an Int
        var next = present[...]
        for cell in stride(from: 0, to: count, by: 1) {
            // Scales quotient and remainder separately, because length times count may overflow.
            // no trap: no cell is beyond `count`
            let bounds = [cell, cell + 1].map {
                // no trap: `count` is not 0, and nothing is beyond it
                window.lowerBound +| (length / count * $0 + length % count * $0 / count)
            }
            while let range = next.first, range.upperBound <= bounds[0] { next.removeFirst() }
            var covered: Int64 = 0
            for range in next {
                guard range.lowerBound < bounds[1] else { break }
                covered +|= min(range.upperBound, bounds[1]) -| max(range.lowerBound, bounds[0])
            }
            guard let range = Range(from: bounds[0], upTo: bounds[1]) else { break }
            cells.append(Cell(range: range, cached: covered))
        }
        self.cells = cells
    }
}
