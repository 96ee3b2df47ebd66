import Activity
import Downloads
import HTTPModel

/// The counters of a proxy as lines for people: what players got, what origins sent, what the cache takes.
package struct StatsText {
    private let stats: StatsSnapshot
    private let downloads: DownloadTotals
    private let baseURL: String
    private let width: Int?

    /// - Parameter width: columns of the terminal; nil for a pipe.
    package init(_ stats: StatsSnapshot, _ downloads: DownloadTotals, baseURL: String, width: Int? = nil) {
        (self.stats, self.downloads, self.baseURL, self.width) = (stats, downloads, baseURL, width)
    }

    /// The lines, without their ends.
    package var lines: [String] {
        proxy + requests + sent + firstBytes + origins + cache + tunnels + downloadLines + errors
    }

    private static let nameWidth = 12

    /// A part: its name stands before its first line. Long lines are folded.
    private func part(_ name: String, _ lines: [String?]) -> [String] {
        lines.compactMap(\.self).flatMap { line in
            width.map { line.folded(toColumns: $0 - Self.nameWidth) } ?? [line]
        }.enumerated().map { index, line in
            (index == 0 ? name : "").padded(toColumns: Self.nameWidth) + line
        }
    }

    // MARK: Parts

    private var proxy: [String] {
        let up = TimeSpan(seconds: Int64(saturating: stats.uptimeSeconds))
        let connections = Self.plural(UInt64(clamping: stats[\.connections]), "connection")
        return part("proxy", ["\(baseURL), version \(stats.version), up \(up), \(connections)"])
    }

    private var requests: [String] {
        let total = stats[\.requests]
        func share(_ count: UInt64, _ word: String) -> String {
            "\(count) \(word)" + (Self.percent(of: count, in: total).map { " (\($0))" } ?? "")
        }
        let further = [
            (stats[\.stale], "stale"), (stats[\.validated], "revalidated"),
            (stats[\.collapsed], "joined another's fetch"),
        ].filter { $0.0 > 0 }.map { "\($0) \($1)" }
        return part(
            "requests",
            [
                "\(total): "
                    + [
                        share(stats[\.hits], "hits"), share(stats[\.partialHits], "partial"),
                        share(stats[\.misses], "misses"), "\(stats[\.bypasses]) bypassed",
                    ].joined(separator: ", "), further.isEmpty ? nil : further.joined(separator: ", "),
            ])
    }

    private var sent: [String] {
        let (cached, fetched) = (stats[\.bytesFromCache], stats[\.bytesFromUpstream])
        let ratio = Self.percent(of: cached, in: cached +| fetched).map { " (\($0))" } ?? ""
        return part(
            "sent",
            [
                "\(Self.size(cached +| fetched)): \(Self.size(cached)) from the cache\(ratio), \(Self.size(fetched)) from origins"
            ])
    }

    /// A small table: how long players waited. Without room, it has the medians and counts alone.
    private var firstBytes: [String] {
        let isNarrow = width.map { $0 < Self.nameWidth + 4 * Self.timeWidth + 6 } ?? false
        func row(_ name: String, _ cells: [String]) -> String {
            let shown = isNarrow ? [cells[0], cells[3]] : cells
            return name.padded(toColumns: Self.nameWidth)
                + shown.map { $0.padded(toColumns: -Self.timeWidth) }.joined(separator: "  ")
        }
        func row(_ name: String, _ times: StatsSnapshot.FirstByte) -> String {
            row("  " + name, [times.p50, times.p90, times.p99].map { $0.map(Self.time) ?? "-" } + ["\(times.count)"])
        }
        return [
            row("first byte", ["median", "90 %", "99 %", "answers"]), row("hits", stats.firstByteOfHits),
            row("misses", stats.firstByteOfMisses),
        ]
    }

    private static let timeWidth = 7

    private var origins: [String] {
        let reasons = stats.reasons.filter { $0.value > 0 }.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
        let resumed = stats[\.resumedTransfers] > 0 ? ", \(stats[\.resumedTransfers]) resumed" : ""
        let (runs, links) = (stats[\.resolverRuns], stats[\.refreshedLinks])
        let located = [
            runs > 0 ? "\(Self.plural(runs, "run")) of resolvers" : nil,
            links > 0 ? "\(Self.plural(links, "expired link")) replaced" : nil,
        ].compactMap { $0 }
        return part(
            "origins",
            [
                "\(Self.size(stats[\.upstreamBytes])) received, \(stats[\.openFetches]) running\(resumed)",
                reasons.isEmpty
                    ? nil : "requests: " + reasons.map { "\($0.value) \($0.key)" }.joined(separator: ", "),
                located.isEmpty ? nil : located.joined(separator: ", "),
            ])
    }

    private var cache: [String] {
        let filled = Self.percent(of: UInt64(clamping: stats[\.size]), in: UInt64(clamping: stats[\.limit])) ?? "0 %"
        let evicted = "\(Self.size(stats[\.evictedBytes])) evicted in \(Self.plural(stats[\.evictedExtents], "extent"))"
        return part(
            "cache",
            [
                "\(Self.size(stats[\.size])) of \(Self.size(stats[\.limit])) (\(filled)), at least \(Self.size(stats[\.minFree])) of the disk stay free",
                stats[\.evictedExtents] > 0 ? evicted : nil,
                stats[\.droppedChunks] > 0 ? "\(Self.plural(stats[\.droppedChunks], "damaged chunk")) dropped" : nil,
            ])
    }

    private var tunnels: [String] {
        guard stats[\.tunnels] > 0 else { return [] }
        return part(
            "tunnels",
            ["\(stats[\.tunnels]), \(stats[\.openTunnels]) open, \(Self.size(stats[\.tunnelBytes])) through them"])
    }

    private var downloadLines: [String] {
        guard downloads.downloading > 0 || downloads.waiting > 0 || downloads.paused > 0 else { return [] }
        let rate = downloads.downloading > 0 ? " at \(Self.size(downloads.bytesPerSecond))/s" : ""
        let atMost = downloads.scheduledRate.map { "; the schedule allows \(Self.size($0))/s" } ?? ""
        return part(
            "downloads",
            [
                "\(downloads.downloading) running\(rate), \(downloads.waiting) waiting, \(downloads.paused) paused\(atMost)",
                downloads.hold?.printable, capLine,
            ])
    }

    /// How much of the caps is used up; nil without caps.
    private var capLine: String? {
        let caps = downloads.settings.caps
        guard !caps.isEmpty else { return nil }
        let usage = downloads.usage ?? DownloadTotals.Usage(today: 0, thisMonth: 0)
        let limits = caps.map(\.text).joined(separator: ", ")
        return "\(Self.size(usage.today)) fetched today, \(Self.size(usage.thisMonth)) this month, of \(limits)"
    }

    private var errors: [String] {
        guard !stats.errors.isEmpty else { return [] }
        let counts = stats.errors.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
        return part("errors", [counts.map { "\($0.value) \($0.key.printable)" }.joined(separator: ", ")])
    }

    // MARK: Words

    static func size(_ bytes: UInt64) -> String { size(Int64(clamping: bytes)) }
    static func size(_ bytes: Int64) -> String { ByteSize(bytes: bytes).description }

    /// nil if there is no whole.
    static func percent(of part: UInt64, in whole: UInt64) -> String? {
        whole == 0 ? nil : "\(Int(saturating: (Double(part) / Double(whole) * 100).rounded())) %"
    }

    private static func plural(_ count: UInt64, _ word: String) -> String { "\(count) \(word)\(count == 1 ? "" : "s")" }

    /// Two or three digits: `0.4 ms`, `45 ms`, `1.2 s`.
    private static func time(milliseconds: Double) -> String {
        func rounded(_ number: Double) -> String {
            number < 9.95
                ? String((number * 10).rounded() / 10) : String(Int(saturating: number.rounded()))
        }
        return milliseconds < 999.5 ? "\(rounded(milliseconds)) ms" : "\(rounded(milliseconds / 1000)) s"
    }
}
