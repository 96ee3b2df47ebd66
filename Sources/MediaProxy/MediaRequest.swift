import Activity
import CacheFill
import CachePolicy
import DiskCache
import HTTPModel
import HTTPTransport
import Presentations
import Upstream

/// A request for media as it was understood, and what its answer says of how it came about. Loop-bound.
///
/// It knows no phases: all of them read it.
final class MediaRequest: ResourceResolver.User {
    let exchange: Exchange
    let head: RequestHead
    private(set) var route: Route
    let proxy: ProxyLoop
    let follower = FollowerID()
    let reading: FieldReading
    private(set) var directives: RequestDirectives
    private(set) var wanted: ByteRangeSpec?
    /// All ranges, if the client requested several; `wanted` is the first one to request from the origin.
    private(set) var several: [ByteRangeSpec] = []
    /// The presentation to which the resource belongs, if a playlist names it.
    private(set) var membership: Membership?
    /// Made when something is requested from the origin, or depends on what would be.
    lazy var demand = makeDemand(openingSpan)
    /// Whether the stored generation that needs validation is certainly a playlist or feed.
    var validatesListing = false
    /// The reading for which the next segments are fetched.
    private var segmentReading: Reading?
    var outcome = CacheStatus.hit()
    /// Whether its origin has sent the answer for it: what was only confirmed was stored before.
    var isFetched: Bool { !outcome.isHit && outcome.forwardStatus != 304 }
    /// Whether the log level includes how it is answered.
    let isExplained: Bool
    /// Each request counts once, however often its answer restarts.
    private(set) var isCounted = false
    /// Whether its player fetches files to be played later.
    var isOfDownloader = false
    /// What the origin sets in the response to this very request, where the client takes its cookies for the origin's.
    var cookies: [String] = []
    private static let longestSharedError: Int64 = 64 << 10

    init(_ exchange: Exchange, _ route: Route, _ reading: FieldReading, _ proxy: ProxyLoop) {
        (self.exchange, self.route, self.reading, self.proxy) = (exchange, route, reading, proxy)
        head = exchange.request
        directives = reading.directives
        isExplained = proxy.filler.filler.logger.logLevel <= .debug
    }

    var filler: LoopFiller { proxy.filler }
    var resolvedRule: ResolvedRule { route.resolvedRule }

    /// Reads which bytes it wants.
    /// - Returns: why it is refused; nil if it is not.
    func read() -> MediaRoutes.Refusal? {
        if reading.requester.isForeign {
            if directives.control.onlyIfCached || filler.origins.isOffline { return .probe }
            if resolvedRule.resolver != nil { return .intrusion }
        }
        // RFC 9110 §14.2: Range is for GET alone.
        if case .get = head.method {
            switch RangeRequest.parse(head.combined("Range")) {
            case .none: break
            case .multiple(let specs): (several, wanted) = (specs, RangeSet.opening(specs))
            case .single(let spec): wanted = spec
            case .malformed: return .malformedRange
            }
        }
        membership = findMembership()
        if membership?.kind == .clock {
            route = Route(route.url, route.form, proxy.policy, version: route.version, bypasses: true)
        }
        // Resources named by a playlist do not change, although players send reload directives by habit.
        if resolvedRule.ignoresReload ?? (membership?.kind == .media) { directives = directives.ignoringReload }
        return nil
    }

    /// Whether the client requests the bytes from the first one on.
    var beginsAtStart: Bool {
        guard case .get = head.method else { return false }
        return if case .from(0)? = wanted { true } else { wanted == nil }
    }

    /// The one range that the client wants of a text; nil for all of it.
    var wantedPart: ByteRangeSpec? { several.isEmpty && head.method == .get ? wanted : nil }

    /// Whether `If-Range` allows ranges of what a head describes.
    func honoursRange(of stored: GenerationHead) -> Bool {
        !head.rest.hasIfRange
            || Conditional.rangeApplies(
                head, against: stored.validators, isDateStrong: Freshening.hasStrongDate(stored.fields))
    }

    private func findMembership() -> Membership? {
        guard proxy.library.shelf.isUsed else { return nil }
        let first: Int64? =
            switch wanted {
            case .bounded(let first, _), .from(let first): first
            case .suffix, nil: nil
            }
        let filler = filler.filler
        return proxy.library.shelf.membership(of: route.mediaURL, at: first) { .seconds(filler.now()) }
    }

    // MARK: Segments ahead

    /// Prefetches the segments after the requested one; they start after this request has started.
    func lookAhead() {
        guard let membership, membership.place != nil, case .get = head.method else { return }
        segmentReading = proxy.library.ahead.reads(membership, by: reading.player, demand, on: filler)
    }

    /// Stops fetching ahead for this request, as the player left before the end.
    func leaveReading() {
        if let segmentReading { proxy.library.ahead.left(segmentReading) }
        segmentReading = nil
    }

    // MARK: What is requested from the origin

    var purpose: ResourceResolver.Purpose {
        .answer(directives, ttl: resolvedRule.ttl, isOffline: filler.origins.isOffline || route.isRecording)
    }

    var cacheTerms: CacheTerms { route.resolvedRule.terms }

    func selection(of variant: Variant) -> Variant {
        variant.of(demand.sentFields, fingerprint: filler.filler.store.fingerprint)
    }

    /// `Demand.isAuthorized`, for most requests without one.
    var isAuthorized: Bool { reading.hasCredentials && demand.isAuthorized }

    func makeDemand(_ span: ByteRangeSpec?) -> Demand {
        Demand(
            url: route.url, as: route.text, span: span, request: head, directives: directives,
            resolvedRule: resolvedRule, whole: membership?.whole, absence: absence,
            isTransparent: route.form.isTransparent,
            isForwarded: exchange.isForwarded, passesCookies: route.passesCookies,
            keepsCookies: !route.passesCookies && !reading.requester.isForeign,
            referrer: proxy.referrer(of: exchange, route), client: exchange.countedClient)
    }

    /// A live segment that its origin does not have, or not yet, is not requested again for half of its duration,
    /// unless its playlist is updated before. A playlist may state any duration, and name what is not its own: no
    /// longer than half a minute.
    private var absence: (@Sendable () -> ExpectedAbsence?)? {
        guard let membership, let live = membership.live else { return nil }
        return { [shelf = proxy.library.shelf] in
            membership.segmentDuration.map { duration in
                ExpectedAbsence(lasting: min(duration / 2, .seconds(30))) { [weak live] in
                    live.map { shelf.document($0.key) === $0 } ?? false
                }
            }
        }
    }

    /// The range to request when a resource is opened. A client that has a copy probably needs no more than a 304;
    /// the rest is fetched if it does.
    private var openingSpan: ByteRangeSpec? {
        let isBeginning =
            if head.method == .get {
                wanted == nil
                    && (head.value(of: "If-None-Match") != nil || head.value(of: "If-Modified-Since") != nil)
            } else { head.method == .head && resolvedRule.resolver != nil }
        // A playlist or feed is read as a whole; and a part of one that changes each second would be of no use. Large
        // files are named like feeds, too (`dump.xml`).
        guard isBeginning || wanted != nil, !StrayPage.isPlaylist(route.url), !validatesListing else { return nil }
        return isBeginning ? beginning : wanted
    }

    /// The first chunk.
    private var beginning: ByteRangeSpec {
        // no trap: a chunk has at least 4 KiB
        .bounded(first: 0, last: filler.filler.store.configuration.geometry.chunkSize - 1)
    }

    /// Whether the request is a HEAD that the origin can answer. The addresses that a resolver finds are often for GET
    /// alone.
    var isOriginsHead: Bool { head.method == .head && resolvedRule.resolver == nil }

    /// How fresh a stored response is for it at this moment.
    func freshness(of generation: Generation) -> Freshness {
        let head = generation.head, filler = filler.filler
        return head.freshness(
            ttl: resolvedRule.ttl, head.reading(cacheTerms), now: filler.now(), instant: filler.instant)
    }

    // MARK: What has come for others

    /// Whether an answer that is not media holds for all waiting clients: it depends neither on their identity, nor on
    /// tokens in their URLs, nor on the requested range.
    func shares(_ generation: Generation, of fetch: SharedFetch) -> Bool {
        guard let requester = fetch.requester, requester.url == route.text else { return false }
        let view = generation.snapshot, status = view.head.status, terms = resolvedRule.terms
        // What begins a session may be meant for its client alone.
        guard terms.kind == .private || !requester.isAuthorized && !fetch.setsCookies else { return false }
        let directives = view.head.reading(terms).directives
        guard fetch.isKeptShort || directives.sharesError(status, in: terms.kind), view.head.variant.fields.isEmpty,
            head.method == .get, !directives.isForOneUser
        else { return false }
        // It stays in memory for the slowest of them. A 204 has no body.
        guard let length = status == 204 ? 0 : view.length, length <= Self.longestSharedError else { return false }
        let fields = demand.sentFields
        return fields["Authorization"] == nil && fields["Cookie"] == nil
    }

    /// Whether a response that is passed through has all bytes that the answer needs. The part was requested
    /// before the validators and the length were known: the client's condition may require the whole (RFC 9110
    /// §13.1.5), and the requested part may extend beyond the end.
    func isEnough(
        _ part: Range<Int64>?, of total: Int64?, _ response: GenerationHead, _ isListing: @autoclosure () -> Bool
    ) -> Bool {
        guard let part else { return response.status != 416 || wanted != nil && head.value(of: "If-Range") == nil }
        let isWhole = total.map { part == Range(from: 0, upTo: $0) } ?? false
        // It is read as a whole, whatever the client wants of it.
        if !isWhole, isListing() { return false }
        guard Conditional.evaluate(head, against: response.validators) == .proceed else { return true }
        guard let wanted, honoursRange(of: response) else {
            return isWhole
        }
        guard let total else { return self.wanted(of: part) != nil }
        return wanted.resolve(length: total).map { $0.clamped(to: part) == $0 } ?? true
    }

    /// Whether the answer from a generation is that of a playlist or feed.
    func isListing(_ generation: Generation, _ view: Generation.Snapshot, _ isAsStored: Bool) -> Bool {
        view.head.status == 200 && !isAsStored
            && proxy.library.isPlaylist(generation, view, at: route.mediaURL, beginsAtStart: beginsAtStart)
    }

    /// What is wanted of a part of a representation whose length the origin keeps to itself; nil if nothing is.
    func wanted(of part: Range<Int64>) -> Range<Int64>? {
        guard let range = wanted?.resolve(length: part.upperBound), range.overlaps(part) else { return nil }
        return range.clamped(to: part)
    }

    /// The first short response to it that is known, and may be used if it is fresh enough.
    func short(under key: CacheKey) -> (ShortResponse, Freshness)? {
        let filler = filler.filler
        for short in filler.shortResponses.responses(to: route.url.absolute, under: key) {
            guard selection(of: short.head.variant) == short.head.variant,
                let freshness = short.freshness(resolvedRule, now: filler.now(), instant: filler.instant)
            else { continue }
            // A refusal may have been for want of cookies.
            if [401, 403].contains(short.head.status), demand.cookies(in: filler.cookies, or: key)?.isEmpty == false {
                continue
            }
            let directives = short.head.reading(resolvedRule.terms).directives
            // It may have been stored while the cache was private.
            guard directives.permitsUse(of: short.head.fields, short.head.variant, isAuthorized: isAuthorized)
            else { continue }
            return (short, freshness)
        }
        return nil
    }

    /// Notes the origin's answer for `Cache-Status`.
    func note(_ status: SharedFetch) {
        let (answer, isKeptShort, passingReason) = status.nature
        outcome.forwardStatus = answer
        if isKeptShort { outcome.isStored = true }
        if outcome.detail == nil { outcome.detail = passingReason?.rawValue }
    }

    /// How long its client waits for the first byte, in seconds.
    var usualWait: Double {
        filler.origins.upstream.settings.stallTimeout * Patience.stalls + (resolvedRule.resolver?.timeout ?? 0)
    }

    // MARK: Counting

    /// Counts the request by how much of the requested range is cached, and marks a hit as partial.
    func classify(_ coverage: Generation.Coverage, _ generation: Generation, isOpening: Bool) {
        defer { isCounted = true }
        if !isOpening {
            if !isCounted { generation.countHit() }
            if outcome.isHit, coverage != .whole {
                outcome = .forwarded(
                    .partial,
                    detail: filler.origins.isOffline ? "offline" : coverage == .none ? "nothing-of-the-range" : nil)
            }
        }
        guard !isCounted else { return }
        switch (isOpening, coverage) {
        case (true, _): (outcome.forward == .bypass ? proxy.metrics.bypasses : proxy.metrics.misses).add()
        case (false, .whole): proxy.metrics.hits.add()
        case (false, _): proxy.metrics.partialHits.add()
        }
    }

    /// Counts it as what this counter counts, unless it is counted.
    func count(as counter: KeyPath<ProxyMetrics, Counter>) {
        if !isCounted { proxy.metrics[keyPath: counter].add() }
        isCounted = true
    }

    func countStale() { if !isCounted { proxy.metrics.stale.add() } }

    func noteFirstByte() {
        exchange.recordFirstByte(in: outcome.isHit ? proxy.metrics.firstByteOfHits : proxy.metrics.firstByteOfMisses)
    }
}

extension MediaRoutes.Refusal {
    /// The result would tell a page of another site what was watched.
    fileprivate static let probe = Self(
        status: 403, reason: "a page of another site may not learn what is cached: list its origin in web_origins")
    /// A resolver would run, with the user's cookies and account, and as often as the page likes; and if only cached
    /// media were answered, the page would learn what is cached.
    fileprivate static let intrusion = Self(
        status: 403, reason: "a page of another site may not start a resolver: list its origin in web_origins")
    fileprivate static let malformedRange = Self(
        status: 400, reason: "malformed Range; write bytes=FIRST-LAST, bytes=FIRST- or bytes=-COUNT")
}

extension ResponseDirectives {
    /// Whether an error without a lifetime answers all who wait for it: it is no refusal of one of them and, if the
    /// cache is shared, a fault of its origin.
    fileprivate func sharesError(_ status: Int, in kind: CacheMode) -> Bool {
        guard status >= (kind == .shared ? 500 : 400), ![401, 403, 407, 416].contains(status) else { return false }
        return !stated.noStore && !stated.noCache && obeyed.maxAge != 0
    }
}
