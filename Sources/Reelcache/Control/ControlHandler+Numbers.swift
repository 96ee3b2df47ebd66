import Activity
import CachePolicy
import ControlAPI
import Downloads
import EventIO
import HTTPModel
import HTTPTransport

/// Where the control interface reads counters.
struct ControlNumbers: Sendable {
    /// The current counters. Called on a loop: it must not block.
    let stats: @Sendable () -> StatsSnapshot
    /// The same with what `/metrics` has besides; likewise.
    let metrics: @Sendable () -> MetricsSnapshot
    /// The counters over a span of time.
    let history: @Sendable (HistorySpan) -> HistoryReport
    /// Counts what players play, on all loops, and calls back from one of them; with nil while the cache closes.
    let plays: @Sendable (@escaping @Sendable (Int?) -> Void) -> Void
}

extension ControlHandler {
    /// Answers with all numbers in a text form for Prometheus. Reads memory alone, so that it takes as long with a
    /// million resources.
    func metrics(_ exchange: Exchange) {
        let both = LoopBound((self, exchange), on: exchange.loop)
        numbers.plays { plays in both.post { $0.metrics($1, plays: plays) } }
    }

    private func metrics(_ exchange: Exchange, plays: Int?) {
        let format = ExpositionFormat(accept: exchange.request.combined("Accept"))
        let summary = downloads.summary
        var surroundings = MetricsSnapshot.Surroundings(
            errors: ErrorName.all,
            downloads: [
                ("waiting", summary.waiting), ("downloading", summary.downloading), ("paused", summary.paused),
            ], isOffline: policy.value.isOffline)
        surroundings.plays = plays
        surroundings.isHeld = summary.hold != nil
        surroundings.fetched = [
            ("day", summary.usage?.today ?? 0), ("month", summary.usage?.thisMonth ?? 0),
        ]
        surroundings.caps = DownloadCap.Period.allCases.compactMap { period in
            summary.settings.caps.filter { $0.period == period }.map(\.bytes).min().map { (period.rawValue, $0) }
        }
        let page = Exposition.bytes(numbers.metrics().families(surroundings), format)
        var response = Response(200, length: Int64(page.count))
        response.field("Content-Type", format.contentType)
        response.field("Cache-Control", "no-store")
        response.field("Vary", "Accept")
        exchange.respond(response, bytes: page)
    }
}

extension ControlHandler {
    /// The names under which errors are counted, and which `/metrics` lists from the start.
    enum ErrorName {
        /// Errors that are no failures of an origin: the table "Other errors" of docs/programs/http-api.md.
        static let others = [
            "refused", "bad-request", "request-timeout", "tunnel", "accept", "open-files", "disk-read", "disk-write",
            "directory-gone",
            "max-connections", "max-connections-per-client", "max-requests-per-client",
            "disk-sync", "store", "disk-file-missing", "index-damaged", "index-row", "access-log", "history",
        ]

        static let all = FailureKind.allCases.map(\.rawValue) + others
    }
}
