import CachePolicy
import Downloads
import Foundation
import HTTPModel

/// Subscriptions and their episodes as tables, cut to the width of a terminal, complete in a pipe.
package struct FeedTable {
    private let table: TerminalTable
    private let isCut: Bool
    private let isUnicode: Bool
    /// Seconds since 1970.
    private let now: Int64

    /// Columns of a title on a terminal.
    private static let title = 32
    /// The last to be left out: whoever wants URLs would else see none on a narrow terminal.
    private static let titleBesideURL = TerminalTable.Column("TITLE", 12, rank: 1)

    /// - Parameters:
    ///   - width: columns of the terminal; nil for no limit.
    ///   - mask: masks secrets in URLs; nil to mask nothing.
    package init(width: Int?, isUnicode: Bool, now: Int64, mask: URLMask? = nil) {
        table = TerminalTable(width: width, isUnicode: isUnicode, mask: mask)
        (isCut, self.isUnicode, self.now) = (width != nil, isUnicode, now)
    }

    /// Each subscription, with what is wrong below it.
    /// - Parameter isLong: whether URLs are listed besides titles, as they are in a pipe.
    package func list(_ feeds: [FeedSubscription], isLong: Bool = false) -> [String] {
        let isNamed = isCut && !isLong
        let rows = feeds.enumerated().map { index, feed in
            let cells = [
                "\(feed.ordered)", "\(feed.episodes)", feed.unfinished > 0 ? "\(feed.unfinished)" : "",
                feed.checked.map { TimeSpan.ago($0.seconds, now: now) } ?? "",
                feed.keep ?? "all", feed.category?.printable ?? "",
            ]
            let (number, fault) = (["\(index + 1)"], Self.fault(feed, now: now))
            return isNamed
                ? TerminalTable.Row(
                    number + cells, text: DisplayName(title: feed.title, url: feed.urlText).description, below: fault)
                : TerminalTable.Row(number + [cut(feed.title)] + cells, url: feed.urlText, below: fault)
        }
        let number = [TerminalTable.Column("#", -2)]
        let columns: [TerminalTable.Column] = [
            .init("ORDERED", -7, rank: 2), .init("OF", -4, rank: 3), .init("QUEUED", -6, rank: 4),
            .init("CHECKED", 11, rank: 5), .init("KEEP", 4, rank: 6), .init("CATEGORY", 8, rank: 7),
        ]
        return isNamed
            ? table.lines(number + columns, "TITLE", rows)
            : table.lines(number + [Self.titleBesideURL] + columns, "URL", rows)
    }

    /// What is wrong with a feed, and since when; nil if it could be read.
    /// - Parameter now: seconds since 1970.
    package static func fault(_ feed: FeedSubscription, now: Int64) -> String? {
        guard let message = feed.message else { return nil }
        let since = feed.brokenSince.map { "broken since \(DownloadTable.date($0.seconds)): " } ?? ""
        return since + message.printable
    }

    /// Each episode, with what is wrong with its download below it.
    /// - Parameter isLong: whether URLs are listed besides titles, as they are in a pipe.
    package func episodes(_ episodes: [FeedEpisode], isLong: Bool = false) -> [String] {
        let isNamed = isCut && !isLong
        let rows = episodes.map { episode in
            let
                cells = [
                    episode.state.rawValue.replacing("_", with: " ") + (episode.played == nil ? "" : ", played"),
                    episode.published.map { DownloadTable.date($0.seconds) } ?? "",
                    episode.bytes > 0 ? ByteSize(bytes: episode.bytes).description : "",
                ], below = episode.message?.printable
            let name = DisplayName(title: episode.title, url: episode.urlText).description
            return isNamed
                ? TerminalTable.Row(cells, text: name, below: below)
                : TerminalTable.Row(cells + [cut(episode.title)], url: episode.urlText, below: below)
        }
        let columns: [TerminalTable.Column] = [
            .init("STATE", 11), .init("DATE", 16, rank: 3), .init("SIZE", -9, rank: 2),
        ]
        return isNamed
            ? table.lines(columns, "TITLE", rows) : table.lines(columns + [Self.titleBesideURL], "URL", rows)
    }

    private func cut(_ title: String?) -> String {
        let title = (title ?? "").printable
        return isCut ? title.cut(toColumns: Self.title, isUnicode: isUnicode) : title
    }
}

extension FeedCheckResult {
    /// The outcome in one line.
    package var line: String {
        let name = (title ?? urlText).printable
        switch outcome {
        case .failed: return "\(urlText.printable): \(message?.printable ?? "it cannot be read")"
        case .unchanged: return "\(name): no new episodes"
        case .read:
            let skipped = (skippedItems ?? []).count
            let notes = [
                skipped > 0 ? "\(skipped) item\(skipped == 1 ? "" : "s") without media, which feeds show names" : nil,
                message?.printable,
            ].compactMap { $0 }
            return (["\(name): \(queued)"] + notes).joined(separator: "; ")
        }
    }

    private var queued: String {
        guard new > 0 || !downloads.isEmpty else { return "no new episodes" }
        let which = new == 0 || new == episodes ? "\(episodes ?? 0)" : "\(new) new"
        return "\(downloads.count) of \(which) episodes queued"
    }
}
