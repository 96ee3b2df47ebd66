import CachePolicy
import DiskCache
import EventIO
import HTTPModel
import Upstream

/// Passes on a client's HEAD for a resource that is not cached. Loop-bound.
package final class HeadFetch: TransferDelegate {
    private var transfer: (any Transfer)?
    private let deliver: (Result<UpstreamHead, FillError>) -> Void
    private let report: (InterimResponse) -> Void
    private let demand: Demand
    /// The stored generation to validate; nil if there is none.
    private let validated: Generation?
    /// Conditions that validate it.
    private let conditions: HeaderFields?
    private let origins: LoopOrigins
    private var head: UpstreamHead?
    private let resource: OpenResource
    private var parents: ParentTurns
    /// When the last request was sent, in seconds since 1970.
    private var requestedAt: Int64 = 0
    /// Runs while the host is in back-off.
    private var timer: LoopTimer?

    init(
        _ demand: Demand, validating validated: Generation?, _ origins: LoopOrigins,
        report: @escaping (InterimResponse) -> Void, deliver: @escaping (Result<UpstreamHead, FillError>) -> Void
    ) {
        self.demand = demand
        self.validated = validated
        conditions = validated.flatMap { Freshening.conditions(for: $0.head.fields) }
        self.origins = origins
        (self.deliver, self.report) = (deliver, report)
        let key = origins.filler.policy.value.resolve(demand.url).key
        resource = origins.filler.resource(key)
        parents = ParentTurns(demand.resolvedRule.parents, for: key)
        begin()
    }

    /// Asks the next parent, or the origin once it may be contacted.
    private func begin() {
        parents.use(parents.next(isResting: origins.filler.backoff.isResting))
        let wait = parents.requested == nil ? origins.filler.backoff.wait(before: demand.address) : 0
        guard wait > 0 else { return send() }
        // A client that can be given a stored response is not kept waiting.
        let isTooLong = conditions != nil || wait > origins.filler.settings.longestWait
        let timer = LoopTimer(on: origins.loop) { [unowned self] in
            if isTooLong { deliver(.failure(.busy(retryAfter: Int64(wait.rounded(.up))))) } else { send() }
        }
        self.timer = timer
        timer.schedule(afterSeconds: isTooLong ? 0 : wait)
    }

    private func send() {
        origins.filler.metrics.upstreamReasons[conditions == nil ? .head : .validation].add()
        var fields = demand.openingFields(to: demand.address)
        fields.lines += conditions?.lines ?? []
        if parents.requested != nil, conditions == nil, resource.changes > 0 { fields.demandValidation() }
        var request = UpstreamRequest(
            url: demand.address, method: .head, fields: fields, confined: demand.confined)
        request.parent = parents.requested?.url
        request.client = demand.client
        requestedAt = origins.filler.now()
        transfer = origins.upstream.start(request, delegate: self)
    }

    /// Asks somebody else if a parent has failed.
    private func turnsFromParent() -> Bool {
        guard parents.requested != nil else { return false }
        parents.leave()
        origins.filler.metrics.errors.add(FailureKind.parentFailed.rawValue)
        begin()
        return true
    }

    package func cancel() {
        timer = nil
        transfer?.cancel()
        transfer = nil
    }

    package func transfer(_ transfer: any Transfer, receivedInterim interim: InterimResponse) { report(interim) }

    package func transfer(_ transfer: any Transfer, receivedHead head: UpstreamHead) {
        if let parent = parents.requested {
            // Otherwise somebody else is asked when this exchange has ended.
            let isOrigins = origins.filler.isOrigins(head, from: parent, requesting: demand.address)
            if isOrigins, !isOutdated(head) { self.head = head }
            return
        }
        self.head = head
        origins.filler.backoff.note(head, requesting: demand.address)
    }

    /// Whether a parent has something older than what is stored. The origin knows which holds.
    private func isOutdated(_ head: UpstreamHead) -> Bool {
        guard let validated, !origins.filler.confirms(head, validated) else { return false }
        return origins.filler.isOlder(head, than: validated, requestedAt: requestedAt)
    }

    package func transfer(_ transfer: any Transfer, receivedBody bytes: UnsafeRawBufferPointer) -> Bool { true }

    package func transfer(_ transfer: any Transfer, finishedWith error: UpstreamError?) {
        self.transfer = nil
        if let parent = parents.requested {
            if head == nil, error?.isOfPeer ?? true {
                if error != nil { origins.filler.backoff.failed(parent) }
                if turnsFromParent() { return }
            }
        } else if let error {
            origins.filler.backoff.note(error, requesting: demand.address)
        }
        if let head { return deliver(.success(head)) }
        deliver(.failure(.upstream(error ?? .broken(detail: "no answer"))))
    }
}

extension LoopFiller {
    /// Sends a HEAD to an origin. Delivers once, unless cancelled.
    /// - Parameter validated: the stored generation; the request is conditional on it.
    /// - Parameter report: called with each response before the final one.
    /// - Returns: nil while the proxy is offline.
    package func head(
        _ demand: Demand, validating validated: Generation? = nil,
        report: @escaping (InterimResponse) -> Void = { _ in },
        deliver: @escaping (Result<UpstreamHead, FillError>) -> Void
    ) -> HeadFetch? {
        guard !origins.isOffline else { return nil }
        return HeadFetch(demand, validating: validated, origins, report: report, deliver: deliver)
    }
}
