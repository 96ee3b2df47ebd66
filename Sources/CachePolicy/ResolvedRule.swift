import HTTPModel

/// How a resource is handled: the settings of the rules that match it, and defaults for the rest.
package struct ResolvedRule: Sendable, Equatable {
    /// Whether responses bypass the cache: they are neither stored nor answered from it.
    package var bypasses = false
    /// Seconds for which a response is fresh, regardless of its origin's directives.
    package var ttl: Int64?
    package var ignoresNoStore = false
    /// How this cache reads the origin's directives: as a shared or as a private cache.
    package var terms = CacheTerms.private
    /// Which responses play while the origin cannot be reached, even if it forbids that.
    package var stalePlay = StalePlay.kept
    package var fill = FillMode.standard
    /// Whether each byte costs money: then nothing is fetched in case a player returns, nor to the end for a player
    /// that has left.
    package var isMetered = false
    /// How many segments of a stream are fetched after the one that a player reads; 0 for none.
    package var aheadSegments = ResolvedRule.standardAheadSegments
    /// Whether the next item of a feed, list or series is downloaded when most of one was read; not where each byte
    /// costs money.
    package var prefetchesNext = false
    /// Whether a fresh response is served although the request demands revalidation (`no-cache`); nil: only if it
    /// is a segment that a playlist names.
    package var ignoresReload: Bool?
    /// Fields for the origin, which replace the client's fields of the same name. They are sent to the URL's
    /// origin, and not along a redirect to another.
    package var headers = HeaderFields()
    /// The lines of a cookie file, for the origins that they name.
    package var cookies: [String] = []
    /// The best picture that its playlists offer.
    package var limit = QualityLimit()
    /// Whether stored responses are pinned.
    package var pins = false
    /// Whether web pages that arrive in place of media are stored.
    package var storesPages = false
    /// The greatest stored length in bytes; longer responses bypass the cache. Nil for no limit.
    package var largestStored: Int64?
    /// The program that knows where the media of this URL is; nil if the URL is that of the media.
    package var resolver: Resolver?
    /// The caches that are asked before the origin; none for what bypasses the cache.
    package var parents: [ParentProxy] = []
    /// Whether answers that are not media are stored although their origin states no lifetime, if their status is
    /// cacheable by default (RFC 9110 §15.1).
    package var storesHeuristically = false
    /// Where a fresh link is obtained when the URL's own has expired midway.
    package var refresh: MediaLocation?

    package init() {}

    /// Whether the media may move while it is read, so that a transfer continues elsewhere.
    package var mayMove: Bool { resolver != nil || refresh != nil }

    package static let standardAheadSegments = 3
    /// With more segments, each seek would waste too many.
    package static let mostAheadSegments = 20
}

/// Which responses play while their origin cannot be reached, even if it forbids that (`no-cache`,
/// `must-revalidate`).
package enum StalePlay: Sendable, Equatable {
    /// Nothing: the origin's directives apply.
    case nothing
    /// Responses that the user pinned or downloaded.
    case kept
    /// Any stored response.
    case everything
}

extension ResolvedRule {
    /// Whether what the user pinned or downloaded plays whatever its origin says.
    package var playsKept: Bool { stalePlay != .nothing }

    /// Where no rule says anything else.
    init(_ policy: borrowing ProxyPolicy) {
        stalePlay = policy.playsPinned ? .kept : .nothing
        fill = policy.fill
        aheadSegments = policy.aheadSegments
        prefetchesNext = policy.prefetchesNext
        ignoresReload = policy.ignoresReload
        parents = policy.parents
    }

    /// Takes the effects that a rule names; `RuleEffects` takes `headers`, `key`, `ignoredQuery` and `refresh`.
    mutating func take(_ rule: Rule) {
        let written = rule.written
        bypasses = written.bypass ?? bypasses
        ttl = written.ttl?.components.seconds ?? ttl
        ignoresNoStore = written.ignoresNoStore ?? ignoresNoStore
        stalePlay = written.playsStale.map { $0 ? .everything : .nothing } ?? stalePlay
        fill = written.fill ?? fill
        isMetered = written.isMetered ?? isMetered
        aheadSegments = written.aheadSegments ?? aheadSegments
        prefetchesNext = written.prefetchesNext ?? prefetchesNext
        ignoresReload = written.ignoresReload ?? ignoresReload
        pins = written.pin ?? pins
        storesPages = written.storesPages ?? storesPages
        largestStored = written.maxObject ?? largestStored
        storesHeuristically = written.heuristic ?? storesHeuristically
        parents = rule.parents ?? parents
        cookies = rule.cookies ?? cookies
        limit.lines = written.maxHeight ?? limit.lines
        limit.bitsPerSecond = written.maxBitrate ?? limit.bitsPerSecond
    }

    /// Neither stores nor answers from a cache.
    package mutating func bypass() {
        bypasses = true
        complete()
    }

    /// Applies what some effects mean for others, after all rules were taken.
    mutating func complete() {
        aheadSegments = min(max(0, aheadSegments), Self.mostAheadSegments)
        prefetchesNext = prefetchesNext && !isMetered && !bypasses
        if bypasses { parents = [] }
    }
}
