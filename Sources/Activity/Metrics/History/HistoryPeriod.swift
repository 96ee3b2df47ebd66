/// What was counted within one period.
package struct HistoryPeriod: Sendable, Equatable {
    /// Seconds since 1970; a multiple of the period's length.
    package let start: Int64
    /// How much of the period is counted, in milliseconds: less than its length if the process did not run all the
    /// time, or if the period is not over.
    package var milliseconds: Int64 = 0
    package var counts = HistoryCounts()
    /// The disk space that the cache took at the end, and its limit, in bytes.
    package var size: Int64 = 0
    package var limit: Int64 = 0

    package init(start: Int64) { self.start = start }
}

/// What was counted since the sample before, and how things are now.
package struct HistorySample: Sendable {
    /// Seconds since 1970.
    package var time: Int64
    /// Milliseconds since the sample before.
    package var elapsed: Int64
    /// Counts since the process started.
    package var totals: HistoryCounts
    /// Bytes: the disk space that the cache takes, and its limit.
    package var size, limit: Int64

    package init(time: Int64, elapsed: Int64, totals: HistoryCounts, size: Int64, limit: Int64) {
        (self.time, self.elapsed, self.totals, self.size, self.limit) = (time, elapsed, totals, size, limit)
    }
}
