import HTTPModel

/// What a request says about the cache (RFC 9111 §5.2.1, §5.4).
package struct RequestDirectives: Sendable, Equatable {
    package var control = CacheControl(parsing: nil)

    package init() {}

    /// - Parameters: the request's fields; nil where it has none.
    package init(cacheControl: String?, pragma: String?) {
        control = CacheControl(parsing: cacheControl)
        // §5.4: Pragma counts only where there is no Cache-Control.
        if cacheControl == nil, let pragma, pragma.lowercased().split(separator: ",").contains(where: { $0.filter { $0 != " " } == "no-cache" }) {
            control.noCache = true
        }
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
    ///   - response: the directives of the stored response.
    ///   - ttl: whether a rule gave the lifetime: then what the origin said of asking again does not count.
    ///   - isOffline: the origin is not to be asked at all. What is there plays.
    package static func decide(_ request: RequestDirectives, response: CacheControl, _ freshness: Freshness, isOffline: Bool) -> Reuse {
        if isOffline { return freshness.isFresh ? .fresh : .stale(revalidates: false) }
        let need = needOfValidation(request.control, response, freshness)
        switch need {
        case nil: return freshness.isFresh ? .fresh : .stale(revalidates: false)
        case .some where request.control.onlyIfCached: return .gatewayTimeout
        case .stale? where mayRevalidateMeanwhile(request.control, response, freshness): return .stale(revalidates: true)
        case .some(let need): return .validate(need)
        }
    }

    private static func needOfValidation(_ request: CacheControl, _ response: CacheControl, _ freshness: Freshness) -> Need? {
        // §5.2.1.4
        if request.noCache { return .request }
        let isRuled = freshness.source == .rule
        // §5.2.2.4
        if response.noCache && !isRuled { return .stale }
        // RFC 8246 §2: while it is fresh, a reload does not ask again.
        let isImmutable = response.immutable && freshness.isFresh && freshness.source == .explicit
        // §5.2.1.1
        if let maxAge = request.maxAge, freshness.age > maxAge, !isImmutable { return freshness.isFresh ? .request : .stale }
        // §5.2.1.3
        if let minFresh = request.minFresh, freshness.remaining < minFresh { return freshness.isFresh ? .request : .stale }
        if freshness.isFresh { return nil }
        // §5.2.1.2, §5.2.2.2: without a number any staleness will do; must-revalidate goes before.
        if let maxStale = request.maxStale, !response.mustRevalidate || isRuled, freshness.remaining == .min ? maxStale == .max : -freshness.remaining <= maxStale {
            return nil
        }
        return .stale
    }

    /// RFC 5861 §3. Where the client named an age, it is to have it.
    private static func mayRevalidateMeanwhile(_ request: CacheControl, _ response: CacheControl, _ freshness: Freshness) -> Bool {
        guard let window = response.staleWhileRevalidate, !response.mustRevalidate, !response.noCache else { return false }
        guard request.maxAge == nil, request.minFresh == nil else { return false }
        return freshness.remaining > .min && -freshness.remaining <= window
    }

    /// Whether a stored response may be given out although its origin could not be asked, or had an error to tell (§4.2.4, RFC 5861 §4).
    /// - Parameters:
    ///   - isDisconnected: no answer came at all.
    ///   - ignoresOrigin: a rule says to play it whatever the origin demands.
    package static func mayServeStaleOnError(
        _ request: RequestDirectives, response: CacheControl, _ freshness: Freshness, isDisconnected: Bool, ignoresOrigin: Bool
    ) -> Bool {
        if ignoresOrigin { return true }
        // §5.2.2.2, §5.2.2.4: not even while disconnected.
        if response.mustRevalidate || response.noCache { return freshness.source == .rule }
        guard !isDisconnected, !freshness.isFresh, let window = request.control.staleIfError ?? response.staleIfError else { return true }
        return freshness.remaining > .min && -freshness.remaining <= window
    }

    /// Whether an origin's answer to the question is an error that leaves what is stored as it was. 404 and 410 are not: they are what
    /// has become of the resource.
    package static func isError(status: Int) -> Bool { status == 429 || (500...599).contains(status) }

    /// Whether an origin's answer tells that the resource is gone.
    package static func isGone(status: Int) -> Bool { status == 404 || status == 410 }
}
