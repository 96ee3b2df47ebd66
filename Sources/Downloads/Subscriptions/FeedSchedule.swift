import Foundation

/// When a feed is checked. Times are in seconds; random numbers are between 0 and 1.
struct FeedSchedule {
    /// A feed's own lifetime, `Retry-After` and the back-off count up to a day.
    static let longest = 86_400.0
    /// After the first failure; doubled with each further one.
    static let firstRetry = 600.0
    /// Downloads of episodes are retried for a week.
    static let longestRetry = 7 * 86_400.0
    /// The greatest share by which a time is changed, so that feeds do not stay in step.
    static let jitter = 0.1
    /// After a start, checks that are due are spread over at most this.
    static let longestSpread = 60.0

    /// Seconds to the next check after one that succeeded.
    /// - Parameters:
    ///   - every: what the subscriber wants.
    ///   - lifetime: what the feed states; nil for nothing.
    static func delay(every: Int64, lifetime: Int64?, random: Double) -> Double {
        varied(max(Double(every), min(Double(lifetime ?? 0), longest)), random)
    }

    /// Seconds to the next check after one that failed.
    /// - Parameters:
    ///   - failures: checks in a row that failed, this one included.
    static func delay(afterFailures failures: Int, every: Int64, random: Double) -> Double {
        let backoff = firstRetry * pow(2, Double(min(max(failures, 1), 30) - 1))
        return varied(min(backoff, max(longest, Double(every))), random)
    }

    /// The time of the first check after a start.
    /// - Parameters:
    ///   - due: the time as it was saved.
    ///   - count: how many feeds there are.
    static func start(due: Double, every: Int64, count: Int, now: Double, random: Double) -> Double {
        let spread = min(longestSpread, Double(count) * 2) * random
        // The clock may have been wrong when the time was saved.
        let latest = now + max(longest, Double(every)) * (1 + jitter)
        return due > latest ? latest : max(due, now + spread)
    }

    /// What becomes of a failed download.
    enum Retry: Sendable {
        case due, later, never
    }

    /// When a failed download of an episode is retried: after ten minutes at least, each time after twice as long, and
    /// no longer than a week.
    /// - Parameters:
    ///   - first: when it failed first, in seconds since 1970.
    ///   - failed: when it failed last.
    static func retry(first: Int64, failed: Int64, now: Double) -> Retry {
        let tried = max(0, Double(failed) - Double(first))
        guard tried <= longestRetry else { return .never }
        return now - Double(failed) >= max(tried, firstRetry) ? .due : .later
    }

    /// The same of a download; nil if it has not failed.
    static func retry(_ report: Download, now: Double) -> Retry? {
        guard report.state == .failed else { return nil }
        let last = report.finished ?? report.added, first = report.failedFirst ?? last
        return retry(first: first.seconds, failed: last.seconds, now: now)
    }

    /// Whether the feed of a failed download retries it, now or later.
    static func retries(_ report: Download?, now: Double) -> Bool {
        guard let report, report.feed != nil else { return false }
        return retry(report, now: now) ?? .never != .never
    }

    private static func varied(_ seconds: Double, _ random: Double) -> Double {
        seconds * (1 + jitter * (2 * random - 1))
    }
}
