import Activity
import CachePolicy
import HTTPModel
import Upstream

/// What stands between a request and its origin, whatever is fetched: nobody is contacted offline, parents are
/// requested before the origin, a host in back-off is waited for as long as somebody is patient, and what failed is
/// requested again where that helps. What an answer says about who gave it is noted for all. A value bound to its loop;
/// its owner sends, waits and receives.
///
///     choose ── turn ──┬── now ── begin ──┬── answered ──▶ the origin's answer
///       ▲              │                  └── failed ──┬── by a parent: choose, at once
///       │              ├── later ──┐                   ├── choose, after a back-off
///       └──────────────┼───────────┴───────────────────┘
///                      └── never
package struct OriginCall {
    /// When a request may be sent.
    package enum Turn {
        case now
        case later(afterSeconds: Double)
        case never(FillError)
    }

    package let origins: LoopOrigins
    private let backoff: OriginBackoff
    private var parents: ParentTurns?
    /// nil for a request that is sent once.
    private var retry: Retry?
    /// How many seconds such a request waits for its host; nil to send it whatever back-off that is in.
    private var patience: Double?
    /// The URL of the last request; empty before the first.
    private(set) var url = ""
    /// Where that led, if the host there is in back-off.
    private var target: String?
    /// When that was sent, in seconds since 1970.
    private(set) var time: Int64 = 0

    init(_ origins: LoopOrigins, _ parents: ParentTurns, for audience: Retry.Audience) {
        let settings = origins.filler.settings
        (self.origins, backoff, self.parents) = (origins, origins.filler.backoff, parents)
        retry = Retry(
            settings.retry, Retry.Patience(first: settings.longestWait, midway: settings.longestMidwayWait),
            for: audience)
    }

    /// A request that is sent once.
    package init(once origins: LoopOrigins, _ parents: ParentTurns? = nil, patience: Double? = nil) {
        (self.origins, backoff, self.parents) = (origins, origins.filler.backoff, parents)
        self.patience = patience
    }

    /// Who has the last request; nil for the origin.
    var parent: ParentProxy? { parents?.requested }

    /// Chooses who gets the next request; nil for the origin.
    mutating func choose() -> ParentProxy? {
        let next = parents?.next(isResting: backoff.isResting)
        parents?.use(next)
        return next
    }

    /// The next request goes to the origin itself.
    mutating func passParents() -> ParentProxy? {
        parents?.use(nil)
        return nil
    }

    /// Call before each request.
    package func turn(before request: UpstreamRequest) -> Turn {
        guard !origins.isOffline else { return .never(.offline) }
        // An origin in back-off is not contacted, but a parent may have the bytes.
        let wait =
            request.parent == nil ? max(backoff.wait(before: request.url), target.map(backoff.wait(before:)) ?? 0) : 0
        guard let retry else {
            guard let patience, wait > 0 else { return .now }
            return wait > patience ? .never(.busy(retryAfter: Retry.whole(wait))) : .later(afterSeconds: wait)
        }
        switch retry.turn(wait: wait, random: origins.filler.settings.random()) {
        case .now: return .now
        case .later(let seconds): return .later(afterSeconds: seconds)
        case .busy(let seconds): return .never(.busy(retryAfter: seconds))
        }
    }

    /// Records the request that is sent now.
    package mutating func begin(_ request: UpstreamRequest, for reason: FetchReason) {
        origins.filler.metrics.upstreamReasons[reason].add()
        if reason == .resume { origins.filler.metrics.resumedTransfers.add() }
        (url, time, target) = (request.url, origins.filler.now(), nil)
    }

    /// Cancels a transfer that would follow a redirect to a host in back-off: the next `turn` counts that.
    mutating func stops(_ transfer: any Transfer, at redirect: ReceivedRedirect) -> Bool {
        // A parent requests the target, too.
        guard parent == nil, backoff.wait(before: redirect.target) > 0 else { return false }
        target = redirect.target
        transfer.cancel()
        return true
    }

    /// Records what an answer says about who gave it.
    /// - Returns: why it is not the answer of the resource's origin, perhaps from a cache.
    func answered(_ head: UpstreamHead) -> FillError? {
        guard let parent else {
            backoff.note(head, requesting: url)
            return nil
        }
        switch ParentAnswer(status: head.status, fields: head.fields) {
        case .origins:
            backoff.answered(parent)
            // How busy the origin is concerns those who contact it.
            if head.status >= 400 { backoff.note(head, requesting: url) }
            return nil
        case .circle:
            if backoff.isNewCircle(parent) {
                origins.filler.logger.warning(
                    "a request has passed \(parent.text) before, which is a parent of this proxy: if this proxy is among its own parents, remove one of them from parents"
                )
            }
        case .own:
            let seconds = RetryAfter.seconds(head.fields["Retry-After"], now: head.receivedAt)
            if head.status == 503, let seconds { backoff.rest(parent, seconds: seconds) }
        }
        return .unusable("\(parent.text) answered \(head.status)")
    }

    /// Records that the request got no answer, or only part of one.
    func failed(_ error: UpstreamError) {
        guard let parent else { return backoff.note(error, requesting: url) }
        if error.isOfPeer { backoff.failed(parent) }
    }

    /// What a parent does wrong leads to the next one, or to the origin, at once and also midway; the client does not
    /// notice. After the origin has failed, too, the parents are requested again.
    /// - Returns: the parent that is left; nil if the failure is no parent's.
    mutating func leaveParent(after error: FillError) -> ParentProxy? {
        guard let parent else {
            parents?.restart()
            return nil
        }
        guard error.mayBeParents else { return nil }
        parents?.leave()
        origins.filler.metrics.errors.add(FailureKind.parentFailed.rawValue)
        return parent
    }

    /// Whether and when to send the request again.
    mutating func turn(after error: FillError, _ failure: Retry.Failure) -> Turn {
        switch retry?.failed(failure, wait: backoff.wait(before: url), random: origins.filler.settings.random()) {
        case .again(let seconds): .later(afterSeconds: seconds)
        case .busy(let seconds): .never(.busy(retryAfter: seconds))
        case .fail, nil: .never(error)
        }
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
    fileprivate var isOfPeer: Bool {
        switch self {
        case .cannotResolve, .cannotConnect, .timedOut(_, .connect), .timedOut(_, .response), .timedOut(_, .body), .tls,
            .broken, .protocolViolation, .tooManyRedirects, .badRedirect:
            true
        case .badURL, .addressRefused, .outOfDescriptors, .timedOut, .interrupted, .proxyFailed, .proxyDenied: false
        }
    }
}
