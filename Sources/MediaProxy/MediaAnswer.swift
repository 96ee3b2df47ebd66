import CacheFill
import CachePolicy
import DiskCache
import EventIO
import HTTPModel
import HTTPTransport
import Metrics
import Presentations
import Upstream

/// One request for media on its way to its answer, and then the answer's body. Loop-bound.
///
///     look up ── known ── may it be reused? ── yes ───────────────────── answer from the generation ── body
///        │                    └── once its origin has said so ── validate ──┘ (still holds)
///        └────── unknown ─────────────────────────────────────── open (fetch what is wanted) ── answer from what came
///                                                                  └── not to be stored: pass on
final class MediaAnswer: BodySource {
    let exchange: Exchange
    let request: RequestHead
    let route: Route
    let handler: MediaHandler
    private(set) var directives: RequestDirectives
    let follower = FollowerID()
    /// The resource that is asked for; another one where its origin chooses by further fields of the request.
    var resource: OpenResource
    var resolver: ResourceResolver
    var wanted: ByteRangeSpec?
    /// All ranges, where the client asked for several; `wanted` is the one to begin with at the origin.
    private(set) var several: [ByteRangeSpec] = []
    var opening: SharedFetch?
    var headFetch: HeadFetch?
    var reader: CacheReader?
    /// The first bytes, asked for before the head goes out: when they cannot be had, the answer is an error instead.
    var firstStep: BodyStep?
    var outcome = CacheStatus.hit()
    /// What is stored and may no longer hold: it answers where its origin cannot tell.
    var doubted: (generation: Generation, freshness: Freshness)?
    /// Why what is stored is given out although it may no longer hold.
    var doubt: FillError?
    /// Its playlist is given out as it is stored.
    private(set) var isAsStored = false
    /// While a playlist is being read for it.
    var playlistWaiter: PlaylistLibrary.Waiter?
    /// Of a playlist, what is left in it: its origin cannot be asked for the rest. Nil for all.
    var kept: PlaylistForm.Kept?
    var whenKeptIsFound: (() -> Void)?
    /// Given out of memory.
    var isAnswered = false
    /// To what it belongs, where a playlist names it.
    private(set) lazy var membership = findMembership()
    /// For which the next segments are fetched.
    private var reading: Reading?
    /// How long it waits yet for the first byte.
    var patience = Patience.fresh
    /// A generation may be replaced while its first byte is awaited: then the answer is given from the next one.
    private var restarts = 0
    /// Each request counts once, however often it starts anew.
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
                403, text: "a page of another site is not told what is cached: list its origin in web_origins")
        }
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
        // What a playlist names does not change, whatever players send by habit.
        if resolvedRule.ignoresReload ?? (membership?.isPlaylist == false) { directives = directives.ignoringReload }
        lookAhead()
        proceed()
    }

    /// What comes after the segment that is asked for is wanted soon: it is begun when this request has begun.
    private func lookAhead() {
        guard request.method == .get, let membership, membership.place != nil else { return }
        let player = PlayerID(address: exchange.clientHost, agent: request.value(of: "User-Agent"))
        reading = handler.library.ahead.reads(membership, by: player, demand, on: filler)
    }

    /// Whether a page of another site asks for what only the cache can answer: by whether it does, it would learn what
    /// was watched.
    private var isProbe: Bool {
        (directives.control.onlyIfCached || filler.isOffline) && Requester(request, handler.policy.webOrigins).isForeign
    }

    /// As far as it goes without waiting. Called again when there is news.
    func proceed() {
        guard exchange.isOpen else { return }
        if resolvedRule.bypasses { return act(on: directives.control.onlyIfCached ? .refuse : .bypass(.rule)) }
        let view = filler.filler.look(at: resource, wake: wake { $0.proceed() })
        act(
            on: resolver.resolve(
                view, for: purpose, now: filler.filler.now(), instant: filler.filler.instant,
                selection: { selection(of: $0) }))
    }

    /// The playlist leads where it should: it goes out like any file.
    func answer(fromFile generation: Generation) {
        isAsStored = true
        answer(from: generation)
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

    /// Does what is to be done by what is known of the resource.
    func act(on resolution: Resolution) {
        switch resolution {
        case .wait: exchange.onAbort = { [self] in abandon() }
        case .use(let generation, let stored, let use): self.use(generation, stored, use)
        case .validate(let generation, let freshness, let need): validate(generation, freshness, need)
        case .turn(let key):
            trace("another selection by Vary")
            outcome = .hit()
            resource = filler.filler.resource(key)
            proceed()
        case .open where route.isRecording, .bypass where route.isRecording:
            exchange.respond(404, text: "this recording is not cached any more; reelcache ls lists those that are")
        // The head of a playlist is that of the text which is made of it.
        case .open where request.method == .head && StrayPage.isPlaylist(route.url): open(alone: false)
        case .bypass where request.method == .head && StrayPage.isPlaylist(route.url): open(alone: true)
        case .open where request.method == .head, .bypass where request.method == .head: passHead()
        case .open:
            trace("nothing of it is known")
            open(alone: false)
        case .bypass: open(alone: true)
        case .refuse: refuseToAsk()
        }
    }

    var purpose: ResourceResolver.Purpose {
        .answer(directives, ttl: resolvedRule.ttl, isOffline: filler.isOffline || route.isRecording)
    }

    /// The fields by which a variant was chosen, as this request has them.
    func selection(of variant: Variant) -> Variant {
        variant.of(demand.sentFields, fingerprint: filler.filler.store.fingerprint)
    }

    /// What is to be done instead where an opening has found what was chosen by other fields than this request's.
    private func turn(from generation: Generation) -> Resolution? {
        resolver.resolve(opened: generation, for: purpose, selection: { selection(of: $0) })
    }

    func wake(_ body: @escaping @Sendable (MediaAnswer) -> Void) -> @Sendable () -> Void {
        let bound = LoopBound(self, on: exchange.loop)
        return { bound.post { if $0.exchange.isOpen { body($0) } } }
    }

    func restart(after error: FillError) {
        guard restarts < Self.maxRestarts else { return fail(error) }
        restarts += 1
        trace("begins anew: \(error)")
        proceed()
    }

    lazy var demand = makeDemand(openingSpan)

    func makeDemand(_ span: ByteRangeSpec?) -> Demand {
        Demand(
            url: route.url, span: span, request: request, directives: directives, resolvedRule: resolvedRule,
            whole: membership?.whole, isTransparent: route.form.isTransparent,
            passesCookies: route.passesCookies, referrer: handler.referrer(of: exchange, route))
    }

    /// Whoever has a copy already probably needs no more than to hear that it still holds: the rest is fetched if not.
    private var openingSpan: ByteRangeSpec? {
        // It is read as a whole; and of one that changes each second a part would be nobody's.
        guard !isOfPlaylist else { return nil }
        guard wanted == nil, request.method == .get,
            request.value(of: "If-None-Match") != nil || request.value(of: "If-Modified-Since") != nil
        else {
            return wanted
        }
        // no trap: a chunk has at least 4 KiB
        return .bounded(first: 0, last: filler.filler.store.configuration.geometry.chunkSize - 1)
    }

    /// Whether a playlist is asked for, by its URL or by what is stored.
    private var isOfPlaylist: Bool {
        StrayPage.isPlaylist(route.url) || doubted?.generation.head.isCertainPlaylist == true
    }

    // MARK: Unknown

    func open(alone: Bool) {
        noteForward(alone ? .bypass : .uriMiss)
        follow(filler.open(resource, demand, follower: follower, alone: alone))
    }

    /// Why the origin is asked; the first reason is the one that is told.
    func noteForward(_ reason: CacheStatus.Forward) {
        if outcome.isHit { outcome = .forwarded(resolver.turns > 0 ? .varyMiss : reason) }
    }

    /// Asks the origin for this request alone, and for the whole.
    private func openPlainly() {
        leaveOpening()
        guard demand.span != nil else { return fail(.unusable("it does not bring what was asked for")) }
        demand = makeDemand(nil)
        open(alone: true)
    }

    /// Waits for what an opening fetch finds.
    func follow(_ opened: (SharedFetch, isCollapsed: Bool)?) {
        exchange.onAbort = { [self] in abandon() }
        guard let (status, isCollapsed) = opened else { return proceed() }
        opening = status
        outcome.isCollapsed = isCollapsed
        trace(isCollapsed ? "joins a request that is under way to the origin" : "asks the origin")
        awaitOpening()
    }

    private func awaitOpening() {
        guard exchange.isOpen, let status = opening else { return }
        switch status.opening {
        case .stored(let generation):
            // What came for another request may have been chosen by fields that this one has not.
            if let turn = turn(from: generation) {
                leaveOpening()
                return act(on: turn)
            }
            outcome.isStored = true
            note(status)
            return answer(from: generation, following: status)
        case .validated(let generation, let answer):
            leaveOpening()
            // Replaced while the question was on its way, or chosen for another.
            guard !generation.isRetired else { return restart(after: .changed) }
            if let turn = turn(from: generation) { return act(on: turn) }
            outcome.forwardStatus = answer
            return accept(generation)
        case .passing(let generation, let owner, let part, let total)
        where owner == follower || isSharedError(generation):
            note(status)
            guard isEnough(part, of: total, generation) else { return openPlainly() }
            guard let part, total == nil else { return answer(from: generation, following: status) }
            return answer(fromPart: part, of: generation, following: status)
        case .passing:
            // What came was for the one who asked.
            leaveOpening()
            return request.method == .head ? passHead() : open(alone: true)
        case nil: break
        }
        if case .ended(let end, _) = status.view {
            leaveOpening()
            guard case .failed(let error) = end else { return restart(after: .unusable("it ended before its head")) }
            return doubted == nil ? fail(error) : answerInDoubt(after: error)
        }
        guard beginWaiting() else {
            leaveOpening()
            return failSilent()
        }
        if !status.wait(follower, at: nil, wake: wake { $0.awaitOpening() }) { awaitOpening() }
    }

    /// Whether an origin's error is one for all who wait: it has looked neither at who they are nor at what part they
    /// want.
    private func isSharedError(_ generation: Generation) -> Bool {
        let view = generation.snapshot, status = view.head.status
        guard status >= 400, status != 416, view.head.variant.isEmpty, request.method == .get else { return false }
        // It is kept for the slowest of them.
        guard let length = view.length, length <= Self.longestSharedError else { return false }
        let fields = demand.sentFields
        return fields["Authorization"] == nil && fields["Cookie"] == nil
    }

    /// Whether what passes by has all that the answer needs. A part was asked for by what was known before: the
    /// client's condition may want the whole (RFC 9110 §13.1.5), and more than one wants may have been asked for than
    /// there is.
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

    /// What the origin's answer means for `Cache-Status`.
    private func note(_ status: SharedFetch) {
        outcome.forwardStatus = status.answer
        if outcome.detail == nil { outcome.detail = status.passingReason?.rawValue }
    }

    func leaveOpening() {
        opening?.leave(follower)
        opening = nil
    }

    /// The client went away before the head.
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

    /// The player has gone before the end.
    private func leaveReading() {
        if let reading { library.ahead.left(reading) }
        reading = nil
    }

    // MARK: The body

    func next(limit: Int) -> BodyStep {
        if let first = firstStep {
            firstStep = nil
            return first
        }
        guard let reader else { return .cut }
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

    func spanWasUnreadable() {
        reader?.dropLast()
    }

    func finish() {
        if let reader { exchange.note(reader) }
        if reader?.remaining != 0 { leaveReading() }
        reader?.finish()
        reader = nil
    }
}

extension Exchange {
    /// Adds what a reader has given to what the answer is made of.
    func note(_ reader: CacheReader) {
        bytesFromCache +|= reader.given.stored
        bytesFromOrigin +|= reader.given.fetched
    }
}
