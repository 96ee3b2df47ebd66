import CacheFill
import CachePolicy
import DiskCache
import HTTPModel
import HTTPTransport
import Upstream

/// Decides whether a stored response may be used, and validates it with the origin (RFC 9111 §4).
extension MediaAnswer {
    func use(_ generation: Generation, _ stored: Generation.Snapshot, _ use: Resolution.Use) {
        switch use {
        case .anyway: break
        case .fresh(let freshness):
            trace(stored: stored, freshness)
            outcome = .hit(ttl: freshness.remaining)
        case .stale(let freshness, let revalidates):
            trace(stored: stored, freshness)
            outcome = .hit(
                ttl: freshness.remaining, detail: filler.isOffline ? "offline" : revalidates ? "revalidating" : nil)
            countStale()
            if revalidates { filler.revalidate(generation, resource, demand) }
        }
        answer(from: generation, as: stored)
    }

    /// The resolver may have found that another page has the same media, which is cached under that one's key.
    func lookUnderItsKey() {
        guard resolvedRule.resolver != nil else { return }
        let key = handler.policy.resolve(route.url).key
        guard !resource.key.isOf(key) else { return }
        (resource, resolver) = (handler.filler.filler.resource(key), ResourceResolver(key))
        // What was validated is not this page's.
        (doubted, outcome) = (nil, .hit())
    }

    // MARK: Validation

    /// - Parameter alone: do not wait for another request's validation.
    func validate(_ generation: Generation, _ freshness: Freshness, _ need: Reuse.Need, alone: Bool = false) {
        trace(stored: generation.snapshot, freshness)
        doubted = (generation, freshness)
        outcome = .forwarded(need == .stale ? .stale : .request)
        // The host was unreachable a moment ago, so the client need not wait for another failure.
        if filler.filler.backoff.isDown(route.text),
            verdict(on: generation, freshness, isDisconnected: true) == .serve
        {
            return answerInDoubt(
                after: .upstream(.cannotConnect(host: route.url.host, detail: "it could not be reached a moment ago")))
        }
        guard !isOriginsHead else { return validateByHead(generation, alone: alone) }
        follow(filler.open(resource, demand, validating: generation, follower: follower, alone: alone))
    }

    private func validateByHead(_ generation: Generation, alone: Bool) {
        // A validation is already under way.
        if !alone, let status = resource.joinOpening(follower) { return follow((status, isCollapsed: true)) }
        passHead(validating: generation)
    }

    /// Answers from a generation that was validated, or that serves in spite of an error.
    func accept(_ generation: Generation) {
        guard !generation.isRetired else { return restart(after: .changed) }
        resolver.accepted = generation
        if !isCounted, outcome.forwardStatus != nil { handler.metrics.validated.add() }
        answer(from: generation)
    }

    /// Handles a validation that failed: the origin could not be reached, or answered with an error.
    func answerInDoubt(after error: FillError) {
        guard let (generation, freshness) = doubted, !generation.isRetired else { return fail(error) }
        if case .originStatus(let status) = error { outcome.forwardStatus = status }
        switch verdict(on: generation, freshness, isDisconnected: outcome.forwardStatus == nil) {
        case .serve: break
        // The page is the only answer from that network, and of use to a client that can show it: a browser behind
        // a captive portal.
        case .refusedByOrigin where error.isStrayPage, .refusedByRequest where error.isStrayPage: return passPage()
        // RFC 9111 §5.2.2.2
        case .refusedByOrigin: return fail(error, status: 504, advice: Self.adviceOnStale(generation, resolvedRule))
        case .refusedByRequest:
            return fail(
                error, status: 504, advice: "it is cached, but staler than the request allows (stale-if-error)")
        }
        doubt = error
        outcome.ttl = freshness.remaining
        outcome.detail = error.kind.rawValue
        resolver.accepted = generation
        countStale()
        answer(from: generation)
    }

    private func verdict(on generation: Generation, _ freshness: Freshness, isDisconnected: Bool) -> Reuse.OnError {
        let view = generation.snapshot
        return Reuse.onError(
            directives, response: view.head.reading(resolvedRule.terms).directives.obeyed, freshness,
            isDisconnected: isDisconnected,
            resolvedRule.stalePlay, isKept: view.isKept)
    }

    /// What lets the user play the cached response anyway.
    private static func adviceOnStale(_ generation: Generation, _ resolvedRule: ResolvedRule) -> String {
        let directives = generation.head.reading(resolvedRule.terms).directives
        let rule = directives.ruleAgainstStale ?? "\(directives.source): stale-if-error"
        let pin = resolvedRule.stalePlay == .kept ? "pin it, " : ""
        return "it is cached, but its origin requires validation first (\(rule)). "
            + "To play it anyway, \(pin)set play_stale: true in a rule, or start the proxy with --offline"
    }

    /// Passes on the page that arrived in place of media, without storing it.
    private func passPage() {
        outcome.detail = FailureKind.page.rawValue
        isOriginsHead ? passHead() : open(alone: true)
    }

    private func countStale() {
        if !isCounted { handler.metrics.stale.add() }
    }

    /// RFC 9111 §5.2.1.7
    func refuseRequest() {
        outcome = CacheStatus(detail: "only-if-cached")
        exchange.respond(
            504, text: "not cached, and the request allows only cached responses (Cache-Control: only-if-cached)"
        ) { [outcome] response in
            response.cacheStatus(outcome)
        }
    }

    // MARK: HEAD

    /// Whether the request is a HEAD that the origin can answer. The addresses that a resolver finds are often for GET
    /// alone.
    var isOriginsHead: Bool { request.method == .head && resolvedRule.resolver == nil }

    /// - Parameter validated: the stored generation to validate; nil if there is none.
    func passHead(validating validated: Generation? = nil) {
        exchange.onAbort = { [self] in abandon() }
        if validated == nil {
            noteForward(resolvedRule.bypasses ? .bypass : .uriMiss)
            if !isCounted { handler.metrics.misses.add() }
            isCounted = true
        }
        let requestedAt = filler.filler.now()
        headFetch = filler.head(demand, validating: validated, report: { [self] in passOn($0) }) { [self] result in
            headFetch = nil
            switch result {
            case .success(let head): received(head, validating: validated, requestedAt: requestedAt)
            case .failure(let error): validated == nil ? fail(error) : answerInDoubt(after: error)
            }
        }
        if headFetch == nil {
            handler.metrics.errors.add(FailureKind.offline.rawValue)
            fail(.offline)
        }
    }

    private func received(_ head: UpstreamHead, validating validated: Generation?, requestedAt: Int64) {
        outcome.forwardStatus = head.status
        if route.passesCookies { cookies = head.fields.cookies(from: head.finalURL, for: route.url) }
        if let validated {
            switch head.status {
            case 200 where head.replacesMedia(validated.head.fields, demand):
                outcome.forwardStatus = nil
                return answerInDoubt(after: .strayPage(type: StrayPage.pageType(head.fields) ?? ""))
            case 200, 304:
                if filler.filler.judge(validated, byHead: head, demand, requestedAt: requestedAt) {
                    return accept(validated)
                }
                // The 304 is about a version that is not cached.
                if head.status == 304 { return passHead() }
            case let status where Reuse.isError(status: status): return answerInDoubt(after: .originStatus(status))
            case let status where Reuse.isGone(status: status): filler.filler.discard(validated, of: resource)
            default: break
            }
        }
        // A GET would get the rewritten text of this playlist or feed, so it has to be fetched.
        if mayBeRewritten(head) {
            guard let validated, !validated.isRetired else { return open(alone: resolvedRule.bypasses) }
            return follow(
                filler.open(resource, demand, validating: validated, follower: follower, alone: false))
        }
        var fields = head.fields
        fields.removeUnfitForClients()
        fields.remove("Content-Range")
        var response = Response(head.status, length: head.contentLength)
        let site = fields.takeSiteFields()
        response.fields(fields)
        addCookies(to: &response)
        handler.addFormFields(
            site, ContentSafety(head.fields), isPublic: head.isFromPublicAddress, route, for: request, to: &response)
        response.hasDate = fields["Date"] != nil
        let age = ResponseTimes(head.fields, requestedAt: requestedAt, receivedAt: filler.filler.now()).initialAge
        if age > 0 { response.field("Age", min(age, 1 << 31)) }
        response.cacheStatus(outcome)
        exchange.respond(response)
    }
}
