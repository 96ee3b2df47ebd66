import HTTPModel
import Units

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
        /// The stream that the response is a playlist of (`LiveTiming`). What its origin says of lifetimes does not
        /// count: players ask as often as the playlist itself says.
        case stream

        /// Whether it goes before what the origin said of asking again.
        var overrulesOrigin: Bool { self == .rule || self == .stream }
    }

    /// The age at which it becomes stale.
    package let lifetime: Int64
    package let age: Int64
    package let source: Source
    /// Its origin wants to be asked each time, fresh or not (`no-cache`), and no rule says otherwise.
    package let isAskedEachTime: Bool

    package init(lifetime: Int64, age: Int64, source: Source, isAskedEachTime: Bool = false) {
        self.lifetime = lifetime
        self.age = age
        self.source = source
        self.isAskedEachTime = isAskedEachTime
    }

    /// How long it is fresh from now; 0 or negative where it is stale.
    package var remaining: Int64 { lifetime -| age }

    /// For how long it has been stale; 0 where it is fresh.
    package var staleness: Int64 { max(0, 0 -| remaining) }

    /// RFC 9111 §4.2: fresh as long as the lifetime exceeds the age.
    package var isFresh: Bool { lifetime > age }

    /// - Parameters:
    ///   - fields: those of the stored response.
    ///   - times: from when its age counts.
    ///   - ttl: what a rule says; it goes before what the origin said, also before its `no-cache`.
    ///   - isListing: whether it is a playlist or a feed: no lifetime is guessed for these.
    ///   - now: seconds since 1970.
    package static func of(
        _ fields: HeaderFields, _ times: ResponseTimes, ttl: Int64?, isListing: Bool = false, now: Int64
    ) -> Freshness {
        let age = times.age(at: now)
        if let ttl {
            // A rule counts from when this proxy had it from the origin, however old it was then.
            return Freshness(lifetime: times.initialAge +| max(0, ttl), age: age, source: .rule)
        }
        let control = CacheControl(parsing: fields.combined("Cache-Control"))
        let explicit = control.maxAge ?? expiry(fields, receivedAt: times.validatedAt)
        let guessed = isListing ? 0 : heuristicLifetime(fields, receivedAt: times.validatedAt)
        return Freshness(
            lifetime: explicit ?? guessed, age: age,
            source: explicit == nil ? .heuristic : .explicit,
            isAskedEachTime: control.noCache)
    }

    /// §4.2.1 for a cache that is not shared, after `max-age` (`s-maxage` is not for it): `Expires` minus `Date`, both
    /// of the origin's clock; nil without `Expires`.
    private static func expiry(_ fields: HeaderFields, receivedAt: Int64) -> Int64? {
        // §5.3: what is no date, "0" above all, has expired. §4.2.1: of several fields that differ, the most
        // restrictive counts.
        let dates = fields.all("Expires").map { HTTPDate.parse($0) ?? .min }
        return dates.min().map { max(0, $0 -| date(fields, receivedAt)) }
    }

    /// §4.2.2: a tenth of the time that it had not changed for when it was received, at least ten minutes and at most a
    /// week.
    ///
    /// The least is for media without any word about their lifetime: a player asks many times for parts of the same
    /// file, and would have to wait for the origin each time.
    private static func heuristicLifetime(_ fields: HeaderFields, receivedAt: Int64) -> Int64 {
        guard let modified = fields["Last-Modified"].flatMap(HTTPDate.parse) else { return leastHeuristic }
        return min(max((date(fields, receivedAt) -| modified) / 10, leastHeuristic), longestHeuristic)
    }

    static let leastHeuristic: Int64 = 600
    static let longestHeuristic: Int64 = 7 * 86400

    /// RFC 9110 §6.6.1: without a Date the time of receipt stands for it.
    private static func date(_ fields: HeaderFields, _ receivedAt: Int64) -> Int64 {
        fields["Date"].flatMap(HTTPDate.parse) ?? receivedAt
    }

    /// In words: `fresh for 2 h more`.
    package var text: String {
        if isAskedEachTime { return "the origin is asked each time (no-cache)" }
        switch source {
        case .explicit: return span
        case .heuristic: return span + " (the origin gave no lifetime)"
        case .rule: return span + " (by a rule)"
        case .stream: return span + " (a live stream)"
        }
    }

    private var span: String {
        guard isFresh else { return "stale for " + Self.text(staleness) }
        return "fresh for " + Self.text(remaining) + " more"
    }

    private static func text(_ seconds: Int64) -> String {
        // Numbers that mean "for ever", such as 2³¹ years.
        seconds > longestTold ? "over 1000 years" : TimeSpan(seconds: seconds).description
    }

    private static let longestTold: Int64 = 31_536_000_000
}
