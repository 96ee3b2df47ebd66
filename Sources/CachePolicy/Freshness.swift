import HTTPModel

/// Whether what is cached may be given out without asking its origin again, as the origin itself has said (RFC 9111 §4.2).
package enum Freshness: Sendable, Equatable {
    /// Times are seconds since 1970.
    case fresh(until: Int64)
    case stale(since: Int64)
    /// The origin named no lifetime.
    case unstated

    /// RFC 9111 §4.2.1 for a cache that is not shared: `max-age`, else `Expires`; `s-maxage` is not for it. `no-cache` leaves no lifetime.
    /// - Parameters:
    ///   - cacheControl, expires: the fields of the response; nil where it has none.
    ///   - storedAt, now: seconds since 1970. The time of storing stands for the response's `Date`.
    package static func explicit(cacheControl: String?, expires: String?, storedAt: Int64, now: Int64) -> Freshness {
        let directives = CacheControl(parsing: cacheControl)
        if directives.noCache { return .stale(since: storedAt) }
        if let maxAge = directives.maxAge {
            let (end, isOver) = storedAt.addingReportingOverflow(maxAge)
            return at(isOver ? .max : end, now)
        }
        // RFC 9111 §5.3: what is no date, "0" above all, has expired.
        if let expires { return at(max(storedAt, HTTPDate.parse(expires) ?? storedAt), now) }
        return .unstated
    }

    private static func at(_ end: Int64, _ now: Int64) -> Freshness { end > now ? .fresh(until: end) : .stale(since: end) }

    /// In words: `fresh for 2 h more`.
    package func text(now: Int64) -> String {
        switch self {
        case .fresh(let end): "fresh for \(TimeSpan(seconds: end - now)) more"
        case .stale(let end): "stale since \(TimeSpan(seconds: now - end))"
        case .unstated: "the origin gave no lifetime"
        }
    }
}
