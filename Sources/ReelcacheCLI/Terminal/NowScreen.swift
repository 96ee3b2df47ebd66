import Activity
import CachePolicy
import Downloads
import HTTPModel

/// What happens now, as a full screen: plays, transfers from origins, and downloads.
package struct NowScreen: Sendable {
    /// What is shown.
    package struct Content: Sendable {
        package var plays: [PlayReport] = []
        package var transfers: [TransferReport] = []
        package var downloads: [Download] = []
        /// How many more there are.
        package var hidden = (plays: 0, transfers: 0, downloads: 0)
        /// The bytes of the cache, and its limit; nil before the proxy has told anything.
        package var cache: (size: Int64, limit: Int64)?
        /// The share of bytes that came from the cache, 0 to 1; nil before the first.
        package var hitRatio: Double?
        /// Why this is old; nil while it is current.
        package var trouble: String?

        package init() {}
    }

    package var width: Int
    package var height: Int
    package var isUnicode: Bool
    /// Masks secrets in URLs; nil to mask nothing.
    package var mask: URLMask?

    package init(width: Int, height: Int, isUnicode: Bool, mask: URLMask? = nil) {
        (self.width, self.height, self.isUnicode, self.mask) = (width, height, isUnicode, mask)
    }

    /// The lines from the top of the screen to its bottom. None is wider than the screen.
    package func lines(_ content: Content, _ list: NowList) -> [ScreenLine] {
        let room = max(0, height - 2)
        var body = list.mode == .help ? Self.help : sections(content, list, room)
        if content.trouble != nil, list.mode != .help { body = body.map(Self.old) }
        body = Array(body.prefix(room))
        body += Array(repeating: ScreenLine(""), count: room - body.count)
        let lines = [ScreenLine(summary(content), .heading)] + body + [footer(content, list)]
        return lines.prefix(max(0, height)).map {
            ScreenLine($0.text.cut(toColumns: width, isUnicode: isUnicode), $0.style)
        }
    }

    /// A line that is no longer known to be true.
    private static func old(_ line: ScreenLine) -> ScreenLine {
        ScreenLine(line.text, line.style == .selected ? .selected : .faint)
    }

    // MARK: The first line and the last

    private func summary(_ content: Content) -> String {
        let toPlayers = content.plays.reduce(0) { $0 +| ($1.rate ?? 0) }
        let fromOrigins = content.transfers.reduce(0) { $0 +| ($1.rate ?? 0) }
        guard let cache = content.cache else { return "reelcache" }
        let parts = [
            "reelcache", "\(ByteSize(bytes: cache.size)) of \(ByteSize(bytes: cache.limit))",
            content.hitRatio.map { "\(Int(saturating: ($0 * 100).rounded())) % from the cache" },
            "\(ProgressText.rate(toPlayers)) to players", "\(ProgressText.rate(fromOrigins)) from origins",
        ].compactMap { $0 }
        return Self.joined(parts, by: "   ", upTo: width)
    }

    private func footer(_ content: Content, _ list: NowList) -> ScreenLine {
        if case .cancelling(let id) = list.mode, let download = content.downloads.first(where: { $0.id == id }) {
            let question = "? (y/n)"
            let name = "cancel \(shown(download.name))".cut(
                toColumns: max(0, width - question.columns), isUnicode: isUnicode)
            return ScreenLine(name + question, .warning)
        }
        let news = [list.remark, content.trouble].compactMap { $0.map { shown($0.printable) } }
        if !news.isEmpty { return ScreenLine(news.joined(separator: "; "), content.trouble == nil ? .plain : .warning) }
        return ScreenLine(
            Self.joined(
                [
                    "q quit", "? help", isUnicode ? "↑↓ select" : "j/k select", "p pause", "r resume", "c cancel",
                    "P pin", "u unpin",
                ],
                by: "  ", upTo: width), .faint)
    }

    /// As many of the parts as fit, the first ones.
    private static func joined(_ parts: [String], by gap: String, upTo width: Int) -> String {
        parts.reduce("") { line, part in
            let longer = line.isEmpty ? part : line + gap + part
            return line.isEmpty || longer.columns <= width ? longer : line
        }
    }

    /// Masks before cutting, because the cut may remove the name by which a secret is recognized.
    private func shown(_ text: String) -> String { mask?.masked(text) ?? text }

    private static let help = [
        ScreenLine("Keys", .heading), ScreenLine("  up, down, k, j    select"),
        ScreenLine("  page up, down     select ten further up or down"),
        ScreenLine("  home, end, g, G   select the first or the last"),
        ScreenLine("  escape            select nothing"),
        ScreenLine("  p, r              pause or resume the selected download"),
        ScreenLine("  c                 cancel the selected download, after a question"),
        ScreenLine("  P, u              pin or unpin what is selected"),
        ScreenLine("  ?, h              show these keys; any key goes back to the lists"),
        ScreenLine("  Ctrl-L            draw the screen again"),
        ScreenLine("  Ctrl-Z            back to the shell, until fg"), ScreenLine("  q, Ctrl-C         quit"),
    ]

    // MARK: The lists

    /// A list with its heading.
    private struct Section {
        let heading: String
        let rows: [String]
        let entries: [NowList.Entry]

        func has(_ entry: NowList.Entry?) -> Bool { entry.map(entries.contains) ?? false }
    }

    private func sections(_ content: Content, _ list: NowList, _ room: Int) -> [ScreenLine] {
        let sections = [plays(content), transfers(content), downloads(content)].filter { !$0.rows.isEmpty }
        guard !sections.isEmpty else {
            let text = "Nothing is being played, fetched or downloaded."
            return [ScreenLine(""), ScreenLine(content.cache == nil ? "Connecting to the proxy." : text, .faint)]
        }
        let shown = Self.fitting(sections, room, list.selected)
        let hasGaps = room >= Self.leastHeight * shown.count - 1
        let rows = room - shown.count - (hasGaps ? shown.count - 1 : 0)
        let parts = zip(shown, Self.shares(of: max(1, rows), shown.map(\.rows.count))).map {
            lines($0, $1, list.selected)
        }
        // A row matters more than its heading.
        return parts.joined(separator: hasGaps ? [ScreenLine("")] : []).suffix(room)
    }

    /// A heading, a row, and a free line below.
    private static let leastHeight = 3

    /// The sections that have room for a heading and a row. On a low screen, the others are out of sight until
    /// something in them is selected.
    private static func fitting(_ sections: [Section], _ room: Int, _ selected: NowList.Entry?) -> [Section] {
        var shown = sections
        while shown.count > 1, shown.count * (leastHeight - 1) > room {
            shown.remove(at: shown.last?.has(selected) == true ? shown.count - 2 : shown.count - 1)
        }
        return shown
    }

    private func lines(_ section: Section, _ share: Int, _ selected: NowList.Entry?) -> [ScreenLine] {
        let place = selected.flatMap { section.entries.firstIndex(of: $0) } ?? 0
        // What is selected is in sight, as far down as possible.
        let start = max(0, min(place - share + 1, section.rows.count - share))
        let end = min(section.rows.count, start + max(0, share))
        let mark = isUnicode ? "▸ " : "> "
        return [ScreenLine("  " + section.heading, .heading)]
            + (start..<max(start, end)).map { index in
                let isSelected = section.entries[index] == selected
                return ScreenLine((isSelected ? mark : "  ") + section.rows[index], isSelected ? .selected : .plain)
            }
    }

    /// How many rows each list gets: none gets more than it needs, and a short one leaves its rest to the others.
    package static func shares(of room: Int, _ needs: [Int]) -> [Int] {
        var (shares, room) = (Array(repeating: 0, count: needs.count), max(0, room))
        while room > 0 {
            let open = needs.indices.filter { shares[$0] < needs[$0] }
            guard !open.isEmpty else { break }
            let share = max(1, room / open.count)
            for index in open {
                let more = min(share, needs[index] - shares[index], room)
                shares[index] += more
                room -= more
            }
        }
        return shares
    }

    /// The rank of the column AT: on a narrow screen, the name matters more.
    private var placeRank: Int { width < Self.narrow ? 1 : 0 }
    private static let narrow = 30

    private func table(_ columns: [TerminalTable.Column], _ name: String, _ hidden: Int, _ rows: [TerminalTable.Row])
        -> (heading: String, rows: [String])
    {
        let heading = "\(name) (\(rows.count + hidden))"
        let lines = TerminalTable(width: max(0, width - 2), isUnicode: isUnicode, mask: mask).lines(
            columns, heading, rows)
        return (lines.first ?? heading, Array(lines.dropFirst()))
    }

    private func plays(_ content: Content) -> Section {
        let rows = content.plays.map { play in
            TerminalTable.Row(
                [
                    play.state.rawValue, play.place, play.rate.map(ProgressText.rate) ?? "", play.cachedShare,
                    play.player.printable,
                ], text: play.title)
        }
        let (heading, lines) = table(
            [
                .init("STATE", 8), .init("AT", -7, rank: placeRank), .init("RATE", -9, rank: 2),
                .init("CACHED", -6, rank: 4), .init("PLAYER", 10, rank: 3),
            ], "PLAYS", content.hidden.plays, rows)
        return Section(heading: heading, rows: lines, entries: content.plays.map { .play($0.id) })
    }

    private func transfers(_ content: Content) -> Section {
        let rows = content.transfers.map { transfer in
            TerminalTable.Row(
                [
                    transfer.phase.rawValue, transfer.place, transfer.rate.map(ProgressText.rate) ?? "",
                    transfer.reason, transfer.purposes.map(\.rawValue).joined(separator: "+"),
                ], url: transfer.urlText)
        }
        let (heading, lines) = table(
            [
                .init("PHASE", 10), .init("AT", -5, rank: placeRank), .init("RATE", -9, rank: 2),
                .init("REASON", 10, rank: 4), .init("FOR", 8, rank: 3),
            ], "TRANSFERS", content.hidden.transfers, rows)
        return Section(heading: heading, rows: lines, entries: content.transfers.map { .transfer($0.id) })
    }

    private func downloads(_ content: Content) -> Section {
        let rows = content.downloads.map { download in
            TerminalTable.Row(
                [
                    download.state.rawValue, download.percent.map { "\($0) %" } ?? "", bar(download),
                    download.bytesPerSecond.map(ProgressText.rate) ?? "", download.eta.map(ProgressText.time) ?? "",
                ], text: download.name)
        }
        let (heading, lines) = table(
            [
                .init("STATE", 11), .init("AT", -5, rank: placeRank), .init("", Self.barWidth, rank: 4),
                .init("RATE", -9, rank: 2), .init("LEFT", -7, rank: 3),
            ], "DOWNLOADS", content.hidden.downloads, rows)
        return Section(heading: heading, rows: lines, entries: content.downloads.map { .download($0.id) })
    }

    private static let barWidth = 10

    private func bar(_ download: Download) -> String {
        guard let percent = download.percent else { return "" }
        let done = Int64(max(0, min(100, percent)))
        // no trap: compared with 0
        return CoverageBar(present: done > 0 ? [0..<done] : [], length: 100, width: Self.barWidth).text(
            isUnicode: isUnicode)
    }
}

extension PlayReport {
    /// `37 %`, or `12/300` for a presentation.
    fileprivate var place: String {
        if let segment = segments.first { return "\(segment.number)/\(segment.count)" }
        guard let position, let length else { return "" }
        return "\(Download.percent(position, of: length)) %"
    }

    /// How much of what was sent came from the cache.
    fileprivate var cachedShare: String {
        let sent = bytesFromCache +| bytesFromOrigin
        return sent > 0 ? "\(Download.percent(bytesFromCache, of: sent)) %" : ""
    }
}

extension TransferReport {
    fileprivate var place: String {
        guard let to, to > from else { return received > 0 ? ByteSize(bytes: received).description : "" }
        return "\(Download.percent(received, of: to -| from)) %"
    }
}
