import Activity
import CacheFill
import CachePolicy
import DiskCache
import EventIO
import HTTPModel
import HTTPTransport
import Presentations
import Upstream

/// Answers one request for media, and is the source of the answer's body. Loop-bound.
///
///     look up ── known ── may it be reused? ── yes ───────────────────────── answer from the generation ── body
///        │                    └── only if validated ────── validate ──────────┘ (unchanged)
///        └────── unknown ─────────────────────────────────────── open (fetch the range) ── answer from its bytes
///                                                                  └── not to be stored: pass it on
final class MediaAnswer: BodySource {
    let exchange: Exchange
    let request: RequestHead
    let route: Route
    let handler: MediaHandler
    private(set) var directives: RequestDirectives
    let follower = FollowerID()
    /// The requested resource; another one if its origin selects a variant by further request fields.
    var resource: OpenResource
    var resolver: ResourceResolver
    var wanted: ByteRangeSpec?
    /// All ranges, if the client requested several; `wanted` is the first one to request from the origin.
    private(set) var several: [ByteRangeSpec] = []
    var opening: SharedFetch?
    var headFetch: HeadFetch?
    var reader: CacheReader?
    /// The first bytes, read before the header is sent: if they do not arrive, the answer is an error instead.
    var firstStep: BodyStep?
    var outcome = CacheStatus.hit()
    /// The stored generation that needs validation: it serves the answer if its origin cannot be reached.
    var doubted: (generation: Generation, freshness: Freshness)?
    /// What the origin sets in the response to this very request, where the client takes its cookies for the origin's.
    var cookies: [String] = []
    /// How many responses before the final one were passed on.
    var interimsSent = 0
    /// Why a stored generation is served without the validation that it needs.
    var doubt: FillError?
    /// Whether a playlist or feed is sent as its origin has it.
    private(set) var isAsStored = false
    /// Set while a playlist is being read for this answer.
    var playlistWaiter: PlaylistLibrary.Waiter?
    /// The renditions that stay in the playlist while its origin is unreachable; nil for all.
    var kept: PlaylistForm.Kept?
    var whenKeptIsFound: (() -> Void)?
    /// Whether the answer was sent from memory.
    var isAnswered = false
    /// The presentation to which the resource belongs, if a playlist names it.
    private(set) lazy var membership = findMembership()
    private(set) lazy var player = PlayerID(
        address: exchange.clientHost, agent: request.value(of: "User-Agent"))
    /// The item that is delivered, if the next one is fetched after it; and the offset at which most of it was read.
    var item: NextItems.Reading?
    var itemMark = Int64.max
    /// The reading for which the next segments are fetched.
    private var segmentReading: Reading?
    /// Where it was reading at its end; nil before.
    private(set) var lastReading: (offset: Int64, length: Int64?)?
    /// The remaining wait for the first byte.
    var patience = Patience.fresh
    /// A generation may be replaced before its first byte arrives: the answer then restarts from the next one.
    private var restarts = 0
    /// Each request counts once, however often it restarts.
    var isCounted = false
    private static let maxRestarts = 3
    private static let longestSharedError: Int64 = 64 << 10

    init(_ exchange: Exchange, _ route: Route, _ handler: MediaHandler) {
        self.exchange = exchange
        request = exchange.request
        self.route = route
        self.handler = handler
        directives = RequestDirectives(
            cacheControl: request.combined("Cache-Control"), pragma: request.combined("Pragma"))
        resource = handler.filler.filler.resource(route.key)
        resolver = ResourceResolver(route.key)
    }

    var filler: LoopFiller { handler.filler }
    var resolvedRule: ResolvedRule { route.resolvedRule }

    func start() {
        explain()
        guard !isProbe else {
            handler.metrics.errors.add("refused")
            return exchange.respond(
                403, text: "a page of another site may not learn what is cached: list its origin in web_origins")
        }
        guard !isIntrusion else { return refuseIntrusion() }
        // RFC 9110 §14.2: Range is for GET alone.
        if request.method == .get {
            switch RangeRequest.parse(request.combined("Range")) {
            case .none: break
            case .multiple(let specs):
                several = specs
                wanted = RangeSet.opening(specs)
            case .single(let spec): wanted = spec
            case .malformed:
                handler.metrics.errors.add("bad-request")
                return exchange.respond(
                    400, text: "malformed Range; write bytes=FIRST-LAST, bytes=FIRST- or bytes=-COUNT")
            }
        }
        // Resources named by a playlist do not change, although players send reload directives by habit.
        if resolvedRule.ignoresReload ?? (membership?.isPlaylist == false) { directives = directives.ignoringReload }
        if request.method == .get { handler.plays.begin(self) }
        lookAhead()
        proceed()
    }

    /// Prefetches the segments after the requested one; they start after this request has started.
    private func lookAhead() {
        guard request.method == .get, let membership, membership.place != nil else { return }
        segmentReading = handler.library.ahead.reads(membership, by: player, demand, on: filler)
    }

    /// Whether a page of another site sends a request that only the cache can answer: the result would tell it
    /// what was watched.
    private var isProbe: Bool {
        (directives.control.onlyIfCached || filler.isOffline) && Requester(request, handler.routes.webOrigins).isForeign
    }

    /// Whether a page of another site asks for media behind a page: a resolver would run, with the user's cookies and
    /// account, and as often as the page likes; and if only cached media were answered, it would learn what is cached.
    private var isIntrusion: Bool {
        resolvedRule.resolver != nil && Requester(request, handler.routes.webOrigins).isForeign
    }

    private func refuseIntrusion() {
        handler.metrics.errors.add("refused")
        exchange.respond(403, text: "a page of another site may not start a resolver: list its origin in web_origins")
    }

    /// Proceeds as far as possible without waiting. Called again when the resource's state changes.
    func proceed() {
        guard exchange.isOpen else { return }
        if resolvedRule.bypasses { return act(on: directives.control.onlyIfCached ? .refuse : .bypass(.rule)) }
        let view = filler.filler.look(at: resource, wake: wake { $0.proceed() })
        let resolution = resolver.resolve(
            view, for: purpose, now: filler.filler.now(), instant: filler.filler.instant,
            terms: resolvedRule.terms, isAuthorized: isAuthorized, selection: { selection(of: $0) })
        if !answersShortly(resolution) { act(on: resolution) }
    }

    /// Sends a playlist or feed that needs no rewriting like any file.
    func answer(fromFile generation: Generation) {
        isAsStored = true
        answer(from: generation)
    }

    /// Requests a playlist or feed again that is too long to be read, and sends it like any file.
    func passUnread() {
        isAsStored = true
        restart(after: .unusable("it is too long to be read"))
    }

    private func findMembership() -> Membership? {
        let first: Int64? =
            switch wanted {
            case .bounded(let first, _), .from(let first): first
            case .suffix, nil: nil
            }
        let filler = filler.filler
        return handler.library.shelf.membership(of: route.url, at: first) { .seconds(filler.now()) }
    }

    /// Acts on the resolution of the resource.
    func act(on resolution: Resolution) {
        switch resolution {
        case .wait: exchange.onAbort = { [self] in abandon() }
        case .use(let generation, let stored, let use): self.use(generation, stored, use)
        case .validate(let generation, let freshness, let need): validate(generation, freshness, need)
        case .turn(let key):
            trace("switching to another variant (Vary)")
            outcome = .hit()
            resource = filler.filler.resource(key)
            proceed()
        case .replace(let generation):
            trace("what is cached is for one user, and this cache is shared")
            filler.filler.discard(generation, of: resource)
            proceed()
        case .open where route.isRecording, .bypass where route.isRecording:
            exchange.respond(404, text: "this recording is no longer cached; reelcache ls lists those that are")
        // The header of a playlist describes its rewritten text. A feed's name says less than its type (`passHead`).
        case .open where request.method == .head && StrayPage.isPlaylist(route.url): open(alone: false)
        case .bypass where request.method == .head && StrayPage.isPlaylist(route.url): open(alone: true)
        case .open where isOriginsHead, .bypass where isOriginsHead: passHead()
        case .open:
            trace("not cached")
            open(alone: false)
        case .bypass: open(alone: true)
        case .refuse: refuseRequest()
        }
    }

    var purpose: ResourceResolver.Purpose {
        .answer(directives, ttl: resolvedRule.ttl, isOffline: filler.isOffline || route.isRecording)
    }

    /// The request fields by which a variant was selected, with this request's values.
    func selection(of variant: Variant) -> Variant {
        variant.of(demand.sentFields, fingerprint: filler.filler.store.fingerprint)
    }

    /// The step to take instead if the opening fetch found a variant that other request fields selected; nil if it
    /// fits.
    private func turn(from generation: Generation) -> Resolution? {
        resolver.resolve(
            opened: generation, for: purpose, terms: resolvedRule.terms, isAuthorized: isAuthorized,
            selection: { selection(of: $0) })
    }

    func wake(_ body: @escaping @Sendable (MediaAnswer) -> Void) -> @Sendable () -> Void {
        let bound = LoopBound(self, on: exchange.loop)
        return { bound.post { if $0.exchange.isOpen { body($0) } } }
    }

    func restart(after error: FillError) {
        guard restarts < Self.maxRestarts else { return fail(error) }
        restarts += 1
        trace("restarting: \(error)")
        lookUnderItsKey()
        proceed()
    }

    /// Made when something is requested from the origin, or depends on what would be.
    lazy var demand = makeDemand(openingSpan)

    /// `Demand.isAuthorized`, for most requests without one.
    var isAuthorized: Bool { request.value(of: "Authorization") != nil && demand.isAuthorized }

    func makeDemand(_ span: ByteRangeSpec?) -> Demand {
        Demand(
            url: route.url, span: span, request: request, directives: directives, resolvedRule: resolvedRule,
            whole: membership?.whole, absence: absence, isTransparent: route.form.isTransparent,
            isForwarded: exchange.isForwarded, passesCookies: route.passesCookies,
            referrer: handler.referrer(of: exchange, route), client: exchange.countedClient)
    }

    /// A live segment that its origin does not have, or not yet, is not requested again for half of its duration,
    /// unless its playlist is updated before. A playlist may state any duration, and name what is not its own: no
    /// longer than half a minute.
    private var absence: (@Sendable () -> ExpectedAbsence?)? {
        guard let membership, let live = membership.live else { return nil }
        return { [shelf = handler.library.shelf] in
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
            if request.method == .get {
                wanted == nil
                    && (request.value(of: "If-None-Match") != nil || request.value(of: "If-Modified-Since") != nil)
            } else { request.method == .head && resolvedRule.resolver != nil }
        // A playlist or feed is read as a whole; and a part of one that changes each second would be of no use.
        guard isBeginning || wanted != nil, !isOfListing else { return nil }
        return isBeginning ? beginning : wanted
    }

    /// The first chunk.
    private var beginning: ByteRangeSpec {
        // no trap: a chunk has at least 4 KiB
        .bounded(first: 0, last: filler.filler.store.configuration.geometry.chunkSize - 1)
    }

    /// Whether the request is for a playlist, judging by its URL, or for a playlist or feed, judging by the stored
    /// generation. Large files are named like feeds, too (`dump.xml`).
    private var isOfListing: Bool {
        StrayPage.isPlaylist(route.url) || doubted?.generation.head.isCertainListing == true
    }

    // MARK: Opening

    func open(alone: Bool) {
        noteForward(alone ? .bypass : .uriMiss)
        follow(filler.open(resource, demand, follower: follower, alone: alone))
    }

    /// Notes why the origin is contacted; the first reason is the one reported.
    func noteForward(_ reason: CacheStatus.Forward) {
        if outcome.isHit { outcome = .forwarded(resolver.turns > 0 ? .varyMiss : reason) }
    }

    /// Requests the whole from the origin, for this client alone.
    private func openPlainly() {
        leaveOpening()
        guard demand.span != nil else { return fail(.unusable("it does not contain the requested bytes")) }
        demand = makeDemand(nil)
        open(alone: true)
    }

    /// Waits for the result of an opening fetch.
    func follow(_ opened: (SharedFetch, isCollapsed: Bool)?) {
        exchange.onAbort = { [self] in abandon() }
        guard let (status, isCollapsed) = opened else { return proceed() }
        (opening, interimsSent) = (status, 0)
        outcome.isCollapsed = isCollapsed
        trace(isCollapsed ? "joining a request that is under way to the origin" : "requesting it from the origin")
        awaitOpening()
    }

    private func awaitOpening() {
        guard exchange.isOpen, let status = opening else { return }
        noteOwn(status)
        guard exchange.isOpen else { return }
        switch status.opening {
        case .stored(let generation):
            if let alternative = alternative(to: generation, of: status) { return act(instead: alternative) }
            outcome.isStored = true
            note(status)
            return answer(from: generation, following: status)
        case .validated(let generation, let answer):
            // The generation was replaced during validation.
            guard !generation.isRetired else {
                leaveOpening()
                return restart(after: .changed)
            }
            if let alternative = alternative(to: generation, of: status) { return act(instead: alternative) }
            leaveOpening()
            outcome.forwardStatus = answer
            return accept(generation)
        case .passing(let generation, let owner, let part, let total)
        where owner == follower || isShared(generation, status):
            note(status)
            guard isEnough(part, of: total, generation) else { return openPlainly() }
            guard let part, total == nil else { return answer(from: generation, following: status) }
            return answer(fromPart: part, of: generation, following: status)
        case .passing:
            // The response was for the client that requested it.
            leaveOpening()
            return isOriginsHead ? passHead() : open(alone: true)
        case nil: break
        }
        if case .ended(let end, _) = status.view {
            leaveOpening()
            guard case .failed(let error) = end else {
                return restart(after: .unusable("it ended before the header was complete"))
            }
            return doubted == nil ? fail(error) : answerInDoubt(after: error)
        }
        guard beginWaiting() else {
            leaveOpening()
            return failSilent()
        }
        guard status.wait(follower, at: nil, wake: wake { $0.awaitOpening() }) else { return awaitOpening() }
        // Something may have come since it was looked at.
        noteOwn(status)
    }

    /// What to do instead of answering from what an opening has found; nil if it is the answer to this request. Whoever
    /// only waits for it shares it if it may be reused without validation (RFC 9111 §4, §5.2.2.4): its own directives
    /// (`no-cache`) are met, as it has just come.
    private func alternative(to generation: Generation, of fetch: SharedFetch) -> Resolution? {
        // The response may be a variant that does not fit this request.
        guard fetch.requester?.follower != follower else { return turn(from: generation) }
        let resolution = resolver.resolve(
            .generation(generation), for: .answer(RequestDirectives(), ttl: resolvedRule.ttl, isOffline: false),
            now: filler.filler.now(), instant: filler.filler.instant, terms: resolvedRule.terms,
            isAuthorized: isAuthorized, selection: { selection(of: $0) })
        return if case .use = resolution { nil } else { resolution }
    }

    private func act(instead resolution: Resolution) {
        leaveOpening()
        guard case .validate(let generation, let freshness, let need) = resolution else { return act(on: resolution) }
        // By a request of its own: one that waited for another's again would be told the same.
        validate(generation, freshness, need, alone: true)
    }

    /// Whether an answer that is not media holds for all waiting clients: it depends neither on their identity, nor on
    /// tokens in their URLs, nor on the requested range.
    private func isShared(_ generation: Generation, _ fetch: SharedFetch) -> Bool {
        guard let requester = fetch.requester, requester.url == route.text else { return false }
        let view = generation.snapshot, status = view.head.status, terms = resolvedRule.terms
        guard terms.kind == .private || !requester.isAuthorized else { return false }
        let directives = view.head.reading(terms).directives
        guard fetch.isKeptShort || directives.sharesError(status, in: terms.kind), view.head.variant.fields.isEmpty,
            request.method == .get, !directives.isForOneUser
        else { return false }
        // What begins a session may be meant for its client alone.
        if fetch.setsCookies, resolvedRule.terms.kind == .shared { return false }
        // It stays in memory for the slowest of them. A 204 has no body.
        guard let length = status == 204 ? 0 : view.length, length <= Self.longestSharedError else { return false }
        let fields = demand.sentFields
        return fields["Authorization"] == nil && fields["Cookie"] == nil
    }

    /// Whether a response that is passed through has all bytes that the answer needs. The part was requested
    /// before the validators and the length were known: the client's condition may require the whole (RFC 9110
    /// §13.1.5), and the requested part may extend beyond the end.
    private func isEnough(_ part: Range<Int64>?, of total: Int64?, _ generation: Generation) -> Bool {
        let head = generation.head
        guard let part else { return head.status != 416 || wanted != nil && request.value(of: "If-Range") == nil }
        guard Conditional.evaluate(request, against: head.validators) == .proceed else { return true }
        guard let wanted, Conditional.rangeApplies(request, against: head.validators) else {
            return total.map { part == Range(from: 0, upTo: $0) } ?? false
        }
        guard let total else { return true }
        return wanted.resolve(length: total).map { $0.clamped(to: part) == $0 } ?? true
    }

    /// Notes the origin's answer for `Cache-Status`.
    private func note(_ status: SharedFetch) {
        outcome.forwardStatus = status.answer
        if status.isKeptShort { outcome.isStored = true }
        if outcome.detail == nil { outcome.detail = status.passingReason?.rawValue }
    }

    func leaveOpening() {
        opening?.leave(follower)
        opening = nil
    }

    /// The client disconnected before the header was sent.
    func abandon() {
        endWaiting()
        leaveOpening()
        headFetch?.cancel()
        headFetch = nil
        reader?.finish()
        reader = nil
        leaveReading()
        leavePlaylist()
        whenKeptIsFound = nil
        isAnswered = true
    }

    func leavePlaylist() {
        if let playlistWaiter { library.leave(playlistWaiter) }
        playlistWaiter = nil
    }

    /// Stops fetching ahead for this request, as the player left before the end.
    private func leaveReading() {
        if let segmentReading { library.ahead.left(segmentReading) }
        segmentReading = nil
    }

    // MARK: The body

    func next(limit: Int) -> BodyStep {
        if let first = firstStep {
            firstStep = nil
            return first
        }
        guard let reader else { return .cut }
        if reader.offset >= itemMark { noteItem(reader) }
        let step = Self.bodyStep(reader.next(limit: limit))
        if case .wait = step, reader.onReady == nil { reader.onReady = { [exchange] in exchange.resume() } }
        return step
    }

    static func bodyStep(_ step: CacheReader.Step) -> BodyStep {
        switch step {
        case .bytes(let bytes, let descriptor, let offset):
            .span(BodySpan(bytes: bytes, file: descriptor.map { ($0, offset) }))
        case .wait: .wait
        case .end: .end
        case .failed: .cut
        }
    }

    func takeBack(_ count: Int) -> Bool { reader?.rewind(by: count) == true }

    /// Continues with the reader of the next of several ranges; nil after the last.
    func proceed(with next: CacheReader?) {
        lastReading = reading
        reader = next
    }

    func finish() {
        lastReading = reading
        if let reader {
            exchange.note(reader)
            noteItem(reader)
        }
        if reader?.remaining != 0 { leaveReading() }
        reader?.finish()
        reader = nil
    }
}

extension ResponseDirectives {
    /// Whether an error without a lifetime answers all who wait for it: it is no refusal of one of them and, if the
    /// cache is shared, a fault of its origin.
    fileprivate func sharesError(_ status: Int, in kind: CacheMode) -> Bool {
        guard status >= (kind == .shared ? 500 : 400), ![401, 403, 407, 416].contains(status) else { return false }
        return !stated.noStore && !stated.noCache && obeyed.maxAge != 0
    }
}
