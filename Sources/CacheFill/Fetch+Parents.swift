import CachePolicy
import EventIO
import HTTPModel
import Upstream

/// Parents: other caches that are asked before the origin. What a parent does wrong leads to the next one, or to the
/// origin, at once and also midway; the client does not notice.
extension Fetch {
    /// Records what an answer says about whoever gave it.
    /// - Returns: whether it is the origin's answer, perhaps from a cache; if not, somebody else has been asked.
    func isAnswerOfOrigin(_ head: UpstreamHead) -> Bool {
        guard let parent = request.parents.requested else {
            filler.backoff.note(head, requesting: request.url)
            return true
        }
        parentTimer = nil
        if filler.isOrigins(head, from: parent, requesting: request.url) { return true }
        failOrRetry(.unusable("\(parent.text) answered \(head.status)"), isTransient: AnswerIntake.isTransient(head))
        return false
    }

    /// Records a failed request.
    func note(_ error: UpstreamError) {
        guard let parent = request.parents.requested else { return filler.backoff.note(error, requesting: request.url) }
        if error.isOfPeer { filler.backoff.failed(parent) }
    }

    /// Asks somebody else if a parent has failed.
    /// - Returns: whether the failure is dealt with.
    func turnsFromParent(after error: FillError) -> Bool {
        parentTimer = nil
        guard let parent = request.parents.requested else {
            request.parents.restart()
            return false
        }
        guard error.mayBeParents, canContinue else { return false }
        request.parents.leave()
        filler.metrics.errors.add(FailureKind.parentFailed.rawValue)
        log("\(parent.text) did not deliver, asking elsewhere: \(error)", failure: .parentFailed)
        if status.isAbandoned { stopIfAbandoned() }
        if !hasEnded { start(output.delivered > 0 ? .resume : reason ?? .resume) }
        return true
    }

    /// A parent may wait for this very fetch, if the parents form a circle in which several clients begin at the same
    /// time. So where another proxy waits for the fetch, a parent is waited for only so long.
    func watchParent() {
        guard request.parents.requested != nil else { return }
        let timer = LoopTimer(on: origins.loop) { [unowned self] in leaveSilentParent() }
        parentTimer = timer
        // Not all at the same time: then the first one's answer serves all.
        timer.schedule(afterSeconds: filler.settings.parentPatience * (1 + filler.settings.random()))
    }

    private func leaveSilentParent() {
        guard !hasEnded, case .receiving(let transfer) = phase, !transfer.isReceiving else { return }
        guard status.read(\.isJoinedByProxy) == true else { return watchParent() }
        failOrRetry(.unusable("no answer, and another proxy is waiting"), isTransient: true)
    }
}

extension CacheFiller {
    /// Records what a parent's answer says about the parent.
    /// - Returns: whether it is the answer of the resource's origin; if not, somebody else has to be asked.
    func isOrigins(_ head: UpstreamHead, from parent: ParentProxy, requesting url: String) -> Bool {
        switch ParentAnswer(status: head.status, fields: head.fields) {
        case .origins:
            backoff.answered(parent)
            // How busy the origin is concerns those who contact it.
            if head.status >= 400 { backoff.note(head, requesting: url) }
            return true
        case .circle:
            if backoff.isNewCircle(parent) {
                logger.warning(
                    "a request has passed \(parent.text) before, which is a parent of this proxy: if this proxy is among its own parents, remove one of them from parents"
                )
            }
        case .own:
            let seconds = RetryAfter.seconds(head.fields["Retry-After"], now: head.receivedAt)
            if head.status == 503, let seconds { backoff.rest(parent, seconds: seconds) }
        }
        return false
    }
}

extension FillError {
    /// Whether another server might do better.
    fileprivate var mayBeParents: Bool {
        switch self {
        case .upstream(let error): error.isOfPeer
        case .changed, .unusable, .strayPage: true
        // The origin's own answer, and reasons on this side.
        case .originStatus, .notStored, .notStoredYet, .offline, .busy, .crowded, .unlocated: false
        }
    }
}

extension UpstreamError {
    /// Whether it is the fault of the server contacted, or of the way to it.
    var isOfPeer: Bool {
        switch self {
        case .cannotResolve, .cannotConnect, .timedOut(_, .connect), .timedOut(_, .response), .timedOut(_, .body), .tls,
            .broken, .protocolViolation, .tooManyRedirects, .badRedirect:
            true
        case .badURL, .addressRefused, .outOfDescriptors, .timedOut, .interrupted, .proxyFailed, .proxyDenied: false
        }
    }
}
