import HTTPModel

/// The cache directives of a request (RFC 9111 §5.2.1, §5.4). Shared by all that decide about it.
package final class RequestDirectives: Sendable, Equatable {
    package let control: CacheControl

    package init(_ control: CacheControl = CacheControl(parsing: nil)) { self.control = control }

    /// - Parameters: the values of the request's fields; nil if absent.
    package convenience init(cacheControl: String?, pragma: String?) {
        var control = CacheControl(parsing: cacheControl)
        // §5.4: Pragma counts only without Cache-Control.
        if cacheControl == nil, CacheControl(parsing: pragma).noCache { control.noCache = true }
        self.init(control)
    }

    package static func == (first: RequestDirectives, second: RequestDirectives) -> Bool {
        first.control == second.control
    }

    /// The same directives without the demand to revalidate a fresh response (`no-cache`, `max-age=0`, `Pragma`),
    /// which some players send with every segment out of habit. Other limits on the age (`max-age=60`, `min-fresh`)
    /// and prohibitions (`only-if-cached`, `no-store`) stay.
    package var ignoringReload: RequestDirectives {
        guard control.noCache || control.maxAge == 0 else { return self }
        var control = control
        control.noCache = false
        if control.maxAge == 0 { control.maxAge = nil }
        return RequestDirectives(control)
    }
}

/// Whether a stored response may answer a request (RFC 9111 §4, §4.2.4; RFC 5861; RFC 8246).
package enum Reuse: Sendable, Equatable {
    /// As it is, because it is fresh.
    case fresh
    /// Although it is stale; if `revalidates`, it is revalidated in the background.
    case stale(revalidates: Bool)
    /// Only once the origin has validated it.
    case validate(Need)
    /// Not at all, and the client forbids contacting the origin (§5.2.1.7).
    case gatewayTimeout

    /// Why the response needs validation.
    package enum Need: Sendable, Equatable {
        /// The response is stale, or its origin requires validation on every request.
        case stale
        /// The client demands a newer response.
        case request
    }

    /// - Parameters:
    ///   - response: the directives of the stored response. If a rule sets the lifetime, those on revalidation do
    ///     not count.
    ///   - isOffline: the origin must not be contacted; whatever is stored plays.
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
        // §5.2.1.4; RFC 8246 §2: the directive by which a client overrides `immutable`.
        if request.noCache { return .request }
        // §5.2.2.4
        if response.noCache && !freshness.source.overrulesOrigin { return .stale }
        let need: Need = freshness.isFresh ? .request : .stale
        // §5.2.1.1
        if let maxAge = request.maxAge, freshness.age > maxAge, !isImmutable(response, freshness) { return need }
        // §5.2.1.3
        if let minFresh = request.minFresh, freshness.remaining < minFresh { return need }
        if freshness.isFresh { return nil }
        // §5.2.2.2: must-revalidate takes precedence over the client's max-stale.
        if forbidsStale(response, freshness) { return .stale }
        // §5.2.1.2
        return request.maxStale.map { freshness.staleness <= $0 } == true ? nil : .stale
    }

    /// RFC 8246 §2: a reload (`max-age=0`) of a fresh response does not revalidate it. This does not cover
    /// heuristic lifetimes.
    private static func isImmutable(_ response: CacheControl, _ freshness: Freshness) -> Bool {
        response.immutable && freshness.isFresh && freshness.source != .heuristic
    }

    /// Whether the origin forbids serving the response stale without validation (§5.2.2.2, §5.2.2.4).
    private static func forbidsStale(_ response: CacheControl, _ freshness: Freshness) -> Bool {
        guard !freshness.source.overrulesOrigin else { return false }
        return response.noCache || response.mustRevalidate && !freshness.isFresh
    }

    /// RFC 5861 §3. A client that states an age limit gets it (§5.2.1.1, §5.2.1.3). An outdated live playlist is
    /// never served, because it would make players wait for the next segments.
    private static func mayRevalidateMeanwhile(
        _ request: CacheControl, _ response: CacheControl, _ freshness: Freshness
    ) -> Bool {
        guard let window = response.staleWhileRevalidate, !forbidsStale(response, freshness) else { return false }
        guard request.maxAge == nil, request.minFresh == nil, freshness.source != .stream else { return false }
        return freshness.staleness <= window
    }

    /// The use of a stored response after the origin could not be reached or answered with an error.
    package enum OnError: Sendable, Equatable {
        /// The response is served.
        case serve
        /// The origin forbids that.
        case refusedByOrigin
        /// The client does not accept a response that stale.
        case refusedByRequest
    }

    /// Whether a stored response is served although its origin could not be reached or answered with an error
    /// (§4.2.4, §4.3.3, RFC 5861 §4).
    /// - Parameters:
    ///   - isDisconnected: no answer arrived at all.
    ///   - stalePlay: which responses play regardless of the origin's directives.
    ///   - isKept: the user has pinned or downloaded the resource.
    package static func onError(
        _ request: RequestDirectives, response: CacheControl, _ freshness: Freshness, isDisconnected: Bool,
        _ stalePlay: StalePlay, isKept: Bool
    ) -> OnError {
        if stalePlay == .everything { return .serve }
        let isOverruled = stalePlay == .kept && isKept
        // §5.2.2.2, §5.2.2.4: not even while disconnected.
        if !isOverruled, forbidsStale(response, freshness) { return .refusedByOrigin }
        // A client that states how stale a response may be is obeyed, whatever the error.
        if let window = request.control.staleIfError {
            return freshness.staleness <= window ? .serve : .refusedByRequest
        }
        // §4.2.4: while the origin cannot be reached, any stored response will do. RFC 5861 §4 counts that among
        // the errors "absent other information"; the user's evident intent to watch their media is such
        // information.
        if isOverruled || isDisconnected { return .serve }
        return response.staleIfError.map { freshness.staleness <= $0 } ?? true ? .serve : .refusedByOrigin
    }

    /// Whether an origin's answer to a validation is a passing error, of the origin or of the connection to it,
    /// that leaves the stored response unchanged (§4.3.3). 404 and 410 are not: they describe the resource.
    /// - Parameters:
    ///   - isKept: whether the user keeps what is stored. Then they are, too: streams drop what was recorded of them,
    ///     and episodes go.
    ///   - isRefusable: whether a refusal of what is kept is for the client: the cache has several users, or not all of
    ///     it, and the client may log in. Otherwise links and logins have expired.
    package static func isError(status: Int, isKept: Bool, isRefusable: Bool) -> Bool {
        status == 408 || status == 429 || (500...599).contains(status)
            || isKept && (isGone(status: status) || !isRefusable && (400...499).contains(status))
    }

    /// Whether an origin's answer means that the resource is gone.
    package static func isGone(status: Int) -> Bool { status == 404 || status == 410 }
}
