import ControlAPI
import Downloads
import Reelcache
import Upstream

/// An event of downloads, as the proxy reports it.
package enum DownloadNews: Sendable, Equatable {
    case download(Download)
    case summary(DownloadTotals)
    /// The download was dropped from the history before its end was reported, so its outcome is unknown here.
    case removed(Int64)
}

/// The operations of commands on downloads. All of them block and throw `ControlError`.
extension RunningProxy {
    /// - Parameter limit: of the list; the summary is of all downloads.
    package func downloads(limit: Int? = nil) throws -> DownloadListing {
        let page = try client.call(\.downloads, [.limit: limit.map { "\($0)" }])
        return DownloadListing(downloads: page.downloads, summary: page.summary)
    }

    /// All known downloads, each once: those that have not ended in their order, then the others, newest first.
    /// - Parameter limit: of each of both.
    package func allDownloads(limit: Int? = nil) throws -> DownloadListing {
        var listing = try downloads(limit: limit)
        let known = Set(listing.downloads.map(\.id))
        listing.downloads += try history(limit: limit).filter { !known.contains($0.id) }
        return listing
    }

    /// Orders as many downloads per request as fit, all or none of them: ten thousand, unless their URLs are very
    /// long.
    package func add(_ orders: [DownloadOrder]) throws -> [Download] {
        try Self.requests(of: orders).flatMap {
            try client.call(\.addDownloads, body: DownloadOrders($0)).downloads
        }
    }

    /// Changes up to two thousand downloads per request, in order.
    package func change(_ selection: DownloadSelection, _ change: DownloadChange) throws -> [Download] {
        let selections: [ControlClient.Query] =
            switch selection {
            case .all: [[.all: "true"]]
            case .ids(let ids): Self.groups(of: ids).map { [.id: Self.text($0)] }
            case .possible(let ids): Self.groups(of: ids).map { [.id: Self.text($0), .all: "true"] }
            }
        return try selections.flatMap { try client.call(\.changeDownloads, $0, body: change).downloads }
    }

    /// Changes the settings of all downloads together, until the process that owns the cache ends.
    package func set(_ settings: DownloadSettings) throws -> DownloadTotals {
        try client.call(\.changeDownloadSettings, body: DownloadSettingsChange(to: settings))
    }

    /// The ended downloads, newest first.
    package func history(limit: Int? = nil, category: String? = nil, state: Download.State? = nil) throws -> [Download]
    {
        try client.call(
            \.downloadHistory, [.limit: limit.map { "\($0)" }, .category: category, .state: state?.rawValue]
        ).downloads
    }

    /// - Returns: the number of dropped entries.
    package func clearHistory() throws -> Int { try client.call(\.clearDownloadHistory).removed }

    // MARK: Events

    /// Reports the state of downloads, including ended ones, then their summary, and from then on all changes.
    /// Blocks until `report` or `isWanted` returns false.
    /// - Parameters:
    ///   - ids: the downloads; empty for all that have not ended.
    ///   - isWanted: called at least four times a second, even if nothing arrives.
    ///   - report: returns whether to continue.
    /// - Throws: the errors of `report`; `ControlError` if the proxy ends.
    package func watchDownloads(
        _ ids: [Int64], isWanted: @escaping () -> Bool, _ report: @escaping (DownloadNews) throws -> Bool
    ) throws {
        var audience = Audience(ids)
        try client.follow(client.request(\.downloadEvents, audience.query), isWanted: isWanted) { event in
            for news in try audience.news(event, from: client) {
                guard try report(news) else { return false }
            }
            return true
        }
    }

    /// Selects and decodes the events of certain downloads.
    private struct Audience {
        private let ids: Set<Int64>
        private let isNamed: Bool
        /// The downloads not reported yet, if the request does not name them.
        private var missing: Set<Int64>

        init(_ ids: [Int64]) {
            self.ids = Set(ids)
            // With too many IDs to name, the request is for all downloads.
            isNamed = ids.count <= RunningProxy.mostNamed
            missing = isNamed ? [] : self.ids
        }

        var query: ControlClient.Query {
            ids.isEmpty ? [:] : isNamed ? [.id: RunningProxy.text(ids.sorted())] : [.ended: "true"]
        }

        mutating func news(_ event: EventStream.Event, from client: ControlClient) throws -> [DownloadNews] {
            let path = Endpoints.all.downloadEvents.traits.path
            switch event.name {
            case "download":
                let report = try client.decode(Download.self, from: event.data, of: path)
                missing.remove(report.id)
                return ids.isEmpty || ids.contains(report.id) ? [.download(report)] : []
            case "removed":
                let id = try client.decode(RemovedDownload.self, from: event.data, of: path).id
                return ids.isEmpty || ids.contains(id) ? [.removed(id)] : []
            case "summary":
                // All existing downloads are reported before the first summary.
                defer { missing = [] }
                let summary = try client.decode(DownloadTotals.self, from: event.data, of: path)
                return missing.sorted().map(DownloadNews.removed) + [.summary(summary)]
            default: return []
            }
        }
    }

    // MARK: Requests

    /// Half of what a proxy accepts at a time.
    private static let requestBytes = 8 << 20
    /// This many IDs of downloads fit into the target of a request.
    private static let mostNamed = 2000

    private static func requests(of orders: [DownloadOrder]) -> [ArraySlice<DownloadOrder>] {
        var (requests, first, bytes): ([ArraySlice<DownloadOrder>], Int, Int) = ([], 0, 0)
        for (index, order) in orders.enumerated() {
            // Little of it is escaped; everything but text takes less than 200 bytes.
            let size = 200 + 2 * (order.url.absolute.utf8.count + (order.category?.utf8.count ?? 0))
            if bytes + size > requestBytes && index > first {
                requests.append(orders[first..<index])
                (first, bytes) = (index, 0)
            }
            bytes += size
        }
        if first < orders.count { requests.append(orders[first...]) }
        return requests
    }

    private static func groups(of ids: [Int64]) -> [ArraySlice<Int64>] {
        stride(from: 0, to: ids.count, by: mostNamed).map { ids[$0..<min($0 + mostNamed, ids.count)] }
    }

    private static func text(_ ids: some Sequence<Int64>) -> String { ids.map(String.init).joined(separator: ",") }
}
