import HTTPModel

/// How long a stored response is fresh, and how old it is (RFC 9111 §4.2). In seconds.
package struct Freshness: Sendable, Equatable {
    /// Where the lifetime comes from.
    package enum Source: Sendable, Equatable {
        /// `max-age` or `Expires`.
        case explicit
        /// Estimated from how long the response had not changed.
        case heuristic
        /// A rule of this proxy.
        case rule
        /// The live stream whose playlist the response is (`LiveTiming`). The origin's lifetimes do not count:
        /// players reload as often as the playlist itself prescribes.
        case stream

        /// Whether it overrides the origin's directives on revalidation.
        var overrulesOrigin: Bool { self == .rule || self == .stream }
    }

    /// The age at which the response becomes stale.
    package let lifetime: Int64
    package let age: Int64
    package let source: Source
    /// The origin requires validation on every request, fresh or not (`no-cache`), and no rule overrides it.
    package let isValidatedEachTime: Bool

    package init(lifetime: Int64, age: Int64, source: Source, isValidatedEachTime: Bool = false) {
        self.lifetime = lifetime
        self.age = age
        self.source = source
        self.isValidatedEachTime = isValidatedEachTime
    }

    /// How long the response stays fresh from now; 0 or negative if it is stale.
    package var remaining: Int64 { lifetime -| age }

    /// How long the response has been stale; 0 if it is fresh.
    package var staleness: Int64 { max(0, 0 -| remaining) }

    /// RFC 9111 §4.2: fresh as long as the lifetime exceeds the age.
    package var isFresh: Bool { lifetime > age }

    /// - Parameters:
    ///   - fields: the fields of the stored response.
    ///   - times: the times from which the age is computed.
    ///   - ttl: the lifetime that a rule sets; it overrides the origin, including `no-cache`.
    ///   - isListing: whether the response is a playlist or a feed: these get no heuristic lifetime.
    ///   - terms: how this cache reads the origin's directives.
    ///   - now: seconds since 1970.
    package static func of(
        _ fields: HeaderFields, _ times: ResponseTimes, ttl: Int64?, isListing: Bool = false,
        terms: CacheTerms = .private, directives: ResponseDirectives? = nil, now: Int64
    ) -> Freshness {
        let age = times.age(at: now)
        if let ttl {
            // A rule's lifetime counts from when this proxy received the response, however old it was then.
            // An age without bound makes it stale for as long: no lifetime covers what is in doubt.
            let lifetime = times.initialAge == .max ? 0 : times.initialAge +| max(0, ttl)
            return Freshness(lifetime: lifetime, age: age, source: .rule)
        }
        let directives = directives ?? ResponseDirectives(fields, terms), control = directives.obeyed
        // RFC 9213 §2.2: a targeted field is in the place of Expires, too.
        let explicit =
            control.maxAge ?? (directives.isTargeted ? nil : expiry(fields, receivedAt: times.validatedAt))
        return Freshness(
            lifetime: explicit
                ?? (isListing
                    ? 0 : heuristicLifetime(fields, receivedAt: times.validatedAt, least: terms.defaultTTL)),
            age: age, source: explicit == nil ? .heuristic : .explicit,
            isValidatedEachTime: control.noCache)
    }

    /// §4.2.1, after `s-maxage` (in a shared cache) and `max-age`: `Expires` minus `Date`, both by the origin's clock;
    /// nil without `Expires`.
    private static func expiry(_ fields: HeaderFields, receivedAt: Int64) -> Int64? {
        // §5.3: an invalid date, "0" in particular, means expired. §4.2.1: of several differing fields, the most
        // restrictive counts.
        let dates = fields.all("Expires").map { HTTPDate.parse($0) ?? .min }
        return dates.min().map { max(0, $0 -| date(fields, receivedAt)) }
    }

    /// §4.2.2: a tenth of the time for which the response had not changed when it was received; at least the default
    /// lifetime, and otherwise at most a week.
    private static func heuristicLifetime(_ fields: HeaderFields, receivedAt: Int64, least: Int64) -> Int64 {
        guard let modified = fields["Last-Modified"].flatMap(HTTPDate.parse) else { return least }
        return max(min((date(fields, receivedAt) -| modified) / 10, longestHeuristic), least)
    }

    static let longestHeuristic: Int64 = 7 * 86400

    /// RFC 9110 §6.6.1: the time of receipt replaces a missing Date.
    private static func date(_ fields: HeaderFields, _ receivedAt: Int64) -> Int64 {
        fields["Date"].flatMap(HTTPDate.parse) ?? receivedAt
    }

    /// The same, with a shorter lifetime if that is a guess.
    package func heuristic(atMost longest: Int64) -> Freshness {
        source == .heuristic && lifetime > longest
            ? Freshness(lifetime: longest, age: age, source: source, isValidatedEachTime: isValidatedEachTime) : self
    }

    /// As text: `fresh for 2 h more`.
    package var text: String {
        if isValidatedEachTime { return "revalidated on every request (no-cache)" }
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
        // Numbers that mean "forever", such as 2³¹ years.
        seconds > longestAge ? "over 1000 years" : TimeSpan(seconds: seconds).description
    }

    private static let longestAge: Int64 = 31_536_000_000
}
