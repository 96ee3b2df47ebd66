import CachePolicy
import Downloads

/// Draws downloads on a terminal: a line for each that is running, and one for the total.
package struct DownloadScreen: Sendable {
    /// The available columns and rows.
    package var width: Int
    package var height: Int
    package var isUnicode: Bool
    /// Seconds since 1970.
    package var now: Int64
    /// Masks secrets in URLs; nil to mask nothing.
    package var mask: URLMask?

    package init(width: Int, height: Int, isUnicode: Bool, now: Int64, mask: URLMask? = nil) {
        (self.width, self.height, self.isUnicode, self.now, self.mask) = (width, height, isUnicode, now, mask)
    }

    /// - Parameter note: other work in progress, for a line of its own.
    package func lines(_ followed: FollowedDownloads, note: String? = nil) -> [String] {
        let active = followed.active
        let running = active.filter { $0.state == .downloading }
        let retried = active.filter { $0.state != .downloading }
        // The line of a single download makes the total redundant.
        let isAlone = followed.totals.count == 1 && running.count == 1
        let room = max(0, height - (isAlone ? 0 : 1) - (note == nil ? 0 : 1))
        let bars = running.prefix(room)
        let waits = retried.prefix(room - bars.count)
        var lines = Layout(self, bars.map { Cells($0, name: shown($0.name)) }).lines
        // Their ends say when the next attempt is.
        lines += waits.map {
            shown("\($0.name): \($0.attempt(now: now) ?? "")").cutInside(toColumns: width, isUnicode: isUnicode)
        }
        if let note { lines.append(shown(note)) }
        if !isAlone { lines.append(summary(followed.totals, hidden: running.count - bars.count)) }
        return lines.suffix(max(1, height)).map { $0.cut(toColumns: width, isUnicode: isUnicode) }
    }

    /// Masks before cutting, because the cut may remove the name by which a secret is recognized.
    private func shown(_ text: String) -> String { mask?.masked(text) ?? text }

    private func summary(_ totals: FollowedTotals, hidden: Int) -> String {
        let counts: [(Int, String)] = [
            (totals[.downloading], "downloading"), (totals[.waiting], "waiting"), (totals[.paused], "paused"),
            (totals[.failed], "failed"),
            (totals[.cancelled], "cancelled"),
        ]
        var parts = ["\(totals[.completed]) of \(totals.count) completed"]
        parts += counts.filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
        if hidden > 0 { parts.append("\(hidden) not shown") }
        var line = parts.joined(separator: ", ")
        if let total = totals.total { line += "; \(Download.percent(totals.bytes, of: total)) %" }
        line += ", \(Download.amount(totals.bytes, of: totals.total))"
        if totals.rate > 0 { line += ", \(ProgressText.rate(totals.rate))" }
        if let eta = totals.eta { line += ", \(ProgressText.time(eta)) left" }
        return line
    }
}

/// One download in columns.
private struct Cells {
    let name: String
    let bytes: Int64
    let total: Int64?
    let percent: String
    let amount: String
    let rate: String
    let eta: String

    init(_ report: Download, name: String) {
        (self.name, amount) = (name, report.amount)
        // Bars measure the same as percentages: bytes, or segments.
        let isCounted = report.total == nil && report.totalSegments != nil
        (bytes, total) = isCounted ? (report.segments ?? 0, report.totalSegments) : (report.bytes, report.total)
        percent = report.percent.map { "\($0) %" } ?? ""
        rate = report.bytesPerSecond.map(ProgressText.rate) ?? ""
        eta = report.eta.map(ProgressText.time) ?? ""
    }
}

/// Chooses the columns that fit a width: the least important are left out first.
private struct Layout {
    private let screen: DownloadScreen
    private let rows: [Cells]
    private var columns: [Column] = [.bar, .percent, .amount, .rate, .eta]
    private var nameWidth = 0
    private var barWidth = 0

    private enum Column {
        case bar, percent, amount, rate, eta

        /// Wide enough for almost all values, so that columns do not move.
        var width: Int {
            switch self {
            case .bar: Layout.smallestBar
            case .percent: 5
            case .amount: 18
            case .rate: 9
            case .eta: 7
            }
        }
    }

    private static let gap = 2
    private static let smallestBar = 8
    private static let widestBar = 40
    private static let smallestName = 16

    init(_ screen: DownloadScreen, _ rows: [Cells]) {
        (self.screen, self.rows) = (screen, rows)
        let longestName = rows.map(\.name.columns).max() ?? 0
        for column in [Column.amount, .bar, .rate, .eta, .percent] where rest < min(longestName, Self.smallestName) {
            columns.removeAll { $0 == column }
        }
        nameWidth = max(0, min(longestName, rest))
        guard columns.contains(.bar) else { return }
        // A long name and the bar share the remaining width.
        let spare = rest + Self.smallestBar
        nameWidth = min(longestName, max(Self.smallestName, spare / 2), rest)
        barWidth = min(Self.widestBar, max(Self.smallestBar, spare - nameWidth))
    }

    /// The columns that are left for the name.
    private var rest: Int { screen.width - columns.reduce(0) { $0 + $1.width + Self.gap } }

    var lines: [String] {
        rows.map { row in
            let name = row.name.cut(toColumns: nameWidth, isUnicode: screen.isUnicode).padded(toColumns: nameWidth)
            let line = columns.reduce(name) { $0 + String(repeating: " ", count: Self.gap) + text($1, row) }
            return String(line[..<(line.lastIndex { $0 != " " }.map(line.index(after:)) ?? line.startIndex)])
        }
    }

    private func text(_ column: Column, _ row: Cells) -> String {
        switch column {
        case .bar: bar(row)
        case .percent: row.percent.padded(toColumns: -column.width)
        case .amount: row.amount.padded(toColumns: -column.width)
        case .rate: row.rate.padded(toColumns: -column.width)
        case .eta: row.eta.padded(toColumns: -column.width)
        }
    }

    private func bar(_ row: Cells) -> String {
        guard let total = row.total, total > 0 else { return String(repeating: " ", count: barWidth) }
        let done = min(max(0, row.bytes), total)
        let bar = CoverageBar(present: done > 0 ? [0..<done] : [], length: total, width: barWidth) // no trap: compared
        return bar.text(isUnicode: screen.isUnicode).padded(toColumns: barWidth)
    }
}
