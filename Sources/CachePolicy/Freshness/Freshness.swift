import HTTPModel

/// For how long a stored response is fresh, and how old it is (RFC 9111 §4.2). Seconds.
package struct Freshness: Sendable, Equatable {
    /// Who said how long.
    package enum Source: Sendable, Equatable {
        /// `max-age` or `Expires`.
        case explicit
        /// Nobody: reckoned from how long it had not changed.
        case heuristic
        /// A rule of this proxy.
        case rule
    }

    package let lifetime: Int64
    package let age: Int64
    package let source: Source

    package init(lifetime: Int64, age: Int64, source: Source) {
        self.lifetime = lifetime
        self.age = age
        self.source = source
    }

    /// How long it is fresh from now; 0 or negative where it is stale.
    package var remaining: Int64 {
        let (left, isOver) = lifetime.subtractingReportingOverflow(age)
        return isOver ? .min : left
    }

    /// RFC 9111 §4.2: fresh as long as the lifetime exceeds the age.
    package var isFresh: Bool { lifetime > age }

    /// - Parameters:
    ///   - fields: those of the stored response.
    ///   - times: from when its age counts.
    ///   - ttl: what a rule says; it goes before what the origin said, also before its `no-cache`.
    ///   - now: seconds since 1970.
    package static func of(_ fields: FieldLines, _ times: ResponseTimes, ttl: Int64?, now: Int64) -> Freshness {
        let age = times.age(at: now)
        // A rule counts from when this proxy had it from the origin.
        if let ttl { return Freshness(lifetime: ttl, age: max(0, now - times.validatedAt), source: .rule) }
        if let explicit = explicitLifetime(fields, receivedAt: times.validatedAt) { return Freshness(lifetime: explicit, age: age, source: .explicit) }
        return Freshness(lifetime: heuristicLifetime(fields, receivedAt: times.validatedAt), age: age, source: .heuristic)
    }

    /// §4.2.1 for a cache that is not shared: `max-age`, else `Expires` minus `Date`; `s-maxage` is not for it. Nil where neither is there.
    static func explicitLifetime(_ fields: FieldLines, receivedAt: Int64) -> Int64? {
        if let maxAge = CacheControl(parsing: fields.combined("Cache-Control")).maxAge { return maxAge }
        guard let expires = fields["Expires"] else { return nil }
        // §5.3: what is no date, "0" above all, has expired. §4.2.1: of several fields that differ, the most restrictive counts.
        let dates = fields.all("Expires").map(HTTPDate.parse)
        guard !expires.isEmpty, let soonest = dates.map({ $0 ?? .min }).min(), soonest > .min else { return 0 }
        return max(0, soonest - date(fields, receivedAt))
    }

    /// §4.2.2: a tenth of the time that it had not changed for when it was received, at least ten minutes and at most a week.
    ///
    /// The least is for media without any word about their lifetime: a player asks many times for parts of the same file, and would
    /// have to wait for the origin each time.
    static func heuristicLifetime(_ fields: FieldLines, receivedAt: Int64) -> Int64 {
        guard let modified = fields["Last-Modified"].flatMap(HTTPDate.parse) else { return leastHeuristic }
        return min(max((date(fields, receivedAt) - modified) / 10, leastHeuristic), longestHeuristic)
    }

    static let leastHeuristic: Int64 = 600
    static let longestHeuristic: Int64 = 7 * 86400

    private static func date(_ fields: FieldLines, _ receivedAt: Int64) -> Int64 { fields["Date"].flatMap(HTTPDate.parse) ?? receivedAt }

    /// In words: `fresh for 2 h more`.
    package var text: String {
        let words = isFresh ? "fresh for \(TimeSpan(seconds: remaining)) more" : "stale since \(TimeSpan(seconds: remaining == .min ? .max : -remaining))"
        return source == .heuristic ? words + " (the origin gave no lifetime)" : words
    }
}
