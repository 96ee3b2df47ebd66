import CachePolicy

// no traps: numbers are widths of columns, and of texts in memory

/// Rows in columns, the last of which is a URL or a name. On a terminal each line fits the width: the least important
/// columns are left out, then URLs are cut in the middle. In a pipe everything is complete and exact.
package struct TerminalTable: Sendable {
    package struct Column: Sendable {
        let name: String
        /// The least width; negative for numbers, which are aligned to the right. It grows with its content.
        let width: Int
        /// The highest rank is left out first; 0 is never left out.
        let rank: Int

        package init(_ name: String, _ width: Int, rank: Int = 0) {
            (self.name, self.width, self.rank) = (name, width, rank)
        }
    }

    package struct Row: Sendable {
        /// What stands in the last column.
        enum Last: Sendable {
            case url(String)
            /// A text; what looks like an encoded character in it is none.
            case text(String)
        }

        let cells: [String]
        let last: Last
        /// Further lines below the row.
        let below: String?

        /// - Parameter url: the URL in full; drawing masks and cuts it.
        package init(_ cells: [String], url: String, below: String? = nil) {
            (self.cells, self.last, self.below) = (cells, .url(url), below)
        }

        /// - Parameter text: drawing masks and cuts it.
        package init(_ cells: [String], text: String, below: String? = nil) {
            (self.cells, self.last, self.below) = (cells, .text(text), below)
        }
    }

    private let width: Int?
    private let isUnicode: Bool
    private let mask: URLMask?
    private static let gap = 2
    /// The share of the longest URL that should be visible.
    private static let leastURL = 24

    /// - Parameters:
    ///   - width: columns of the terminal; nil for a pipe.
    ///   - mask: masks secrets in URLs; nil to mask nothing.
    package init(width: Int?, isUnicode: Bool, mask: URLMask? = nil) {
        (self.width, self.isUnicode, self.mask) = (width, isUnicode, mask)
    }

    package func lines(_ columns: [Column], _ last: String, _ rows: [Row]) -> [String] {
        guard !rows.isEmpty else { return [] }
        let urls = rows.map { shown($0.last) }
        let widths = columns.enumerated().map { index, column in
            let widest = rows.reduce(max(abs(column.width), column.name.columns)) { max($0, $1.cells[index].columns) }
            return column.width < 0 ? -widest : widest
        }
        let kept = fitting(columns, widths, url: urls.reduce(last.columns) { max($0, $1.columns) })
        func line(_ cells: [String], _ url: String) -> String {
            let before = kept.reduce("") {
                $0 + cells[$1].padded(toColumns: widths[$1]) + String(repeating: " ", count: Self.gap)
            }
            guard let width else { return before + url }
            return (before + url.cutInsideURL(toColumns: max(0, width - before.columns), isUnicode: isUnicode)).cut(
                toColumns: width, isUnicode: isUnicode)
        }
        let indent = String(repeating: " ", count: kept.first.map { abs(widths[$0]) + Self.gap } ?? Self.gap)
        func below(_ text: String) -> [String] {
            let text = mask?.masked(text) ?? text
            return width.map { text.folded(toColumns: max(1, $0 - indent.columns)) } ?? [text]
        }
        return [line(columns.map(\.name), last)]
            + zip(rows, urls).flatMap { row, url in
                [line(row.cells, url)] + (row.below.map(below) ?? []).map { indent + $0 }
            }
    }

    /// The indices of the columns that fit.
    private func fitting(_ columns: [Column], _ widths: [Int], url: Int) -> [Int] {
        var kept = Array(columns.indices)
        guard let width else { return kept }
        let wanted = min(url, Self.leastURL)
        while kept.reduce(wanted, { $0 + abs(widths[$1]) + Self.gap }) > width,
            let least = kept.filter({ columns[$0].rank > 0 }).max(by: { columns[$0].rank < columns[$1].rank })
        {
            kept.removeAll { $0 == least }
        }
        return kept
    }

    /// Masks before cutting, because the cut may remove the name by which a secret is recognized.
    private func shown(_ last: Row.Last) -> String {
        switch last {
        case .url(let url):
            let url = mask?.masked(url) ?? url
            return width != nil && isUnicode ? url.readableURL : url.printable
        case .text(let text): return (mask?.masked(text) ?? text).printable
        }
    }
}
