import Activity
import Downloads
import HTTPModel

/// What a proxy did between two looks at its counters, as a line of a table.
package struct StatsRates {
    private let before: StatsSnapshot
    private let now: StatsSnapshot
    private let downloads: DownloadTotals

    /// - Parameter downloads: of the second look.
    package init(from before: StatsSnapshot, to now: StatsSnapshot, _ downloads: DownloadTotals) {
        (self.before, self.now, self.downloads) = (before, now, downloads)
    }

    private static let columns = [
        ("requests", 10), ("hit ratio", 9), ("from cache", 13), ("from origins", 13), ("received", 13), ("fetches", 7),
        ("downloads", 9), ("connections", 11), ("cache", 9),
    ]
    private static let gap = 2

    /// The names of the columns.
    /// - Parameter width: columns of the terminal: those of the table that do not fit are left out; nil for a pipe.
    package static func header(width: Int?) -> String { line(columns.map(\.0), width) }

    /// Rates per second, the share of the sent bytes that came from the cache, and how things are now.
    package func line(width: Int?) -> String {
        let cached = rate(\.bytesFromCache), fetched = rate(\.bytesFromUpstream)
        let ratio = StatsText.percent(of: cached.count, in: cached.count +| fetched.count) ?? "-"
        return Self.line(
            [
                requests, ratio, bytes(cached.perSecond), bytes(fetched.perSecond),
                bytes(rate(\.upstreamBytes).perSecond),
                "\(now[\.openFetches])", "\(downloads.downloading)", "\(now[\.connections])",
                StatsText.size(now[\.size]),
            ], width)
    }

    private var requests: String {
        let perSecond = rate(\.requests).perSecond
        let text = perSecond < 9.95 ? "\((perSecond * 10).rounded() / 10)" : "\(Int64(saturating: perSecond.rounded()))"
        return text + "/s"
    }

    private func bytes(_ perSecond: Double) -> String { StatsText.size(Int64(saturating: perSecond.rounded())) + "/s" }

    /// The growth of a counter. Another proxy, which began later, has counted from zero.
    private func rate(_ counter: KeyPath<ProxyMetrics, Counter>) -> (count: UInt64, perSecond: Double) {
        let isSame = now.uptimeSeconds >= before.uptimeSeconds
        let seconds = isSame ? now.uptimeSeconds - before.uptimeSeconds : now.uptimeSeconds
        let count = isSame ? now[counter] -| before[counter] : now[counter]
        return (count, seconds > 0 ? Double(count) / seconds : 0)
    }

    private static func line(_ cells: [String], _ width: Int?) -> String {
        let shown = columns.indices.prefix { last in
            columns[...last].reduce(-gap) { $0 + $1.1 + gap } <= width ?? .max // no trap: columns' widths
        }
        return shown.map { cells[$0].padded(toColumns: -columns[$0].1) }.joined(
            separator: String(repeating: " ", count: gap))
    }
}
