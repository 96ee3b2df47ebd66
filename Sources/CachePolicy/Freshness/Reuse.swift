import HTTPModel

/// What a request says about the cache (RFC 9111 §5.2.1, §5.4).
package struct RequestDirectives: Sendable, Equatable {
    package var control = CacheControl(parsing: nil)

    package init() {}

    /// - Parameters: the request's fields; nil where it has none.
    package init(cacheControl: String?, pragma: String?) {
        control = CacheControl(parsing: cacheControl)
        // §5.4: Pragma counts only where there is no Cache-Control.
        if cacheControl == nil, CacheControl(parsing: pragma).noCache { control.noCache = true }
    }

    /// The same, without the wish that what is fresh be asked for again (`no-cache`, `max-age=0`, `Pragma`): some players
    /// say that with each segment, by habit. What limits the age otherwise (`max-age=60`, `min-fresh`) and what forbids
    /// something (`only-if-cached`, `no-store`) stays.
    package var ignoringReload: RequestDirectives {
        var directives = self
        directives.control.noCache = false
        if control.maxAge == 0 { directives.control.maxAge = nil }
        return directives
    }
}

/// Whether a stored response may answer a request (RFC 9111 §4, §4.2.4; RFC 5861; RFC 8246).
package enum Reuse: Sendable, Equatable {
    /// As it is.
    case fresh
    /// Although it is stale; where `revalidates`, the origin is asked meanwhile.
    case stale(revalidates: Bool)
    /// Only once the origin has said that it still holds.
    case validate(Need)
    /// Not at all: the client wants no word to the origin (§5.2.1.7).
    case gatewayTimeout

    /// Why the origin has to be asked.
    package enum Need: Sendable, Equatable {
        /// The response is stale, or its origin wants to be asked each time.
        case stale
        /// The client wants a newer one than this.
        case request
    }

    /// - Parameters:
    ///   - response: the directives of the stored response. Where a rule gave the lifetime, what they say of asking
    ///     again does not count.
    ///   - isOffline: the origin is not to be asked at all. What is there plays.
    package static func decide(
        _ request: RequestDirectives, response: CacheControl, _ freshness: Freshness, isOffline: Bool
    ) -> Reuse {
        let asIs = freshness.isFresh ? Reuse.fresh : .stale(revalidates: false)
        if isOffline { return asIs }
        guard let need = needOfValidation(request.control, response, freshness) else { return asIs }
        if need == .stale, mayRevalidateMeanwhile(request.control, response, freshness) {
            return .stale(revalidates: !request.control.onlyIfCached)
        }
        return request.control.onlyIfCached ? .gatewayTimeout : .validate(need)
    }

    private static func needOfValidation(_ request: CacheControl, _ response: CacheControl, _ freshness: Freshness)
        -> Need?
    {
        // §5.2.1.4; RFC 8246 §2: the word by which a client overrides `immutable`.
        if request.noCache { return .request }
        // §5.2.2.4
        if response.noCache && !freshness.source.overrulesOrigin { return .stale }
        let need: Need = freshness.isFresh ? .request : .stale
        // §5.2.1.1
        if let maxAge = request.maxAge, freshness.age > maxAge, !isImmutable(response, freshness) { return need }
        // §5.2.1.3
        if let minFresh = request.minFresh, freshness.remaining < minFresh { return need }
        if freshness.isFresh { return nil }
        // §5.2.2.2: must-revalidate goes before what the client would put up with.
        if forbidsStale(response, freshness) { return .stale }
        // §5.2.1.2
        return request.maxStale.map { freshness.staleness <= $0 } == true ? nil : .stale
    }

    /// RFC 8246 §2: as long as it is fresh, a reload (`max-age=0`) does not ask again. Of a lifetime that nobody stated
    /// it says nothing.
    private static func isImmutable(_ response: CacheControl, _ freshness: Freshness) -> Bool {
        response.immutable && freshness.isFresh && freshness.source != .heuristic
    }

    /// Whether the origin says that, once stale, it may not be given out without asking (§5.2.2.2, §5.2.2.4).
    private static func forbidsStale(_ response: CacheControl, _ freshness: Freshness) -> Bool {
        guard !freshness.source.overrulesOrigin else { return false }
        return response.noCache || response.mustRevalidate && !freshness.isFresh
    }

    /// RFC 5861 §3. Where the client named an age, it is to have it (§5.2.1.1, §5.2.1.3). A playlist of a live stream
    /// that is no longer its present state makes players wait for the next segments.
    private static func mayRevalidateMeanwhile(
        _ request: CacheControl, _ response: CacheControl, _ freshness: Freshness
    ) -> Bool {
        guard let window = response.staleWhileRevalidate, !forbidsStale(response, freshness) else { return false }
        guard request.maxAge == nil, request.minFresh == nil, freshness.source != .stream else { return false }
        return freshness.staleness <= window
    }

    /// What becomes of a stored response whose origin could not be asked, or had an error to tell.
    package enum OnError: Sendable, Equatable {
        /// It is given out.
        case serve
        /// Its origin forbade that.
        case refusedByOrigin
        /// The client wants nothing that stale.
        case refusedByRequest
    }

    /// Whether a stored response is given out although its origin could not be asked, or had an error to tell (§4.2.4,
    /// §4.3.3, RFC 5861 §4).
    /// - Parameters:
    ///   - isDisconnected: no answer came at all.
    ///   - stalePlay: what plays whatever its origin demands.
    ///   - isKept: somebody has pinned or downloaded it.
    package static func onError(
        _ request: RequestDirectives, response: CacheControl, _ freshness: Freshness, isDisconnected: Bool,
        _ stalePlay: StalePlay, isKept: Bool
    ) -> OnError {
        if stalePlay == .everything { return .serve }
        let isOverruled = stalePlay == .kept && isKept
        // §5.2.2.2, §5.2.2.4: not even while disconnected.
        if !isOverruled, forbidsStale(response, freshness) { return .refusedByOrigin }
        // A client that says how stale it may be is heard, whatever the error is.
        if let window = request.control.staleIfError {
            return freshness.staleness <= window ? .serve : .refusedByRequest
        }
        // §4.2.4: while the origin cannot be reached, anything that is here. RFC 5861 §4 counts that among the errors,
        // "absent other information": that whoever runs this wants to watch what they have is such.
        if isOverruled || isDisconnected { return .serve }
        return response.staleIfError.map { freshness.staleness <= $0 } ?? true ? .serve : .refusedByOrigin
    }

    /// Whether an origin's answer to the question is an error that leaves what is stored as it was (§4.3.3): it, or the
    /// line to it, has a bad moment. 404 and 410 are none: they are what has become of the resource.
    package static func isError(status: Int) -> Bool { status == 408 || status == 429 || (500...599).contains(status) }

    /// Whether an origin's answer tells that the resource is gone.
    package static func isGone(status: Int) -> Bool { status == 404 || status == 410 }
}
