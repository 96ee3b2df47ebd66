// no traps: times are not negative here, and lengths are constants

/// A length of time that the history covers, in periods of equal length.
package enum HistorySpan: String, Sendable, CaseIterable, Codable {
    /// The last hour, in periods of 10 seconds.
    case hour
    /// The last 24 hours, in periods of 5 minutes.
    case day
    /// The last 31 days, in periods of 2 hours.
    case month

    /// The length of a period in seconds.
    package var periodSeconds: Int64 {
        switch self {
        case .hour: 10
        case .day: 300
        case .month: 7200
        }
    }

    /// The number of periods.
    package var periodCount: Int {
        switch self {
        case .hour: 360
        case .day: 288
        case .month: 372
        }
    }

    /// The period that contains a time.
    /// - Parameter time: seconds since 1970; times before that are in the first period.
    /// - Returns: its start, in seconds since 1970.
    func start(of time: Int64) -> Int64 {
        let time = max(0, time)
        return time - time % periodSeconds
    }
}
