import Activity

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
        let window = 0..<max(0, length) // no trap: not below 0
        cells = CoverageCells(present: present, window: window, count: width).cells.map { cell in
            switch cell.percent {
            case 0: .empty
            case 100: .full
            default: .partial
            }
        }
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
