// no traps: times are not negative here, and spans are constants

/// The answer to `GET /api/v1/history`: what was counted over a span of time.
package struct HistoryReport: Codable, Sendable, Equatable {
    /// Bytes sent to players.
    package struct Bytes: Codable, Sendable, Equatable {
        package var fromCache, fromUpstream: UInt64
    }

    /// A period that was counted.
    package struct Period: Codable, Sendable, Equatable {
        /// Seconds since 1970.
        package var start: Int64
        /// How many seconds of the period are counted.
        package var seconds: Double
        package var requests, hits: UInt64
        package var bytes: Bytes
        /// Bytes received from origins.
        package var upstreamBytes: UInt64
        package var errors: UInt64
        /// Bytes: the disk space that the cache took at the end, and its limit.
        package var size, limit: Int64
        package var firstByteOfHits, firstByteOfMisses: StatsSnapshot.FirstByte
    }

    package var span: HistorySpan
    /// The length of a period in seconds.
    package var periodSeconds: Int64
    /// The span in seconds since 1970: the start of its first period, and now.
    package var from, to: Int64
    /// The periods that were counted, the oldest first. Missing ones are gaps.
    package var periods: [Period]

    package init(_ history: History, _ span: HistorySpan, now: Int64) {
        self.span = span
        periodSeconds = span.periodSeconds
        to = max(0, now)
        from = max(0, span.start(of: now) - span.periodSeconds * Int64(span.periodCount - 1))
        periods = history.periods(of: span, now: now).map(Period.init)
    }
}

extension HistoryReport.Period {
    fileprivate init(_ period: HistoryPeriod) {
        let counts = period.counts
        start = period.start
        seconds = Double(period.milliseconds) / 1000
        (requests, hits, errors) = (counts.requests, counts.hits, counts.errors)
        bytes = .init(fromCache: counts.fromCache, fromUpstream: counts.fromOrigins)
        upstreamBytes = counts.received
        (size, limit) = (period.size, period.limit)
        (firstByteOfHits, firstByteOfMisses) = (.init(counts.hitTimes), .init(counts.missTimes))
    }
}

extension StatsSnapshot.FirstByte {
    fileprivate init(_ times: HistoryTimes) {
        count = times.count
        (p50, p90, p99) = (times.milliseconds(0.5), times.milliseconds(0.9), times.milliseconds(0.99))
    }
}
