import HTTPModel

/// Which parts of a resource are cached, drawn as a line of cells of equal length.
package struct CoverageBar: Sendable, Equatable {
    package enum Cell: Sendable, Equatable {
        case empty, partial, full
    }

    package let cells: [Cell]

    /// - Parameters:
    ///   - present: the cached bytes, as half-open ranges in order that do not touch.
    ///   - length: the length of the resource in bytes.
    ///   - width: the number of cells; fewer if the resource has fewer bytes.
    package init(present: [Range<Int64>], length: Int64, width: Int) {
        let count = max(0, min(Int64(width), length))
        var cells: [Cell] = []
        var next = present[...]
        for cell in stride(from: 0, to: count, by: 1) {
            // Scales quotient and remainder separately, because length times width may overflow.
            // no trap: `count` is a terminal's width and not 0, and no cell is beyond it
            let bounds = [cell, cell + 1].map { length / count * $0 + length % count * $0 / count }
            while let range = next.first, range.upperBound <= bounds[0] { next.removeFirst() }
            var covered: Int64 = 0
            for range in next {
                guard range.lowerBound < bounds[1] else { break }
                covered +|= min(range.upperBound, bounds[1]) -| max(range.lowerBound, bounds[0])
            }
            cells.append(covered == 0 ? .empty : covered == bounds[1] -| bounds[0] ? .full : .partial)
        }
        self.cells = cells
    }

    /// - Parameter isUnicode: whether to draw block characters instead of ASCII.
    package func text(isUnicode: Bool) -> String {
        cells.map { cell in
            switch cell {
            case .full: isUnicode ? "█" : "#"
            case .partial: isUnicode ? "▒" : "+"
            case .empty: isUnicode ? "░" : "."
            }
        }.joined()
    }
}
