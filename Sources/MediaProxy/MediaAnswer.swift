import Activity
import CacheFill
import CachePolicy
import DiskCache
import EventIO
import HTTPModel
import HTTPTransport
import Presentations
import Upstream

/// Answers one request for media. Loop-bound.
///
///     look up ── known ── may it be reused? ── yes ───────────────────────── answer from the generation ── body
///        │                    └── only if validated ────── validate ──────────┘ (unchanged)
///        └────── unknown ─────────────────────────────────────── open (fetch the range) ── answer from its bytes
///                                                                  └── not to be stored: pass it on
///
/// It is in one phase at a time, which holds what belongs to it.
final class MediaAnswer {
    let request: MediaRequest
    /// Its resource, and the fetch that opens it.
    private(set) var opening: Opening
    private var phase = Phase.looking
    /// The stored generation that needs validation: it serves the answer if its origin cannot be reached.
    private var doubted: Doubted? {
        didSet { request.validatesListing = doubted?.generation.head.isCertainListing == true }
    }
    /// Why a stored generation is served without the validation that it needs.
    private(set) var doubt: FillError?
    /// Whether a playlist or feed is sent as its origin has it.
    private(set) var isAsStored = false
    /// The remaining wait for the first byte.
    private(set) var patience = Patience.fresh

    private enum Phase {
        /// What is known of the resource is looked at, or its index is being read.
        case looking
        /// A fetch opens the resource, or validates what is stored; so many interim responses were passed on.
        case opening(interims: Int)
        case head(HeadAnswer)
        case playlist(PlaylistAnswer)
        case content(ContentAnswer)
        /// It was answered from memory, or is not answered any more.
        case over
    }

    init(_ request: MediaRequest) {
        self.request = request
        opening = Opening(request.route.key, request.follower, on: request.filler)
    }

    func start(in plays: LoopPlays) {
        request.explain()
        if let refusal = request.read() {
            request.proxy.metrics.errors.add(refusal.status == 400 ? "bad-request" : "refused")
            return request.exchange.respond(refusal.status, text: refusal.reason)
        }
        if case .get = request.head.method { plays.begin(self) }
        request.lookAhead()
        proceed()
    }

    // MARK: Phases

    /// It was answered from memory, or failed. A content phase stays after its answer, for what is shown of it.
    func end() {
        patience.end()
        phase = .over
    }

    /// The client disconnected before the head was sent.
    func abandon() {
        switch phase {
        case .looking, .over: break
        case .opening: leaveOpening()
        case .head(let head): head.cancel()
        case .playlist(let playlist): playlist.leave()
        case .content(let content): content.finishReader()
        }
        request.leaveReading()
        end()
    }

    var playlist: PlaylistAnswer? { if case .playlist(let playlist) = phase { playlist } else { nil } }

    /// Whether it waits for the origin.
    var isStarved: Bool { content?.reader?.isWaiting ?? !request.exchange.isAnswered }

    /// nil in other phases.
    var content: ContentAnswer? { if case .content(let content) = phase { content } else { nil } }

    // MARK: Looking

    /// Proceeds as far as possible without waiting. Called again when the resource's state changes.
    private func proceed() {
        guard request.exchange.isOpen else { return }
        if request.resolvedRule.bypasses {
            return act(on: request.directives.control.onlyIfCached ? .refuse : .bypass(.rule))
        }
        let resolution = opening.look(for: request, wake: wake { $0.proceed() })
        guard let short = short(insteadOf: resolution) else { return act(on: resolution) }
        end()
        request.respond(with: short, key: opening.resource.key)
    }

    private func act(on resolution: Resolution) {
        switch resolution {
        case .wait: request.exchange.onAbort { [self] in abandon() }
        case .use(let generation, let stored, let use): self.use(generation, stored, use)
        case .validate(let generation, let freshness, let need): validate(generation, freshness, need)
        case .turn(let key, let kept):
            request.trace("switching to another variant (Vary)")
            if let kept { doubted = Doubted(generation: kept, freshness: request.freshness(of: kept)) }
            request.outcome = .hit()
            opening.turn(to: key)
            proceed()
        case .replace(let generation):
            request.trace("what is cached is for one user, and this cache is shared")
            request.filler.filler.discard(generation, of: opening.resource)
            proceed()
        case .open where request.route.isRecording, .bypass where request.route.isRecording:
            end()
            request.exchange.respond(404, text: "this recording is no longer cached; reelcache ls lists those that are")
        // The head of a playlist describes its rewritten text. A feed's name says less than its type (`passHead`).
        case .open where isPlaylistsHead: open(alone: false)
        case .bypass where isPlaylistsHead: open(alone: true)
        case .open where request.isOriginsHead, .bypass where request.isOriginsHead: passHead()
        case .open:
            request.trace("not cached")
            open(alone: false)
        case .bypass: open(alone: true)
        case .refuse:
            end()
            request.refuse()
        }
    }

    private var isPlaylistsHead: Bool { request.head.method == .head && StrayPage.isPlaylist(request.route.url) }

    private func wake(_ body: @escaping @Sendable (MediaAnswer) -> Void) -> @Sendable () -> Void {
        let bound = LoopBound(self, on: request.exchange.loop)
        return { bound.post { if $0.request.exchange.isOpen { body($0) } } }
    }

    func restart(after error: FillError) {
        let former = opening.resource
        guard opening.restart(request.route.url, request.resolvedRule) else { return fail(error) }
        request.trace("restarting: \(error)")
        phase = .looking
        // What was validated is not of the page that has the media.
        if opening.resource !== former { (doubted, request.outcome) = (nil, .hit()) }
        proceed()
    }

    /// A short response that may be used, if no media is stored.
    private func short(insteadOf resolution: Resolution) -> ShortResponse? {
        switch resolution {
        case .open, .refuse: break
        case .wait, .use, .validate, .turn, .replace, .bypass: return nil
        }
        guard !request.route.isRecording, let found = request.short(under: opening.resource.key) else { return nil }
        let (short, freshness) = found
        let directives = short.head.reading(request.resolvedRule.terms).directives
        switch Reuse.decide(
            request.directives, response: directives.obeyed, freshness, isOffline: request.filler.origins.isOffline)
        {
        case .fresh: break
        case .stale(revalidates: false): request.proxy.metrics.stale.add()
        case .validate(let need):
            noteForward(need == .stale ? .stale : .request)
            return nil
        // It costs little to fetch it again.
        case .stale(revalidates: true):
            noteForward(.stale)
            return nil
        case .gatewayTimeout: return nil
        }
        request.trace("stored: \(short.head.status), fresh for \(freshness.remaining) s")
        request.outcome = .hit(
            ttl: freshness.remaining, detail: request.filler.origins.isOffline && !freshness.isFresh ? "offline" : nil)
        return short
    }

    // MARK: Opening

    private func open(alone: Bool) {
        noteForward(alone ? .bypass : .uriMiss)
        follow(opening.open(request.demand, alone: alone))
    }

    /// Notes why the origin is contacted; the first reason is the one reported.
    func noteForward(_ reason: CacheStatus.Forward) {
        if request.outcome.isHit { request.outcome = .forwarded(opening.resolver.turns > 0 ? .varyMiss : reason) }
    }

    /// Requests the whole from the origin, for this client alone.
    private func openPlainly() {
        leaveOpening()
        guard request.demand.span != nil else { return fail(.unusable("it does not contain the requested bytes")) }
        request.demand = request.makeDemand(nil)
        open(alone: true)
    }

    /// Fetches a playlist or feed, that a HEAD has shown to be one.
    func fetchListing(validating validated: Generation?) {
        guard let validated, !validated.isRetired else { return open(alone: request.resolvedRule.bypasses) }
        follow(opening.open(request.demand, validating: validated))
    }

    /// Waits for the result of an opening fetch.
    /// - Parameter isCollapsed: whether another request had begun it; nil if there is none.
    private func follow(_ isCollapsed: Bool?) {
        request.exchange.onAbort { [self] in abandon() }
        guard let isCollapsed else {
            phase = .looking
            return proceed()
        }
        phase = .opening(interims: 0)
        request.outcome.isCollapsed = isCollapsed
        request.trace(
            isCollapsed ? "joining a request that is under way to the origin" : "requesting it from the origin")
        awaitOpening()
    }

    private func awaitOpening() {
        guard request.exchange.isOpen, case .opening = phase else { return }
        let outcome = opening.outcome(orWake: wake { $0.awaitOpening() })
        passOwn()
        guard request.exchange.isOpen else { return }
        switch outcome {
        case .found(let found, let status): return opened(found, by: status)
        case .failed(let error):
            leaveOpening()
            return answerInDoubt(after: error)
        case .stopped(let error):
            leaveOpening()
            return restart(after: error)
        case nil: break
        }
        guard beginWaiting() else {
            leaveOpening()
            return failSilent()
        }
    }

    /// Passes on what has come for this client alone.
    private func passOwn() {
        guard request.route.passesCookies, case .opening(var interims) = phase, let fetch = opening.fetch else {
            return
        }
        request.passOwn(fetch, after: &interims)
        if case .opening = phase { phase = .opening(interims: interims) }
    }

    /// Acts on what an opening has found.
    private func opened(_ found: Opened, by status: SharedFetch) {
        switch found {
        case .stored(let generation):
            if let alternative = opening.alternative(to: generation, for: request) { return act(instead: alternative) }
            request.outcome.isStored = true
            request.note(status)
            opening.handOver()
            answer(from: generation, following: status)
        case .validated(let generation, let answer):
            // The generation was replaced during validation.
            guard !generation.isRetired else {
                leaveOpening()
                return restart(after: .changed)
            }
            if let alternative = opening.alternative(to: generation, for: request) { return act(instead: alternative) }
            leaveOpening()
            request.outcome.forwardStatus = answer
            accept(generation)
        case .passing(let generation, let owner, let part, let total)
        where owner == request.follower || request.shares(generation, of: status):
            request.note(status)
            let view = generation.snapshot
            guard request.isEnough(part, of: total, view.head, request.isListing(generation, view, isAsStored)) else {
                return openPlainly()
            }
            opening.handOver()
            guard let part, total == nil else { return answer(from: generation, as: view, following: status) }
            let content = ContentAnswer(self, generation, view)
            phase = .content(content)
            content.start(with: part, for: self, following: status)
        case .passing:
            // The response was for the client that requested it.
            leaveOpening()
            request.isOriginsHead ? passHead() : open(alone: true)
        }
    }

    private func act(instead resolution: Resolution) {
        leaveOpening()
        guard case .validate(let generation, let freshness, let need) = resolution else { return act(on: resolution) }
        // By a request of its own: one that waited for another's again would be told the same.
        validate(generation, freshness, need, alone: true)
    }

    private func leaveOpening() {
        guard case .opening = phase else { return }
        opening.leave()
        phase = .looking
    }

    /// Passes a HEAD to the origin.
    /// - Parameter validated: the stored generation to validate; nil if there is none.
    func passHead(validating validated: Generation? = nil) {
        let head = HeadAnswer(self, validating: validated)
        phase = .head(head)
        head.start()
    }

    // MARK: Using what is stored

    private func use(_ generation: Generation, _ stored: Generation.Snapshot, _ use: Resolution.Use) {
        switch use {
        case .anyway: break
        case .fresh(let freshness):
            request.trace(stored: stored, freshness)
            request.outcome = .hit(ttl: freshness.remaining)
        case .stale(let freshness, let revalidates):
            request.trace(stored: stored, freshness)
            request.outcome = .hit(
                ttl: freshness.remaining,
                detail: request.filler.origins.isOffline ? "offline" : revalidates ? "revalidating" : nil)
            request.countStale()
            if revalidates { request.filler.revalidate(generation, opening.resource, request.demand) }
        }
        answer(from: generation, as: stored)
    }

    /// - Parameter alone: do not wait for another request's validation.
    func validate(_ generation: Generation, _ freshness: Freshness, _ need: Reuse.Need, alone: Bool = false) {
        request.trace(stored: generation.snapshot, freshness)
        let doubted = Doubted(generation: generation, freshness: freshness)
        self.doubted = doubted
        request.outcome = .forwarded(need == .stale ? .stale : .request)
        // The host was unreachable a moment ago, so the client need not wait for another failure.
        if request.filler.filler.backoff.isDown(request.route.text, beside: request.resolvedRule.parents),
            doubted.verdict(on: request, isDisconnected: true) == .serve
        {
            let filler = request.filler.filler, host = request.route.url.host
            if filler.returnsToFormer(of: generation, in: opening.resource) { return restart(after: .changed) }
            return answerInDoubt(
                after: .upstream(.cannotConnect(host: host, detail: "it could not be reached a moment ago")))
        }
        guard request.isOriginsHead else {
            return follow(opening.open(request.demand, validating: generation, alone: alone))
        }
        // A validation is already under way.
        if !alone, opening.join() { return follow(true) }
        passHead(validating: generation)
    }

    /// Answers from a generation that was validated, or that serves in spite of an error.
    func accept(_ generation: Generation) {
        guard !generation.isRetired else { return restart(after: .changed) }
        opening.resolver.accepted = generation
        if !request.isCounted, request.outcome.forwardStatus != nil { request.proxy.metrics.validated.add() }
        answer(from: generation)
    }

    /// Whether a generation was validated for this answer, or serves it in spite of an error.
    func accepts(_ generation: Generation) -> Bool { opening.resolver.accepted === generation }

    /// Fails, or answers with what is stored: its origin could not be reached, or answered with an error.
    func answerInDoubt(after error: FillError) {
        guard let doubted, !doubted.generation.isRetired else { return fail(error) }
        if case .originStatus(let status) = error { request.outcome.forwardStatus = status }
        switch doubted.verdict(on: request, isDisconnected: request.outcome.forwardStatus == nil) {
        case .serve: break
        // The page is the only answer from that network, and of use to a client that can show it: a browser behind
        // a captive portal.
        case .refusedByOrigin where error.isStrayPage, .refusedByRequest where error.isStrayPage: return passPage()
        // RFC 9111 §5.2.2.2
        case .refusedByOrigin: return fail(error, status: 504, advice: doubted.advice(request.resolvedRule))
        case .refusedByRequest:
            return fail(
                error, status: 504, advice: "it is cached, but staler than the request allows (stale-if-error)")
        }
        doubt = error
        request.outcome.ttl = doubted.freshness.remaining
        request.outcome.detail = error.kind.rawValue
        opening.resolver.accepted = doubted.generation
        request.countStale()
        answer(from: doubted.generation)
    }

    /// Passes on the page that arrived in place of media, without storing it.
    private func passPage() {
        request.outcome.detail = FailureKind.page.rawValue
        request.isOriginsHead ? passHead() : open(alone: true)
    }

    // MARK: Answering

    /// - Parameters:
    ///   - view: a recent snapshot of the generation; nil to take one now.
    ///   - status: the fetch that delivers it.
    func answer(from generation: Generation, as view: Generation.Snapshot? = nil, following status: SharedFetch? = nil)
    {
        let view = view ?? generation.snapshot
        if request.isListing(generation, view, isAsStored) {
            let playlist = PlaylistAnswer(self, generation, isNews: status != nil)
            phase = .playlist(playlist)
            return playlist.start(view, following: status)
        }
        let content = ContentAnswer(self, generation, view)
        phase = .content(content)
        content.start(for: self, following: status)
    }

    /// Answers with a playlist or feed that was recognized by its first bytes.
    func answerListing(_ generation: Generation, beginning: UnsafeRawBufferPointer, by reader: CacheReader) {
        let playlist = PlaylistAnswer(self, generation, isNews: !request.outcome.isHit)
        phase = .playlist(playlist)
        playlist.start(after: beginning, by: reader)
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

    /// - Parameters:
    ///   - status: replaces the error's own status.
    ///   - advice: what the client can do about the error.
    func fail(_ error: FillError, status: Int? = nil, advice: String? = nil) {
        end()
        request.fail(error, status: status, advice: advice)
    }

    // MARK: Waiting for the first byte

    /// Starts the timer, as the first byte depends on an origin from here on.
    /// - Returns: whether the player may wait for it.
    func beginWaiting() -> Bool {
        patience.begin(doubted?.wait(for: request) ?? request.usualWait, on: request.exchange.loop) { [unowned self] in
            losePatience()
        }
    }

    private func losePatience() {
        patience = .spent
        guard request.exchange.isOpen else { return }
        // Read while the fetch is still followed.
        let silence = silence
        switch phase {
        case .opening: leaveOpening()
        case .playlist(let playlist) where playlist.isWaiting: playlist.leave()
        case .content(let content) where content.reader?.isFollowing == true:
            content.finishReader()
            return failSilent(silence)
        case .looking, .head, .playlist, .content, .over: return
        }
        doubted == nil ? failSilent(silence) : answerInDoubt(after: silence)
    }

    /// Answers that the origin is silent.
    func failSilent(_ silence: FillError? = nil) {
        let silence = silence ?? self.silence
        request.proxy.metrics.errors.add(silence.kind.rawValue)
        fail(silence)
    }

    /// The timeout of the fetch that this answer follows, which often runs for other requests as well.
    private var silence: FillError {
        let phase: UpstreamError.Phase? =
            switch phase {
            case .opening: opening.fetch?.phase
            case .content(let content): content.reader?.followedPhase
            case .looking, .head, .playlist, .over: nil
            }
        return .upstream(.timedOut(host: request.route.url.host, phase: phase ?? .response))
    }
}
